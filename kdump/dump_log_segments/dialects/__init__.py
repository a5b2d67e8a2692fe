"""What each Kafka release's DumpLogSegments prints, as data.

A dialect is the one before it with differences. Nothing outside this package knows a release: a printer asks for the
named field.
"""
