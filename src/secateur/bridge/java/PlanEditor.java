package secateur;

import java.util.ArrayList;
import java.util.Base64;
import java.util.BitSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/** Applies the edits of one decision to the plan that was written: nothing here decides. */
final class PlanEditor {
  private final List scans;
  private final List places;
  private final QueryState state;
  private final LogicalPlan[] edits;
  private final List[] implied; // per scan, conditions to put above it, null if none
  private final Asked[] asked; // per scan, what it is to ask at run time, null if nothing
  private BitSet first = null; // of the only scan, files to be read before the others
  private BitSet skipped = null; // of the same, those that are not read
  private int driver = -1; // the scan that the driver may read itself, if the plan ends with a LIMIT
  private int next = 0;
  final int[] changed; // per scan, files that Python skipped and that are kept, since they are not as they were listed
  private final Map unchanged = new IdentityHashMap(); // per file set, the files that were looked at and are as they were listed
  private final Boolean[] stale; // per scan, whether a file that may be read is not as it was listed; null if nobody asked yet
  final boolean[] unsaid; // per scan, implied conditions were left out, since files are not as they were listed
  final boolean[] asking; // per scan, it asks at run time
  boolean pruned = false;
  boolean emptied = false;

  PlanEditor(List scans, List places, QueryState state) {
    this.scans = scans;
    this.places = places;
    this.state = state;
    this.edits = new LogicalPlan[scans.size()];
    this.implied = new List[scans.size()];
    this.asked = new Asked[scans.size()];
    this.asking = new boolean[scans.size()];
    this.changed = new int[scans.size()];
    this.unsaid = new boolean[scans.size()];
    this.stale = new Boolean[scans.size()];
  }

  void read(List wanted) throws Exception {
    for (int i = 0; i < wanted.size(); i++) {
      Map edit = (Map) wanted.get(i);
      int id = ((Number) edit.get("scan")).intValue();
      Scan scan = (Scan) scans.get(id);
      if (scan.files == null) throw new IllegalStateException("an edit names scan " + id + ", which has no listing");
      if (!scan.files.fingerprint.equals(edit.get("fp"))) throw new IllegalStateException("an edit is for another listing");
      BitSet skip = BitSet.valueOf(Base64.getDecoder().decode((String) edit.get("skip")));
      if (skip.length() > scan.files.count) throw new IllegalStateException("an edit skips files that do not exist");
      if (skip.cardinality() != ((Number) edit.get("skipped")).intValue()) throw new IllegalStateException("an edit does not add up");
      if (scan.skipped != null) skip.andNot(scan.skipped); // those were looked at when they were skipped
      if (restsOnChanged((List) edit.get("relies"))) {
        changed[id] += skip.cardinality();
        unsaid[id] = true;
        continue;
      }
      changed[id] += keepChanged(scan.files, skip);
      if (scan.skipped != null && !skip.isEmpty()) skip.or(scan.skipped);
      if (Integer.valueOf(1).equals(edit.get("rows")) && keptHasChanged(id, scan, skip)) continue;
      imply(id, scan, (List) edit.get("implied"), edit.get("counted"), skip);
      BitSet all = skip.isEmpty() && scan.skipped != null ? scan.skipped : skip;
      if (edit.get("runtime") != null && !state.recursive && all.cardinality() < scan.files.count) asked[id] = new Asked(scan, all, (Map) edit.get("runtime"), state);
      if (edit.get("first") != null && scans.size() == 1 && asked[id] == null) {
        first = BitSet.valueOf(Base64.getDecoder().decode((String) edit.get("first")));
        skipped = all;
        if (first.length() > scan.files.count || first.intersects(skipped)) throw new IllegalStateException("files that are not read are to come first");
      }
      if (edit.get("driver") != null && scans.size() == 1 && asked[id] == null && first == null && changed[id] == 0) driver = id;
      if (skip.isEmpty()) continue;
      pruned = true;
      edits[id] = skip.cardinality() == scan.files.count && !state.observed ? empty(scan) : scan.without(skip);
    }
  }

  /** Whether an edit rests on what the files of other scans hold, and one of these is not as it was listed. */
  private boolean restsOnChanged(List others) {
    boolean found = false;
    for (int i = 0; others != null && i < others.size(); i++) {
      int id = ((Number) others.get(i)).intValue();
      Scan scan = (Scan) scans.get(id);
      if (stale[id] == null) {
        BitSet all = new BitSet();
        all.set(0, scan.files.count);
        if (scan.skipped != null) all.andNot(scan.skipped);
        stale[id] = Boolean.valueOf(keepChanged(scan.files, all) > 0);
      }
      found = found || stale[id].booleanValue();
    }
    return found;
  }

