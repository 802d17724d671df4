package secateur.core;

import java.util.Arrays;
import java.util.Base64;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * What a scan asks Python once, while its query runs: which files can be skipped, now that the values of a subquery are known.
 * Whatever goes wrong, none, and the summary tells why.
 */
public final class RuntimePredicate {
  private final String id; // by which Python remembers it
  private final String about; // what the values are compared with
  private final FileSet files;
  private final BitSet before; // the files that are skipped in any case
  private final long query;
  private final String table;
  private final long use;
  private final Map answers = new HashMap(); // values as JSON -> BitSet; a data frame may run again

  RuntimePredicate(String id, String about, Scan scan, BitSet before, QueryState state) {
    this.id = id;
    this.about = about;
    this.files = scan.files;
    this.before = before;
    this.query = state.id;
    this.table = scan.table;
    this.use = scan.use();
  }

  /** The files to skip, given the one row that the subquery returned. */
  public BitSet skipped(InternalRow row, StructType schema) {
    StringBuilder values = new StringBuilder("[");
    for (int i = 0; row != null && i < schema.length(); i++) {
      if (i > 0) values.append(',');
      value(values, row.isNullAt(i) ? null : row.get(i, schema.fields()[i].dataType()), schema.fields()[i].dataType());
    }
    return skipped(values.append(']').toString());
  }

  private static void value(StringBuilder out, Object value, DataType type) {
    if (value instanceof ArrayData) {
      DataType inner = ((ArrayType) type).elementType();
      out.append('[');
      for (int i = 0; i < ((ArrayData) value).numElements(); i++) {
        if (i > 0) out.append(',');
        Json.value(out, ((ArrayData) value).get(i, inner));
      }
      out.append(']');
    } else if (value instanceof byte[]) {
      Json.string(out, Base64.getEncoder().encodeToString((byte[]) value));
    } else {
      Json.value(out, value);
    }
  }

  private synchronized BitSet skipped(String values) {
    BitSet known = (BitSet) answers.get(values);
    if (known == null) answers.put(values, known = ask(values));
    return known;
  }

  private BitSet ask(String values) {
    long start = System.nanoTime();
    Bridge bridge = Bridge.instance;
    if (!bridge.isOn()) return new BitSet();
    String failed = "";
    String told = "";
    int changed = 0;
    BitSet skip = new BitSet();
    try {
      StringBuilder request = new StringBuilder("{\"op\":\"runtime\",");
      Json.field(request, "id", id);
      Json.field(request.append(','), "fp", files.fingerprint);
      request.append(",\"values\":").append(values).append('}');
      Map answer = Json.read(bridge.ask(request.toString(), Bridge.budget(SQLConf.get())));
      if (answer.get("error") != null) throw new IllegalStateException((String) answer.get("error"));
      if (!files.fingerprint.equals(answer.get("fp"))) throw new IllegalStateException("the answer is for other files");
      BitSet found = BitSet.valueOf(Base64.getDecoder().decode((String) answer.get("skip")));
      if (found.length() > files.count || found.cardinality() != ((Number) answer.get("skipped")).intValue()) {
        throw new IllegalStateException("the answer does not add up");
      }
      told = (String) answer.get("told");
      found.or(before);
      changed = files.keepChanged(found, new BitSet());
      skip = found;
    } catch (Throwable problem) {
      if (problem instanceof InterruptedException) Thread.currentThread().interrupt();
      skip = new BitSet();
      failed = problem.getClass().getSimpleName() + ": " + problem.getMessage();
    }
    BitSet all = (BitSet) skip.clone();
    all.or(before);
    StringBuilder record = new StringBuilder("{\"query\":").append(query).append(",\"call\":0,\"scans\":[],\"runtime\":{");
    Json.field(record, "table", table);
    record.append(",\"use\":").append(use).append(",\"kept\":").append(files.count - all.cardinality());
    record.append(",\"changed\":").append(changed).append(",\"ns\":").append(System.nanoTime() - start);
    Json.field(record.append(','), "id", id);
    Json.field(record.append(','), "told", told == null ? "" : told);
    Json.field(record.append(','), "failed", failed);
    bridge.record(record.append("}}").toString());
    return skip;
  }

  /** The answer depends on the files, on what is compared and on the values, and these on the subquery, which is compared elsewhere. */
  public boolean equals(Object other) {
    return other instanceof RuntimePredicate && identity().equals(((RuntimePredicate) other).identity());
  }

  public int hashCode() {
    return identity().hashCode();
  }

  private List identity() {
    return Arrays.asList(new Object[] {files.fingerprint, about, before});
  }
}
