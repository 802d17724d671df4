package secateur.core;

import java.util.Collections;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** What the rules remember of one query between its early and its late step. */
public final class QueryState {
  public final long id;
  final boolean explained;
  volatile boolean emptied = false; // a scan was replaced by nothing, so Spark may have removed others with it
  volatile boolean observed = false; // metrics are collected of rows on their way, so no part of the plan may go, be it without rows
  volatile boolean recursive = false; // Spark plans a part of it anew for every step, which it cannot if that waits for values of run time
  public volatile LogicalPlan root = null; // the plan that is being looked at
  public final Map notes = new ConcurrentHashMap(); // of the formats, such as the version of a table that the query reads
  volatile boolean waits = false; // the late step looks at scans that need not be decided in the early one, all at once
  volatile boolean reopens = false; // the late step has something to say about scans that the early one decided
  private final Set seen = Collections.synchronizedSet(new HashSet());
  private final Set closed = Collections.synchronizedSet(new HashSet());

  QueryState(long id, boolean explained) {
    this.id = id;
    this.explained = explained;
  }

  public boolean has(long use) {
    return seen.contains(Long.valueOf(use));
  }

  /** How many tables the query reads, as far as they were met. */
  int tables() {
    return seen.size();
  }

  public void add(long use) {
    seen.add(Long.valueOf(use));
  }

  /** Whether a scan that the early step decided is to be looked at again, once: the late rule runs until nothing changes. */
  public boolean reopens(long use) {
    return reopens && !closed.contains(Long.valueOf(use));
  }

  void close(long use) {
    closed.add(Long.valueOf(use));
  }
}
