package secateur.delta;

import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.delta.DeltaLogFileIndex;
import org.apache.spark.sql.delta.DeltaParquetFileFormat;
import org.apache.spark.sql.delta.OptimisticTransaction$;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructType;
import secateur.core.CaseClass;
import secateur.core.Catalyst;
import secateur.core.FileAccess;
import secateur.core.FileOrdinalColumn;
import secateur.core.Format;
import secateur.core.QueryState;
import secateur.core.RuntimePredicate;
import secateur.core.Scan;
import secateur.core.Units;

/**
 * Delta tables. The early step comes before Delta's own PrepareDeltaScan and puts an index in place that knows its files, so that
 * Delta neither rebuilds the state of its log nor runs its skipping job. Like Delta, all scans of one table in one query read
 * one snapshot.
 */
public final class DeltaFormat extends Format {
  private static final String SKIPPING = "spark.databricks.delta.stats.skipping";
  private static final String GENERATED = "delta.generationExpression";

  public Scan scan(LogicalPlan leaf, boolean late, QueryState state, SQLConf conf) throws Exception {
    if (!(leaf instanceof LogicalRelation) || !(((LogicalRelation) leaf).relation() instanceof HadoopFsRelation)) return null;
    LogicalRelation relation = (LogicalRelation) leaf;
    HadoopFsRelation source = (HadoopFsRelation) relation.relation();
    FileIndex index = source.location();
    boolean ownLog = index instanceof DeltaLogFileIndex;
    if (!ownLog && !(index instanceof TahoeFileIndex)) return null;
    DeltaScan scan = new DeltaScan(relation, source, state);
    scan.format = "delta";
    // Delta reading its own log is nobody's query.
    scan.decided = ownLog || index instanceof DeltaIndex || state.has(scan.use());
    if (ownLog) return scan;
    scan.table = name(relation, (TahoeFileIndex) index);
    if (scan.decided) {
      if (late && index instanceof DeltaIndex && !((DeltaIndex) index).numbered && state.reopens(scan.use())) scan.reopen((DeltaIndex) index);
      return scan;
    }
    if (relation.isStreaming()) {
      scan.declined = "it is a streaming source";
    } else if (OptimisticTransaction$.MODULE$.getActive().isDefined()) {
      scan.declined = "a Delta transaction is under way, which keeps account of what it reads";
    } else if (index instanceof PreparedDeltaFileIndex) {
      scan.take((TahoeFileIndex) index, ((PreparedDeltaFileIndex) index).preparedScan().scannedSnapshot(), true);
    } else if (!(index instanceof TahoeLogFileIndex)) {
      scan.declined = "its files are listed by " + index.getClass().getSimpleName() + ", as for change data and maintenance";
    } else {
      log(scan, (TahoeLogFileIndex) index, late, state, conf);
    }
    return scan;
  }

  public void probe() {
    CaseClass.check(LogicalRelation.class, "relation");
    CaseClass.check(HadoopFsRelation.class, "location");
    CaseClass.check(TahoeLogFileIndex.class, "snapshotAtAnalysis");
    CaseClass.check(TahoeLogFileIndex.class, "isTimeTravelQuery");
    CaseClass.check(DeltaParquetFileFormat.class, "metadata");
    CaseClass.check(org.apache.spark.sql.delta.actions.Metadata.class, "schemaString");
  }

  /** The table as a query names it, before Delta has planned the scan. */
  private static void log(DeltaScan scan, TahoeLogFileIndex index, boolean late, QueryState state, SQLConf conf) throws Exception {
    if (state.root instanceof V2WriteCommand) {
      scan.declined = "it is read for a write that Delta plans in a transaction";
      return;
    }
    if (conf.getConfString(SKIPPING, "true").trim().equalsIgnoreCase("false")) {
      scan.declined = SKIPPING + " is false";
      return;
    }
    if (!index.partitionFilters().isEmpty()) {
      scan.declined = "it was narrowed to some partitions before";
      return;
    }
    if (!late && betterByDelta(scan.node, state)) {
      state.add(scan.use());
      scan.declined = "Delta answers COUNT, MIN and MAX of a whole table from its log";
      return;
    }
    Snapshot snapshot = pinned(index, state);
    if (!late && generatedPartitions(snapshot)) {
      // Delta derives partition filters from the generation expressions; the late step prunes what that leaves.
      scan.decided = true;
      return;
    }
    scan.take(index, snapshot, false);
  }

