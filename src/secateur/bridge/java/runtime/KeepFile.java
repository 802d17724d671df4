package secateur.runtime;

import java.io.Serializable;
import java.util.Arrays;
import java.util.BitSet;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import secateur.core.Catalyst;
import secateur.core.RuntimePredicate;

/**
 * Whether a file is read, given its number (the hidden partition column of a scan) and the row of an uncorrelated subquery. Its only column
 * is one of partitions, so Spark evaluates it in the driver, once a file, after the subquery and before the scan. It may only ever be
 * FALSE for a file that is not needed: it is a hint, rows do not depend on it.
 */
public final class KeepFile extends Expression implements CodegenFallback, Serializable {
  private final Expression file;
  private final Expression values;
  private final RuntimePredicate question;

  public KeepFile(Expression file, Expression values, RuntimePredicate question) {
    this.file = file;
    this.values = values;
    this.question = question;
  }

  public Object eval(InternalRow row) {
    Object number = file.eval(row);
    // A file that is not one of those listed has no number that could be skipped.
    if (number == null || ((Integer) number).intValue() < 0) return Boolean.TRUE;
    BitSet skipped = question.skipped((InternalRow) values.eval(row), (StructType) values.dataType());
    return Boolean.valueOf(!skipped.get(((Integer) number).intValue()));
  }

  /** As the trait has it: one of the two compilers does not see its method, the other cannot call it as a default. */
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    try {
      Class[] types = {CodegenFallback.class, CodegenContext.class, ExprCode.class};
      return (ExprCode) CodegenFallback.class.getMethod("doGenCode$", types).invoke(null, new Object[] {this, context, code});
    } catch (ReflectiveOperationException other) {
      throw new IllegalStateException(other); // Spark interprets instead
    }
  }

  /** Some operators send their whole plan to the executors, which neither have this class nor anything to ask: there it is TRUE. */
  public Object writeReplace() {
    return new Literal(Boolean.TRUE, DataTypes.BooleanType);
  }

  public boolean nullable() {
    return false;
  }

  public DataType dataType() {
    return DataTypes.BooleanType;
  }

  public Seq children() {
    return Catalyst.seq(new Object[] {file, values});
  }

  public Expression withNewChildrenInternal(IndexedSeq children) {
    return new KeepFile((Expression) children.apply(0), (Expression) children.apply(1), question);
  }

  public String toString() {
    return "secateur_keep(" + file + ", " + values + ")";
  }

  public String prettyName() {
    return "secateur_keep";
  }

  public int productArity() {
    return 3;
  }

  public Object productElement(int at) {
    return at == 0 ? (Object) file : at == 1 ? (Object) values : (Object) question;
  }

  public boolean canEqual(Object other) {
    return other instanceof KeepFile;
  }

  public boolean equals(Object other) {
    if (!(other instanceof KeepFile)) return false;
    KeepFile that = (KeepFile) other;
    return file.equals(that.file) && values.equals(that.values) && question.equals(that.question);
  }

  public int hashCode() {
    return (file.hashCode() * 31 + values.hashCode()) * 31 + question.hashCode();
  }
}
