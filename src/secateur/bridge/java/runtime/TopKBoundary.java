package secateur.runtime;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;
import secateur.core.CaseClass;
import secateur.core.Catalyst;

/**
 * The subquery that tells where the first k rows of a sort end, as far as a few files go: one row with one struct, of how many rows
 * there were (k at most), how many of them had a value of the first sort key, and the last of these.
 */
final class TopKBoundary {
  private TopKBoundary() {}

  /** `input` is what the sort sorts, over fewer files. */
  static LogicalPlan of(Sort sort, LogicalPlan input, int count) throws Exception {
    SortOrder order = (SortOrder) sort.order().apply(0);
    Alias key = Catalyst.named(order.child(), "key");
    LogicalPlan keys = new Project(Catalyst.seq(new Object[] {key}), input);
    Object byKey = new SortOrder(key.toAttribute(), order.direction(), order.nullOrdering(), Catalyst.none());
    LogicalPlan sorted = (LogicalPlan) ((LogicalPlan) CaseClass.with(sort, "order", Catalyst.seq(new Object[] {byKey}))).withNewChildren(Catalyst.seq(new Object[] {keys}));
    Literal limit = new Literal(Integer.valueOf(count), DataTypes.IntegerType);
    LogicalPlan first = new GlobalLimit(limit, new LocalLimit(limit, sorted));
    boolean descending = order.direction().sql().equals("DESC");
    Expression found = new CreateNamedStruct(Catalyst.seq(new Object[] {
        Expressions.text("rows"), Expressions.of(new Count(Catalyst.seq(new Object[] {new Literal(Integer.valueOf(1), DataTypes.IntegerType)}))),
        Expressions.text("values"), Expressions.of(new Count(Catalyst.seq(new Object[] {key.toAttribute()}))),
        Expressions.text("last"), Expressions.of(descending ? (AggregateFunction) new Min(key.toAttribute()) : (AggregateFunction) new Max(key.toAttribute()))}));
    LogicalPlan one = new Aggregate(Catalyst.none(), Catalyst.seq(new Object[] {Catalyst.named(found, "boundary")}), first, Option.empty());
    return (LogicalPlan) ColumnPruning$.MODULE$.apply(one);
  }
}
