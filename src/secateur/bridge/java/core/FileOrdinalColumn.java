package secateur.core;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** File sources whose files are partitions of their own, with their number in a hidden column, so that Spark can choose among them at run time. */
public final class FileOrdinalColumn {
  public static final String COLUMN = "__secateur_file";

  private FileOrdinalColumn() {}

  /** Whether the table has no such column of its own. */
  public static boolean fits(HadoopFsRelation source) {
    StructField[] fields = source.schema().fields();
    for (int i = 0; i < fields.length; i++) if (fields[i].name().equalsIgnoreCase(COLUMN)) return false;
    return true;
  }

  public static StructType with(StructType schema, Metadata metadata) {
    return schema.add(COLUMN, DataTypes.IntegerType, false, metadata);
  }

  /** One file as a partition, with the values of its own partition and its number. */
  public static PartitionDirectory partition(InternalRow values, StructType schema, FileStatusWithMetadata file, int number) {
    Object[] all = new Object[schema.length() + 1];
    for (int i = 0; i < schema.length(); i++) all[i] = values.get(i, schema.fields()[i].dataType());
    all[schema.length()] = Integer.valueOf(number);
    List one = new ArrayList();
    one.add(file);
    return new PartitionDirectory(new GenericInternalRow(all), Catalyst.seq(one));
  }
}
