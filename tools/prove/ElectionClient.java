import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What the proof of an unclean election asks of a cluster: ElectionClient ADDRESSES TOPIC create | isr COUNT | elect |
 * produce PREFIX COUNT. Each waits until what it asks for is so.
 */
public class ElectionClient {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        TopicPartition partition = new TopicPartition(args[1], 0);
        if (args[2].equals("produce")) {
            produce(settings, partition, args[3], Integer.parseInt(args[4]));
            return;
        }
        try (Admin admin = Admin.create(settings)) {
            if (args[2].equals("create")) {
                NewTopic topic = new NewTopic(args[1], 1, (short) 3);
                topic.configs(Map.of("min.insync.replicas", "1", "segment.bytes", "1048576", "retention.ms", "-1"));
                admin.createTopics(List.of(topic)).all().get();
            } else if (args[2].equals("elect")) {
                admin.electLeaders(ElectionType.UNCLEAN, Set.of(partition)).all().get();
            }
            int members = args[2].equals("isr") ? Integer.parseInt(args[3]) : 1;
            for (int n = 0; n < 600; n++) {
                if (isReady(admin, partition, members)) {
                    return;
                }
                Thread.sleep(200);
            }
            throw new IllegalStateException("the in-sync replicas do not become " + members);
        }
    }

    static boolean isReady(Admin admin, TopicPartition partition, int members) {
        try {
            var topics = admin.describeTopics(List.of(partition.topic())).allTopicNames().get();
            TopicPartitionInfo info = topics.get(partition.topic()).partitions().get(partition.partition());
            return info.leader() != null && !info.leader().isEmpty() && info.isr().size() >= members;
        } catch (Exception reason) {
            return false; // not known to this broker yet
        }
    }

    static void produce(Properties settings, TopicPartition partition, String prefix, int count) throws Exception {
        settings.put("acks", "1");
        settings.put("enable.idempotence", "false");
        StringSerializer text = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, text, text)) {
            for (int n = 0; n < count; n++) {
                producer.send(new ProducerRecord<>(partition.topic(), partition.partition(), "k" + n, prefix + n)).get();
            }
        }
    }
}
