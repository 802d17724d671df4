package secateur.core;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.net.URI;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.internal.SessionState;

/** How the files of tables are read: by a session and the options of the reader, or as a connector does it. */
public final class FileAccess {
  private static final Cache ACCESS = CacheBuilder.newBuilder().maximumSize(1000).build(); // fingerprint -> Access

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

  static Configuration conf(SessionState session, Map request) throws IOException {
    Object fingerprint = request.get("fp");
    Access access = fingerprint == null ? null : (Access) ACCESS.getIfPresent(fingerprint);
    return access == null ? session.newHadoopConf() : access.conf();
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
}
