package secateur.driver;

import java.io.DataOutput;
import java.io.IOException;
import java.io.Serializable;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.commons.lang3.SerializationUtils;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics$;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.InterpretedMutableProjection;
import org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics$;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.AccumulatorV2;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction0;
import secateur.core.Bridge;
import secateur.core.CaseClass;
import secateur.core.Catalyst;
import secateur.core.Json;
import secateur.core.QueryState;
import secateur.core.Scan;

/**
 * Reads rows of a physical plan in the driver, without a job: the scan's own readers give the rows that they would give to a task, and
 * the conditions and columns above are evaluated one by one, as Spark does it for tables that are in the driver already.
 */
final class DriverRows {
  private static final String EXECUTION = "spark.sql.execution.id";
  private static final String READER = "buildReaderWithPartitionValues";

  private final long query;
  private final String table;
  private final long use;

  DriverRows(Scan scan, QueryState state) {
    query = state.id;
    table = scan.table;
    use = scan.use();
  }

  /** So many rows of the plan at most, less the first ones; null if they have to be read by a job, and then the summary says why. */
  InternalRow[] read(final SparkPlan plan, final int limit, int offset) {
    Bridge bridge = Bridge.instance;
    if (bridge == null || !bridge.isOn()) return null;
    long start = System.nanoTime();
    String failed = "";
    InternalRow[] found = null;
    try {
      final List rows = new ArrayList();
      SQLConf$.MODULE$.withExistingConf(plan.conf(), new AbstractFunction0() {
        public Object apply() {
          return fill(plan, limit, rows);
        }
      });
      int from = Math.min(Math.max(offset, 0), rows.size());
      found = (InternalRow[]) rows.subList(from, rows.size()).toArray(new InternalRow[rows.size() - from]);
    } catch (Throwable problem) {
      failed = problem.getClass().getSimpleName() + ": " + problem.getMessage();
    }
    StringBuilder record = new StringBuilder("{\"query\":").append(query).append(",\"call\":0,\"scans\":[],\"runtime\":{\"driver\":1,");
    Json.field(record, "table", table);
    record.append(",\"use\":").append(use).append(",\"ns\":").append(System.nanoTime() - start);
    Json.field(record.append(','), "failed", failed);
    bridge.record(record.append("}}").toString());
    return found;
  }

  private static Object fill(SparkPlan plan, int limit, List rows) {
    List steps = new ArrayList(); // from the scan upwards
    SparkPlan node = plan;
    while (!(node instanceof FileSourceScanExec || node instanceof BatchScanExec)) {
      if (node instanceof FilterExec) {
        steps.add(0, new Step(Catalyst.seq(new Object[] {((FilterExec) node).condition()}), ((FilterExec) node).child(), true));
      } else if (node instanceof ProjectExec) {
        steps.add(0, new Step(((ProjectExec) node).projectList(), ((ProjectExec) node).child(), false));
      } else if (!(node instanceof WholeStageCodegenExec || node instanceof InputAdapter || node instanceof ColumnarToRowExec)) {
        throw new IllegalStateException(node.nodeName() + " cannot be evaluated in the driver");
      }
      node = (SparkPlan) node.children().apply(0);
    }
    UnsafeProjection whole = whole(plan.output());
    SparkPlan scan = node instanceof FileSourceScanExec ? hereOnly((FileSourceScanExec) node) : node;
    RDD files = (RDD) (scan instanceof FileSourceScanExec ? ((FileSourceScanExec) scan).inputRDDs() : ((BatchScanExec) scan).inputRDDs()).head();
    Partition[] partitions = files.partitions();
    long read = 0;
    AsTask task = new AsTask();
    try {
      for (int p = 0; p < partitions.length && rows.size() < limit; p++) {
        scala.collection.Iterator it = files.compute(partitions[p], task.context);
        while (rows.size() < limit && it.hasNext()) {
          Object next = it.next();
          Iterator some = next instanceof ColumnarBatch ? ((ColumnarBatch) next).rowIterator() : null;
          read += some == null ? 1 : ((ColumnarBatch) next).numRows();
          if (some == null) add((InternalRow) next, steps, whole, rows);
          while (some != null && rows.size() < limit && some.hasNext()) add((InternalRow) some.next(), steps, whole, rows);
        }
      }
    } finally {
      task.end();
    }
    if (rows.size() < limit) throw new IllegalStateException("it found " + rows.size() + " rows, fewer than the files are sure to hold");
    count(node, scan, read);
    return null;
  }

  /**
   * What makes a row that stays as it is: readers use theirs again, down to the elements of arrays. It takes the first columns, for a
   * batch may have more than the plan, such as the place of a row in its file.
   */
  private static UnsafeProjection whole(Seq output) {
    Object[] columns = new Object[output.size()];
    for (int i = 0; i < columns.length; i++) {
      Attribute attribute = (Attribute) output.apply(i);
      columns[i] = new BoundReference(i, attribute.dataType(), attribute.nullable());
    }
    return InterpretedUnsafeProjection$.MODULE$.createProjection(Catalyst.seq(columns));
  }

  private static void add(InternalRow row, List steps, UnsafeProjection whole, List rows) {
    for (int i = 0; i < steps.size(); i++) {
      Step step = (Step) steps.get(i);
      InternalRow computed = (InternalRow) step.projection.apply(row);
      if (!step.filters) row = computed;
      else if (computed.isNullAt(0) || !computed.getBoolean(0)) return;
    }
    rows.add(((InternalRow) whole.apply(row)).copy());
  }

