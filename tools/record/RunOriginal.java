import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.security.Permission;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Runs a command-line tool many times in one JVM: thousands of runs a minute instead of a few.
 *
 * <pre>java -Djava.security.manager=allow -Dfile.encoding=UTF-8 -cp OUT:JARS/* RunOriginal MAIN_CLASS CASES RESULTS</pre>
 *
 * A line of CASES is a name and the tool's arguments, separated by tabs. A line of RESULTS is the name, the exit
 * status, and stdout and stderr in base64, separated by tabs. An exception that main throws is told as the JVM
 * tells it, without its stack: the lines of the stack differ from one JVM to the next.
 *
 * Each case runs on fresh files: what a run changed, created or deleted in the folders of its files is put back, since
 * all releases create an index that is missing, and 4.3 trims one on disk.
 */
public final class RunOriginal {
    private static final class Exit extends SecurityException {
        final int status;

        Exit(int status) {
            super("exit " + status);
            this.status = status;
        }
    }

    /** Turns System.exit into an exception; everything else is allowed. */
    private static final class ExitTrap extends SecurityManager {
        Exit seen;

        @Override
        public void checkExit(int status) {
            seen = new Exit(status);
            throw seen;
        }

        @Override
        public void checkPermission(Permission permission) { }

        @Override
        public void checkPermission(Permission permission, Object context) { }
    }

    /** A stream whose end can be changed: Scala's Console keeps the one that it saw first. */
    private static final class Pipe extends OutputStream {
        OutputStream end;

        @Override
        public void write(int value) throws IOException {
            end.write(value);
        }

        @Override
        public void write(byte[] bytes, int from, int length) throws IOException {
            end.write(bytes, from, length);
        }

        @Override
        public void flush() throws IOException {
            end.flush();
        }
    }

    /** The files of the folders that a case names, kept while it runs. */
    private static final class Kept {
        private record Stamp(long size, FileTime modified) { }

        private final Map<Path, Stamp> stamps = new HashMap<>();
        private final Map<Path, Path> copies = new HashMap<>();
        private final Set<Path> folders = new LinkedHashSet<>();

        Kept(String[] words, Path store) throws IOException {
            String before = "";
            for (String word : words) {
                boolean own = before.matches("--?f[a-z]*"); // old releases take abbreviations
                if (own || word.matches("--?f[a-z]*=.*")) {
                    for (String name : word.substring(own ? 0 : word.indexOf('=') + 1).split(",")) {
                        Path folder = Path.of(name).toAbsolutePath().getParent();
                        if (folder != null && Files.isDirectory(folder)) {
                            folders.add(folder);
                        }
                    }
                }
                before = word;
            }
            for (Path file : files()) {
                Path copy = store.resolve(Integer.toString(copies.size()));
                Files.copy(file, copy, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.COPY_ATTRIBUTES);
                stamps.put(file, stamp(file));
                copies.put(file, copy);
            }
        }

        private static Stamp stamp(Path file) throws IOException {
            return new Stamp(Files.size(file), Files.getLastModifiedTime(file));
        }

        private List<Path> files() throws IOException {
            List<Path> found = new ArrayList<>();
            for (Path folder : folders) {
                try (Stream<Path> listed = Files.list(folder)) {
                    listed.filter(Files::isRegularFile).forEach(found::add);
                }
            }
            return found;
        }

        void putBack() throws IOException {
            Set<Path> now = new HashSet<>(files());
            for (Path file : now) {
                if (!stamps.containsKey(file)) {
                    Files.delete(file);
                }
            }
            for (Map.Entry<Path, Stamp> kept : stamps.entrySet()) {
                Path file = kept.getKey();
                if (!now.contains(file) || !kept.getValue().equals(stamp(file))) {
                    Files.copy(copies.get(file), file,
                        StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.COPY_ATTRIBUTES);
                }
            }
        }
    }

    private static final ExitTrap TRAP = new ExitTrap();
    private static final Pipe OUT = new Pipe();
    private static final Pipe ERR = new Pipe();

    private RunOriginal() { }

    public static void main(String[] arguments) throws Exception {
        List<String> cases = Files.readAllLines(Path.of(arguments[1]), StandardCharsets.UTF_8);
        OUT.end = new FileOutputStream(FileDescriptor.out);
        ERR.end = new FileOutputStream(FileDescriptor.err);
        System.setSecurityManager(TRAP);
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        Method tool = Class.forName(arguments[0]).getMethod("main", String[].class);
        Path store = Files.createTempDirectory("kept");
        try (PrintWriter results = new PrintWriter(arguments[2], StandardCharsets.UTF_8)) {
            for (String line : cases) {
                String[] words = line.split("\t", -1);
                String[] given = Arrays.copyOfRange(words, 1, words.length);
                Kept kept = new Kept(given, store);
                results.println(words[0] + "\t" + run(tool, given));
                kept.putBack();
            }
        } finally {
            try (Stream<Path> copies = Files.list(store)) {
                for (Path copy : copies.toList()) {
                    Files.delete(copy);
                }
            }
            Files.delete(store);
        }
        System.setSecurityManager(null);
        System.exit(0);
    }

    private static String run(Method tool, String[] words) throws IllegalAccessException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        OUT.end = out;
        ERR.end = err;
        TRAP.seen = null;
        int status = 0;
        try {
            tool.invoke(null, (Object) words);
        } catch (InvocationTargetException wrapped) {
            Throwable reason = wrapped.getCause();
            if (!(reason instanceof Exit)) {
                status = 1;
                System.err.println("Exception in thread \"main\" " + reason);
                for (Throwable cause = reason.getCause(); cause != null; cause = cause.getCause()) {
                    System.err.println("Caused by: " + cause);
                }
            }
        }
        if (TRAP.seen != null) {
            status = TRAP.seen.status;
        }
        System.out.flush();
        System.err.flush();
        Base64.Encoder base64 = Base64.getEncoder();
        return status + "\t" + base64.encodeToString(out.toByteArray()) + "\t" + base64.encodeToString(err.toByteArray());
    }
}