  /** The snapshot that this query reads: the one it names, or the latest as of the first look. */
  static Snapshot pinned(TahoeLogFileIndex index, QueryState state) throws Exception {
    if (index.isTimeTravelQuery()) return index.getSnapshot();
    Object log = index.deltaLog().compositeId();
    Snapshot known = (Snapshot) state.notes.get(log);
    if (known == null) {
      known = index.getSnapshot(); // checks that the schema still is the one of the analysis
      state.notes.put(log, known);
    } else if (!known.metadata().schemaString().equals(index.snapshotAtAnalysis().metadata().schemaString())) {
      throw new IllegalStateException("the schema of " + index.path() + " changed while the query was analyzed");
    }
    return known;
  }

  private static boolean generatedPartitions(Snapshot snapshot) {
    StructType partitions = snapshot.metadata().partitionSchema();
    for (int i = 0; i < partitions.length(); i++) if (partitions.fields()[i].metadata().contains(GENERATED)) return true;
    return false;
  }

  private static String name(LogicalRelation relation, TahoeFileIndex index) {
    if (relation.catalogTable().isDefined()) {
      return ((CatalogTable) relation.catalogTable().get()).identifier().unquotedString();
    }
    return index.path().toString();
  }

  /** Whether Delta plans this scan better: it answers such aggregates from its log. */
  private static boolean betterByDelta(LogicalPlan leaf, QueryState state) {
    if (state.root == null) return false;
    if (state.notes.get("delta.root") != state.root) {
      Set counted = new HashSet();
      shapes(state.root, counted);
      state.notes.put("delta.counted", counted);
      state.notes.put("delta.root", state.root);
    }
    return ((Set) state.notes.get("delta.counted")).contains(use(leaf));
  }

  private static Object use(LogicalPlan leaf) {
    return leaf.output().isEmpty() ? (Object) leaf : (Object) ((Attribute) leaf.output().apply(0)).exprId();
  }

  private static void shapes(LogicalPlan node, Set counted) {
    if (node instanceof Aggregate && ((Aggregate) node).groupingExpressions().isEmpty() && onlyExtremes((Aggregate) node)) {
      LogicalPlan leaf = ((Aggregate) node).child();
      while (leaf instanceof Project) leaf = ((Project) leaf).child();
      if (leaf.children().isEmpty()) counted.add(use(leaf));
    }
    List expressions = Catalyst.list(node.expressions());
    for (int i = 0; i < expressions.size(); i++) subqueries((Expression) expressions.get(i), counted);
    for (int i = 0; i < node.children().size(); i++) shapes((LogicalPlan) node.children().apply(i), counted);
  }

  private static void subqueries(Expression e, Set counted) {
    if (e instanceof PlanExpression && ((PlanExpression) e).plan() instanceof LogicalPlan) {
      shapes((LogicalPlan) ((PlanExpression) e).plan(), counted);
    }
    for (int i = 0; i < e.children().size(); i++) subqueries((Expression) e.children().apply(i), counted);
  }

  private static boolean onlyExtremes(Aggregate aggregate) {
    List wanted = Catalyst.list(aggregate.aggregateExpressions());
    for (int i = 0; i < wanted.size(); i++) {
      Expression e = (Expression) wanted.get(i);
      while (!(e instanceof AggregateExpression)) {
        if (e.children().size() != 1) return false;
        e = (Expression) e.children().apply(0);
      }
      AggregateExpression found = (AggregateExpression) e;
      Object function = found.aggregateFunction();
      boolean known = function instanceof Count || function instanceof Min || function instanceof Max;
      if (!known || found.isDistinct() || found.filter().isDefined()) return false;
    }
    return !wanted.isEmpty();
  }

  /** A scan of a Delta table. */
  static final class DeltaScan extends Scan {
    private static final Metadata MAPPED = new MetadataBuilder().putString("delta.columnMapping.physicalName", FileOrdinalColumn.COLUMN)
        .putLong("delta.columnMapping.id", Integer.MAX_VALUE).build();

