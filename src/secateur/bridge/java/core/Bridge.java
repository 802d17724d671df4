package secateur.core;

import com.google.common.collect.MapMaker;
import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.QueryPlanningTracker$;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.command.SetCommand;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.collection.mutable.Buffer;
import scala.runtime.AbstractFunction1;

/** The JVM's half of secateur, one per JVM: installs the rules, asks Python under a time-out, keeps the records. */
public final class Bridge {
  static final String PREFIX = "spark.secateur.";
  private static final int RECORDS = 1000;
  private static final long BUDGET_MS = 1000;
  private static final int CALLERS = 16;
  private static final int TIMEOUTS = 3;
  private static final long PAUSE_NANOS = 30L * 1000000000L;

  public static volatile Bridge instance; // for scans that ask at run time, long after the rule that made them

  private volatile Function python;
  private volatile int mostTables = 0;
  private final AtomicInteger pauses = new AtomicInteger();
  private volatile long pausedUntil = 0;
  private final AtomicInteger timeouts = new AtomicInteger();
  private final AtomicLong queries = new AtomicLong();
  private final AtomicLong calls = new AtomicLong();
  private final Map states = new MapMaker().weakKeys().makeMap(); // QueryPlanningTracker -> QueryState
  private final Map installed = new MapMaker().weakKeys().makeMap(); // SparkSessionExtensions -> Boolean
  private final ArrayDeque records = new ArrayDeque();
  private final ThreadPoolExecutor callers = new ThreadPoolExecutor(
      0, CALLERS, 60, TimeUnit.SECONDS, new SynchronousQueue(), new ThreadFactory() {
        public Thread newThread(Runnable work) {
          Thread thread = new Thread(work, "secateur-callback");
          thread.setDaemon(true);
          return thread;
        }
      });

  public Bridge() {
    instance = this;
  }

  /** Takes in a unit; one that does not work here throws. */
  public void add(ClassLoader loader, String entry) throws Exception {
    Units.add(loader.loadClass(entry).getDeclaredConstructor(new Class[0]).newInstance(new Object[0]));
  }

  /** A unit is left out, since it does not fit this Spark or its connector. */
  public void isBroken(String unit, String problem) {
    Units.isBroken(unit, problem);
  }

  /** Injected rules cannot be removed, so they ask this switch first. */
  public boolean isOn() {
    return python != null && pauses.get() == 0;
  }

  /** `mostTables`: in queries over more tables, Iceberg scans take no values at run time but those of their partitions. */
  public void switchOn(Function callback, int mostTables) {
    this.mostTables = mostTables;
    timeouts.set(0);
    pausedUntil = 0;
    python = callback;
  }

  public void switchOff() {
    python = null;
  }

  public void pause() {
    pauses.incrementAndGet();
  }

  public void resume() {
    pauses.decrementAndGet();
  }

  public void install(SparkSession session) {
    if (installed.put(session.extensions(), Boolean.TRUE) == null) {
      session.extensions().injectPreCBORule(new RulesOf(this));
      comeFirst(session.extensions());
      if (Units.driver != null) session.extensions().injectPlannerStrategy(Units.driver.strategies(this));
    }
    addLateRule(session);
  }

  /**
   * Moves the early rule before those that the extensions had: Delta's own rule lists the files of its tables. Where this Spark keeps
   * its rules elsewhere, Delta comes first, and what it leaves is pruned.
   */
  private static void comeFirst(SparkSessionExtensions extensions) {
    try {
      Field field = SparkSessionExtensions.class.getDeclaredField("preCBORules");
      field.setAccessible(true);
      Buffer rules = (Buffer) field.get(extensions);
      rules.prepend(rules.remove(rules.length() - 1));
    } catch (ReflectiveOperationException elsewhere) {
      return;
    }
  }

  public void uninstall(SparkSession session) {
    List others = new ArrayList();
    List rules = Catalyst.list(session.experimental().extraOptimizations());
    for (int i = 0; i < rules.size(); i++) if (!(rules.get(i) instanceof PruneRule)) others.add(rules.get(i));
    session.experimental().extraOptimizations_$eq(Catalyst.seq(others));
  }

