package secateur.core;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.BitSet;

/**
 * Columns of many values for Python, in a temporary file with the buffers of Arrow's layout one after the other: a hundred
 * thousand files are too many for JSON. Python's read_bulk removes the file.
 */
public final class ArrowBuffers {
  private final File file;
  private final OutputStream out;
  private final StringBuilder columns = new StringBuilder();
  private long at = 0;

  public ArrowBuffers() throws IOException {
    file = File.createTempFile("secateur-", ".bulk");
    file.deleteOnExit();
    out = new BufferedOutputStream(new FileOutputStream(file), 1 << 16);
  }

  /** Null for `valid` means that all are. */
  public void longs(String name, long[] values, BitSet valid) throws IOException {
    ByteBuffer data = little(values.length * 8);
    data.asLongBuffer().put(values);
    column(name, "int64", values.length, valid);
    buffer(data.array(), values.length * 8);
    columns.append(']');
  }

  public void ints(String name, int[] values, BitSet valid) throws IOException {
    ByteBuffer data = little(values.length * 4);
    data.asIntBuffer().put(values);
    column(name, "int32", values.length, valid);
    buffer(data.array(), values.length * 4);
    columns.append(']');
  }

  public void doubles(String name, double[] values, BitSet valid) throws IOException {
    ByteBuffer data = little(values.length * 8);
    data.asDoubleBuffer().put(values);
    column(name, "double", values.length, valid);
    buffer(data.array(), values.length * 8);
    columns.append(']');
  }

  public void flags(String name, BitSet values, int count, BitSet valid) throws IOException {
    column(name, "bool", count, valid);
    bits(values, count);
    columns.append(']');
  }

  /** A null among the values is null. */
  public void strings(String name, String[] values) throws IOException {
    byte[][] encoded = new byte[values.length][];
    for (int i = 0; i < values.length; i++) encoded[i] = values[i] == null ? null : values[i].getBytes(StandardCharsets.UTF_8);
    variable(name, "large_string", encoded);
  }

  public void bytes(String name, byte[][] values) throws IOException {
    variable(name, "large_binary", values);
  }

  private void variable(String name, String type, byte[][] values) throws IOException {
    BitSet valid = new BitSet(values.length);
    ByteBuffer offsets = little((values.length + 1) * 8);
    long end = 0;
    offsets.putLong(0);
    for (int i = 0; i < values.length; i++) {
      if (values[i] != null) {
        valid.set(i);
        end += values[i].length;
      }
      offsets.putLong(end);
    }
    column(name, type, values.length, valid.cardinality() == values.length ? null : valid);
    buffer(offsets.array(), offsets.capacity());
    columns.append(",[").append(at).append(',').append(end).append(']');
    for (int i = 0; i < values.length; i++) if (values[i] != null) out.write(values[i]);
    at += end;
    columns.append(']');
  }

  private void column(String name, String type, int count, BitSet valid) throws IOException {
    columns.append(columns.length() > 0 ? ",[" : "[");
    Json.string(columns, name);
    Json.string(columns.append(','), type);
    columns.append(',').append(count);
    if (valid == null) columns.append(",null");
    else bits(valid, count);
  }

  private void bits(BitSet set, int count) throws IOException {
    byte[] packed = new byte[(count + 7) / 8];
    byte[] used = set.get(0, count).toByteArray();
    System.arraycopy(used, 0, packed, 0, used.length);
    buffer(packed, packed.length);
  }

  private void buffer(byte[] data, int length) throws IOException {
    columns.append(",[").append(at).append(',').append(length).append(']');
    out.write(data, 0, length);
    at += length;
  }

  private static ByteBuffer little(int size) {
    return ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Closes the file and writes where Python finds it, and what is in it. */
  public void write(StringBuilder json) throws IOException {
    out.close();
    json.append('{');
    Json.field(json, "file", file.getPath());
    json.append(",\"bytes\":").append(at).append(",\"columns\":[").append(columns).append("]}");
  }
}
