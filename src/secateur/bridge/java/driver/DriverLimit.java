package secateur.driver;

import org.apache.spark.SparkContext$;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CollectLimitExec;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import secateur.core.Bridge;
import secateur.core.Catalyst;

/**
 * Plans a query that ends with a LIMIT as Spark does, but for one node: where Python found that the driver may read the rows itself,
 * the LIMIT was marked by the optimizer's rules, and here it becomes a DriverLimitExec.
 */
final class DriverLimit extends SparkStrategy {
  private static final TreeNodeTag MARK = new TreeNodeTag("secateur.driver");
  private final Bridge bridge;
  private final SparkSession session;

  private DriverLimit(Bridge bridge, SparkSession session) {
    this.bridge = bridge;
    this.session = session;
  }

  static boolean mark(LogicalPlan plan, DriverRows rows) {
    if (!(plan instanceof GlobalLimit) || isForConnect()) return false;
    plan.setTagValue(MARK, rows);
    return true;
  }

  /** The server of Spark Connect collects rows by a job unless the topmost node is Spark's own, and then by one that reads on as needed. */
  private static boolean isForConnect() {
    Option spark = SparkContext$.MODULE$.getActive();
    String tags = spark.isEmpty() ? null : ((SparkContext) spark.get()).getLocalProperty("spark.job.tags");
    return tags != null && tags.contains("SparkConnect");
  }

  public Seq apply(LogicalPlan plan) {
    try {
      if (!(plan instanceof ReturnAnswer) || !bridge.isOn()) return Catalyst.none();
      Option marked = ((ReturnAnswer) plan).child().getTagValue(MARK);
      if (marked.isEmpty()) return Catalyst.none();
      Seq planned = session.sessionState().planner().SpecialLimits().apply(plan);
      if (planned.size() != 1 || !(planned.apply(0) instanceof CollectLimitExec)) return Catalyst.none();
      CollectLimitExec limit = (CollectLimitExec) planned.apply(0);
      if (limit.limit() < 0) return Catalyst.none();
      return Catalyst.seq(new Object[] {new DriverLimitExec(limit.limit(), limit.child(), limit.offset(), (DriverRows) marked.get())});
    } catch (Throwable problem) { // Spark's own strategies come next
      bridge.problem("a LIMIT is not read by the driver", problem);
      return Catalyst.none();
    }
  }

  /** Spark asks for a session's strategies whenever it plans. */
  static final class Of extends AbstractFunction1 {
    private final Bridge bridge;

    Of(Bridge bridge) {
      this.bridge = bridge;
    }

    public Object apply(Object session) {
      return new DriverLimit(bridge, (SparkSession) session);
    }
  }
}
