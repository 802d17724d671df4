package secateur.core;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * Puts what the scans are to read into the plan that was written. A scan is known by its node and its occurrence: the same node may
 * stand in a plan twice, and PlanWriter tells how many scans lie in a node, so that each has the same number wherever a walk begins.
 */
final class PlanEditor {
  private final PlanWriter writer;
  private final ScanEdit[] edits;
  private final QueryState state;

  PlanEditor(PlanWriter writer, ScanEdit[] edits, QueryState state) {
    this.writer = writer;
    this.edits = edits;
    this.state = state;
  }

  LogicalPlan apply(LogicalPlan plan) {
    ScanEdit only = edits.length == 1 ? edits[0] : null;
    LogicalPlan edited = only == null || only.first == null || only.runtime != null ? null : LimitOrder.of(plan, only);
    if (edited == null) edited = edit(plan, 0, reads());
    boolean plain = only != null && only.driver && only.first == null && only.runtime == null;
    if (plain && Units.driver != null) only.narrowed = Units.driver.mark(edited, only.scan, state);
    return edited;
  }

  private LogicalPlan[] reads() {
    LogicalPlan[] reads = new LogicalPlan[edits.length];
    for (int i = 0; i < reads.length; i++) reads[i] = edits[i].reading();
    return reads;
  }

  /** The node, with its scans from number `first` on replaced by what they are to read. */
  private LogicalPlan edit(LogicalPlan node, int first, LogicalPlan[] reads) {
    int end = first + writer.scansIn(node);
    if (end == first) return node;
    if (edits[first].scan.node == node) return reads[first] == null ? node : reads[first];
    for (int i = first; i < end; i++) {
      if (edits[i].runtime != null && writer.isPlace(edits[i].runtime, node, first)) waitForValues(i, node, first, reads);
    }
    int next = first;
    LogicalPlan edited = node;
    Subqueries inner = new Subqueries(node, first, reads);
    if (inner.end > first) {
      edited = (LogicalPlan) node.mapExpressions(inner);
      next = inner.end;
    }
    List children = new ArrayList();
    boolean same = true;
    for (int i = 0; i < node.children().size(); i++) {
      LogicalPlan child = (LogicalPlan) node.children().apply(i);
      LogicalPlan after = edit(child, next, reads);
      next += writer.scansIn(child);
      same = same && after == child;
      children.add(after);
    }
    if (next != end) throw new IllegalStateException(node.nodeName() + " has other scans than when it was written");
    return same ? edited : (LogicalPlan) edited.withNewChildren(Catalyst.seq(children));
  }

  /** Makes a scan wait for what a subquery finds out. What the copy of a part of the plan in it reads, no other scan is to read. */
  private void waitForValues(int id, LogicalPlan place, int first, LogicalPlan[] reads) {
    ScanEdit edit = edits[id];
    LogicalPlan waiting = null;
    try {
      LogicalPlan values = values(id, place, first, (LogicalPlan[]) reads.clone());
      waiting = values == null ? null : edit.scan.waiting(edit.skipped, edit.predicate(state), values);
      if (waiting != null) waiting = edit.reading(Units.runtime.fewerRows(waiting, values, place, edit.runtime));
    } catch (Exception other) {
      waiting = null; // this Spark has other classes: the scan is read as it was decided
    } catch (LinkageError other) {
      waiting = null;
    }
    edit.narrowed = waiting != null;
    if (waiting != null) reads[id] = waiting;
  }

  /** A sort over the files of a probe, or the other side of a join, summed up in one row. */
  private LogicalPlan values(int id, LogicalPlan place, int first, LogicalPlan[] reads) throws Exception {
    if (Units.runtime == null) return null;
    int child = 0;
    if (place instanceof Join) child = Integer.valueOf(1).equals(edits[id].runtime.get("left")) ? 0 : 1;
    else reads[id] = edits[id].probe();
    int from = new Subqueries(place, first, reads).end;
    for (int i = 0; i < child; i++) from += writer.scansIn((LogicalPlan) place.children().apply(i));
    LogicalPlan input = edit((LogicalPlan) place.children().apply(child), from, reads);
    // What gives other rows when it runs again tells nothing of the rows of this run.
    return input.deterministic() ? Units.runtime.values(place, input, edits[id].runtime) : null;
  }

  /** Edits the subqueries in the expressions of a node. */
  private final class Subqueries extends AbstractFunction1 {
    final int end; // the number after that of the last scan in them
    private final LogicalPlan[] reads;
    private final Map numbers = new IdentityHashMap(); // plan -> the number of its first scan, for each occurrence

    Subqueries(LogicalPlan node, int first, LogicalPlan[] reads) {
      this.reads = reads;
      List found = new ArrayList();
      List expressions = Catalyst.list(node.expressions());
      for (int i = 0; i < expressions.size(); i++) PlanWriter.subqueries((Expression) expressions.get(i), found);
      int next = first;
      for (int i = 0; i < found.size(); i++) {
        Object plan = ((PlanExpression) found.get(i)).plan();
        if (!numbers.containsKey(plan)) numbers.put(plan, new ArrayDeque());
        ((ArrayDeque) numbers.get(plan)).add(Integer.valueOf(next));
        next += writer.scansIn((LogicalPlan) plan);
      }
      end = next;
    }

    public Object apply(Object e) {
      return ((Expression) e).transformDown(new OfExpression(this));
    }

    Object edited(PlanExpression e) {
      ArrayDeque left = (ArrayDeque) numbers.get(e.plan());
      if (left == null || left.isEmpty()) return e;
      LogicalPlan before = (LogicalPlan) e.plan();
      LogicalPlan after = edit(before, ((Integer) left.poll()).intValue(), reads);
      return after == before ? e : e.withNewPlan(after);
    }
  }

  static final class OfExpression extends AbstractPartialFunction {
    private final Subqueries subqueries;

    OfExpression(Subqueries subqueries) {
      this.subqueries = subqueries;
    }

    public boolean isDefinedAt(Object e) {
      return e instanceof PlanExpression && ((PlanExpression) e).plan() instanceof LogicalPlan;
    }

    public Object applyOrElse(Object e, scala.Function1 otherwise) {
      return isDefinedAt(e) ? subqueries.edited((PlanExpression) e) : otherwise.apply(e);
    }
  }
}
