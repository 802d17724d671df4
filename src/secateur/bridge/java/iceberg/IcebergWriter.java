package secateur.iceberg;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.BitSet;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileContent;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.PartitionField;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import secateur.core.ArrowBuffers;
import secateur.core.Json;

/** Writes a snapshot, and the statistics of some of its manifests, in the form that stats/iceberg.py reads. */
final class IcebergWriter {
  private IcebergWriter() {}

  /** The manifests with what their list says of them; nothing of their files. */
  static void snapshot(IcebergFiles files, String[] keys, StringBuilder out) throws Exception {
    out.append("{\"kind\":\"iceberg\",");
    Json.field(out, "fp", files.fingerprint);
    Json.string(out.append(",\"roots\":["), files.table.location());
    out.append("],\"count\":").append(files.count).append(",\"deletes\":").append(!files.deletes.isEmpty());
    fields(files.schema.columns(), "", out.append(",\"fields\":["));
    specs(files, out.append("],\"specs\":{"));
    out.append("},\"keys\":[");
    for (int i = 0; i < keys.length; i++) {
      if (i > 0) out.append(',');
      Json.string(out, keys[i]);
    }
    out.append("],\"manifests\":");
    manifests(files).write(out);
    out.append('}');
  }

  /** The fields with one value a row as [[names on the way], id, type]; those of structs come with the struct's name before theirs. */
  private static void fields(List columns, String way, StringBuilder out) {
    for (int i = 0; i < columns.size(); i++) {
      Types.NestedField field = (Types.NestedField) columns.get(i);
      StringBuilder name = new StringBuilder(way).append(way.isEmpty() ? "" : ",");
      Json.string(name, field.name());
      if (field.type().isStructType()) {
        fields(field.type().asStructType().fields(), name.toString(), out);
        continue;
      }
      if (out.charAt(out.length() - 1) == ']') out.append(',');
      Json.string(out.append("[[").append(name).append("],").append(field.fieldId()).append(','), field.type().toString());
      out.append(']');
    }
  }

  private static void specs(IcebergFiles files, StringBuilder out) {
    Iterator it = files.table.specs().values().iterator();
    for (boolean first = true; it.hasNext(); first = false) {
      PartitionSpec spec = (PartitionSpec) it.next();
      if (!first) out.append(',');
      out.append('"').append(spec.specId()).append("\":[");
      for (int i = 0; i < spec.fields().size(); i++) {
        PartitionField field = (PartitionField) spec.fields().get(i);
        if (i > 0) out.append(',');
        Json.string(out.append('[').append(field.sourceId()).append(','), field.transform().toString());
        Json.string(out.append(','), partitionType(spec, i).toString());
        out.append(']');
      }
      out.append(']');
    }
  }

  private static Type partitionType(PartitionSpec spec, int i) {
    return ((Types.NestedField) spec.partitionType().fields().get(i)).type();
  }

  private static ArrowBuffers manifests(IcebergFiles files) throws Exception {
    int n = files.manifests.length;
    ArrowBuffers bulk = new ArrowBuffers();
    int[] specOf = new int[n];
    int[] count = new int[n];
    long[] rows = new long[n];
    BitSet counted = new BitSet(n);
    for (int i = 0; i < n; i++) {
      ManifestFile manifest = files.manifests[i];
      specOf[i] = manifest.partitionSpecId();
      count[i] = files.start[i + 1] - files.start[i];
      if (manifest.addedRowsCount() == null || manifest.existingRowsCount() == null) continue;
      rows[i] = manifest.addedRowsCount().longValue() + manifest.existingRowsCount().longValue();
      counted.set(i, rows[i] >= 0);
    }
    bulk.ints("spec", specOf, null);
    bulk.ints("files", count, null);
    bulk.longs("rows", rows, counted);
    Iterator it = files.table.specs().values().iterator();
    while (it.hasNext()) {
      PartitionSpec spec = (PartitionSpec) it.next();
      for (int p = 0; p < spec.fields().size(); p++) summaries(files, spec, p, bulk);
    }
    return bulk;
  }

  /** One partition field over all manifests: what the others' specs have there is unknown. */
  private static void summaries(IcebergFiles files, PartitionSpec spec, int p, ArrowBuffers bulk) throws Exception {
    int n = files.manifests.length;
    Type type = partitionType(spec, p);
    Values low = new Values(type, n);
    Values high = new Values(type, n);
    BitSet nulls = new BitSet(n);
    BitSet nans = new BitSet(n);
    nulls.set(0, n);
    nans.set(0, n);
    for (int i = 0; i < n; i++) {
      ManifestFile manifest = files.manifests[i];
      if (manifest.partitionSpecId() != spec.specId() || manifest.partitions() == null || p >= manifest.partitions().size()) continue;
      ManifestFile.PartitionFieldSummary summary = (ManifestFile.PartitionFieldSummary) manifest.partitions().get(p);
      nulls.set(i, summary.containsNull());
      nans.set(i, summary.containsNaN() == null || summary.containsNaN().booleanValue());
      if (summary.lowerBound() != null) low.put(i, Conversions.fromByteBuffer(type, summary.lowerBound()));
      if (summary.upperBound() != null) high.put(i, Conversions.fromByteBuffer(type, summary.upperBound()));
    }
    String name = spec.specId() + "." + p;
    low.write("low." + name, bulk);
    high.write("high." + name, bulk);
    bulk.flags("null." + name, nulls, n, null);
    bulk.flags("nan." + name, nans, n, null);
  }

