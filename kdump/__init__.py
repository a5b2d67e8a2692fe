"""kdump: read Apache Kafka's files on disk, with no broker and no JVM."""

__version__ = "0.1.0"
