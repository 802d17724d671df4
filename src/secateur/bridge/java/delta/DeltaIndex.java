package secateur.delta;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.delta.files.TahoeFileIndexWithSnapshotDescriptor;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;
import secateur.core.Catalyst;
import secateur.core.FileOrdinalColumn;

/**
 * The files of one version of a table less those that cannot contribute, with their deletion vectors and row ids. It must be one of
 * Delta's own kind of index, or deletion vectors are not applied, and it must evaluate partition filters, since Spark does not do
 * so again after the scan.
 */
public final class DeltaIndex extends TahoeFileIndexWithSnapshotDescriptor {
  final TahoeFileIndex inner;
  final Snapshot version;
  final DeltaFiles all;
  final BitSet skip;
  final boolean prepared;
  final boolean numbered; // every file is a partition, with its number in a hidden column
  private final long size;

  DeltaIndex(TahoeFileIndex inner, Snapshot snapshot, DeltaFiles all, BitSet skip, boolean prepared, boolean numbered) {
    super(inner.spark(), inner.deltaLog(), inner.path(), snapshot);
    this.inner = inner;
    this.version = snapshot;
    this.all = all;
    this.skip = skip;
    this.prepared = prepared;
    this.numbered = numbered;
    long skipped = 0;
    for (int i = skip.nextSetBit(0); i >= 0; i = skip.nextSetBit(i + 1)) skipped += all.files[i].size();
    this.size = all.bytes - skipped;
  }

  public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
    if (prepared) return withoutSkipped(inner.matchingFiles(partitionFilters, dataFilters));
    List predicates = new ArrayList();
    for (int i = 0; i < partitionFilters.size(); i++) {
      Expression bound = (Expression) ((Expression) partitionFilters.apply(i)).transform(new Binding(partitionSchema()));
      predicates.add(Predicate$.MODULE$.createInterpreted(bound));
    }
    List kept = new ArrayList();
    Map verdicts = new HashMap(); // partition values -> Boolean
    for (int i = skip.nextClearBit(0); i < all.count; i = skip.nextClearBit(i + 1)) {
      if (predicates.isEmpty() || matches(all.files[i], predicates, verdicts)) kept.add(all.files[i]);
    }
    return Catalyst.seq(kept);
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    if (!numbered) return super.listFiles(partitionFilters, dataFilters);
    Map numbers = new HashMap();
    for (int i = skip.nextClearBit(0); i < all.count; i = skip.nextClearBit(i + 1)) {
      numbers.put(DeltaLogReader.key(all.files[i]), Integer.valueOf(i));
    }
    List out = new ArrayList();
    scala.collection.Iterator it = matchingFiles(partitionFilters, dataFilters).iterator();
    while (it.hasNext()) {
      AddFile file = (AddFile) it.next();
      Integer number = (Integer) numbers.get(DeltaLogReader.key(file));
      InternalRow values = getPartitionValuesRow(file.partitionValues());
      out.add(FileOrdinalColumn.partition(values, partitionSchema(), fileStatusWithMetadataFromAddFile(file), number == null ? -1 : number.intValue()));
    }
    return Catalyst.seq(out);
  }

  private boolean matches(AddFile file, List predicates, Map verdicts) {
    Boolean known = (Boolean) verdicts.get(file.partitionValues());
    if (known == null) {
      InternalRow row = getPartitionValuesRow(file.partitionValues());
      boolean verdict = true;
      for (int k = 0; verdict && k < predicates.size(); k++) verdict = ((BasePredicate) predicates.get(k)).eval(row);
      known = Boolean.valueOf(verdict);
      verdicts.put(file.partitionValues(), known);
    }
    return known.booleanValue();
  }

  private Seq withoutSkipped(Seq files) {
    Set skipped = new HashSet();
    for (int i = skip.nextSetBit(0); i >= 0; i = skip.nextSetBit(i + 1)) skipped.add(DeltaLogReader.key(all.files[i]));
    List kept = new ArrayList();
    scala.collection.Iterator it = files.iterator();
    while (it.hasNext()) {
      AddFile file = (AddFile) it.next();
      if (!skipped.contains(DeltaLogReader.key(file))) kept.add(file);
    }
    return Catalyst.seq(kept);
  }

  public String[] inputFiles() {
    String[] out = new String[all.count - skip.cardinality()];
    int at = 0;
    for (int i = skip.nextClearBit(0); i < all.count; i = skip.nextClearBit(i + 1)) out[at++] = absolutePath(all.files[i].path()).toString();
    return out;
  }

  public void refresh() {}

  public long sizeInBytes() {
    return size;
  }

  public boolean equals(Object other) {
    if (!(other instanceof DeltaIndex)) return false;
    DeltaIndex that = (DeltaIndex) other;
    return all.fingerprint.equals(that.all.fingerprint) && skip.equals(that.skip) && prepared == that.prepared && numbered == that.numbered
        && (!prepared || inner.equals(that.inner));
  }

  public int hashCode() {
    return all.fingerprint.hashCode() * 31 + skip.hashCode();
  }

  public String toString() {
    return "Delta[version=" + all.version + ", " + path() + ", " + (all.count - skip.cardinality()) + " of " + all.count + " files]";
  }

  /** Partition columns by their place in the row of partition values. */
  static final class Binding extends AbstractPartialFunction {
    private final StructType schema;

    Binding(StructType schema) {
      this.schema = schema;
    }

    public boolean isDefinedAt(Object e) {
      return e instanceof AttributeReference;
    }

    public Object applyOrElse(Object e, scala.Function1 otherwise) {
      if (!isDefinedAt(e)) return otherwise.apply(e);
      String name = ((AttributeReference) e).name();
      for (int i = 0; i < schema.length(); i++) {
        if (schema.fields()[i].name().equalsIgnoreCase(name)) return new BoundReference(i, schema.fields()[i].dataType(), true);
      }
      throw new IllegalStateException(name + " is no partition column");
    }
  }
}
