"""kdump verify-index and kdump rebuild-index as a user runs them."""

import json
import os
import shutil

import jsonschema
import pytest

from testing import GOLDEN, ROOT
from testing.processes import kdump, on_a_terminal
from tests.helpers.segments import ABORT, data, marker

TXN = GOLDEN / "brokers" / "4.2.2" / "txn-0"
VALIDATOR = jsonschema.Draft202012Validator(json.loads((ROOT / "kdump" / "findings.schema.json").read_text()))


@pytest.fixture
def partition(tmp_path):
    folder = tmp_path / "orders-0"
    shutil.copytree(GOLDEN / "brokers" / "4.2.2" / "c-none-0", folder)
    return folder


WHERE = {**os.environ, "PYTHONPATH": str(ROOT)}


def break_entry(path, at=32):
    content = bytearray(path.read_bytes())
    content[at + 3] ^= 1
    path.write_bytes(content)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_healthy_folder(partition):
    before = {path.name: path.read_bytes() for path in partition.iterdir()}
    done = kdump("verify-index", partition)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (
        b"28,165 bytes) of log: nothing is wrong in indexes and headers (kdump check verifies records)" in done.stdout
    )
    quiet = kdump("verify-index", "-q", partition)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, b"", b"")
    assert {path.name: path.read_bytes() for path in partition.iterdir()} == before


@pytest.mark.parametrize(
    "what", ["", "00000000000000000000.log", "00000000000000000000.index", "*.timeindex", "*0.log"]
)
def test_whatever_names_the_segment_finds_its_bad_entry(partition, what):
    break_entry(partition / "00000000000000000000.index")
    done = kdump("verify-index", "-q", partition / what)
    text = done.stdout.decode()
    assert done.returncode == 4
    assert text.startswith(f"{partition}/00000000000000000000.index\n  WRONG   byte 32: entry 4 (offset ")
    assert "expected " in text
    assert "found " in text
    assert "what to do: " in text
    assert text.count("WRONG") == 1


def test_json_lines_hold_to_their_schema(partition):
    break_entry(partition / "00000000000000000000.index")
    log = partition / "00000000000000000089.log"
    log.write_bytes(b"\xff" * log.stat().st_size)
    done = kdump("verify-index", "--json", partition)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for line in lines:
        VALIDATOR.validate(line)
    assert done.returncode == 3
    assert {line["kind"] for line in lines} == {"finding", "remark", "summary"}
    assert lines[-1] == {
        "kind": "summary",
        "version": 1,
        "segments": 3,
        "batches": 23,
        "logBytes": 28165,
        "findings": 2,
        "remarks": lines[-1]["remarks"],
        "status": 3,
    }
    first = next(line for line in lines if line["kind"] == "finding")
    assert (first["level"], first["entry"], first["position"]) == ("derived", 4, 32)


def test_the_exit_status_of_each_kind_of_trouble(partition, tmp_path):
    assert kdump("verify-index").returncode == 2
    assert kdump("verify-index", tmp_path / "nothing").returncode == 1
    break_entry(partition / "00000000000000000000.timeindex", 12)
    assert kdump("verify-index", partition).returncode == 4
    assert kdump("verify-index", partition, tmp_path / "nothing").returncode == 1
    log = partition / "00000000000000000089.log"
    log.write_bytes(log.read_bytes()[:-10])
    done = kdump("verify-index", partition)
    assert done.returncode == 3
    assert b"DAMAGED" in done.stdout


def test_a_truncated_batch_at_the_end_of_the_newest_segment_is_damage(partition):
    log = partition / "00000000000000000180.log"
    log.write_bytes(log.read_bytes() + bytes.fromhex("00000000000000df00000200") + b"torn")
    done = kdump("verify-index", partition)
    assert done.returncode == 3
    assert b"DAMAGED byte" in done.stdout


def test_zeros_after_the_log_are_a_remark(partition):
    log = partition / "00000000000000000089.log"
    log.write_bytes(log.read_bytes() + bytes(4096))
    done = kdump("verify-index", "--notes", partition)
    assert done.returncode == 0
    assert b"4096 bytes of zeros" in done.stdout


def test_an_index_without_its_log(partition):
    (partition / "00000000000000000089.log").unlink()
    done = kdump("verify-index", partition / "00000000000000000089.index")
    assert done.returncode == 4
    assert b"00000000000000000089.log is missing" in done.stdout


def test_a_missing_txnindex_is_a_finding(tmp_path):
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(data(0, producer=7) + marker(1, 7, ABORT))
    assert kdump("verify-index", log).returncode == 0  # a log alone: a broker rebuilds all of its indexes
    log.with_suffix(".index").write_bytes(b"")
    done = kdump("verify-index", log)
    assert done.returncode == 4
    assert b"read_committed" in done.stdout