  /** An edit that rests on the rows of the files that are kept is void if one of them is not as it was listed. */
  private boolean keptHasChanged(int id, Scan scan, BitSet skip) {
    int others = changedOfKept(scan, skip);
    changed[id] += others;
    unsaid[id] = others > 0;
    return others > 0;
  }

  private int changedOfKept(Scan scan, BitSet skip) {
    BitSet kept = (BitSet) skip.clone();
    kept.flip(0, scan.files.count);
    return keepChanged(scan.files, kept);
  }

  private int keepChanged(FileSet files, BitSet skip) {
    BitSet seen = (BitSet) unchanged.get(files);
    if (seen == null) unchanged.put(files, seen = new BitSet());
    return files.keepChanged(skip, seen);
  }

  private void imply(int id, Scan scan, List conditions, Object counted, BitSet skip) {
    if (conditions == null) return;
    if (counted instanceof Number && ((Number) counted).intValue() != 0) unsaid[id] = changedOfKept(scan, skip) > 0;
    if (!unsaid[id]) implied[id] = conditions;
  }

  /** Puts the implied conditions above what is read; to be called last. */
  void imply() {
    for (int i = 0; i < edits.length; i++) {
      Scan scan = (Scan) scans.get(i);
      if (implied[i] == null || edits[i] instanceof LocalRelation) continue;
      LogicalPlan read = edits[i] == null ? scan.node : edits[i];
      edits[i] = Conditions.above(read, implied[i]);
    }
  }

  /** Scans of which nothing is skipped, where their format has a better way to read what it listed. */
  void keepListed() throws Exception {
    for (int i = 0; i < edits.length; i++) {
      Scan scan = (Scan) scans.get(i);
      if (edits[i] == null && scan.skipped == null) edits[i] = scan.asListed();
    }
  }

  private LogicalPlan empty(Scan scan) {
    emptied = true;
    return LocalRelation$.MODULE$.apply(scan.node.output());
  }

  LogicalPlan apply(LogicalPlan plan) {
    LogicalPlan ordered = first == null ? null : firstThingsFirst(plan);
    LogicalPlan edited = ordered == null ? edit(plan) : ordered;
    if (next != scans.size()) throw new IllegalStateException("the plan has " + scans.size() + " scans, but " + next + " were met");
    if (driver >= 0) asking[driver] = DriverLimit.mark(edited, new DriverRows((Scan) scans.get(driver), state));
    return edited;
  }

  /**
   * For a plan that ends with a LIMIT over Filters and Projects over the scan: some of its files, and then the others. Spark reads on only
   * until it has enough rows; within a scan it goes by the size of files. Null if the plan is another, or if it cannot be done.
   */
  private LogicalPlan firstThingsFirst(LogicalPlan plan) {
    if (!(plan instanceof GlobalLimit) || !(((GlobalLimit) plan).child() instanceof LocalLimit)) return null;
    LogicalPlan limit = ((GlobalLimit) plan).child();
    LogicalPlan below = (LogicalPlan) limit.children().apply(0);
    LogicalPlan node = below;
    while (node instanceof Project || node instanceof Filter) node = (LogicalPlan) node.children().apply(0);
    Scan scan = (Scan) scans.get(0);
    if (node != scan.node || !below.deterministic()) return null;
    LogicalPlan decided = edits[0];
    try {
      BitSet others = (BitSet) first.clone();
      others.flip(0, scan.files.count);
      BitSet later = (BitSet) skipped.clone();
      later.or(first);
      LogicalPlan begin = reading(scan.without(others), below);
      LogicalPlan rest = reading(scan.without(later), below);
      List renamed = new ArrayList(); // the two must not have the same attributes
      for (int i = 0; i < rest.output().size(); i++) {
        Attribute attribute = (Attribute) rest.output().apply(i);
        renamed.add(Boundary.named(attribute, attribute.name()));
      }
      rest = new Project(Boundary.seq(renamed.toArray()), rest);
      LogicalPlan both = new Union(Boundary.seq(new Object[] {begin, rest}), false, false);
      LogicalPlan some = (LogicalPlan) limit.withNewChildren(Boundary.seq(new Object[] {both}));
      return (LogicalPlan) plan.withNewChildren(Boundary.seq(new Object[] {some}));
    } catch (Exception other) {
      edits[0] = decided; // this Spark has other classes: the scan is read as it was decided
      next = 0;
      return null;
    }
  }

  private LogicalPlan reading(LogicalPlan files, LogicalPlan below) {
    next = 0;
    edits[0] = implied[0] == null ? files : Conditions.above(files, implied[0]);
    return edit(below);
  }

