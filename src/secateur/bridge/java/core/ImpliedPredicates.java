package secateur.core;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;

/** Implied conditions as Spark's expressions: columns of the scan against literals of their own type, nothing that could fail. */
public final class ImpliedPredicates {
  private ImpliedPredicates() {}

  public static LogicalPlan above(LogicalPlan read, List conditions) {
    Expression all = null;
    for (int i = 0; i < conditions.size(); i++) {
      Expression next = condition((Map) conditions.get(i), read);
      all = all == null ? next : new And(all, next);
    }
    return all == null ? read : new Filter(all, read);
  }

  private static Expression condition(Map wire, LogicalPlan read) {
    String kind = (String) wire.get("f");
    if (kind.equals("Or")) {
      List sides = (List) wire.get("c");
      return new Or(condition((Map) sides.get(0), read), condition((Map) sides.get(1), read));
    }
    Attribute column = Catalyst.column(((Number) wire.get("a")).longValue(), read);
    if (kind.equals("IsNull")) return new IsNull(column);
    Literal value = new Literal(value((String) wire.get("v"), column.dataType()), column.dataType());
    if (kind.equals("LessThan")) return new LessThan(column, value);
    if (kind.equals("LessThanOrEqual")) return new LessThanOrEqual(column, value);
    if (kind.equals("GreaterThan")) return new GreaterThan(column, value);
    if (kind.equals("GreaterThanOrEqual")) return new GreaterThanOrEqual(column, value);
    throw new IllegalStateException("an implied condition is of the unknown kind " + kind);
  }

  /** A value as Catalyst holds it. */
  public static Object value(String text, DataType type) {
    String name = type.catalogString();
    if (name.equals("tinyint")) return Byte.valueOf(text);
    if (name.equals("smallint")) return Short.valueOf(text);
    if (name.equals("int") || name.equals("date")) return Integer.valueOf(text);
    if (name.equals("bigint") || name.equals("timestamp") || name.equals("timestamp_ntz")) return Long.valueOf(text);
    if (name.equals("float")) return Float.valueOf(text);
    if (name.equals("double")) return Double.valueOf(text);
    if (name.equals("string")) return UTF8String.fromString(text);
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      return new Decimal().set(new scala.math.BigDecimal(new BigDecimal(text)), decimal.precision(), decimal.scale());
    }
    throw new IllegalStateException("an implied condition is on a column of type " + name);
  }
}
