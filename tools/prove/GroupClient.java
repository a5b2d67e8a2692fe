import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/** Makes groups of every type on a broker: arguments are what to do, its address, and more. */
public class GroupClient {
    private static String address;

    public static void main(String[] arguments) throws Exception {
        address = arguments[1];
        switch (arguments[0]) {
            case "fill" -> fill(arguments);
            case "commit" -> commit();
            case "members" -> members(new File(arguments[2]));
            case "offsets" -> offsets(arguments);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        Runtime.getRuntime().halt(0); // without a close: members stay, open transactions too
    }

    /** Appends records: orders-0:7 means seven. */
    private static void fill(String[] arguments) throws Exception {
        try (KafkaProducer<String, String> producer = producer(null)) {
            for (int n = 2; n < arguments.length; n++) {
                String[] words = arguments[n].split(":");
                TopicPartition to = partition(words[0]);
                for (int number = 0; number < Integer.parseInt(words[1]); number++)
                    producer.send(new ProducerRecord<>(to.topic(), to.partition(), "key-" + number % 5, "value"));
            }
        }
    }

    /** Commits without members: simple groups, deletions, transactions that end in each way. */
    @SuppressWarnings("removal") // of a group that is named by its id alone
    private static void commit() throws Exception {
        TopicPartition first = partition("orders-0"), second = partition("orders-1"), views = partition("views-0");
        try (Admin admin = admin()) {
            for (String group : List.of("simple", "forgotten", "thinned", "with \"quote\", comma"))
                commit(admin, group, Map.of(first, 3L, second, 4L, views, 2L));
            commit(admin, "simple", Map.of(first, 9L));
            commit(admin, "simple", Map.of(first, 5L)); // a rewind
            admin.deleteConsumerGroups(List.of("forgotten")).all().get();
            admin.deleteConsumerGroupOffsets("thinned", Set.of(second, views)).all().get();
        }
        for (String end : List.of("commit", "abort", "open")) {
            KafkaProducer<String, String> producer = producer("txn-" + end);
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("orders", 2, "key", end)).get();
            ConsumerGroupMetadata group = new ConsumerGroupMetadata("txn");
            long offset = end.equals("commit") ? 6 : 8;
            producer.sendOffsetsToTransaction(Map.of(first, new OffsetAndMetadata(offset, end)), group);
            if (end.equals("commit")) producer.commitTransaction();
            if (end.equals("abort")) producer.abortTransaction();
        }
    }

