package secateur;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;

/** The formats, in the order in which they are asked. Those of connectors are there if they were compiled, see jvm.py. */
final class Formats {
  private static final String[] CONNECTORS = {"secateur.DeltaFormat", "secateur.IcebergFormat"};
  private static final List ALL = all();
  private static final Map BROKEN = new ConcurrentHashMap(); // connector -> what does not fit

  static void isBroken(String connector, String problem) {
    BROKEN.put(connector, problem);
  }

  /** Why a table that some class reads is left alone. */
  static String why(Class reader, String otherwise) {
    Iterator it = BROKEN.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry broken = (Map.Entry) it.next();
      if (reader.getName().contains("." + broken.getKey() + ".")) {
        return "secateur does not fit this version of the " + broken.getKey() + " connector: " + broken.getValue();
      }
    }
    return otherwise;
  }

  private static List all() {
    List found = new ArrayList();
    for (int i = 0; i < CONNECTORS.length; i++) {
      try {
        found.add(Class.forName(CONNECTORS[i], true, Formats.class.getClassLoader()).getDeclaredConstructor(new Class[0]).newInstance(new Object[0]));
      } catch (ClassNotFoundException absent) {
        continue; // the connector is not on this Spark's classpath
      } catch (Exception broken) {
        continue; // as if it were absent: its tables are declined by name below
      } catch (LinkageError broken) {
        continue;
      }
    }
    found.add(new ParquetFormat());
    return found;
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
        why(relation.table().getClass(), "it is read through Spark's DataSource V2 interface, which secateur does not prune"));
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

    String kind(Attribute attribute) {
      return "hidden";
    }
  }
}
