package secateur.core;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.attribute.BasicFileAttributes;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** The files of one FileIndex: path, length, modification time and partition values. */
final class Listing extends FileSet {
  private static final Cache KNOWN = CacheBuilder.newBuilder().maximumSize(256).softValues().build();

  final FileStatus[] files;
  private final int[] partitionOf;
  private final List partitions; // of PartitionDirectory
  private final StructType schema;
  private final List roots; // of String: where the table lives, and with it what is stored about it
  private volatile Map ordinals;
  private volatile java.nio.file.Path[] local;

  private Listing(StructType schema, List roots, List partitions) throws Exception {
    this.schema = schema;
    this.roots = roots;
    this.partitions = partitions;
    List statuses = new ArrayList();
    List owners = new ArrayList();
    for (int p = 0; p < partitions.size(); p++) {
      List members = Catalyst.list(((PartitionDirectory) partitions.get(p)).files());
      for (int i = 0; i < members.size(); i++) {
        statuses.add(((FileStatusWithMetadata) members.get(i)).fileStatus());
        owners.add(Integer.valueOf(p));
      }
    }
    files = (FileStatus[]) statuses.toArray(new FileStatus[statuses.size()]);
    count = files.length;
    partitionOf = new int[files.length];
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    StringBuilder line = new StringBuilder();
    partitionColumns(line);
    roots(line);
    digest.update(line.toString().getBytes(StandardCharsets.US_ASCII));
    long total = 0;
    int before = -1;
    for (int i = 0; i < files.length; i++) {
      partitionOf[i] = ((Integer) owners.get(i)).intValue();
      total += files[i].getLen();
      line.setLength(0);
      if (partitionOf[i] != before) partitionValues(line, partitionOf[i]);
      before = partitionOf[i];
      line.append('\n').append(files[i].getPath()).append('\n').append(files[i].getLen()).append(' ');
      digest.update(line.append(files[i].getModificationTime()).toString().getBytes(StandardCharsets.UTF_8));
    }
    bytes = total;
    StringBuilder hex = new StringBuilder();
    byte[] sum = digest.digest();
    for (int i = 0; i < 16; i++) hex.append(Character.forDigit(sum[i] >> 4 & 15, 16)).append(Character.forDigit(sum[i] & 15, 16));
    fingerprint = hex.toString();
  }

  /** The listing of an index; one made before serves again while every file is as it was. */
  static Listing of(FileIndex index, List roots) throws Exception {
    List partitions = Catalyst.list(index.listFiles(Catalyst.none(), Catalyst.none()));
    Object key = Arrays.asList(new Object[] {index.rootPaths(), index.partitionSchema(), roots});
    Listing known = (Listing) KNOWN.getIfPresent(key);
    if (known != null && known.describes(partitions)) return known;
    Listing fresh = new Listing(index.partitionSchema(), roots, partitions);
    KNOWN.put(key, fresh);
    return fresh;
  }

  private boolean describes(List now) {
    if (now.size() != partitions.size()) return false;
    int at = 0;
    for (int p = 0; p < now.size(); p++) {
      if (!((PartitionDirectory) now.get(p)).values().equals(((PartitionDirectory) partitions.get(p)).values())) return false;
      scala.collection.Iterator it = ((PartitionDirectory) now.get(p)).files().iterator();
      while (it.hasNext()) {
        FileStatus status = ((FileStatusWithMetadata) it.next()).fileStatus();
        if (at >= files.length || partitionOf[at] != p || !same(files[at], status)) return false;
        files[at++] = status; // the very same object next time, which is quicker to see
      }
    }
    return at == files.length;
  }

  private static boolean same(FileStatus a, FileStatus b) {
    return a == b || a.getLen() == b.getLen() && a.getModificationTime() == b.getModificationTime() && a.getPath().equals(b.getPath());
  }

  /** The file's ordinal, -1 if it is not as it was listed: then it is never skipped. */
  int number(FileStatus status) {
    Integer at = (Integer) places().get(status.getPath());
    return at != null && same(files[at.intValue()], status) ? at.intValue() : -1;
  }

  private Map places() {
    Map places = ordinals;
    if (places == null) {
      places = new HashMap(files.length * 2);
      for (int i = 0; i < files.length; i++) places.put(files[i].getPath(), Integer.valueOf(i));
      ordinals = places;
    }
    return places;
  }

  public int keepChanged(BitSet skip, BitSet seen) {
    int changed = recheck(skip, seen);
    keepShared(skip);
    return changed;
  }

