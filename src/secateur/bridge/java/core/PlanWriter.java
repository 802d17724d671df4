package secateur.core;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionWithRandomSeed;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Nondeterministic;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.Rand;
import org.apache.spark.sql.catalyst.expressions.Randn;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.TimestampAdd;
import org.apache.spark.sql.catalyst.expressions.TimestampDiff;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.plans.logical.WindowGroupLimit;
import org.apache.spark.sql.internal.SQLConf;
import scala.Tuple2;

/**
 * Writes a plan as compact JSON and collects its scans. Scans have numbers in the order of a walk: a node, then the subqueries in its
 * expressions, then its children.
 */
public final class PlanWriter {
  private static final String NORMALIZED = "org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero"; // around float keys of joins
  private static volatile Object[] lastSettings; // a session's settings, and what is written of them
  final StringBuilder out = new StringBuilder(1024);
  final List scans = new ArrayList();
  private final List places = new ArrayList(); // the global sorts and the joins with the number of the first scan in them, by Python's number
  private final Map scansIn = new IdentityHashMap(); // how many scans lie in a node
  final Zones zones = new Zones();
  final List nodes = new ArrayList(); // the expressions that can be evaluated on constants, by the number that Python knows them by
  private final Set mentioned = new HashSet(); // the ids of the attributes that were written so far
  private final boolean late;
  private final QueryState state;
  private final SQLConf conf;
  private int randomAbove = 0; // how many nodes above the one at hand are random
  private boolean evaluable = true; // whether the node at hand is one whose expressions Python may ask to have evaluated

  PlanWriter(boolean late, QueryState state, SQLConf conf) {
    this.late = late;
    this.state = state;
    this.conf = conf;
  }

  boolean undecided() {
    for (int i = 0; i < scans.size(); i++) {
      if (((Scan) scans.get(i)).open()) return true;
    }
    return false;
  }

  boolean declined() {
    for (int i = 0; i < scans.size(); i++) if (!((Scan) scans.get(i)).declined.isEmpty()) return true;
    return false;
  }

  int scansIn(LogicalPlan node) {
    Integer count = (Integer) scansIn.get(node);
    return count == null ? 0 : count.intValue();
  }

  /** Whether what is found out at run time is found out at this node, whose first scan has this number. */
  boolean isPlace(Map runtime, LogicalPlan node, int first) {
    Object[] place = (Object[]) places.get(((Number) runtime.get("at")).intValue());
    return place[0] == node && ((Integer) place[1]).intValue() == first;
  }

  private int place(LogicalPlan node) {
    places.add(new Object[] {node, Integer.valueOf(scans.size())});
    return places.size() - 1;
  }

  void plan(LogicalPlan node) throws Exception {
    int before = scans.size();
    write(node);
    scansIn.put(node, Integer.valueOf(scans.size() - before));
  }

