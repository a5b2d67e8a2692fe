import java.time.Duration;
import java.util.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.*;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Changelogs of Kafka Streams, for the proof of windowed keys (tools/prove/windowed_keys.py): a topology of every kind of
 * store runs in Kafka's TopologyTestDriver on seeded records.
 *   ChangelogClient SEED RECORDS
 * A line for each record of a changelog: changelog TOPIC TIMESTAMP KEY (hex, - for null).
 * A line for each entry of a store: store TOPIC KIND KEY START END (KIND is time, session or plain; KEY is hex).
 * A line for each row that may wait for its partner: row TOPIC KEY TIME SIDE.
 */
public class ChangelogClient {
    static final Serde<String> TEXT = Serdes.String();
    static final long START = 1_790_000_000_000L;

    public static void main(String[] args) {
        Random random = new Random(Long.parseLong(args[0]));
        int records = Integer.parseInt(args[1]);
        Properties settings = new Properties();
        settings.put("application.id", "app");
        settings.put("bootstrap.servers", "unused:1");
        settings.put("state.dir", args[2]);
        settings.put("statestore.cache.max.bytes", "0");
        try (TopologyTestDriver driver = new TopologyTestDriver(topology(), settings)) {
            Set<String> rows = new TreeSet<>();
            TestInputTopic<String, String> left = driver.createInputTopic("left", TEXT.serializer(), TEXT.serializer());
            TestInputTopic<String, String> right = driver.createInputTopic("right", TEXT.serializer(), TEXT.serializer());
            TestInputTopic<Integer, String> numbers =
                driver.createInputTopic("numbers", new IntegerSerializer(), TEXT.serializer());
            TestInputTopic<Long, String> longs = driver.createInputTopic("longs", new LongSerializer(), TEXT.serializer());
            long now = START;
            for (int number = 0; number < records; number++) {
                now += random.nextInt(20_000);
                long time = now - random.nextInt(30_000);
                String key = "customer-" + random.nextInt(20) + (random.nextInt(5) == 0 ? "\u00fc" : "");
                boolean isLeft = random.nextBoolean();
                (isLeft ? left : right).pipeInput(key, "value " + number, time);
                rows.add(hex(TEXT.serializer().serialize("", key)) + " " + time + " " + (isLeft ? "left" : "right"));
                numbers.pipeInput(random.nextInt(3) == 0 ? random.nextInt() : random.nextInt(1000), "value", time);
                longs.pipeInput(random.nextInt(3) == 0 ? random.nextLong() : (long) random.nextInt(1000), "value", time);
            }
            for (String topic : driver.producedTopicNames()) {
                if (!topic.endsWith("-changelog")) continue;
                TestOutputTopic<byte[], byte[]> out =
                    driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                for (TestRecord<byte[], byte[]> record : out.readRecordsToList())
                    System.out.println("changelog " + topic + " " + record.timestamp() + " " + hex(record.key()));
            }
            for (String name : List.of("tumbling", "hopping", "sliding", "numbers", "longs")) {
                WindowStore<Object, ?> store = driver.getWindowStore(name);
                Serializer<Object> inner = serializer(name);
                try (KeyValueIterator<Windowed<Object>, ?> all = store.all()) {
                    while (all.hasNext()) entry(name, "time", all.next().key, inner);
                }
            }
            SessionStore<String, ?> sessions = driver.getSessionStore("sessions");
            for (String key : keys())
                try (KeyValueIterator<Windowed<String>, ?> all = sessions.fetch(key)) {
                    while (all.hasNext()) entry("sessions", "session", all.next().key, TEXT.serializer());
                }
            KeyValueStore<String, ?> plain = driver.getKeyValueStore("plain");
            try (KeyValueIterator<String, ?> all = plain.all()) {
                while (all.hasNext())
                    System.out.println("store app-plain-changelog plain " + hex(TEXT.serializer().serialize("", all.next().key)) + " 0 0");
            }
            for (String row : rows) System.out.println("row " + row);
        }
    }

    @SuppressWarnings("unchecked")
    static Serializer<Object> serializer(String store) {
        Serializer<?> made = store.equals("numbers") ? new IntegerSerializer()
            : store.equals("longs") ? new LongSerializer() : TEXT.serializer();
        return (Serializer<Object>) made;
    }

    static <K> void entry(String store, String kind, Windowed<K> key, Serializer<K> inner) {
        System.out.println("store app-" + store + "-changelog " + kind + " " + hex(inner.serialize("", key.key())) + " "
            + key.window().start() + " " + key.window().end());
    }

    static List<String> keys() {
        List<String> keys = new ArrayList<>();
        for (int number = 0; number < 20; number++) {
            keys.add("customer-" + number);
            keys.add("customer-" + number + "\u00fc");
        }
        return keys;
    }

    static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<String, String> texts = Consumed.with(TEXT, TEXT);
        KStream<String, String> left = builder.stream("left", texts), right = builder.stream("right", texts);
        KGroupedStream<String, String> grouped = left.groupByKey(Grouped.with(TEXT, TEXT));
        Duration minute = Duration.ofMinutes(1), hour = Duration.ofHours(1);
        grouped.windowedBy(TimeWindows.ofSizeAndGrace(minute, hour)).count(Materialized.as("tumbling"));
        grouped.windowedBy(TimeWindows.ofSizeAndGrace(minute, hour).advanceBy(Duration.ofSeconds(20)))
            .count(Materialized.as("hopping"));
        grouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(minute, hour)).count(Materialized.as("sliding"));
        grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(10), hour))
            .count(Materialized.as("sessions"));
        grouped.count(Materialized.as("plain"));
        grouped.windowedBy(TimeWindows.ofSizeAndGrace(minute, minute)).count(Materialized.as("before"))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("suppressed"))
            .toStream().foreach((key, value) -> { });
        grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(10), minute)).count(Materialized.as("before-sessions"))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("suppressed-sessions"))
            .toStream().foreach((key, value) -> { });
        StreamJoined<String, String, String> joined = StreamJoined.with(TEXT, TEXT, TEXT);
        left.join(right, (one, other) -> one + other, JoinWindows.ofTimeDifferenceAndGrace(minute, hour), joined.withStoreName("inner"))
            .foreach((key, value) -> { });
        left.outerJoin(right, (one, other) -> one + other, JoinWindows.ofTimeDifferenceAndGrace(minute, minute), joined.withStoreName("outer"))
            .foreach((key, value) -> { });
        builder.stream("numbers", Consumed.with(Serdes.Integer(), TEXT)).groupByKey(Grouped.with(Serdes.Integer(), TEXT))
            .windowedBy(TimeWindows.ofSizeAndGrace(minute, hour)).count(Materialized.as("numbers"));
        builder.stream("longs", Consumed.with(Serdes.Long(), TEXT)).groupByKey(Grouped.with(Serdes.Long(), TEXT))
            .windowedBy(TimeWindows.ofSizeAndGrace(minute, hour)).count(Materialized.as("longs"));
        return builder.build();
    }

    static String hex(byte[] bytes) {
        if (bytes == null) return "-";
        StringBuilder made = new StringBuilder();
        for (byte each : bytes) made.append(String.format("%02x", each));
        return made.toString();
    }
}