    private final LogicalRelation relation;
    private final HadoopFsRelation source;
    private final QueryState state;
    private TahoeFileIndex index;
    private Snapshot snapshot;
    private DeltaFiles taken;
    private boolean prepared; // Delta has planned it: what it leaves out stays out

    DeltaScan(LogicalRelation relation, HadoopFsRelation source, QueryState state) {
      super(relation);
      this.relation = relation;
      this.source = source;
      this.state = state;
    }

    void take(TahoeFileIndex index, Snapshot snapshot, boolean prepared) throws Exception {
      this.index = index;
      this.snapshot = snapshot;
      this.prepared = prepared;
      files = taken = DeltaFiles.of(index, snapshot);
      SessionState session = ((org.apache.spark.sql.classic.SparkSession) index.spark()).sessionState();
      FileAccess.remember(files.fingerprint, session, index.deltaLog().options());
    }

    void reopen(DeltaIndex pruned) {
      index = pruned.inner;
      snapshot = pruned.version;
      prepared = pruned.prepared;
      files = taken = pruned.all;
      skipped = pruned.skip;
    }

    public LogicalPlan without(BitSet skip) throws Exception {
      DeltaIndex pruned = new DeltaIndex(index, snapshot, taken, skip, prepared, false);
      return withSize(reading(pruned), pruned.sizeInBytes());
    }

    public LogicalPlan waiting(BitSet skip, RuntimePredicate predicate, LogicalPlan values) throws Exception {
      if (!FileOrdinalColumn.fits(source)) return null;
      DeltaIndex numbered = new DeltaIndex(index, snapshot, taken, skip, prepared, true);
      boolean mapped = source.fileFormat() instanceof DeltaParquetFileFormat
          && !((DeltaParquetFileFormat) source.fileFormat()).columnMappingMode().name().equals("none");
      Metadata metadata = mapped ? MAPPED : Metadata.empty();
      Object asked = CaseClass.with(source, "location", numbered);
      asked = CaseClass.with(asked, "partitionSchema", FileOrdinalColumn.with(source.partitionSchema(), metadata));
      if (mapped) asked = CaseClass.with(asked, "fileFormat", knowing((DeltaParquetFileFormat) source.fileFormat()));
      LogicalRelation sized = (LogicalRelation) withSize(relation, numbered.sizeInBytes());
      return Units.runtime().fewerFiles(sized, (HadoopFsRelation) asked, metadata, predicate, values);
    }

    /** With column mapping every column that is read is looked up in the table's schema, the hidden one, too. */
    private static Object knowing(DeltaParquetFileFormat format) throws Exception {
      StructType schema = FileOrdinalColumn.with(format.metadata().schema(), MAPPED);
      return CaseClass.with(format, "metadata", CaseClass.with(format.metadata(), "schemaString", schema.json()));
    }

    public LogicalPlan asListed() throws Exception {
      if (taken != null && !random) return prepared ? null : without(new BitSet());
      // Left to Delta, which must read the version that the query's other scans of this table read.
      if (!(source.location() instanceof TahoeLogFileIndex) || declined.isEmpty() && !decided && !random) return null;
      TahoeLogFileIndex log = (TahoeLogFileIndex) source.location();
      if (log.isTimeTravelQuery() || !state.notes.containsKey(log.deltaLog().compositeId())) return null;
      Object fixed = CaseClass.with(log, "snapshotAtAnalysis", pinned(log, state));
      return reading(CaseClass.with(fixed, "isTimeTravelQuery", Boolean.TRUE));
    }

    private LogicalPlan reading(Object location) throws Exception {
      return (LogicalPlan) CaseClass.with(relation, "relation", CaseClass.with(source, "location", location));
    }

    /** Columns are found by the very names of the table's schema. */
    public boolean caseSensitive() {
      return true;
    }

    public String kind(Attribute attribute) {
      if (attribute.metadata().contains("__metadata_col")) return "hidden";
      if (has(snapshot.metadata().partitionSchema(), attribute.name())) return "partition";
      return has(snapshot.metadata().schema(), attribute.name()) ? "data" : "hidden";
    }
  }
}
