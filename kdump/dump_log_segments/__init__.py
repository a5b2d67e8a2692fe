"""The clone of kafka-dump-log.sh (``DumpLogSegments``), with the output of every release from 0.8.0 on."""
