"""Records in one table for each subject, read without Spark."""

import base64
import json
import re
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from struct import pack, unpack

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


MISSING = object()


def differences(typed, shown, *, is_older, path=""):
    """Yield the paths at which a typed value differs from the JSON of dump.

    ``is_older``: an older version wrote the payload. Then each may have fields that the other one lacks.
    """
    if isinstance(typed, dict) and (shown is MISSING or isinstance(shown, dict)):
        others = {} if shown is MISSING else shown
        for name, value in typed.items():
            yield from differences(value, others.get(name, MISSING), is_older=is_older, path=f"{path}.{name}")
        yield from (f"{path}.{name}" for name in others.keys() - typed.keys() if not is_older)
    elif isinstance(typed, list) and isinstance(shown, dict):
        assert len(typed) == len(shown)
        for key, value in typed:
            name = key if isinstance(key, str) else json.dumps(key)
            yield from differences(value, shown.get(name, MISSING), is_older=is_older, path=f"{path}.{name}")
    elif isinstance(typed, list) and isinstance(shown, list):
        assert len(typed) == len(shown)
        for number, (one, other) in enumerate(zip(typed, shown, strict=True)):
            yield from differences(one, other, is_older=is_older, path=f"{path}.{number}")
    elif shown is MISSING:  # a default of Protobuf, or of a newer version
        if not is_older and typed not in (None, 0, "", b"", []):
            yield path
    elif not is_same(typed, shown):
        yield f"{path}: {typed!r}, {shown!r}"


def is_same(typed, shown):
    if typed is None or shown is None or isinstance(typed, bool):
        return typed is shown
    if isinstance(typed, bytes):
        return base64.b64encode(typed).decode() == shown
    if isinstance(typed, float):  # "NaN" and "Infinity" are texts
        found = float(shown)
        return repr(typed) == repr(found) or typed == unpack("f", pack("f", found))[0]  # Protobuf's short float32
    if isinstance(typed, Decimal):
        return format(typed, "f") == str(shown)
    if isinstance(typed, datetime):
        return typed == datetime.fromisoformat(shown)
    if isinstance(typed, date):
        return typed.isoformat() == shown
    if isinstance(typed, int):
        return typed == (number_of(shown) if isinstance(shown, str) else shown)
    return typed == shown or json.loads(typed) == shown  # columns of JSON text


def number_of(text):
    """Return a number shown as text, and a time as the number that Spark has for it."""
    found = re.fullmatch(r"(?:(.*)T)?(\d\d):(\d\d):(\d\d)\.(\d+)Z?", text)
    if found is None:
        return int(text)
    days = (date.fromisoformat(found[1]) - date(1970, 1, 1)).days if found[1] else 0
    seconds = ((days * 24 + int(found[2])) * 60 + int(found[3])) * 60 + int(found[4])
    return seconds * 10 ** len(found[5]) + int(found[5])


@pytest.mark.parametrize("registry", ["confluent", "karapace"])
def test_each_row_has_the_value_that_dump_decodes(registries, registry):
    """Of all topics. A record without a value has the problem of dump, or one of the typed columns alone."""
    logs = registries / registry / "logs"
    done = kdump("dump", "-o", "jsonl", "--decode", "auto", "--fields", "topic,partition,offset,decoded", logs)
    lines = {}
    for line in map(json.loads, done.stdout.splitlines()):
        lines[line["topic"], line["partition"], line["offset"]] = (line.get("decoded") or {}).get("value") or {}
    newest = Counter()
    for value in lines.values():
        if "subject" in value:
            newest[value["subject"]] = max(newest[value["subject"]], value["version"])
    compared, undecoded = Counter(), Counter()
    for subject, batches in tables(logs, topic="*").items():
        for row in [row for batch in batches for row in batch.to_pylist()]:
            shown = lines[row["topic"], row["partition"], row["offset"]]
            if subject is None:
                undecoded[row["problem"], shown.get("problem"), "subject" in shown] += 1
                continue
            if "data" not in shown:
                assert row["value"] is None
                continue
            is_older = shown["version"] != newest[shown["subject"]]
            assert list(differences(row["valueDecoded"], shown["data"], is_older=is_older)) == []
            compared[shown["format"]] += 1
    assert min(compared[form] for form in ("avro", "protobuf", "json")) > 150, compared
    for problem, of_dump, has_subject in undecoded:
        if problem == "no-schema":
            assert (of_dump, has_subject) == (None, False)
        elif problem == "schema-mismatch":  # the newest version lacks the record, or a file has several
            assert of_dump is None
        else:
            assert problem == of_dump
    assert sum(count for (problem, *_), count in undecoded.items() if problem == "schema-mismatch") < 40
