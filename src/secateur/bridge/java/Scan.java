package secateur;

import java.util.ArrayList;
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
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** A leaf that reads a table, as far as it can be told from its classes; `declined` says why it is left alone. */
final class Scan {
  private static final String PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat";
  private static final String IN_MEMORY = "org.apache.spark.sql.execution.datasources.InMemoryFileIndex";
  private static final String SINK_LOG = "org.apache.spark.sql.execution.streaming.runtime.MetadataLogFileIndex";
  private static final String SINK_LOG_4_0 = "org.apache.spark.sql.execution.streaming.MetadataLogFileIndex";

  private static final String FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled";

  final LogicalPlan node;
  String table = "";
  String format = "";
  String declined = "";
  boolean decided = false;
  FileIndex index;
  Listing listing;

  private Scan(LogicalPlan node) {
    this.node = node;
  }

  /** Null if the leaf reads no table, or if it is better looked at in the late step. */
  static Scan of(LogicalPlan leaf, boolean late, QueryState state, SQLConf conf) throws Exception {
    Scan scan = new Scan(leaf);
    if (leaf instanceof DataSourceV2ScanRelation || leaf instanceof DataSourceV2Relation) {
      DataSourceV2Relation relation =
          leaf instanceof DataSourceV2ScanRelation ? ((DataSourceV2ScanRelation) leaf).relation() : (DataSourceV2Relation) leaf;
      scan.table = relation.table().name();
      scan.format = relation.table().getClass().getSimpleName();
      scan.declined = "it is read through Spark's DataSource V2 interface, which secateur does not prune";
      return scan;
    }
    if (!(leaf instanceof LogicalRelation)) return null;
    LogicalRelation relation = (LogicalRelation) leaf;
    if (!(relation.relation() instanceof HadoopFsRelation)) return null;
    HadoopFsRelation files = (HadoopFsRelation) relation.relation();
    // Between the two steps Spark then answers from the partitions that have files, empty ones included.
    if (!late && conf.optimizerMetadataOnly() && files.partitionSchema().nonEmpty()) return null;
    FileIndex index = files.location();
    scan.table = name(relation, index);
    boolean parquet = files.fileFormat().getClass().getName().equals(PARQUET);
    scan.format = format(files.fileFormat(), parquet);
    scan.decided = index instanceof PrunedFileIndex || state.has(scan.use());
    if (scan.decided) return scan;
    String kind = index.getClass().getName();
    if (relation.isStreaming()) {
      scan.declined = "it is a streaming source";
    } else if (!parquet) {
      scan.declined = "files of format " + scan.format + " are not pruned, only plain Parquet tables";
    } else if (conf.parquetFieldIdReadEnabled() || matchedById(files)) {
      scan.declined = "columns are matched by Parquet field id (spark.sql.parquet.fieldId.read.enabled), statistics by name";
    } else if (index instanceof CatalogFileIndex) {
      // Spark narrows it by its partition filters after the early step; listing every partition before that would be waste.
      if (!late) return null;
      index = ((CatalogFileIndex) index).filterPartitions((scala.collection.immutable.Seq) scala.collection.immutable.Nil$.MODULE$);
    } else if (!kind.equals(IN_MEMORY) && !kind.equals(SINK_LOG) && !kind.equals(SINK_LOG_4_0)) {
      scan.declined = "its files are listed by " + kind + ", which secateur does not know";
    }
    if (scan.declined.isEmpty()) {
      scan.index = index;
      scan.listing = Listing.of(index, roots(relation, index));
    }
    return scan;
  }

  /** Formats built on Parquet's own give themselves out as parquet. */
  private static String format(FileFormat format, boolean parquet) {
    String name = format instanceof DataSourceRegister ? ((DataSourceRegister) format).shortName() : "";
    return name.isEmpty() || name.equals("parquet") && !parquet ? format.getClass().getSimpleName() : name;
  }

  private static SQLConf confOf(HadoopFsRelation files) {
    return files.sparkSession().sessionState().conf();
  }

  /** Spark's Parquet reader asks Hadoop's configuration, into which the session's settings are copied only if they are set. */
  private static boolean matchedById(HadoopFsRelation files) {
    return confOf(files).parquetFieldIdReadEnabled()
        || files.sparkSession().sparkContext().hadoopConfiguration().getBoolean(FIELD_IDS, false);
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

  /** Spark gives every use of a table attribute ids of its own, so the first one names the use. */
  long use() {
    return node.output().isEmpty() ? -1 : ((Attribute) node.output().apply(0)).exprId().id();
  }

  void write(StringBuilder out, int id) {
    out.append("{\"n\":\"Scan\",\"id\":").append(id).append(",\"use\":").append(use()).append(',');
    Json.field(out, "table", table);
    Json.field(out.append(','), "format", format);
    if (decided) out.append(",\"decided\":true");
    if (!declined.isEmpty()) Json.field(out.append(','), "declined", declined);
    if (listing != null) {
      // The reader goes by the settings of the session that made the relation, which need not be the one that runs the query.
      out.append(",\"cs\":").append(confOf((HadoopFsRelation) ((LogicalRelation) node).relation()).caseSensitiveAnalysis());
      Json.field(out.append(','), "fp", listing.fingerprint);
      out.append(",\"files\":").append(listing.files.length).append(",\"bytes\":").append(listing.bytes);
    }
    out.append(",\"cols\":[");
    for (int i = 0; i < node.output().size(); i++) {
      if (i > 0) out.append(',');
      column(out, (Attribute) node.output().apply(i));
    }
    out.append("]}");
  }

  private void column(StringBuilder out, Attribute attribute) {
    out.append('[').append(attribute.exprId().id()).append(',');
    Json.string(out, attribute.name());
    Json.string(out.append(','), attribute.dataType().catalogString());
    Json.string(out.append(','), kind(attribute));
    // Written by ALTER TABLE ADD COLUMN ... DEFAULT: files that lack the column do not read as NULL.
    out.append(attribute.metadata().contains("EXISTS_DEFAULT") ? ",1]" : ",0]");
  }

  private String kind(Attribute attribute) {
    if (listing == null || attribute.metadata().contains("__metadata_col")) return "hidden";
    HadoopFsRelation files = (HadoopFsRelation) ((LogicalRelation) node).relation();
    if (has(files.partitionSchema(), attribute.name())) return "partition";
    return has(files.dataSchema(), attribute.name()) ? "data" : "hidden";
  }

  private static boolean has(StructType schema, String name) {
    for (int i = 0; i < schema.length(); i++) if (schema.fields()[i].name().equals(name)) return true;
    return false;
  }
}