  private LogicalPlan edit(LogicalPlan node) {
    if (next < scans.size() && node == ((Scan) scans.get(next)).node) {
      LogicalPlan edit = edits[next++];
      return edit == null ? node : edit;
    }
    LogicalPlan edited = (LogicalPlan) node.mapExpressions(new AbstractFunction1() {
      public Object apply(Object e) {
        return ((Expression) e).transformDown(new Subqueries(PlanEditor.this));
      }
    });
    if (node instanceof Sort || node instanceof Join) {
      for (int i = next; i < asked.length; i++) {
        if (asked[i] != null && places.get(asked[i].place) == node) ask(i, node);
      }
    }
    return (LogicalPlan) edited.mapChildren(new AbstractFunction1() {
      public Object apply(Object child) {
        return edit((LogicalPlan) child);
      }
    });
  }

  /** Makes a scan wait for what a subquery tells of it. What the copy in the subquery reads, no other scan is to read. */
  private void ask(int id, LogicalPlan node) {
    int at = next;
    LogicalPlan[] decided = (LogicalPlan[]) edits.clone();
    LogicalPlan waiting = null;
    try {
      LogicalPlan values = node instanceof Sort ? boundary(id, (Sort) node) : keys(id, (Join) node);
      waiting = values == null ? null : asked[id].asking(values);
      if (waiting != null) waiting = RowBounds.above(waiting, values, node, asked[id].wire);
      if (waiting != null && implied[id] != null) waiting = Conditions.above(waiting, implied[id]);
    } catch (Exception other) {
      waiting = null; // this Spark has other classes: the scan is read as it was decided
    }
    System.arraycopy(decided, 0, edits, 0, edits.length);
    next = at;
    asking[id] = waiting != null;
    if (waiting != null) edits[id] = waiting;
  }

  /** Where the first rows of a sort end, by what the sort would give if the scan read its first wave only. */
  private LogicalPlan boundary(int id, Sort sort) throws Exception {
    edits[id] = asked[id].first();
    if (implied[id] != null) edits[id] = Conditions.above(edits[id], implied[id]);
    LogicalPlan below = edit(sort.child());
    // What gives other rows when it runs again tells nothing of the rows of this run.
    return below.deterministic() ? Boundary.of(sort, below, ((Number) asked[id].wire.get("count")).intValue()) : null;
  }

  /** The keys that the other side of a join has. */
  private LogicalPlan keys(int id, Join join) throws Exception {
    boolean left = Integer.valueOf(1).equals(asked[id].wire.get("left"));
    if (!left) next += scansIn(join.left());
    LogicalPlan side = edit(left ? join.left() : join.right());
    return side.deterministic() ? Keys.of(side, asked[id].wire) : null;
  }

  private int scansIn(LogicalPlan plan) {
    for (int i = 0; i < scans.size(); i++) if (((Scan) scans.get(i)).node == plan) return 1;
    List inner = new ArrayList();
    List expressions = CollectionConverters.asJava(plan.expressions());
    for (int i = 0; i < expressions.size(); i++) PlanWriter.subqueries((Expression) expressions.get(i), inner);
    int count = 0;
    for (int i = 0; i < inner.size(); i++) count += scansIn((LogicalPlan) ((PlanExpression) inner.get(i)).plan());
    for (int i = 0; i < plan.children().size(); i++) count += scansIn((LogicalPlan) plan.children().apply(i));
    return count;
  }

  /** What a scan is to ask at run time, of a sort above it or of the other side of a join. */
  static final class Asked {
    final int place;
    final Map wire;
    private final Scan scan;
    private final BitSet skip;
    private final Question question;

    Asked(Scan scan, BitSet skip, Map wire, QueryState state) {
      this.scan = scan;
      this.skip = skip;
      this.wire = wire;
      place = ((Number) wire.get("at")).intValue();
      question = new Question((String) wire.get("id"), String.valueOf(wire.get("about")), scan, skip, state);
    }

    /** The scan with the files of the first wave alone. */
    LogicalPlan first() throws Exception {
      BitSet others = BitSet.valueOf(Base64.getDecoder().decode((String) wire.get("wave")));
      if (others.length() > scan.files.count || others.intersects(skip)) throw new IllegalStateException("a wave has files that are not read");
      others.flip(0, scan.files.count);
      return scan.without(others);
    }

    LogicalPlan asking(LogicalPlan values) throws Exception {
      return scan.asking(skip, question, values);
    }
  }

  static final class Subqueries extends AbstractPartialFunction {
    private final PlanEditor editor;

    Subqueries(PlanEditor editor) {
      this.editor = editor;
    }

    public boolean isDefinedAt(Object e) {
      return e instanceof PlanExpression && ((PlanExpression) e).plan() instanceof LogicalPlan;
    }

    public Object applyOrElse(Object e, scala.Function1 otherwise) {
      if (!isDefinedAt(e)) return otherwise.apply(e);
      LogicalPlan before = (LogicalPlan) ((PlanExpression) e).plan();
      LogicalPlan after = editor.edit(before);
      return after == before ? e : ((PlanExpression) e).withNewPlan(after);
    }
  }
}
