package secateur.core;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.CatalogFileIndex;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.Metadata;
import scala.Option;

/** Plain Parquet files under Spark's own file source; other file sources are declined here, too. */
final class ParquetFormat extends Format {
  private static final String PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat";
  private static final String IN_MEMORY = "org.apache.spark.sql.execution.datasources.InMemoryFileIndex";
  private static final String SINK_LOG = "org.apache.spark.sql.execution.streaming.runtime.MetadataLogFileIndex";
  private static final String SINK_LOG_4_0 = "org.apache.spark.sql.execution.streaming.MetadataLogFileIndex";

  private static final String FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled";

  public Scan scan(LogicalPlan leaf, boolean late, QueryState state, SQLConf conf) throws Exception {
    if (!(leaf instanceof LogicalRelation)) return null;
    LogicalRelation relation = (LogicalRelation) leaf;
    if (!(relation.relation() instanceof HadoopFsRelation)) return null;
    HadoopFsRelation files = (HadoopFsRelation) relation.relation();
    // Between the two steps Spark then answers from the partitions that have files, empty ones included.
    if (!late && conf.optimizerMetadataOnly() && files.partitionSchema().nonEmpty()) return null;
    if (state.waits) return null;
    FileIndex index = files.location();
    ParquetScan scan = new ParquetScan(relation, files);
    scan.table = name(relation, index);
    boolean parquet = files.fileFormat().getClass().getName().equals(PARQUET);
    scan.format = format(files.fileFormat(), parquet);
    scan.decided = index instanceof PrunedFileIndex || state.has(scan.use());
    if (scan.decided && !(late && state.reopens(scan.use()))) return scan;
    if (scan.decided) {
      if (index instanceof PrunedFileIndex && ((PrunedFileIndex) index).numbered) return scan;
      scan.skipped = new BitSet();
      if (index instanceof PrunedFileIndex) {
        PrunedFileIndex pruned = (PrunedFileIndex) index;
        scan.index = pruned.inner;
        scan.files = scan.listing = pruned.listing;
        scan.skipped = pruned.skip;
        return scan;
      }
    }
    String kind = index.getClass().getName();
    if (relation.isStreaming()) {
      scan.declined = "it is a streaming source";
    } else if (!parquet) {
      scan.declined = Units.why(
          files.fileFormat().getClass(), "files of format " + scan.format + " are not pruned, only plain Parquet tables");
    } else if (matchedById(files, conf)) {
      scan.declined = "columns are matched by Parquet field id (spark.sql.parquet.fieldId.read.enabled), statistics by name";
    } else if (index instanceof CatalogFileIndex) {
      // Spark narrows it by its partition filters after the early step; listing every partition before that would be waste.
      if (!late) return null;
      index = ((CatalogFileIndex) index).filterPartitions(Catalyst.none());
    } else if (!kind.equals(IN_MEMORY) && !kind.equals(SINK_LOG) && !kind.equals(SINK_LOG_4_0)) {
      scan.declined = "its files are listed by " + kind + ", which secateur does not know";
    }
    if (scan.declined.isEmpty()) {
      scan.index = index;
      scan.files = scan.listing = Listing.of(index, roots(relation, index));
      FileAccess.remember(scan.files.fingerprint, files.sparkSession().sessionState(), files.options());
    }
    return scan;
  }

  /** Formats built on Parquet's own give themselves out as parquet. */
  private static String format(FileFormat format, boolean parquet) {
    String name = format instanceof DataSourceRegister ? ((DataSourceRegister) format).shortName() : "";
    return name.isEmpty() || name.equals("parquet") && !parquet ? format.getClass().getSimpleName() : name;
  }

  public void probe() {
    CaseClass.check(LogicalRelation.class, "relation");
    CaseClass.check(HadoopFsRelation.class, "location");
  }

  private static SQLConf confOf(HadoopFsRelation files) {
    return files.sparkSession().sessionState().conf();
  }

