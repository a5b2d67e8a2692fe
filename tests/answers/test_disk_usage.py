"""What fills the disk: every file of a log dir is counted once."""

import json
import tarfile
from pathlib import Path

from kdump.answers.disk_usage import PartitionUsage
from kdump.printers.answer_tables import du
from testing.processes import kdump
from tests.helpers.segments import data

FIRST, LAST = data(5, 3, timestamp=1_700_000_000_000), data(8, 2, timestamp=1_700_000_009_000)
UUID = "0123456789abcdef0123456789abcdef"


def write(path, content=b""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return len(content)


def log_dir(folder):
    write(folder / "meta.properties", b"node.id=7\nversion=1\n")
    write(folder / "log-start-offset-checkpoint", b"0\n1\norders 0 6\n")
    orders = folder / "orders-0"
    write(orders / "00000000000000000005.log", FIRST + LAST + bytes(1000))
    write(orders / "00000000000000000005.index", bytes(80))
    write(orders / "00000000000000000000.log.deleted", b"x" * 300)
    write(folder / f"orders-1.{UUID}-delete" / "00000000000000000000.log", data(0))
    write(folder / f"orders-2.{UUID}-future" / "00000000000000000000.log", data(0))
    write(folder / f"lost-0.{UUID}-stray" / "00000000000000000000.log", data(0))
    write(folder / "__cluster_metadata-0" / "00000000000000000000.log", data(0))
    write(folder / "copy-1" / "holiday.jpg", b"jpg")
    write(folder / "backup" / "orders.log", b"0123456789")
    write(folder / "backup" / "deep" / "er", b"01234")
    write(folder / "notes.txt", b"note")
    (folder / "lost+found").mkdir()
    return folder


def answer(*args, status=0):
    done = kdump("du", "-o", "jsonl", *args)
    assert done.returncode == status, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_folder_is_named_for_what_it_is(tmp_path):
    lines = answer(log_dir(tmp_path / "d1"))
    states = {line["folder"]: line["state"] for line in lines if line["kind"] == "partition"}
    assert states == {
        "orders-0": "current",
        f"orders-1.{UUID}-delete": "deleted",
        f"orders-2.{UUID}-future": "future",
        f"lost-0.{UUID}-stray": "stray",
        "__cluster_metadata-0": "metadata",
        "copy-1": "unknown",
    }
    others = {Path(line["path"]).name: (line["what"], line["bytes"]) for line in lines if line["kind"] == "other"}
    assert others == {
        "d1": ("the broker's own files", 20 + 15),
        "notes.txt": ("a foreign file", 4),
        "backup": ("a foreign folder", 15),
        "lost+found": ("the file system's", 0),
    }
    whole = sum(entry.stat().st_size for entry in tmp_path.rglob("*") if entry.is_file())
    assert sum(line.get("allBytes", line.get("bytes")) for line in lines) == whole


def test_a_partition_s_log_is_counted_as_a_broker_does(tmp_path):
    lines = answer(log_dir(tmp_path / "d1"), "--partition", "0", "--topic", "orders")
    (line,) = lines
    assert line["logBytes"] == len(FIRST + LAST)
    assert (line["allBytes"], line["deletedBytes"]) == (len(FIRST + LAST) + 1000 + 80 + 300, 300)
    assert (line["segments"], line["earliest"], line["latest"]) == (1, 6, 10)
    assert (line["oldestMs"], line["newestMs"]) == (1_700_000_000_000, 1_700_000_009_000)
    assert (line["logDir"], line["brokerId"]) == (str(tmp_path / "d1"), "7")
    assert line["diskBytes"] % 512 == 0


def test_topics_have_current_replicas_alone_and_segments_their_files(tmp_path):
    folder = log_dir(tmp_path / "d1")
    topics = {line["topic"]: line for line in answer(folder, "--by", "topic")}
    assert set(topics) == {"orders", "__cluster_metadata"}
    assert (topics["orders"]["partitions"], topics["orders"]["logBytes"]) == (1, len(FIRST + LAST))
    segments = [line for line in answer(folder, "--by", "segment") if line["kind"] == "segment"]
    found = {(line["folder"][:8], line["baseOffset"], line["state"]): line for line in segments}
    assert len(found) == 6
    assert found["orders-0", 5, "log"]["indexBytes"] == 80
    assert found["orders-0", 0, "deleted"]["bytes"] == 300


def test_an_archive_and_two_processes_give_the_same_answer(tmp_path):
    folder = log_dir(tmp_path / "d1")
    with tarfile.open(tmp_path / "d1.tar", "w") as tar:
        tar.add(folder, "d1")
    plain = answer(folder)
    assert answer(folder, "--jobs", "2") == plain
    archived = {line["folder"]: line for line in answer(tmp_path / "d1.tar") if line["kind"] == "partition"}
    assert {name: line["allBytes"] for name, line in archived.items()} == {
        line["folder"]: line["allBytes"] for line in plain if line["kind"] == "partition"
    }


def test_a_damaged_end_is_said_and_the_sizes_stand(tmp_path):
    write(tmp_path / "t-0" / "00000000000000000000.log", data(0) + b"\xff" * 100)
    done = kdump("du", "-o", "jsonl", tmp_path)
    line = json.loads(done.stdout)
    assert done.returncode == 3
    assert f"byte {len(data(0))}:".encode() in done.stderr
    assert (line["logBytes"], line["latest"]) == (len(data(0)) + 100, None)


def test_tables_name_the_largest_first_and_steer_no_terminal(tmp_path):
    folder = log_dir(tmp_path / "d1")
    write(folder / "big-0" / "00000000000000000000.log", data(0, size=5000))
    write(folder / "evil\x1b[31m-0" / "00000000000000000000.log", data(0))
    for by in ("folder", "topic", "segment"):
        done = kdump("du", folder, "--by", by)
        assert done.returncode == 0, done.stderr
        assert b"\x1b" not in done.stdout
    rows = kdump("du", folder).stdout.decode().split("Folders\n")[1].splitlines()
    assert rows[1].split()[-1] == "big-0"


def test_a_segment_is_a_partition_of_its_folder_and_nothing_beside_it_counts(tmp_path):
    folder = log_dir(tmp_path)
    segment = folder / "orders-0" / "00000000000000000005.log"
    loose = tmp_path / "loose.log"
    loose.write_bytes(segment.read_bytes())
    for path, name in ((segment, "orders-0"), (loose, f"{tmp_path}-0"), ("-", "stdin-0")):
        more = {"input": segment.read_bytes()} if path == "-" else {}
        done = kdump("du", path, "-o", "jsonl", **more)
        assert done.returncode == 0, done.stderr
        (line,) = map(json.loads, done.stdout.splitlines())
        assert (line["kind"], f"{line['topic']}-{line['partition']}") == ("partition", name)
        assert line["allBytes"] == segment.stat().st_size


def test_space_on_disk_that_a_store_does_not_report_is_unknown_in_the_total_too():
    rest = (None, None, None, None)
    lines = [
        PartitionUsage("s3://logs", f"t-{n}", "t", n, "current", 10, 20, 1, 0, *rest, disk, None)
        for n, disk in enumerate((4096, None))
    ]
    totals, _ = du.tables(lines)
    assert dict(zip(totals.columns, *totals.rows, strict=True)) == {
        "log dir": "s3://logs",
        "broker": "-",
        "state": "current",
        "folders": 2,
        "all files": "40 B",
        "log": "20 B",
        "on disk": None,
    }