def test_remarks_are_written_out_on_request(partition):
    assert b"entries name" not in kdump("verify-index", partition).stdout
    assert b"entries name the last offset of the batch" in kdump("verify-index", "--remarks", partition).stdout


def test_findings_that_are_alike_are_folded(partition):
    index = partition / "00000000000000000000.index"
    index.write_bytes(b"\xff" * 8 * 30)
    text = kdump("verify-index", partition).stdout.decode()
    assert text.count("WRONG") == 3
    assert "... and 27 more like it (--verbose prints them all)" in text
    assert kdump("verify-index", "--verbose", partition).stdout.decode().count("WRONG") == 30


def test_a_terminal_gets_colours(partition):
    break_entry(partition / "00000000000000000000.index")
    done, shown = on_a_terminal(kdump, "verify-index", partition, env={**os.environ, "TERM": "xterm"})
    assert done.returncode == 4
    assert b"WRONG" in shown
    assert b"\x1b[" in shown
    assert b"what to do" in shown


def test_rebuilt_indexes_are_the_brokers_own(tmp_path):
    for base in ("00000000000000000000", "00000000000000000008", "00000000000000000064", "00000000000000000117"):
        done = kdump("rebuild-index", TXN / f"{base}.log", "--out", tmp_path, "--index-interval-bytes", 300, "-q")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        for suffix in ("index", "timeindex", "txnindex"):
            own = TXN / f"{base}.{suffix}"
            assert (tmp_path / own.name).exists() == own.exists()
            if own.exists():
                assert (tmp_path / own.name).read_bytes() == own.read_bytes()


def test_rebuild_refuses_to_overwrite(tmp_path):
    args = ["rebuild-index", TXN / "00000000000000000064.log", "--out", tmp_path]
    assert kdump(*args).returncode == 0
    index = tmp_path / "00000000000000000064.index"
    index.write_bytes(b"old")
    done = kdump(*args)
    assert done.returncode == 2
    assert b"--force overwrites the file" in done.stderr
    assert index.read_bytes() == b"old"
    assert kdump(*args, "--force").returncode == 0
    assert index.read_bytes() != b"old"


def test_a_stale_txnindex_does_not_outlive_the_others(tmp_path):
    (tmp_path / "00000000000000000000.txnindex").write_bytes(bytes(34))
    args = ["rebuild-index", TXN / "00000000000000000000.log", "--out", tmp_path]
    assert kdump(*args).returncode == 2
    assert names(tmp_path) == ["00000000000000000000.txnindex"]
    assert kdump(*args, "--force").returncode == 0
    assert (tmp_path / "00000000000000000000.txnindex").read_bytes() == b""


def test_a_damaged_log_gets_no_indexes(partition, tmp_path):
    log = partition / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[400] ^= 1
    log.write_bytes(content)
    done = kdump("rebuild-index", log, "--out", tmp_path / "new")
    assert done.returncode == 3
    assert b"the checksum is wrong" in done.stderr
    assert b"No index was written for this segment" in done.stderr
    assert not (tmp_path / "new").exists()
    log.write_bytes(content[:300])
    assert kdump("rebuild-index", log, "--out", tmp_path / "new").returncode == 3


@pytest.mark.parametrize("path", [TXN.parent, TXN, f"{TXN}/*.log"], ids=["log dir", "folder", "glob"])
def test_rebuilt_indexes_of_a_folder_are_the_brokers_own(tmp_path, path):
    options = ["--topic", "txn", "--out", tmp_path, "--index-interval-bytes", 300, "-q"]
    done = kdump("rebuild-index", path, *options)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    made = {file.name: file.read_bytes() for file in (tmp_path / TXN.name).iterdir()}
    own = [file for suffix in ("index", "timeindex", "txnindex") for file in TXN.glob(f"*.{suffix}")]
    assert made == {file.name: file.read_bytes() for file in own}


def test_segments_from_the_middle_know_the_transactions_before_them(tmp_path):
    logs = sorted(TXN.glob("*.log"))
    assert kdump("rebuild-index", *logs[2:], "--out", tmp_path, "-q").returncode == 0
    for log in logs[2:]:
        own = log.with_suffix(".txnindex")
        made = tmp_path / TXN.name / own.name
        assert (made.exists() and made.read_bytes()) == (own.exists() and own.read_bytes())


