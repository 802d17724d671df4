package secateur.core;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.optimizer.PropagateEmptyRelation$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.plans.logical.WindowGroupLimit;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.SetCommand;
import org.apache.spark.sql.internal.SQLConf;

/** Both steps in the optimizer: write the plan, ask Python, apply the answer. Whatever goes wrong, the plan stays. */
public final class PruneRule extends Rule {
  private final Bridge bridge;
  private final SparkSession session;
  private final boolean late;

  PruneRule(Bridge bridge, SparkSession session, boolean late) {
    this.bridge = bridge;
    this.session = session;
    this.late = late;
  }

  boolean isOf(SparkSession other) {
    return session == other;
  }

  public String ruleName() {
    return late ? "secateur.Late" : "secateur.Early";
  }

  public TreeNode apply(TreeNode node) {
    if (!bridge.isOn()) return node;
    // Spark optimizes a subquery alone before it joins it with the rest. Too early: whether something random lies above it is not
    // known yet (rule S9), and an emptied one loses the aggregate that Spark looks for, so that COUNT gives NULL instead of 0.
    if (node instanceof Subquery) return node;
    Call call = null;
    try {
      SQLConf conf = session.sessionState().conf();
      if (!late && node instanceof SetCommand) {
        String refusal = bridge.refusal((SetCommand) node, conf);
        if (refusal != null) throw new Refused(refusal);
        return node;
      }
      if (Bridge.option(conf, "enabled", "true").equalsIgnoreCase("false")) return node;
      call = new Call(bridge, conf, late);
      LogicalPlan edited = prune((LogicalPlan) node, call, conf);
      if (late && call.state.emptied) {
        PlanWriter left = new PlanWriter(true, call.state, conf);
        left.plan(edited);
        call.left = left.scans;
      }
      call.close();
      return edited;
    } catch (Refused refused) {
      throw refused;
    } catch (Throwable problem) {
      if (problem instanceof InterruptedException) Thread.currentThread().interrupt();
      if (call != null) call.fail(problem);
      return node;
    }
  }

  private LogicalPlan prune(LogicalPlan plan, Call call, SQLConf conf) throws Exception {
    call.state.root = plan;
    call.state.observed = has(plan, "CollectMetrics");
    call.state.recursive = has(plan, "UnionLoop");
    boolean related = relatesRows(plan);
    call.state.reopens = late && related;
    call.state.waits = !late && related && !conf.cboEnabled(); // Spark's own reordering of joins goes by the sizes of the early step
    PlanWriter writer = new PlanWriter(late, call.state, conf);
    writer.plan(plan);
    call.scans = writer.scans;
    boolean ask = writer.undecided();
    call.report = ask || writer.declined();
    if (!ask) return plan;
    for (int i = 0; i < writer.scans.size(); i++) {
      Scan scan = (Scan) writer.scans.get(i);
      if (scan.files == null) continue;
      call.state.add(scan.use());
      if (late) call.state.close(scan.use());
    }
    Map answer = call.decide(writer);
    EditReader reader = new EditReader(writer.scans, call.state);
    reader.read((List) answer.get("edits"));
    LogicalPlan edited = new PlanEditor(writer, reader.edits, call.state).apply(plan);
    call.edits = reader.edits;
    call.applied = reader.pruned;
    call.state.emptied = call.state.emptied || reader.emptied;
    // After the early step Spark does this itself.
    return late && reader.emptied ? PropagateEmptyRelation$.MODULE$.apply(edited) : edited;
  }

  /** Whether rows are needed only if other rows are there, as in a join, a window or ORDER BY with LIMIT: what the filters of one scan cannot tell. */
  private static boolean relatesRows(LogicalPlan plan) {
    if (plan instanceof Join || plan instanceof WindowGroupLimit || plan instanceof LocalLimit && sorted(((LocalLimit) plan).child())) return true;
    for (int i = 0; i < plan.children().size(); i++) if (relatesRows((LogicalPlan) plan.children().apply(i))) return true;
    List inner = Catalyst.list(plan.subqueries());
    for (int i = 0; i < inner.size(); i++) if (relatesRows((LogicalPlan) inner.get(i))) return true;
    return false;
  }

  private static boolean sorted(LogicalPlan plan) {
    while (plan instanceof Project || plan instanceof Filter) plan = (LogicalPlan) plan.children().apply(0);
    return plan instanceof Sort;
  }

  /** Whether a node of some class is anywhere in a plan, by its name: not every Spark has it. */
  private static boolean has(LogicalPlan plan, String node) {
    if (plan.getClass().getSimpleName().equals(node)) return true;
    for (int i = 0; i < plan.children().size(); i++) if (has((LogicalPlan) plan.children().apply(i), node)) return true;
    List inner = Catalyst.list(plan.subqueries());
    for (int i = 0; i < inner.size(); i++) if (has((LogicalPlan) inner.get(i), node)) return true;
    return false;
  }

  /** A wrong option in a SET command: the only error that secateur raises in a query. */
  static final class Refused extends IllegalArgumentException {
    Refused(String text) {
      super(text);
    }
  }
}
