package secateur.core;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.internal.SessionState;

/**
 * Files for Python through Hadoop's file systems, with the configuration that the session reads a table by: keys, endpoints, settings of
 * a bucket and of a catalog are what they are for Spark, and so is whoever answers.
 *
 * Each call takes JSON and gives JSON. A file that cannot be had is told by "kind" and "text"; what many files have in common, such as a
 * wrong key, ends a call early. Threads are few and go when there is nothing to do.
 */
public final class HadoopFiles {
  private static final int LISTED = 4; // of so many files in a folder the state is found by listing it

  /** The last bytes of files whose lengths are known: one request each, of as many bytes as `most`. */
  public String tails(final SessionState session, String text) throws Exception {
    final Map request = Json.read(text);
    final long most = ((Number) request.get("most")).longValue();
    return many(session, request, new Work() {
      Object on(FileSystem system, Path path, List file) throws Exception {
        long length = ((Number) file.get(1)).longValue();
        return range(system, path, length, Math.max(0, length - most), (int) Math.min(length, most));
      }
    });
  }

  /** Whole files whose lengths are known. */
  public String contents(final SessionState session, String text) throws Exception {
    return many(session, Json.read(text), new Work() {
      Object on(FileSystem system, Path path, List file) throws Exception {
        long length = ((Number) file.get(1)).longValue();
        return range(system, path, length, 0, Math.toIntExact(length));
      }
    });
  }

  private static byte[] range(FileSystem system, Path path, long length, long from, int count) throws Exception {
    FutureDataInputStreamBuilder open = system.openFile(path);
    open.opt("fs.option.openfile.length", Long.toString(length));
    open.opt("fs.option.openfile.read.policy", "random");
    open.withFileStatus(new FileStatus(length, false, 1, length, 0, path)); // older versions know this only
    FSDataInputStream in = (FSDataInputStream) open.build().get();
    try {
      byte[] bytes = new byte[count];
      in.readFully(from, bytes);
      return bytes;
    } finally {
      in.close();
    }
  }

