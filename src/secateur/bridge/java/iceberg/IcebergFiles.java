package secateur.iceberg;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.ThreadPools;
import secateur.core.FileSet;

/**
 * The files of one snapshot, manifest after manifest. A manifest is read when its files are asked for, once: it never changes, so
 * the next snapshot reads only the manifests that it adds.
 */
final class IcebergFiles extends FileSet {
  private static final Cache SNAPSHOTS = CacheBuilder.newBuilder().maximumSize(256).softValues().build();
  private static final Cache MANIFESTS = CacheBuilder.newBuilder().softValues().build(); // key -> ManifestStats

  final Schema schema; // as this scan reads the table
  final Map types = new HashMap(); // field id -> Type, over every schema that the table has had
  final ManifestFile[] manifests; // those with live files
  final int[] start; // the ordinal of each one's first file, and the count
  final List deletes; // manifests of delete files
  private final String[] keys;
  volatile org.apache.iceberg.Table table; // as it was last loaded: access to its files may be lent for a time
  private volatile Object deleteIndex;
  private volatile boolean unsent = true;

  private IcebergFiles(org.apache.iceberg.Table table, Schema schema, org.apache.iceberg.Snapshot snapshot, String fingerprint) throws Exception {
    this.table = table;
    this.schema = schema;
    this.fingerprint = fingerprint;
    Iterator schemas = new java.util.TreeMap(table.schemas()).values().iterator(); // the newest type of a field comes last
    while (schemas.hasNext()) collect(((Schema) schemas.next()).asStruct());
    FileIO io = table.io();
    List live = new ArrayList();
    List all = snapshot.dataManifests(io);
    for (int i = 0; i < all.size(); i++) {
      ManifestFile manifest = (ManifestFile) all.get(i);
      if (manifest.hasAddedFiles() || manifest.hasExistingFiles()) live.add(manifest);
    }
    manifests = (ManifestFile[]) live.toArray(new ManifestFile[live.size()]);
    deletes = snapshot.deleteManifests(io);
    keys = new String[manifests.length];
    start = new int[manifests.length + 1];
    for (int i = 0; i < manifests.length; i++) {
      ManifestFile manifest = manifests[i];
      PartitionSpec spec = (PartitionSpec) table.specs().get(Integer.valueOf(manifest.partitionSpecId()));
      keys[i] = manifest.path() + " " + manifest.length() + " " + manifest.sequenceNumber() + " " + manifest.firstRowId() + " "
          + table.schemas().size() + " " + table.uuid() + " " + spec.partitionType();
      int files = manifest.addedFilesCount() == null || manifest.existingFilesCount() == null
          ? manifest(i).files.length // written by an old library
          : manifest.addedFilesCount().intValue() + manifest.existingFilesCount().intValue();
      start[i + 1] = start[i] + files;
    }
    count = start[manifests.length];
    Object size = snapshot.summary() == null ? null : snapshot.summary().get("total-files-size");
    bytes = size == null ? 0 : Long.parseLong((String) size);
  }

  static IcebergFiles of(SparkTable source) throws Exception {
    org.apache.iceberg.Table table = source.table();
    Schema schema = (Schema) Reflect.get(source, "schema");
    org.apache.iceberg.Snapshot snapshot = (org.apache.iceberg.Snapshot) Reflect.get(source, "snapshot");
    String fingerprint = "iceberg " + table.uuid() + " " + table.location() + " " + snapshot.snapshotId() + " " + schema.schemaId()
        + " " + table.schemas().size() + " " + table.specs().size();
    IcebergFiles known = (IcebergFiles) SNAPSHOTS.getIfPresent(fingerprint);
    if (known != null) {
      known.table = table;
      return known;
    }
    IcebergFiles fresh = new IcebergFiles(table, schema, snapshot, fingerprint);
    SNAPSHOTS.put(fingerprint, fresh);
    fresh.readAhead();
    return fresh;
  }

  /** Without partitions no manifest can be left out, so they are read while Python gets to know of them. */
  private void readAhead() {
    for (int i = 0; i < manifests.length; i++) {
      final int at = i;
      PartitionSpec spec = (PartitionSpec) table.specs().get(Integer.valueOf(manifests[i].partitionSpecId()));
      if (!spec.isUnpartitioned() || MANIFESTS.getIfPresent(keys[i]) != null) continue;
      ThreadPools.getWorkerPool().submit(new Runnable() {
        public void run() {
          try {
            manifest(at);
          } catch (Exception again) {
            // Whoever needs it meets the same, and tells.
          }
        }
      });
    }
  }

