"""Spark's executors as workers: commands print the same with and without --master."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")

from kdump.cli import main
from kdump.errors import KdumpError
from kdump.spark import failures, session
from testing import GOLDEN
from testing.processes import kdump
from tests.helpers.segments import data

BROKERS = GOLDEN / "brokers"
AT = ("--at", "2026-11-22")


@pytest.fixture
def run(spark, capfd, monkeypatch):
    """Run kdump in this process; return its exit status and output."""

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["kdump", *map(str, args)])
        return main(), *capfd.readouterr()

    return run


@pytest.mark.parametrize(
    "line",
    [
        ("check", ".", *AT),
        ("check", "4.2.2", "2.8.2", "-o", "jsonl", "--headers-only", *AT),
        ("verify-index", ".", "-o", "jsonl"),
        ("stats", "4.2.2", "-o", "jsonl", "--records", "--hours"),
        ("transactions", "4.2.2", "--all", *AT),
        ("producers", "4.2.2", "--gaps"),
        ("du", ".", "-o", "csv", *AT),
        ("retention", "4.2.2", *AT),
        ("compaction", "4.2.2", "--records", *AT),
        ("offsets", "4.2.2", "--time", "2023-11-14"),
        ("groups", "4.2.2", *AT),
        ("diff", "4.2.2", "2.8.2"),
        ("report", "4.2.2", "--json", *AT),
    ],
    ids=lambda line: line[0],
)
def test_it_says_the_same_with_executors(run, monkeypatch, line):
    monkeypatch.chdir(BROKERS)  # relative paths: the executors began elsewhere
    monkeypatch.setattr(session, "FAN", 2)
    alone = run(*line)
    assert run(*line, "--master", "local[2]") == alone
    assert alone[1]


def test_what_cannot_be_read_is_said_and_the_rest_is_read(run, tmp_path):
    for number in range(3):
        folder = tmp_path / f"orders-{number}"
        folder.mkdir()
        (folder / f"{0:020}.log").write_bytes(data(0))
    (tmp_path / "orders-1" / f"{10:020}.log").symlink_to(tmp_path / "gone")
    for command in ("stats", "check", "verify-index", "report"):
        alone = run(command, tmp_path, *AT[: 2 * (command == "report")])
        assert run(command, tmp_path, *AT[: 2 * (command == "report")], "--master", "local[2]") == alone
        assert alone[0] == 1
        assert f"orders-1/{10:020}.log: No such file" in alone[1] + alone[2]


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_results_come_in_order_and_are_merged_in_order(spark, monkeypatch, count):
    monkeypatch.setattr(session, "FAN", 2)
    monkeypatch.setattr(session, "TASKS", 20)
    reported = []
    them = session.SparkWorkers(spark, lambda *done: reported.append(done))
    assert list(them.results(str, range(count))) == [str(number) for number in range(count)]
    merged = list(them.results(lambda number: [number], range(count), lambda one, two: one + two))
    assert [number for row in merged for number in row] == list(range(count))
    assert len(merged) <= 2
    assert reported[0] == ("reading", 0, 0)


def test_a_driver_of_its_own_says_nothing_but_the_answer():
    line = ("stats", BROKERS / "4.2.2", "-o", "jsonl")
    alone, spark = kdump(*line), kdump(*line, "--master", "local[1]", "--conf", "spark.driver.memory=512m")
    assert (spark.returncode, spark.stdout, spark.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_replicas_of_one_partition_or_none_are_compared_without_spark(tmp_path):
    for broker, partition in ((1, 0), (2, 0), (3, 1)):
        folder = tmp_path / str(broker) / f"orders-{partition}"
        folder.mkdir(parents=True)
        (folder / f"{0:020}.log").write_bytes(data(0))
    for brokers, expected in (((1, 2), b"1 pair of replicas: 1 same"), ((1, 3), b"no replicas were compared")):
        line = ("diff", *(tmp_path / str(broker) for broker in brokers))
        done = kdump(*line, "--master", "local[1]", "--conf", "spark.driver.memory=0")  # no JVM starts so
        assert (done.returncode, done.stdout, done.stderr) == (0, (alone := kdump(*line)).stdout, alone.stderr)
        assert done.stdout.startswith(expected)


def test_it_works_where_the_current_folder_is_gone(spark, run, tmp_path, monkeypatch):
    """The current folder of the driver and of the executors, which are this process."""
    alone = run("stats", BROKERS / "4.2.2", "-o", "jsonl")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert run("stats", BROKERS / "4.2.2", "-o", "jsonl", "--master", "local[2]") == alone
    assert session._in_folder(str, BROKERS, 7) == "7"
    assert Path.cwd() == BROKERS  # there is no way back


def test_records_are_compared_here_which_is_said(run, monkeypatch):
    monkeypatch.chdir(BROKERS)
    alone = run("diff", "4.2.2", "2.8.2", "--records")
    status, out, said = run("diff", "4.2.2", "2.8.2", "--records", "--master", "local[2]")
    assert (status, out) == alone[:2]
    assert set(said.splitlines()) - set(alone[2].splitlines()) == {
        "note: --records: kdump reads the partitions itself, without Spark on local[2]"
    }


def test_what_spark_says_is_shown_when_it_fails_later(capfd):
    output = session.SparkOutput()
    with output.redirected():
        process = subprocess.Popen(["sh", "-c", "echo began; read line; echo failing >&2"], stdin=subprocess.PIPE)
        while not output._size:
            time.sleep(0.01)
    process.communicate(b"\n")
    with pytest.raises(KdumpError), output:
        raise KdumpError("it is kdump's own")
    assert capfd.readouterr() == ("", "")
    for shown in ("failing\n", ""):
        with pytest.raises(KdumpError), output:
            raise failures.SparkFailedError("Spark failed")
        assert capfd.readouterr() == ("", shown)


def test_what_programs_print_is_shown_only_where_starting_them_fails(capfd):
    def start(error=None):
        with session.SparkOutput().redirected():
            os.write(1, b"to output\n")
            os.write(2, b"to errors\n")
            if error is not None:
                raise error

    start()
    with pytest.raises(KeyboardInterrupt):
        start(KeyboardInterrupt())
    assert capfd.readouterr() == ("", "")
    with pytest.raises(ValueError, match="it failed"):
        start(ValueError("it failed"))
    assert capfd.readouterr() == ("", "to output\nto errors\n")
