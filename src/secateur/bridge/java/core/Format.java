package secateur.core;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;

/** A table format: knows its scans among the leaves of a plan. Adding one is a subclass of this, one of Scan, one of FileSet. */
public abstract class Format extends Unit {
  /** Null if the leaf is none of this format's, or if it is better looked at in the late step. */
  public abstract Scan scan(LogicalPlan leaf, boolean late, QueryState state, SQLConf conf) throws Exception;
}
