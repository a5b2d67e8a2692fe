"""``kdump dump`` of damaged logs: what each output shows of the damage, and where reading continues."""

import csv
import io
import json
import os

import pytest

from testing import GOLDEN, forge
from testing.processes import kdump, on_a_terminal

SOURCE = GOLDEN / "brokers" / "4.2.2" / "c-none-0" / "00000000000000000000.log"


def one(offset, **rest):
    return forge.batch([forge.record(b"k%d" % offset, b"value")], base_offset=offset, **rest)


@pytest.fixture
def log(tmp_path):
    """Batches at offsets 0 to 5; 1, 2 and 4 have a wrong crc."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    path = folder / f"{0:020}.log"
    path.write_bytes(b"".join(one(n, crc=7) if n in {1, 2, 4} else one(n) for n in range(6)))
    return path


def dump(log, *args):
    done = kdump("dump", log, "--include-damaged", *args)
    assert done.returncode == 3, done.stderr
    return done.stdout.decode()


def lines(log, *args):
    return [json.loads(line) for line in dump(log, *args).splitlines()]


EXPECTED = [(0, True), (1, False), (2, False), (3, True), (4, False), (5, True)]


@pytest.mark.parametrize("rest", [(), ("--fields", "offset,value"), ("--no-payload",), ("--jobs", 3)])
def test_json_lines_show_every_damaged_batch_and_mark_it(log, rest):
    found = lines(log, "-o", "jsonl", *rest)
    assert [(line["offset"], line["crcValid"]) for line in found if "offset" in line] == EXPECTED
    assert len([line for line in found if "offset" not in line]) == 2


def test_json_shows_the_same(log):
    found = json.loads(dump(log, "-o", "json"))
    assert [(line["offset"], line["crcValid"]) for line in found if line["kind"] == "record"] == EXPECTED


def test_csv_has_a_column_for_it(log):
    for rest in ((), ("--fields", "offset,key")):
        found = [row for row in csv.DictReader(io.StringIO(dump(log, "-o", "csv", *rest))) if row.get("offset")]
        assert [(int(row["offset"]), row["crcValid"] == "true") for row in found] == EXPECTED


def test_csv_has_a_row_for_damage_where_kind_distinguishes_it_from_a_record(log):
    done = kdump("dump", log, "-o", "csv")
    found = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    assert [row["kind"] for row in found] == ["record", "damage", "record", "damage", "record"]
    size = len(one(0))
    assert [(row["file"], row["position"], row["offset"]) for row in found if row["kind"] == "damage"] == [
        (str(log), str(size), ""),
        (str(log), str(4 * size), ""),
    ]
    assert b"damage" not in kdump("dump", log, "-o", "csv", "--fields", "offset,key").stdout


def test_every_output_says_which_offsets_are_missing(log):
    done = kdump("dump", log)
    assert b" missingFrom: 1 missingUntil: 3 reason: the checksum is wrong\n" in done.stdout
    assert b"; offsets 1 to 2 are missing\n" in done.stderr
    assert b"; offset 4 is missing\n" in done.stderr
    assert b"; offsets 1 to 2 are missing" in kdump("dump", log, "-o", "table").stdout


def test_a_terminal_gets_the_note_once(log):
    done, shown = on_a_terminal(kdump, "dump", log, "-o", "table", env={**os.environ, "TERM": "dumb"})
    assert (shown + (done.stderr or b"")).count(b"offset 4 is missing") == 1


@pytest.mark.parametrize("jobs", [1, 3])
def test_damage_that_is_alike_is_folded(tmp_path, jobs):
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(b"".join(one(n) + b"xyz" for n in range(200)))
    done = kdump("dump", log, "-o", "jsonl", "--jobs", jobs)
    lines = done.stderr.decode().splitlines()
    assert done.stdout.count(b'"kind":"damage"') == 200
    assert len(lines) == 11
    assert lines[-1].startswith(f"error: {log}: 190 more ranges are damaged; all damaged ranges: ")


def test_get_counts_the_damage_that_it_does_not_write_out(tmp_path):
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(b"".join(one(n) + b"xyz" for n in range(50)))
    done = kdump("get", "@49", "--in", log)
    assert done.returncode == 3
    assert b" more ranges are damaged; all damaged ranges: " in done.stderr


def test_missing_offsets_are_named_however_far_apart_they_are(tmp_path):
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(one(-(1 << 60)) + one(1, crc=7) + one((1 << 63) - 2))
    done = kdump("dump", log)
    assert done.returncode == 3
    assert f"; offsets {1 - (1 << 60)} to {(1 << 63) - 3} are missing\n".encode() in done.stderr


@pytest.mark.parametrize("rest", [(), ("--batches",)])
def test_a_table_has_a_column_for_it(log, rest):
    text = dump(log, "-o", "table", *rest)
    assert text.count("false") == 3
    assert text.count("true") == 3
    assert "crcValid" not in kdump("dump", log, "-o", "table").stdout.decode()


def test_text_calls_it_invalid(log):
    text = dump(log)
    headers = [line.split() for line in text.splitlines() if line.startswith("baseOffset")]
    assert [(int(words[1]), words[-1] == "true") for words in headers] == EXPECTED


@pytest.mark.parametrize("how", [("-o", "raw"), ("-f", "%o\\n")])
def test_where_no_mark_can_stand_nothing_damaged_is_shown(log, how):
    done = kdump("dump", log, "--include-damaged", *how)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"cannot be combined with -o raw or -f" in done.stderr


@pytest.mark.parametrize("output", ["jsonl", "json", "csv", "table", "text", "raw"])
def test_without_being_asked_nothing_damaged_is_shown(log, output):
    done = kdump("dump", log, "-o", output)
    assert done.returncode == 3
    assert done.stdout.count(b"value") >= 3
    assert b"k1" not in done.stdout
    assert b"k4" not in done.stdout


@pytest.mark.parametrize(
    ("on_error", "expected"),
    [("stop", [0, 1]), ("skip", [0, 1, 2, 3, 4, 5]), ("resync", [0, 1, 2, 3, 4, 5])],
)
@pytest.mark.parametrize("output", ["jsonl", "csv", "text"])
def test_where_it_goes_on_after_a_wrong_crc(log, on_error, expected, output):
    text = dump(log, "-o", output, "--on-error", on_error)
    found = [n for n in range(6) if f"k{n}" in text]
    assert found == expected


@pytest.mark.parametrize(("on_error", "expected"), [("stop", [0]), ("skip", [0]), ("resync", [0, 2, 3])])
@pytest.mark.parametrize("output", ["jsonl", "json", "csv", "table", "text", "raw"])
def test_where_it_goes_on_after_a_lying_length(tmp_path, on_error, expected, output):
    log = tmp_path / f"{0:020}.log"
    values = [forge.batch([forge.record(b"k", b"<%d>" % n)], base_offset=n) for n in range(4)]
    values[1] = values[1][:8] + (1 << 20).to_bytes(4, "big") + values[1][12:]
    log.write_bytes(b"".join(values))
    done = kdump("dump", log, "-o", output, "--on-error", on_error)
    assert done.returncode == 3
    assert [n for n in range(4) if b"<%d>" % n in done.stdout] == expected


def test_a_flipped_byte_of_a_payload_of_a_real_segment(tmp_path):
    log = tmp_path / SOURCE.name
    data = bytearray(SOURCE.read_bytes())
    data[120] ^= 1
    log.write_bytes(data)
    found = lines(log, "-o", "jsonl")
    assert [line["kind"] for line in found[:3]] == ["damage", "record", "record"]
    assert [line["crcValid"] for line in found[1:]] == [False] + [True] * (len(found) - 2)


def test_a_damaged_batch_that_cannot_be_unpacked_is_reported(tmp_path):
    source = GOLDEN / "brokers" / "4.2.2" / "c-gzip-0" / SOURCE.name
    log = tmp_path / SOURCE.name
    data = bytearray(source.read_bytes())
    data[150:170] = b"\xff" * 20
    log.write_bytes(data)
    done = kdump("dump", log, "-o", "jsonl", "--include-damaged")
    assert b"byte 0: the batch has a wrong crc. Only its records before the damage are printed (" in done.stderr
    batches = lines(log, "-o", "jsonl", "--batches")
    assert [line["crcValid"] for line in batches if line["kind"] == "batch"][:2] == [False, True]


def test_what_only_looks_like_a_batch_after_a_wrong_crc_is_not_shown(tmp_path):
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(one(0) + one(1, crc=7) + one(0, crc=9) + one(2))
    assert [line["offset"] for line in lines(log, "-o", "jsonl") if line["kind"] == "record"] == [0, 1, 2]


@pytest.mark.parametrize(
    "options", [(), ("--encoding", "hex"), ("--offset", "3..40"), ("--head", "7"), ("--include-damaged",)]
)
def test_text_is_the_same_without_the_kernel(options):
    folders = [
        GOLDEN / "brokers" / "4.2.2" / name for name in ("c-none-0", "c-zstd-0", "txn-0", "nulls-0", "compact-0")
    ]
    folders += sorted((GOLDEN / "damaged").glob("*"))[:6]
    done = kdump("dump", *folders, *options)
    general = kdump("dump", *folders, *options, env={**os.environ, "KDUMP_KERNEL": "off"})
    assert (done.returncode, done.stdout, done.stderr) == (general.returncode, general.stdout, general.stderr)
