package secateur.core;

import java.util.Base64;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** What Python decided of one scan, as far as its files still are as they were listed. */
final class ScanEdit {
  final Scan scan;
  BitSet skipped = new BitSet(); // the files that are not read, with those of an earlier step
  List implied = null; // conditions to put above it
  BitSet first = null; // files to be read before the others
  boolean driver = false; // the driver may read it itself, if the plan ends with a LIMIT
  Map runtime = null; // what it waits for while the query runs
  private RuntimePredicate predicate = null;
  LogicalPlan source = null; // what reads the files, null for the scan itself
  int changed = 0; // files that Python skipped and that are kept, since they are not as they were listed
  boolean dropped = false; // conditions were left out for the same reason
  boolean narrowed = false; // it waits for values of run time, or is read by the driver

  ScanEdit(Scan scan) {
    this.scan = scan;
  }

  /** What to read in the place of the scan, null if that stays as it is. */
  LogicalPlan reading() {
    return implied == null || source instanceof LocalRelation ? source : reading(source == null ? scan.node : source);
  }

  LogicalPlan reading(LogicalPlan files) {
    return implied == null ? files : ImpliedPredicates.above(files, implied);
  }

  /** The scan of these files alone; they are among those that are read. */
  LogicalPlan only(BitSet files) throws Exception {
    if (files.length() > scan.files.count || files.intersects(skipped)) {
      throw new IllegalStateException("an edit reads files that it skips");
    }
    BitSet others = (BitSet) files.clone();
    others.flip(0, scan.files.count);
    return scan.without(others);
  }

  /** The files of the probe that tells where the first rows of a sort end. */
  LogicalPlan probe() throws Exception {
    return reading(only(bits(runtime.get("probe"))));
  }

  RuntimePredicate predicate(QueryState state) {
    if (predicate == null) {
      predicate = new RuntimePredicate((String) runtime.get("id"), String.valueOf(runtime.get("about")), scan, skipped, state);
    }
    return predicate;
  }

  static BitSet bits(Object base64) {
    return BitSet.valueOf(Base64.getDecoder().decode((String) base64));
  }
}
