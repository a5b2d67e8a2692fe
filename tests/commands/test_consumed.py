"""Records equal those of a real consumer, field by field, at both isolation levels."""

import base64
import json

import pytest

from testing import GOLDEN
from testing.processes import dump
from tests.helpers import rebuild


def unpacked(text):
    return None if text is None else base64.b64decode(text)


@pytest.mark.parametrize(("isolation", "records"), [("read_uncommitted", 3213), ("read_committed", 3166)])
def test_records_are_those_that_a_consumer_got(consumed, isolation, records):
    found = {}
    options = ["--isolation", isolation, "--type", "data,tombstone"]
    for line in rebuild.lines(dump("dump", consumed / "logs", "-o", "jsonl", *options)):
        found.setdefault((line["topic"], line["partition"]), []).append(line)
    expected, starts = {}, {}
    for text in (consumed / f"{isolation}.jsonl").read_text().splitlines():
        line = json.loads(text)
        end = line.get("end")
        if end is None:
            expected.setdefault((line["topic"], line["partition"]), []).append(line)
        else:
            starts[end["topic"], end["partition"]] = end["beginning"]
    assert len(starts) == 57
    assert sum(map(len, expected.values())) == records
    for partition, start in starts.items():
        ours = [line for line in found.pop(partition, []) if line["offset"] >= start]
        for line, other in zip(ours, expected.get(partition, []), strict=True):
            key, value, headers = rebuild.record(line)
            assert (key, value) == (unpacked(other["key"]), unpacked(other["value"]))
            assert [(name.decode(), content) for name, content in headers] == [
                (name, unpacked(content)) for name, content in other["headers"]
            ]
            assert (line["offset"], line["timestampMs"]) == (other["offset"], other["timestamp"])
            assert (line["timestampType"], line["leaderEpoch"]) == (other["timestampType"], other["leaderEpoch"])
    assert not found


def test_read_committed_ends_at_a_transaction_that_is_open():
    folder = GOLDEN / "brokers" / "4.2.2" / "txn-0"
    everything = rebuild.lines(dump("dump", folder, "-o", "jsonl"))
    first = min(line["offset"] for line in everything if line["transactionState"] == "open")
    committed = rebuild.lines(dump("dump", folder, "-o", "jsonl", "--isolation", "read_committed", "-q"))
    assert [line["offset"] for line in committed] == [
        line["offset"]
        for line in everything
        if line["offset"] < first and not line["isControl"] and line["transactionState"] in {"none", "committed"}
    ]
    assert {line["transactionState"] for line in everything} == {"committed", "aborted", "open"}
