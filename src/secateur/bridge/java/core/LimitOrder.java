package secateur.core;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;

/**
 * For a plan that ends with a LIMIT over Filters and Projects over its only scan: some of the files, and then the others. Spark reads on
 * only until it has enough rows; within a scan it goes by the size of files.
 */
final class LimitOrder {
  private LimitOrder() {}

  /** Null if the plan is another, or if it cannot be done. */
  static LogicalPlan of(LogicalPlan plan, ScanEdit edit) {
    if (!(plan instanceof GlobalLimit) || !(((GlobalLimit) plan).child() instanceof LocalLimit)) return null;
    LogicalPlan limit = ((GlobalLimit) plan).child();
    LogicalPlan input = (LogicalPlan) limit.children().apply(0);
    if (!input.deterministic()) return null;
    try {
      BitSet later = (BitSet) edit.skipped.clone();
      later.or(edit.first);
      LogicalPlan begin = over(input, edit.scan.node, edit.reading(edit.only(edit.first)));
      LogicalPlan rest = over(input, edit.scan.node, edit.reading(edit.scan.without(later)));
      if (begin == null || rest == null) return null;
      List renamed = new ArrayList(); // the two must not have the same attributes
      for (int i = 0; i < rest.output().size(); i++) {
        Attribute attribute = (Attribute) rest.output().apply(i);
        renamed.add(Catalyst.named(attribute, attribute.name()));
      }
      LogicalPlan other = new Project(Catalyst.seq(renamed), rest);
      LogicalPlan both = new Union(Catalyst.seq(new Object[] {begin, other}), false, false);
      LogicalPlan some = (LogicalPlan) limit.withNewChildren(Catalyst.seq(new Object[] {both}));
      return (LogicalPlan) plan.withNewChildren(Catalyst.seq(new Object[] {some}));
    } catch (Exception other) {
      return null; // this Spark has other classes: the scan is read as it was decided
    }
  }

  /** The same Filters and Projects over something else than the scan. */
  private static LogicalPlan over(LogicalPlan node, LogicalPlan scan, LogicalPlan files) {
    if (node == scan) return files;
    if (!(node instanceof Project || node instanceof Filter)) return null;
    LogicalPlan child = over((LogicalPlan) node.children().apply(0), scan, files);
    return child == null ? null : (LogicalPlan) node.withNewChildren(Catalyst.seq(new Object[] {child}));
  }
}
