package secateur.core;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/** What the original index lists, less the files that cannot contribute. Files are matched by path, length and time. */
public final class PrunedFileIndex implements FileIndex {
  final FileIndex inner;
  final Listing listing;
  final BitSet skip;
  final boolean numbered; // every file is a partition, with its number in a hidden column
  private final long size;

  PrunedFileIndex(FileIndex inner, Listing listing, BitSet skip, boolean numbered) {
    this.numbered = numbered;
    this.inner = inner;
    this.listing = listing;
    this.skip = skip;
    long skipped = 0;
    for (int i = skip.nextSetBit(0); i >= 0; i = skip.nextSetBit(i + 1)) skipped += listing.files[i].getLen();
    this.size = listing.bytes - skipped;
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    List all = Catalyst.list(inner.listFiles(partitionFilters, dataFilters));
    List out = new ArrayList();
    for (int p = 0; p < all.size(); p++) {
      PartitionDirectory partition = (PartitionDirectory) all.get(p);
      List kept = new ArrayList();
      scala.collection.Iterator it = partition.files().iterator();
      while (it.hasNext()) {
        FileStatusWithMetadata file = (FileStatusWithMetadata) it.next();
        int number = listing.number(file.fileStatus());
        if (number >= 0 && skip.get(number)) continue;
        if (numbered) out.add(FileOrdinalColumn.partition(partition.values(), inner.partitionSchema(), file, number));
        else kept.add(file);
      }
      if (!kept.isEmpty()) out.add(partition.copy(partition.values(), Catalyst.seq(kept)));
    }
    return Catalyst.seq(out);
  }

  public String[] inputFiles() {
    List out = new ArrayList();
    for (int i = 0; i < listing.files.length; i++) {
      if (!skip.get(i)) out.add(SparkPath.fromFileStatus(listing.files[i]).urlEncoded());
    }
    return (String[]) out.toArray(new String[out.size()]);
  }

  public Seq rootPaths() {
    return inner.rootPaths();
  }

  public void refresh() {
    inner.refresh();
  }

  public long sizeInBytes() {
    return size;
  }

  public StructType partitionSchema() {
    return numbered ? FileOrdinalColumn.with(inner.partitionSchema(), Metadata.empty()) : inner.partitionSchema();
  }

  public Option metadataOpsTimeNs() {
    return inner.metadataOpsTimeNs();
  }

  public boolean equals(Object other) {
    if (!(other instanceof PrunedFileIndex)) return false;
    PrunedFileIndex that = (PrunedFileIndex) other;
    return listing.fingerprint.equals(that.listing.fingerprint) && skip.equals(that.skip) && numbered == that.numbered
        && inner.equals(that.inner);
  }

  public int hashCode() {
    return listing.fingerprint.hashCode() * 31 + skip.hashCode();
  }

  public String toString() {
    return "PrunedFileIndex(" + (listing.files.length - skip.cardinality()) + " of " + listing.files.length + " files)";
  }
}
