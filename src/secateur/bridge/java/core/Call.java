package secateur.core;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import scala.runtime.AbstractFunction0;

/** One run of a rule that may ask Python: its deadline, its clocks, and the record that the summary is made from. */
final class Call {
  final QueryState state;
  final long id;
  private static final int ROUNDS = 5; // a file set, parts of it, its parts again if they were forgotten meanwhile, values

  private final Bridge bridge;
  private final SQLConf conf;
  private final boolean late;
  private final long start = System.nanoTime();
  private final long budgetMillis;
  private long deadline; // set when Python is first asked: listing files is Spark's own time
  private long python = 0; // nanoseconds that Python took
  List scans = null;
  List left = null; // the scans of the final plan, where some may have gone
  boolean report = false; // there is something that a summary should mention
  boolean applied = false;
  ScanEdit[] edits = new ScanEdit[0];

  Call(Bridge bridge, SQLConf conf, boolean late) {
    this.bridge = bridge;
    this.conf = conf;
    this.late = late;
    this.state = bridge.state();
    this.id = bridge.nextCall();
    this.budgetMillis = Bridge.budget(conf);
  }

  /** Python's answer. The plan is sent once; each further request of the call adds only what Python asked for. */
  Map decide(PlanWriter writer) throws Exception {
    StringBuilder first = new StringBuilder("{\"op\":\"decide\",\"query\":").append(state.id).append(",\"call\":").append(id);
    first.append(",\"explained\":").append(state.explained).append(",\"stage\":\"").append(late ? "late" : "early").append("\",");
    PlanWriter.settings(first, conf);
    first.append(",\"plan\":").append(writer.out).append(",\"zones\":");
    writer.zones.write(first);
    deadline = System.nanoTime() + budgetMillis * 1000000L;
    List news = new ArrayList();
    for (int i = 0; i < scans.size(); i++) {
      FileSet files = ((Scan) scans.get(i)).files;
      if (files != null && files.isNews() && !news.contains(files.fingerprint)) news.add(files.fingerprint);
    }
    if (!news.isEmpty()) first.append(needed(news, null));
    Map answer = ask(first.append('}').toString());
    for (int round = 0; round < ROUNDS; round++) {
      List need = (List) answer.get("need");
      List questions = (List) answer.get("evaluate");
      String more;
      if (need != null && !need.isEmpty()) more = needed(need, (List) answer.get("have"));
      else if (questions != null && !questions.isEmpty()) more = ",\"values\":" + evaluate(questions, writer.nodes);
      else return answer;
      answer = ask("{\"op\":\"continue\",\"call\":" + id + more + "}");
    }
    throw new IllegalStateException("Python asks for more and more statistics");
  }

  /** What Python asked for: whole file sets by their fingerprint, parts of one by a map that has its fingerprint. */
  private String needed(List need, List have) throws Exception {
    long before = System.nanoTime();
    StringBuilder whole = new StringBuilder(",\"listings\":[");
    StringBuilder parts = new StringBuilder("],\"parts\":[");
    for (int i = 0; i < need.size(); i++) {
      Map part = need.get(i) instanceof Map ? (Map) need.get(i) : null;
      FileSet files = files((String) (part == null ? need.get(i) : part.get("fp")));
      StringBuilder out = part == null ? whole : parts;
      if (out.charAt(out.length() - 1) != '[') out.append(',');
      if (part == null) files.write(out, have == null ? new HashSet() : new HashSet(have));
      else files.write(out, part);
      deadline += files.patience() * 1000000L;
    }
    deadline += System.nanoTime() - before; // reading the table's metadata is work that its connector would have done
    return whole.append(parts).append(']').toString();
  }

  private FileSet files(String fingerprint) {
    for (int i = 0; i < scans.size(); i++) {
      FileSet files = ((Scan) scans.get(i)).files;
      if (files != null && files.fingerprint.equals(fingerprint)) return files;
    }
    throw new IllegalStateException("Python asks for " + fingerprint + ", which is not in the plan");
  }

