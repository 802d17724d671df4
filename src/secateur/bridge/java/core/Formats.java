package secateur.core;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;

/** The formats, in the order in which they are asked. Those of connectors are units. */
final class Formats {
  private static final List ALL = new CopyOnWriteArrayList(new Object[] {new ParquetFormat()});

  private Formats() {}

  /** Plain files come last: tables of connectors are made of such. */
  static void add(Format format) {
    ALL.add(0, format);
  }

  /** Null if the leaf reads no table, or if it is better looked at in the late step. */
  static Scan scan(LogicalPlan leaf, boolean late, QueryState state, SQLConf conf) throws Exception {
    for (int i = 0; i < ALL.size(); i++) {
      Scan scan;
      try {
        scan = ((Format) ALL.get(i)).scan(leaf, late, state, conf);
      } catch (LinkageError other) {
        scan = new Declined(leaf, "", "its connector is of another version than secateur knows: " + other);
      }
      if (scan != null) return scan;
    }
    if (!(leaf instanceof DataSourceV2ScanRelation || leaf instanceof DataSourceV2Relation)) return null;
    DataSourceV2Relation relation =
        leaf instanceof DataSourceV2ScanRelation ? ((DataSourceV2ScanRelation) leaf).relation() : (DataSourceV2Relation) leaf;
    Scan scan = new Declined(leaf, relation.table().getClass().getSimpleName(),
        Units.why(relation.table().getClass(), "it is read through Spark's DataSource V2 interface, which secateur does not prune"));
    scan.table = relation.table().name();
    return scan;
  }

  /** A table that is left alone. */
  static final class Declined extends Scan {
    Declined(LogicalPlan node, String format, String why) {
      super(node);
      this.format = format;
      this.declined = why;
    }

    public String kind(Attribute attribute) {
      return "hidden";
    }
  }
}
