package secateur.core;

/**
 * A part of the Java half that is compiled apart from the core, on top of it. What it needs of Spark or of a connector may have
 * another name in the next version: then this part alone is missing. The units are those of jvm.py.
 */
public abstract class Unit {
  /** Tries what the compiler does not see: classes that are made by reflection, plans that Spark may refuse. */
  public abstract void probe() throws Exception;
}
