package secateur;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.internal.SQLConf;

/** One run of a rule that may ask Python: its deadline, its clocks, and the record that the summary is made from. */
final class Call {
  final QueryState state;
  final long id;
  private final Bridge bridge;
  private final SQLConf conf;
  private final boolean late;
  private final long start = System.nanoTime();
  private final long budgetMillis;
  private long deadline = 0; // set when Python is first asked: listing files is Spark's own time
  private long asking = 0;
  List scans = null;
  List left = null; // the scans of the final plan, where some may have gone
  boolean report = false; // there is something that a summary should mention
  boolean applied = false;
  int[] changed = new int[0];

  Call(Bridge bridge, SQLConf conf, boolean late) {
    this.bridge = bridge;
    this.conf = conf;
    this.late = late;
    this.state = bridge.state();
    this.id = bridge.nextCall();
    this.budgetMillis = Bridge.budget(conf);
  }

  /** Python's answer; listings that it does not know yet are sent on its request, once. */
  Map decide(PlanWriter writer) throws Exception {
    StringBuilder head = new StringBuilder("{\"op\":\"decide\",\"query\":").append(state.id).append(",\"call\":").append(id);
    head.append(",\"explained\":").append(state.explained).append(",\"stage\":\"").append(late ? "late" : "early").append("\",");
    PlanWriter.settings(head, conf);
    head.append(",\"plan\":").append(writer.out).append(",\"zones\":");
    writer.zones.write(head);
    Map answer = ask(head + "}");
    List need = (List) answer.get("need");
    if (need == null || need.isEmpty()) return answer;
    Set wanted = new HashSet(need);
    Set have = answer.get("have") == null ? new HashSet() : new HashSet((List) answer.get("have"));
    head.append(",\"listings\":[");
    boolean first = true;
    for (int i = 0; i < scans.size(); i++) {
      FileSet files = ((Scan) scans.get(i)).files;
      if (files == null || !wanted.remove(files.fingerprint)) continue;
      if (!first) head.append(',');
      first = false;
      files.write(head, have);
      deadline += files.patience() * 1000000L;
    }
    return ask(head.append("]}").toString());
  }

  private Map ask(String request) throws Exception {
    long before = System.nanoTime();
    if (deadline == 0) deadline = before + budgetMillis * 1000000L;
    long left = (deadline - before) / 1000000L;
    try {
      Map answer = Json.read(bridge.ask(request, left));
      if (answer.get("error") != null) throw new Failure((String) answer.get("code"), (String) answer.get("error"));
      return answer;
    } finally {
      asking += System.nanoTime() - before;
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
    out.append(",\"changed\":").append(Arrays.toString(changed)).append(",\"total_ns\":").append(System.nanoTime() - start);
    out.append(",\"asking_ns\":").append(asking).append(',');
    Json.field(out, "code", code);
    Json.field(out.append(','), "text", text);
    out.append(",\"scans\":[");
    boolean first = true;
    for (int i = 0; scans != null && i < scans.size(); i++) {
      Scan scan = (Scan) scans.get(i);
      if (scan.decided) continue;
      if (!first) out.append(',');
      first = false;
      scan.write(out, i);
    }
    out.append(']');
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
