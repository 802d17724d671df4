package secateur;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.CloseableIterator;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.types.Type;

/**
 * The live files of one manifest: each without its statistics, and the statistics as columns. A manifest never changes, so this
 * never gets stale.
 */
final class ManifestStats {
  // What Iceberg's own planning reads, with the statistics that are used and without the sizes of columns.
  private static final List COLUMNS = Arrays.asList(new Object[] {
      "snapshot_id", "file_path", "file_format", "file_size_in_bytes", "record_count", "partition", "key_metadata",
      "split_offsets", "sort_order_id", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"});

  private static final int VALUES = 0;
  private static final int NULLS = 1;
  private static final int NANS = 2;
  private static final int LOW = 3;
  private static final int HIGH = 4;

  final DataFile[] files;
  final Map columns; // field id -> Column
  long[] added; // the snapshot that each file came with, MISSING if that is not known
  private final Map ignored = new HashMap();
  private final List[] seen = {new ArrayList(), new ArrayList(), new ArrayList(), new ArrayList(), new ArrayList()}; // of Column, by statistic

  private ManifestStats(DataFile[] files, Map columns) {
    this.files = files;
    this.columns = columns;
  }

  /** Reads a manifest; `types` are those of every field that the table's schemas name, by id. */
  static ManifestStats read(ManifestFile manifest, FileIO io, Map specs, Map types) throws Exception {
    ManifestReader reader = ManifestFiles.read(manifest, io, specs).select(COLUMNS);
    try {
      // The public iterator would copy the statistics of every file.
      CloseableIterable entries = (CloseableIterable) Reflect.call(reader, "liveEntries");
      int expected = manifest.addedFilesCount() == null || manifest.existingFilesCount() == null
          ? 64 : manifest.addedFilesCount().intValue() + manifest.existingFilesCount().intValue();
      List files = new ArrayList(expected);
      ManifestStats out = new ManifestStats(null, new HashMap());
      CloseableIterator it = entries.iterator();
      Method file = null;
      Method snapshot = null;
      long[] added = new long[expected];
      while (it.hasNext()) {
        Object entry = it.next();
        if (file == null) file = Reflect.method(entry.getClass(), "file", 0);
        if (snapshot == null) snapshot = Reflect.method(entry.getClass(), "snapshotId", 0);
        DataFile next = (DataFile) Reflect.invoke(file, entry, new Object[0]);
        Long id = (Long) Reflect.invoke(snapshot, entry, new Object[0]);
        if (files.size() == added.length) added = Arrays.copyOf(added, 2 * added.length + 1);
        added[files.size()] = id == null ? Column.MISSING : id.longValue();
        out.note(next, files.size(), expected, types);
        files.add(next.copyWithoutStats());
      }
      it.close();
      ManifestStats all = new ManifestStats((DataFile[]) files.toArray(new DataFile[files.size()]), out.columns);
      all.added = added;
      return all;
    } finally {
      reader.close();
    }
  }

  private void note(DataFile file, int at, int expected, Map types) {
    take(file.valueCounts(), VALUES, at, expected, types);
    take(file.nullValueCounts(), NULLS, at, expected, types);
    take(file.nanValueCounts(), NANS, at, expected, types);
    take(file.lowerBounds(), LOW, at, expected, types);
    take(file.upperBounds(), HIGH, at, expected, types);
  }

  /** A statistic of a file: by the fields that files before it had. To walk through Iceberg's maps takes longer. */
  private void take(Map found, int statistic, int at, int expected, Map types) {
    if (found == null) return;
    List known = seen[statistic];
    int left = found.size();
    for (int c = 0; c < known.size() && left > 0; c++) {
      Column column = (Column) known.get(c);
      Object value = found.get(column.id);
      if (value == null) continue;
      left--;
      if (column.type != null) column.take(statistic, at, value);
    }
    if (left == 0) return;
    Iterator it = found.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry entry = (Map.Entry) it.next();
      Column column = column((Integer) entry.getKey(), expected, types);
      if (!known.contains(column)) known.add(column);
      if (column.type != null && entry.getValue() != null) column.take(statistic, at, entry.getValue());
    }
  }

  private Column column(Integer id, int expected, Map types) {
    Column known = (Column) columns.get(id);
    if (known == null) known = (Column) ignored.get(id);
    if (known != null) return known;
    Column fresh = new Column(id, (Type) types.get(id), expected);
    // Without a type: a field of a list or map, or one that no schema of the table names any more.
    (fresh.type == null ? ignored : columns).put(id, fresh);
    return fresh;
  }

  /** Counts and bounds of one field, an entry per file. Bounds are numbers where the type has at most 64 bits, else bytes. */
  static final class Column {
    static final long MISSING = -1;
    final Integer id;
    final Type type; // null if its statistics are of no use
    final boolean numeric;
    private final int expected;
    final long[][] counts = new long[3][]; // of values, NULLs, NaNs; null if no file has any
    final long[][] numbers = new long[2][]; // low, high; the bits of a double for floats
    final byte[][][] bytes = new byte[2][][];
    final boolean[][] known = new boolean[2][];

    Column(Integer id, Type type, int expected) {
      this.id = id;
      this.type = type;
      this.expected = expected;
      this.numeric = type != null && isNumeric(type);
    }

    static boolean isNumeric(Type type) {
      switch (type.typeId()) {
        case BOOLEAN:
        case INTEGER:
        case LONG:
        case DATE:
        case TIME:
        case TIMESTAMP:
        case FLOAT:
        case DOUBLE:
          return true;
        default:
          return false;
      }
    }

    static boolean isFloat(Type type) {
      return type.typeId() == Type.TypeID.FLOAT || type.typeId() == Type.TypeID.DOUBLE;
    }

    void take(int statistic, int at, Object value) {
      if (statistic < LOW) count(statistic, at, ((Long) value).longValue());
      else bound(statistic - LOW, at, (ByteBuffer) value);
    }

    private void count(int which, int at, long value) {
      long[] all = counts[which];
      if (all == null) {
        all = new long[Math.max(expected, at + 1)];
        Arrays.fill(all, MISSING);
        counts[which] = all;
      } else if (at >= all.length) {
        int before = all.length;
        all = Arrays.copyOf(all, 2 * at + 16);
        Arrays.fill(all, before, all.length, MISSING);
        counts[which] = all;
      }
      all[at] = value;
    }

    /** A count, MISSING if the file has none. */
    long count(int which, int at) {
      return counts[which] == null || at >= counts[which].length ? MISSING : counts[which][at];
    }

    private void bound(int which, int at, ByteBuffer value) {
      if (known[which] == null) known[which] = new boolean[Math.max(expected, at + 1)];
      if (at >= known[which].length) known[which] = Arrays.copyOf(known[which], 2 * at + 16);
      int size = known[which].length;
      if (numeric) {
        if (numbers[which] == null) numbers[which] = new long[size];
        if (numbers[which].length < size) numbers[which] = Arrays.copyOf(numbers[which], size);
        known[which][at] = number(which, at, value);
      } else {
        if (bytes[which] == null) bytes[which] = new byte[size][];
        if (bytes[which].length < size) bytes[which] = (byte[][]) Arrays.copyOf(bytes[which], size);
        bytes[which][at] = new byte[value.remaining()];
        ((ByteBuffer) value.duplicate()).get(bytes[which][at]);
        known[which][at] = true;
      }
    }

    boolean has(int which, int at) {
      return known[which] != null && at < known[which].length && known[which][at];
    }

    /** The bound in Iceberg's single-value form: little endian; a column that was promoted keeps the narrow bytes of its old type. */
    private boolean number(int which, int at, ByteBuffer value) {
      int width = value.remaining();
      long number;
      switch (type.typeId()) {
        case BOOLEAN:
          if (width != 1) return false;
          number = value.get(value.position()) != 0 ? 1 : 0;
          break;
        case FLOAT:
        case DOUBLE:
          if (width != 4 && width != 8) return false;
          number = width == 8 ? eight(value) : Double.doubleToRawLongBits((double) Float.intBitsToFloat(four(value)));
          break;
        case INTEGER:
        case LONG:
        case DATE:
          if (width != 4 && width != 8) return false;
          number = width == 4 ? (long) four(value) : eight(value);
          break;
        default:
          if (width != 8) return false; // four bytes would be a date that became a timestamp
          number = eight(value);
          break;
      }
      numbers[which][at] = number;
      return true;
    }

    private static long eight(ByteBuffer value) {
      long bits = value.getLong(value.position());
      return value.order() == ByteOrder.LITTLE_ENDIAN ? bits : Long.reverseBytes(bits);
    }

    private static int four(ByteBuffer value) {
      int bits = value.getInt(value.position());
      return value.order() == ByteOrder.LITTLE_ENDIAN ? bits : Integer.reverseBytes(bits);
    }

    /** The bound as Iceberg's own evaluators take it. */
    ByteBuffer single(int which, int at, Type wanted) {
      if (!numeric) return ByteBuffer.wrap(bytes[which][at]);
      long number = numbers[which][at];
      ByteBuffer out = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
      switch (wanted.typeId()) {
        case BOOLEAN:
          out.put((byte) number);
          break;
        case FLOAT:
          out.putFloat((float) Double.longBitsToDouble(number));
          break;
        case INTEGER:
        case DATE:
          out.putInt((int) number);
          break;
        default: // eight bytes of a number, or the bits of a double
          out.putLong(number);
          break;
      }
      out.flip();
      return out;
    }
  }
}
