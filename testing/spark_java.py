"""The options of Java for short Spark sessions, and the archive of Spark's classes that tests make."""

from importlib.metadata import version

from testing import ROOT

BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Drivers and daemons live for seconds: the work of Java's second compiler would never pay off."""


def archive():
    """Return the path of this Spark's archive. Java refuses one that another Java or Spark has made."""
    return ROOT / "build" / f"spark-{version('pyspark')}.jsa"


def java_options(messages="error"):
    """Return the options of a short-lived Java, with the archive if it exists. ``messages``: its level of log."""
    found = archive()
    return f"{BRIEF_JAVA} -XX:SharedArchiveFile={found} -Xlog:cds={messages}" if found.exists() else BRIEF_JAVA
