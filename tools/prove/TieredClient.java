import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Fills tiered topics: TieredClient ADDRESS SEED TOPIC...; ends when each has segments in remote storage alone. */
public class TieredClient {
    private static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};

    public static void main(String[] arguments) throws Exception {
        Random random = new Random(Long.parseLong(arguments[1]));
        List<String> topics = List.of(arguments).subList(2, arguments.length);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            List<NewTopic> wanted = new ArrayList<>();
            for (String topic : topics)
                wanted.add(new NewTopic(topic, 2, (short) 1).configs(Map.of(
                    "remote.storage.enable", "true", "local.retention.bytes", "1", "segment.bytes", "1048576")));
            admin.createTopics(wanted).all().get();
            for (String codec : CODECS)
                for (String topic : topics) fill(arguments[0], topic, codec, random);
            for (String topic : topics)
                for (int partition = 0; partition < 2; partition++)
                    await(admin, new TopicPartition(topic, partition));
        }
    }

    private static void fill(String address, String topic, String codec, Random random) throws Exception {
        Properties settings = new Properties();
        settings.putAll(Map.of(
            "bootstrap.servers", address,
            "compression.type", codec,
            "linger.ms", "20",
            "transactional.id", topic + codec,
            "key.serializer", ByteArraySerializer.class.getName(),
            "value.serializer", ByteArraySerializer.class.getName()));
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            producer.initTransactions();
            for (int round = 0; round < 4; round++) {
                producer.beginTransaction();
                for (int number = 0; number < 300; number++) {
                    byte[] value = new byte[random.nextInt(2000)];
                    random.nextBytes(value);
                    byte[] key = random.nextInt(10) == 0 ? null : new byte[] {(byte) random.nextInt(50)};
                    producer.send(new ProducerRecord<>(topic, number % 2, key, random.nextInt(20) == 0 ? null : value));
                }
                if (round == 2) producer.abortTransaction();
                else producer.commitTransaction();
            }
        }
    }

    private static void await(Admin admin, TopicPartition partition) throws Exception {
        for (int tries = 0; tries < 600; tries++) {
            long local = admin.listOffsets(Map.of(partition, OffsetSpec.earliestLocal())).all().get().get(partition).offset();
            if (local > 0) {
                System.out.println(partition + " has its records below " + local + " in remote storage alone");
                return;
            }
            Thread.sleep(200);
        }
        throw new IllegalStateException(partition + " is not copied");
    }
}
