package secateur.iceberg;

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

  private static final Object[] NOTHING = {};
  private static final int VALUES = 0;
  private static final int NULLS = 1;
  private static final int NANS = 2;
  static final int LOW = 3;
  private static final int HIGH = 4;

  DataFile[] files;
  final Map columns = new HashMap(); // field id -> Column
  int decoded = 0; // how many statistics were read so, of any file
  boolean direct; // whether statistics were read without making maps of them first
  long[] added; // the snapshot that each file came with, MISSING if that is not known
  private final Map types;
  private final int expected;
  private List read; // the files so far
  private final Map ignored = new HashMap();

  private ManifestStats(Map types, int expected) {
    this.types = types;
    this.expected = expected;
    this.read = new ArrayList(expected);
    this.added = new long[expected];
  }

  /** Reads a manifest; `types` are those of every field that the table's schemas name, by id. */
  static ManifestStats read(ManifestFile manifest, FileIO io, Map specs, Map types) throws Exception {
    ManifestStats direct = read(manifest, io, specs, types, true);
    return direct == null ? read(manifest, io, specs, types, false) : direct;
  }

  /** Null if statistics were to be read without maps, but Iceberg reads entries ahead: then they would be taken for those of another file. */
  private static ManifestStats read(ManifestFile manifest, FileIO io, Map specs, Map types, boolean direct) throws Exception {
    int expected = manifest.addedFilesCount() == null || manifest.existingFilesCount() == null
        ? 64 : manifest.addedFilesCount().intValue() + manifest.existingFilesCount().intValue();
    ManifestStats out = new ManifestStats(types, expected);
    ManifestReader reader = ManifestFiles.read(manifest, io, specs).select(COLUMNS);
    try {
      // The public iterator would copy the statistics of every file.
      CloseableIterator it = ((CloseableIterable) Reflect.call(reader, "entries")).iterator();
      out.direct = direct && StatisticsReader.takesOver(reader, out);
      Method isLive = null;
      Method file = null;
      Method snapshot = null;
      while (true) {
        int before = out.decoded;
        if (!it.hasNext()) break;
        if (out.decoded > before) return null;
        Object entry = it.next();
        if (isLive == null) {
          isLive = Reflect.method(Class.forName("org.apache.iceberg.ManifestEntry", true, DataFile.class.getClassLoader()), "isLive", 0);
          file = Reflect.method(entry.getClass(), "file", 0);
          snapshot = Reflect.method(entry.getClass(), "snapshotId", 0);
        }
        if (!((Boolean) Reflect.invoke(isLive, entry, NOTHING)).booleanValue()) {
          if (out.direct) out.forget(out.next());
          continue;
        }
        DataFile next = (DataFile) Reflect.invoke(file, entry, NOTHING);
        if (out.direct && hasStatistics(next)) return null;
        if (!out.direct) out.note(next);
        out.add((DataFile) next.copyWithoutStats(), (Long) Reflect.invoke(snapshot, entry, NOTHING));
      }
      it.close();
    } finally {
      reader.close();
    }
    out.files = (DataFile[]) out.read.toArray(new DataFile[out.read.size()]);
    out.read = null;
    return out;
  }

  /** The place of the file that is read next. */
  int next() {
    return read.size();
  }

  private void add(DataFile file, Long snapshot) {
    if (next() == added.length) added = Arrays.copyOf(added, 2 * added.length + 1);
    added[next()] = snapshot == null ? Column.MISSING : snapshot.longValue();
    read.add(file);
  }

  private void forget(int at) {
    Iterator it = columns.values().iterator();
    while (it.hasNext()) ((Column) it.next()).forget(at);
  }

  private static boolean hasStatistics(DataFile file) {
    return file.valueCounts() != null || file.nullValueCounts() != null || file.nanValueCounts() != null
        || file.lowerBounds() != null || file.upperBounds() != null;
  }

  private void note(DataFile file) {
    take(file.valueCounts(), VALUES);
    take(file.nullValueCounts(), NULLS);
    take(file.nanValueCounts(), NANS);
    take(file.lowerBounds(), LOW);
    take(file.upperBounds(), HIGH);
  }

  private void take(Map found, int statistic) {
    if (found == null) return;
    Iterator it = found.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry entry = (Map.Entry) it.next();
      Column column = column((Integer) entry.getKey());
      if (column.type == null || entry.getValue() == null) continue;
      if (statistic < LOW) column.count(statistic, next(), ((Long) entry.getValue()).longValue());
      else column.bound(statistic - LOW, next(), (ByteBuffer) entry.getValue());
    }
  }

  Column column(Integer id) {
    Column known = (Column) columns.get(id);
    if (known == null) known = (Column) ignored.get(id);
    if (known != null) return known;
    Column fresh = new Column(id, (Type) types.get(id), expected + 1); // a deleted file may come last
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

    void forget(int at) {
      for (int c = 0; c < 3; c++) if (counts[c] != null && at < counts[c].length) counts[c][at] = MISSING;
      for (int b = 0; b < 2; b++) if (known[b] != null && at < known[b].length) known[b][at] = false;
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
