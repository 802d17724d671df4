package secateur.runtime;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Expressions that the subqueries are made of. */
final class Expressions {
  private Expressions() {}

  static Expression of(AggregateFunction function) {
    return function.toAggregateExpression();
  }

  static Literal text(String name) {
    return new Literal(UTF8String.fromString(name), DataTypes.StringType);
  }

  static Literal number(Object value) {
    return new Literal(Long.valueOf(((Number) value).longValue()), DataTypes.LongType);
  }
}
