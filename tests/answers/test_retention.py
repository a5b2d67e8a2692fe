"""What retention deletes: the rules of a broker, on small files."""

import json
import os
import re

import pytest

from kdump.answers.topic_configs import given_config
from kdump.errors import UsageError
from kdump.formats import time_index
from kdump.formats.time_index import TimestampOffset
from testing import tiered
from testing.processes import kdump
from tests.helpers.segments import data

NOW = 1_700_000_000_000
HOUR = 3_600_000


def segment(folder, base, *, age=0, index=True, size=100, written=NOW):
    """A segment of two records whose largest timestamp is ``age`` ms before NOW."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{base:020}"
    log = stem.with_suffix(".log")
    log.write_bytes(data(base, 2, timestamp=NOW - age, size=size))
    stem.with_suffix(".index").write_bytes(b"")
    entries = [TimestampOffset(NOW - age, base + 1)] if index else []
    stem.with_suffix(".timeindex").write_bytes(time_index.encode(entries, base))
    os.utime(log, ns=(0, written * 1_000_000))
    return log.stat().st_size


def checkpoint(folder, name, offset):
    (folder / f"{name}-offset-checkpoint").write_text(f"0\n1\nt 0 {offset}\n")


def answer(folder, *args, config=(), at=NOW, status=0):
    configs = [word for one in config for word in ("--config", f"t:{one}")]
    done = kdump("retention", folder, "--at", at, "-o", "jsonl", *configs, *args)
    assert done.returncode == status, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["kind"] == "segment"], [line for line in lines if line["kind"] == "topic"]


def reasons(folder, *args, **options):
    return [(line["baseOffset"], line["reason"]) for line in answer(folder, *args, **options)[0]]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / ".kafka_cleanshutdown").write_text("{}")
    checkpoint(tmp_path, "replication", 8)
    for base, age in ((0, 4 * HOUR), (2, 3 * HOUR), (4, 2 * HOUR), (6, 0)):
        segment(tmp_path / "t-0", base, age=age)
    return tmp_path


def test_time_is_strict_and_says_when_each_is_due(folder):
    two_hours = f"retention.ms={2 * HOUR}"
    assert reasons(folder, config=[two_hours]) == [(0, "time"), (2, "time"), (4, None), (6, None)]
    assert reasons(folder, config=[two_hours], at=NOW + 1) == [(0, "time"), (2, "time"), (4, "time"), (6, None)]
    lines, _ = answer(folder, config=[two_hours])
    assert [line["deletableAtMs"] - NOW for line in lines] == [-2 * HOUR + 1, -HOUR + 1, 1, 2 * HOUR + 1]


def test_an_unreadable_segment_of_unknown_age_stays(folder):
    log = folder / "t-0" / f"{2:020}.log"
    for suffix in (".log", ".index", ".timeindex"):
        log.with_suffix(suffix).unlink()
    os.mkfifo(log)
    lines, _ = answer(folder, config=[f"retention.ms={HOUR}"], at=NOW + 9 * HOUR, status=1)
    assert [(line["deletable"], line["largestTimestampMs"]) for line in lines[:2]] == [
        (True, NOW - 4 * HOUR), (False, None),
    ]  # fmt: skip
    assert lines[1]["why"].startswith("the age of the segment is unknown")


def test_a_future_time_blocks_what_follows(folder):
    segment(folder / "t-0", 2, age=-HOUR)
    lines, _ = answer(folder, config=[f"retention.ms={HOUR}"])
    assert [(line["deletable"], line["blockedBy"]) for line in lines] == [
        (True, None),
        (False, None),
        (False, 2),
        (False, None),
    ]
    assert "in the future" in lines[1]["why"]
    assert "segment 2" in lines[2]["why"]
    assert lines[1]["why"].endswith(
        "; this segment blocks 1 later segment that is due, because a broker deletes the oldest segments first"
    )
    held = [(line["blocks"], line["blocksBytes"]) for line in lines]
    assert held == [(0, 0), (1, lines[2]["bytes"]), (0, 0), (0, 0)]
    table = kdump("retention", folder, "--at", NOW, "--config", f"t:retention.ms={HOUR}").stdout.decode()
    titles = [line for line in table.splitlines() if re.match(r"\d+ segments? ", line)]
    assert [title.partition(":")[0] for title in titles] == [
        "1 segment is deleted at the next check",
        "1 segment stays and blocks 1 segment after it",
        "1 segment is due but blocked",
        "1 segment stays",
    ]
    shown = table[table.index(titles[1]) : table.index(titles[2])].splitlines()
    assert [line.split()[:2] for line in shown[2:3]] == [["t-0", "2"]]


def test_one_that_waits_for_its_copy_blocks_what_the_size_would_take(folder):
    checkpoint(folder, "replication", 1)
    lines, _ = answer(folder, config=["retention.ms=-1", "retention.bytes=0"])
    assert [(line["blockedBy"], line["blocks"]) for line in lines] == [(None, 3), (0, 0), (0, 0), (0, 0)]
    assert "high watermark is 1" in lines[0]["why"]
    one = lines[0]["bytes"]
    lines, _ = answer(folder, config=["retention.ms=-1", f"retention.bytes={2 * one}"])
    assert [(line["blockedBy"], line["blocks"]) for line in lines] == [(None, 1), (0, 0), (None, 0), (None, 0)]
    lines, _ = answer(folder, config=["retention.ms=-1", f"retention.bytes={4 * one}"])
    assert [(line["blockedBy"], line["blocks"]) for line in lines] == [(None, 0)] * 4


def test_an_empty_active_segment_is_not_blocked(folder):
    segment(folder / "t-0", 4, age=-HOUR)
    (folder / "t-0" / f"{6:020}.log").write_bytes(b"")
    (folder / "t-0" / f"{6:020}.timeindex").write_bytes(b"")
    os.utime(folder / "t-0" / f"{6:020}.log", (0, 0))
    lines, _ = answer(folder, config=[f"retention.ms={HOUR}"])
    assert [(line["deletable"], line["blockedBy"], line["blocks"]) for line in lines] == [
        (True, None, 0),
        (True, None, 0),
        (False, None, 0),
        (False, None, 0),
    ]
    assert lines[3]["why"] == "the active segment is empty"


def test_the_end_of_an_unreadable_segment_is_unknown(folder):
    (folder / "t-0" / f"{6:020}.log").unlink()
    (folder / "t-0" / f"{6:020}.log").symlink_to("nowhere")
    lines, _ = answer(folder, config=["retention.ms=0"], status=1)
    assert [line["nextOffset"] for line in lines] == [2, 4, 6, None]
    assert [line["reason"] for line in lines] == ["time", "time", "time", None]
    assert lines[3]["why"] == "the segment is unreadable, so its end offset is unknown"
    table = kdump("retention", folder, "--at", NOW, "--config", "t:retention.ms=0").stdout
    assert b"1 segment stays: 0 B" in table


def test_size_takes_whole_segments_and_the_active_one_too(folder):
    one = segment(folder / "t-0", 0, age=4 * HOUR)
    for limit, gone in ((4 * one, 0), (3 * one + 1, 0), (3 * one, 1), (3 * one - 1, 1), (0, 4)):
        found = reasons(folder, config=["retention.ms=-1", f"retention.bytes={limit}"])
        assert [reason for _, reason in found] == ["size"] * gone + [None] * (4 - gone), limit


def test_the_high_watermark_keeps_what_is_not_replicated(folder):
    checkpoint(folder, "replication", 3)
    lines, _ = answer(folder, config=["retention.ms=0"])
    assert [line["reason"] for line in lines] == ["time", None, None, None]
    assert "high watermark is 3" in lines[1]["why"]
    assert reasons(folder, "--release", "0.11", config=["retention.ms=0"], at=NOW + 1)[3] == (6, "time")


def test_log_start_goes_first_and_in_compacted_topics_too(folder):
    checkpoint(folder, "log-start", 4)
    both = [f"retention.ms={2 * HOUR}"]
    assert reasons(folder, config=both)[:2] == [(0, "logStart"), (2, "logStart")]
    assert reasons(folder, "--release", "2.8", config=both)[:2] == [(0, "time"), (2, "time")]
    compacted = ["cleanup.policy=compact", "retention.ms=0"]
    assert reasons(folder, config=compacted) == [(0, "logStart"), (2, "logStart"), (4, None), (6, None)]
    assert reasons(folder, "--release", "2.0", config=compacted)[0] == (0, None)


def test_without_a_timestamp_the_last_write_counts(folder):
    segment(folder / "t-0", 0, age=4 * HOUR, index=False, written=NOW - HOUR)
    lines, _ = answer(folder, config=[f"retention.ms={2 * HOUR}"])
    assert (lines[0]["largestFrom"], lines[0]["largestTimestampMs"]) == ("mtime", NOW - HOUR)
    assert [line["reason"] for line in lines] == [None] * 4
    assert lines[1]["blockedBy"] == 0
    (folder / "t-0" / f"{0:020}.index").unlink()  # a broker then rebuilds both indexes
    assert reasons(folder, config=[f"retention.ms={2 * HOUR}"])[0] == (0, "time")


def test_old_releases_look_at_the_last_write_alone(folder):
    lines, _ = answer(folder, "--release", "0.9", config=[f"retention.ms={HOUR}"])
    assert {line["largestFrom"] for line in lines} == {"mtime"}
    assert [line["reason"] for line in lines] == [None] * 4


def test_an_index_of_zeros_says_1970(folder):
    (folder / "t-0" / f"{0:020}.timeindex").write_bytes(bytes(12))
    lines, _ = answer(folder, config=["cleanup.policy=delete"])
    assert (lines[0]["reason"], lines[0]["largestTimestampMs"]) == ("time", 0)


def test_without_configs_nothing_is_said_to_go(folder):
    """The configs may name another policy: only data below the log start offset is deleted under any of them."""
    checkpoint(folder, "log-start", 2)
    lines, (topic,) = answer(folder, at=NOW + 1000 * HOUR * 24)
    assert topic["known"] is False
    assert set(topic["from"].values()) == {"unknown"}
    assert [(line["deletable"], line["reason"]) for line in lines] == [(True, "logStart"), *[(None, None)] * 3]
    assert {(line["blocks"], line["blockedBy"], line["deletableAtMs"]) for line in lines[1:]} == {(0, None, None)}
    assert "the topic's configs are unknown without __cluster_metadata in the paths; with Kafka's" in lines[1]["why"]
    table = kdump("retention", folder, "--at", NOW).stdout.decode()
    assert "1 segment is deleted at the next check" in table
    assert "3 segments may be deleted, because the topic's configs are unknown" in table
    lines, (topic,) = answer(folder, config=["retention.ms=-1"])
    assert topic["known"] is True
    assert None not in {line["deletable"] for line in lines}


def test_the_active_segment_is_read_after_an_unclean_stop(folder):
    (folder / "t-0" / f"{6:020}.timeindex").write_bytes(bytes(10 << 10))
    assert reasons(folder)[3] == (6, None), "the segments before it stay"
    assert answer(folder)[0][3]["largestTimestampMs"] == 0
    (folder / ".kafka_cleanshutdown").unlink()
    assert answer(folder)[0][3]["largestTimestampMs"] == NOW


def test_a_future_time_is_reported_with_the_releases_whose_remote_storage_it_blocks(folder):
    segment(folder / "t-0", 0, age=-HOUR)
    copied = tiered.Segment(0, 1)
    tiered.write_metadata(folder, [copied.added(), copied.changed(tiered.COPIED)])
    lines, _ = answer(folder, config=["remote.storage.enable=true", f"local.retention.ms={HOUR}"])
    (line,) = (line for line in lines if line["topic"] == "t" and line["baseOffset"] == 0)
    assert "in the future (brokers up to 4.4 keep the segment; later brokers" in line["why"]


def test_remote_storage_lets_go_of_what_is_copied_alone(folder):
    lines, _ = answer(folder, config=["remote.storage.enable=true", f"local.retention.ms={HOUR}"])
    assert [line["reason"] for line in lines] == [None] * 4
    assert "copied" in lines[0]["why"]
    off = ["remote.storage.enable=true", "remote.log.copy.disable=true", f"retention.ms={3 * HOUR}"]
    assert reasons(folder, config=off)[0] == (0, "time")


def test_configs_say_where_they_come_from(folder):
    _, (topic,) = answer(folder, config=["retention.bytes=5"])
    assert (topic["retentionMs"], topic["retentionBytes"], topic["localRetentionMs"]) == (7 * 24 * HOUR, 5, -2)
    assert (topic["cleanupPolicy"], topic["from"]["retention.bytes"]) == ("delete", "given")
    assert topic["from"]["retention.ms"] == "default"


@pytest.mark.parametrize(
    "text", ["t", "t:retention.ms", "t:retention.mss=1", "t:retention.ms=x", "t:cleanup.policy=gone", ":retention.ms=1"]
)
def test_a_config_that_makes_no_sense_is_refused(text):
    with pytest.raises(UsageError):
        given_config(text)


@pytest.mark.parametrize(
    ("key", "taken", "refused"),
    [
        ("retention.ms", ["-1", "0"], ["-2", "-5"]),
        ("retention.bytes", ["-5", "0"], []),
        ("local.retention.ms", ["-2"], ["-3"]),
        ("local.retention.bytes", ["-2"], ["-3"]),
        ("min.cleanable.dirty.ratio", ["0", "0.5", "1"], ["-0.1", "1.1", "nan"]),
        ("min.compaction.lag.ms", ["0"], ["-1"]),
        ("max.compaction.lag.ms", ["1"], ["0"]),
        ("delete.retention.ms", ["0"], ["-1"]),
        ("max.message.bytes", ["0"], ["-1"]),
    ],
)
def test_a_value_that_a_broker_refuses_is_refused(key, taken, refused):
    for value in taken:
        assert given_config(f"*:{key}={value}").value == value
    for value in refused:
        with pytest.raises(UsageError, match=rf"is not a value of {key}: a broker accepts "):
            given_config(f"*:{key}={value}")


def test_two_processes_and_the_table_say_the_same(folder):
    for base in (0, 2):
        segment(folder / "u-0", base, age=4 * HOUR)
    config = ["--config", f"*:retention.ms={HOUR}"]
    assert answer(folder, *config, "--jobs", "2") == answer(folder, *config)
    table = kdump("retention", folder, "--at", NOW, *config).stdout.decode()
    assert table.startswith("5 segments are deleted at the next check: ")
    assert "retention.ms by given" in table
