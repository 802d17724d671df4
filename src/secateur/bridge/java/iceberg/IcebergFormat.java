package secateur.iceberg;

import java.util.BitSet;
import java.util.Iterator;
import java.util.List;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.PartitionField;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import secateur.core.CaseClass;
import secateur.core.FileAccess;
import secateur.core.Format;
import secateur.core.QueryState;
import secateur.core.RuntimePredicate;
import secateur.core.Scan;
import secateur.core.Units;

/** Tables of Apache Iceberg, before Iceberg plans them, or, inside subqueries, after. */
public final class IcebergFormat extends Format {
  private static final String BATCH = "org.apache.iceberg.spark.source.SparkBatchQueryScan";
  // Options that make the scan something else than the files of one snapshot.
  private static final String[] OTHER_SCANS = {
      "start-snapshot-id", "end-snapshot-id", "start-timestamp", "end-timestamp", "scan-task-set-id", "stream-from-timestamp"};

  public IcebergFormat() {}

  public Scan scan(LogicalPlan leaf, boolean late, QueryState state, SQLConf conf) throws Exception {
    DataSourceV2ScanRelation planned = leaf instanceof DataSourceV2ScanRelation ? (DataSourceV2ScanRelation) leaf : null;
    if (planned == null && !(leaf instanceof DataSourceV2Relation)) return null;
    DataSourceV2Relation relation = planned == null ? (DataSourceV2Relation) leaf : planned.relation();
    org.apache.spark.sql.connector.catalog.Table table = relation.table();
    if (table instanceof PrunedIcebergTable) {
      IcebergScan scan = new IcebergScan(leaf, relation, ((PrunedIcebergTable) table).inner);
      scan.decided = true;
      if (late) scan.reopen(planned, state);
      return scan;
    }
    if (!(table instanceof SparkTable)) return null;
    IcebergScan scan = new IcebergScan(leaf, relation, (SparkTable) table);
    scan.decided = planned != null && planned.scan() instanceof PrunedIcebergScan || state.has(scan.use());
    if (scan.decided) {
      if (late) scan.reopen(planned, state);
      return scan;
    }
    scan.declined = declined((SparkTable) table, relation.options(), planned);
    if (scan.declined.isEmpty()) {
      scan.files = scan.snapshot = IcebergFiles.of((SparkTable) table);
      FileIO io = ((SparkTable) table).table().io();
      FileAccess.remember(scan.files.fingerprint, io instanceof HadoopFileIO ? ((HadoopFileIO) io).getConf() : null);
    }
    if (scan.declined.isEmpty() && planned != null) scan.skipped = PrunedIcebergScan.unread(planned.scan(), scan.snapshot);
    return scan;
  }

  /** What is taken by reflection from every scan. */
  public void probe() throws Exception {
    CaseClass.check(DataSourceV2Relation.class, "table");
    CaseClass.check(DataSourceV2ScanRelation.class, "scan");
    Reflect.field(SparkTable.class, "schema");
    Class batch = Class.forName(BATCH, true, SparkTable.class.getClassLoader());
    String[] fields = {"tasks", "runtimeFilters", "schema", "scan"};
    for (int i = 0; i < fields.length; i++) Reflect.field(batch, fields[i]);
    String[] methods = {"filter", "tasks", "specs", "caseSensitive"};
    for (int i = 0; i < methods.length; i++) Reflect.method(batch, methods[i], 0);
    Reflect.method(batch, "resetTasks", 1);
  }

  private static String declined(SparkTable table, CaseInsensitiveStringMap options, DataSourceV2ScanRelation planned) throws Exception {
    if (!(table.table() instanceof BaseTable)) return "it is a metadata table";
    // The catalog may hide rows by leaving files out, or lend access to data and not to manifests.
    if (table.table().getClass().getSimpleName().equals("RESTTable")) return "its catalog plans the scan";
    if (table.snapshotId() == null) return "it has no snapshot yet";
    for (int i = 0; i < OTHER_SCANS.length; i++) {
      if (options.containsKey(OTHER_SCANS[i])) return "it is read with the option " + OTHER_SCANS[i];
    }
    String promoted = promoted(table);
    if (promoted != null) return "its partition column " + promoted + " has changed its type since this snapshot";
    if (planned == null || planned.scan().getClass().getName().equals(BATCH)) return "";
    if (planned.scan().getClass().getSimpleName().equals("SparkLocalScan")) return "Iceberg answers it from its metadata";
    return "Iceberg reads it by " + planned.scan().getClass().getSimpleName() + ", which secateur does not know";
  }