  /** Fields that have one value a row: not those inside lists and maps. */
  private void collect(Types.StructType struct) {
    List fields = struct.fields();
    for (int i = 0; i < fields.size(); i++) {
      Types.NestedField field = (Types.NestedField) fields.get(i);
      if (field.type().isStructType()) collect(field.type().asStructType());
      else if (field.type().isPrimitiveType() || field.type().isVariantType()) types.put(Integer.valueOf(field.fieldId()), field.type());
    }
  }

  /** The files and statistics of a manifest, read if nobody has asked before. */
  ManifestStats manifest(final int i) throws Exception {
    final ManifestFile manifest = manifests[i];
    try {
      ManifestStats found = (ManifestStats) MANIFESTS.get(keys[i], new Callable() {
        public Object call() throws Exception {
          return ManifestStats.read(manifest, table.io(), table.specs(), types);
        }
      });
      if (start[i + 1] > 0 && found.files.length != start[i + 1] - start[i]) {
        throw new IllegalStateException("manifest " + manifest.path() + " has " + found.files.length + " live files, but its list says "
            + (start[i + 1] - start[i]));
      }
      return found;
    } catch (ExecutionException failed) {
      throw failed.getCause() instanceof Exception ? (Exception) failed.getCause() : failed;
    } catch (com.google.common.util.concurrent.UncheckedExecutionException failed) {
      throw failed.getCause() instanceof Exception ? (Exception) failed.getCause() : failed;
    }
  }

  /** The same for several, read at the same time. */
  ManifestStats[] manifests(int[] wanted) throws Exception {
    ManifestStats[] out = new ManifestStats[wanted.length];
    List waiting = new ArrayList();
    ExecutorService pool = ThreadPools.getWorkerPool();
    for (int i = 0; i < wanted.length; i++) {
      final int at = wanted[i];
      out[i] = (ManifestStats) MANIFESTS.getIfPresent(keys[at]);
      waiting.add(out[i] != null ? null : pool.submit(new Callable() {
        public Object call() throws Exception {
          return manifest(at);
        }
      }));
    }
    try {
      for (int i = 0; i < wanted.length; i++) if (out[i] == null) out[i] = (ManifestStats) ((Future) waiting.get(i)).get();
    } catch (ExecutionException failed) {
      throw failed.getCause() instanceof Exception ? (Exception) failed.getCause() : failed;
    }
    return out;
  }

  /** The delete files that apply to a file, by Iceberg's own index of them. */
  DeleteFile[] deletesOf(DataFile file) throws Exception {
    if (deletes.isEmpty()) return new DeleteFile[0];
    Object index = deleteIndex;
    if (index == null) {
      synchronized (this) {
        if (deleteIndex == null) deleteIndex = index();
        index = deleteIndex;
      }
    }
    Object[] both = (Object[]) index;
    return (DeleteFile[]) Reflect.invoke((Method) both[1], both[0], new Object[] {file.dataSequenceNumber(), file});
  }

  private Object index() throws Exception {
    Class type = Class.forName("org.apache.iceberg.DeleteFileIndex", true, org.apache.iceberg.Table.class.getClassLoader());
    Method make = type.getDeclaredMethod("builderFor", new Class[] {FileIO.class, Iterable.class});
    make.setAccessible(true);
    Object builder = Reflect.invoke(make, null, new Object[] {table.io(), deletes});
    builder = Reflect.call(builder, "schemasById", table.schemas());
    builder = Reflect.call(builder, "specsById", table.specs());
    builder = Reflect.call(builder, "planWith", ThreadPools.getWorkerPool());
    return new Object[] {Reflect.call(builder, "build"), Reflect.method(type, "forDataFile", 2)};
  }

  public boolean isNews() {
    return unsent;
  }

  public void write(StringBuilder out) throws Exception {
    unsent = false;
    IcebergWriter.snapshot(this, keys, out);
  }

  public Map paths() {
    List all = new ArrayList();
    for (int i = 0; i < manifests.length; i++) all.add(Integer.valueOf(i));
    Map part = new HashMap();
    part.put("files", all);
    part.put("columns", Collections.singletonList(Integer.valueOf(MetadataColumns.FILE_PATH.fieldId())));
    part.put("deletes", new ArrayList());
    return part;
  }

  public void write(StringBuilder out, Map parts) throws Exception {
    IcebergWriter.parts(this, parts, out);
  }
}
