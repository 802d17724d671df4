package secateur.core;

import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.Metadata;

/** The unit that lets a scan wait for the one row of a subquery, and then read fewer files. */
public abstract class RuntimePruning extends Unit {
  /** The subquery: one row with one struct, of what a Sort or a Join finds out of `input`. */
  public abstract LogicalPlan values(LogicalPlan place, LogicalPlan input, Map wire) throws Exception;

  /** A file source whose files have ordinals, less the files that the predicate rules out. */
  public abstract LogicalPlan fewerFiles(
      LogicalRelation relation, HadoopFsRelation source, Metadata metadata, RuntimePredicate predicate, LogicalPlan values) throws Exception;

  /** A scan of the second data source API, with the values as a filter of run time. */
  public abstract LogicalPlan filteredAtRuntime(LogicalPlan scan, LogicalPlan values) throws Exception;

  /** The same values as comparisons of rows, for the row groups and pages of Parquet. */
  public abstract LogicalPlan fewerRows(LogicalPlan read, LogicalPlan values, LogicalPlan place, Map wire) throws Exception;
}
