"""``kdump get``: one record, field by field."""

import pytest

from testing import GOLDEN, forge
from testing.processes import kdump
from tests.helpers import log_dirs, rebuild
from tests.helpers.log_dirs import replica
from tests.helpers.segments import data

BROKER = GOLDEN / "brokers" / "4.2.2"


def get(*args, status=0):
    done = kdump("get", *args)
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def test_a_record_with_all_its_fields():
    out, _ = get("headers-0@3", "--in", BROKER)
    fields = dict(line.split(None, 1) for line in out.splitlines() if " " in line.strip())
    assert (fields["topic"], fields["offset"], fields["key"]) == ("headers", "3", "k3")
    assert fields["value"] == "segment delta error city"


def test_as_json_with_its_batch():
    (line,) = rebuild.lines(get("headers-0@3", "--in", BROKER, "-o", "jsonl")[0].encode())
    assert (line["offset"], line["key"]) == (3, "k3")
    lines = rebuild.lines(get("headers-0@3", "--in", BROKER, "-o", "jsonl", "--batch")[0].encode())
    assert [line["kind"] for line in lines] == ["batch"] + ["record"] * lines[0]["count"]


def test_bytes_beside_their_fields():
    out, _ = get("headers-0@3", "--in", BROKER, "--hexdump")
    assert "00000010  02                                               magic                 2" in out
    assert "6b 33                                            key                   2 bytes       |k3|" in out
    assert out.count("offsetDelta ") == 1
    whole, _ = get("headers-0@3", "--in", BROKER, "--hexdump", "--batch")
    assert whole.count("offsetDelta ") == 9
    packed, _ = get("c-zstd-0@3", "--in", BROKER, "--hexdump")
    assert "of zstd" in packed
    assert "\n+000000" in packed


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("c-zstd-0@30000", "the last offset of the log is 223"),
        ("compact-0@0", "the log begins at offset 92"),
        ("compact-0@150", "offset 170 follows offset 93"),
        ("nosuch-0@1", f"no segment of nosuch-0 is in {BROKER}"),
    ],
)
def test_what_is_not_there_is_explained(what, says):
    out, errors = get(what, "--in", BROKER, status=5)
    assert out == ""
    assert says in errors


def test_an_offset_that_compaction_took_out_of_a_batch(tmp_path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / "0.log").write_bytes(
        forge.batch([forge.record(b"a", b"b", offset=n) for n in (0, 4)], last_offset_delta=4)
    )
    assert "the batch of offsets 0 to 4 does not have this record" in get("t-0@2", "--in", tmp_path, status=5)[1]


def test_each_partition_without_the_offset_is_named(tmp_path):
    for name, base in (("a-0", 0), ("b-0", 2000)):
        content = forge.batch([forge.record(b"k", b"v")], base_offset=base)
        log_dirs.write(tmp_path, name, {base: content})
    says = get("@500", "--in", tmp_path, status=5)[1]
    assert "a-0: the last offset of the log is 0; b-0: the log begins at offset 2000" in says


def test_the_ends_of_one_named_segment_are_not_those_of_the_log(tmp_path):
    contents = {base: forge.batch([forge.record(b"k", b"v")], base_offset=base) for base in (0, 5, 9)}
    folder = log_dirs.write(tmp_path, "a-0", contents)
    path = folder / f"{5:020}.log"
    assert "the named part of the log begins at offset 5" in get("a-0@0", "--in", path, status=5)[1]
    assert "the last offset of the named part of the log is 5" in get("a-0@9", "--in", path, status=5)[1]
    assert "the last offset of the log is 9" in get("a-0@10", "--in", folder, status=5)[1]


def test_leftovers_are_read_with_the_option_that_the_note_names(tmp_path):
    content = forge.batch([forge.record(b"k", b"v")])
    log_dirs.write(tmp_path, f"a-0.{'3c' * 16}-delete", {f"{0:020}.log.deleted": content})
    assert "(--leftovers reads it)" in get("@0", "--in", tmp_path, status=1)[1]
    for what in ("@0", "a-0@0"):
        assert get(what, "--in", tmp_path, "--leftovers", "-o", "jsonl")[0].count('"key":"k"') == 1


@pytest.mark.parametrize("what", ["@1", "foo-7@1"])
def test_a_loose_segment_is_looked_into(tmp_path, what):
    path = tmp_path / "from the customer.log"
    path.write_bytes(b"".join(forge.batch([forge.record(b"k%d" % n, b"v")], base_offset=n) for n in range(3)))
    (line,) = rebuild.lines(get(what, "--in", path, "-o", "jsonl")[0].encode())
    assert (line["offset"], line["key"]) == (1, "k1")
    assert "the last offset of the log is 2" in get("@9", "--in", path, status=5)[1]
    assert "no segment is in" in get("@9", "--in", tmp_path / "*.index", status=1)[1]


