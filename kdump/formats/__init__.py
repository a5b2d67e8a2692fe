"""One module per kind of file or structure that Kafka writes."""