  /**
   * Takes files off `skip` that are listed more than once and not skipped everywhere: two partitions of a catalog table may have
   * one location, and `number` finds a file by its path alone.
   */
  private void keepShared(BitSet skip) {
    if (places().size() == files.length) return;
    Set kept = new HashSet();
    for (int i = skip.nextClearBit(0); i < files.length; i = skip.nextClearBit(i + 1)) kept.add(files[i].getPath());
    for (int i = skip.nextSetBit(0); i >= 0; i = skip.nextSetBit(i + 1)) if (kept.contains(files[i].getPath())) skip.clear(i);
  }

  /**
   * Takes files off `skip` that are no longer as they were listed. Spark would open the new file under the old name, so
   * statistics of the old one must not hide it. Only local files are rewritten in place as a matter of course and are cheap
   * to ask about.
   */
  private int recheck(BitSet skip, BitSet seen) {
    int changed = 0;
    java.nio.file.Path[] local = local();
    for (int i = skip.nextSetBit(0); i >= 0; i = skip.nextSetBit(i + 1)) {
      if (seen.get(i) || local[i] == null) continue;
      try {
        BasicFileAttributes now = Files.readAttributes(local[i], BasicFileAttributes.class);
        if (now.size() == files[i].getLen() && now.lastModifiedTime().toMillis() == files[i].getModificationTime()) {
          seen.set(i);
          continue;
        }
      } catch (IOException gone) {
        // Spark fails on a file that is gone, so it must see it
      }
      skip.clear(i);
      changed++;
    }
    return changed;
  }

  /** Where the files are on this machine, null for those that are elsewhere. */
  private java.nio.file.Path[] local() {
    java.nio.file.Path[] found = local;
    if (found == null) {
      found = new java.nio.file.Path[files.length];
      for (int i = 0; i < files.length; i++) {
        java.net.URI uri = files[i].getPath().toUri();
        if (uri.getScheme() == null || uri.getScheme().equals("file")) found[i] = Paths.get(uri.getPath());
      }
      local = found;
    }
    return found;
  }

  private void partitionColumns(StringBuilder out) {
    out.append("\"pcols\":[");
    for (int c = 0; c < schema.length(); c++) {
      if (c > 0) out.append(',');
      out.append('[');
      Json.string(out, schema.fields()[c].name());
      out.append(',');
      Json.string(out, schema.fields()[c].dataType().catalogString());
      out.append(']');
    }
    out.append(']');
  }

  private void partitionValues(StringBuilder out, int p) {
    InternalRow row = ((PartitionDirectory) partitions.get(p)).values();
    out.append('[');
    for (int c = 0; c < schema.length(); c++) {
      if (c > 0) out.append(',');
      Json.value(out, row.get(c, schema.fields()[c].dataType()));
    }
    out.append(']');
  }

  private void roots(StringBuilder out) {
    out.append("\"roots\":[");
    for (int i = 0; i < roots.size(); i++) {
      if (i > 0) out.append(',');
      Json.string(out, (String) roots.get(i));
    }
    out.append(']');
  }

  /** The form that Listing.from_wire reads: each directory once, then arrays over the files. */
  public void write(StringBuilder out) {
    Map places = new HashMap();
    StringBuilder dirs = new StringBuilder("\"dirs\":[");
    StringBuilder values = new StringBuilder("\"pvals\":[");
    StringBuilder dir = new StringBuilder("\"dir\":[");
    StringBuilder names = new StringBuilder("\"names\":[");
    StringBuilder lengths = new StringBuilder("\"len\":[");
    StringBuilder times = new StringBuilder("\"mtime\":[");
    for (int i = 0; i < files.length; i++) {
      String path = files[i].getPath().toString();
      int slash = path.lastIndexOf('/');
      String key = partitionOf[i] + " " + path.substring(0, slash);
      Integer place = (Integer) places.get(key);
      if (place == null) {
        place = Integer.valueOf(places.size());
        places.put(key, place);
        String comma = place.intValue() > 0 ? "," : "";
        Json.string(dirs.append(comma), path.substring(0, slash));
        partitionValues(values.append(comma), partitionOf[i]);
      }
      String comma = i > 0 ? "," : "";
      dir.append(comma).append(place);
      Json.string(names.append(comma), path.substring(slash + 1));
      lengths.append(comma).append(files[i].getLen());
      times.append(comma).append(files[i].getModificationTime());
    }
    out.append("{\"kind\":\"files\",");
    Json.field(out, "fp", fingerprint);
    roots(out.append(','));
    partitionColumns(out.append(','));
    out.append(',').append(dirs).append("],").append(values).append("],").append(dir).append("],").append(names);
    out.append("],").append(lengths).append("],").append(times).append("]}");
  }
}
