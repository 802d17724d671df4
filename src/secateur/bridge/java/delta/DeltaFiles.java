package secateur;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.io.FileNotFoundException;
import java.lang.ref.SoftReference;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.actions.Action$;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.DeletionVectorDescriptor;
import org.apache.spark.sql.delta.actions.RemoveFile;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.delta.util.FileNames$;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Map$;

/**
 * The files of one version of a Delta table. They come from the log's checkpoint and commits as Delta itself reads them, put together
 * here instead of in a shuffle; a later version comes from the one before it and the commits since.
 */
final class DeltaFiles extends FileSet {
  private static final Cache TABLES = CacheBuilder.newBuilder().maximumSize(64).softValues().build();
  private static final int VERSIONS = 4; // kept of one table
  private static final int COMMITS = 200; // read one by one; if there are more, all is read anew
  private static final Constructor ADD = widest(AddFile.class);

  final long version;
  final AddFile[] files; // without their statistics, which Python holds
  private final TahoeFileIndex index; // made with this version's schema, to cast partition values
  private final String family;
  private final long committed;
  private final String columns;
  private final Snapshot snapshot;
  private volatile byte[][] unread; // the statistics, until they have been written once
  private volatile SoftReference stats;

  private DeltaFiles(String family, Snapshot snapshot, TahoeFileIndex index, List files, List stats) {
    this.family = family;
    this.snapshot = snapshot;
    this.version = snapshot.version();
    this.committed = snapshot.logSegment().lastCommitFileModificationTimestamp();
    this.files = (AddFile[]) files.toArray(new AddFile[files.size()]);
    this.unread = (byte[][]) stats.toArray(new byte[stats.size()][]);
    this.stats = new SoftReference(this.unread);
    this.columns = columns(snapshot);
    this.index = new DeltaIndex(index, snapshot, this, new BitSet(), false, false);
    long total = 0;
    for (int i = 0; i < this.files.length; i++) total += this.files[i].size();
    bytes = total;
    count = this.files.length;
    fingerprint = family + "@" + version + "." + committed;
  }

  /** The versions of one table that were read last, oldest first. */
  static final class Versions {
    final List known = new ArrayList();
  }

  static DeltaFiles of(TahoeFileIndex index, Snapshot snapshot) throws Exception {
    if (snapshot.logSegment() == null) throw new IllegalStateException("a snapshot without a log is not known");
    String family = family(index, snapshot);
    Versions versions;
    synchronized (TABLES) {
      versions = (Versions) TABLES.getIfPresent(family);
      if (versions == null) TABLES.put(family, versions = new Versions());
    }
    synchronized (versions) { // others that want the same version wait for it instead of reading it, too
      String wanted = family + "@" + snapshot.version() + "." + snapshot.logSegment().lastCommitFileModificationTimestamp();
      DeltaFiles base = null;
      for (int i = 0; i < versions.known.size(); i++) {
        DeltaFiles one = (DeltaFiles) versions.known.get(i);
        if (one.fingerprint.equals(wanted)) return one;
        if (one.version < snapshot.version() && (base == null || base.version < one.version)) base = one;
      }
      DeltaFiles fresh = base == null ? null : later(base, snapshot, index);
      if (fresh == null) fresh = whole(family, snapshot, index);
      if (!fresh.addsUp()) throw new IllegalStateException("the log of version " + snapshot.version() + " counts other files than it lists");
      versions.known.add(fresh);
      if (versions.known.size() > VERSIONS) versions.known.remove(0);
      return fresh;
    }
  }

  /** The table, and what else partition values depend on. */
  private static String family(TahoeFileIndex index, Snapshot snapshot) {
    return "delta:" + snapshot.metadata().id() + ":" + snapshot.deltaLog().dataPath() + ":"
        + ((org.apache.spark.sql.classic.SparkSession) index.spark()).sessionState().conf().sessionLocalTimeZone();
  }

  private boolean addsUp() {
    if (snapshot.checksumOpt().isEmpty()) return true;
    return ((VersionChecksum) snapshot.checksumOpt().get()).numFiles() == count;
  }

