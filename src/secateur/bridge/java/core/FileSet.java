package secateur.core;

import java.util.BitSet;
import java.util.Map;
import java.util.Set;

/** The exact files of one scan (rule S8). A file's ordinal is its place in it; the fingerprint tells Python which set an ordinal belongs to. */
public abstract class FileSet {
  public String fingerprint;
  public int count;
  public long bytes;

  /** What a reader in Python's READERS makes statistics of; asked for once per fingerprint. */
  public abstract void write(StringBuilder out) throws Exception;

  /** The same for a Python that has the sets of these fingerprints, which may serve to write less. */
  public void write(StringBuilder out, Set have) throws Exception {
    write(out);
  }

  /** Some part of it that Python asked for, in the reader's own terms; a set that is small enough to be sent whole has none. */
  public void write(StringBuilder out, Map part) throws Exception {
    throw new UnsupportedOperationException(fingerprint + " has no parts");
  }

  /** The part that has the paths of all files, null if they are in the whole. */
  public Map paths() throws Exception {
    return null;
  }

  /** Whether to send it unasked: it is small, and Python cannot have it yet. */
  public boolean isNews() {
    return false;
  }

  /** Milliseconds beyond the budget that Python may take to read this set the first time, since the format itself would take longer. */
  public long patience() {
    return 0;
  }

  /**
   * A last look before files are skipped: takes off `skip` what must be read after all, and counts the files that have changed.
   * Files in `seen` need not be looked at again, and those that have not changed are added to it.
   */
  public int keepChanged(BitSet skip, BitSet seen) {
    return 0;
  }
}