def test_a_folder_of_segments_is_looked_into(tmp_path):
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    (evidence / f"{0:020}.log").write_bytes(forge.batch([forge.record(b"k", b"v")]))
    (line,) = rebuild.lines(get("foo-7@0", "--in", evidence, "-o", "jsonl")[0].encode())
    assert line["key"] == "k"
    assert get("foo-7@0", "--in", tmp_path, status=5)[0] == ""


def test_records_of_kafkas_own_topics_in_words():
    (line,) = rebuild.lines(
        get("__consumer_offsets-0@0", "--in", BROKER, "-o", "jsonl", "--decode", "auto")[0].encode()
    )
    assert line["decoded"]["key"]
    table = get("__consumer_offsets-0@0", "--in", BROKER, "-o", "table", "--decode", "auto")[0]
    assert '{"group":' in table
    whole = get("txn-0@85", "--in", BROKER, "-o", "table", "--batch")[0]
    assert "baseOffset" in whole
    assert "COMMIT" in whole


def test_wrong_usage_and_damage(tmp_path):
    assert "names no record" in get("t-0", "--in", tmp_path, status=2)[1]
    assert (
        "cannot be combined with -o, --fields or --decode"
        in get("t-0@1", "--in", tmp_path, "--hexdump", "-o", "jsonl", status=2)[1]
    )
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / "0.log").write_bytes(forge.batch([forge.record(b"a", b"b")], crc=1))
    out, errors = get("t-0@0", "--in", tmp_path, "--hexdump", status=3)
    assert "the checksum is wrong" in errors
    assert "1 (WRONG: the bytes have" in out
    assert "|a|" in out
    (folder / "0.log").write_bytes(b"nothing that is a batch, nothing at all")
    assert "was not found" in get("t-0@0", "--in", tmp_path, status=3)[1]


@pytest.mark.parametrize("offset", [0, 1])
def test_a_batch_with_a_broken_record_is_shown_up_to_it(tmp_path, offset):
    folder = tmp_path / "t-0"
    folder.mkdir()
    records = [forge.record(b"k", b"v", offset=offset) for offset in range(2)]
    records.append(b"\x02\x00")  # a record of one byte
    (folder / "00000000000000000000.log").write_bytes(forge.batch(records))
    out, errors = get(f"t-0@{offset}", "--in", tmp_path, "-o", "jsonl", "--batch", status=3)
    assert [line["kind"] for line in rebuild.lines(out.encode())] == ["batch", "record", "record"]
    (line,) = errors.strip().splitlines()
    assert "byte 0: 81 bytes cannot be read: record 3 of 3" in line
    assert str(folder) in line


PACKED = 0x04  # zstd


@pytest.mark.parametrize(
    ("attributes", "records", "says"),
    [
        (PACKED, [b"no zstd"], "the zstd stream is broken"),
        (0, [forge.record(b"a", b"b"), b"\x7fno record"], "its size does not fit"),
        (0, [forge.record(b"a", b"b", offset=n) for n in (0, 4, 2)], "record 2 of 3 has offset 9 instead of 6"),
    ],
)
def test_a_record_that_cannot_be_read_is_no_work_of_the_cleaner(tmp_path, attributes, records, says):
    folder = tmp_path / "t-0"
    folder.mkdir()
    content = forge.batch(records, base_offset=5, attributes=attributes, count=3, last_offset_delta=2)
    (folder / f"{5:020}.log").write_bytes(content)
    for options in ((), ("--batch",), ("--hexdump",), ("--hexdump", "--batch")):
        out, errors = get("t-0@6", "--in", tmp_path, *options, status=3)
        assert "t-0@6 cannot be read: the batch of offsets 5 to 7 has a correct CRC, but a broken record: " in errors
        assert says in errors
        assert "compaction" not in errors
        assert bool(out) == bool(options)
    assert "lastOffsetDelta       2" in out
    shown = "".join(line[11:58] for line in out.splitlines()[1:])
    assert bytes.fromhex(shown) == content


@pytest.mark.parametrize("privacy", ["--no-payload", "--redact"])
def test_bytes_that_cannot_be_read_are_payloads(tmp_path, monkeypatch, privacy):
    monkeypatch.setenv("KDUMP_REDACT_KEY", "of a test")
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(forge.batch([forge.record(b"a", b"b"), b"\x7fsecret"]))
    out, errors = get("t-0@1", "--in", tmp_path, "--hexdump", privacy, status=3)
    assert "7 bytes that cannot be read" in out
    assert "73 65 63" not in out
    assert "secret" not in out + errors


def test_two_records_at_one_offset_of_a_log_are_shown_with_a_note(tmp_path):
    replica(tmp_path, {0: data(0, 3, leader_epoch=3) + data(0, 3, leader_epoch=4)})
    got = kdump("get", "orders-0@1", "--in", str(tmp_path))
    assert (got.returncode, got.stdout.count(b"leaderEpoch ")) == (0, 2)
    assert b"2 batches hold offset 1 (leader epochs 3, 4): the batch with the highest epoch counts" in got.stderr