  /** Reads all: the rows of the checkpoint, then what the commits after it added and removed. */
  private static DeltaFiles whole(String family, Snapshot snapshot, TahoeFileIndex index) throws Exception {
    long checkpoint = snapshot.checkpointProvider().version();
    boolean partitioned = snapshot.metadata().partitionSchema().length() > 0;
    Row[] rows = (Row[]) snapshot.loadActions()
        .where("add.path IS NOT NULL OR (remove.path IS NOT NULL AND version > " + checkpoint + ")")
        .selectExpr(new String[] {
            "version", "add.path", partitioned ? "add.partitionValues" : "NULL", "add.size", "add.modificationTime",
            "CAST(add_stats_to_use AS BINARY)", "add.deletionVector",
            "add.baseRowId", "add.defaultRowCommitVersion", "remove.path", "remove.deletionVector"})
        .collect();
    Function1 canonical = snapshot.deltaLog().getCanonicalPathFunction(false);
    List commits = new ArrayList();
    for (int i = 0; i < rows.length; i++) if (rows[i].getLong(0) > checkpoint) commits.add(rows[i]);
    java.util.Collections.sort(commits, new ByVersion());
    Map latest = new LinkedHashMap(); // key -> AddFile, null if it was removed
    Map latestStats = new HashMap();
    Map partitions = new HashMap();
    for (int i = 0; i < commits.size(); i++) {
      Row row = (Row) commits.get(i);
      if (row.isNullAt(1)) {
        latest.put(path(canonical, row.getString(9)) + id(vector(row, 10)), null);
      } else {
        AddFile add = add(row, canonical, partitions);
        latest.remove(key(add)); // so that the order is that of the last commits
        latest.put(key(add), add);
        latestStats.put(key(add), row.get(5));
      }
    }
    List files = new ArrayList(rows.length);
    List stats = new ArrayList(rows.length);
    for (int i = 0; i < rows.length; i++) {
      if (rows[i].getLong(0) > checkpoint) continue;
      AddFile add = add(rows[i], canonical, partitions);
      if (!latest.isEmpty() && latest.containsKey(key(add))) continue;
      files.add(add);
      stats.add(rows[i].get(5));
    }
    append(latest, latestStats, files, stats);
    return new DeltaFiles(family, snapshot, index, files, stats);
  }

  static final class ByVersion implements java.util.Comparator {
    public int compare(Object a, Object b) {
      return Long.compare(((Row) a).getLong(0), ((Row) b).getLong(0));
    }
  }

  private static void append(Map latest, Map latestStats, List files, List stats) {
    Object[] entries = latest.entrySet().toArray();
    for (int i = 0; i < entries.length; i++) {
      Map.Entry entry = (Map.Entry) entries[i];
      if (entry.getValue() == null) continue;
      files.add(entry.getValue());
      stats.add(latestStats.get(entry.getKey()));
    }
  }

  /** Reads the commits since an earlier version, null if they cannot be had. */
  private static DeltaFiles later(DeltaFiles base, Snapshot snapshot, TahoeFileIndex index) throws Exception {
    if (snapshot.version() - base.version > COMMITS) return null;
    Map named = new HashMap(); // version -> FileStatus
    scala.collection.Iterator it = snapshot.logSegment().deltas().iterator();
    while (it.hasNext()) {
      FileStatus delta = (FileStatus) it.next();
      if (FileNames$.MODULE$.isDeltaFile(delta)) named.put(Long.valueOf(FileNames$.MODULE$.deltaVersion(delta)), delta);
    }
    Configuration conf = snapshot.deltaLog().newDeltaHadoopConf();
    Path log = snapshot.deltaLog().logPath();
    Function1 canonical = snapshot.deltaLog().getCanonicalPathFunction(false);
    Map latest = new LinkedHashMap();
    Map latestStats = new HashMap();
    try {
      FileStatus first = (FileStatus) named.get(Long.valueOf(base.version));
      if (first == null) first = log.getFileSystem(conf).getFileStatus(FileNames$.MODULE$.unsafeDeltaFile(log, base.version));
      if (first.getModificationTime() != base.committed) return null; // another history than the one that was read
      for (long v = base.version + 1; v <= snapshot.version(); v++) {
        FileStatus status = (FileStatus) named.get(Long.valueOf(v));
        Path commit = status != null ? status.getPath() : FileNames$.MODULE$.unsafeDeltaFile(log, v);
        scala.collection.Iterator lines = snapshot.deltaLog().store().read(commit, conf).iterator();
        while (lines.hasNext()) {
          Object action = Action$.MODULE$.fromJson((String) lines.next());
          if (action instanceof RemoveFile) {
            RemoveFile remove = (RemoveFile) action;
            latest.put(path(canonical, remove.path()) + id(remove.deletionVector()), null);
          } else if (action instanceof AddFile) {
            AddFile read = (AddFile) action;
            AddFile add = add(path(canonical, read.path()), read.partitionValues(), read.size(), read.modificationTime(),
                read.deletionVector(), read.baseRowId(), read.defaultRowCommitVersion());
            latest.remove(key(add));
            latest.put(key(add), add);
            latestStats.put(key(add), read.stats() == null ? null : read.stats().getBytes(StandardCharsets.UTF_8));
          }
        }
      }
    } catch (FileNotFoundException cleaned) {
      return null;
    }
    List files = new ArrayList(base.count + latest.size());
    List stats = new ArrayList(base.count + latest.size());
    byte[][] before = base.texts();
    for (int i = 0; i < base.files.length; i++) {
      if (latest.containsKey(key(base.files[i]))) continue;
      files.add(base.files[i]);
      stats.add(before == null ? GONE : before[i]);
    }
    append(latest, latestStats, files, stats);
    DeltaFiles fresh = new DeltaFiles(base.family, snapshot, index, files, stats);
    return fresh.addsUp() ? fresh : null;
  }

