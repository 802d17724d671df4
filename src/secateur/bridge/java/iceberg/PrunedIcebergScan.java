package secateur.iceberg;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.ContentScanTask;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ScanTask;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan.ColumnarSupportMode;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import secateur.core.Bridge;
import secateur.core.RuntimePredicate;

/** Iceberg's scan, a copy of it that nobody else holds, with fewer tasks. */
public final class PrunedIcebergScan
    implements org.apache.spark.sql.connector.read.Scan, SupportsReportStatistics, SupportsReportPartitioning, SupportsRuntimeV2Filtering {
  private final org.apache.spark.sql.connector.read.Scan inner;
  final IcebergFiles files;
  final BitSet skip;
  private final Map ordinals; // task -> the file's ordinal; null if the tasks are Iceberg's own
  private RuntimePredicate predicate; // which files it skips at run time, null if it waits for nothing
  private final long query = Bridge.instance == null ? 0 : Bridge.instance.planning();
  private final boolean takesValues = Bridge.instance == null || Bridge.instance.takesValues();
  private final BitSet skippedAtRuntime = new BitSet();
  private final List runtimeFilters = new ArrayList(); // their texts, for equality
  private PartitionReaderFactory factory; // made when it is first asked for, before values of run time take tasks away
  private InputPartition[] partitions; // made of these groups of tasks
  private Object groups;

  private PrunedIcebergScan(org.apache.spark.sql.connector.read.Scan inner, IcebergFiles files, BitSet skip, Map ordinals) {
    this.inner = inner;
    this.files = files;
    this.skip = skip;
    this.ordinals = ordinals;
  }

  /** A scan that was just built and not planned: its tasks come from the files that are known, and Iceberg reads no manifest. */
  static PrunedIcebergScan planned(org.apache.spark.sql.connector.read.Scan scan, IcebergFiles files, BitSet skip) throws Exception {
    if (IcebergFormat.hasVariant(files.schema)) {
      // How Iceberg reads a variant depends on statistics, which tasks made from known files do not have: it makes its own.
      PrunedIcebergScan pruned = new PrunedIcebergScan(scan, files, skip, null);
      pruned.drop(skip);
      return pruned;
    }
    IcebergTasks planned = new IcebergTasks(scan, files);
    planned.plan(skip);
    Reflect.set(scan, "tasks", planned.tasks);
    return new PrunedIcebergScan(scan, files, skip, planned.ordinals);
  }

  /** A scan that Iceberg may have planned, and others may hold, or one of ours: a copy, with tasks taken away. */
  static PrunedIcebergScan cut(org.apache.spark.sql.connector.read.Scan scan, IcebergFiles files, BitSet skip) throws Exception {
    Map ordinals = scan instanceof PrunedIcebergScan ? ((PrunedIcebergScan) scan).ordinals : null;
    if (scan instanceof PrunedIcebergScan) scan = ((PrunedIcebergScan) scan).inner;
    org.apache.spark.sql.connector.read.Scan copy = (org.apache.spark.sql.connector.read.Scan) Reflect.copy(scan);
    Reflect.set(copy, "runtimeFilters", new ArrayList((List) Reflect.get(scan, "runtimeFilters")));
    if (Reflect.get(copy, "tasks") == null) return planned(copy, files, skip);
    PrunedIcebergScan pruned = new PrunedIcebergScan(copy, files, skip, ordinals);
    pruned.drop(skip);
    return pruned;
  }

  /**
   * The files that a planned scan does not read, null if it reads all: those that were skipped, and those that Iceberg's own tests leave
   * out. Iceberg may have taken over a condition altogether, if each file satisfies it with all rows or with none; then the plan does not
   * show it any more, and all rows of the other files arrive.
   */
  static BitSet unread(org.apache.spark.sql.connector.read.Scan scan, IcebergFiles files) throws Exception {
    PrunedIcebergScan own = scan instanceof PrunedIcebergScan ? (PrunedIcebergScan) scan : null;
    Object inner = own == null ? scan : own.inner;
    if (Reflect.call(inner, "filter") == Expressions.alwaysTrue()) return own == null ? null : own.skip;
    Map ordinals = own == null ? null : own.ordinals;
    List tasks = (List) Reflect.get(inner, "tasks");
    if (tasks == null) {
      IcebergTasks planned = new IcebergTasks(inner, files);
      planned.plan(new BitSet());
      tasks = planned.tasks;
      ordinals = planned.ordinals;
    }
    BitSet left = new BitSet();
    left.set(0, files.count);
    if (ordinals != null) {
      for (int i = 0; i < tasks.size(); i++) left.clear(((Integer) ordinals.get(tasks.get(i))).intValue());
      return left;
    }
    Set locations = new HashSet();
    for (int i = 0; i < tasks.size(); i++) locations.add(((ContentFile) ((ContentScanTask) tasks.get(i)).file()).location());
    for (int m = 0; m < files.manifests.length; m++) {
      ManifestStats stats = files.manifest(m);
      for (int i = files.start[m]; i < files.start[m + 1]; i++) {
        if (locations.contains(stats.files[i - files.start[m]].location())) left.clear(i);
      }
    }
    return left;
  }

  /** To be called once, on a scan that nobody else holds. */
  PrunedIcebergScan waiting(RuntimePredicate asked) {
    predicate = asked;
    return this;
  }

  private List tasks() throws Exception {
    return (List) Reflect.call(inner, "tasks");
  }

  /** Leaves the tasks of files that are not skipped. Iceberg's own tasks are known by the location of their file alone. */
  private void drop(BitSet skipped) throws Exception {
    Set kept = ordinals == null ? keptLocations(skipped) : null;
    List left = new ArrayList();
    List all = tasks();
    for (int i = 0; i < all.size(); i++) {
      Object task = all.get(i);
      boolean stays = ordinals != null
          ? !skipped.get(((Integer) ordinals.get(task)).intValue())
          : kept.contains(((ContentFile) ((ContentScanTask) task).file()).location());
      if (stays) left.add(task);
    }
    if (left.size() < all.size()) Reflect.call(inner, "resetTasks", left);
  }

  private Set keptLocations(BitSet skipped) throws Exception {
    Set kept = new HashSet();
    for (int m = 0; m < files.manifests.length; m++) {
      int end = files.start[m + 1];
      int i = skipped.nextClearBit(files.start[m]);
      if (i >= end) continue;
      ManifestStats stats = files.manifest(m);
      for (; i < end; i = skipped.nextClearBit(i + 1)) kept.add(stats.files[i - files.start[m]].location());
    }
    return kept;
  }

  public StructType readSchema() {
    return inner.readSchema();
  }

  public String description() {
    return inner.description() + " secateur(skipped=" + skip.cardinality() + ", at run time=" + skippedAtRuntime.cardinality() + ")";
  }

  public String toString() {
    return description();
  }

  public Batch toBatch() {
    return new PrunedBatch(inner.toBatch(), this);
  }

  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    return inner.toMicroBatchStream(checkpoint);
  }

  public CustomMetric[] supportedCustomMetrics() {
    return inner.supportedCustomMetrics();
  }

  /** Otherwise Spark asks each partition while it plans, and for those Iceberg broadcasts the table. All have one and the same answer. */
  public ColumnarSupportMode columnarSupportMode() {
    ColumnarSupportMode own = inner.columnarSupportMode();
    if (own != ColumnarSupportMode.PARTITION_DEFINED) return own;
    String kind = factory(null).getClass().getSimpleName();
    if (kind.equals("SparkColumnarReaderFactory")) return ColumnarSupportMode.SUPPORTED;
    return kind.equals("SparkRowReaderFactory") ? ColumnarSupportMode.UNSUPPORTED : own;
  }

  private synchronized PartitionReaderFactory factory(Batch batch) {
    if (factory == null) factory = (batch == null ? inner.toBatch() : batch).createReaderFactory();
    return factory;
  }

  /** Spark copies its nodes, and each copy asks; Iceberg would broadcast the table every time. */
  private synchronized InputPartition[] partitions(Batch batch) {
    Object asked;
    try {
      asked = Reflect.get(batch, "taskGroups");
    } catch (Exception unknown) {
      return batch.planInputPartitions();
    }
    if (partitions == null || groups != asked) {
      partitions = batch.planInputPartitions();
      groups = asked;
    }
    return (InputPartition[]) partitions.clone();
  }

  public Partitioning outputPartitioning() {
    return ((SupportsReportPartitioning) inner).outputPartitioning();
  }

  /** Iceberg did not plan, so it has no report; these are the numbers that concern what is read. */
  public CustomTaskMetric[] reportDriverMetrics() {
    try {
      List tasks = tasks();
      long size = 0;
      Set deletes = new HashSet();
      for (int i = 0; i < tasks.size(); i++) {
        FileScanTask task = ((ScanTask) tasks.get(i)).asFileScanTask();
        size += task.length();
        for (int d = 0; d < task.deletes().size(); d++) deletes.add(((ContentFile) task.deletes().get(d)).location());
      }
      return new CustomTaskMetric[] {
          new Metric("resultDataFiles", tasks.size()), new Metric("skippedDataFiles", files.count - tasks.size()),
          new Metric("totalDataFileSize", size), new Metric("resultDeleteFiles", deletes.size()),
          new Metric("totalDataManifest", files.manifests.length)};
    } catch (Exception unknown) {
      return new CustomTaskMetric[0];
    }
  }

  public Statistics estimateStatistics() {
    Statistics whole = ((SupportsReportStatistics) inner).estimateStatistics();
    if (skip.isEmpty()) return whole;
    try {
      List tasks = tasks();
      long rows = 0;
      for (int i = 0; i < tasks.size(); i++) rows += ((ScanTask) tasks.get(i)).estimatedRowsCount();
      return new Estimate(SparkSchemaUtil.estimateSize(readSchema(), rows), rows, whole.columnStats());
    } catch (Exception unknown) {
      return whole;
    }
  }

  /**
   * Iceberg takes values for the columns of its partitions at run time; secateur for every column that it can compare, unless many tables
   * are joined: each of Spark's subqueries for such values has the subqueries of the tables below it, and planning would never end. Nor in
   * a recursive query, of which Spark analyzes a part once more for every step: it does not accept such subqueries there.
   */
  public NamedReference[] filterAttributes() {
    NamedReference[] own = ((SupportsRuntimeV2Filtering) inner).filterAttributes();
    if (!takesValues) return own;
    List all = new ArrayList(Arrays.asList(own));
    StructField[] fields = readSchema().fields();
    for (int f = 0; f < fields.length; f++) {
      boolean there = !RuntimeValues.comparable(fields[f].dataType()) || files.schema.findField(fields[f].name()) == null;
      for (int i = 0; i < own.length; i++) there = there || own[i].fieldNames().length == 1 && own[i].fieldNames()[0].equals(fields[f].name());
      if (!there) all.add(FieldReference.column(fields[f].name()));
    }
    return (NamedReference[]) all.toArray(new NamedReference[all.size()]);
  }

  public void filter(Predicate[] all) {
    List others = new ArrayList();
    for (int i = 0; i < all.length; i++) {
      runtimeFilters.add(all[i].toString());
      if (predicate == null || !RuntimeValues.answers(all[i])) others.add(all[i]);
      else skipAtRuntime(predicate.skipped(RuntimeValues.row(all[i]), RuntimeValues.schema(all[i])));
    }
    if (others.isEmpty()) return;
    Predicate[] predicates = (Predicate[]) others.toArray(new Predicate[others.size()]);
    ((SupportsRuntimeV2Filtering) inner).filter(predicates);
    if (Bridge.instance != null) skipAtRuntime(RuntimeValues.skipped(Bridge.instance, query, files, predicates));
  }

  private void skipAtRuntime(BitSet found) {
    if (found == null || found.isEmpty()) return;
    try {
      BitSet more = (BitSet) found.clone();
      more.or(skippedAtRuntime);
      more.or(skip);
      drop(more);
      more.andNot(skip);
      skippedAtRuntime.or(more);
    } catch (Throwable problem) {
      Bridge.instance.problem(query, null, "an Iceberg scan was not narrowed at run time", problem);
    }
  }

  public boolean equals(Object other) {
    if (this == other) return true;
    if (!(other instanceof PrunedIcebergScan)) return false;
    PrunedIcebergScan that = (PrunedIcebergScan) other;
    return inner.equals(that.inner) && files.fingerprint.equals(that.files.fingerprint) && skip.equals(that.skip)
        && skippedAtRuntime.equals(that.skippedAtRuntime) && runtimeFilters.equals(that.runtimeFilters)
        && (predicate == null ? that.predicate == null : predicate.equals(that.predicate));
  }

  public int hashCode() {
    return inner.hashCode() * 31 + skip.hashCode();
  }

  /** Iceberg's batches are equal if their scans have one hash, whatever their tasks; these only if the scans are. */
  static final class PrunedBatch implements Batch {
    private final Batch inner;
    private final PrunedIcebergScan scan;

    PrunedBatch(Batch inner, PrunedIcebergScan scan) {
      this.inner = inner;
      this.scan = scan;
    }

    public InputPartition[] planInputPartitions() {
      return scan.partitions(inner);
    }

    public PartitionReaderFactory createReaderFactory() {
      return scan.factory(inner);
    }

    public boolean equals(Object other) {
      return other instanceof PrunedBatch && ((PrunedBatch) other).scan.equals(scan) && ((PrunedBatch) other).inner.equals(inner);
    }

    public int hashCode() {
      return scan.hashCode();
    }
  }

  static final class Metric implements CustomTaskMetric {
    private final String name;
    private final long value;

    Metric(String name, long value) {
      this.name = name;
      this.value = value;
    }

    public String name() {
      return name;
    }

    public long value() {
      return value;
    }
  }

  static final class Estimate implements Statistics {
    private final long size;
    private final long rows;
    private final Map columns;

    Estimate(long size, long rows, Map columns) {
      this.size = size;
      this.rows = rows;
      this.columns = columns;
    }

    public OptionalLong sizeInBytes() {
      return OptionalLong.of(size);
    }

    public OptionalLong numRows() {
      return OptionalLong.of(rows);
    }

    public Map columnStats() {
      return columns;
    }
  }
}
