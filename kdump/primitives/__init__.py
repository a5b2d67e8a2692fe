"""Kafka's primitive types, checksums, compression, Java's text, processes and the terminal."""
