"""One module per kind of file that Kafka writes: ``read`` parses bytes, ``encode`` makes them. None opens a file."""
