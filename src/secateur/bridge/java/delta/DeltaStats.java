package secateur.delta;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.delta.DeltaColumnMapping$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import secateur.core.ArrowBuffers;
import secateur.core.Json;

/**
 * The statistics in the log, one JSON text a file, as columns: numbers as numbers, the rest as text. What is not of a column's type, and
 * whatever a text that is no JSON says, is left out; what the values mean is Python's business.
 */
final class DeltaStats {
  private static final JsonFactory JSON = ((JsonFactoryBuilder) JsonFactory.builder().enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER)).build();
  private static final int ALONE = 1000; // files that one thread reads as fast as two
  private static final int NONE = 0; // only NULLs are counted
  private static final int LONG = 1;
  private static final int DOUBLE = 2;
  private static final int TEXT = 3;
  private static final int NUMBER = 4; // as text, which is exact

  private final int count;
  private final Map places = new HashMap(); // physical name -> which leaf of the schema, or such a map for a struct
  private final Column rows;
  private final boolean[] wide; // files whose bounds are not tight
  private final List low = new ArrayList(); // of Column, null if the leaf has no bounds
  private final List high = new ArrayList();
  private final List nulls = new ArrayList();

  DeltaStats(StructType schema, int count) {
    this.count = count;
    rows = new Column(LONG, count);
    wide = new boolean[count];
    leaves(schema, places);
  }

  private void leaves(StructType schema, Map places) {
    for (int i = 0; i < schema.length(); i++) {
      DataType type = schema.fields()[i].dataType();
      String name = DeltaColumnMapping$.MODULE$.getPhysicalName(schema.fields()[i]);
      if (type instanceof StructType) {
        Map inner = new HashMap();
        places.put(name, inner);
        leaves((StructType) type, inner);
        continue;
      }
      int kind = kind(type);
      places.put(name, Integer.valueOf(nulls.size()));
      low.add(kind == NONE ? null : new Column(kind, count));
      high.add(kind == NONE ? null : new Column(kind, count));
      nulls.add(new Column(LONG, count));
    }
  }

  /** The leaves in the same order, as [[names on the way], type, whether the type was widened, [names in the files], id in the files or -1]. */
  static void describe(StructType schema, String way, String physicalWay, StringBuilder out) {
    for (int i = 0; i < schema.length(); i++) {
      StructField field = schema.fields()[i];
      StringBuilder name = new StringBuilder(way).append(way.isEmpty() ? "" : ",");
      StringBuilder physical = new StringBuilder(physicalWay).append(way.isEmpty() ? "" : ",");
      Json.string(name, field.name());
      Json.string(physical, DeltaColumnMapping$.MODULE$.getPhysicalName(field));
      if (field.dataType() instanceof StructType) {
        describe((StructType) field.dataType(), name.toString(), physical.toString(), out);
        continue;
      }
      if (out.charAt(out.length() - 1) == ']') out.append(',');
      Json.string(out.append("[[").append(name).append("],"), field.dataType().catalogString());
      out.append(field.metadata().contains("delta.typeChanges") ? ",1,[" : ",0,[").append(physical).append("],");
      out.append(DeltaColumnMapping$.MODULE$.hasColumnId(field) ? DeltaColumnMapping$.MODULE$.getColumnId(field) : -1).append(']');
    }
  }

  /** Whether the log says how many rows a file has; if not, it says nothing else of use. */
  boolean has(int at) {
    return rows.known[at];
  }

  private static int kind(DataType type) {
    if (type instanceof IntegralType) return LONG;
    if (type instanceof FloatType || type instanceof DoubleType) return DOUBLE;
    if (type instanceof DecimalType) return NUMBER;
    String name = type.catalogString();
    return name.equals("string") || name.equals("date") || name.equals("timestamp") || name.equals("timestamp_ntz") ? TEXT : NONE;
  }

  /** By two threads, each with half of the files: it is the longest step of loading a table. */
  void readAll(final byte[][] texts, final int from) throws InterruptedException {
    final int half = count < ALONE ? count : count / 2;
    Thread other = new Thread("secateur-delta") {
      public void run() {
        for (int i = half; i < count; i++) read(i, texts[from + i]);
      }
    };
    if (half < count) other.start();
    for (int i = 0; i < half; i++) read(i, texts[from + i]);
    if (half < count) other.join();
  }

  private void read(int at, byte[] text) {
    if (text == null || text.length == 0) return;
    try {
      JsonParser json = JSON.createParser(text);
      try {
        if (json.nextToken() == JsonToken.START_OBJECT) object(json, at);
        if (json.nextToken() != null) forget(at);
      } finally {
        json.close();
      }
    } catch (java.io.IOException broken) {
      forget(at);
    }
  }

  private void object(JsonParser json, int at) throws java.io.IOException {
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      String name = json.getCurrentName();
      JsonToken token = json.nextToken();
      boolean inner = token == JsonToken.START_OBJECT;
      if (name.equals("numRecords")) rows.read(json, token, at);
      else if (name.equals("tightBounds")) wide[at] = token == JsonToken.VALUE_FALSE;
      else if (inner && name.equals("minValues")) values(json, places, low, at);
      else if (inner && name.equals("maxValues")) values(json, places, high, at);
      else if (inner && name.equals("nullCount")) values(json, places, nulls, at);
      else json.skipChildren();
    }
  }

  private static void values(JsonParser json, Map places, List columns, int at) throws java.io.IOException {
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      Object place = places.get(json.getCurrentName());
      JsonToken token = json.nextToken();
      Column column = place instanceof Integer ? (Column) columns.get(((Integer) place).intValue()) : null;
      if (column != null) column.read(json, token, at);
      else if (place instanceof Map && token == JsonToken.START_OBJECT) values(json, (Map) place, columns, at);
      else json.skipChildren();
    }
  }

  private void forget(int at) {
    rows.known[at] = false;
    for (int c = 0; c < nulls.size(); c++) {
      if (low.get(c) != null) ((Column) low.get(c)).known[at] = false;
      if (high.get(c) != null) ((Column) high.get(c)).known[at] = false;
      ((Column) nulls.get(c)).known[at] = false;
    }
  }

  void write(ArrowBuffers bulk) throws Exception {
    rows.write(bulk, "rows", count);
    bulk.flags("wide", bits(wide), count, null);
    for (int c = 0; c < nulls.size(); c++) {
      if (low.get(c) != null) ((Column) low.get(c)).write(bulk, "low" + c, count);
      if (high.get(c) != null) ((Column) high.get(c)).write(bulk, "high" + c, count);
      ((Column) nulls.get(c)).write(bulk, "nulls" + c, count);
    }
  }

  private static BitSet bits(boolean[] flags) {
    BitSet bits = new BitSet(flags.length);
    for (int i = 0; i < flags.length; i++) if (flags[i]) bits.set(i);
    return bits;
  }

  /** One statistic of one column. */
  static final class Column {
    final boolean[] known; // not a BitSet, which two threads cannot write
    private final int kind;
    private long[] longs;
    private double[] doubles;
    private String[] texts;

    Column(int kind, int count) {
      this.kind = kind;
      this.known = new boolean[count];
      if (kind == LONG) longs = new long[count];
      else if (kind == DOUBLE) doubles = new double[count];
      else texts = new String[count];
    }

    void read(JsonParser json, JsonToken token, int at) throws java.io.IOException {
      known[at] = false;
      boolean number = token == JsonToken.VALUE_NUMBER_INT || token == JsonToken.VALUE_NUMBER_FLOAT;
      if (kind == LONG) {
        if (token != JsonToken.VALUE_NUMBER_INT || json.getNumberType() == JsonParser.NumberType.BIG_INTEGER) {
          json.skipChildren();
          return;
        }
        longs[at] = json.getLongValue();
      } else if (kind == DOUBLE) {
        if (!number) { // NaN and the infinities are texts
          json.skipChildren();
          return;
        }
        doubles[at] = json.getDoubleValue();
      } else {
        if (kind == NUMBER ? !number : token != JsonToken.VALUE_STRING || !isUnicode(json.getText())) {
          json.skipChildren();
          return;
        }
        texts[at] = json.getText();
      }
      known[at] = true;
    }

    /** Half of a surrogate pair has no bytes in UTF-8, and what replaces it may be less or more. */
    private static boolean isUnicode(String text) {
      for (int i = 0; i < text.length(); i++) {
        if (Character.isSurrogate(text.charAt(i))) return StandardCharsets.UTF_8.newEncoder().canEncode(text);
      }
      return true;
    }

    void write(ArrowBuffers bulk, String name, int count) throws Exception {
      int first = 0;
      while (first < count && known[first]) first++;
      BitSet valid = first == count ? null : bits(known);
      if (kind == LONG) {
        bulk.longs(name, longs, valid);
      } else if (kind == DOUBLE) {
        bulk.doubles(name, doubles, valid);
      } else {
        for (int i = 0; i < count; i++) if (!known[i]) texts[i] = null;
        bulk.strings(name, texts);
      }
    }
  }
}
