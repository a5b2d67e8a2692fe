"""The clone of kafka-dump-log.sh (``DumpLogSegments``), in the words of every release."""