def test_damage_ends_the_indexes_of_its_folder_alone(partition, tmp_path):
    other = tmp_path / "log dir" / "sound-0"
    shutil.copytree(partition, other)
    shutil.copytree(partition, tmp_path / "log dir" / "broken-0")
    log = tmp_path / "log dir" / "broken-0" / "00000000000000000089.log"
    log.write_bytes(log.read_bytes()[:-10])
    done = kdump("rebuild-index", tmp_path / "log dir", "--out", tmp_path / "new")
    assert done.returncode == 3
    assert b"No index was written for this segment and 1 later segment of its folder" in done.stderr
    assert {file.name[:20] for file in (tmp_path / "new" / "broken-0").iterdir()} == {f"{0:020}"}
    assert {file.name[:20] for file in (tmp_path / "new" / "sound-0").iterdir()} == {f"{n:020}" for n in (0, 89, 180)}


def test_damage_before_the_named_segments_is_reported_for_its_own_segment(partition, tmp_path):
    shutil.copytree(partition, tmp_path / "broken-0")
    logs = sorted((tmp_path / "broken-0").glob("*.log"))
    size = logs[0].stat().st_size
    logs[0].write_bytes(logs[0].read_bytes()[:-10])
    done = kdump("rebuild-index", *logs[1:], "--out", tmp_path / "new")
    assert done.returncode == 3
    (error,) = done.stderr.decode().splitlines()
    position = int(error.partition(f"{logs[0]}: byte ")[2].partition(":")[0])
    assert 0 < position < size
    assert "No index was written for this segment and 2 later segments of its folder" in error
    assert not (tmp_path / "new").exists()


def test_rebuild_wants_segments_with_an_offset(tmp_path):
    assert kdump("rebuild-index", tmp_path, "--out", tmp_path / "new").returncode == 1
    odd = tmp_path / "odd.log"
    odd.write_bytes(b"")
    assert kdump("rebuild-index", odd, "--out", tmp_path / "new").returncode == 2


def test_first_offsets_for_old_brokers(partition, tmp_path):
    log = partition / "00000000000000000000.log"
    made = {}
    for which in ("first", "last"):
        out = tmp_path / which
        assert kdump("rebuild-index", log, "--out", out, "--entry-offset", which, "-q").returncode == 0
        made[which] = (out / "00000000000000000000.index").read_bytes()
    assert made["first"] != made["last"]
    assert made["first"][4:8] == made["last"][4:8]


def test_the_output_lies_in_the_folder_that_is_named(tmp_path):
    """Any name of a folder works."""
    place = tmp_path / "in" / "orders-0"
    shutil.copytree(TXN, place)
    (place / "below").mkdir()
    for number, (path, cwd) in enumerate(((".", place), ("..", place / "below"), ("../orders-0/.", place))):
        out = tmp_path / f"out{number}"
        assert kdump("rebuild-index", path, "--out", out, "-q", cwd=cwd, env=WHERE).returncode == 0
        assert [path.name for path in out.iterdir()] == ["orders-0"]
    assert names(place) == sorted([*names(TXN), "below"])


def test_two_partitions_of_one_name_are_refused_before_anything_is_written(tmp_path):
    for name in ("b1", "b2"):
        shutil.copytree(TXN, tmp_path / name / TXN.name)
    for options in ([], ["--force"]):
        for paths in (["b1", "b2"], ["b1/txn-0/00000000000000000000.log", "b2/txn-0/00000000000000000064.log"]):
            done = kdump("rebuild-index", *(tmp_path / path for path in paths), "--out", tmp_path / "f", *options)
            said = f"{tmp_path}/b1/txn-0 and {tmp_path}/b2/txn-0 would both be written to {tmp_path}/f/txn-0"
            assert (done.returncode, said.encode() in done.stderr, (tmp_path / "f").exists()) == (2, True, False)


def test_rebuilt_indexes_never_lie_in_what_is_read(tmp_path):
    place = tmp_path / "in" / "orders-0"
    shutil.copytree(TXN, place)
    (tmp_path / "link").symlink_to(tmp_path / "in")
    before = {path: path.read_bytes() for path in place.iterdir()}
    for path in (place, tmp_path / "in", f"{tmp_path}/in/*", tmp_path / "link"):
        for out in (tmp_path / "in", place, place / "fresh", tmp_path / "link" / "orders-0"):
            done = kdump("rebuild-index", path, "--out", out, "--force")
            assert (done.returncode, b"which kdump does not change" in done.stderr) == (2, True)
    assert {path: path.read_bytes() for path in place.iterdir()} == before


def test_what_is_there_already_is_reported_before_anything_is_written(tmp_path):
    taken = tmp_path / "f" / TXN.name / "00000000000000000117.index"
    taken.parent.mkdir(parents=True)
    taken.write_bytes(b"old")
    done = kdump("rebuild-index", TXN, "--out", tmp_path / "f")
    assert (done.returncode, done.stderr) == (
        2,
        f"error: {taken} exists already (--force overwrites the file)\n".encode(),
    )
    assert names(taken.parent) == [taken.name]
