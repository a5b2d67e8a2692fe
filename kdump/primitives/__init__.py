"""Kafka's primitive types, checksums, compression, encryption, Java's text and hashes, times, processes, terminal."""
