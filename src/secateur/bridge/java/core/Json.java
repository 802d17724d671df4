package secateur.core;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** Writes compact ASCII JSON by hand (a plan is written in well under a millisecond) and reads answers with Jackson. */
public final class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final char[] HEX = "0123456789abcdef".toCharArray();

  private Json() {}

  public static Map read(String text) throws Exception {
    return (Map) MAPPER.readValue(text, Map.class);
  }

  public static void string(StringBuilder out, String text) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < 0x20 || c > 0x7e) {
        out.append("\\u").append(HEX[c >> 12 & 15]).append(HEX[c >> 8 & 15]).append(HEX[c >> 4 & 15]).append(HEX[c & 15]);
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }

  public static void field(StringBuilder out, String name, String text) {
    out.append('"').append(name).append("\":");
    string(out, text);
  }

  /** Whether a value is told as it is. */
  public static boolean hasForm(Object v) {
    return v == null || v instanceof Number || v instanceof Boolean || v instanceof Decimal || v instanceof UTF8String;
  }

  /** A value as Catalyst holds it; what has no JSON form becomes {"other":"its class"}. */
  public static void value(StringBuilder out, Object v) {
    if (v == null) {
      out.append("null");
    } else if (v instanceof Double || v instanceof Float) {
      double d = ((Number) v).doubleValue();
      if (Double.isNaN(d) || Double.isInfinite(d)) string(out, Double.toString(d));
      else out.append(d);
    } else if (v instanceof Number || v instanceof Boolean) {
      out.append(v);
    } else if (v instanceof Decimal) {
      string(out, ((Decimal) v).toJavaBigDecimal().toPlainString());
    } else if (v instanceof UTF8String) {
      byte[] bytes = ((UTF8String) v).getBytes();
      String text = new String(bytes, StandardCharsets.UTF_8);
      if (Arrays.equals(text.getBytes(StandardCharsets.UTF_8), bytes)) string(out, text);
      else hex(out, bytes);
    } else {
      out.append('{');
      field(out, "other", v.getClass().getSimpleName());
      out.append('}');
    }
  }

  private static void hex(StringBuilder out, byte[] bytes) {
    out.append("{\"hex\":\"");
    for (int i = 0; i < bytes.length; i++) out.append(HEX[bytes[i] >> 4 & 15]).append(HEX[bytes[i] & 15]);
    out.append("\"}");
  }
}
