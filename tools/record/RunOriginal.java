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
import java.security.Permission;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

/**
 * Runs a command-line tool many times in one JVM: thousands of runs a minute instead of a few.
 *
 * <pre>java -Djava.security.manager=allow -Dfile.encoding=UTF-8 -cp OUT:JARS/* RunOriginal MAIN_CLASS CASES RESULTS</pre>
 *
 * A line of CASES is a name and the tool's arguments, separated by tabs. A line of RESULTS is the name, the exit
 * status, and stdout and stderr in base64, separated by tabs. An exception that main throws is told as the JVM
 * tells it, without its stack: the lines of the stack differ from one JVM to the next.
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
        try (PrintWriter results = new PrintWriter(arguments[2], StandardCharsets.UTF_8)) {
            for (String line : cases) {
                String[] words = line.split("\t", -1);
                results.println(words[0] + "\t" + run(tool, Arrays.copyOfRange(words, 1, words.length)));
            }
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
