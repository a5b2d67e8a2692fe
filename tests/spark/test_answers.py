"""The outputs of answers: the same rows as `kdump COMMAND -o jsonl`."""

import json
import random
import re
import shutil

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")

from pyspark.errors import PySparkException

from kdump.errors import UsageError
from kdump.primitives.messages import LEVEL
from kdump.spark.source import answers
from kdump.spark.source import options as words
from testing import GOLDEN
from testing.processes import kdump
from tools.prove.answers_on_spark import make_logs

BROKERS = GOLDEN / "brokers"
AT = "2026-11-22"
REPORTED = {answers.UNREADABLE, answers.DAMAGE, answers.DERIVED}
NOT_USED = "; kdump does not use this file (see kdump check)"
CASES = {
    "offsets": [({}, ()), ({"time": "2023-11-14,1700000220000"}, ("--time", "2023-11-14", "--time", "1700000220000"))],
    "transactions": [
        ({"topic": "txn"}, ("--topic", "txn")),
        ({"maxTimeout": "1"}, ("--max-timeout", "1ms")),
        ({"all": "true"}, ("--all",)),
    ],
    "producers": [({"gaps": "true"}, ("--gaps",))],
    "groups": [
        ({"history": "true", "stable": "true"}, ("--history", "--stable")),
        ({"top": "commits"}, ("--top", "commits")),
        ({"group": "eos,c*", "partition": "0"}, ("--group", "eos", "--group", "c*", "--partition", "0")),
    ],
    "ls": [({}, ()), ({"segments": "true"}, ("--segments",))],
    "du": [({"by": by}, ("--by", by)) for by in ("partition", "folder", "topic", "segment")],
    "stats": [
        ({}, ()),
        ({"records": "true", "hours": "true", "top": "2"}, ("--records", "--hours", "--top", "2")),
        ({"whatIf": "lz4,zstd:3", "topic": "c-*"}, ("--what-if", "lz4,zstd:3", "--topic", "c-*")),
    ],
    "retention": [
        (
            {"config": "*:retention.ms=3600000,one:retention.bytes=5"},
            ("--config", "*:retention.ms=3600000", "--config", "one:retention.bytes=5"),
        )
    ],
    "compaction": [
        ({"records": "true", "top": "3"}, ("--records", "--top", "3")),
        ({"mapEntries": "2", "maxKeys": "1"}, ("--map-entries", "2", "--max-keys", "1")),
    ],
}


def rows(spark, output, *paths, **options):
    """Return the rows as JSON objects without nulls, sorted, and the other reports by their kind."""
    frame = spark.read.format("kdump").option("paths", json.dumps([str(path) for path in paths]))
    frame = frame.option("output", output).option("at", AT).options(**options).load()
    found = [row.asDict(recursive=True) for row in frame.collect()]
    reported = [(row["kind"], row["text"]) for row in found if row["kind"] in REPORTED]
    return [row for row in found if row["kind"] not in REPORTED], reported


def lines(output, *paths, options=(), status=(0,)):
    """Return the command's output in the form of rows."""
    done = kdump(output, "-o", "jsonl", "--at", AT, "-q", *options, *paths)
    assert done.returncode in status, done.stderr.decode()
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for line in found:
        if output == "stats" and line["kind"] == "producer":
            line["producerRecordsPerBatch"] = line.pop("recordsPerBatch")
    said = [re.sub(LEVEL, "", line).removesuffix(NOT_USED) for line in done.stderr.decode().splitlines()]
    return found, sorted(said)


def in_order(found):
    """Return lines as sorted texts without null fields."""
    kept = [{name: value for name, value in one.items() if value is not None} for one in found]
    return sorted(json.dumps(one, sort_keys=True) for one in kept)


@pytest.mark.parametrize(
    ("output", "options", "flags"), [(output, *case) for output, cases in CASES.items() for case in cases]
)
@pytest.mark.parametrize(("broker", "tasks"), [("4.2.2", "12"), ("2.8.2", "40"), (".", "12")])
def test_rows_are_the_lines_of_the_command(spark, broker, tasks, output, options, flags):
    """2.8.2 has fewer partitions than tasks, the others have several in a task."""
    expected, _ = lines(output, BROKERS / broker, options=flags)
    found, reported = rows(spark, output, BROKERS / broker, minPartitions=tasks, **options)
    assert in_order(found) == in_order(expected)
    assert reported == []


@pytest.mark.parametrize("output", words.ANSWERS)
def test_two_thousand_partitions_of_two_brokers_some_damaged(spark, two_thousand, output):
    """Reports of damage are rows, each once, in any number of tasks."""
    expected, said = lines(output, *two_thousand, status=(0, 3, 4))
    found, reported = rows(spark, output, *two_thousand, minPartitions="40")
    assert in_order(found) == in_order(expected)
    assert sorted(text for _, text in reported) == said
    assert said or output in ("du", "groups", "retention", "compaction")


def test_what_is_damaged_are_rows(spark, tmp_path):
    shutil.copytree(BROKERS / "4.2.2" / "txn-0", tmp_path / "txn-0")
    damaged = next((tmp_path / "txn-0").glob("*.log"))
    damaged.write_bytes(damaged.read_bytes()[:100] + b"?" * 50 + damaged.read_bytes()[150:])
    (tmp_path / "replication-offset-checkpoint").write_text("0\n2\n")
    for output in ("stats", "producers", "offsets"):
        expected, said = lines(output, tmp_path, status=(0, 3, 4))
        found, reported = rows(spark, output, tmp_path, minPartitions="40")
        assert in_order(found) == in_order(expected)
        kinds = {kind: [text for of, text in reported if of == kind] for kind in REPORTED}
        assert sorted(text for _, text in reported) == said
        assert not kinds["derived"]
        # the checkpoint, which a broker refuses; producers begin at a snapshot, after the damaged batch
        assert len(kinds["damage"]) == 1 + (output != "producers")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"output": "stats", "gaps": "true"}, "option gaps: only for output=producers"),
        ({"at": AT}, "option at: only for output=findings or offsets or"),
        ({"output": "groups", "startingOffset": "1"}, "option startingOffset: output=groups always covers"),
        ({"output": "du", "by": "size"}, "option by: expected topic, partition, folder, segment, found 'size'"),
        ({"output": "offsets", "subscribe": "t"}, "option subscribe: output=offsets always covers"),
        ({"output": "retention", "config": "orders"}, "orders"),
        ({"output": "statz"}, "option output: expected records, batches"),
    ],
)
def test_options_that_say_nothing_are_refused(options, said):
    with pytest.raises(UsageError, match=said):
        words.parse({"path": str(BROKERS), **options})


def test_paths_that_are_not_there_end_it(spark, tmp_path):
    with pytest.raises(PySparkException, match="No such file"):
        rows(spark, "stats", tmp_path / "nowhere")


@pytest.fixture(scope="module")
def two_thousand(tmp_path_factory):
    place = tmp_path_factory.mktemp("brokers")
    make_logs(place, 2000, random.Random(26))
    return place / "broker-1", place / "broker-2"
