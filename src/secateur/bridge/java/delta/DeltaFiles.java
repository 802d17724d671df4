package secateur.delta;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.lang.ref.SoftReference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.types.StructType;
import secateur.core.ArrowBuffers;
import secateur.core.FileSet;
import secateur.core.Json;

/** The files of one version of a Delta table, read from its log, or made from those of an earlier version and the commits since. */
final class DeltaFiles extends FileSet {
  private static final Cache TABLES = CacheBuilder.newBuilder().maximumSize(64).softValues().build();
  private static final int VERSIONS = 4; // kept of one table
  private static final int COMMITS = 200; // read one by one; if there are more, all is read anew

  final long version;
  final AddFile[] files; // without their statistics, which Python holds
  private final TahoeFileIndex index; // made with this version's schema, to cast partition values
  private final String family;
  final long committed; // when the last commit was written
  private final String columns;
  private final Snapshot snapshot;
  private volatile byte[][] unread; // the statistics, until they have been written once
  private volatile SoftReference stats;

  private DeltaFiles(String family, Snapshot snapshot, TahoeFileIndex index, DeltaLogReader read) {
    this.family = family;
    this.snapshot = snapshot;
    this.version = snapshot.version();
    this.committed = snapshot.logSegment().lastCommitFileModificationTimestamp();
    this.files = (AddFile[]) read.files.toArray(new AddFile[read.files.size()]);
    this.unread = (byte[][]) read.stats.toArray(new byte[read.stats.size()][]);
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

  private static DeltaFiles whole(String family, Snapshot snapshot, TahoeFileIndex index) throws Exception {
    return new DeltaFiles(family, snapshot, index, DeltaLogReader.whole(snapshot));
  }

  /** From an earlier version and the commits since; null if they cannot be had. */
  private static DeltaFiles later(DeltaFiles base, Snapshot snapshot, TahoeFileIndex index) throws Exception {
    if (snapshot.version() - base.version > COMMITS) return null;
    DeltaLogReader reader = DeltaLogReader.since(base, snapshot);
    if (reader == null) return null;
    DeltaFiles fresh = new DeltaFiles(base.family, snapshot, index, reader);
    return fresh.addsUp() ? fresh : null;
  }

  private static final byte[] GONE = new byte[0]; // statistics that Python has and memory was needed for

  /** The statistics of a file as the log has them. */
  byte[] text(int at) {
    byte[][] known = texts();
    return known == null ? GONE : known[at];
  }

  private static String columns(Snapshot snapshot) {
    StringBuilder out = new StringBuilder("\"by_id\":").append(byId(snapshot)).append(",\"cols\":[");
    DeltaStats.describe(snapshot.metadata().schema(), "", "", out);
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
  public long patience() {
    return count / 50;
  }

  public void write(StringBuilder out) throws Exception {
    write(out, new HashSet());
  }

  public void write(StringBuilder out, Set have) throws Exception {
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
    ArrowBuffers bulk = new ArrowBuffers();
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

  private void writeFiles(ArrowBuffers bulk, int from, StringBuilder out) throws Exception {
    byte[][] texts = texts();
    boolean lost = texts == null;
    for (int i = from; !lost && i < count; i++) lost = texts[i] == GONE;
    if (lost) {
      DeltaFiles again = whole(family, snapshot, index); // the statistics were given up for want of memory
      Map byKey = new HashMap();
      for (int i = 0; i < again.count; i++) byKey.put(DeltaLogReader.key(again.files[i]), again.unread[i]);
      texts = new byte[count][];
      for (int i = from; i < count; i++) texts[i] = (byte[]) byKey.get(DeltaLogReader.key(files[i]));
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
    bare(bulk, said, from);
    out.append(values).append(']');
  }

  /** Where the files are of which the log has no statistics, and when they were written: their footers have some. */
  private void bare(ArrowBuffers bulk, DeltaStats said, int from) throws Exception {
    if (byId(snapshot)) return; // columns of files may have any names
    String inside = snapshot.deltaLog().dataPath() + "/"; // what is collected is kept with the table
    String[] paths = null;
    long[] times = null;
    for (int i = 0; i < count - from; i++) {
      if (said.has(i)) continue;
      String path = index.absolutePath(files[from + i].path()).toString();
      if (!path.startsWith(inside)) continue;
      if (paths == null) {
        paths = new String[count - from];
        times = new long[count - from];
      }
      paths[i] = path;
      times[i] = files[from + i].modificationTime();
    }
    if (paths == null) return;
    bulk.strings("path", paths);
    bulk.longs("time", times, null);
  }

  private static boolean byId(Snapshot snapshot) {
    return snapshot.metadata().columnMappingMode().name().equals("id");
  }

  public Map paths() {
    return new HashMap();
  }

  /** Where all files are, and when they were written. */
  public void write(StringBuilder out, Map part) throws Exception {
    String[] paths = new String[count];
    long[] times = new long[count];
    String inside = snapshot.deltaLog().dataPath() + "/";
    for (int i = 0; i < count; i++) {
      String path = files[i].path();
      // Others are absolute, or have characters that are escaped.
      boolean plain = path.indexOf('%') < 0 && path.indexOf(':') < 0 && path.charAt(0) != '/';
      paths[i] = plain ? inside + path : index.absolutePath(path).toString();
      times[i] = files[i].modificationTime();
    }
    Json.field(out.append('{'), "fp", fingerprint);
    ArrowBuffers bulk = new ArrowBuffers();
    bulk.strings("path", paths);
    bulk.longs("time", times, null);
    bulk.write(out.append(",\"bulk\":"));
    out.append('}');
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
