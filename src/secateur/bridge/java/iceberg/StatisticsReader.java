package secateur.iceberg;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.avro.ValueReader;
import org.apache.iceberg.shaded.org.apache.avro.io.Decoder;
import org.apache.iceberg.types.Types;

/**
 * Reads one statistic of a manifest's entries into columns, in the place of Iceberg's reader, which makes a map of it for each file: most
 * of the time that a manifest takes.
 */
final class StatisticsReader implements ValueReader {
  private static final int[] FIELDS = { // in the order of ManifestStats
      DataFile.VALUE_COUNTS.fieldId(), DataFile.NULL_VALUE_COUNTS.fieldId(), DataFile.NAN_VALUE_COUNTS.fieldId(),
      DataFile.LOWER_BOUNDS.fieldId(), DataFile.UPPER_BOUNDS.fieldId()};

  private final ManifestStats out;
  private final int statistic;
  private ManifestStats.Column[] usual = new ManifestStats.Column[16]; // of the first, second, ... field of the file before
  private ByteBuffer bytes;

  private StatisticsReader(ManifestStats out, int statistic) {
    this.out = out;
    this.statistic = statistic;
  }

  /** Takes the place of Iceberg's readers, of all statistics or of none; false if they are not as they are known. The first entry must not be read yet. */
  static boolean takesOver(ManifestReader manifest, ManifestStats out) {
    try {
      Collection opened = (Collection) Reflect.get(manifest, "closeables");
      if (opened.size() != 1) return false;
      Object reader = Reflect.get(opened.iterator().next(), "reader");
      if (reader.getClass().getSimpleName().equals("NameMappingDatumReader")) reader = Reflect.get(reader, "wrapped");
      Object entry = Reflect.get(reader, "reader");
      Object[] parts = (Object[]) Reflect.get(entry, "readers");
      Object[][] holders = new Object[FIELDS.length][];
      int[] places = new int[FIELDS.length];
      for (int i = 0; i < parts.length; i++) {
        if (!parts[i].getClass().getSimpleName().equals("PlannedStructLikeReader")) continue;
        if (Reflect.get(parts[i], "structClass") == Class.forName("org.apache.iceberg.GenericDataFile", true, DataFile.class.getClassLoader())) {
          find(parts[i], holders, places);
        }
      }
      for (int s = 0; s < FIELDS.length; s++) if (holders[s] != null) holders[s][places[s]] = new StatisticsReader(out, s);
      return true;
    } catch (Exception other) {
      return false; // another version of Iceberg
    }
  }

  /** Where the reader of each statistic is held. A manifest of an old library may lack one. */
  private static void find(Object file, Object[][] holders, int[] places) throws Exception {
    List fields = ((Types.StructType) Reflect.get(file, "structType")).fields();
    Object[] readers = (Object[]) Reflect.get(file, "readers");
    Object[] positions = (Object[]) Reflect.get(file, "positions");
    for (int i = 0; i < readers.length; i++) {
      if (positions[i] == null) continue;
      int id = ((Types.NestedField) fields.get(((Integer) positions[i]).intValue())).fieldId();
      for (int s = 0; s < FIELDS.length; s++) {
        if (FIELDS[s] != id || readers[i].getClass().getSimpleName().equals("ConstantReader")) continue;
        boolean optional = readers[i].getClass().getSimpleName().equals("UnionReader");
        holders[s] = optional ? (Object[]) Reflect.get(readers[i], "readers") : readers;
        places[s] = optional ? theMap(holders[s]) : i;
        String value = s < 3 ? "LongReader" : "ByteBufferReader";
        Object map = holders[s][places[s]];
        if (!kind(map, "keyReader").equals("IntegerReader") || !kind(map, "valueReader").equals(value)) {
          throw new IllegalStateException("statistics of another kind");
        }
      }
    }
  }

  private static int theMap(Object[] options) {
    return options[0].getClass().getSimpleName().equals("NullReader") ? 1 : 0;
  }

  private static String kind(Object map, String part) throws Exception {
    if (!map.getClass().getSimpleName().equals("ArrayMapReader")) throw new IllegalStateException("statistics of another kind");
    return Reflect.get(map, part).getClass().getSimpleName();
  }

  /** The statistic of the file that comes next; Iceberg's own file has none. */
  public Object read(Decoder decoder, Object reuse) throws IOException {
    out.decoded++;
    int at = out.next();
    int place = 0;
    for (long left = decoder.readArrayStart(); left > 0; left = decoder.arrayNext()) {
      for (long i = 0; i < left; i++, place++) {
        ManifestStats.Column column = column(decoder.readInt(), place);
        if (statistic < ManifestStats.LOW) {
          long count = decoder.readLong();
          if (column.type != null) column.count(statistic, at, count);
        } else if (column.type == null) {
          decoder.skipBytes();
        } else {
          bytes = decoder.readBytes(bytes);
          column.bound(statistic - ManifestStats.LOW, at, bytes);
        }
      }
    }
    return null;
  }

  private ManifestStats.Column column(int id, int place) {
    if (place < usual.length && usual[place] != null && usual[place].id.intValue() == id) return usual[place];
    if (place == usual.length) usual = (ManifestStats.Column[]) java.util.Arrays.copyOf(usual, 2 * place);
    return usual[place] = out.column(Integer.valueOf(id));
  }

  public void skip(Decoder decoder) throws IOException {
    read(decoder, null);
  }
}
