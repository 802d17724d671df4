package secateur.iceberg;

import java.util.Base64;
import java.util.BitSet;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import secateur.core.Bridge;
import secateur.core.FileOrdinalColumn;
import secateur.core.FileSet;
import secateur.core.Json;
import secateur.core.PlanWriter;

/** Values that become known while a query runs: which files of a scan can hold none of them. */
final class RuntimeValues {
  private RuntimeValues() {}

  static boolean comparable(DataType type) {
    String name = type.catalogString();
    return name.equals("tinyint") || name.equals("smallint") || name.equals("int") || name.equals("bigint") || name.equals("date")
        || name.equals("timestamp") || name.equals("timestamp_ntz") || name.equals("string") || name.equals("float")
        || name.equals("double") || name.startsWith("decimal");
  }

  /** The files to skip; null if nothing can be said, for whatever reason. */
  static BitSet skipped(Bridge bridge, long query, FileSet files, Predicate[] predicates) {
    try {
      StringBuilder out = new StringBuilder("{\"op\":\"files\",");
      Json.field(out, "fp", files.fingerprint);
      out.append(",\"lists\":[");
      boolean some = false;
      for (int i = 0; i < predicates.length; i++) some = list(out, predicates[i], some) || some;
      if (!some) return null;
      SQLConf conf = SQLConf.get();
      PlanWriter.settings(out.append("],"), conf);
      Map answer = Json.read(bridge.ask(out.append('}').toString(), Bridge.budget(conf)));
      if (answer.get("skip") == null) return null;
      BitSet skip = BitSet.valueOf(Base64.getDecoder().decode((String) answer.get("skip")));
      return skip.length() > files.count || !files.fingerprint.equals(answer.get("fp")) ? null : skip;
    } catch (Throwable problem) {
      bridge.problem(query, null, "a scan was not narrowed at run time", problem);
      return null;
    }
  }

  /** Whether it carries the row of the subquery that a scan waits for, as the value of a column that no table has. */
  static boolean answers(Predicate predicate) {
    org.apache.spark.sql.connector.expressions.Expression[] parts = predicate.children();
    return parts.length > 0 && parts[0] instanceof NamedReference && ((NamedReference) parts[0]).fieldNames()[0].equals(FileOrdinalColumn.COLUMN);
  }

  static InternalRow row(Predicate predicate) {
    return predicate.children().length == 2 ? (InternalRow) ((LiteralValue) predicate.children()[1]).value() : null;
  }

  static StructType schema(Predicate predicate) {
    return predicate.children().length == 2 ? (StructType) ((LiteralValue) predicate.children()[1]).dataType() : null;
  }

  /** Writes `column IN (values)` as [column, type, [values]]; another kind of predicate is left to the connector. */
  private static boolean list(StringBuilder out, Predicate predicate, boolean comma) {
    if (!predicate.name().equals("IN") && !predicate.name().equals("=")) return false;
    org.apache.spark.sql.connector.expressions.Expression[] parts = predicate.children();
    if (parts.length < 1 || !(parts[0] instanceof NamedReference) || ((NamedReference) parts[0]).fieldNames().length != 1) return false;
    for (int i = 1; i < parts.length; i++) if (!(parts[i] instanceof LiteralValue)) return false;
    if (comma) out.append(',');
    Json.string(out.append('['), ((NamedReference) parts[0]).fieldNames()[0]);
    Json.string(out.append(','), parts.length == 1 ? "void" : ((LiteralValue) parts[1]).dataType().catalogString());
    out.append(",[");
    for (int i = 1; i < parts.length; i++) {
      if (i > 1) out.append(',');
      Json.value(out, ((LiteralValue) parts[i]).value());
    }
    out.append("]]");
    return true;
  }
}
