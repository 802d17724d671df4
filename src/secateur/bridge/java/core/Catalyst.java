package secateur.core;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** What Java needs to make Catalyst's nodes, whose sequences are Scala's. */
public final class Catalyst {
  private Catalyst() {}

  public static Seq seq(Object[] items) {
    scala.collection.immutable.List out = none();
    for (int i = items.length - 1; i >= 0; i--) out = out.$colon$colon(items[i]);
    return (Seq) out;
  }

  public static Seq seq(List items) {
    return seq(items.toArray());
  }

  public static scala.collection.immutable.List none() {
    return (scala.collection.immutable.List) Nil$.MODULE$;
  }

  public static List list(scala.collection.Iterable items) {
    List out = new ArrayList();
    scala.collection.Iterator it = items.iterator();
    while (it.hasNext()) out.add(it.next());
    return out;
  }

  public static Alias named(Expression e, String name) {
    return new Alias(e, name, NamedExpression$.MODULE$.newExprId(), none(), Option.empty(), none());
  }

  /** The column of a plan that has this id. */
  public static Attribute column(long id, LogicalPlan plan) {
    for (int i = 0; i < plan.output().size(); i++) {
      Attribute attribute = (Attribute) plan.output().apply(i);
      if (attribute.exprId().id() == id) return attribute;
    }
    throw new IllegalStateException(plan.nodeName() + " has no column " + id);
  }
}
