package secateur.delta;

import java.io.FileNotFoundException;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.Action$;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.DeletionVectorDescriptor;
import org.apache.spark.sql.delta.actions.RemoveFile;
import org.apache.spark.sql.delta.util.FileNames$;
import scala.Function1;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Map$;

/**
 * Reads the log of a table: what its checkpoint lists and its commits add and remove. Delta makes the plan that reads the log, in
 * whatever form it is; its rows are taken here one by one, on this thread: as a Spark job they would be packed, sent and unpacked, which
 * takes longer than to read them.
 */
final class DeltaLogReader {
  private static final int PATH = 1;
  private static final int VECTOR = 8; // the first of six columns
  private static final int REMOVED = 14;
  private static final int REMOVED_VECTOR = 15;
  private static final int OFTEN = 1023; // rows between looks at whether the query was interrupted
  private static final Constructor ADD = widest(AddFile.class);

  final List files = new ArrayList(); // of AddFile, without their statistics
  final List stats = new ArrayList(); // of byte[], null if the log has none
  private final Snapshot snapshot;
  private final Function1 canonical;
  private final Map latest = new LinkedHashMap(); // key -> the AddFile that the last commits added, null if they removed it
  private final Map latestStats = new HashMap();

  private DeltaLogReader(Snapshot snapshot) {
    this.snapshot = snapshot;
    this.canonical = snapshot.deltaLog().getCanonicalPathFunction(false);
  }

  /** All: the rows of the checkpoint, then what the commits after it added and removed. */
  static DeltaLogReader whole(Snapshot snapshot) throws Exception {
    DeltaLogReader reader = new DeltaLogReader(snapshot);
    reader.readAll(snapshot.checkpointProvider().version());
    return reader;
  }

  /** What the commits since an earlier version made of its files; null if they cannot be had. */
  static DeltaLogReader since(DeltaFiles base, Snapshot snapshot) throws Exception {
    DeltaLogReader reader = new DeltaLogReader(snapshot);
    if (!reader.readCommits(base.version, base.committed)) return null;
    for (int i = 0; i < base.files.length; i++) {
      if (reader.latest.containsKey(key(base.files[i]))) continue;
      reader.files.add(base.files[i]);
      reader.stats.add(base.text(i));
    }
    reader.append();
    return reader;
  }

  private void readAll(long checkpoint) throws Exception {
    boolean partitioned = snapshot.metadata().partitionSchema().length() > 0;
    Dataset rows = (Dataset) snapshot.loadActions()
        .where("add.path IS NOT NULL OR (remove.path IS NOT NULL AND version > " + checkpoint + ")")
        .selectExpr(new String[] {
            "version", "add.path", partitioned ? "add.partitionValues" : "NULL", "add.size", "add.modificationTime", "add_stats_to_use",
            "add.baseRowId", "add.defaultRowCommitVersion",
            "add.deletionVector.storageType", "add.deletionVector.pathOrInlineDv", "add.deletionVector.offset",
            "add.deletionVector.sizeInBytes", "add.deletionVector.cardinality", "add.deletionVector.maxRowIndex",
            "remove.path",
            "remove.deletionVector.storageType", "remove.deletionVector.pathOrInlineDv", "remove.deletionVector.offset",
            "remove.deletionVector.sizeInBytes", "remove.deletionVector.cardinality", "remove.deletionVector.maxRowIndex"});
    List commits = new ArrayList();
    Map partitions = new HashMap();
    RDD all = rows.queryExecution().toRdd();
    TaskContextImpl context = TaskContext$.MODULE$.empty();
    try {
      Partition[] parts = all.partitions();
      int n = 0;
      for (int p = 0; p < parts.length; p++) {
        scala.collection.Iterator it = all.iterator(parts[p], context);
        while (it.hasNext()) {
          if ((++n & OFTEN) == 0 && Thread.interrupted()) throw new InterruptedException("while the log was read");
          InternalRow row = (InternalRow) it.next();
          AddFile add = row.isNullAt(PATH) ? null : add(row, partitions);
          byte[] text = add == null || row.isNullAt(5) ? null : row.getUTF8String(5).getBytes();
          if (row.getLong(0) > checkpoint) {
            commits.add(new Change(row.getLong(0), add != null ? key(add) : removed(row), add, text));
          } else if (add != null) {
            files.add(add);
            stats.add(text);
          }
        }
      }
    } finally {
      context.markTaskCompleted(Option.empty()); // closes what is still open
    }
    Collections.sort(commits);
    for (int i = 0; i < commits.size(); i++) ((Change) commits.get(i)).apply(latest, latestStats);
    if (!latest.isEmpty()) dropReplaced();
    append();
  }

  private void dropReplaced() {
    int left = 0;
    for (int i = 0; i < files.size(); i++) {
      if (latest.containsKey(key((AddFile) files.get(i)))) continue;
      files.set(left, files.get(i));
      stats.set(left++, stats.get(i));
    }
    files.subList(left, files.size()).clear();
    stats.subList(left, stats.size()).clear();
  }

