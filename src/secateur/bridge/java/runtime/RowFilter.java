package secateur.runtime;

import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import secateur.core.Catalyst;
import secateur.core.ImpliedPredicates;

/**
 * What a scan waits for as comparisons with scalar subqueries, which Spark hands to Parquet once these have run. It does so only if the
 * subquery is the whole other side, so each is a subquery of its own around the one that is waited for, which Spark runs once for all.
 */
final class RowFilter {
  private RowFilter() {}

  static LogicalPlan above(LogicalPlan read, LogicalPlan values, LogicalPlan place, Map wire) {
    Map compare = (Map) wire.get("compare");
    if (compare == null || !SQLConf.get().subqueryReuseEnabled()) return read; // what is waited for is not to run twice
    Attribute column = Catalyst.column(((Number) compare.get("a")).longValue(), read);
    Literal low = end(compare, "low", column);
    Literal high = end(compare, "high", column);
    Alias found = Catalyst.named(SubqueryPruning.valueOf(values), "found");
    LogicalPlan row = new Project(Catalyst.seq(new Object[] {found}), new OneRowRelation());
    if (!(place instanceof Sort)) {
      Expression all = new LessThanOrEqual(field(found, 0), Expressions.number(wire.get("most"))); // else some keys were left out
      Expression least = value(all, field(found, 2), low, row);
      Expression greatest = value(all, field(found, 3), high, row);
      return new Filter(new And(atLeast(column, least), atMost(column, greatest)), read);
    }
    Expression enough = new And(
        new GreaterThanOrEqual(field(found, 0), Expressions.number(wire.get("count"))),
        new GreaterThanOrEqual(field(found, 1), Expressions.number(wire.get("values"))));
    boolean atLeast = Integer.valueOf(1).equals(wire.get("at_least"));
    Expression boundary = value(enough, field(found, 2), atLeast ? low : high, row);
    return new Filter(atLeast ? atLeast(column, boundary) : atMost(column, boundary), read);
  }

  private static Expression atLeast(Attribute column, Expression value) {
    return new Or(new IsNull(column), new GreaterThanOrEqual(column, value));
  }

  private static Expression atMost(Attribute column, Expression value) {
    return new Or(new IsNull(column), new LessThanOrEqual(column, value));
  }

  /** A subquery for what was found, or for an end of the type, which rules out nothing. */
  private static Expression value(Expression sure, Expression found, Literal end, LogicalPlan row) {
    Expression same = found.dataType().equals(end.dataType()) ? found : (Expression) Cast$.MODULE$.apply(found, end.dataType(), false);
    Expression either = new Coalesce(Catalyst.seq(new Object[] {new If(sure, same, end), end}));
    return SubqueryPruning.valueOf(new Project(Catalyst.seq(new Object[] {Catalyst.named(either, "bound")}), row));
  }

  private static Expression field(Alias found, int at) {
    return new GetStructField(found.toAttribute(), at, Option.empty());
  }

  private static Literal end(Map compare, String side, Attribute column) {
    return new Literal(ImpliedPredicates.value((String) compare.get(side), column.dataType()), column.dataType());
  }
}
