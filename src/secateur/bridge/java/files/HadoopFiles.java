package secateur;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.lang.ref.WeakReference;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
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
  private static final int THREADS = 32;
  private static final int HOPELESS = 8; // so many files failed and none did not: neither will the others
  private static final int LISTED = 4; // of so many files in a folder the state is found by listing it
  private static final Cache ACCESS = CacheBuilder.newBuilder().maximumSize(1000).build(); // fingerprint -> Access
  private static final String[] NO_PATIENCE = {
      "retry.limit", "0", "attempts.maximum", "1", "connection.establish.timeout", "15s", "connection.timeout", "15s"};
  private static final Map POOLS = new HashMap(); // authority -> ThreadPoolExecutor: one that does not answer holds up no other

  private static ThreadPoolExecutor pool(Path path) {
    String authority = path.toUri().getScheme() + "://" + path.toUri().getAuthority();
    synchronized (POOLS) {
      ThreadPoolExecutor known = (ThreadPoolExecutor) POOLS.get(authority);
      if (known == null) POOLS.put(authority, known = pool());
      return known;
    }
  }

  private static ThreadPoolExecutor pool() {
    ThreadPoolExecutor pool = new ThreadPoolExecutor(
        THREADS, THREADS, 10, TimeUnit.SECONDS, new LinkedBlockingQueue(), new ThreadFactory() {
          public Thread newThread(Runnable work) {
            Thread thread = new Thread(work, "secateur-files");
            thread.setDaemon(true);
            return thread;
          }
        });
    pool.allowCoreThreadTimeOut(true);
    return pool;
  }

  /** How the files of a table are read: by a session and the options of the reader, or as the table's own connector does it. */
  static final class Access {
    private final WeakReference session;
    private final scala.collection.immutable.Map options;
    private final Configuration own;

    Access(SessionState session, scala.collection.immutable.Map options, Configuration own) {
      this.session = new WeakReference(session);
      this.options = options;
      this.own = own;
    }

    Configuration conf() throws IOException {
      if (own != null) return own;
      SessionState state = (SessionState) session.get();
      if (state == null) throw new IOException("the table is not read by Hadoop's file systems, or by a session that was closed");
      return options == null ? state.newHadoopConf() : state.newHadoopConfWithOptions(options);
    }
  }

  /** Notes how a set of files is read, by a session that has just listed it. */
  public static void remember(String fingerprint, SessionState session, scala.collection.immutable.Map options) {
    ACCESS.put(fingerprint, new Access(session, options, null));
  }

  /** The same for a connector with a configuration of its own, null if it reads by other means than Hadoop's. */
  public static void remember(String fingerprint, Configuration own) {
    ACCESS.put(fingerprint, new Access(null, null, own));
  }

  private static Configuration conf(SessionState session, Map request) throws IOException {
    Object fingerprint = request.get("fp");
    Access access = fingerprint == null ? null : (Access) ACCESS.getIfPresent(fingerprint);
    return access == null ? session.newHadoopConf() : access.conf();
  }

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
    final Batch batch = new Batch(conf(session, request));
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
      if (!large.isEmpty()) run(tasks, (Path) large.get(0), batch.conf, millis(request), true);
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
    Configuration table = conf(session, Json.read(text));
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
    Batch batch = null;
    try {
      batch = new Batch(conf(session, request));
      final Batch here = batch;
      List tasks = new ArrayList();
      tasks.add(new Callable() {
        public Object call() throws Exception {
          return work.on(here.system(path), path, null);
        }
      });
      Object found = run(tasks, path, batch.conf, millis(request), false).get(0);
      if (found instanceof String) return (String) found;
      StringBuilder out = new StringBuilder("{");
      problem(out, (Throwable) found, batch.conf);
      return out.append('}').toString();
    } finally {
      if (batch != null) batch.close();
    }
  }

  /** What some work gives of each file, as columns for Python: bytes, or length and time. */
  private static String many(SessionState session, Map request, final Work work) throws Exception {
    final Batch batch = new Batch(conf(session, request));
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
      List found = run(tasks, any, batch.conf, millis(request), true);
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
          kinds[i] = kind((Throwable) each);
          texts[i] = text((Throwable) each, batch.conf);
        }
      }
      Bulk bulk = new Bulk();
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

  /** The results of tasks in their order, or what they failed with, or that there was no answer in time. */
  private static List run(final List tasks, Path any, Configuration conf, long millis, boolean giveUp) throws InterruptedException {
    final AtomicInteger good = new AtomicInteger(giveUp ? 0 : 1);
    final AtomicInteger bad = new AtomicInteger();
    final Throwable[] last = new Throwable[1];
    List futures = new ArrayList();
    for (int i = 0; i < tasks.size(); i++) {
      final Callable task = (Callable) tasks.get(i);
      futures.add(pool(any).submit(new Callable() {
        public Object call() throws Exception {
          if (good.get() == 0 && bad.get() >= HOPELESS) throw new IOException("not tried after other files failed", last[0]);
          try {
            Object found = task.call();
            good.incrementAndGet();
            return found;
          } catch (Exception problem) {
            if (!kind(problem).equals("missing")) {
              last[0] = problem;
              bad.incrementAndGet();
            }
            throw problem;
          }
        }
      }));
    }
    long end = System.nanoTime() + millis * 1000000L;
    IOException unanswered = null;
    List results = new ArrayList();
    for (int i = 0; i < futures.size(); i++) {
      Future future = (Future) futures.get(i);
      try {
        results.add(future.get(Math.max(1, end - System.nanoTime()), TimeUnit.NANOSECONDS));
      } catch (TimeoutException late) {
        future.cancel(true);
        if (unanswered == null) unanswered = unanswered(any, conf, millis);
        results.add(unanswered);
      } catch (ExecutionException wrapped) {
        results.add(wrapped.getCause());
      }
    }
    return results;
  }

  /** Why there was no answer, by asking once more without any patience: S3A tells the cause only when it has given up. */
  private static IOException unanswered(final Path path, final Configuration conf, long millis) throws InterruptedException {
    String text = "no answer within " + millis / 1000 + " seconds";
    if (!"s3a".equals(path.toUri().getScheme())) return new IOException(text);
    Future asked = pool().submit(new Callable() {
      public Object call() throws Exception {
        Configuration quick = new Configuration(conf);
        for (int i = 0; i < NO_PATIENCE.length; i += 2) {
          quick.set("fs.s3a." + NO_PATIENCE[i], NO_PATIENCE[i + 1]);
          quick.set("fs.s3a.bucket." + path.toUri().getHost() + "." + NO_PATIENCE[i], NO_PATIENCE[i + 1]);
        }
        FileSystem once = FileSystem.newInstance(path.toUri(), quick);
        try {
          return once.exists(path) ? path : path;
        } finally {
          once.close();
        }
      }
    });
    try {
      asked.get(20, TimeUnit.SECONDS);
    } catch (TimeoutException late) {
      asked.cancel(true);
    } catch (ExecutionException wrapped) {
      if (wrapped.getCause() instanceof IOException) return (IOException) wrapped.getCause();
    }
    return new IOException(text);
  }

  /** Something to do with one file. */
  abstract static class Work {
    abstract Object on(FileSystem system, Path path, List file) throws Exception;
  }

  /** The file systems of one call. Where the user has switched Hadoop's cache of them off they are ours, and are closed. */
  static final class Batch {
    final Configuration conf;
    private final Map systems = new HashMap();

    Batch(Configuration conf) {
      this.conf = conf;
    }

    FileSystem system(Path path) throws IOException {
      URI uri = path.toUri();
      String key = uri.getScheme() + "://" + uri.getAuthority();
      synchronized (systems) {
        FileSystem known = (FileSystem) systems.get(key);
        if (known == null) systems.put(key, known = path.getFileSystem(conf));
        return known;
      }
    }

    void close() {
      synchronized (systems) {
        Iterator it = systems.values().iterator();
        while (it.hasNext()) {
          FileSystem system = (FileSystem) it.next();
          if (!conf.getBoolean("fs." + system.getUri().getScheme() + ".impl.disable.cache", false)) continue;
          try {
            system.close();
          } catch (IOException ignored) {
            continue;
          }
        }
      }
    }
  }

  private static void problem(StringBuilder out, Throwable problem, Configuration conf) {
    Json.field(out, "kind", kind(problem));
    Json.field(out.append(','), "text", text(problem, conf));
  }

  private static String kind(Throwable problem) {
    for (Throwable each = problem; each != null; each = each.getCause()) {
      if (each instanceof FileNotFoundException && !text(each).contains("NoSuchBucket") && !text(each).contains("does not exist: bucket")) return "missing";
    }
    return problem instanceof InterruptedIOException ? "interrupted" : "failed";
  }

  private static String text(Throwable problem) {
    return String.valueOf(problem.getMessage());
  }

  /** What it comes from in one line: the innermost cause, or the one around it where that says the same and more. No secrets. */
  private static String text(Throwable problem, Configuration conf) {
    Throwable cause = problem;
    Throwable around = problem;
    while (cause.getCause() != null && cause.getCause() != cause) {
      around = cause;
      cause = cause.getCause();
    }
    boolean more = text(around).contains(text(cause)) && text(cause).length() < 40;
    Throwable said = more ? around : cause;
    String message = said.getMessage() == null ? "" : ": " + said.getMessage().split("\n")[0];
    String line = said.getClass().getSimpleName() + message;
    Iterator it = conf.iterator();
    while (it.hasNext()) {
      Map.Entry each = (Map.Entry) it.next();
      String name = ((String) each.getKey()).toLowerCase(Locale.ROOT);
      String value = (String) each.getValue();
      boolean secret = name.contains("secret") || name.contains("password") || name.contains("token") || name.contains("access.key")
          || name.contains("account.key") || name.contains("sas") || name.contains("credential");
      if (secret && value != null && value.length() > 5 && line.contains(value)) line = line.replace(value, "...");
    }
    line = line.replaceAll("(?i)(signature|sig|token|x-amz-[a-z-]+)=[^&\\s]+", "$1=...");
    return line.length() > 300 ? line.substring(0, 300) + "..." : line;
  }
}
