package secateur.core;

import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Copies of Spark's case classes with one field changed, whatever other fields this version of Spark gave them. */
public final class CaseClass {
  private static final Map COPIES = new ConcurrentHashMap(); // of the few classes that are edited

  private CaseClass() {}

  public static Object with(Object original, String field, Object value) throws Exception {
    Class type = original.getClass();
    Method copy = copy(type);
    scala.Product product = (scala.Product) original;
    Class[] types = copy.getParameterTypes();
    Object[] args = new Object[types.length];
    boolean found = false;
    for (int i = 0; i < types.length; i++) {
      if (i >= product.productArity()) {
        args[i] = accessor(type, types[i]).invoke(original, new Object[0]);
      } else if (product.productElementName(i).equals(field)) {
        args[i] = value;
        found = true;
      } else {
        args[i] = product.productElement(i);
      }
    }
    if (!found) throw missing(type, field);
    return copy.invoke(original, args);
  }

  /** That copies of the class can be made with another value for the field. */
  public static void check(Class type, String field) {
    copy(type);
    Method[] methods = type.getMethods();
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getName().equals(field) && methods[i].getParameterTypes().length == 0) return;
    }
    throw missing(type, field);
  }

  private static IllegalStateException missing(Class type, String field) {
    return new IllegalStateException(type.getName() + " has no field " + field + " in this version of Spark");
  }

  private static Method copy(Class type) {
    Method copy = (Method) COPIES.get(type);
    if (copy != null) return copy;
    Method[] methods = type.getMethods();
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getName().equals("copy") && !methods[i].isBridge()) copy = methods[i];
    }
    if (copy == null) throw new IllegalStateException(type.getName() + " has no copy method in this version of Spark");
    COPIES.put(type, copy);
    return copy;
  }

  /** The fields of a second parameter list are not part of the product; they have an accessor of the same type. */
  private static Method accessor(Class type, Class wanted) {
    Method[] methods = type.getMethods();
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getParameterTypes().length == 0 && methods[i].getReturnType() == wanted) return methods[i];
    }
    throw new IllegalStateException(type.getName() + " has no accessor for " + wanted.getName() + " in this version of Spark");
  }
}
