import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;

/**
 * Reads messages as Kafka's generated classes do: ReadMessages FILE, with a class, a version and bytes in base64 in each
 * line, separated by tabs. Prints for each the bytes left over, a tab and the JSON of its converter, or "-" and why not.
 */
public final class ReadMessages {
    public static void main(String[] arguments) throws Exception {
        try (PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8)) {
            for (String line : Files.readAllLines(Path.of(arguments[0]), StandardCharsets.US_ASCII)) {
                String[] words = line.split("\t", -1);
                ByteBuffer data = ByteBuffer.wrap(Base64.getDecoder().decode(words[2]));
                short version = Short.parseShort(words[1]);
                Class<?> converter = Class.forName(words[0] + "JsonConverter");
                Message message = (Message) Class.forName(words[0]).getDeclaredConstructor().newInstance();
                try {
                    message.read(new ByteBufferAccessor(data), version);
                } catch (RuntimeException refused) {
                    out.println("-\t" + refused.toString().replaceAll("\\s", " "));
                    continue;
                }
                Object json = converter.getMethod("write", message.getClass(), short.class).invoke(null, message, version);
                out.println(data.remaining() + "\t" + json);
            }
        }
    }
}
