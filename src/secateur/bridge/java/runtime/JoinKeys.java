package secateur.runtime;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BitmapConstructAgg;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.IntegralDivide;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.catalyst.expressions.UnixDate;
import org.apache.spark.sql.catalyst.expressions.UnixMicros;
import org.apache.spark.sql.catalyst.expressions.aggregate.CollectList;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.collection.immutable.Seq;
import secateur.core.Catalyst;

/**
 * The subquery that sums up the keys of one side of a join: one row with one struct, of how many there were and either the distinct
 * keys, up to a number, with the least and the greatest of them where rows are compared with those, or a map of 32,768 bits over equal
 * ranges of the numbers that the other side's files hold.
 */
final class JoinKeys {
  private JoinKeys() {}

  static LogicalPlan of(LogicalPlan side, Map wire) throws Exception {
    Attribute key = Catalyst.column(((Number) wire.get("key")).longValue(), side);
    LogicalPlan keys = new Project(Catalyst.seq(new Object[] {key}), side);
    LogicalPlan found = wire.containsKey("most")
        ? list(key, keys, ((Number) wire.get("most")).intValue(), wire.get("compare") != null)
        : map(key, keys, (Map) wire.get("map"));
    return (LogicalPlan) ColumnPruning$.MODULE$.apply(found);
  }

  private static LogicalPlan list(Attribute key, LogicalPlan keys, int most, boolean compared) {
    Seq one = Catalyst.seq(new Object[] {key});
    LogicalPlan distinct = new Aggregate(one, one, new Filter(new IsNotNull(key), keys), Option.empty());
    Literal limit = new Literal(Integer.valueOf(most + 1), DataTypes.IntegerType);
    LogicalPlan some = new GlobalLimit(limit, new LocalLimit(limit, distinct));
    return summary(some, "keys", Expressions.of(new CollectList(key)), compared ? key : null);
  }

  private static LogicalPlan map(Attribute key, LogicalPlan keys, Map wire) {
    Expression number = number(key);
    Literal low = Expressions.number(wire.get("low"));
    Expression inside = new And(new GreaterThanOrEqual(number, low), new LessThanOrEqual(number, Expressions.number(wire.get("high"))));
    LogicalPlan some = new Filter(new And(new IsNotNull(key), inside), keys);
    Expression bit = new IntegralDivide(new Subtract(number, low), Expressions.number(wire.get("width")));
    return summary(some, "bits", Expressions.of(new BitmapConstructAgg(bit)), null);
  }

  private static LogicalPlan summary(LogicalPlan some, String name, Expression found, Attribute ends) {
    Expression count = Expressions.of(new Count(Catalyst.seq(new Object[] {new Literal(Integer.valueOf(1), DataTypes.IntegerType)})));
    List fields = new ArrayList(Arrays.asList(new Object[] {Expressions.text("count"), count, Expressions.text(name), found}));
    if (ends != null) {
      fields.addAll(Arrays.asList(new Object[] {Expressions.text("least"), Expressions.of(new Min(ends))}));
      fields.addAll(Arrays.asList(new Object[] {Expressions.text("greatest"), Expressions.of(new Max(ends))}));
    }
    Expression all = new CreateNamedStruct(Catalyst.seq(fields.toArray()));
    return new Aggregate(Catalyst.none(), Catalyst.seq(new Object[] {Catalyst.named(all, "keys")}), some, Option.empty());
  }

  /** As Python counts dates and timestamps, too. */
  private static Expression number(Attribute key) {
    if (key.dataType().equals(DataTypes.TimestampType)) return new UnixMicros(key);
    if (key.dataType().equals(DataTypes.LongType)) return key;
    Expression whole = key.dataType().equals(DataTypes.DateType) ? (Expression) new UnixDate(key) : (Expression) key;
    return Cast$.MODULE$.apply(whole, DataTypes.LongType, false);
  }
}
