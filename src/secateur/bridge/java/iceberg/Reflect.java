package secateur.iceberg;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.List;

/** Access to what Iceberg keeps package-private; a name that this version does not have is an exception that says so. */
final class Reflect {
  private static final Cache FOUND = CacheBuilder.newBuilder().maximumSize(1000).build(); // what was found; to look takes longer than to call

  private Reflect() {}

  static Object get(Object owner, String name) throws Exception {
    return field(owner.getClass(), name).get(owner);
  }

  static void set(Object owner, String name, Object value) throws Exception {
    field(owner.getClass(), name).set(owner, value);
  }

  static Field field(Class type, String name) throws Exception {
    List key = Arrays.asList(new Object[] {type, name});
    Field known = (Field) FOUND.getIfPresent(key);
    if (known == null) FOUND.put(key, known = findField(type, name));
    return known;
  }

  private static Field findField(Class type, String name) throws Exception {
    for (Class c = type; c != null; c = c.getSuperclass()) {
      Field[] fields = c.getDeclaredFields();
      for (int i = 0; i < fields.length; i++) {
        if (!fields[i].getName().equals(name)) continue;
        fields[i].setAccessible(true);
        return fields[i];
      }
    }
    throw new NoSuchFieldException(type.getName() + " has no field " + name + " in this version of Iceberg");
  }

  /** The method of that name and number of parameters, that of the most special class first. */
  static Method method(Class type, String name, int parameters) throws Exception {
    List key = Arrays.asList(new Object[] {type, name, Integer.valueOf(parameters)});
    Method known = (Method) FOUND.getIfPresent(key);
    if (known == null) FOUND.put(key, known = findMethod(type, name, parameters));
    return known;
  }

  private static Method findMethod(Class type, String name, int parameters) throws Exception {
    for (Class c = type; c != null; c = c.getSuperclass()) {
      Method[] methods = c.getDeclaredMethods();
      for (int i = 0; i < methods.length; i++) {
        if (!methods[i].getName().equals(name) || methods[i].getParameterTypes().length != parameters) continue;
        if (methods[i].isBridge()) continue;
        methods[i].setAccessible(true);
        return methods[i];
      }
    }
    throw new NoSuchMethodException(type.getName() + " has no method " + name + " in this version of Iceberg");
  }

  static Object call(Object owner, String name) throws Exception {
    return invoke(method(owner.getClass(), name, 0), owner, new Object[0]);
  }

  static Object call(Object owner, String name, Object argument) throws Exception {
    return invoke(method(owner.getClass(), name, 1), owner, new Object[] {argument});
  }

  /** As the method itself would be called: what it throws is thrown, not wrapped. */
  static Object invoke(Method method, Object owner, Object[] arguments) throws Exception {
    try {
      return method.invoke(owner, arguments);
    } catch (InvocationTargetException wrapped) {
      if (wrapped.getCause() instanceof Exception) throw (Exception) wrapped.getCause();
      throw wrapped;
    }
  }

  /** A copy of any object, field by field, without its constructor: those of Iceberg's scans change between versions. */
  static Object copy(Object original) throws Exception {
    Class unsafe = Class.forName("sun.misc.Unsafe");
    Field instance = unsafe.getDeclaredField("theUnsafe");
    instance.setAccessible(true);
    Object copy = unsafe.getMethod("allocateInstance", new Class[] {Class.class}).invoke(instance.get(null), new Object[] {original.getClass()});
    for (Class c = original.getClass(); c != null; c = c.getSuperclass()) {
      Field[] fields = c.getDeclaredFields();
      for (int i = 0; i < fields.length; i++) {
        if (Modifier.isStatic(fields[i].getModifiers())) continue;
        fields[i].setAccessible(true);
        fields[i].set(copy, fields[i].get(original));
      }
    }
    return copy;
  }
}
