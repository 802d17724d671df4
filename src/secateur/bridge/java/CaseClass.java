package secateur;

import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Copies of Spark's case classes with one field changed, whatever other fields this version of Spark gave them. */
final class CaseClass {
  private static final Map COPIES = new ConcurrentHashMap(); // of the few classes that are edited

  private CaseClass() {}

  static Object with(Object original, String field, Object value) throws Exception {
    Class type = original.getClass();
    Method copy = (Method) COPIES.get(type);
    if (copy == null) COPIES.put(type, copy = copy(type));
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
    if (!found) throw new IllegalStateException(type.getName() + " has no field " + field + " in this version of Spark");
    return copy.invoke(original, args);
  }

  private static Method copy(Class type) {
    Method copy = null;
    Method[] methods = type.getMethods();
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getName().equals("copy") && !methods[i].isBridge()) copy = methods[i];
    }
    if (copy == null) throw new IllegalStateException(type.getName() + " has no copy method in this version of Spark");
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