  /** The statistics of some columns, for the files of some manifests end to end; and how many rows of some files are deleted. */
  static void parts(IcebergFiles files, Map wanted, StringBuilder out) throws Exception {
    out.append('{');
    Json.field(out, "fp", files.fingerprint);
    int[] chosen = ints((List) wanted.get("files"));
    out.append(",\"columns\":").append(wanted.get("columns"));
    out.append(",\"files\":").append(wanted.get("files"));
    ManifestStats[] parts = files.manifests(chosen);
    statistics(files, chosen, parts, new HashSet((List) wanted.get("columns"))).write(out.append(",\"statistics\":"));
    int[] others = ints((List) wanted.get("deletes"));
    out.append(",\"deletes\":").append(wanted.get("deletes"));
    ArrowBuffers bulk = new ArrowBuffers();
    deleted(files, files.manifests(others), bulk);
    bulk.write(out.append(",\"deleted\":"));
    out.append('}');
  }

  private static int[] ints(List numbers) {
    int[] out = new int[numbers.size()];
    for (int i = 0; i < out.length; i++) out[i] = ((Number) numbers.get(i)).intValue();
    return out;
  }

  private static int total(ManifestStats[] parts) {
    int n = 0;
    for (int i = 0; i < parts.length; i++) n += parts[i].files.length;
    return n;
  }

  /** Rows that deletes are known to have taken from each file; unknown if it cannot be told without reading them. */
  private static void deleted(IcebergFiles files, ManifestStats[] parts, ArrowBuffers bulk) throws Exception {
    long[] rows = new long[total(parts)];
    BitSet known = new BitSet(rows.length);
    int at = 0;
    for (int m = 0; m < parts.length; m++) {
      for (int i = 0; i < parts[m].files.length; i++, at++) {
        DeleteFile[] found = files.deletesOf(parts[m].files[i]);
        boolean counted = true;
        for (int d = 0; d < found.length; d++) {
          // A deletion vector is of one file and counts its rows; the others may name rows of several files, or twice.
          counted = counted && found.length == 1 && found[d].content() == FileContent.POSITION_DELETES
              && found[d].format() == org.apache.iceberg.FileFormat.PUFFIN;
          rows[at] += found[d].recordCount();
        }
        known.set(at, counted);
      }
    }
    bulk.longs("deleted", rows, known);
  }

  private static ArrowBuffers statistics(IcebergFiles files, int[] chosen, ManifestStats[] parts, Set ids) throws Exception {
    int n = total(parts);
    ArrowBuffers bulk = new ArrowBuffers();
    long[] rows = new long[n];
    long[] sizes = new long[n];
    int[] groups = new int[n];
    BitSet counted = new BitSet(n);
    BitSet grouped = new BitSet(n);
    BitSet orc = new BitSet(n);
    int at = 0;
    for (int m = 0; m < parts.length; m++) {
      for (int i = 0; i < parts[m].files.length; i++, at++) {
        DataFile file = parts[m].files[i];
        orc.set(at, file.format() == org.apache.iceberg.FileFormat.ORC);
        rows[at] = file.recordCount();
        counted.set(at, rows[at] >= 0); // imported Avro files have -1
        sizes[at] = file.fileSizeInBytes();
        if (file.splitOffsets() == null) continue;
        groups[at] = file.splitOffsets().size();
        grouped.set(at);
      }
    }
    bulk.longs("rows", rows, counted);
    bulk.longs("sizes", sizes, null);
    bulk.ints("groups", groups, grouped);
    bulk.flags("orc", orc, n, null);
    Iterator wanted = ids.iterator();
    while (wanted.hasNext()) {
      int id = ((Number) wanted.next()).intValue();
      if (id == MetadataColumns.FILE_PATH.fieldId()) paths(parts, n, bulk);
      else column(files.schema.findField(id), parts, n, bulk);
    }
    Iterator it = files.table.specs().values().iterator();
    while (it.hasNext()) {
      PartitionSpec spec = (PartitionSpec) it.next();
      for (int p = 0; p < spec.fields().size(); p++) partition(files, spec, p, chosen, parts, n, bulk);
    }
    return bulk;
  }

  /** Where the files are that range-sets can be made of, and the snapshots that they came with. */
  private static void paths(ManifestStats[] parts, int n, ArrowBuffers bulk) throws Exception {
    String[] paths = new String[n];
    long[] added = new long[n];
    int at = 0;
    for (int m = 0; m < parts.length; m++) {
      for (int i = 0; i < parts[m].files.length; i++, at++) {
        added[at] = parts[m].added[i];
        boolean fits = parts[m].files[i].format() == org.apache.iceberg.FileFormat.PARQUET && added[at] != ManifestStats.Column.MISSING;
        if (fits) paths[at] = parts[m].files[i].location();
      }
    }
    bulk.strings("path", paths);
    bulk.longs("added", added, null);
  }

