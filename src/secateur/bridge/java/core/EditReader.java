package secateur.core;

import java.util.BitSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;

/** Reads Python's edits and holds them against the files as they are now: what rests on a file that has changed is void. */
final class EditReader {
  final ScanEdit[] edits; // one for each scan
  private final QueryState state;
  private final Map unchanged = new IdentityHashMap(); // per file set, the files that were looked at and are as they were listed
  private final Boolean[] stale; // per scan, whether a file that may be read is not as it was listed; null if nobody asked yet
  boolean pruned = false;
  boolean emptied = false;

  EditReader(List scans, QueryState state) {
    this.state = state;
    this.edits = new ScanEdit[scans.size()];
    this.stale = new Boolean[scans.size()];
    for (int i = 0; i < edits.length; i++) edits[i] = new ScanEdit((Scan) scans.get(i));
  }

  void read(List wanted) throws Exception {
    for (int i = 0; i < wanted.size(); i++) {
      Map wire = (Map) wanted.get(i);
      int id = ((Number) wire.get("scan")).intValue();
      ScanEdit edit = edits[id];
      Scan scan = edit.scan;
      if (scan.files == null) throw new IllegalStateException("an edit names scan " + id + ", which has no listing");
      if (!scan.files.fingerprint.equals(wire.get("fp"))) throw new IllegalStateException("an edit is for another listing");
      BitSet skip = ScanEdit.bits(wire.get("skip"));
      if (skip.length() > scan.files.count) throw new IllegalStateException("an edit skips files that do not exist");
      if (skip.cardinality() != ((Number) wire.get("skipped")).intValue()) throw new IllegalStateException("an edit does not add up");
      if (scan.skipped != null) {
        skip.andNot(scan.skipped); // those were looked at when they were skipped
        edit.skipped = scan.skipped;
      }
      if (restsOnChanged((List) wire.get("relies"))) {
        edit.changed += skip.cardinality();
        edit.dropped = true;
        continue;
      }
      edit.changed += keepChanged(scan.files, skip);
      boolean more = !skip.isEmpty();
      skip.or(edit.skipped);
      if (isSet(wire, "rows")) {
        int others = changedOfKept(scan, skip);
        edit.changed += others;
        edit.dropped = others > 0;
        if (edit.dropped) continue;
      }
      edit.skipped = skip;
      if (wire.get("implied") != null) {
        edit.dropped = isSet(wire, "counted") && changedOfKept(scan, skip) > 0;
        if (!edit.dropped) edit.implied = (List) wire.get("implied");
      }
      boolean all = skip.cardinality() == scan.files.count;
      // Spark plans a part of a recursive query anew for every step, which it cannot do with a scan that waits.
      if (wire.get("runtime") != null && !state.recursive && !all) edit.runtime = (Map) wire.get("runtime");
      if (wire.get("first") != null) edit.first = ScanEdit.bits(wire.get("first"));
      edit.driver = isSet(wire, "driver") && edit.changed == 0;
      if (!more) continue;
      pruned = true;
      boolean empty = all && !state.observed;
      emptied = emptied || empty;
      edit.source = empty ? LocalRelation$.MODULE$.apply(scan.node.output()) : scan.without(skip);
    }
    for (int i = 0; i < edits.length; i++) { // a format may have a better way to read what it listed
      if (edits[i].source == null && edits[i].scan.skipped == null) edits[i].source = edits[i].scan.asListed();
    }
  }

  private static boolean isSet(Map wire, String flag) {
    return Integer.valueOf(1).equals(wire.get(flag));
  }

  /** Whether an edit rests on what the files of other scans hold, and one of these is not as it was listed. */
  private boolean restsOnChanged(List others) {
    boolean found = false;
    for (int i = 0; others != null && i < others.size(); i++) {
      int id = ((Number) others.get(i)).intValue();
      Scan scan = edits[id].scan;
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
}
