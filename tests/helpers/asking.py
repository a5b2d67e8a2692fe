"""Running answering commands: their lines on one partition folder, and what they print."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from testing import forge
from testing.processes import kdump
from tests.helpers.group_topics import commit_key, commit_value
from tests.helpers.metadata_records import metadata_value

if TYPE_CHECKING:
    import pytest

LINES: Final = {
    "offsets": ["offsets", "{folder}"],
    "offsets --time": ["offsets", "{folder}", "--time", "0", "-o", "jsonl"],
    "transactions": ["transactions", "{folder}", "--all"],
    "producers": ["producers", "{folder}", "--gaps"],
    "explain": ["explain", "t-0@0..19", "--in", "{folder}"],
    "diff": ["diff", "{folder}", "{folder}"],
    "groups": ["groups", "{folder}"],
    "groups --history": ["groups", "{folder}", "--history"],
    "schemas": ["schemas", "{folder}"],
    "connect": ["connect", "{folder}", "-q"],
    "metadata": ["metadata", "{folder}"],
    "metadata --events": ["metadata", "{folder}", "--events"],
    "du": ["du", "{folder}"],
    "ls": ["ls", "{folder}", "--segments"],
    "stats": ["stats", "{folder}"],
    "stats --records": ["stats", "{folder}", "--records", "--what-if", "zstd", "--jobs", "2"],
    "retention": ["retention", "{folder}", "--at", "2026-11-22"],
    "compaction": ["compaction", "{folder}", "--config", "*:cleanup.policy=compact", "--records"],
}
"""Command lines of the answering commands; ``{folder}`` is the folder of :func:`subject`."""
NEW_CLUSTER: Final = ("--cluster-id", "kdumpTestsAAAAAAAAAAAA", "--release", "4.3.1")
"""Options that rebuild-cluster needs for a single partition folder."""
_INTERNAL: Final = {
    "schemas": (
        "_schemas-0",
        b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
        b'{"subject":"s","version":1,"id":1,"schema":"\\"%s\\""}' % (b"n" * 5000),
    ),
    "connect": ("connect-configs-0", b"connector-a", b'{"properties":{"name":"%s"}}' % (b"n" * 5000)),
    "groups": ("__consumer_offsets-0", commit_key("g"), commit_value(1, metadata="m" * 5000)),
    "metadata": ("__cluster_metadata-0", None, metadata_value("ConfigRecord", name="n", value="v" * 5000)),
}


def subject(request: pytest.FixtureRequest) -> tuple[str, bytes]:
    """Return the input of the command line named ``name`` in a test: a partition folder with a record of 5 KB."""
    call = getattr(request.node, "callspec", None)
    name = call.params.get("name", "") if call is not None else ""
    folder, key, value = _INTERNAL.get(name.split(" ")[0], ("t-0", b"k", bytes(5000)))
    return folder, forge.record(key, value)


def ask(*args: object, status: int = 0) -> tuple[list[dict[str, Any]], str]:
    """Run ``kdump ARGS -o jsonl``; return its lines and its standard error."""
    done = kdump(*args, "-o", "jsonl")
    assert done.returncode == status, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()