  static boolean hasVariant(Schema schema) {
    Iterator fields = TypeUtil.indexById(schema.asStruct()).values().iterator();
    while (fields.hasNext()) if (((Types.NestedField) fields.next()).type().isVariantType()) return true;
    return false;
  }

  /** Partitions are read by the types of today; a scan of an old snapshot compares them by those of then. */
  private static String promoted(SparkTable table) throws Exception {
    Schema then = (Schema) Reflect.get(table, "schema");
    Schema now = table.table().schema();
    if (then.schemaId() == now.schemaId()) return null;
    Iterator specs = table.table().specs().values().iterator();
    while (specs.hasNext()) {
      List fields = ((PartitionSpec) specs.next()).fields();
      for (int i = 0; i < fields.size(); i++) {
        int source = ((PartitionField) fields.get(i)).sourceId();
        if (then.findType(source) == null || now.findType(source) == null) continue;
        if (!then.findType(source).equals(now.findType(source))) return then.findColumnName(source);
      }
    }
    return null;
  }

  /** A scan of one snapshot. */
  static final class IcebergScan extends Scan {
    private final DataSourceV2Relation relation;
    private final SparkTable source;
    IcebergFiles snapshot;

    IcebergScan(LogicalPlan node, DataSourceV2Relation relation, SparkTable source) {
      super(node);
      this.relation = relation;
      this.source = source;
      this.table = source.name();
      this.format = "iceberg";
    }

    void reopen(DataSourceV2ScanRelation planned, QueryState state) throws Exception {
      if (planned == null || !(planned.scan() instanceof PrunedIcebergScan) || !state.reopens(use())) return;
      PrunedIcebergScan pruned = (PrunedIcebergScan) planned.scan();
      files = snapshot = pruned.files;
      skipped = PrunedIcebergScan.unread(pruned, pruned.files);
    }

    /** Before Iceberg plans: a table that makes pruned scans. Afterwards: a copy of the scan with fewer tasks. */
    public LogicalPlan without(BitSet skip) throws Exception {
      if (node instanceof DataSourceV2Relation) {
        return (LogicalPlan) CaseClass.with(node, "table", new PrunedIcebergTable(this, source, snapshot, skip));
      }
      Object pruned = PrunedIcebergScan.cut(((DataSourceV2ScanRelation) node).scan(), snapshot, skip);
      return (LogicalPlan) CaseClass.with(node, "scan", pruned);
    }

    public LogicalPlan waiting(BitSet skip, RuntimePredicate predicate, LogicalPlan values) throws Exception {
      if (!(node instanceof DataSourceV2ScanRelation) || !SQLConf.get().dynamicPartitionPruningEnabled()) return null;
      PrunedIcebergScan scan = PrunedIcebergScan.cut(((DataSourceV2ScanRelation) node).scan(), snapshot, skip).waiting(predicate);
      return Units.runtime().filteredAtRuntime((LogicalPlan) CaseClass.with(node, "scan", scan), values);
    }

    /** From the files that are known, so that Iceberg does not read its manifests again. */
    public LogicalPlan asListed() throws Exception {
      return node instanceof DataSourceV2Relation ? without(new BitSet()) : null;
    }

    public String kind(Attribute attribute) {
      return attribute.metadata().contains("__metadata_col") || !has(source.schema(), attribute.name()) ? "hidden" : "data";
    }

    /** Iceberg cuts a scan's output to the columns that are read; those of the relation stay. */
    public long use() {
      return relation.output().isEmpty() ? -1 : ((Attribute) relation.output().apply(0)).exprId().id();
    }
  }
}
