import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Does what the lines of a file say, in order: CleaningClient ADDRESS FILE. Words are parted by tabs, "-" is null. */
public class CleaningClient {
    private static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        try (Admin admin = Admin.create(settings)) {
            for (String line : Files.readAllLines(Path.of(arguments[1]))) {
                run(admin, settings, line.split("\t"));
            }
        }
        for (KafkaProducer<byte[], byte[]> producer : PRODUCERS.values()) {
            producer.flush();
        }
        Runtime.getRuntime().halt(0); // without a close, which would abort what is open
    }

    /** create TOPIC KEY=VALUE...; set TOPIC KEY=VALUE...; put ID TOPIC KEY VALUE TIME; flush, begin, commit, abort ID; cut TOPIC OFFSET. */
    private static void run(Admin admin, Properties settings, String[] words) throws Exception {
        switch (words[0]) {
            case "create" -> admin.createTopics(List.of(new NewTopic(words[1], 1, (short) 1).configs(configs(words)))).all().get();
            case "set" -> {
                ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, words[1]);
                List<AlterConfigOp> changes = configs(words).entrySet().stream()
                    .map(entry -> new AlterConfigOp(new ConfigEntry(entry.getKey(), entry.getValue()), AlterConfigOp.OpType.SET))
                    .toList();
                admin.incrementalAlterConfigs(Map.of(topic, changes)).all().get();
            }
            case "cut" -> admin.deleteRecords(
                Map.of(new TopicPartition(words[1], 0), RecordsToDelete.beforeOffset(Long.parseLong(words[2])))).all().get();
            case "put" -> {
                Long time = words[5].equals("-") ? null : Long.valueOf(words[5]);
                producer(settings, words[1]).send(
                    new ProducerRecord<>(words[2], 0, time, bytes(words[3]), bytes(words[4])),
                    (done, error) -> {
                        if (error != null) {
                            System.err.println(String.join(" ", words) + ": " + error);
                            Runtime.getRuntime().halt(1);
                        }
                    });
            }
            case "flush" -> producer(settings, words[1]).flush();
            case "begin" -> producer(settings, words[1]).beginTransaction();
            case "commit" -> producer(settings, words[1]).commitTransaction();
            case "abort" -> {
                producer(settings, words[1]).flush(); // what is not sent yet would not be in the log
                producer(settings, words[1]).abortTransaction();
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static Map<String, String> configs(String[] words) {
        Map<String, String> found = new HashMap<>();
        for (int n = 2; n < words.length; n++) {
            String[] pair = words[n].split("=", 2);
            found.put(pair[0], pair[1]);
        }
        return found;
    }

    private static byte[] bytes(String text) {
        return text.equals("-") ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    /** A producer by its id: one whose name begins with "txn" is transactional. */
    private static KafkaProducer<byte[], byte[]> producer(Properties settings, String id) {
        return PRODUCERS.computeIfAbsent(id, name -> {
            Properties own = new Properties();
            own.putAll(settings);
            own.put("linger.ms", "50");
            own.put("enable.idempotence", Boolean.toString(!name.equals("plain")));
            if (name.startsWith("txn")) {
                own.put("transactional.id", name);
                own.put("transaction.timeout.ms", "900000");
            }
            KafkaProducer<byte[], byte[]> made = new KafkaProducer<>(own, new ByteArraySerializer(), new ByteArraySerializer());
            if (name.startsWith("txn")) {
                made.initTransactions();
            }
            return made;
        });
    }
}
