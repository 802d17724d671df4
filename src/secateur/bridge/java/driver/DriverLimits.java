package secateur.driver;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import scala.runtime.AbstractFunction1;
import secateur.core.Bridge;
import secateur.core.CaseClass;
import secateur.core.DriverReads;
import secateur.core.QueryState;
import secateur.core.Scan;

/** Reads of the driver by a node of its own in the physical plan. */
public final class DriverLimits extends DriverReads {
  public AbstractFunction1 strategies(Bridge bridge) {
    return new DriverLimit.Of(bridge);
  }

  public boolean mark(LogicalPlan plan, Scan scan, QueryState state) {
    return DriverLimit.mark(plan, new DriverRows(scan, state));
  }

  public void probe() throws Exception {
    new DriverRows.AsTask().end();
    CaseClass.check(FileSourceScanExec.class, "relation");
    CaseClass.check(HadoopFsRelation.class, "fileFormat");
  }
}
