package secateur;

import java.util.Base64;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Option;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/** Applies the edits of one decision to the plan that was written: nothing here decides. */
final class PlanEditor {
  private final List scans;
  private final LogicalPlan[] edits;
  private int next = 0;
  final int[] changed; // per scan, files that Python skipped and that are kept, since they are not as they were listed
  boolean pruned = false;
  boolean emptied = false;

  PlanEditor(List scans) {
    this.scans = scans;
    this.edits = new LogicalPlan[scans.size()];
    this.changed = new int[scans.size()];
  }

  void read(List wanted) throws Exception {
    for (int i = 0; i < wanted.size(); i++) {
      Map edit = (Map) wanted.get(i);
      int id = ((Number) edit.get("scan")).intValue();
      Scan scan = (Scan) scans.get(id);
      if (scan.listing == null) throw new IllegalStateException("an edit names scan " + id + ", which has no listing");
      if (!scan.listing.fingerprint.equals(edit.get("fp"))) throw new IllegalStateException("an edit is for another listing");
      BitSet skip = BitSet.valueOf(Base64.getDecoder().decode((String) edit.get("skip")));
      if (skip.length() > scan.listing.files.length) throw new IllegalStateException("an edit skips files that do not exist");
      if (skip.cardinality() != ((Number) edit.get("skipped")).intValue()) throw new IllegalStateException("an edit does not add up");
      changed[id] = scan.listing.recheck(skip);
      scan.listing.keepShared(skip);
      if (skip.isEmpty()) continue;
      pruned = true;
      edits[id] = skip.cardinality() == scan.listing.files.length ? empty(scan) : pruned(scan, skip);
    }
  }

  /** A table of the catalog was listed for the decision; Spark need not ask the catalog and list it once more. */
  void keepListed() throws Exception {
    for (int i = 0; i < edits.length; i++) {
      Scan scan = (Scan) scans.get(i);
      if (edits[i] != null || scan.index == null) continue;
      HadoopFsRelation files = (HadoopFsRelation) ((LogicalRelation) scan.node).relation();
      if (scan.index != files.location()) edits[i] = pruned(scan, new BitSet());
    }
  }

  private LogicalPlan empty(Scan scan) {
    emptied = true;
    return LocalRelation$.MODULE$.apply(scan.node.output());
  }

  private static LogicalPlan pruned(Scan scan, BitSet skip) throws Exception {
    LogicalRelation relation = (LogicalRelation) scan.node;
    HadoopFsRelation files = (HadoopFsRelation) relation.relation();
    PrunedFileIndex index = new PrunedFileIndex(scan.index, scan.listing, skip);
    Object edited = CaseClass.with(relation, "relation", CaseClass.with(files, "location", index));
    if (relation.catalogTable().isDefined()) {
      // Statistics of the catalog would hide the reduced size from the choice of join strategies.
      CatalogTable table = (CatalogTable) relation.catalogTable().get();
      if (table.stats().isDefined()) {
        Object stats = CaseClass.with(table.stats().get(), "sizeInBytes", scala.math.BigInt.apply(index.sizeInBytes()));
        edited = CaseClass.with(edited, "catalogTable", Option.apply(CaseClass.with(table, "stats", Option.apply(stats))));
      }
    }
    return (LogicalPlan) edited;
  }

  LogicalPlan apply(LogicalPlan plan) {
    LogicalPlan edited = edit(plan);
    if (next != scans.size()) throw new IllegalStateException("the plan has " + scans.size() + " scans, but " + next + " were met");
    return edited;
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
    return (LogicalPlan) edited.mapChildren(new AbstractFunction1() {
      public Object apply(Object child) {
        return edit((LogicalPlan) child);
      }
    });
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
