"""Kafka's primitive types, checksums, compression, encryption, Java's text and hashes, processes and the terminal."""