  private static final byte[] GONE = new byte[0]; // statistics that Python has and memory was needed for

  private static AddFile add(Row row, Function1 canonical, Map partitions) throws Exception {
    Object values = row.isNullAt(2) ? Map$.MODULE$.empty() : row.get(2);
    Object known = partitions.get(values);
    if (known == null) partitions.put(values, known = values);
    return add(path(canonical, row.getString(1)), known, row.getLong(3), row.isNullAt(4) ? 0 : row.getLong(4), vector(row, 6),
        option(row, 7), option(row, 8));
  }

  /** With nothing but what reading needs; later versions of the connector give the class more fields. */
  private static AddFile add(String path, Object partition, long size, long time, DeletionVectorDescriptor vector, Option rowId, Option commit)
      throws Exception {
    Class[] types = ADD.getParameterTypes();
    Object[] args = new Object[types.length];
    args[0] = path;
    args[1] = partition;
    args[2] = Long.valueOf(size);
    args[3] = Long.valueOf(time);
    args[4] = Boolean.FALSE;
    args[7] = vector;
    args[8] = rowId;
    args[9] = commit;
    for (int i = 10; i < args.length; i++) if (types[i] == Option.class) args[i] = Option.empty();
    return (AddFile) ADD.newInstance(args);
  }

  private static Constructor widest(Class type) {
    Constructor[] all = type.getConstructors();
    Constructor found = all[0];
    for (int i = 1; i < all.length; i++) {
      if (all[i].getParameterTypes().length > found.getParameterTypes().length) found = all[i];
    }
    return found;
  }

  private static Option option(Row row, int at) {
    return row.isNullAt(at) ? Option.empty() : (Option) new Some(row.get(at));
  }

  private static DeletionVectorDescriptor vector(Row row, int at) {
    if (row.isNullAt(at)) return null;
    Row v = row.getStruct(at);
    if (v.isNullAt(v.fieldIndex("storageType"))) return null;
    return new DeletionVectorDescriptor(v.getString(v.fieldIndex("storageType")), v.getString(v.fieldIndex("pathOrInlineDv")),
        option(v, v.fieldIndex("offset")), v.getInt(v.fieldIndex("sizeInBytes")), v.getLong(v.fieldIndex("cardinality")),
        option(v, v.fieldIndex("maxRowIndex")));
  }

  /** What makes a file of a version one and the same for the log: its path, and its deletion vector. */
  static String key(AddFile file) {
    return file.deletionVector() == null ? file.path() : file.path() + id(file.deletionVector());
  }

  private static String id(DeletionVectorDescriptor vector) {
    return vector == null ? "" : "\n" + vector.uniqueId();
  }

  /** As Delta makes paths comparable, which for a name as Delta makes them changes nothing. */
  private static String path(Function1 canonical, String path) {
    for (int i = 0; i < path.length(); i++) {
      char c = path.charAt(i);
      boolean plain = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '=';
      boolean inside = i > 0 && i < path.length() - 1 && (c == '.' || c == '/') && path.charAt(i - 1) != '/' && path.charAt(i - 1) != '.';
      if (!plain && !inside) return (String) canonical.apply(path);
    }
    return path;
  }

  private static String columns(Snapshot snapshot) {
    StringBuilder out = new StringBuilder("\"cols\":[");
    DeltaStats.describe(snapshot.metadata().schema(), "", out);
    StructType partitions = snapshot.metadata().partitionSchema();
    out.append("],\"pcols\":[");
    for (int i = 0; i < partitions.length(); i++) {
      Json.string(out.append(i > 0 ? ",[" : "["), partitions.fields()[i].name());
      Json.string(out.append(','), partitions.fields()[i].dataType().catalogString());
      out.append(']');
    }
    return out.append(']').toString();
  }

