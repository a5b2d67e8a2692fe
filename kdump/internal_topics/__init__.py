"""What Kafka itself writes inside records: one schema notation, one interpreter, and :func:`decode`."""
