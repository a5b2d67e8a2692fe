import java.io.BufferedReader;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;

/**
 * Brokers of one release in this process, one after the other, for tools.prove.starts. A line on standard input is a
 * command with tab-separated arguments, the answer ends with "done". What the brokers log is on standard error.
 *
 * <p>start PROPERTIES SECONDS [CONTROLLER-PROPERTIES]; read ADDRESS FILE; fill ADDRESS SEGMENT-CONFIG
 * TOPIC=PARTITIONS,...; more ADDRESS TOPIC=PARTITIONS,...;
 * exits; stop; mark TEXT. "hangs" in an answer: a broker is not gone, and this process must end.
 */
public class StartsClient {
    static final List<String> EXITS = new CopyOnWriteArrayList<>();
    /** The nodes that run, by the place of their properties in the command: a broker stops before its controller. */
    static final Map<Integer, KafkaRaftServer> RUNNING = new TreeMap<>();

    /** The threads that belong to this process, not to a broker. */
    static final Set<Thread> OWN = new HashSet<>();

    public static void main(String[] args) throws Exception {
        keepAlive();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        OWN.addAll(Thread.getAllStackTraces().keySet());
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t");
            try {
                switch (words[0]) {
                    case "start" -> start(words);
                    case "read" -> read(words[1], partitions(words[2]));
                    case "fill" -> fill(words[1], words[2], counts(words[3]));
                    case "more" -> more(words[1], counts(words[2]));
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

    /** Have the ends of brokers noted; the class Exit is in another package from 4.4 on. */
    static void keepAlive() throws Exception {
        Class<?> exit;
        try {
            exit = Class.forName("org.apache.kafka.common.utils.internals.Exit");
        } catch (ClassNotFoundException reason) {
            exit = Class.forName("org.apache.kafka.common.utils.Exit");
        }
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object noted = Proxy.newProxyInstance(exit.getClassLoader(), new Class<?>[] {procedure},
            (self, method, given) -> method.getName().equals("execute") ? exits(given) : null);
        exit.getMethod("setExitProcedure", procedure).invoke(null, noted);
        exit.getMethod("setHaltProcedure", procedure).invoke(null, noted);
    }

    static Object exits(Object[] given) {
        int status = (Integer) given[0];
        EXITS.add(status + " " + given[1]);
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
        CompletableFuture<String> broker = waits.get(waits.size() - 1);
        String told = "no answer";
        for (long rest = Long.parseLong(words[2]) * 10; rest > 0 && told.equals("no answer"); rest--) {
            rest = EXITS.isEmpty() ? rest : Math.min(rest, 5);
            try {
                told = broker.get(100, TimeUnit.MILLISECONDS);
            } catch (TimeoutException reason) {
                continue;
            }
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

    /** Stop what runs; say "hangs" where threads of it are left, which would meet the next broker. */
    static void stop() throws Exception {
        List<KafkaRaftServer> servers;
        synchronized (RUNNING) {
            servers = new ArrayList<>(RUNNING.values());
            RUNNING.clear();
        }
        for (KafkaRaftServer server : servers) {
            CompletableFuture<Void> wait = new CompletableFuture<>();
            Thread thread = new Thread(() -> {
                try {
                    server.shutdown();
                } catch (Throwable reason) {
                    System.err.println("shutdown: " + reason);
                }
                wait.complete(null);
            }, "stop");
            thread.setDaemon(true);
            thread.start();
            try {
                wait.get(10, TimeUnit.SECONDS);
            } catch (TimeoutException reason) {
                say("hangs", "shutdown");
                return;
            }
        }
        EXITS.forEach(each -> say("exit", each));
        String left = left();
        for (int waits = 0; !left.isEmpty() && waits < 40; waits++) {
            Thread.sleep(50);
            left = left();
        }
        if (!left.isEmpty()) {
            say("hangs", left);
        }
        var metrics = KafkaYammerMetrics.defaultRegistry();
        new ArrayList<>(metrics.allMetrics().keySet()).forEach(metrics::removeMetric);
    }

    static String left() {
        return Thread.getAllStackTraces().keySet().stream()
            .filter(each -> each.isAlive() && !OWN.contains(each))
            .map(Thread::getName)
            .filter(each -> !each.matches("ForkJoinPool.*|Attach Listener|metrics-meter-tick-thread-.*|JNA.*"))
            .collect(Collectors.joining(", "));
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
            while (waits && System.nanoTime() - from < 3_000_000_000L) {
                waits = false;
                var asked = admin.describeTopics(wanted.stream().map(TopicPartition::topic).distinct().toList());
                for (var each : asked.topicNameValues().entrySet()) {
                    try {
                        found.put(each.getKey(), each.getValue().get());
                        waits = waits || found.get(each.getKey()).partitions().stream().anyMatch(one -> one.leader() == null);
                    } catch (Exception reason) {
                        found.remove(each.getKey());
                    }
                }
                if (waits) {
                    Thread.sleep(200);
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
        List<TopicPartition> rest = consume(settings, led);
        for (TopicPartition each : rest) {
            consume(settings, List.of(each));
        }
        append(settings, led.stream().filter(each -> !each.topic().startsWith("__")).toList());
    }

    /**
     * Say what a consumer gets of partitions. A partition at which it fails is left out from there on; where an error
     * names none of several, return those that are not read to their ends, of which nothing is said.
     */
    static List<TopicPartition> consume(Properties given, List<TopicPartition> wanted) {
        Properties settings = new Properties();
        settings.putAll(given);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("fetch.max.wait.ms", "100");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        Map<TopicPartition, StringBuilder> records = new HashMap<>();
        Map<TopicPartition, String> failed = new HashMap<>();
        List<TopicPartition> open = new ArrayList<>(wanted);
        List<TopicPartition> nameless = new ArrayList<>();
        Map<TopicPartition, Long> starts = new HashMap<>();
        Map<TopicPartition, Long> ends = new HashMap<>();
        wanted.forEach(each -> records.put(each, new StringBuilder()));
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            consumer.assign(wanted);
            consumer.seekToBeginning(wanted);
            starts.putAll(consumer.beginningOffsets(wanted));
            ends.putAll(consumer.endOffsets(wanted));
            long quiet = System.nanoTime();
            while (!open.isEmpty() && System.nanoTime() - quiet < 5_000_000_000L) {
                try {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                        quiet = System.nanoTime();
                        TopicPartition from = new TopicPartition(record.topic(), record.partition());
                        records.get(from).append(record.offset()).append('=').append(sum(record)).append(',');
                    }
                    open.removeIf(each -> consumer.position(each) >= ends.get(each));
                } catch (Exception reason) {
                    quiet = System.nanoTime();
                    TopicPartition bad = named(wanted, reason);  // it may have failed before: it was still fetched
                    bad = bad == null && open.size() == 1 ? open.get(0) : bad;
                    if (bad == null) {
                        nameless.addAll(open);
                        break;
                    }
                    failed.putIfAbsent(bad, reason.toString());
                    open.remove(bad);
                    consumer.assign(open);
                }
            }
            for (TopicPartition each : nameless.isEmpty() ? open : List.<TopicPartition>of()) {
                failed.put(each, "stops at " + consumer.position(each));
            }
        } catch (Exception reason) {
            if (wanted.size() > 1) {
                nameless.addAll(open);
            } else {
                failed.put(wanted.get(0), reason.toString());
            }
        }
        for (TopicPartition each : wanted) {
            if (!nameless.contains(each)) {
                say("records", each.toString(), String.valueOf(starts.get(each)), String.valueOf(ends.get(each)),
                    failed.getOrDefault(each, ""), records.get(each).toString());
            }
        }
        return nameless;
    }

    static TopicPartition named(List<TopicPartition> open, Exception reason) {
        List<TopicPartition> found = open.stream()
            .filter(each -> (reason + " ").matches("(?s).*\\b" + each + "\\b.*")).collect(Collectors.toList());
        return found.size() == 1 ? found.get(0) : null;
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
        Map<TopicPartition, String> told = new HashMap<>();
        offsets.keySet().forEach(each -> told.put(each, "unread"));
        for (TopicPartition each : readNew(settings, offsets, new ArrayList<>(offsets.keySet()), told)) {
            readNew(settings, offsets, new ArrayList<>(List.of(each)), told);
        }
        offsets.forEach((each, offset) -> say("new", each.toString(), offset.toString(), told.get(each)));
    }

    /** Read the new records of some partitions; return those that are left where an error names none of several. */
    static List<TopicPartition> readNew(Properties given, Map<TopicPartition, Long> offsets, List<TopicPartition> open,
            Map<TopicPartition, String> told) {
        ByteArrayDeserializer back = new ByteArrayDeserializer();
        Properties settings = new Properties();
        settings.putAll(given);
        settings.put("fetch.max.wait.ms", "100");
        long from = System.nanoTime();
        while (!open.isEmpty() && System.nanoTime() - from < 5_000_000_000L) {
            // a consumer of its own after each failure: one may repeat that of a partition it no longer has
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, back, back)) {
                consumer.assign(open);
                open.forEach(each -> consumer.seek(each, offsets.get(each)));
                while (!open.isEmpty() && System.nanoTime() - from < 5_000_000_000L) {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                        TopicPartition of = new TopicPartition(record.topic(), record.partition());
                        if (offsets.get(of).equals(record.offset())) {
                            told.put(of, "read");
                            open.remove(of);
                        }
                    }
                }
            } catch (Exception reason) {
                TopicPartition bad = named(new ArrayList<>(offsets.keySet()), reason);  // it may have been read before
                bad = bad == null && open.size() == 1 ? open.get(0) : bad;
                if (bad == null) {
                    return open;
                }
                told.put(bad, reason.toString());
                open.remove(bad);
            }
        }
        return List.of();
    }

    /** Return the number of partitions of each topic. */
    static Map<String, Integer> counts(String text) {
        Map<String, Integer> found = new LinkedHashMap<>();
        for (String each : text.split(",")) {
            String[] words = each.split("=");
            found.put(words[0], Integer.parseInt(words[1]));
        }
        return found;
    }

    /** Write what the scenes begin with. */
    static void fill(String address, String segment, Map<String, Integer> counts) throws Exception {
        Properties settings = client(address);
        settings.put("default.api.timeout.ms", "30000");
        settings.put("request.timeout.ms", "20000");
        settings.put("max.block.ms", "20000");
        settings.put("delivery.timeout.ms", "30000");
        Map<String, String> configs = new HashMap<>(Map.of("retention.ms", "-1", "index.interval.bytes", "300",
            segment, "2500", "segment.index.bytes", "1200"));
        Map<String, String> compacted = new HashMap<>(configs);
        compacted.put("cleanup.policy", "compact");
        Map<String, String> cleaned = new HashMap<>(compacted);
        cleaned.putAll(Map.of("min.compaction.lag.ms", "0", "min.cleanable.dirty.ratio", "0.01"));
        List<NewTopic> topics = new ArrayList<>();
        for (String name : counts.keySet()) {
            NewTopic topic = new NewTopic(name, counts.get(name), (short) 1);
            topics.add(topic.configs(name.equals("comp") ? compacted : name.equals("cleaned") ? cleaned : configs));
        }
        try (Admin admin = Admin.create(settings)) {
            admin.createTopics(topics).all().get();
            produce(settings, 0, counts);
            Map<TopicPartition, RecordsToDelete> deleted = new HashMap<>();
            for (int part = 0; part < counts.get("dele"); part += 2) {
                deleted.put(new TopicPartition("dele", part), RecordsToDelete.beforeOffset(27));
            }
            admin.deleteRecords(deleted).all().get();
            admin.alterConsumerGroupOffsets("readers", Map.of(
                new TopicPartition("plain", 0), new OffsetAndMetadata(90),
                new TopicPartition("zst", 0), new OffsetAndMetadata(60))).all().get();
        }
    }

    static void more(String address, Map<String, Integer> counts) throws Exception {
        produce(client(address), 1000, counts);
        if (counts.containsKey("cleaned")) {
            Thread.sleep(5000); // the cleaner's rounds are half a second apart
            try (Admin admin = Admin.create(client(address))) {
                admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, "cleaned"),
                    List.of(new AlterConfigOp(new ConfigEntry("min.compaction.lag.ms", "100000000000"),
                        AlterConfigOp.OpType.SET)))).all().get();
            }
        }
    }

    static void produce(Properties given, int from, Map<String, Integer> counts) throws Exception {
        ByteArraySerializer bytes = new ByteArraySerializer();
        for (String name : List.of("plain", "idem", "dele", "zst", "comp", "cleaned", "txn")) {
            if (!counts.containsKey(name)) {
                continue;
            }
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
                    for (int part = 0; part < counts.get(name); part++) {
                        for (int one = 0; one < 4; one++) {
                            int number = from + batch * 4 + one;
                            boolean few = name.equals("comp") || name.equals("cleaned");
                            byte[] key = (few ? "k" + number % 9 : "key-" + number).getBytes();
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