  private boolean readCommits(long after, long committed) throws Exception {
    Map named = new HashMap(); // version -> FileStatus
    scala.collection.Iterator it = snapshot.logSegment().deltas().iterator();
    while (it.hasNext()) {
      FileStatus delta = (FileStatus) it.next();
      if (FileNames$.MODULE$.isDeltaFile(delta)) named.put(Long.valueOf(FileNames$.MODULE$.deltaVersion(delta)), delta);
    }
    Configuration conf = snapshot.deltaLog().newDeltaHadoopConf();
    Path log = snapshot.deltaLog().logPath();
    try {
      FileStatus first = (FileStatus) named.get(Long.valueOf(after));
      if (first == null) first = log.getFileSystem(conf).getFileStatus(FileNames$.MODULE$.unsafeDeltaFile(log, after));
      if (first.getModificationTime() != committed) return false; // another history than the one that was read
      for (long v = after + 1; v <= snapshot.version(); v++) {
        FileStatus status = (FileStatus) named.get(Long.valueOf(v));
        Path commit = status != null ? status.getPath() : FileNames$.MODULE$.unsafeDeltaFile(log, v);
        scala.collection.Iterator lines = snapshot.deltaLog().store().read(commit, conf).iterator();
        while (lines.hasNext()) apply(v, Action$.MODULE$.fromJson((String) lines.next()));
      }
      return true;
    } catch (FileNotFoundException cleaned) {
      return false;
    }
  }

  private void apply(long version, Object action) throws Exception {
    if (action instanceof RemoveFile) {
      RemoveFile remove = (RemoveFile) action;
      new Change(version, path(canonical, remove.path()) + id(remove.deletionVector()), null, null).apply(latest, latestStats);
    } else if (action instanceof AddFile) {
      AddFile read = (AddFile) action;
      AddFile add = add(path(canonical, read.path()), read.partitionValues(), read.size(), read.modificationTime(), read.deletionVector(),
          read.baseRowId(), read.defaultRowCommitVersion());
      byte[] text = read.stats() == null ? null : read.stats().getBytes(StandardCharsets.UTF_8);
      new Change(version, key(add), add, text).apply(latest, latestStats);
    }
  }

  private void append() {
    Object[] entries = latest.entrySet().toArray();
    for (int i = 0; i < entries.length; i++) {
      Map.Entry entry = (Map.Entry) entries[i];
      if (entry.getValue() == null) continue;
      files.add(entry.getValue());
      stats.add(latestStats.get(entry.getKey()));
    }
  }

  /** What one commit did to one file. */
  static final class Change implements Comparable {
    private final long version;
    private final String key;
    private final AddFile add;
    private final byte[] stats;

    Change(long version, String key, AddFile add, byte[] stats) {
      this.version = version;
      this.key = key;
      this.add = add;
      this.stats = stats;
    }

    void apply(Map latest, Map latestStats) {
      if (add != null) latest.remove(key); // so that the order is that of the last commits
      latest.put(key, add);
      latestStats.put(key, stats);
    }

    public int compareTo(Object other) {
      return Long.compare(version, ((Change) other).version);
    }
  }

  private AddFile add(InternalRow row, Map partitions) throws Exception {
    Object values = row.isNullAt(2) ? Map$.MODULE$.empty() : partition(row.getMap(2), partitions);
    return add(path(canonical, row.getUTF8String(PATH).toString()), values, row.getLong(3), row.isNullAt(4) ? 0 : row.getLong(4),
        vector(row, VECTOR), option(row, 6), option(row, 7));
  }

  private String removed(InternalRow row) {
    return path(canonical, row.getUTF8String(REMOVED).toString()) + id(vector(row, REMOVED_VECTOR));
  }

  /** The values of a partition as Delta holds them, one map for all files that are in it. */
  private static Object partition(MapData values, Map known) {
    Map read = new LinkedHashMap();
    for (int i = 0; i < values.numElements(); i++) {
      Object value = values.valueArray().isNullAt(i) ? null : values.valueArray().getUTF8String(i).toString();
      read.put(values.keyArray().getUTF8String(i).toString(), value);
    }
    Object shared = known.get(read);
    if (shared != null) return shared;
    scala.collection.immutable.Map fresh = (scala.collection.immutable.Map) Map$.MODULE$.empty();
    Object[] entries = read.entrySet().toArray();
    for (int i = 0; i < entries.length; i++) {
      fresh = (scala.collection.immutable.Map) fresh.updated(((Map.Entry) entries[i]).getKey(), ((Map.Entry) entries[i]).getValue());
    }
    known.put(read, fresh);
    return fresh;
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

  private static Option option(InternalRow row, int at) {
    return row.isNullAt(at) ? Option.empty() : (Option) new Some(Long.valueOf(row.getLong(at)));
  }

  private static DeletionVectorDescriptor vector(InternalRow row, int at) {
    if (row.isNullAt(at)) return null;
    Option offset = row.isNullAt(at + 2) ? Option.empty() : (Option) new Some(Integer.valueOf(row.getInt(at + 2)));
    return new DeletionVectorDescriptor(row.getUTF8String(at).toString(), row.getUTF8String(at + 1).toString(), offset, row.getInt(at + 3),
        row.getLong(at + 4), option(row, at + 5));
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
}
