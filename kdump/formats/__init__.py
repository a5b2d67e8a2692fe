"""The kinds of files that Kafka writes: ``read`` parses their bytes, ``encode`` makes them. Indexes are classes."""