  private void write(LogicalPlan node) throws Exception {
    if (node.children().isEmpty()) {
      Scan scan = Formats.scan(node, late, state, conf);
      if (scan != null) {
        scan.random = randomAbove > 0;
        scan.write(out, scans.size(), mentioned); // all that speaks of its columns lies above it
        scans.add(scan);
        return;
      }
    }
    out.append('{');
    Json.field(out, "n", node.getClass().getSimpleName());
    // What these name below them is the table that they change, not a scan.
    if (node instanceof DeleteFromTable || node instanceof UpdateTable || node instanceof MergeIntoTable) {
      out.append(",\"c\":[]}");
      return;
    }
    evaluable = node instanceof Filter || node instanceof Project || node instanceof LocalLimit || node instanceof Sort;
    int from = 0; // the expressions that Python reads, of all that the node has
    int to = evaluable || shape(node) ? Integer.MAX_VALUE : 0;
    if (node instanceof Window) to = (from = ((Window) node).windowExpressions().size()) + ((Window) node).partitionSpec().size();
    if (node instanceof WindowGroupLimit) to = ((WindowGroupLimit) node).partitionSpec().size() + ((WindowGroupLimit) node).orderSpec().size();
    if (node instanceof Sort && ((Sort) node).global()) {
      out.append(",\"g\":1,\"s\":").append(place(node));
    }
    List subqueries = new ArrayList();
    List expressions = Catalyst.list(node.expressions());
    boolean random = node instanceof Sample;
    for (int i = 0; i < expressions.size(); i++) random = random || random((Expression) expressions.get(i));
    if (random) out.append(",\"r\":1");
    randomAbove += random ? 1 : 0;
    if (to > 0) out.append(",\"x\":[");
    for (int i = 0; i < expressions.size(); i++) {
      if (i < from || i >= to) {
        subqueries((Expression) expressions.get(i), subqueries);
        continue;
      }
      if (i > from) out.append(',');
      expression((Expression) expressions.get(i), subqueries);
    }
    if (to > 0) out.append(']');
    if (!subqueries.isEmpty()) {
      out.append(",\"q\":[");
      for (int i = 0; i < subqueries.size(); i++) {
        if (i > 0) out.append(',');
        subquery((PlanExpression) subqueries.get(i));
      }
      out.append(']');
    }
    out.append(",\"c\":[");
    for (int i = 0; i < node.children().size(); i++) {
      if (i > 0) out.append(',');
      plan((LogicalPlan) node.children().apply(i));
    }
    randomAbove -= random ? 1 : 0;
    out.append("]}");
  }

  /** Writes what a node has beside its expressions; whether Python reads these, too. */
  private boolean shape(LogicalPlan node) {
    if (node instanceof Join) {
      Object type = ((Join) node).joinType();
      out.append(",\"s\":").append(place(node));
      Json.field(out.append(','), "j", type instanceof ExistenceJoin ? "ExistenceJoin" : type.toString());
      if (type instanceof ExistenceJoin) out.append(",\"e\":").append(((ExistenceJoin) type).exists().exprId().id());
    } else if (node instanceof Aggregate) {
      out.append(",\"g\":").append(((Aggregate) node).groupingExpressions().size());
    } else if (node instanceof Window) {
      ids(",\"o\":", ((Window) node).windowExpressions());
    } else if (node instanceof WindowGroupLimit) {
      WindowGroupLimit limit = (WindowGroupLimit) node;
      out.append(",\"g\":").append(limit.partitionSpec().size()).append(",\"k\":").append(limit.limit());
      Json.field(out.append(','), "f", limit.rankLikeFunction().getClass().getSimpleName());
    } else if (node instanceof Expand) {
      out.append(",\"g\":").append(node.output().size());
    } else if (node instanceof Union) {
      ids(",\"o\":", node.output());
      out.append(",\"i\":[");
      for (int i = 0; i < node.children().size(); i++) ids(i > 0 ? "," : "", ((LogicalPlan) node.children().apply(i)).output());
      out.append(']');
    } else if (node instanceof Generate) {
      ids(",\"o\":", ((Generate) node).generatorOutput());
      return false;
    } else {
      return false;
    }
    return true;
  }

  private void ids(String before, scala.collection.Seq attributes) {
    out.append(before).append('[');
    for (int i = 0; i < attributes.size(); i++) {
      if (i > 0) out.append(',');
      out.append(mention((NamedExpression) attributes.apply(i)));
    }
    out.append(']');
  }

  private long mention(NamedExpression attribute) {
    long id = attribute.exprId().id();
    mentioned.add(Long.valueOf(id));
    return id;
  }

  private void subquery(PlanExpression e) throws Exception {
    boolean pruning = e instanceof DynamicPruningSubquery; // a copy of the other side of a join, to be told apart
    if (pruning) out.append("{\"n\":\"DynamicPruning\",\"c\":[");
    plan((LogicalPlan) e.plan());
    if (pruning) out.append("]}");
  }

