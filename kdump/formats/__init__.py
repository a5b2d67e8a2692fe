"""The kinds of Kafka's files. ``read`` (for .index and .timeindex a class) parses the bytes, ``encode`` makes them."""
