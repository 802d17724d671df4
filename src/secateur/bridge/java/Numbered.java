package secateur;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** File sources whose files are partitions of their own, with their number in a hidden column, so that Spark can choose among them at run time. */
final class Numbered {
  static final String COLUMN = "__secateur_file";

  private Numbered() {}

  /** Whether the table has no such column of its own. */
  static boolean fits(HadoopFsRelation source) {
    StructField[] fields = source.schema().fields();
    for (int i = 0; i < fields.length; i++) if (fields[i].name().equalsIgnoreCase(COLUMN)) return false;
    return true;
  }

  static StructType with(StructType schema, Metadata metadata) {
    return schema.add(COLUMN, DataTypes.IntegerType, false, metadata);
  }

  /** A relation over a numbered source that asks for its files; what is above it does not see the hidden column. */
  static LogicalPlan asking(LogicalRelation relation, HadoopFsRelation source, Metadata metadata, Question question, LogicalPlan values)
      throws Exception {
    Seq none = (Seq) Nil$.MODULE$;
    AttributeReference file = new AttributeReference(
        COLUMN, DataTypes.IntegerType, false, metadata, NamedExpression$.MODULE$.newExprId(), none);
    List output = new ArrayList(CollectionConverters.asJava(relation.output()));
    output.add(file);
    Object numbered = CaseClass.with(CaseClass.with(relation, "relation", source), "output", CollectionConverters.asScala(output).toList());
    return new Project((Seq) relation.output(), new Filter(new KeepFile(file, valueOf(values), question), (LogicalPlan) numbered));
  }

  /** The one value that a plan gives. */
  static ScalarSubquery valueOf(LogicalPlan plan) {
    Seq none = (Seq) Nil$.MODULE$;
    return new ScalarSubquery(plan, none, NamedExpression$.MODULE$.newExprId(), none, Option.empty(), Option.empty(), Option.empty());
  }

  /** One file as a partition, with the values of its own partition and its number. */
  static PartitionDirectory partition(InternalRow values, StructType schema, FileStatusWithMetadata file, int number) {
    Object[] all = new Object[schema.length() + 1];
    for (int i = 0; i < schema.length(); i++) all[i] = values.get(i, schema.fields()[i].dataType());
    all[schema.length()] = Integer.valueOf(number);
    List one = new ArrayList();
    one.add(file);
    return new PartitionDirectory(new GenericInternalRow(all), CollectionConverters.asScala(one).toList());
  }
}
