"""The document of a report: its answers equal those of the commands, for any content of the log dirs."""

import json
import random
import re
import shlex
import struct
import tarfile
from collections import Counter
from typing import get_args

import pytest

from bench import many_partitions
from kdump.checks.whole_partition import CheckOptions
from kdump.errors import SILENT
from kdump.findings.verdict import Outcome
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.local import LocalFile, LocalFiles
from kdump.report import gathering, verdicts
from testing import GOLDEN, ROOT
from testing.forge import batch, record
from testing.processes import kdump
from tests.helpers import log_dirs
from tests.helpers.segments import data

BROKER = ROOT / "golden/brokers/4.2.2"
AT = ("--at", "2026-11-22T12:00:00Z")
COMMANDS = {
    "check": ["check", "--headers-only", *AT],
    "du": ["du"],
    "du-topics": ["du", "--by", "topic"],
    "stats": ["stats", "--hours"],
    "retention": ["retention", *AT],
    "transactions": ["transactions", *AT],
    "groups": ["groups", *AT],
}


def report(*args, status=None):
    done = kdump("report", "--json", *args)
    assert b"Traceback" not in done.stderr
    assert status is None or done.returncode == status, done.stderr.decode()
    return json.loads(done.stdout)


def lines_of(command, *paths):
    done = (
        kdump(*command, *paths, "-q", "-o", "jsonl")
        if command[0] != "check"
        else kdump(*command, *paths, "-o", "jsonl")
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def without_payload(lines):
    return [{**line, **{name: None for name in ("metadata", "raw") if name in line}} for line in lines]


def rotten(tmp_path):
    """A log dir with a damaged batch between valid ones, a truncated end, a leftover folder and another file."""
    sound = [batch([record(b"k", b"v" * 50)], base_offset=n, base_timestamp=1_700_000_000_000) for n in range(4)]
    bad = bytearray(sound[1])
    bad[70] ^= 1
    log_dirs.write(tmp_path, "orders-0", {0: sound[0] + bytes(bad) + sound[2], 3: sound[3] + sound[3][:20]})
    log_dirs.write(tmp_path, "orders-1", {0: sound[0], "00000000000000000001.log.deleted": sound[1]})
    log_dirs.write(tmp_path, f"gone-0.{'a' * 32}-delete", {0: sound[0]})
    log_dirs.node(tmp_path, 7)
    (tmp_path / "notes.txt").write_text("not Kafka's")
    return tmp_path


@pytest.mark.parametrize("jobs", [1, 2])
def test_answers_are_those_of_the_commands(jobs):
    found = report(BROKER, *AT, "--jobs", jobs, status=3)["answers"]
    for name, command in COMMANDS.items():
        assert found[name]["lines"] == without_payload(lines_of(command, BROKER)), name


def test_each_file_of_a_partition_is_opened_once(tmp_path, monkeypatch):
    many_partitions.make(tmp_path / "logs", 3)
    opened = Counter()

    def count(_, path):
        opened[path] += 1
        return LocalFile(path)

    monkeypatch.setattr(LocalFiles, "open", count)
    partitions = list(Finder(Wanted(leftovers=True, siblings=True, every_folder=True)).find([str(tmp_path)]))
    found = gathering.collectors_for(partitions, Wanted(), SILENT, CheckOptions(records=False))
    gathering.gather(found, partitions, Wanted(), SILENT)
    files = [str(path) for path in tmp_path.glob("logs/topic*/*")]
    assert [opened[path] for path in files] == [1] * 18


def test_answers_on_damage_are_those_of_the_commands(tmp_path):
    folder = rotten(tmp_path)
    found = report(folder, *AT, status=3)["answers"]
    for name, command in COMMANDS.items():
        assert found[name]["lines"] == lines_of(command, folder), name


def test_damaged_ranges_are_those_of_dump(tmp_path):
    folder = rotten(tmp_path)
    answer = report(folder)["answers"]["damage"]
    assert answer["command"] == f"kdump dump {folder} --batches --every-replica"
    found = [line for line in answer["lines"] if line["kind"] == "damage"]
    dumped = [line for line in lines_of(["dump", "--batches"], folder) if line["kind"] == "damage"]
    names = ("topic", "partition", "file", "position", "size", "damage", "reason", "missingFrom", "missingUntil")
    of_dump = {(line["file"], line["position"]): line for line in dumped}
    assert found
    for line in found:
        same = of_dump[line["file"], line["position"]]
        assert [line[name] for name in names] == [same.get(name) for name in names]


def test_hours_of_partitions_are_those_of_stats():
    for line in report(BROKER, *AT)["answers"]["hours"]["lines"]:
        if line["topic"] == "multi":
            command = ["stats", "--hours", "--topic", "multi", "--partition", str(line["partition"])]
            hours = [one for one in lines_of(command, BROKER) if one["kind"] == "hour"]
            assert {key: value for key, value in line.items() if key != "partition"} in hours


def test_the_forecast_is_what_retention_says_on_each_day():
    lines = report(BROKER, *AT)["answers"]["forecast"]["lines"]
    for at in sorted({line["atMs"] for line in lines})[::3]:
        segments = [one for one in lines_of(["retention", "--at", str(at)], BROKER) if one["kind"] == "segment"]
        kept = sum(one["bytes"] for one in segments if not one["deletable"])
        assert sum(line["keptBytes"] for line in lines if line["atMs"] == at) == kept


def test_events_and_replicas_are_those_of_the_commands(tmp_path):
    events = report(BROKER, *AT)["answers"]["metadata"]["lines"]
    assert events == lines_of(["metadata", "--events", *AT], BROKER)[-200:]
    around = events[len(events) // 2]["timestampMs"]
    near = report(BROKER, "--around", str(around))["answers"]["metadata"]["lines"]
    assert near
    assert all(abs(line["timestampMs"] - around) <= 3_600_000 for line in near)
    one, other = tmp_path / "b1", tmp_path / "b2"
    sound = [batch([record(b"k", b"v")], base_offset=n, leader_epoch=n) for n in range(2)]
    for number, folder in enumerate((one, other)):
        log_dirs.replica(folder, {0: b"".join(sound[: number + 1])}, epochs={0: 0})
        log_dirs.node(folder, number)
    pairs = report(one, other)["answers"]["diff"]
    assert pairs["lines"] == lines_of(["diff"], one, other)
    assert pairs["command"] == f"kdump diff {one} {other}"


def test_the_verdict_says_which_replica_loses_which_records(tmp_path):
    for number, (last, epochs) in enumerate([(8, {0: 0}), (5, {0: 0, 2: 5})]):
        records = b"".join(batch([record(b"k", b"v")], base_offset=offset, leader_epoch=0) for offset in range(last))
        log_dirs.replica(tmp_path / str(number), {0: records}, epochs=epochs)
        log_dirs.node(tmp_path / str(number), number)
    text = " ".join(kdump("report", tmp_path / "0", tmp_path / "1").stdout.decode().split())
    assert "Replicas of 1 partition disagree: orders-0; 3 records would be lost." in text
    assert (
        "The replica that lacks the newest leader epoch truncates its log to the offset where the epochs part" in text
    )


def test_topics_and_partitions_narrow_all_answers():
    narrow = ("--topic", "multi", "--partition", "1")
    found = report(BROKER, *AT, *narrow)["answers"]
    for name in ("du", "stats", "retention", "transactions"):
        assert found[name]["lines"] == lines_of([*COMMANDS[name], *narrow], BROKER), name


def test_what_is_unreadable_is_in_the_verdict_and_in_the_check(tmp_path):
    folder = tmp_path / "logs"
    content = batch([record(b"k", b"v")], base_offset=0, base_timestamp=1_700_000_000_000)
    log_dirs.write(folder, "orders-0", {0: content})
    (folder / "orders-1").mkdir()
    (folder / "orders-1" / f"{0:020}.log").symlink_to("nowhere")
    for paths, unread in (([folder], "nowhere"), ([folder / "orders-0", tmp_path / "absent"], "absent")):
        found = report(*paths, *AT, status=1)
        assert "No such file" in found["said"][0], unread
        assert found["answers"]["check"]["lines"] == lines_of(COMMANDS["check"], *paths)
        text = kdump("report", *paths, *AT).stdout.decode()
        assert "Not all files could be read or used (1 message): " in text
        assert "Nothing is wrong" not in text


def test_a_time_of_the_future_is_remarked_as_check_does(tmp_path):
    stamps = (1_795_000_000_000, 4_102_444_800_000)
    content = b"".join(batch([record(b"k", b"v")], base_offset=n, base_timestamp=at) for n, at in enumerate(stamps))
    log_dirs.write(tmp_path, "orders-0", {0: content})
    lines = report(tmp_path, *AT, status=0)["answers"]["check"]["lines"]
    assert "future timestamp" in {line.get("check") for line in lines}
    assert lines == lines_of(COMMANDS["check"], tmp_path)


def test_processes_say_the_same_in_the_same_order(tmp_path):
    for number in range(4):
        folder = tmp_path / f"dir{number}"
        log_dirs.write(folder, "__consumer_offsets-0", {0: batch([b"\x10garbage"], base_offset=0)})
        log_dirs.write(folder, "orders-0", {0: batch([record(b"k", b"v")], base_offset=0)}, x__snapshot=b"garbage")
        (folder / "recovery-point-offset-checkpoint").write_bytes(b"\xff\xfe")
        (folder / "cleaner-offset-checkpoint").mkdir()
    one, two = (kdump("report", "--json", tmp_path, *AT, "--jobs", jobs) for jobs in (1, 2))
    assert one.stdout == two.stdout
    assert len(json.loads(one.stdout)["said"]) > 8


def test_each_line_says_whose_answer_it_is():
    lines = [json.loads(line) for line in kdump("report", BROKER, "-o", "jsonl").stdout.splitlines()]
    assert {"answer": "du", "kind": "partition"}.items() <= next(one for one in lines if one["answer"] == "du").items()


def test_no_payload_is_in_it(tmp_path):
    secret = b"top-secret-value"
    content = batch([record(secret, secret)], base_offset=0, base_timestamp=1_700_000_000_000)
    log_dirs.write(tmp_path, "orders-0", {0: content})
    text = kdump("report", "--json", tmp_path).stdout
    assert secret not in text
    assert b"dG9wLXNlY3Jld" not in text


def test_the_short_version_has_the_verdict_and_bars(tmp_path):
    done = kdump("report", rotten(tmp_path))
    text = done.stdout.decode()
    assert done.returncode == 3
    assert re.search(r"^WRONG 1 log is damaged: .*orders-0\.$", text, re.MULTILINE)
    assert re.search(r"orders +\d.* B +█+", text)
    assert "kdump salvage" in text


def test_an_empty_folder_is_no_partition(tmp_path):
    done = kdump("report", tmp_path)
    assert b"There is no partition here" in done.stdout or done.returncode == 1


def test_a_transaction_in_two_phase_commit_is_distinguished_from_one_past_its_timeout(tmp_path):
    log_dirs.write(tmp_path, "orders-0", {0: data(0, producer=7)})
    value = struct.pack(">hqhib", 0, 7, 0, 2**31 - 1, 1) + struct.pack(">ih6siiqq", 1, 6, b"orders", 1, 0, 0, 0)
    tx = batch([record(struct.pack(">hh2s", 0, 2, b"tx"), value)])
    log_dirs.write(tmp_path, "__transaction_state-0", {0: tx})
    _, *lines = kdump("report", tmp_path).stdout.decode().splitlines()
    at = lines.index("check 1 transaction waits for its second phase: orders-0 at offset 0.")
    assert "If it did not commit the transaction" in lines[at + 1]
    assert lines[at + 2].endswith("forceTerminateTransaction --transactionalId tx")


def test_a_segment_that_blocks_retention_is_named_with_its_reason(tmp_path):
    (tmp_path / ".kafka_cleanshutdown").write_text("{}")
    day, now = 86_400_000, 1_700_000_000_000
    for base, at in ((0, now + day), (1, now - 9 * day), (2, now)):  # the first one is of the future
        log_dirs.write(tmp_path, "orders-0", {base: batch([record(b"k", b"v")], base_offset=base, base_timestamp=at)})
        stem = tmp_path / "orders-0" / f"{base:020}"
        stem.with_suffix(".index").write_bytes(b"")
        stem.with_suffix(".timeindex").write_bytes(struct.pack(">qi", at, 0))
    config = ("--config", "orders:cleanup.policy=delete")
    lines = kdump("report", tmp_path, "--at", now, *config).stdout.decode().splitlines()
    (at,) = [number for number, line in enumerate(lines) if "past retention" in line]
    assert (
        "1 segment is past retention (70 B), but an older segment blocks deletion: segment 0 of orders-0." in lines[at]
    )
    assert "Segment 0 of orders-0: the largest timestamp is 1 d in the future; this segment blocks" in lines[at + 1]


def test_missing_offsets_are_distinguished_from_damage(tmp_path):
    sound = [batch([record(b"k", b"v")], base_offset=n, base_timestamp=1_700_000_000_000) for n in range(4)]
    log_dirs.write(tmp_path, "orders-0", {0: sound[0] + sound[2]})
    done = kdump("report", tmp_path)
    text = done.stdout.decode()
    assert done.returncode == 3
    assert "damaged" not in text
    assert f"Offsets are missing from 1 log: {tmp_path}/orders-0. All existing batches are valid." in text
    log_dirs.write(tmp_path, "orders-0", {0: sound[0] + sound[2] + sound[3][:-1] + b"x" + sound[3]})
    text = kdump("report", tmp_path).stdout.decode()
    assert "1 log is damaged" in text
    assert "Offsets are missing" not in text


def verdict(*paths):
    text = kdump("report", *paths).stdout.decode()
    return text.split("\n\n")[0].splitlines()


def test_what_keeps_a_broker_from_starting_is_wrong_and_says_why(tmp_path):
    content = batch([record(b"k", b"v")], base_offset=0, base_timestamp=1_700_000_000_000)
    log_dirs.write(tmp_path, "orders-0", {0: content}, leader_epoch_checkpoint="nonsense")
    log_dirs.node(tmp_path, 7)
    for name in ("backup", "lost+found"):
        (tmp_path / name).mkdir()
    (tmp_path / "recovery-point-offset-checkpoint").write_text("nonsense")
    lines = verdict(tmp_path)
    assert any(line.startswith(f"WRONG DO NOT START broker 7: {tmp_path}/backup: ") for line in lines)
    at = next(number for number, line in enumerate(lines) if line.startswith("WRONG A") and "lost+found" in line)
    assert lines[at] == (
        f"WRONG A broker does not start because of {tmp_path}/lost+found: "
        "a broker does not start if a log dir has a folder of this name."
    )
    assert lines[at + 1].strip().startswith("Move the folder out of the log dir")
    of_others = [line for line in lines if "DO NOT START" not in line]
    of_checkpoint = [line for line in of_others if "recovery-point" in line]  # another log dir has the metadata log
    assert not any("does not start" in line for line in of_checkpoint)
    assert any("a line is malformed" in line for line in of_checkpoint)
    assert any("leader-epoch-checkpoint" in line for line in of_others)
    reported = kdump("check", tmp_path).stdout.decode()
    assert f"DO NOT START broker 7: {tmp_path}/backup: " in reported


def test_preallocated_indexes_are_no_matter_of_retention(tmp_path):
    content = [batch([record(b"k", b"v" * 1000)], base_offset=n, base_timestamp=1_700_000_000_000) for n in range(9)]
    log_dirs.write(tmp_path, "orders-0", {0: content[0]}, **{f"{0:020}__index": random.Random(1).randbytes(100_000)})
    log_dirs.write(tmp_path, "clicks-0", {0: b"".join(content)})
    assert not [line for line in verdict(tmp_path) if "decides what stays" in line or "The logs of topic" in line]
    (tmp_path / "orders-0" / f"{0:020}.index").write_bytes(bytes(8))
    assert any(line.startswith("note  The logs of topic clicks take ") for line in verdict(tmp_path))


def test_the_command_of_the_verdict_salvages_every_damaged_partition(tmp_path):
    sound = [batch([record(b"k", b"v" * 50)], base_offset=n, base_timestamp=1_700_000_000_000) for n in range(4)]
    bad = bytearray(sound[1])
    bad[70] ^= 1
    logs = tmp_path / "logs"
    for name in "abcd":
        log_dirs.write(logs, f"{name}-0", {0: sound[0] + bytes(bad) + sound[2] + sound[3]})
    (logs / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    log_dirs.node(logs, 7)
    lines = verdict(logs)
    salvages = [line.split() for line in lines if "kdump salvage /" in line]
    assert [words[2:] for words in salvages] == [[*(f"{logs}/{name}-0" for name in "abcd"), "--out", "salvaged"]]
    assert not [line for line in lines if "would truncate 4 logs" in line]
    out = tmp_path / "salvaged"
    assert kdump(*salvages[0][1:-1], out).returncode == 3
    assert sorted(path.name for path in (out / "logs").iterdir()) == ["a-0", "b-0", "c-0", "d-0"]
    (said,) = [line for line in kdump("check", logs).stdout.decode().splitlines() if "kdump salvage /" in line]
    assert said.split() == salvages[0]


SCENES = GOLDEN / "verdict.tar.xz"
"""Log dirs of real brokers with one change each, and healthy ones."""


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    with tarfile.open(SCENES) as archive:
        archive.extractall(folder, filter="fully_trusted")  # some have links that lead nowhere
    return folder / "verdict"


@pytest.mark.parametrize("name", ["torn-clean", "startgtend", "baklog", "rmlog", "jbod-cluster", "lost-disk"])
def test_the_verdict_is_that_of_check_and_says_each_fact_once(scenes, name):
    """A log that a start shortens is not damaged, and a broker that does not start truncates nothing."""
    checked = lines_of(COMMANDS["check"], scenes / name)[-1]
    shown = verdict(scenes / name, *AT)
    texts = [line[6:] for line in shown if not line.startswith("  ")]
    assert [f"{text}." for text in checked.get("verdicts", ())] == sorted(
        (text for text in texts if text[:-1] in checked.get("verdicts", ())),
        key=lambda text: checked["verdicts"].index(text[:-1]),
    )
    assert len(texts) == len(set(texts))
    assert not [text for text in texts if "would truncate" in text.partition(": ")[0]]
    damaged = [line for line in shown if "kdump salvage /" in line]
    assert bool(damaged) == bool(checked.get("damaged"))
    commands = [command for each in checked.get("verdictCommands", ()) for command in each]
    for command in commands:
        if not command.startswith("kdump salvage"):
            assert sum(command in line for line in shown) == 1, command


def test_the_words_of_a_path_do_not_decide_how_grave_a_verdict_is(tmp_path):
    """The verdict on log dirs of several brokers quotes their paths."""
    name = "DO NOT START offsets are missing in x damaged: y can be rebuilt"
    paths = [tmp_path / name / number for number in "78"]
    for path in paths:
        log_dirs.write(path, "orders-0", {0: batch([record(b"k", b"v")])})
        log_dirs.node(path, int(path.name))
    checked = lines_of(COMMANDS["check"], *paths)[-1]
    assert checked["verdictOutcomes"] == ["several", "unknown", "unknown"]
    (line,) = [line for line in verdict(*paths) if checked["verdicts"][0] in line]
    assert name in line
    assert line.startswith("note ")


def test_each_outcome_has_a_weight():
    assert set(get_args(Outcome)) == set(verdicts._WEIGHT)


def test_the_size_of_a_topic_is_that_of_its_log(tmp_path):
    """Brokers reserve 10 MiB for each index of an active segment."""
    log_dirs.write(tmp_path, "orders-0", {0: batch([record(b"k", b"v" * 36_000)])})
    for name in ("index", "timeindex"):
        with (tmp_path / "orders-0" / f"{0:020}.{name}").open("wb") as file:
            file.truncate(10 << 20)
    text = kdump("report", tmp_path).stdout.decode()
    assert re.search(r"^  orders +35\.2 KiB ", text, re.MULTILINE)
    assert "MiB" not in text


def test_what_retention_deletes_is_foreseen_only_where_configs_are_known(tmp_path):
    content = batch([record(b"k", b"v")], base_offset=0, base_timestamp=1_700_000_000_000)
    log_dirs.write(tmp_path, "orders-0", {0: content})
    log_dirs.write(tmp_path, "__consumer_offsets-0", {0: b""})  # a topic of Kafka itself
    text = kdump("report", tmp_path, *AT).stdout.decode()
    assert "Retention deletes" not in text
    assert "Retention of 1 topic is unknown: orders." in text
    (command,) = re.findall(r"kdump (retention .* --config .*)", text)
    assert kdump(*shlex.split(command)).returncode == 0
    assert {line["topic"] for line in report(tmp_path, *AT)["answers"]["forecast"]["lines"]} == {"__consumer_offsets"}
    config = ("--config", "orders:retention.ms=1000")
    text = kdump("report", tmp_path, *AT, *config).stdout.decode()
    assert "Retention deletes 1 segment (" in text
    found = report(tmp_path, *AT, *config)["answers"]["retention"]
    assert found["lines"] == lines_of(["retention", *AT, *config], tmp_path)
    assert found["command"].endswith("--config orders:retention.ms=1000")


def test_ten_lines_for_a_ticket(tmp_path):
    done = kdump("report", BROKER, "--text", *AT)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == kdump("report", BROKER).returncode == 3
    assert 3 <= len(lines) <= 10
    assert lines[0].startswith("kdump ")
    assert lines[2].startswith("WRONG: 1 log is damaged: ")
    at = "--at 2026-11-22T12:00:00.000Z"
    assert lines[-1] == f"Repeat: kdump report {BROKER} {at} --text"
    around = ("--around", "2026-11-21T09:00:00.000Z", "--config", "orders:retention.ms=1000")
    lines = kdump("report", BROKER, "--text", *AT, *around).stdout.decode().splitlines()
    assert lines[-1] == f"Repeat: kdump report {BROKER} {at} {' '.join(around)} --text"
    assert kdump(*shlex.split(lines[-1])[2:]).stdout.decode().splitlines() == lines
    assert kdump("report", BROKER, "--text", "--out", tmp_path / "page.html").returncode == 2
    log_dirs.write(tmp_path, "orders-0", {0: data(0)})
    assert len(kdump("report", tmp_path, "--text").stdout.splitlines()) <= 10


def test_the_timeline_has_one_order(tmp_path):
    lines = report(BROKER)["answers"]["timeline"]["lines"]
    times = [line["atMs"] for line in lines if line["atMs"] is not None]
    assert times == sorted(times)
    assert {"segment", "leader epoch", "last commit", "LeaderChanged"} <= {line["what"] for line in lines}
    commits = [line for line in lines if line["what"] == "last commit" and line["name"] == "classic-1"]
    assert len(commits) == 1