  /** The values of expressions on constants, within half of the time that is left: a regular expression can take for ever. */
  private String evaluate(final List questions, final List nodes) throws InterruptedException {
    final long end = System.nanoTime() + (deadline - System.nanoTime()) / 2;
    try {
      return (String) bridge.within(new Callable() {
        public Object call() throws Exception {
          return SQLConf$.MODULE$.withExistingConf(conf, new AbstractFunction0() {
            public Object apply() {
              return ConstantFolding.answers(questions, nodes, end);
            }
          });
        }
      }, (end - System.nanoTime()) / 1000000L);
    } catch (InterruptedException stopped) {
      throw stopped;
    } catch (Exception tooLong) {
      return "[]";
    }
  }

  private Map ask(String request) throws Exception {
    long before = System.nanoTime();
    long left = (deadline - before) / 1000000L;
    try {
      Map answer = Json.read(bridge.ask(request, left));
      if (answer.get("error") != null) throw new Failure((String) answer.get("code"), (String) answer.get("error"));
      return answer;
    } finally {
      python += System.nanoTime() - before;
    }
  }

  void close() {
    if (report || left != null) bridge.record(record("", ""));
  }

  void fail(Throwable problem) {
    String code = "bridge-failed";
    String text = "the query ran unpruned: " + problem.getClass().getSimpleName() + ": " + problem.getMessage();
    if (problem instanceof Failure) {
      code = ((Failure) problem).code;
      text = problem.getMessage();
    } else if (problem instanceof TimeoutException) {
      code = "timeout";
      text = "deciding took longer than " + Bridge.PREFIX + "budget.ms = " + budgetMillis + ", the query ran unpruned";
    } else if (problem instanceof RejectedExecutionException) {
      code = "busy";
      text = problem.getMessage();
    } else if (problem instanceof ExecutionException) {
      code = "callback-failed";
      text = "Python could not be asked, the query ran unpruned: " + problem.getCause();
    } else if (problem instanceof InterruptedException) {
      code = "interrupted";
      text = "the query was interrupted while it was planned";
    }
    bridge.record(record(code, text));
  }

  private String record(String code, String text) {
    StringBuilder out = new StringBuilder("{\"query\":").append(state.id).append(",\"call\":").append(id);
    out.append(",\"explained\":").append(state.explained).append(",\"applied\":").append(applied);
    out.append(",\"total_ns\":").append(System.nanoTime() - start);
    out.append(",\"python_ns\":").append(python).append(',');
    Json.field(out, "code", code);
    Json.field(out.append(','), "text", text);
    out.append(",\"scans\":[");
    boolean first = true;
    for (int i = 0; scans != null && i < scans.size(); i++) {
      Scan scan = (Scan) scans.get(i);
      if (scan.decided && scan.skipped == null) continue;
      if (!first) out.append(',');
      first = false;
      scan.write(out, i);
    }
    out.append(']');
    StringBuilder changed = new StringBuilder();
    StringBuilder dropped = new StringBuilder();
    StringBuilder narrowed = new StringBuilder();
    for (int i = 0; i < edits.length; i++) {
      changed.append(i > 0 ? "," : "").append(edits[i].changed);
      if (edits[i].dropped) dropped.append(dropped.length() > 0 ? "," : "").append(i);
      if (edits[i].narrowed) narrowed.append(narrowed.length() > 0 ? "," : "").append(i);
    }
    out.append(",\"changed\":[").append(changed).append("],\"dropped\":[").append(dropped);
    out.append("],\"narrowed\":[").append(narrowed).append(']');
    if (left != null) {
      out.append(",\"left\":[");
      for (int i = 0; i < left.size(); i++) out.append(i > 0 ? "," : "").append(((Scan) left.get(i)).use());
      out.append(']');
    }
    return out.append('}').toString();
  }

  /** Python answered, but only with what went wrong there. */
  static final class Failure extends Exception {
    final String code;

    Failure(String code, String text) {
      super(text);
      this.code = code;
    }
  }
}
