"""Records golden outputs with the original tool of any release, from Kafka's jars."""
