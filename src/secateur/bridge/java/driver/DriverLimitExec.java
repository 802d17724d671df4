package secateur.driver;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.CollectLimitExec;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import secateur.core.Catalyst;

/**
 * The LIMIT at the end of a query, whose rows the driver reads itself when they are collected. Whoever asks for anything else than the
 * rows, and whatever fails, gets what Spark's own node gives: the child is the plan that Spark would run.
 */
public final class DriverLimitExec extends SparkPlan {
  private final int limit;
  private final SparkPlan child;
  private final int offset;
  private final transient DriverRows rows;

  /** Public, since Spark copies nodes by it: with the elements below, and the other arguments. */
  public DriverLimitExec(int limit, SparkPlan child, int offset, DriverRows rows) {
    this.limit = limit;
    this.child = child;
    this.offset = offset;
    this.rows = rows;
  }

  /** What is sent to executors must not name a class of ours: they do not have it. */
  private CollectLimitExec plain() {
    return new CollectLimitExec(limit, child, offset);
  }

  public InternalRow[] executeCollect() {
    InternalRow[] found = rows.read(child, limit, offset);
    return found == null ? plain().executeCollect() : found;
  }

  public RDD doExecute() {
    return plain().doExecute();
  }

  public org.apache.spark.sql.catalyst.plans.physical.Partitioning outputPartitioning() {
    return plain().outputPartitioning();
  }

  public Seq output() {
    return child.output();
  }

  public Seq children() {
    return Catalyst.seq(new Object[] {child});
  }

  public SparkPlan withNewChildrenInternal(IndexedSeq children) {
    return new DriverLimitExec(limit, (SparkPlan) children.apply(0), offset, rows);
  }

  public Seq otherCopyArgs() {
    return Catalyst.seq(new Object[] {rows});
  }

  public int productArity() {
    return 3;
  }

  public Object productElement(int i) {
    return i == 0 ? Integer.valueOf(limit) : i == 1 ? child : (Object) Integer.valueOf(offset);
  }

  public boolean canEqual(Object other) {
    return other instanceof DriverLimitExec;
  }

  public boolean equals(Object other) {
    if (!(other instanceof DriverLimitExec)) return false;
    DriverLimitExec that = (DriverLimitExec) other;
    return limit == that.limit && offset == that.offset && child.equals(that.child);
  }

  public int hashCode() {
    return (limit * 31 + offset) * 31 + child.hashCode();
  }
}
