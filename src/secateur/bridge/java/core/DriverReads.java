package secateur.core;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** The unit that reads the rows of a LIMIT in the driver, without a job. */
public abstract class DriverReads extends Unit {
  /** The builder of the planner's strategy, as Spark's extensions take it. */
  public abstract scala.runtime.AbstractFunction1 strategies(Bridge bridge);

  /** Marks a plan for the strategy; false if its rows cannot be read so. */
  public abstract boolean mark(LogicalPlan plan, Scan scan, QueryState state);
}
