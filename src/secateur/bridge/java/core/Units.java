package secateur.core;

import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The units that work here, each null if it does not, and why tables of a connector are left alone. */
public final class Units {
  static volatile RuntimePruning runtime;
  static volatile DriverReads driver;
  private static final Map BROKEN = new ConcurrentHashMap(); // unit -> what does not fit

  private Units() {}

  /** Where scans ask for the unit: null if it does not work here. */
  public static RuntimePruning runtime() {
    return runtime;
  }

  static void add(Object unit) throws Exception {
    ((Unit) unit).probe();
    if (unit instanceof RuntimePruning) runtime = (RuntimePruning) unit;
    else if (unit instanceof DriverReads) driver = (DriverReads) unit;
    else Formats.add((Format) unit);
  }

  static void isBroken(String unit, String problem) {
    BROKEN.put(unit, problem);
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
}
