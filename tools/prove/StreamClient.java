import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.*;

/**
 * A live broker's writers and readers, for the proof of the stream (tools/prove/stream.py).
 *   create ADDRESS TOPIC PARTITIONS KEY=VALUE...        a topic with these settings
 *   write ADDRESS RECORDS SECONDS STOP TOPIC=PARTITIONS...
 *       at least so many records, evenly over the time, and on at that rate until the file STOP is there
 *   consume ADDRESS ISOLATION OUT STOP TOPIC=PARTITIONS...
 *       what a consumer gets, to the file OUT, until the file STOP is there and the end is reached
 *
 * Writers: one per codec, and a transactional one that aborts every third transaction. Keys, values and headers are null,
 * empty or bytes; times lie up to a day back. A line of OUT: topic, partition, offset, timestamp, its type, key, value,
 * headers; bytes in base64 with a dot behind, null as null.
 */
public class StreamClient {
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    static Path stop;

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "create": create(args); break;
            case "write": write(args); break;
            default: consume(args[1], args[2], Path.of(args[3]), Path.of(args[4]), partitions(args, 5));
        }
    }

    static Properties settings(String address, String... more) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", address);
        for (int i = 0; i < more.length; i += 2) properties.put(more[i], more[i + 1]);
        return properties;
    }

    static List<TopicPartition> partitions(String[] args, int from) {
        List<TopicPartition> found = new ArrayList<>();
        for (int i = from; i < args.length; i++) {
            String[] pair = args[i].split("=");
            for (int n = 0; n < Integer.parseInt(pair[1]); n++) found.add(new TopicPartition(pair[0], n));
        }
        return found;
    }

    static void create(String[] args) throws Exception {
        Map<String, String> configs = new HashMap<>();
        for (int i = 4; i < args.length; i++) configs.put(args[i].split("=")[0], args[i].split("=")[1]);
        try (Admin admin = Admin.create(settings(args[1]))) {
            NewTopic topic = new NewTopic(args[2], Integer.parseInt(args[3]), (short) 1).configs(configs);
            admin.createTopics(List.of(topic)).all().get();
        }
    }

    static byte[] bytes(Random random, int most) {
        switch (random.nextInt(10)) {
            case 0: return null;
            case 1: return new byte[0];
            default:
                byte[] made = new byte[random.nextInt(most)];
                random.nextBytes(made);
                return made;
        }
    }

    static ProducerRecord<byte[], byte[]> record(Random random, List<TopicPartition> to) {
        TopicPartition partition = to.get(random.nextInt(to.size()));
        long time = System.currentTimeMillis() - (random.nextInt(4) == 0 ? random.nextInt(86_400_000) : 0);
        List<Header> headers = new ArrayList<>();
        for (int i = random.nextInt(6) - 3; i > 0; i--) headers.add(new RecordHeader("h" + i, bytes(random, 20)));
        return new ProducerRecord<>(
            partition.topic(), partition.partition(), time, bytes(random, 20), bytes(random, 300), headers);
    }

    interface Work { void run(Random random, long share) throws Exception; }

    static void write(String[] args) throws Exception {
        String address = args[1];
        long records = Long.parseLong(args[2]), seconds = Long.parseLong(args[3]);
        stop = Path.of(args[4]);
        List<TopicPartition> to = partitions(args, 5);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        List<Thread> threads = new ArrayList<>();
        long share = records / (CODECS.length + 1) + 1;
        for (int i = 0; i <= CODECS.length; i++) {
            int number = i;
            Work work = i < CODECS.length ? (random, count) -> plain(address, CODECS[number], random, count, seconds, to)
                : (random, count) -> transactional(address, random, count, seconds, to);
            threads.add(new Thread(() -> {
                try {
                    work.run(new Random(number), share);
                } catch (Throwable reason) {
                    failure.compareAndSet(null, reason);
                }
            }));
        }
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
        if (failure.get() != null) throw new RuntimeException(failure.get());
    }

    static KafkaProducer<byte[], byte[]> producer(String address, String... more) {
        return new KafkaProducer<>(settings(address, more), new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** Wait until the time has come for the record with this number. */
    static void pace(long began, long number, long count, long seconds) throws InterruptedException {
        long due = began + seconds * 1000 * number / count;
        long now = System.currentTimeMillis();
        if (due > now) Thread.sleep(due - now);
    }

    static void plain(
        String address, String codec, Random random, long count, long seconds, List<TopicPartition> to) throws Exception {
        try (var producer = producer(address, "compression.type", codec, "linger.ms", "20", "batch.size", "8000")) {
            long began = System.currentTimeMillis();
            for (long n = 0; n < count || !Files.exists(stop); n++) {
                pace(began, n, count, seconds);
                producer.send(record(random, to));
            }
        }
    }

    static void transactional(
        String address, Random random, long count, long seconds, List<TopicPartition> to) throws Exception {
        try (var producer = producer(address, "transactional.id", "proof", "compression.type", "lz4")) {
            producer.initTransactions();
            long began = System.currentTimeMillis();
            for (long n = 0; n < count || !Files.exists(stop); ) {
                producer.beginTransaction();
                for (int i = random.nextInt(200); i >= 0; i--, n++) {
                    pace(began, n, count, seconds);
                    producer.send(record(random, to));
                }
                producer.flush();
                if (random.nextInt(3) == 0) producer.abortTransaction(); else producer.commitTransaction();
            }
        }
    }

    static void consume(
        String address, String isolation, Path out, Path stop, List<TopicPartition> from) throws Exception {
        Properties properties = settings(address, "isolation.level", isolation, "enable.auto.commit", "false",
            "auto.offset.reset", "earliest", "allow.auto.create.topics", "false");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties, bytes, bytes);
                PrintStream lines = new PrintStream(new BufferedOutputStream(Files.newOutputStream(out)), false, "UTF-8")) {
            consumer.assign(from);
            while (true) {
                boolean last = Files.exists(stop);
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) lines.println(line(record));
                if (last && atEnd(consumer, from)) return;
            }
        }
    }

    static boolean atEnd(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> from) {
        Map<TopicPartition, Long> ends = consumer.endOffsets(from);
        return from.stream().allMatch(partition -> consumer.position(partition) >= ends.get(partition));
    }

    static String line(ConsumerRecord<byte[], byte[]> record) {
        StringBuilder headers = new StringBuilder();
        for (Header header : record.headers())
            headers.append(headers.length() == 0 ? "" : ",").append(header.key()).append('=').append(text(header.value()));
        return String.join("\t", record.topic(), Integer.toString(record.partition()), Long.toString(record.offset()),
            Long.toString(record.timestamp()), Integer.toString(record.timestampType().id), text(record.key()),
            text(record.value()), headers.toString());
    }

    static String text(byte[] data) {
        return data == null ? "null" : Base64.getEncoder().encodeToString(data) + ".";
    }
}
