package secateur.core;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
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
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Tasks on files in threads that are few and go when there is nothing to do, and what their failures mean. */
final class FileTasks {
  private static final int THREADS = 32;
  private static final int HOPELESS = 8; // so many files failed and none did not: neither will the others
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

  /** The results of tasks in their order, or what they failed with, or that there was no answer in time. */
  static List run(final List tasks, Path any, Configuration conf, long millis, boolean giveUp) throws InterruptedException {
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

  static void problem(StringBuilder out, Throwable problem, Configuration conf) {
    Json.field(out, "kind", kind(problem));
    Json.field(out.append(','), "text", text(problem, conf));
  }

  static String kind(Throwable problem) {
    for (Throwable each = problem; each != null; each = each.getCause()) {
      if (each instanceof FileNotFoundException && !text(each).contains("NoSuchBucket") && !text(each).contains("does not exist: bucket")) return "missing";
    }
    return problem instanceof InterruptedIOException ? "interrupted" : "failed";
  }

  private static String text(Throwable problem) {
    return String.valueOf(problem.getMessage());
  }

  /** What it comes from in one line: the innermost cause, or the one around it where that says the same and more. No secrets. */
  static String text(Throwable problem, Configuration conf) {
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
    line = line.replaceAll(",? (Extended )?Request ID: [^,)]*", ""); // another one each time
    line = line.replaceAll("(?i)(signature|sig|token|x-amz-[a-z-]+)=[^&\\s]+", "$1=...");
    return line.length() > 300 ? line.substring(0, 300) + "..." : line;
  }
}
