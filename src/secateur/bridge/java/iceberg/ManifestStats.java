package secateur;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
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

  final DataFile[] files;
  final Map columns = new HashMap(); // field id -> Column

  private ManifestStats(DataFile[] files) {
    this.files = files;
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
      ManifestStats out = new ManifestStats(null);
      CloseableIterator it = entries.iterator();
      Method file = null;
      while (it.hasNext()) {
        Object entry = it.next();
        if (file == null) file = Reflect.method(entry.getClass(), "file", 0);
        DataFile next = (DataFile) Reflect.invoke(file, entry, new Object[0]);
        out.note(next, files.size(), expected, types);
        files.add(next.copyWithoutStats());
      }
      it.close();
      ManifestStats whole = new ManifestStats((DataFile[]) files.toArray(new DataFile[files.size()]));
      whole.columns.putAll(out.columns);
      return whole;
    } finally {
      reader.close();
    }
  }

  private void note(DataFile file, int at, int expected, Map types) {
    counts(file.valueCounts(), 0, at, expected, types);
    counts(file.nullValueCounts(), 1, at, expected, types);
    counts(file.nanValueCounts(), 2, at, expected, types);
    bounds(file.lowerBounds(), 0, at, expected, types);
    bounds(file.upperBounds(), 1, at, expected, types);
  }

  private Column column(Object id, int expected, Map types) {
    Column known = (Column) columns.get(id);
    if (known != null) return known;
    Type type = (Type) types.get(id);
    if (type == null) return null; // a field of a list or map, or one that no schema of the table names any more
    Column fresh = new Column(type, expected);
    columns.put(id, fresh);
    return fresh;
  }

  private void counts(Map found, int which, int at, int expected, Map types) {
    if (found == null) return;
    Iterator it = found.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry entry = (Map.Entry) it.next();
      Column column = column(entry.getKey(), expected, types);
      if (column != null && entry.getValue() != null) column.count(which, at, ((Long) entry.getValue()).longValue());
    }
  }

  private void bounds(Map found, int which, int at, int expected, Map types) {
    if (found == null) return;
    Iterator it = found.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry entry = (Map.Entry) it.next();
      Column column = column(entry.getKey(), expected, types);
      if (column != null && entry.getValue() != null) column.bound(which, at, (ByteBuffer) entry.getValue());
    }
  }

  /** Counts and bounds of one field, an entry per file. Bounds are numbers where the type has at most 64 bits, else bytes. */
  static final class Column {
    static final long MISSING = -1;
    final Type type;
    final boolean numeric;
    private final int expected;
    final long[][] counts = new long[3][]; // of values, NULLs, NaNs; null if no file has any
    final long[][] numbers = new long[2][]; // low, high; the bits of a double for floats
    final byte[][][] bytes = new byte[2][][];
    final boolean[][] known = new boolean[2][];

    Column(Type type, int expected) {
      this.type = type;
      this.expected = expected;
      this.numeric = isNumeric(type);
    }

    private static boolean isNumeric(Type type) {
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

    void count(int which, int at, long value) {
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

    void bound(int which, int at, ByteBuffer value) {
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
      ByteBuffer little = ((ByteBuffer) value.duplicate()).order(java.nio.ByteOrder.LITTLE_ENDIAN);
      int width = little.remaining();
      long number;
      switch (type.typeId()) {
        case BOOLEAN:
          if (width != 1) return false;
          number = little.get() != 0 ? 1 : 0;
          break;
        case FLOAT:
        case DOUBLE:
          if (width != 4 && width != 8) return false;
          number = Double.doubleToRawLongBits(width == 4 ? (double) little.getFloat() : little.getDouble());
          break;
        case INTEGER:
        case LONG:
        case DATE:
          if (width != 4 && width != 8) return false;
          number = width == 4 ? (long) little.getInt() : little.getLong();
          break;
        default:
          if (width != 8) return false; // four bytes would be a date that became a timestamp
          number = little.getLong();
          break;
      }
      numbers[which][at] = number;
      return true;
    }

    /** The bound as Iceberg's own evaluators take it. */
    ByteBuffer single(int which, int at, Type wanted) {
      if (!numeric) return ByteBuffer.wrap(bytes[which][at]);
      long number = numbers[which][at];
      ByteBuffer out = ByteBuffer.allocate(8).order(java.nio.ByteOrder.LITTLE_ENDIAN);
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
