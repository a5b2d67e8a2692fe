import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Map;
import java.util.TreeMap;

import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints the type of every config of one Kafka release: a line "OWNER, tab, NAME, tab, TYPE" for each.
 *
 * Usage: java -cp ... ConfigTypes OWNER=CLASS[#FIELD]... Classes that the release does not have are skipped. Every static
 * field of type ConfigDef counts, public or not, and every static method without parameters that returns one. For a
 * Scala object (field MODULE$) this includes the members of the object. With #FIELD only that field counts.
 */
public final class ConfigTypes {
    public static void main(String[] args) throws Exception {
        for (String arg : args) {
            String[] parts = arg.split("[=#]", 3);
            String only = parts.length > 2 ? parts[2] : null;
            Class<?> owner;
            try {
                owner = Class.forName(parts[1]);
            } catch (ClassNotFoundException absent) {
                continue;
            }
            Map<String, ConfigDef.Type> found = new TreeMap<>();
            Object module = module(owner);
            for (Class<?> each = owner; each != null && each != Object.class; each = each.getSuperclass()) {
                collect(each, module, only, found);
            }
            for (Map.Entry<String, ConfigDef.Type> entry : found.entrySet()) {
                System.out.println(parts[0] + "\t" + entry.getKey() + "\t" + entry.getValue());
            }
        }
        System.out.flush();
        System.exit(0);
    }

    private static Object module(Class<?> owner) throws Exception {
        try {
            Field field = owner.getDeclaredField("MODULE$");
            field.setAccessible(true);
            return field.get(null);
        } catch (NoSuchFieldException notScala) {
            return null;
        }
    }

    private static void collect(Class<?> owner, Object module, String only, Map<String, ConfigDef.Type> found)
            throws Exception {
        for (Field field : owner.getDeclaredFields()) {
            if ((only == null || only.equals(field.getName())) && ConfigDef.class.isAssignableFrom(field.getType()) && reachable(field.getModifiers(), module)) {
                field.setAccessible(true);
                take((ConfigDef) field.get(Modifier.isStatic(field.getModifiers()) ? null : module), found);
            }
        }
        for (Method method : owner.getDeclaredMethods()) {
            boolean fits = only == null && ConfigDef.class.isAssignableFrom(method.getReturnType()) && method.getParameterCount() == 0;
            if (fits && reachable(method.getModifiers(), module)) {
                method.setAccessible(true);
                take((ConfigDef) method.invoke(Modifier.isStatic(method.getModifiers()) ? null : module), found);
            }
        }
    }

    private static boolean reachable(int modifiers, Object module) {
        return Modifier.isStatic(modifiers) || module != null;
    }

    private static void take(ConfigDef definition, Map<String, ConfigDef.Type> found) {
        if (definition != null) {
            for (ConfigDef.ConfigKey key : definition.configKeys().values()) {
                found.put(key.name, key.type);
            }
        }
    }
}
