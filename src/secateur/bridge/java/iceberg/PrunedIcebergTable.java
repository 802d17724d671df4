package secateur.iceberg;

import java.util.BitSet;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import secateur.core.Bridge;
import secateur.core.Scan;

/**
 * Iceberg's table for one scan that leaves files out. Spark pushes filters, columns, limits and aggregates into Iceberg's own
 * builder, as always; only the scan that comes out is replaced.
 */
public final class PrunedIcebergTable implements SupportsRead {
  final SparkTable inner;
  private final Scan scan; // that it was made for
  private final IcebergFiles files;
  private final BitSet skip;

  PrunedIcebergTable(Scan scan, SparkTable inner, IcebergFiles files, BitSet skip) {
    this.scan = scan;
    this.inner = inner;
    this.files = files;
    this.skip = skip;
  }

  public String name() {
    return inner.name();
  }

  public StructType schema() {
    return inner.schema();
  }

  public Transform[] partitioning() {
    return inner.partitioning();
  }

  public Map properties() {
    return inner.properties();
  }

  public Set capabilities() {
    return inner.capabilities();
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new Builder(scan, inner.newScanBuilder(options), files, skip);
  }

  public boolean equals(Object other) {
    if (!(other instanceof PrunedIcebergTable)) return false;
    PrunedIcebergTable that = (PrunedIcebergTable) other;
    return inner.equals(that.inner) && files.fingerprint.equals(that.files.fingerprint) && skip.equals(that.skip);
  }

  public int hashCode() {
    return inner.hashCode() * 31 + skip.hashCode();
  }

  public String toString() {
    return inner.toString();
  }

  /** Iceberg's builder with another end. */
  public static final class Builder
      implements SupportsPushDownV2Filters, SupportsPushDownRequiredColumns, SupportsPushDownLimit, SupportsPushDownAggregates {
    private final Scan decided;
    private final ScanBuilder inner;
    private final IcebergFiles files;
    private final BitSet skip;

    Builder(Scan decided, ScanBuilder inner, IcebergFiles files, BitSet skip) {
      this.decided = decided;
      this.inner = inner;
      this.files = files;
      this.skip = skip;
    }

    public Predicate[] pushPredicates(Predicate[] predicates) {
      return ((SupportsPushDownV2Filters) inner).pushPredicates(predicates);
    }

    public Predicate[] pushedPredicates() {
      return ((SupportsPushDownV2Filters) inner).pushedPredicates();
    }

    public void pruneColumns(StructType required) {
      ((SupportsPushDownRequiredColumns) inner).pruneColumns(required);
    }

    public boolean pushLimit(int limit) {
      return ((SupportsPushDownLimit) inner).pushLimit(limit);
    }

    public boolean isPartiallyPushed() {
      return ((SupportsPushDownLimit) inner).isPartiallyPushed();
    }

    public boolean supportCompletePushDown(Aggregation aggregation) {
      return ((SupportsPushDownAggregates) inner).supportCompletePushDown(aggregation);
    }

    public boolean pushAggregation(Aggregation aggregation) {
      return ((SupportsPushDownAggregates) inner).pushAggregation(aggregation);
    }

    public org.apache.spark.sql.connector.read.Scan build() {
      org.apache.spark.sql.connector.read.Scan scan = inner.build();
      // An aggregate that Iceberg answers from its metadata has another class, and nothing to leave out.
      if (!scan.getClass().getName().equals("org.apache.iceberg.spark.source.SparkBatchQueryScan")) return scan;
      try {
        return PrunedIcebergScan.planned(scan, files, skip);
      } catch (Throwable problem) {
        // Iceberg's own scan gives the same answer, and the same error if there is one.
        Bridge bridge = Bridge.instance;
        if (bridge != null) bridge.problem(bridge.planning(), decided, "an Iceberg scan was not pruned after all", problem);
        return scan;
      }
    }
  }
}