  /** Whether the value for one row depends on which rows came before it: rand(42), monotonically_increasing_id() and their kind. */
  private static boolean random(Expression e) {
    if (e.deterministic()) return false;
    // Without a seed in the query nobody can tell one run from another.
    boolean anyway = e instanceof Rand && ((Rand) e).hideSeed() || e instanceof Randn && ((Randn) e).hideSeed();
    if (e instanceof ExpressionWithRandomSeed && !anyway) return true;
    if (e instanceof Nondeterministic && !anyway && !e.getClass().getSimpleName().startsWith("InputFile")) return true;
    for (int i = 0; i < e.children().size(); i++) if (random((Expression) e.children().apply(i))) return true;
    return false;
  }

  /** Every subquery below an expression, in the order of a walk from the top. */
  public static void subqueries(Expression e, List found) {
    if (e instanceof PlanExpression && ((PlanExpression) e).plan() instanceof LogicalPlan) found.add(e);
    for (int i = 0; i < e.children().size(); i++) subqueries((Expression) e.children().apply(i), found);
  }

  private void expression(Expression e, List subqueries) {
    if (e instanceof AttributeReference) {
      AttributeReference a = (AttributeReference) e;
      out.append("{\"a\":").append(mention(a)).append(',');
      Json.field(out, "n", a.name());
      type(e);
    } else if (e instanceof Literal) {
      out.append("{\"v\":");
      Json.value(out, ((Literal) e).value());
      if (!Json.hasForm(((Literal) e).value())) Json.field(out.append(','), "p", ConstantFolding.unique());
      type(e);
    } else {
      if (e instanceof PlanExpression && ((PlanExpression) e).plan() instanceof LogicalPlan) subqueries.add(e);
      call(e, subqueries);
    }
    out.append('}');
  }

  private void call(Expression e, List subqueries) {
    out.append('{');
    // Python knows Spark's functions by their short names; somebody else's of the same name is another function.
    String name = e.getClass().getName();
    boolean own = name.startsWith("org.apache.spark.sql.catalyst.expressions.") || name.equals(NORMALIZED);
    Json.field(out, "f", own ? e.getClass().getSimpleName() : name);
    type(e);
    String zone = zones.of(e);
    if (zone != null) Json.field(out.append(','), "z", zone);
    if (evaluable && worthEvaluating(e) && ConstantFolding.evaluable(e)) {
      out.append(",\"k\":").append(nodes.size());
      nodes.add(e);
    }
    // Without them Python would take two different functions of the same columns for one.
    String parameters = e instanceof Alias || e instanceof SortOrder ? "" : own ? ConstantFolding.parameters(e) : ConstantFolding.unique();
    if (!parameters.isEmpty()) Json.field(out.append(','), "p", parameters);
    if (e instanceof Alias) {
      out.append(",\"i\":").append(((Alias) e).exprId().id()).append(',');
      Json.field(out, "n", ((Alias) e).name());
    } else if (e instanceof SortOrder) {
      SortOrder order = (SortOrder) e;
      out.append(",\"o\":[").append(order.direction().sql().equals("DESC") ? 1 : 0);
      out.append(order.nullOrdering().sql().equals("NULLS FIRST") ? ",1]" : ",0]");
    } else if (e instanceof GetStructField) {
      out.append(",\"o\":").append(((GetStructField) e).ordinal()).append(',');
      Json.field(out, "n", ((GetStructField) e).childSchema().fields()[((GetStructField) e).ordinal()].name());
    } else if (e instanceof Like) {
      Json.field(out.append(','), "e", String.valueOf(((Like) e).escapeChar()));
    } else if (e instanceof InSet) {
      out.append(",\"vs\":[");
      scala.collection.Iterator it = ((InSet) e).hset().iterator();
      for (boolean first = true; it.hasNext(); first = false) {
        if (!first) out.append(',');
        Json.value(out, it.next());
      }
      out.append(']');
    }
    List children = new ArrayList();
    if (e instanceof And || e instanceof Or) chain(e, e.getClass(), children); // flat, or a long OR would nest a thousand deep
    else children = Catalyst.list(e.children());
    // Spark's own flag looks at the children too; what is wanted here is the node itself.
    boolean below = true;
    for (int i = 0; i < children.size(); i++) below = below && ((Expression) children.get(i)).deterministic();
    if (below && !e.deterministic()) out.append(",\"d\":0");
    String unit = e instanceof TimestampAdd ? ((TimestampAdd) e).unit() : e instanceof TimestampDiff ? ((TimestampDiff) e).unit() : null;
    if (unit != null) Json.field(out.append(','), "u", unit);
    out.append(",\"c\":[");
    for (int i = 0; i < children.size(); i++) {
      if (i > 0) out.append(',');
      expression((Expression) children.get(i), subqueries);
    }
    out.append(']');
  }

