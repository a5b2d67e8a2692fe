"""One module per kind of file that Kafka writes. ``read`` parses the bytes of a file; ``encode`` returns bytes."""