  /** By which base and fresh facts must agree to be put together; the names under which files have columns are part of it. */
  private String schema() {
    return snapshot.metadata().schemaString() + snapshot.metadata().partitionColumns();
  }

  /** Python parses what Delta's own planning would reconstruct and parse in a Spark job, which takes longer. */
  long patience() {
    return count / 50;
  }

  void write(StringBuilder out) throws Exception {
    write(out, new HashSet());
  }

  void write(StringBuilder out, Set have) throws Exception {
    DeltaFiles base = null;
    Versions versions = (Versions) TABLES.getIfPresent(family);
    if (versions != null) {
      synchronized (versions) {
        for (int i = 0; i < versions.known.size(); i++) {
          DeltaFiles one = (DeltaFiles) versions.known.get(i);
          if (one != this && have.contains(one.fingerprint) && one.schema().equals(schema())) base = one;
        }
      }
    }
    int[] gone = base == null ? null : goneSince(base);
    int from = gone == null ? 0 : base.count - gone.length;
    out.append("{\"kind\":\"delta\",");
    Json.field(out, "fp", fingerprint);
    Json.string(out.append(",\"roots\":["), snapshot.deltaLog().dataPath().toString());
    out.append("],").append(columns).append(",\"count\":").append(count);
    Json.field(out.append(','), "base", gone == null ? "" : base.fingerprint);
    Bulk bulk = new Bulk();
    bulk.ints("gone", gone == null ? new int[0] : gone, null);
    writeFiles(bulk, from, out);
    bulk.write(out.append(",\"bulk\":"));
    out.append('}');
    unread = null;
  }

  /** The ordinals of the base's files that are not here; the others are the first ones here, in the same order. */
  private int[] goneSince(DeltaFiles base) {
    int[] gone = new int[base.count];
    int missing = 0;
    for (int i = 0, at = 0; i < base.count; i++) {
      if (at < count && files[at] == base.files[i]) at++;
      else gone[missing++] = i;
    }
    return Arrays.copyOf(gone, missing);
  }

  private byte[][] texts() {
    byte[][] texts = unread;
    return texts != null ? texts : (byte[][]) stats.get();
  }

  private void writeFiles(Bulk bulk, int from, StringBuilder out) throws Exception {
    byte[][] texts = texts();
    boolean lost = texts == null;
    for (int i = from; !lost && i < count; i++) lost = texts[i] == GONE;
    if (lost) {
      DeltaFiles again = whole(family, snapshot, index); // the statistics were given up for want of memory
      Map byKey = new HashMap();
      for (int i = 0; i < again.count; i++) byKey.put(key(again.files[i]), again.unread[i]);
      texts = new byte[count][];
      for (int i = from; i < count; i++) texts[i] = (byte[]) byKey.get(key(files[i]));
    }
    int n = count - from;
    long[] sizes = new long[n];
    long[] deleted = new long[n];
    int[] partition = new int[n];
    DeltaStats said = new DeltaStats(snapshot.metadata().schema(), n);
    Map places = new HashMap();
    StringBuilder values = new StringBuilder(",\"pvals\":[");
    StructType schema = snapshot.metadata().partitionSchema();
    for (int i = 0; i < n; i++) {
      AddFile file = files[from + i];
      sizes[i] = file.size();
      deleted[i] = file.deletionVector() == null ? 0 : file.deletionVector().cardinality();
      Integer place = (Integer) places.get(file.partitionValues());
      if (place == null) {
        place = Integer.valueOf(places.size());
        places.put(file.partitionValues(), place);
        if (place.intValue() > 0) values.append(',');
        partition(values, ((DeltaIndex) index).getPartitionValuesRow(file.partitionValues()), schema);
      }
      partition[i] = place.intValue();
    }
    said.readAll(texts, from);
    bulk.longs("size", sizes, null);
    bulk.longs("deleted", deleted, null);
    bulk.ints("partition", partition, null);
    said.write(bulk);
    out.append(values).append(']');
  }

  private static void partition(StringBuilder out, InternalRow row, StructType schema) {
    out.append('[');
    for (int c = 0; c < schema.length(); c++) {
      if (c > 0) out.append(',');
      Json.value(out, row.get(c, schema.fields()[c].dataType()));
    }
    out.append(']');
  }
}
