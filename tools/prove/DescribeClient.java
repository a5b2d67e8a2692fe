import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.config.ConfigResource;

/** What a controller says of topics and configs: DescribeClient ADDRESS create|describe. */
public class DescribeClient {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        try (Admin admin = Admin.create(settings)) {
            if (args[1].equals("create")) {
                create(admin);
            } else {
                describe(admin);
            }
        }
    }

    private static void create(Admin admin) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            Map<String, String> configs = i % 2 == 0 ? Map.of("retention.ms", "" + (i + 1) * 1000000) : Map.of();
            topics.add(new NewTopic("topic-" + i, 1 + i % 4, (short) 1).configs(configs));
        }
        admin.createTopics(topics).all().get();
        admin.deleteTopics(List.of("topic-3", "topic-4")).all().get();
        ConfigResource all = new ConfigResource(ConfigResource.Type.BROKER, "");
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "topic-6");
        admin.incrementalAlterConfigs(Map.of(
            all, List.of(new AlterConfigOp(new ConfigEntry("log.retention.ms", "7200000"), AlterConfigOp.OpType.SET)),
            topic, List.of(new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.SET))
        )).all().get();
    }

    private static void describe(Admin admin) throws Exception {
        TreeSet<String> lines = new TreeSet<>();
        List<ConfigResource> resources = new ArrayList<>(Arrays.asList(new ConfigResource(ConfigResource.Type.BROKER, "")));
        for (TopicDescription topic : admin.describeTopics(admin.listTopics().names().get()).allTopicNames().get().values()) {
            topic.partitions().forEach(each -> lines.add("topic " + topic.name() + " " + topic.topicId() + " "
                + each.partition() + " leader " + each.leader().id() + " " + each.replicas().size() + " " + each.isr().size()));
            resources.add(new ConfigResource(ConfigResource.Type.TOPIC, topic.name()));
        }
        admin.describeConfigs(resources).all().get().forEach((resource, config) -> config.entries().forEach(entry ->
            lines.add("config " + resource.type() + " " + resource.name() + " " + entry.name() + " " + entry.value() + " "
                + entry.source())));
        lines.forEach(System.out::println);
    }
}