  /** Python is good at connectives and at tests of bare columns. */
  private static boolean worthEvaluating(Expression e) {
    if (e instanceof And || e instanceof Or || e instanceof Not || e instanceof Alias || e instanceof GetStructField) return false;
    if (!(e instanceof BinaryComparison || e instanceof IsNull || e instanceof IsNotNull || e instanceof In || e instanceof InSet)) {
      return true;
    }
    for (int i = 0; i < e.children().size(); i++) {
      if (!(e.children().apply(i) instanceof AttributeReference || e.children().apply(i) instanceof Literal)) return true;
    }
    return false;
  }

  private static void chain(Expression e, Class kind, List parts) {
    while (e.getClass() == kind) { // left-deep chains are the long ones: no recursion along them
      parts.add(0, e.children().apply(1));
      e = (Expression) e.children().apply(0);
    }
    parts.add(0, e);
    for (int i = 0; i < parts.size(); i++) {
      Expression part = (Expression) parts.get(i);
      if (part.getClass() != kind) continue;
      List inner = new ArrayList();
      chain(part, kind, inner);
      parts.remove(i);
      parts.addAll(i, inner);
      i += inner.size() - 1;
    }
  }

  private void type(Expression e) {
    String type;
    try {
      type = e.dataType().catalogString();
    } catch (Exception none) { // some parts of aggregates have none, and say so by an error
      type = "unknown";
    }
    Json.field(out.append(','), "t", type);
  }

  /** The session's settings that travel with a query, and every option of secateur that is set. */
  public static void settings(StringBuilder out, SQLConf conf) {
    out.append("\"conf\":{\"ansi\":").append(conf.ansiEnabled()).append(",\"case_sensitive\":").append(conf.caseSensitiveAnalysis());
    Json.field(out.append(','), "time_zone", conf.sessionLocalTimeZone());
    boolean legacy = conf.getConfString("spark.sql.legacy.timeParserPolicy", "CORRECTED").equalsIgnoreCase("LEGACY");
    out.append(",\"legacy_formats\":").append(legacy).append(',');
    scala.collection.immutable.Map all = conf.getAllConfs();
    Object[] last = lastSettings; // the same from query to query, mostly, and costly to digest
    if (last == null || !last[0].equals(all)) lastSettings = last = new Object[] {all, digested(all)};
    out.append((String) last[1]);
  }

  private static String digested(scala.collection.immutable.Map settings) {
    // Spark's settings as a whole: what was evaluated under others counts for nothing.
    StringBuilder all = new StringBuilder();
    StringBuilder options = new StringBuilder();
    Map sorted = new TreeMap();
    scala.collection.Iterator pairs = settings.iterator();
    while (pairs.hasNext()) {
      Tuple2 pair = (Tuple2) pairs.next();
      sorted.put(pair._1(), pair._2());
    }
    Iterator it = sorted.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry option = (Map.Entry) it.next();
      if (!((String) option.getKey()).startsWith(Bridge.PREFIX)) all.append(option).append('\n');
      else Json.field(options.length() > 0 ? options.append(',') : options, (String) option.getKey(), (String) option.getValue());
    }
    StringBuilder out = new StringBuilder();
    Json.field(out, "digest", UUID.nameUUIDFromBytes(all.toString().getBytes(StandardCharsets.UTF_8)).toString());
    return out.append("},\"options\":{").append(options).append('}').toString();
  }
}