  private static void column(Types.NestedField field, ManifestStats[] parts, int n, ArrowBuffers bulk) throws Exception {
    Integer id = Integer.valueOf(field.fieldId());
    boolean some = false;
    for (int m = 0; m < parts.length; m++) some = some || parts[m].columns.containsKey(id);
    if (!some || !Values.fits(field.type())) return;
    Values low = new Values(field.type(), n);
    Values high = new Values(field.type(), n);
    long[][] counts = new long[2][n]; // NULLs, NaNs
    BitSet[] counted = {new BitSet(n), new BitSet(n)};
    int at = 0;
    for (int m = 0; m < parts.length; m++) {
      ManifestStats.Column column = (ManifestStats.Column) parts[m].columns.get(id);
      for (int i = 0; i < parts[m].files.length; i++, at++) {
        if (column == null) continue;
        if (column.has(0, i)) low.put(at, column, 0, i);
        if (column.has(1, i)) high.put(at, column, 1, i);
        for (int c = 0; c < 2; c++) {
          long count = column.count(c + 1, i);
          if (count < 0) continue;
          counts[c][at] = count;
          counted[c].set(at);
        }
      }
    }
    low.write("low." + id, bulk);
    high.write("high." + id, bulk);
    bulk.longs("nulls." + id, counts[0], counted[0]);
    if (!counted[1].isEmpty()) bulk.longs("nans." + id, counts[1], counted[1]);
  }

  private static void partition(
      IcebergFiles files, PartitionSpec spec, int p, int[] chosen, ManifestStats[] parts, int n, ArrowBuffers bulk) throws Exception {
    Type type = partitionType(spec, p);
    if (!Values.fits(type)) return;
    Values values = new Values(type, n);
    boolean some = false;
    int at = 0;
    for (int m = 0; m < parts.length; m++) {
      boolean here = files.manifests[chosen[m]].partitionSpecId() == spec.specId();
      some = some || here;
      for (int i = 0; i < parts[m].files.length; i++, at++) {
        Object value = here ? parts[m].files[i].partition().get(p, Object.class) : null;
        if (value != null) values.put(at, value);
      }
    }
    if (some) values.write("part." + spec.specId() + "." + p, bulk);
  }

  /** Values of one type as a column: numbers as int64, floats as doubles, decimals as two halves, strings as bytes. */
  private static final class Values {
    private final Type type;
    private final BitSet known;
    private final long[] numbers;
    private final double[] floats;
    private final long[] high;
    private final byte[][] texts;

    Values(Type type, int n) {
      this.type = type;
      known = new BitSet(n);
      boolean decimal = type.typeId() == Type.TypeID.DECIMAL;
      boolean text = type.typeId() == Type.TypeID.STRING;
      boolean real = ManifestStats.Column.isFloat(type);
      numbers = text || real || !fits(type) ? null : new long[n];
      floats = real ? new double[n] : null;
      high = decimal ? new long[n] : null;
      texts = text ? new byte[n][] : null;
    }

    /** Whether values of a type are compared by Python. Those of UUIDs are not ordered as Spark orders their texts. */
    static boolean fits(Type type) {
      if (type.typeId() == Type.TypeID.TIME) return false;
      return type.typeId() == Type.TypeID.DECIMAL || type.typeId() == Type.TypeID.STRING || ManifestStats.Column.isNumeric(type);
    }

    void put(int at, ManifestStats.Column column, int which, int i) {
      if (column.type.typeId() != type.typeId() && column.numeric != (texts == null && high == null)) return;
      known.set(at);
      if (texts != null) texts[at] = column.bytes[which][i];
      else if (high != null) decimal(at, new BigInteger(column.bytes[which][i]));
      else if (floats != null) floats[at] = Double.longBitsToDouble(column.numbers[which][i]);
      else numbers[at] = column.numbers[which][i];
    }

    void put(int at, Object value) {
      if (!fits(type)) return;
      known.set(at);
      if (texts != null) texts[at] = value.toString().getBytes(StandardCharsets.UTF_8);
      else if (high != null) decimal(at, ((BigDecimal) value).unscaledValue());
      else if (floats != null) floats[at] = ((Number) value).doubleValue();
      else if (value instanceof Boolean) numbers[at] = ((Boolean) value).booleanValue() ? 1 : 0;
      else numbers[at] = ((Number) value).longValue();
    }

    private void decimal(int at, BigInteger unscaled) {
      numbers[at] = unscaled.longValue();
      high[at] = unscaled.shiftRight(64).longValue();
    }

    void write(String name, ArrowBuffers bulk) throws Exception {
      if (!fits(type)) return;
      if (texts != null) bulk.bytes(name, texts);
      else if (floats != null) bulk.doubles(name, floats, known);
      else bulk.longs(name, numbers, known);
      if (high != null) bulk.longs(name + ".high", high, null);
    }
  }
}
