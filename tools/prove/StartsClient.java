import java.io.BufferedReader;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.zip.CRC32;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.Time;

/**
 * Brokers of one release in this process, one after the other, for tools.prove.starts. A line on standard input is a
 * command with tab-separated arguments, the answer ends with "done". What the brokers log is on standard error.
 *
 * <p>start PROPERTIES SECONDS [CONTROLLER-PROPERTIES]; read ADDRESS FILE; fill ADDRESS SEGMENT-CONFIG; more ADDRESS;
 * stop; mark TEXT.
 */
public class StartsClient {
    static final List<String> EXITS = new CopyOnWriteArrayList<>();
    /** The nodes that run, by the place of their properties in the command: a broker stops before its controller. */
    static final Map<Integer, KafkaRaftServer> RUNNING = new TreeMap<>();

    public static void main(String[] args) throws Exception {
        Exit.setExitProcedure(StartsClient::exits);
        Exit.setHaltProcedure(StartsClient::exits);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t");
            try {
                switch (words[0]) {
                    case "start" -> start(words);
                    case "read" -> read(words[1], partitions(words[2]));
                    case "fill" -> fill(words[1], words[2]);
                    case "more" -> more(words[1]);
                    case "stop" -> stop();
                    case "exits" -> EXITS.forEach(each -> say("exit", each));
                    default -> System.err.println(words[1]);
                }
            } catch (Throwable reason) {
                say("failed", words[0] + ": " + reason);
            }
            System.err.flush();
            say("done");
        }
        Runtime.getRuntime().halt(0);
    }

    static void exits(int status, String message) {
        EXITS.add(status + " " + message);
        throw new IllegalStateException("the broker ends with " + status);
    }

    static void say(String... words) {
        List<String> clean = new ArrayList<>();
        for (String word : words) {
            clean.add(word == null ? "" : word.replaceAll("[\t\r\n]+", " "));
        }
        System.out.println(String.join("\t", clean));
        System.out.flush();
    }

    static Properties properties(String file) throws Exception {
        Properties found = new Properties();
        try (FileReader reader = new FileReader(file)) {
            found.load(reader);
        }
        return found;
    }

    /** Start a broker, after its controller where that is another node. */
    static void start(String[] words) throws Exception {
        EXITS.clear();
        List<CompletableFuture<String>> waits = new ArrayList<>();
        for (int number = words.length - 1; number >= 1; number--) {
            if (number == 2) {
                continue;
            }
            Properties given = properties(words[number]);
            CompletableFuture<String> wait = new CompletableFuture<>();
            int place = number;
            Thread thread = new Thread(() -> wait.complete(come(given, place)), "start-" + number);
            thread.setDaemon(true);
            thread.start();
            waits.add(wait);
        }
        String told;
        try {
            told = waits.get(waits.size() - 1).get(Long.parseLong(words[2]), TimeUnit.SECONDS);
        } catch (TimeoutException reason) {
            told = "no answer";
        }
        say("started", told);
        EXITS.forEach(each -> say("exit", each));
    }

    static String come(Properties given, int place) {
        try {
            KafkaRaftServer server = new KafkaRaftServer(KafkaConfig.fromProps(given), Time.SYSTEM);
            synchronized (RUNNING) {
                RUNNING.put(place, server);
            }
            server.startup();
            return "";
        } catch (Throwable reason) {
            StringBuilder told = new StringBuilder();
            for (Throwable each = reason; each != null; each = each.getCause()) {
                told.append(each).append(" | ");
            }
            return told.toString();
        }
    }

    static void stop() throws Exception {
        List<KafkaRaftServer> servers;
        synchronized (RUNNING) {
            servers = new ArrayList<>(RUNNING.values());
            RUNNING.clear();
        }
        for (KafkaRaftServer server : servers) {
            CompletableFuture<Void> wait = CompletableFuture.runAsync(server::shutdown);
            try {
                wait.get(20, TimeUnit.SECONDS);
            } catch (Exception reason) {
                say("hangs", String.valueOf(reason));
            }
        }
        EXITS.forEach(each -> say("exit", each));
    }

    static List<TopicPartition> partitions(String file) throws Exception {
        List<TopicPartition> found = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(file))) {
            int dash = line.lastIndexOf('-');
            found.add(new TopicPartition(line.substring(0, dash), Integer.parseInt(line.substring(dash + 1))));
        }
        return found;
    }

    static Properties client(String address) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("request.timeout.ms", "3000");
        settings.put("default.api.timeout.ms", "4000");
        settings.put("max.block.ms", "3000");
        settings.put("delivery.timeout.ms", "4000");
        settings.put("linger.ms", "0");
        return settings;
    }

    /** Say what a consumer gets of each partition, and whether a new record can be read. */
    static void read(String address, List<TopicPartition> wanted) throws Exception {
        Properties settings = client(address);
        List<TopicPartition> led = new ArrayList<>();
        try (Admin admin = Admin.create(settings)) {
            Map<String, org.apache.kafka.clients.admin.TopicDescription> found = new HashMap<>();
            long from = System.nanoTime();
            boolean waits = true;
            while (waits && System.nanoTime() - from < 4_000_000_000L) {
                waits = false;
                for (TopicPartition each : wanted) {
                    try {
                        found.put(each.topic(), admin.describeTopics(List.of(each.topic())).allTopicNames().get().get(each.topic()));
                    } catch (Exception reason) {
                        found.remove(each.topic());
                    }
                    var topic = found.get(each.topic());
                    waits = waits || (topic != null && topic.partitions().stream().anyMatch(one -> one.leader() == null));
                }
                if (waits) {
                    Thread.sleep(300);
                }
            }
            for (TopicPartition each : wanted) {
                var topic = found.get(each.topic());
                var one = topic == null ? null : topic.partitions().stream()
                    .filter(part -> part.partition() == each.partition()).findFirst().orElse(null);
                if (one == null) {
                    say("records", each.toString(), "", "", "no such partition");
                } else if (one.leader() == null) {
                    say("records", each.toString(), "", "", "no leader");
                } else {
                    led.add(each);
                }
            }
        }
        for (TopicPartition each : led) {
            consume(settings, each);
        }
        append(settings, led);
    }

    static void consume(Properties given, TopicPartition each) {
        Properties settings = new Properties();
        settings.putAll(given);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        StringBuilder records = new StringBuilder();
        String failed = "";
        long start = -1;
        long end = -1;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            List<TopicPartition> one = List.of(each);
            consumer.assign(one);
            consumer.seekToBeginning(one);
            start = consumer.beginningOffsets(one).get(each);
            end = consumer.endOffsets(one).get(each);
            long quiet = System.nanoTime();
            while (consumer.position(each) < end && System.nanoTime() - quiet < 2_500_000_000L) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(300))) {
                    quiet = System.nanoTime();
                    records.append(record.offset()).append('=').append(sum(record)).append(',');
                }
            }
            if (consumer.position(each) < end) {
                failed = "stops at " + consumer.position(each);
            }
        } catch (Exception reason) {
            failed = reason.toString();
        }
        say("records", each.toString(), Long.toString(start), Long.toString(end), failed, records.toString());
    }

    static long sum(ConsumerRecord<byte[], byte[]> record) {
        CRC32 sum = new CRC32();
        sum.update(record.key() == null ? new byte[0] : record.key());
        sum.update(0);
        sum.update(record.value() == null ? new byte[0] : record.value());
        return sum.getValue();
    }

    /** Append a record to each partition, and read it. */
    static void append(Properties given, List<TopicPartition> led) {
        Properties settings = new Properties();
        settings.putAll(given);
        settings.put("enable.idempotence", "false");
        settings.put("acks", "1");
        ByteArraySerializer bytes = new ByteArraySerializer();
        ByteArrayDeserializer back = new ByteArrayDeserializer();
        Map<TopicPartition, Long> offsets = new TreeMap<>((a, b) -> a.toString().compareTo(b.toString()));
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
            Map<TopicPartition, java.util.concurrent.Future<org.apache.kafka.clients.producer.RecordMetadata>> sent = new HashMap<>();
            for (TopicPartition each : led) {
                sent.put(each, producer.send(new ProducerRecord<>(each.topic(), each.partition(), new byte[] {7}, "new".getBytes())));
            }
            for (TopicPartition each : led) {
                try {
                    offsets.put(each, sent.get(each).get().offset());
                } catch (Exception reason) {
                    say("new", each.toString(), "", String.valueOf(reason.getMessage()));
                }
            }
        }
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, back, back)) {
            for (var each : offsets.entrySet()) {
                String told = "unread";
                try {
                    consumer.assign(List.of(each.getKey()));
                    consumer.seek(each.getKey(), each.getValue());
                    long from = System.nanoTime();
                    while (told.equals("unread") && System.nanoTime() - from < 2_500_000_000L) {
                        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(300))) {
                            if (record.offset() == each.getValue()) {
                                told = "read";
                            }
                        }
                    }
                } catch (Exception reason) {
                    told = reason.toString();
                }
                say("new", each.getKey().toString(), each.getValue().toString(), told);
            }
        }
    }

    /** Write what the scenes begin with. */
    static void fill(String address, String segment) throws Exception {
        Properties settings = client(address);
        settings.put("default.api.timeout.ms", "30000");
        settings.put("request.timeout.ms", "20000");
        settings.put("max.block.ms", "20000");
        settings.put("delivery.timeout.ms", "30000");
        Map<String, String> configs = new HashMap<>(Map.of("retention.ms", "-1", "index.interval.bytes", "300",
            segment, "2500", "segment.index.bytes", "1200"));
        Map<String, String> compacted = new HashMap<>(configs);
        compacted.put("cleanup.policy", "compact");
        List<NewTopic> topics = new ArrayList<>();
        for (String name : List.of("plain", "idem", "dele", "txn", "zst", "comp", "bare")) {
            NewTopic topic = new NewTopic(name, name.equals("plain") ? 3 : name.equals("bare") ? 1 : 2, (short) 1);
            topics.add(topic.configs(name.equals("comp") ? compacted : configs));
        }
        try (Admin admin = Admin.create(settings)) {
            admin.createTopics(topics).all().get();
            produce(settings, 0);
            admin.deleteRecords(Map.of(new TopicPartition("dele", 0), RecordsToDelete.beforeOffset(27))).all().get();
            admin.alterConsumerGroupOffsets("readers", Map.of(
                new TopicPartition("plain", 0), new OffsetAndMetadata(90),
                new TopicPartition("zst", 0), new OffsetAndMetadata(60))).all().get();
        }
    }

    static void more(String address) throws Exception {
        produce(client(address), 1000);
    }

    static void produce(Properties given, int from) throws Exception {
        ByteArraySerializer bytes = new ByteArraySerializer();
        for (String name : List.of("plain", "idem", "dele", "zst", "comp", "txn")) {
            Properties settings = new Properties();
            settings.putAll(given);
            settings.put("enable.idempotence", name.equals("idem") || name.equals("txn") ? "true" : "false");
            if (name.equals("zst")) {
                settings.put("compression.type", "zstd");
            }
            if (name.equals("txn")) {
                settings.put("transactional.id", "mover");
                settings.put("transaction.timeout.ms", "60000");
            }
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
                if (name.equals("txn")) {
                    producer.initTransactions();
                }
                for (int batch = 0; batch < 14; batch++) {
                    if (name.equals("txn")) {
                        producer.beginTransaction();
                    }
                    for (int part = 0; part < (name.equals("plain") ? 3 : 2); part++) {
                        for (int one = 0; one < 4; one++) {
                            int number = from + batch * 4 + one;
                            byte[] key = (name.equals("comp") ? "k" + number % 9 : "key-" + number).getBytes();
                            String value = "value " + number + " of " + name + "-" + part + " " + "x".repeat(30 + number % 50);
                            producer.send(new ProducerRecord<>(name, part, key, value.getBytes()));
                        }
                    }
                    producer.flush();
                    if (name.equals("txn") && batch % 5 == 2) {
                        producer.abortTransaction();
                    } else if (name.equals("txn")) {
                        producer.commitTransaction();
                    }
                }
            }
        }
    }
}