  void addLateRule(SparkSession session) {
    ExperimentalMethods methods = session.experimental();
    synchronized (methods) {
      List rules = Catalyst.list(methods.extraOptimizations());
      List others = new ArrayList();
      for (int i = 0; i < rules.size(); i++) {
        if (!(rules.get(i) instanceof PruneRule)) others.add(rules.get(i));
        // A cloned session (of a stream, of the cache) comes with its parent's rule, which reads the parent's settings.
        else if (((PruneRule) rules.get(i)).isOf(session)) return;
      }
      others.add(new PruneRule(this, session, true));
      methods.extraOptimizations_$eq(Catalyst.seq(others));
    }
  }

  /**
   * The builder of the early rule. Spark calls it for every query of every session that shares the extensions, before it looks
   * at the session's own rules: the place where a derived session gets its late rule.
   */
  static final class RulesOf extends AbstractFunction1 {
    private final Bridge bridge;

    RulesOf(Bridge bridge) {
      this.bridge = bridge;
    }

    public Object apply(Object session) {
      try {
        if (bridge.isOn()) bridge.addLateRule((SparkSession) session);
      } catch (Throwable problem) {
        bridge.problem("a derived session got no late rule", problem);
      }
      return new PruneRule(bridge, (SparkSession) session, false);
    }
  }

  /** The state of the query that this thread is planning. */
  QueryState state() {
    Option tracker = QueryPlanningTracker$.MODULE$.get();
    if (tracker.isEmpty()) return new QueryState(queries.incrementAndGet(), false);
    QueryState known = (QueryState) states.get(tracker.get());
    if (known != null) return known;
    QueryState fresh = new QueryState(queries.incrementAndGet(), false);
    states.put(tracker.get(), fresh);
    return fresh;
  }

  long nextCall() {
    return calls.incrementAndGet();
  }

  static String option(SQLConf conf, String name, String otherwise) {
    return conf.getConfString(PREFIX + name, otherwise).trim();
  }

  public static long budget(SQLConf conf) {
    try {
      long millis = Long.parseLong(option(conf, "budget.ms", "" + BUDGET_MS));
      if (millis > 0) return millis;
    } catch (NumberFormatException wrong) {
      // as for a negative one: Python refuses it, with a better sentence than could be made here
    }
    return BUDGET_MS;
  }

  /** Long questions to Python are to be sent at once; where that cannot be had, they only take longer. */
  public boolean hurry(Object client) {
    try {
      NoDelaySockets.use(client);
      return true;
    } catch (Exception other) {
      return false;
    }
  }

  /** Asks Python from a thread of ours, so that one that never answers costs the query its budget and no more. */
  public String ask(final String request, long millis) throws Exception {
    final Function callback = python;
    if (callback == null) throw new RejectedExecutionException("secateur was detached while the query was planned");
    if (timeouts.get() >= TIMEOUTS && System.nanoTime() < pausedUntil) {
      throw new RejectedExecutionException("the last " + TIMEOUTS + " decisions took longer than " + PREFIX
          + "budget.ms: secateur pauses for 30 seconds, the query ran unpruned");
    }
    try {
      String text = (String) within(new Callable() {
        public Object call() throws Exception {
          return callback.apply(request);
        }
      }, millis);
      timeouts.set(0);
      return text;
    } catch (TimeoutException late) {
      pausedUntil = System.nanoTime() + PAUSE_NANOS;
      timeouts.incrementAndGet();
      throw late;
    }
  }

  /** Does some work on a thread of ours, for so long at most. */
  Object within(Callable work, long millis) throws Exception {
    Future done;
    try {
      done = callers.submit(work);
    } catch (RejectedExecutionException full) {
      throw new RejectedExecutionException(CALLERS + " decisions are under way already, the query ran unpruned");
    }
    try {
      return done.get(Math.max(millis, 1), TimeUnit.MILLISECONDS);
    } catch (TimeoutException late) {
      done.cancel(true);
      throw late;
    }
  }

