package secateur.runtime;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint$;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import scala.Option;
import scala.collection.immutable.Seq;
import secateur.core.CaseClass;
import secateur.core.Catalyst;
import secateur.core.FileOrdinalColumn;
import secateur.core.RuntimePredicate;
import secateur.core.RuntimePruning;

/** Values of run time by way of Spark's own subqueries, which run before the scan that uses them. */
public final class SubqueryPruning extends RuntimePruning {
  public LogicalPlan values(LogicalPlan place, LogicalPlan input, Map wire) throws Exception {
    return place instanceof Sort ? TopKBoundary.of((Sort) place, input, ((Number) wire.get("count")).intValue()) : JoinKeys.of(input, wire);
  }

  /** What is above the relation does not see the hidden column. */
  public LogicalPlan fewerFiles(
      LogicalRelation relation, HadoopFsRelation source, Metadata metadata, RuntimePredicate predicate, LogicalPlan values) throws Exception {
    AttributeReference file = column(DataTypes.IntegerType, false, metadata);
    List output = Catalyst.list(relation.output());
    output.add(file);
    Object numbered = CaseClass.with(CaseClass.with(relation, "relation", source), "output", Catalyst.seq(output));
    return new Project((Seq) relation.output(), new Filter(new KeepFile(file, valueOf(values), predicate), (LogicalPlan) numbered));
  }

  /**
   * Spark hands a scan at run time what a dynamic pruning subquery finds, and that only as a list of values for a column: here the
   * one row that is waited for, under the name of a column that there is not. Such a filter is a hint, Spark never evaluates it.
   */
  public LogicalPlan filteredAtRuntime(LogicalPlan scan, LogicalPlan values) {
    Attribute value = (Attribute) values.output().apply(0);
    Expression hint = new DynamicPruningSubquery(
        column(value.dataType(), true, Metadata.empty()), values, Catalyst.seq(new Object[] {value}),
        Catalyst.seq(new Object[] {Integer.valueOf(0)}), false, NamedExpression$.MODULE$.newExprId(), Option.empty());
    return new Filter(hint, scan);
  }

  public LogicalPlan fewerRows(LogicalPlan read, LogicalPlan values, LogicalPlan place, Map wire) {
    return RowFilter.above(read, values, place, wire);
  }

  private static AttributeReference column(org.apache.spark.sql.types.DataType type, boolean nullable, Metadata metadata) {
    return new AttributeReference(
        FileOrdinalColumn.COLUMN, type, nullable, metadata, NamedExpression$.MODULE$.newExprId(), Catalyst.none());
  }

  /** The one value that a plan gives. */
  static ScalarSubquery valueOf(LogicalPlan plan) {
    return new ScalarSubquery(
        plan, Catalyst.none(), NamedExpression$.MODULE$.newExprId(), Catalyst.none(), Option.empty(), Option.empty(), Option.empty());
  }

  /** Makes each kind of plan once, over a table without rows. */
  public void probe() throws Exception {
    Attribute key = column(DataTypes.IntegerType, true, Metadata.empty());
    LogicalPlan table = LocalRelation$.MODULE$.apply(Catalyst.seq(new Object[] {key}));
    Object order = new SortOrder(key, Ascending$.MODULE$, Ascending$.MODULE$.defaultNullOrdering(), Catalyst.none());
    LogicalPlan sort = (LogicalPlan) new Sort(Catalyst.seq(new Object[] {order}), true, table, Option.empty());
    LogicalPlan join = new Join(table, table, Inner$.MODULE$, Option.empty(), JoinHint$.MODULE$.NONE());
    Map compare = new HashMap();
    compare.put("a", Long.valueOf(key.exprId().id()));
    compare.put("low", "0");
    compare.put("high", "9");
    Map wire = new HashMap();
    wire.put("count", Integer.valueOf(1));
    wire.put("values", Integer.valueOf(1));
    wire.put("at_least", Integer.valueOf(1));
    wire.put("key", compare.get("a"));
    wire.put("most", Integer.valueOf(1));
    wire.put("compare", compare);
    LogicalPlan[] places = {sort, join};
    for (int i = 0; i < places.length; i++) {
      LogicalPlan found = values(places[i], table, wire);
      filteredAtRuntime(fewerRows(table, found, places[i], wire), found);
    }
    Map map = new HashMap();
    map.put("low", Integer.valueOf(0));
    map.put("high", Integer.valueOf(9));
    map.put("width", Integer.valueOf(1));
    wire.remove("most");
    wire.put("map", map);
    values(join, table, wire);
    new KeepFile(new Literal(null, DataTypes.IntegerType), valueOf(table), null).eval((InternalRow) null);
  }
}
