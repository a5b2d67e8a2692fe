import java.io.BufferedOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What the proofs ask of a broker: BrokerClient ADDRESS create|offsets|append|consume FILE, with the topics in FILE. */
public class BrokerClient {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        List<TopicPartition> partitions = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(args[2]))) {
            int dash = line.lastIndexOf('-');
            partitions.add(new TopicPartition(line.substring(0, dash), Integer.parseInt(line.substring(dash + 1))));
        }
        try (PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, StandardCharsets.UTF_8)) {
            if (args[1].equals("create")) {
                create(settings, partitions);
            } else if (args[1].equals("offsets")) {
                offsets(settings, partitions, out);
            } else if (args[1].equals("append")) {
                append(settings, partitions, out);
            } else {
                consume(settings, partitions, out);
            }
        }
    }

    static void create(Properties settings, List<TopicPartition> partitions) throws Exception {
        Map<String, Integer> counts = new TreeMap<>();
        for (TopicPartition partition : partitions) {
            counts.merge(partition.topic(), partition.partition() + 1, Math::max);
        }
        Map<String, String> configs = new HashMap<>();
        configs.put("retention.ms", "-1");
        configs.put("cleanup.policy", "delete");
        List<NewTopic> topics = new ArrayList<>();
        counts.forEach((topic, count) -> topics.add(new NewTopic(topic, count, (short) 1).configs(configs)));
        try (Admin admin = Admin.create(settings)) {
            admin.createTopics(topics).all().get();
        }
    }

    static void offsets(Properties settings, List<TopicPartition> partitions, PrintStream out) throws Exception {
        try (Admin admin = Admin.create(settings)) {
            Map<TopicPartition, OffsetSpec> first = new HashMap<>();
            Map<TopicPartition, OffsetSpec> last = new HashMap<>();
            for (TopicPartition partition : partitions) {
                first.put(partition, OffsetSpec.earliest());
                last.put(partition, OffsetSpec.latest());
            }
            var earliest = admin.listOffsets(first);
            var latest = admin.listOffsets(last);
            for (TopicPartition partition : partitions) {
                String start = offset(earliest, partition);
                out.println(partition + "\t" + start + "\t" + offset(latest, partition));
            }
        }
    }

    static String offset(org.apache.kafka.clients.admin.ListOffsetsResult result, TopicPartition partition) {
        try {
            return Long.toString(result.partitionResult(partition).get().offset());
        } catch (Exception reason) {
            return "error: " + reason.getMessage();
        }
    }

    /** Append one record to each partition: it takes the log end offset. */
    static void append(Properties settings, List<TopicPartition> partitions, PrintStream out) {
        settings.put("enable.idempotence", "false");
        ByteArraySerializer bytes = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
            for (TopicPartition partition : partitions) {
                String told;
                try {
                    ProducerRecord<byte[], byte[]> record =
                        new ProducerRecord<>(partition.topic(), partition.partition(), null, new byte[] {1});
                    told = Long.toString(producer.send(record).get().offset());
                } catch (Exception reason) {
                    told = "error: " + reason.getMessage();
                }
                out.println(partition + "\t" + told);
            }
        }
    }

    static String headers(ConsumerRecord<byte[], byte[]> record) {
        List<String> texts = new ArrayList<>();
        for (Header header : record.headers()) {
            texts.add(text(header.key().getBytes(StandardCharsets.UTF_8)) + "=" + text(header.value()));
        }
        return String.join(",", texts);
    }

    static void consume(Properties settings, List<TopicPartition> partitions, PrintStream out) {
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("max.partition.fetch.bytes", "8388608");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        for (TopicPartition partition : partitions) {
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
                List<TopicPartition> one = Collections.singletonList(partition);
                consumer.assign(one);
                consumer.seekToBeginning(one);
                long end = consumer.endOffsets(one).get(partition);
                long quiet = System.nanoTime();
                while (consumer.position(partition) < end && System.nanoTime() - quiet < 20_000_000_000L) {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                        quiet = System.nanoTime();
                        out.println(String.join("\t", partition.toString(), Long.toString(record.offset()),
                            Long.toString(record.timestamp()), text(record.key()), text(record.value()), headers(record)));
                    }
                }
                out.println(String.join("\t", partition.toString(), "end", Long.toString(consumer.position(partition)),
                    Long.toString(end), ""));
            }
        }
    }

    static String text(byte[] data) {
        return data == null ? "null" : Base64.getEncoder().encodeToString(data) + ".";
    }
}