  /** Null if the SET command may pass. Python knows the options; if it cannot be asked, the command passes. */
  String refusal(SetCommand set, SQLConf conf) {
    if (set.kv().isEmpty()) return null;
    Tuple2 pair = (Tuple2) set.kv().get();
    if (!((String) pair._1()).startsWith(PREFIX) || ((Option) pair._2()).isEmpty()) return null;
    StringBuilder request = new StringBuilder("{\"op\":\"set\",");
    Json.field(request, "key", (String) pair._1());
    Json.field(request.append(','), "value", (String) ((Option) pair._2()).get());
    try {
      return (String) Json.read(ask(request.append('}').toString(), budget(conf))).get("refused");
    } catch (Throwable unreachable) {
      return null;
    }
  }

  public void record(String json) {
    synchronized (records) {
      if (records.size() >= RECORDS) records.removeFirst();
      records.addLast(json);
    }
  }

  /** The number of the query that this thread is planning, 0 if it plans none. */
  public long planning() {
    Option tracker = QueryPlanningTracker$.MODULE$.get();
    QueryState known = tracker.isEmpty() ? null : (QueryState) states.get(tracker.get());
    return known == null ? 0 : known.id;
  }

  /** Whether scans of the query that this thread is planning may take values at run time for other columns than partitions. */
  public boolean takesValues() {
    Option tracker = QueryPlanningTracker$.MODULE$.get();
    QueryState known = tracker.isEmpty() ? null : (QueryState) states.get(tracker.get());
    return known == null || !known.recursive && known.tables() <= mostTables;
  }

  public void problem(String what, Throwable cause) {
    problem(planning(), null, what, cause);
  }

  /** What went wrong with a query, after it was decided; the scan is read unpruned then, if one is named. */
  public void problem(long query, Scan scan, String what, Throwable cause) {
    StringBuilder out = new StringBuilder("{\"query\":").append(query).append(",\"call\":0,\"code\":\"bridge-failed\",");
    Json.field(out, "text", what + ": " + cause);
    out.append(",\"scans\":[");
    if (scan != null) scan.write(out, 0);
    record(out.append("]}").toString());
  }

  /** The records since the last time, as a JSON list. */
  public String drain() {
    synchronized (records) {
      String all = String.join(",", records);
      records.clear();
      return "[" + all + "]";
    }
  }

  /** Optimizes a copy of the query without running it, and returns the number under which it is recorded. */
  public long explain(SparkSession session, LogicalPlan plan) {
    QueryState state = new QueryState(queries.incrementAndGet(), true);
    optimize(session, plan, state);
    return state.id;
  }

  private void optimize(SparkSession session, LogicalPlan plan, QueryState state) {
    QueryExecution execution = session.sessionState().executePlan(plan, CommandExecutionMode$.MODULE$.SKIP());
    states.put(execution.tracker(), state);
    LogicalPlan analyzed = execution.analyzed();
    execution.optimizedPlan();
    if (!(analyzed instanceof Command) || !analyzed.children().isEmpty()) return;
    List queries = Catalyst.list(analyzed.innerChildren()); // such a command plans its query when it runs
    for (int i = 0; i < queries.size(); i++) {
      if (queries.get(i) instanceof LogicalPlan) optimize(session, (LogicalPlan) queries.get(i), state);
    }
  }

  /** The scans of an analyzed plan with the listings of those that can have statistics, and with the paths of their files if asked. */
  public String listings(SparkSession session, LogicalPlan plan, boolean paths) throws Exception {
    PlanWriter writer = new PlanWriter(true, new QueryState(0, true), session.sessionState().conf());
    writer.plan(plan);
    StringBuilder out = new StringBuilder("[");
    for (int i = 0; i < writer.scans.size(); i++) {
      Scan scan = (Scan) writer.scans.get(i);
      out.append(i > 0 ? ",{\"scan\":" : "{\"scan\":");
      scan.write(out, i);
      if (scan.files != null) scan.files.write(out.append(",\"listing\":"));
      Map part = paths && scan.files != null ? scan.files.paths() : null;
      if (part != null) scan.files.write(out.append(",\"part\":"), part);
      out.append('}');
    }
    return out.append(']').toString();
  }
}