    private static void commit(Admin admin, String group, Map<TopicPartition, Long> offsets) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> commits = new HashMap<>();
        offsets.forEach((partition, offset) -> commits.put(partition, new OffsetAndMetadata(offset, "by hand")));
        admin.alterConsumerGroupOffsets(group, commits).all().get();
    }

    /** Keeps members of each protocol, commits once what they were given, and says so; ends with standard input. */
    private static void members(File folder) throws Exception {
        try (Admin admin = admin()) {
            ConfigResource shares = new ConfigResource(ConfigResource.Type.GROUP, "shares");
            ConfigEntry earliest = new ConfigEntry("share.auto.offset.reset", "earliest");
            ConfigResource streams = new ConfigResource(ConfigResource.Type.GROUP, "streams");
            ConfigEntry standby = new ConfigEntry("streams.num.standby.replicas", "1");
            admin.incrementalAlterConfigs(Map.of(
                shares, List.of(new AlterConfigOp(earliest, AlterConfigOp.OpType.SET)),
                streams, List.of(new AlterConfigOp(standby, AlterConfigOp.OpType.SET)))).all().get();
        }
        List<CountDownLatch> ready = new ArrayList<>();
        for (int n = 0; n < 2; n++) {
            ready.add(member("classic", "classic", n, Map.of("group.instance.id", "static-" + n)));
            ready.add(member("sticky", "classic", n, Map.of(
                "partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor")));
            ready.add(member("modern", "consumer", n, Map.of("group.remote.assignor", "range")));
            ready.add(share(n));
            ready.add(streams(n, folder));
        }
        for (CountDownLatch latch : ready) latch.await();
        System.out.println("ready");
        while (System.in.read() >= 0) { }
    }

    private static CountDownLatch member(String group, String protocol, int n, Map<String, String> more) {
        CountDownLatch ready = new CountDownLatch(1);
        Properties properties = reader(group, n);
        properties.put("group.protocol", protocol);
        properties.putAll(more);
        start(() -> {
            KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties);
            consumer.subscribe(List.of("orders", "views"));
            Map<TopicPartition, OffsetAndMetadata> seen = new HashMap<>();
            long quiet = System.nanoTime();
            while (true) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    TopicPartition from = new TopicPartition(record.topic(), record.partition());
                    seen.put(from, new OffsetAndMetadata(record.offset() + 1 - n, "member " + n));
                    quiet = System.nanoTime();
                }
                if (ready.getCount() > 0 && !seen.isEmpty() && System.nanoTime() - quiet > 8_000_000_000L) {
                    seen.keySet().retainAll(consumer.assignment());
                    consumer.commitSync(seen);
                    ready.countDown();
                }
            }
        });
        return ready;
    }

    private static CountDownLatch share(int n) {
        CountDownLatch ready = new CountDownLatch(1);
        Properties properties = reader("shares", n);
        properties.remove("auto.offset.reset");
        properties.remove("enable.auto.commit");
        start(() -> {
            KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(properties);
            consumer.subscribe(List.of("orders", "views"));
            long began = System.nanoTime(), quiet = began;
            while (true) {
                if (!consumer.poll(Duration.ofMillis(200)).isEmpty()) quiet = System.nanoTime();
                if (System.nanoTime() - quiet > 8_000_000_000L) ready.countDown();
            }
        });
        return ready;
    }

    private static CountDownLatch streams(int n, File folder) {
        CountDownLatch ready = new CountDownLatch(1);
        Properties properties = new Properties();
        properties.putAll(Map.of(
            StreamsConfig.APPLICATION_ID_CONFIG, "streams",
            StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, address,
            StreamsConfig.CLIENT_ID_CONFIG, "streams-client-" + n,
            StreamsConfig.STATE_DIR_CONFIG, new File(folder, "streams-" + n).getPath(),
            StreamsConfig.GROUP_PROTOCOL_CONFIG, "streams",
            StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "500",
            StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName(),
            StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName(),
            "auto.offset.reset", "earliest"));
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("orders").groupByKey().count(Materialized.as(Stores.inMemoryKeyValueStore("counts")));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) ready.countDown();
        });
        streams.start();
        return ready;
    }

    /** Prints group, partition, offset and metadata of the groups that are named. */
    private static void offsets(String[] arguments) throws Exception {
        try (Admin admin = admin()) {
            for (int n = 2; n < arguments.length; n++) {
                String group = arguments[n];
                admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((partition, held) ->
                    System.out.println(group + "\t" + partition + "\t" + held.offset() + "\t" + held.metadata()));
            }
        }
    }

    private static void start(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }

    private static Properties reader(String group, int n) {
        Properties properties = new Properties();
        properties.putAll(Map.of(
            "bootstrap.servers", address,
            "group.id", group,
            "client.id", group + "-client-" + n,
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false",
            "key.deserializer", StringDeserializer.class.getName(),
            "value.deserializer", StringDeserializer.class.getName()));
        return properties;
    }

    private static KafkaProducer<String, String> producer(String transactionalId) {
        Properties properties = new Properties();
        properties.putAll(Map.of(
            "bootstrap.servers", address,
            "key.serializer", StringSerializer.class.getName(),
            "value.serializer", StringSerializer.class.getName()));
        if (transactionalId != null)
            properties.putAll(Map.of("transactional.id", transactionalId, "transaction.timeout.ms", "800000"));
        return new KafkaProducer<>(properties);
    }

    private static Admin admin() {
        return Admin.create(Map.of("bootstrap.servers", address));
    }

    private static TopicPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        return new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
    }
}
