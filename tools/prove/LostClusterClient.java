import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Fills the cluster that is to be lost: LostClusterClient ADDRESSES SEED. Two topics with three replicas of which
 * segments roll by the time of the records, a compacted one, one with two, one with a single one; small batches,
 * transactions, aborted too.
 */
public class LostClusterClient {
    static final Map<String, Integer> REPLICAS = Map.of("orders", 3, "payments", 3, "events", 2, "audit", 1, "profiles", 3);
    static final int PARTITIONS = 3;

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        Random random = new Random(Long.parseLong(args[1]));
        try (Admin admin = Admin.create(settings)) {
            List<NewTopic> topics = new ArrayList<>();
            REPLICAS.forEach((name, count) -> topics.add(new NewTopic(name, PARTITIONS, count.shortValue())
                .configs(Map.of("segment.ms", "60000", "retention.ms", "-1", "cleanup.policy",
                    name.equals("profiles") ? "compact" : "delete", "min.cleanable.dirty.ratio", "0.01"))));
            admin.createTopics(topics).all().get();
        }
        settings.put("acks", "all");
        settings.put("linger.ms", "0");
        StringSerializer text = new StringSerializer();
        long now = System.currentTimeMillis() - 3_600_000;
        try (KafkaProducer<String, String> plain = new KafkaProducer<>(settings, text, text)) {
            settings.put("transactional.id", "tx-1");
            try (KafkaProducer<String, String> tx = new KafkaProducer<>(settings, text, text)) {
                tx.initTransactions();
                for (int n = 0; n < 120; n++) {
                    for (String topic : REPLICAS.keySet()) {
                        KafkaProducer<String, String> by = n % 10 == 9 && topic.equals("payments") ? tx : plain;
                        if (by == tx) {
                            tx.beginTransaction();
                        }
                        int count = 1 + random.nextInt(4);
                        for (int i = 0; i < count; i++) {
                            String value = topic + "-" + n + "-" + i + "x".repeat(random.nextInt(60));
                            by.send(new ProducerRecord<>(topic, random.nextInt(PARTITIONS), now + n * 1000, "k" + i, value));
                        }
                        by.flush();
                        if (by == tx && n % 20 == 9) {
                            tx.abortTransaction();
                        } else if (by == tx) {
                            tx.commitTransaction();
                        }
                    }
                    if (n == 40 || n == 80) {
                        now += 600_000; // the next record rolls the segment
                    }
                }
            }
        }
    }
}
