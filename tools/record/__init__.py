"""Recording of golden outputs: the original tool of any release, from Kafka's jars."""
