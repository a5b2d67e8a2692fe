import java.util.*;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/**
 * Load for a broker, and questions that it answers from its indexes.
 *   load ADDRESS TOPIC SECONDS      a plain and two transactional producers; every third transaction is aborted
 *   times ADDRESS TOPIC FIRST LAST STEP     the offset that each timestamp from FIRST on leads to, one per line
 *   read ADDRESS TOPIC              what a read_committed consumer gets: offsets, one per line
 */
public class LoadClient {
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "load": load(args[1], args[2], Long.parseLong(args[3])); break;
            case "times": times(args); break;
            default: read(args[1], args[2]);
        }
    }

    static Properties settings(String address, String... more) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", address);
        for (int i = 0; i < more.length; i += 2) properties.put(more[i], more[i + 1]);
        return properties;
    }

    static KafkaProducer<byte[], byte[]> producer(String address, String... more) {
        return new KafkaProducer<>(settings(address, more), new ByteArraySerializer(), new ByteArraySerializer());
    }

    static void load(String address, String topic, long seconds) throws Exception {
        AtomicBoolean on = new AtomicBoolean(true);
        List<Thread> threads = new ArrayList<>();
        threads.add(new Thread(() -> {
            try (var plain = producer(address, "linger.ms", "2", "batch.size", "2000")) {
                Random random = new Random(1);
                while (on.get()) {
                    plain.send(new ProducerRecord<>(topic, 0, null, new byte[random.nextInt(200)]));
                    pause(1);
                }
            }
        }));
        for (int number = 0; number < 2; number++) {
            String id = "load-" + number;
            threads.add(new Thread(() -> {
                try (var transactional = producer(address, "transactional.id", id)) {
                    transactional.initTransactions();
                    for (int n = 0; on.get(); n++) {
                        transactional.beginTransaction();
                        for (int i = 0; i < 3; i++) transactional.send(new ProducerRecord<>(topic, 0, null, new byte[50]));
                        transactional.flush();
                        if (n % 3 == 0) transactional.abortTransaction(); else transactional.commitTransaction();
                    }
                }
            }));
        }
        for (Thread thread : threads) thread.start();
        Thread.sleep(seconds * 1000);
        on.set(false);
        for (Thread thread : threads) thread.join();
    }

    static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    static KafkaConsumer<byte[], byte[]> consumer(String address) {
        return new KafkaConsumer<>(settings(address, "isolation.level", "read_committed", "enable.auto.commit", "false"),
            new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static void times(String[] args) {
        TopicPartition partition = new TopicPartition(args[2], 0);
        StringBuilder out = new StringBuilder();
        try (var consumer = consumer(args[1])) {
            for (long time = Long.parseLong(args[3]); time <= Long.parseLong(args[4]); time += Long.parseLong(args[5])) {
                OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, time)).get(partition);
                out.append(time).append('\t').append(found == null ? "none" : found.offset() + "\t" + found.timestamp()).append('\n');
            }
        }
        System.out.print(out);
    }

    static void read(String address, String topic) {
        TopicPartition partition = new TopicPartition(topic, 0);
        StringBuilder out = new StringBuilder();
        try (var consumer = consumer(address)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end)
                for (var record : consumer.poll(java.time.Duration.ofMillis(500)))
                    out.append(record.offset()).append('\t').append(record.timestamp()).append('\n');
        }
        System.out.print(out);
    }
}
