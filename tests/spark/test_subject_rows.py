"""Records in one table for each subject, read without Spark."""

import json
from collections import defaultdict
from dataclasses import replace

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[spark]'")

import kdump as package
from kdump.spark.source import options as words
from kdump.spark.source import planning, reading, schema, subject_rows
from testing.processes import kdump

TOPICS = "evolve,mixed,top-0,proto-0,by-topic-record,json-4,deleted-soft"
PLAIN = ["topic", "partition", "offset"]


def tables(logs, **given):
    """Return the record batches of each table."""
    options = words.parse({"topic": TOPICS, **given, "paths": json.dumps([str(logs)])})
    options = schema.with_schemas(replace(options, by_subject=True))
    found = defaultdict(list)
    for planned in planning.plan(options):
        for split in planned.splits:
            for batch in reading.read(split, options):
                found[subject_rows.subject_of(batch)].append(batch)
    return found


def rows(batches, *columns):
    return [row for batch in batches for row in batch.select([*PLAIN, *columns]).to_pylist()]


@pytest.fixture(scope="module")
def logs(registries):
    return registries / "confluent" / "logs"


@pytest.fixture(scope="module")
def divided(logs):
    return tables(logs)


def test_each_record_is_in_one_table(logs, divided):
    done = kdump(
        "dump", "-o", "jsonl", "--decode", "auto", "--topic", TOPICS, "--fields", "topic,partition,offset", logs
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = [row for batches in divided.values() for row in rows(batches)]
    assert len(lines) > 300

    def where(row):
        return row["topic"], row["partition"], row["offset"]

    assert sorted(map(where, found)) == sorted(map(where, lines))


def test_the_table_of_a_record_is_the_subject_that_dump_decodes(logs, divided):
    done = kdump(
        "dump", "-o", "jsonl", "--decode", "auto", "--topic", TOPICS, "--fields", "topic,partition,offset,decoded", logs
    )
    values = {}
    for line in map(json.loads, done.stdout.splitlines()):
        values[line["topic"], line["partition"], line["offset"]] = (line.get("decoded") or {}).get("value")
    checked = 0
    for subject, batches in divided.items():
        for row in rows(batches, "problem", "why"):
            decoded = values[row["topic"], row["partition"], row["offset"]]
            if subject is None:
                assert row["problem"], row
                if decoded is not None and "problem" in decoded:
                    assert (row["problem"], row["why"]) == (decoded["problem"], f"value: {decoded['why']}")
            elif decoded is None:  # a null, in the table of the topic
                assert subject == f"{row['topic']}-value"
            else:
                name, _, message = subject.partition("#")
                assert decoded["subject"] == name
                assert decoded["name"] == message or not message
                assert decoded.get("problem") in {None, "trailing-bytes"}
                checked += 1
    assert checked > 200


@pytest.mark.parametrize("subject", ["evolve-value", "mixed-value", "top-0-value", "json-4-value"])
def test_the_values_are_those_of_the_subject(logs, divided, subject):
    topic = subject.removesuffix("-value")
    options = words.parse({"paths": json.dumps([str(logs)]), "topic": topic, "schema": subject})
    options = schema.with_schemas(options)
    expected = {}
    for planned in planning.plan(options):
        for split in planned.splits:
            for row in rows(reading.read(split, options), "valueDecoded", "schemaId", "problem", "why"):
                expected[row["offset"], row["partition"]] = row
    found = rows(divided[subject], "valueDecoded", "schemaId", "problem", "why")
    assert found
    for row in found:
        assert repr(row) == repr(expected[row["offset"], row["partition"]])  # a NaN equals none


def test_a_message_that_is_not_the_first_has_its_own_table(divided, logs):
    name = next(name for name in divided if name and name.startswith("proto-0-value#"))
    table = package.open(logs, topic="proto-0", schema=name).to_arrow(["offset", "valueDecoded"]).read_all()
    expected = {row["offset"]: row["valueDecoded"] for row in table.to_pylist()}
    found = rows(divided[name], "valueDecoded")
    assert found
    assert all(row["valueDecoded"].keys() == expected[row["offset"]].keys() for row in found)


def test_typed_columns_follow_the_chosen_columns(logs):
    made = tables(logs, topic="mixed", columns="offset,value")
    assert made["mixed-value"][0].schema.names == ["offset", "value", "valueDecoded", "schemaId", "problem", "why"]
    assert made[None][0].schema.names == ["offset", "value", "schemaId", "problem", "why"]
