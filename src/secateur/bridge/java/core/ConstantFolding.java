package secateur.core;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.HigherOrderFunction;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Nondeterministic;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.YearMonthIntervalType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.runtime.AbstractPartialFunction;

/**
 * Evaluates expressions on the constants that Python knows of some files, as Spark's own constant folding does. Spark knows every
 * function that it has; what fails, here or in Spark, is unknown.
 */
final class ConstantFolding {
  private static final String OWN = "org.apache.spark.sql.catalyst.expressions.";
  private static final String HELPERS = "org.apache.spark.sql.catalyst.";
  private static final AtomicLong NEXT = new AtomicLong();

  private ConstantFolding() {}

  /** Whether it yields the same value whenever it is evaluated on the same columns, here and on an executor. */
  static boolean evaluable(Expression e) {
    return e.deterministic() && !e.references().isEmpty() && pure(e);
  }

  private static boolean pure(Expression e) {
    if (e instanceof AttributeReference || e instanceof Literal) return true;
    String name = e.getClass().getName();
    if (!name.startsWith(OWN) || e instanceof Unevaluable || e instanceof UserDefinedExpression || e instanceof PlanExpression
        || e instanceof HigherOrderFunction || e instanceof Nondeterministic) return false;
    if (e instanceof StaticInvoke) {
      StaticInvoke call = (StaticInvoke) e;
      // Encryption draws a random vector, though Spark takes it for deterministic.
      if (!call.staticObject().getName().startsWith(HELPERS) || call.functionName().equals("aesEncrypt")) return false;
    } else if (e instanceof Invoke) {
      Expression target = ((Invoke) e).targetObject();
      Object object = target instanceof Literal ? ((Literal) target).value() : null;
      if (object == null || !object.getClass().getName().startsWith(HELPERS)) return false;
    } else if (name.startsWith(OWN + "objects.")) {
      return false;
    }
    for (int i = 0; i < e.children().size(); i++) if (!pure((Expression) e.children().apply(i))) return false;
    return true;
  }

  /** A text that no other expression has, in this query or another: for what cannot be told apart by what is written of it. */
  static String unique() {
    return "#" + NEXT.incrementAndGet();
  }

  /** What makes a function another one beside its class and its arguments: modes, formats, the method that it calls. */
  static String parameters(Expression e) {
    if (!(e instanceof scala.Product) || e instanceof UserDefinedExpression || e instanceof PlanExpression) return unique();
    scala.Product product = (scala.Product) e;
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < product.productArity(); i++) {
      Object part = product.productElement(i);
      if (part instanceof scala.Option) part = ((scala.Option) part).isEmpty() ? null : ((scala.Option) part).get();
      if (part == null || part instanceof Expression) continue;
      if (part instanceof scala.collection.Iterable) {
        scala.collection.Iterable parts = (scala.collection.Iterable) part;
        if (parts.isEmpty() || parts.head() instanceof Expression) continue; // the arguments
        if (!(parts instanceof scala.collection.Map) && parts.head() instanceof scala.Tuple2) continue; // the branches of CASE
        if (parts instanceof scala.collection.Set) part = unique(); // the values of an InSet, which are many
      }
      out.append(out.length() > 0 ? ";" : "").append(part instanceof Class ? ((Class) part).getName() : part.toString());
    }
    return out.toString();
  }

  /** A column by the id of its attribute and, in structs, the position of each field on the way. */
  static String column(Expression e) {
    if (e instanceof AttributeReference) return Long.toString(((AttributeReference) e).exprId().id());
    if (!(e instanceof GetStructField)) return null;
    String parent = column(((GetStructField) e).child());
    return parent == null ? null : parent + "/" + ((GetStructField) e).ordinal();
  }

  /** For each question the value of its expression on every row, {"e":1} where there is none, {"t":1} if there was no time for it. */
  static String answers(List questions, List nodes, long deadline) {
    StringBuilder out = new StringBuilder("[");
    for (int i = 0; i < questions.size(); i++) {
      if (i > 0) out.append(',');
      Map question = (Map) questions.get(i);
      Expression e = (Expression) nodes.get(((Number) question.get("k")).intValue());
      answer(out, e, (List) question.get("cols"), (List) question.get("rows"), deadline);
    }
    return out.append(']').toString();
  }

  private static void answer(StringBuilder out, Expression e, List columns, List rows, long deadline) {
    Columns binding = new Columns(columns);
    Expression bound = (Expression) e.transformDown(binding);
    boolean whole = bound.references().isEmpty();
    out.append('[');
    for (int i = 0; i < rows.size(); i++) {
      if (i > 0) out.append(',');
      int start = out.length();
      try {
        if (!whole) throw new IllegalStateException();
        if (Thread.currentThread().isInterrupted() || System.nanoTime() > deadline) {
          out.append("{\"t\":1}");
          continue;
        }
        List values = (List) rows.get(i);
        Object[] row = new Object[values.size()];
        for (int j = 0; j < row.length; j++) row[j] = value(values.get(j), binding.types[j]);
        Json.value(out, bound.eval((InternalRow) new GenericInternalRow(row)));
      } catch (Throwable refused) { // an ANSI error, a format that is not parsed: the query will tell, if it gets there
        out.setLength(start);
        out.append("{\"e\":1}");
      }
    }
    out.append(']');
  }

  private static Object value(Object json, DataType type) {
    if (json == null) return null;
    if (type instanceof StringType) return UTF8String.fromString((String) json);
    if (type instanceof BooleanType) return Boolean.valueOf(((Number) json).intValue() == 1);
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      return Decimal.apply(new BigDecimal((String) json), decimal.precision(), decimal.scale());
    }
    if (type instanceof DoubleType) return Double.valueOf(json.toString());
    if (type instanceof FloatType) return Float.valueOf((float) Double.parseDouble(json.toString()));
    long number = ((Number) json).longValue();
    if (type instanceof ByteType) return Byte.valueOf((byte) number);
    if (type instanceof ShortType) return Short.valueOf((short) number);
    if (type instanceof IntegerType || type instanceof DateType || type instanceof YearMonthIntervalType) {
      return Integer.valueOf((int) number);
    }
    if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType || type instanceof DayTimeIntervalType) {
      return Long.valueOf(number);
    }
    throw new IllegalArgumentException(type.toString());
  }

  /** Puts the values of a row in the place of columns. */
  static final class Columns extends AbstractPartialFunction {
    private final List columns;
    final DataType[] types;

    Columns(List columns) {
      this.columns = columns;
      this.types = new DataType[columns.size()];
    }

    public boolean isDefinedAt(Object e) {
      String column = column((Expression) e);
      return column != null && columns.contains(column);
    }

    public Object applyOrElse(Object e, scala.Function1 otherwise) {
      if (!isDefinedAt(e)) return otherwise.apply(e);
      int at = columns.indexOf(column((Expression) e));
      types[at] = ((Expression) e).dataType();
      return new BoundReference(at, types[at], true);
    }
  }
}
