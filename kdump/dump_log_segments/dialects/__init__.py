"""The output of each Kafka release's DumpLogSegments, as data.

A dialect is the previous one with changes. Only this package depends on releases: a printer reads named fields.
"""
