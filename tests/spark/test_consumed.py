"""Rows equal the records of a real consumer of a real broker, at both isolation levels."""

import base64
import json
from collections import defaultdict

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[spark]'")

from kdump.spark.source import options as words
from kdump.spark.source import planning, reading

DELETED_BELOW = {"delrec": 47}
"""DeleteRecords moved the log start offset: no segment shows it, so these records are still in the files."""


def decoded(text):
    return None if text is None else base64.b64decode(text)


@pytest.mark.parametrize("isolation", [words.READ_COMMITTED, words.READ_UNCOMMITTED])
def test_rows_are_what_a_consumer_got(consumed, isolation):
    expected, found = defaultdict(list), defaultdict(list)
    (lines,) = consumed.rglob(f"{isolation}.jsonl")
    for record in map(json.loads, lines.read_text().splitlines()):
        if "end" not in record:
            kind = {"CreateTime": 0, "LogAppendTime": 1}[record["timestampType"]]
            headers = [(key, decoded(value)) for key, value in record["headers"]]
            payload = (decoded(record["key"]), decoded(record["value"]), headers)
            facts = (record["offset"], record["timestamp"], kind, record["leaderEpoch"], *payload)
            expected[record["topic"], record["partition"]].append(facts)
    options = words.SourceOptions(paths=(str(lines.parent / "logs"),), isolation=isolation, split_bytes=2000)
    splits = [split for planned in planning.plan(options) for split in planned.splits]
    rows = [row for split in splits for batch in reading.read(split, options) for row in batch.to_pylist()]
    for row in rows:
        if row["offset"] >= DELETED_BELOW.get(row["topic"], 0):
            headers = [(item["key"], item["value"]) for item in row["headers"]]
            facts = (row["offset"], row["timestampMs"], row["timestampType"], row["leaderEpoch"])
            found[row["topic"], row["partition"]].append((*facts, row["key"], row["value"], headers))
    assert sum(map(len, expected.values())) > 3000
    assert found == expected