  /**
   * Makes this thread a task for a while: readers look for one to have their files closed at its end, to count what they read, and to
   * hold blocks. Settings are those of the query all the same.
   */
  static final class AsTask {
    private static final AtomicLong NEXT = new AtomicLong(Long.MIN_VALUE); // real ones count up from 0
    private final long id = NEXT.getAndIncrement();
    final TaskContextImpl context;

    AsTask() {
      Object[] arguments = {
        Integer.valueOf(-1), Integer.valueOf(0), Integer.valueOf(0), Long.valueOf(id), Integer.valueOf(0), Integer.valueOf(1), null,
        new Properties(), null, TaskMetrics$.MODULE$.empty(), Integer.valueOf(1), scala.collection.immutable.Map$.MODULE$.empty()
      };
      try {
        context = (TaskContextImpl) TaskContextImpl.class.getConstructors()[0].newInstance(arguments);
      } catch (ReflectiveOperationException other) {
        throw new IllegalStateException("this Spark makes its tasks in another way: " + other);
      }
      SparkEnv.get().blockManager().registerTask(id);
      TaskContext$.MODULE$.setTaskContext(context);
    }

    void end() {
      try {
        context.markTaskCompleted(Option.apply(null));
      } finally {
        TaskContext$.MODULE$.unset();
        SparkEnv.get().blockManager().releaseAllLocksForTask(id);
      }
    }
  }

  /**
   * What a node computes of a row: other columns, or whether it stays. Some functions hold buffers that they write to, and the plan may be
   * collected by several threads, so they are copied as they are for a task.
   */
  static final class Step {
    final InterpretedMutableProjection projection;
    final boolean filters;

    Step(Seq computed, SparkPlan child, boolean filters) {
      boolean shared = true;
      for (int i = 0; i < computed.size(); i++) shared = shared && holdsNothing((Expression) computed.apply(i));
      Seq own = shared ? computed : (Seq) SerializationUtils.clone((Serializable) computed.toList());
      this.projection = new InterpretedMutableProjection(own, child.output());
      this.filters = filters;
    }

    private static boolean holdsNothing(Expression e) {
      if (e instanceof AttributeReference || e instanceof Literal) return true;
      if (!(e instanceof Alias || e instanceof And || e instanceof Or || e instanceof Not || e instanceof IsNull || e instanceof IsNotNull
          || e instanceof BinaryComparison || e instanceof GetStructField)) return false;
      for (int i = 0; i < e.children().size(); i++) if (!holdsNothing((Expression) e.children().apply(i))) return false;
      return true;
    }
  }

  /** Tells the node of the plan what was read, for the SQL page of Spark's user interface. */
  private static void count(SparkPlan node, SparkPlan read, long rows) {
    List metrics = new ArrayList();
    scala.collection.Iterator it = node.metrics().keysIterator();
    while (it.hasNext()) {
      String name = (String) it.next();
      SQLMetric metric = (SQLMetric) node.metrics().apply(name);
      if (name.equals("numOutputRows")) metric.add(rows);
      else if (read != node) metric.add(((Number) ((AccumulatorV2) read.metrics().apply(name)).value()).longValue());
      metrics.add(metric);
    }
    SparkContext spark = node.sparkContext();
    String execution = spark.getLocalProperty(EXECUTION);
    if (execution != null) SQLMetrics$.MODULE$.postDriverMetricUpdates(spark, execution, Catalyst.seq(metrics.toArray()));
  }

  /**
   * A copy of the scan whose reader is not meant to leave the driver. Hadoop's configuration goes to executors by a broadcast, and packing
   * it takes longer than reading a small file.
   */
  private static FileSourceScanExec hereOnly(FileSourceScanExec scan) {
    try {
      HereOnly here = new HereOnly(scan.relation().fileFormat());
      Object format = Proxy.newProxyInstance(FileFormat.class.getClassLoader(), new Class[] {FileFormat.class}, here);
      return (FileSourceScanExec) CaseClass.with(scan, "relation", CaseClass.with(scan.relation(), "fileFormat", format));
    } catch (Exception other) {
      throw new IllegalStateException(other);
    }
  }

  /** A file format as it is, but for the configuration that its readers broadcast. */
  static final class HereOnly implements InvocationHandler {
    private final FileFormat format;

    HereOnly(FileFormat format) {
      this.format = format;
    }

    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
      for (int i = 0; method.getName().equals(READER) && i < arguments.length; i++) {
        if (arguments[i] instanceof Configuration) arguments[i] = new Unsent((Configuration) arguments[i]);
      }
      try {
        return method.invoke(format, arguments);
      } catch (InvocationTargetException wrapped) {
        throw wrapped.getCause();
      }
    }
  }

  /** A configuration that is empty to executors, of which none asks for it; if the driver has to put it aside on disk, it is whole. */
  static final class Unsent extends Configuration {
    private boolean broadcast = false;

    Unsent(Configuration other) {
      super(other);
    }

    public synchronized void write(DataOutput out) throws IOException {
      if (broadcast) super.write(out);
      else new Configuration(false).write(out);
      broadcast = true;
    }
  }
}
