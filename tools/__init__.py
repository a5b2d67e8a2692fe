"""What the project's own people run: the original tool from Kafka's jars, and the recording of golden outputs."""
