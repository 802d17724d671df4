package secateur;

import java.util.Collections;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** What the rules remember of one query between its early and its late step. */
final class QueryState {
  final long id;
  final boolean explained;
  private final Set seen = Collections.synchronizedSet(new HashSet());

  QueryState(long id, boolean explained) {
    this.id = id;
    this.explained = explained;
  }

  /** Spark gives every use of a table attribute ids of its own, so the first one names the use. */
  private static Object key(LogicalRelation relation) {
    return relation.output().isEmpty() ? relation : (Object) Long.valueOf(((Attribute) relation.output().apply(0)).exprId().id());
  }

  boolean has(LogicalRelation relation) {
    return seen.contains(key(relation));
  }

  void add(LogicalRelation relation) {
    seen.add(key(relation));
  }
}
