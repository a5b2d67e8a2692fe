"""Answers in Python equal those of the commands, and the examples of their docstrings are right."""

import doctest
import json

import pytest

import kdump
from kdump import api, questions
from kdump.answers.transactions import PartitionTransaction
from kdump.errors import UnreadableError, UsageError
from kdump.queries import lazy_frame, result
from testing import GOLDEN, ROOT
from tests.helpers import log_dirs
from tools.docs import shown

BROKER = "golden/brokers/4.2.2"
AT = "2026-11-22"
LINES = {
    "offsets": ("--topic c-* --time 2023-11-14T22:30", {"topic": "c-*", "times": ["2023-11-14T22:30"]}),
    "transactions": ("--all", {"ended_too": True}),
    "producers": ("--gaps --partition 0", {"gaps": True, "partition": 0}),
    "groups": ("--group e* --history", {"group": "e*", "history": True}),
    "du": ("--by segment", {"by": "segment"}),
    "stats": ("--records --hours --topic binary", {"records": True, "hours": True, "topic": "binary"}),
    "retention": ("--config *:retention.ms=1", {"config": ["*:retention.ms=1"]}),
    "compaction": ("--records --topic compact", {"records": True, "topic": "compact"}),
    "groups --top": ("--top commits", {"top": "commits"}),
    "stats --what-if": ("--what-if lz4,zstd:3 --topic c-*", {"what_if": ["lz4", "zstd:3"], "topic": "c-*"}),
    "compaction --limits": ("--map-entries 2 --max-keys 1", {"map_entries": 2, "max_keys": 1}),
}
FUNCTIONS = {"du": "disk_usage", "stats": "statistics"}
ELSE = {
    f"metadata {BROKER} --topics --topic c-*": lambda: kdump.metadata(BROKER, topic="c-*"),
    f"metadata {BROKER} --topics --offset 100": lambda: kdump.metadata(BROKER, offset=100),
    f"metadata {BROKER} --events --topic txn": lambda: kdump.events(BROKER, topic="txn"),
    f"metadata {BROKER} --events --at 2026-11-21T09:50": lambda: kdump.events(BROKER, at="2026-11-21T09:50"),
    f"explain txn-0@0..140 --in {BROKER} --at {AT}": lambda: kdump.explain(BROKER, "txn", 0, (0, 140), at=AT),
    f"explain gone-0@0 --in {BROKER} --at {AT}": lambda: kdump.explain(BROKER, "gone", 0, 0, at=AT),
    f"explain onee-0@0 --in {BROKER} --at {AT}": lambda: kdump.explain(BROKER, "onee", 0, 0, at=AT),
    f"diff {BROKER} {BROKER}-live --topic c-*": lambda: kdump.diff(BROKER, f"{BROKER}-live", topic="c-*"),
    f"diff {BROKER} {BROKER}-live --records": lambda: kdump.diff([BROKER, [f"{BROKER}-live"]], records=True),
}


@pytest.mark.parametrize("name", LINES)
def test_an_answer_is_that_of_the_command(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    options, given = LINES[name]
    name = name.split(" ")[0]
    printed = shown.run(f"kdump {name} {BROKER} -q -o jsonl --at {AT} {options}")
    answer = getattr(kdump, FUNCTIONS.get(name, name))(BROKER, at=AT, **given)
    lines = [json.loads(line) for line in printed.output.splitlines()]
    assert json.loads(json.dumps(answer.rows())) == lines
    assert len(answer) == len(lines) > 0


@pytest.mark.parametrize("line", ELSE)
def test_answers_on_metadata_offsets_and_replicas_are_those_of_the_commands(line, monkeypatch):
    monkeypatch.chdir(ROOT)
    printed = shown.run(f"kdump {line} -q -o jsonl")
    lines = [json.loads(text) for text in printed.output.splitlines()]
    assert json.loads(json.dumps(ELSE[line]().rows())) == lines
    assert lines


def test_partitions_of_one_broker_alone_are_noted():
    answer = kdump.diff(BROKER, "golden/brokers/2.8.2")
    assert len(answer) > 0
    assert [note for note in answer.notes if note.startswith("not compared, because only one broker has a copy: ")]


def test_several_paths_are_given_one_by_one_or_as_a_list():
    paths = [f"{BROKER}/one-0", f"{BROKER}/txn-0"]
    assert kdump.offsets(*paths, at=AT) == kdump.offsets(paths, at=AT)
    assert {line.topic for line in kdump.offsets(*paths, at=AT)} == {"one", "txn"}


def test_what_cannot_be_asked_is_refused(tmp_path):
    for one in (BROKER, [BROKER], [[BROKER]]):
        with pytest.raises(UsageError, match="one for each broker"):
            kdump.diff(one)
    with pytest.raises(UsageError, match="no path was given"):
        kdump.offsets()
    with pytest.raises(UsageError, match="offsets 5 to 4: expected"):
        kdump.explain(BROKER, "txn", 0, (5, 4))
    with pytest.raises(UnreadableError, match="metadata log"):
        kdump.events(tmp_path)


@pytest.mark.parametrize("module", [api, questions, lazy_frame, result], ids=lambda module: module.__name__)
def test_docstrings_show_what_is_given(module, monkeypatch):
    monkeypatch.chdir(ROOT)
    found = doctest.testmod(module)
    assert found.failed == 0
    assert found.attempted


def test_an_answer_says_what_it_rests_on(tmp_path):
    log_dirs.write(tmp_path, "t-0", {0: (GOLDEN / "damaged" / "none-hdr-crc" / f"{0:020}.log").read_bytes()})
    answer = kdump.statistics(tmp_path)
    assert "checksum" in answer.damage[0]
    assert [line.topic for line in answer] == [line.topic for line in answer.lines]
    with pytest.raises(UnreadableError):
        kdump.offsets(tmp_path / "gone")


def test_lines_are_taken_by_class():
    answer = kdump.transactions(GOLDEN / "brokers" / "4.2.2", topic=["txn"], at=1_795_000_000_000)
    assert {type(line) for line in answer.of(PartitionTransaction)} == {PartitionTransaction}
    assert 0 < len(answer.of(PartitionTransaction)) < len(answer)
    with pytest.raises(AttributeError):
        answer.lines[0].topic = "other"
    with pytest.raises(UsageError):
        kdump.offsets(GOLDEN, times=["nine o'clock"])
