package secateur.iceberg;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.BaseFileScanTask;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.expressions.Binder;
import org.apache.iceberg.expressions.Evaluator;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.InclusiveMetricsEvaluator;
import org.apache.iceberg.expressions.ManifestEvaluator;
import org.apache.iceberg.expressions.Projections;
import org.apache.iceberg.expressions.ResidualEvaluator;
import org.apache.iceberg.types.Type;

/**
 * The tasks that Iceberg itself would plan for a scan, made from the files that are known, less those that are skipped. Iceberg's own
 * tests of manifests, partitions and statistics are applied as well: it may have taken over a condition altogether, so that Spark does not
 * evaluate it any more, and where its tests lose a row (NaN, -0.0) the answer is the same with and without secateur.
 */
final class IcebergTasks {
  private final IcebergFiles files;
  private final org.apache.iceberg.expressions.Expression filter;
  private final boolean caseSensitive;
  private final Map specs; // id -> PartitionSpec, bound to the schema that the scan reads by
  private final Map bySpec = new HashMap(); // id -> Tests
  private final Set referenced;
  private final Schema schema;
  final List tasks = new ArrayList();
  final Map ordinals = new IdentityHashMap(); // task -> the file's ordinal

  IcebergTasks(Object scan, IcebergFiles files) throws Exception {
    this.files = files;
    this.filter = (org.apache.iceberg.expressions.Expression) Reflect.call(scan, "filter");
    this.caseSensitive = ((Boolean) Reflect.call(scan, "caseSensitive")).booleanValue();
    this.schema = (Schema) Reflect.get(scan, "schema");
    Object inner = Reflect.get(scan, "scan");
    if (inner.getClass().getSimpleName().equals("BatchScanAdapter")) inner = Reflect.get(inner, "scan");
    String kind = inner.getClass().getSimpleName();
    if (!kind.equals("DataTableScan") && !kind.equals("SparkDistributedDataScan")) {
      throw new IllegalStateException("the table is planned by " + kind + ", which secateur does not know");
    }
    this.specs = (Map) Reflect.call(inner, "specs");
    this.referenced = filter == Expressions.alwaysTrue()
        ? Collections.EMPTY_SET : Binder.boundReferences(schema.asStruct(), Collections.singletonList(filter), caseSensitive);
  }

  void plan(BitSet skip) throws Exception {
    int[] wanted = new int[files.manifests.length];
    int n = 0;
    for (int m = 0; m < files.manifests.length; m++) {
      if (skip.nextClearBit(files.start[m]) >= files.start[m + 1]) continue;
      if (tests(files.manifests[m].partitionSpecId()).manifest.eval(files.manifests[m])) wanted[n++] = m;
    }
    wanted = Arrays.copyOf(wanted, n);
    ManifestStats[] found = files.manifests(wanted);
    for (int w = 0; w < n; w++) {
      int first = files.start[wanted[w]];
      int end = files.start[wanted[w] + 1];
      Tests tests = tests(files.manifests[wanted[w]].partitionSpecId());
      for (int i = skip.nextClearBit(first); i < end; i = skip.nextClearBit(i + 1)) {
        DataFile file = found[w].files[i - first];
        if (!tests.partition.eval(file.partition())) continue;
        if (!referenced.isEmpty() && !tests.metrics.eval(withStatistics(file, found[w], i - first))) continue;
        Object task = new BaseFileScanTask(file, files.deletesOf(file), tests.schema, tests.spec, tests.residuals);
        tasks.add(task);
        ordinals.put(task, Integer.valueOf(i));
      }
    }
  }

  private Tests tests(int id) {
    Tests known = (Tests) bySpec.get(Integer.valueOf(id));
    if (known == null) bySpec.put(Integer.valueOf(id), known = new Tests((PartitionSpec) specs.get(Integer.valueOf(id)), filter, caseSensitive));
    return known;
  }

  private static final class Tests {
    final ManifestEvaluator manifest;
    final Evaluator partition;
    final InclusiveMetricsEvaluator metrics;
    final ResidualEvaluator residuals;
    final String schema;
    final String spec;

    Tests(PartitionSpec spec, org.apache.iceberg.expressions.Expression filter, boolean caseSensitive) {
      org.apache.iceberg.expressions.Expression projected = Projections.inclusive(spec, caseSensitive).project(filter);
      this.manifest = ManifestEvaluator.forPartitionFilter(projected, spec, caseSensitive);
      this.partition = new Evaluator(spec.partitionType(), projected, caseSensitive);
      this.metrics = new InclusiveMetricsEvaluator(spec.schema(), filter, caseSensitive);
      this.residuals = ResidualEvaluator.of(spec, filter, caseSensitive);
      this.schema = SchemaParser.toJson(spec.schema());
      this.spec = PartitionSpecParser.toJson(spec);
    }
  }

  /** The file with the statistics of the columns that the filter refers to: the tests ask for nothing else. */
  private ContentFile withStatistics(final DataFile file, ManifestStats stats, int at) {
    final Map values = new HashMap();
    Map[] maps = {new HashMap(), new HashMap(), new HashMap(), new HashMap(), new HashMap()};
    Iterator it = referenced.iterator();
    while (it.hasNext()) {
      Object id = it.next();
      ManifestStats.Column column = (ManifestStats.Column) stats.columns.get(id);
      if (column == null) continue;
      Type wanted = schema.findType(((Integer) id).intValue());
      for (int c = 0; c < 3; c++) {
        long count = column.count(c, at);
        if (count != ManifestStats.Column.MISSING) maps[c].put(id, Long.valueOf(count));
      }
      for (int b = 0; b < 2; b++) if (column.has(b, at)) maps[3 + b].put(id, column.single(b, at, wanted));
    }
    values.put("valueCounts", maps[0]);
    values.put("nullValueCounts", maps[1]);
    values.put("nanValueCounts", maps[2]);
    values.put("lowerBounds", maps[3]);
    values.put("upperBounds", maps[4]);
    values.put("recordCount", Long.valueOf(file.recordCount()));
    return (ContentFile) Proxy.newProxyInstance(ContentFile.class.getClassLoader(), new Class[] {ContentFile.class}, new InvocationHandler() {
      public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        Object value = values.get(method.getName());
        return value != null ? value : method.invoke(file, arguments);
      }
    });
  }
}
