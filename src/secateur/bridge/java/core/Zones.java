package secateur.core;

import java.time.Instant;
import java.time.ZoneId;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.FromUTCTimestamp;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.catalyst.expressions.ToUTCTimestamp;
import org.apache.spark.sql.catalyst.util.DateTimeUtils$;

/**
 * The time zones that a plan's expressions use, with their offsets as this Java knows them: Python's own tables may be of
 * another release, and a file would be skipped for an hour that Spark counts differently.
 */
final class Zones {
  private static final long END = 4102444800L; // 2100: from there on only the range of the offsets is told
  private static final Map WRITTEN = new ConcurrentHashMap();
  private final Map used = new TreeMap();

  /** Notes the zone of an expression and returns its name, null if it has none. */
  String of(Expression e) {
    ZoneId zone = null;
    if (e instanceof FromUTCTimestamp || e instanceof ToUTCTimestamp) {
      Object name = e.children().apply(1) instanceof Literal ? ((Literal) e.children().apply(1)).value() : null;
      try {
        zone = name == null ? null : DateTimeUtils$.MODULE$.getZoneId(name.toString());
      } catch (RuntimeException unknown) {
        return null; // the query will tell
      }
    } else if (e instanceof TimeZoneAwareExpression && ((TimeZoneAwareExpression) e).timeZoneId().isDefined()) {
      zone = ((TimeZoneAwareExpression) e).zoneId();
    }
    if (zone == null) return null;
    used.put(zone.getId(), zone);
    return zone.getId();
  }

  /** {"zone": [seconds of each change and of the end, offset before the first and after each, range of those after the end]}. */
  void write(StringBuilder out) {
    out.append('{');
    Iterator it = used.entrySet().iterator();
    for (boolean first = true; it.hasNext(); first = false) {
      Map.Entry zone = (Map.Entry) it.next();
      if (!first) out.append(',');
      String table = (String) WRITTEN.get(zone.getKey());
      if (table == null) WRITTEN.put(zone.getKey(), table = table(((ZoneId) zone.getValue()).getRules()));
      Json.string(out, (String) zone.getKey());
      out.append(':').append(table);
    }
    out.append('}');
  }

  private static String table(ZoneRules rules) {
    StringBuilder seconds = new StringBuilder();
    StringBuilder offsets = new StringBuilder();
    offsets.append(rules.getOffset(Instant.MIN).getTotalSeconds());
    int least = Integer.MAX_VALUE;
    int most = Integer.MIN_VALUE;
    ZoneOffsetTransition change = rules.nextTransition(Instant.MIN);
    // A rule repeats every 400 years at most, but all its offsets occur in any few: see 50 years beyond the end.
    for (; change != null && change.toEpochSecond() < END + 50L * 31556952L; change = rules.nextTransition(change.getInstant())) {
      if (change.toEpochSecond() < END) {
        seconds.append(change.toEpochSecond()).append(',');
        offsets.append(',').append(change.getOffsetAfter().getTotalSeconds());
      } else {
        least = Math.min(least, Math.min(change.getOffsetBefore().getTotalSeconds(), change.getOffsetAfter().getTotalSeconds()));
        most = Math.max(most, Math.max(change.getOffsetBefore().getTotalSeconds(), change.getOffsetAfter().getTotalSeconds()));
      }
    }
    if (least > most) least = most = rules.getOffset(Instant.ofEpochSecond(END)).getTotalSeconds();
    return "[[" + seconds + END + "],[" + offsets + "],[" + least + "," + most + "]]";
  }
}
