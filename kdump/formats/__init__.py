"""One module per kind of file that Kafka writes. ``read`` parses a file's bytes, ``encode`` returns them."""
