import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Runs transactions against a broker and leaves some open: arguments are its address and words such as commit:orders-0. */
public class TransactionClient {
    public static void main(String[] arguments) throws Exception {
        for (int n = 1; n < arguments.length; n++) {
            String[] words = arguments[n].split(":");
            KafkaProducer<String, String> producer = producer(arguments[0], words[0] + "-" + n);
            producer.initTransactions();
            producer.beginTransaction();
            for (String partition : words[1].split(",")) {
                int dash = partition.lastIndexOf('-');
                int number = Integer.parseInt(partition.substring(dash + 1));
                producer.send(new ProducerRecord<>(partition.substring(0, dash), number, "key", words[0])).get();
            }
            producer.flush();
            switch (words[0]) {
                case "commit" -> producer.commitTransaction();
                case "abort" -> producer.abortTransaction();
                case "open" -> { }
                default -> throw new IllegalArgumentException(words[0]);
            }
        }
        Runtime.getRuntime().halt(0); // without a close, which would abort what is open
    }

    private static KafkaProducer<String, String> producer(String address, String id) {
        Properties properties = new Properties();
        properties.putAll(Map.of(
            "bootstrap.servers", address,
            "transactional.id", id,
            "transaction.timeout.ms", "600000",
            "key.serializer", StringSerializer.class.getName(),
            "value.serializer", StringSerializer.class.getName()));
        return new KafkaProducer<>(properties);
    }
}