  /** The lengths and modification times of files as they are now: of many in one folder by listing it. */
  public String states(final SessionState session, String text) throws Exception {
    final Map request = Json.read(text);
    final Map folders = new HashMap(); // of List of positions
    final List files = (List) request.get("files");
    for (int i = 0; i < files.size(); i++) {
      Path folder = new Path((String) ((List) files.get(i)).get(0)).getParent();
      if (!folders.containsKey(folder)) folders.put(folder, new ArrayList());
      ((List) folders.get(folder)).add(Integer.valueOf(i));
    }
    final Map listed = new HashMap(); // of Map of FileStatus by name; what is missing is looked at alone
    List large = new ArrayList();
    Iterator it = folders.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry each = (Map.Entry) it.next();
      if (((List) each.getValue()).size() >= LISTED) large.add(each.getKey());
    }
    final FileAccess.Batch batch = new FileAccess.Batch(FileAccess.conf(session, request));
    try {
      final List tasks = new ArrayList();
      for (int i = 0; i < large.size(); i++) {
        final Path folder = (Path) large.get(i);
        tasks.add(new Callable() {
          public Object call() throws Exception {
            FileStatus[] found = batch.system(folder).listStatus(folder);
            Map names = new HashMap(found.length * 2);
            for (int n = 0; n < found.length; n++) names.put(found[n].getPath().getName(), found[n]);
            synchronized (listed) {
              listed.put(folder, names);
            }
            return null;
          }
        });
      }
      if (!large.isEmpty()) FileTasks.run(tasks, (Path) large.get(0), batch.conf, millis(request), true);
    } finally {
      batch.close();
    }
    return many(session, request, new Work() {
      Object on(FileSystem system, Path path, List file) throws Exception {
        Map names;
        synchronized (listed) {
          names = (Map) listed.get(path.getParent());
        }
        FileStatus found = names == null ? null : (FileStatus) names.get(path.getName());
        return found == null ? system.getFileStatus(path) : found;
      }
    });
  }

  /** The files in a folder: names, lengths and times. One that is not there is empty. */
  public String list(final SessionState session, String text) throws Exception {
    return one(session, Json.read(text), new Work() {
      Object on(FileSystem system, Path path, List file) throws Exception {
        FileStatus[] found;
        try {
          found = system.listStatus(path);
        } catch (FileNotFoundException none) {
          found = new FileStatus[0];
        }
        StringBuilder out = new StringBuilder("{\"files\":[");
        boolean first = true;
        for (int i = 0; i < found.length; i++) {
          if (!found[i].isFile()) continue;
          Json.string(out.append(first ? "[" : ",["), found[i].getPath().getName());
          out.append(',').append(found[i].getLen()).append(',').append(found[i].getModificationTime()).append(']');
          first = false;
        }
        return out.append("]}").toString();
      }
    });
  }

  /**
   * Writes a file that appears whole: at once where a file of the store appears when it is closed (`direct`), by renaming elsewhere.
   * No folder is made beforehand, for in object stores that would be an object.
   */
  public String write(final SessionState session, String text, final byte[] content) throws Exception {
    final Map request = Json.read(text);
    final boolean direct = Boolean.TRUE.equals(request.get("direct"));
    return one(session, request, new Work() {
      Object on(FileSystem system, Path path, List file) throws Exception {
        Path first = direct ? path : new Path(path.getParent(), "." + UUID.randomUUID().toString().replace("-", ""));
        FSDataOutputStreamBuilder create = system.createFile(first);
        create.overwrite(true);
        create.recursive();
        create.opt("fs.s3a.create.performance", "true"); // the name holds the hash of the content: nothing to look for
        FSDataOutputStream out = (FSDataOutputStream) create.build();
        try {
          out.write(content);
        } finally {
          out.close();
        }
        if (!direct && !system.rename(first, path)) {
          system.delete(first, false);
          if (!system.exists(path)) throw new IOException(path + " could not be given its name");
        }
        return "{}";
      }
    });
  }

  /** Deletes a file; one that is not there is gone already. */
  public String delete(final SessionState session, String text) throws Exception {
    return one(session, Json.read(text), new Work() {
      Object on(FileSystem system, Path path, List file) throws Exception {
        system.delete(path, false);
        return "{}";
      }
    });
  }

  /** The settings of files by which a table is read, where they are not those of the session: options for a reader of Spark's. */
  public String options(SessionState session, String text) throws Exception {
    Configuration table = FileAccess.conf(session, Json.read(text));
    Configuration usual = session.newHadoopConf();
    StringBuilder out = new StringBuilder("{\"options\":{");
    boolean first = true;
    Iterator it = table.iterator();
    while (it.hasNext()) {
      Map.Entry each = (Map.Entry) it.next();
      String name = (String) each.getKey();
      boolean files = name.startsWith("fs.") || name.startsWith("parquet.");
      if (!files || each.getValue().equals(usual.getRaw(name))) continue;
      Json.field(first ? out : out.append(','), name, (String) each.getValue());
      first = false;
    }
    return out.append("}}").toString();
  }

  private static String one(SessionState session, Map request, final Work work) throws Exception {
    final Path path = new Path((String) request.get("path"));
    FileAccess.Batch batch = null;
    try {
      batch = new FileAccess.Batch(FileAccess.conf(session, request));
      final FileAccess.Batch here = batch;
      List tasks = new ArrayList();
      tasks.add(new Callable() {
        public Object call() throws Exception {
          return work.on(here.system(path), path, null);
        }
      });
      Object found = FileTasks.run(tasks, path, batch.conf, millis(request), false).get(0);
      if (found instanceof String) return (String) found;
      StringBuilder out = new StringBuilder("{");
      FileTasks.problem(out, (Throwable) found, batch.conf);
      return out.append('}').toString();
    } finally {
      if (batch != null) batch.close();
    }
  }

  /** What some work gives of each file, as columns for Python: bytes, or length and time. */
  private static String many(SessionState session, Map request, final Work work) throws Exception {
    final FileAccess.Batch batch = new FileAccess.Batch(FileAccess.conf(session, request));
    try {
      final List files = (List) request.get("files");
      List tasks = new ArrayList();
      for (int i = 0; i < files.size(); i++) {
        final List file = (List) files.get(i);
        tasks.add(new Callable() {
          public Object call() throws Exception {
            Path path = new Path((String) file.get(0));
            return work.on(batch.system(path), path, file);
          }
        });
      }
      Path any = files.isEmpty() ? null : new Path((String) ((List) files.get(0)).get(0));
      List found = FileTasks.run(tasks, any, batch.conf, millis(request), true);
      byte[][] bytes = new byte[found.size()][];
      long[] lengths = new long[bytes.length];
      long[] times = new long[bytes.length];
      String[] kinds = new String[bytes.length];
      String[] texts = new String[bytes.length];
      for (int i = 0; i < bytes.length; i++) {
        Object each = found.get(i);
        if (each instanceof byte[]) {
          bytes[i] = (byte[]) each;
        } else if (each instanceof FileStatus) {
          lengths[i] = ((FileStatus) each).getLen();
          times[i] = ((FileStatus) each).getModificationTime();
        } else {
          kinds[i] = FileTasks.kind((Throwable) each);
          texts[i] = FileTasks.text((Throwable) each, batch.conf);
        }
      }
      ArrowBuffers bulk = new ArrowBuffers();
      bulk.bytes("bytes", bytes);
      bulk.longs("length", lengths, null);
      bulk.longs("mtime", times, null);
      bulk.strings("kind", kinds);
      bulk.strings("text", texts);
      StringBuilder out = new StringBuilder("{\"bulk\":");
      bulk.write(out);
      return out.append('}').toString();
    } finally {
      batch.close();
    }
  }

  private static long millis(Map request) {
    return ((Number) request.get("millis")).longValue();
  }

  /** Something to do with one file. */
  abstract static class Work {
    abstract Object on(FileSystem system, Path path, List file) throws Exception;
  }
}
