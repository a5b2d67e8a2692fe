"""One module per kind of file that Kafka writes. ``read`` parses its bytes; ``encode``, if needed, makes them."""