  /**
   * Whether the Parquet reader matches columns by field id: where that is switched on (the Delta connector does so for the whole
   * session) and the schema that it is asked for has ids. It asks Hadoop's configuration, into which the session's settings are
   * copied only if they are set.
   */
  private static boolean matchedById(HadoopFsRelation files, SQLConf conf) {
    boolean on = conf.parquetFieldIdReadEnabled()
        || confOf(files).parquetFieldIdReadEnabled()
        || files.sparkSession().sparkContext().hadoopConfiguration().getBoolean(FIELD_IDS, false);
    return on && files.dataSchema().json().contains("\"parquet.field.id\"");
  }

  /**
   * Where the table lives. Spark hands us only the folders of some partitions once it has evaluated partition filters, but the
   * statistics are kept with the table.
   */
  private static List roots(LogicalRelation relation, FileIndex index) {
    List roots = new ArrayList();
    boolean found = false;
    String home = null;
    if (relation.catalogTable().isDefined()) {
      Option uri = ((CatalogTable) relation.catalogTable().get()).storage().locationUri();
      if (uri.isDefined()) home = new Path((java.net.URI) uri.get()).toString();
    }
    scala.collection.Iterator it = index.rootPaths().iterator(); // a glob of files makes a long list
    while (it.hasNext()) {
      String root = it.next().toString();
      boolean inside = home != null && (root.equals(home) || root.startsWith(home + "/"));
      if (!inside) roots.add(root);
      else found = true;
    }
    if (found) roots.add(home);
    return roots;
  }

  private static String name(LogicalRelation relation, FileIndex index) {
    if (relation.catalogTable().isDefined()) {
      return ((CatalogTable) relation.catalogTable().get()).identifier().unquotedString();
    }
    if (index.rootPaths().isEmpty()) return "";
    String first = ((Path) index.rootPaths().apply(0)).toString();
    return index.rootPaths().size() == 1 ? first : first + " and " + (index.rootPaths().size() - 1) + " more";
  }

  /** A scan of a file source. */
  static final class ParquetScan extends Scan {
    private final LogicalRelation relation;
    private final HadoopFsRelation source;
    FileIndex index; // where the files of `listing` come from
    Listing listing;

    ParquetScan(LogicalRelation relation, HadoopFsRelation source) {
      super(relation);
      this.relation = relation;
      this.source = source;
    }

    public LogicalPlan without(BitSet skip) throws Exception {
      PrunedFileIndex pruned = new PrunedFileIndex(index, listing, skip, false);
      return withSize(CaseClass.with(relation, "relation", CaseClass.with(source, "location", pruned)), pruned.sizeInBytes());
    }

    public LogicalPlan waiting(BitSet skip, RuntimePredicate predicate, LogicalPlan values) throws Exception {
      if (!FileOrdinalColumn.fits(source)) return null;
      PrunedFileIndex numbered = new PrunedFileIndex(index, listing, skip, true);
      Object asked = CaseClass.with(source, "location", numbered);
      asked = CaseClass.with(asked, "partitionSchema", FileOrdinalColumn.with(source.partitionSchema(), Metadata.empty()));
      LogicalRelation sized = (LogicalRelation) withSize(relation, numbered.sizeInBytes());
      return Units.runtime().fewerFiles(sized, (HadoopFsRelation) asked, Metadata.empty(), predicate, values);
    }

    /** A table of the catalog was listed for the decision; Spark need not ask the catalog and list it once more. */
    public LogicalPlan asListed() throws Exception {
      return index == null || index == source.location() ? null : without(new BitSet());
    }

    /** The reader goes by the settings of the session that made the relation, which need not be the one that runs the query. */
    public boolean caseSensitive() {
      return confOf(source).caseSensitiveAnalysis();
    }

    public String kind(Attribute attribute) {
      if (attribute.metadata().contains("__metadata_col")) return "hidden";
      if (has(source.partitionSchema(), attribute.name())) return "partition";
      return has(source.dataSchema(), attribute.name()) ? "data" : "hidden";
    }
  }
}
