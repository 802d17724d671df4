package secateur.core;

import java.util.Base64;
import java.util.BitSet;
import java.util.Collections;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** A leaf that reads a table, as its format sees it. */
public abstract class Scan {
  public final LogicalPlan node;
  public String table = "";
  public String format = "";
  public String declined = ""; // why it is left alone
  public boolean decided = false; // by an earlier step
  public boolean random = false; // something like rand(42) lies above it, so that even the order of its files shows in the result
  public FileSet files; // null if it is left alone, or was decided and is not looked at again
  public BitSet skipped; // of a scan that was decided and is looked at again, the files that are skipped already

  public Scan(LogicalPlan node) {
    this.node = node;
  }

  public boolean open() {
    return declined.isEmpty() && (!decided || skipped != null);
  }

  /** A node that reads all files but these. The scan's own node, and what it holds, stay as they are. */
  public LogicalPlan without(BitSet skip) throws Exception {
    throw new UnsupportedOperationException(table + " cannot be pruned");
  }

  /**
   * A node that reads all files but these, and of the others, once the query runs, those that the predicate leaves: `values` is a plan
   * of one row with one struct, to be run first. Null if that cannot be had.
   */
  public LogicalPlan waiting(BitSet skip, RuntimePredicate predicate, LogicalPlan values) throws Exception {
    return null;
  }

  /** What to read by if no file is skipped, null if that is the node itself. */
  public LogicalPlan asListed() throws Exception {
    return null;
  }

  /** Where a column's values come from: data, partition, or hidden if nothing can be known of them. */
  public abstract String kind(Attribute attribute);

  public boolean caseSensitive() {
    return false;
  }

  /** Whether Spark passes over files that are gone or damaged: then the rows that a file has need not arrive. */
  private boolean lossy() {
    SQLConf conf = SQLConf.get();
    if (conf.ignoreCorruptFiles() || conf.ignoreMissingFiles()) return true;
    if (!(node instanceof LogicalRelation) || !(((LogicalRelation) node).relation() instanceof HadoopFsRelation)) return false;
    HadoopFsRelation source = (HadoopFsRelation) ((LogicalRelation) node).relation();
    SQLConf own = source.sparkSession().sessionState().conf();
    if (own.ignoreCorruptFiles() || own.ignoreMissingFiles()) return true;
    scala.collection.Iterator it = source.options().keysIterator();
    while (it.hasNext()) {
      String key = ((String) it.next()).toLowerCase(Locale.ROOT);
      if (key.equals("ignorecorruptfiles") || key.equals("ignoremissingfiles")) return true;
    }
    return false;
  }

  /** Spark gives every use of a table attribute ids of its own, so the first one names the use. */
  public long use() {
    return node.output().isEmpty() ? -1 : ((Attribute) node.output().apply(0)).exprId().id();
  }

  /** Without its columns, for a record or a collection. */
  public void write(StringBuilder out, int id) {
    write(out, id, Collections.EMPTY_SET);
  }

  /** With those of its columns whose ids are mentioned: nobody asks about the others, and most tables have many. */
  public void write(StringBuilder out, int id, Set mentioned) {
    out.append("{\"n\":\"Scan\",\"id\":").append(id).append(",\"use\":").append(use()).append(',');
    Json.field(out, "table", table);
    Json.field(out.append(','), "format", format);
    if (decided) out.append(",\"decided\":true");
    if (!declined.isEmpty()) Json.field(out.append(','), "declined", declined);
    if (files != null) {
      out.append(",\"cs\":").append(caseSensitive());
      Json.field(out.append(','), "fp", files.fingerprint);
      if (lossy()) out.append(",\"lossy\":1");
      if (skipped != null) Json.field(out.append(','), "skipped", Base64.getEncoder().encodeToString(skipped.toByteArray()));
      out.append(",\"files\":").append(files.count).append(",\"bytes\":").append(files.bytes);
    }
    out.append(",\"cols\":[");
    boolean first = true;
    for (int i = 0; !mentioned.isEmpty() && i < node.output().size(); i++) {
      Attribute attribute = (Attribute) node.output().apply(i);
      if (!mentioned.contains(Long.valueOf(attribute.exprId().id()))) continue;
      if (!first) out.append(',');
      first = false;
      column(out, attribute);
    }
    out.append("]}");
  }

  private void column(StringBuilder out, Attribute attribute) {
    out.append('[').append(attribute.exprId().id()).append(',');
    Json.string(out, attribute.name());
    Json.string(out.append(','), attribute.dataType().catalogString());
    Json.string(out.append(','), files == null ? "hidden" : kind(attribute));
    // Written by ALTER TABLE ADD COLUMN ... DEFAULT: files that lack the column do not read as NULL.
    out.append(attribute.metadata().contains("EXISTS_DEFAULT") ? ",1]" : ",0]");
  }

  public static boolean has(StructType schema, String name) {
    for (int i = 0; i < schema.length(); i++) if (schema.fields()[i].name().equals(name)) return true;
    return false;
  }

  /** Statistics of the catalog would hide the reduced size from the choice of join strategies. */
  public static LogicalPlan withSize(Object edited, long size) throws Exception {
    LogicalRelation relation = (LogicalRelation) edited;
    if (relation.catalogTable().isEmpty()) return relation;
    CatalogTable table = (CatalogTable) relation.catalogTable().get();
    if (table.stats().isEmpty()) return relation;
    Object stats = CaseClass.with(table.stats().get(), "sizeInBytes", scala.math.BigInt.apply(size));
    return (LogicalPlan) CaseClass.with(relation, "catalogTable", Option.apply(CaseClass.with(table, "stats", Option.apply(stats))));
  }
}
