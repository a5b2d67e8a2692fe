"""JSON lines: every golden segment is converted and converted back; the lines match the schema; jq reads them."""

import io
import json
import shutil
import subprocess

import jsonschema
import pytest

from kdump.formats.record_layout import TIMESTAMP_TYPES
from kdump.log_dirs import local
from kdump.log_dirs.finder import Finder
from kdump.log_reader.batch_selection import Take
from kdump.log_reader.reader import PartitionReader
from kdump.primitives import compression
from kdump.printers.output_formats import PrintOptions
from kdump.printers.record_rows import JsonArray, JsonLines
from kdump.records.record_batch import RecordBatch
from kdump.rows import columns
from kdump.segments import resync as segments_read
from kdump.segments import walk
from testing import GOLDEN, ROOT, forge
from tests.helpers import rebuild
from tools.dev import row_schema

SEGMENTS = sorted(path for path in GOLDEN.rglob("*.log") if path.stat().st_size < 200_000)
SCHEMA = json.loads((ROOT / "kdump" / "rows" / "schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
KINDS = {
    name: jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})
    for name in columns.KINDS
}


def printed(*paths, batches=False, kind=JsonLines, **options) -> bytes:
    out = io.BytesIO()
    reader = PartitionReader(take=Take.BATCHES if batches else Take.RECORDS)
    printer = kind(out, PrintOptions(columns.BATCH if batches else columns.RECORD, batches=batches, **options))
    for partition in Finder().find(map(str, paths)):
        for item in reader.read(partition):
            printer.lost(item) if hasattr(item, "damage") else printer.found(item)
    printer.end()
    return out.getvalue()


def regions(path):
    with local.LocalFile(path) as source:
        return list(segments_read.read(source, on_error="resync"))


def name(path):
    return str(path.relative_to(GOLDEN))


def test_the_schema_is_that_of_the_columns():
    assert row_schema.build() == SCHEMA
    VALIDATOR.check_schema(SCHEMA)


def same(line, batch, path):
    """Compare the batch's fields in a line with the batch."""
    assert line["file"] == str(path)
    assert line["position"] == batch.position
    assert line["batchSize"] == batch.size
    assert (line["magic"], line["crc"]) == (batch.magic, batch.crc)
    assert compression.NAMES.index(line["codec"]) == batch.codec
    assert line["leaderEpoch"] == batch.partition_leader_epoch
    assert (line["producerId"], line["producerEpoch"]) == (batch.producer_id, batch.producer_epoch)
    assert (line["isTransactional"], line["isControl"]) == (batch.is_transactional, batch.is_control)
    assert line["deleteHorizonMs"] == batch.delete_horizon_ms
    assert line["batchAttributes"] == batch.attributes
    kinds = {word: code for code, word in TIMESTAMP_TYPES.items() if code is not None}
    assert kinds.get(line["timestampType"]) == batch.timestamp_type


def records_of(region):
    """Return the readable records of a batch."""
    try:
        yield from region.records()
    except walk.DamageError:
        return


@pytest.mark.parametrize("path", SEGMENTS, ids=name)
def test_a_segment_goes_to_jsonl_and_back(path):
    lines = rebuild.lines(printed(path))
    for line in lines:
        KINDS[line["kind"]].validate(line)
    found = iter([line for line in lines if line["kind"] == "record"])
    for batch in regions(path):
        if not isinstance(batch, RecordBatch):
            continue
        for record in records_of(batch):
            line = next(found)
            assert rebuild.record(line) == (record.key, record.value, record.headers)
            assert (line["offset"], line["timestampMs"]) == (record.offset, record.timestamp)
            assert (line["sequence"], line["recordAttributes"]) == (record.sequence, record.attributes)
            assert line["baseOffset"] <= record.offset
            same(line, batch, path)
    assert next(found, None) is None
    damaged = [region for region in regions(path) if not isinstance(region, RecordBatch)]
    assert len([line for line in lines if line["kind"] == "damage"]) >= len(damaged) - 1  # the last may be padding


def has_base_offset(batch):
    """Return whether the first offset is known: that of a broken wrapper is not."""
    try:
        return batch.base_offset is not None
    except walk.DamageError:
        return False


@pytest.mark.parametrize("path", SEGMENTS[::7], ids=name)
def test_batches_go_to_jsonl_and_back(path):
    lines = rebuild.lines(printed(path, batches=True))
    batches = [region for region in regions(path) if isinstance(region, RecordBatch) and has_base_offset(region)]
    found = [line for line in lines if line["kind"] == "batch"]
    for line, batch in zip(found, batches, strict=len(found) == len(lines)):
        KINDS["batch"].validate(line)
        same(line, batch, path)
        assert (line["baseOffset"], line["lastOffset"]) == (batch.base_offset, batch.last_offset)
        assert (line["count"], line["maxTimestampMs"]) == (batch.count, batch.max_timestamp)
        assert (line["baseSequence"], line["lastSequence"]) == (batch.base_sequence, batch.last_sequence)


def test_golden_segments_hold_every_magic_and_codec():
    found = {
        (region.magic, region.codec) for path in SEGMENTS for region in regions(path) if isinstance(region, RecordBatch)
    }
    assert found == {(magic, codec) for magic in (0, 1, 2) for codec in range(4)} | {(2, compression.ZSTD)}


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_jq_reads_every_line():
    data = b"".join(printed(path) for path in SEGMENTS[::5])
    read = subprocess.run(["jq", "-c", ".kind"], input=data, capture_output=True, check=True)
    assert read.stdout.count(b"\n") == data.count(b"\n")


def one(tmp_path, *records, **batch):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(forge.batch(list(records), **batch))
    return path


EVERY_BYTE = bytes(range(256))
AWKWARD = 'tab\t newline\n quote" back\\ nul\0 del\x7f c1\x85 ls\u2028 rlo\u202e astral\U0001f600 √'


@pytest.mark.parametrize("encoding", ["auto", "hex", "base64"])
def test_every_byte_can_be_had_back(tmp_path, encoding):
    payloads = [None, b"", EVERY_BYTE, AWKWARD.encode(), b"\xed\xa0\x80", b"\xc0\x80", b"plain"]
    written = [
        forge.record(data, data, offset=n, headers=[(data or b"", data), (b"\xff", data), (b"\xff", b"2")])
        for n, data in enumerate(payloads)
    ]
    out = printed(one(tmp_path, *written), encoding=encoding)
    assert not any(byte < 32 or byte == 127 for byte in out.replace(b"\n", b""))
    for data, line in zip(payloads, rebuild.lines(out), strict=True):
        key, value, headers = rebuild.record(line)
        assert (key, value) == (data, data)
        assert headers == ((data or b"", data), (b"\xff", data), (b"\xff", b"2"))


def test_utf8_replaces_what_is_none(tmp_path):
    (line,) = rebuild.lines(printed(one(tmp_path, forge.record(b"k\xff", b"v")), encoding="utf8"))
    assert (line["key"], line["value"]) == ("k\ufffd", "v")
    assert "keyEncoding" not in line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": 1,\n "b": [1e2, null]}', {"a": 1, "b": [100, None]}),
        (b"null", None),
        (b'"\\ud83d\\ude00\xe2\x80\xa8"', "\U0001f600\u2028"),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
def test_json_values_stand_as_they_are(tmp_path, text, value):
    (line,) = rebuild.lines(printed(one(tmp_path, forge.record(None, text)), encoding="json"))
    assert (line["value"], line["valueEncoding"]) == (value, "json")


@pytest.mark.parametrize(
    "text", [b"{", b"NaN", b"[Infinity]", b'"\\ud800"', b'"\\udc00\\ud800"', b"[" * 100_000, b"", b"1" * 5000]
)
def test_what_is_no_json_stands_as_text(tmp_path, text):
    (line,) = rebuild.lines(printed(one(tmp_path, forge.record(None, text)), encoding="json"))
    assert rebuild.record(line)[1] == text
    (line,) = rebuild.lines(printed(one(tmp_path, forge.record(None, b"\xff")), encoding="json"))
    assert line["valueEncoding"] == "base64"


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, None),
        (-2, "1969-12-31T23:59:59.998Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (253402300799999, "9999-12-31T23:59:59.999Z"),
        (253402300800000, None),
        (-62135596800000, "0001-01-01T00:00:00.000Z"),
        (-62135596800001, None),
        ((1 << 63) - 1, None),
        (-(1 << 63), None),
    ],
)
def test_timestamps(tmp_path, timestamp, text):
    (line,) = rebuild.lines(printed(one(tmp_path, forge.record(None, None), base_timestamp=timestamp)))
    assert (line["timestampMs"], line["timestamp"]) == (timestamp, text)
    KINDS["record"].validate(line)


def test_control_records_say_what_they_are(tmp_path):
    marker = forge.record(b"\0\0\0\1", b"\0\0\0\0\0\7")
    (line,) = rebuild.lines(printed(one(tmp_path, marker, attributes=0x30, producer_id=1)))
    assert (line["isControl"], line["controlType"], line["coordinatorEpoch"]) == (True, "COMMIT", 7)
    other = forge.record(b"\0\0\0\x63", b"x")
    (line,) = rebuild.lines(printed(one(tmp_path, other, attributes=0x20)))
    assert line["controlType"] == "UNKNOWN(99)"
    short = forge.record(b"\0", None)
    (line,) = rebuild.lines(printed(one(tmp_path, short, attributes=0x20)))
    assert "controlType" not in line


def test_an_inner_message_with_a_wrong_crc_is_not_valid(tmp_path):
    inner = [(0, forge.message(1, b"a", b"b")), (1, forge.message(1, b"c", b"d", crc=5))]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(forge.wrapper(1, 1, inner))
    lines = rebuild.lines(printed(path))
    assert [line["crcValid"] for line in lines] == [True, False]
    assert [line["baseOffset"] for line in lines] == [0, 0]


def test_marks_of_the_log_dir(tmp_path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    records = [forge.record(b"%d" % n, None, offset=n) for n in range(6)]
    (folder / "00000000000000000000.log").write_bytes(forge.batch(records))
    (tmp_path / "replication-offset-checkpoint").write_text("0\n2\nu 0 1\nt 0 4\n")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    lines = rebuild.lines(printed(folder))
    assert [line.get("aboveHighWatermark") for line in lines] == [None] * 4 + [True] * 2
    assert [line.get("belowLogStart") for line in lines] == [True] * 2 + [None] * 4


def test_damage_is_a_line(tmp_path):
    path = one(tmp_path, forge.record(b"k", b"v"))
    path.write_bytes(path.read_bytes() + forge.batch([forge.record(b"k", b"v")], base_offset=1, crc=1) + b"rest")
    lines = rebuild.lines(printed(path))
    assert [line["kind"] for line in lines][:2] == ["record", "damage"]
    assert (
        sum(line["size"] for line in lines if line["kind"] == "damage") == path.stat().st_size - lines[0]["batchSize"]
    )
    for line in lines:
        KINDS[line["kind"]].validate(line)


def test_a_record_that_breaks_off_is_damage_after_the_good_ones(tmp_path):
    path = one(tmp_path, forge.record(b"k", b"v"), b"\x7f", count=2)
    good, bad = rebuild.lines(printed(path))
    assert (good["kind"], good["key"]) == ("record", "k")
    assert (bad["kind"], bad["position"], bad["size"]) == ("damage", 0, path.stat().st_size)


def test_an_array_of_the_same_objects(tmp_path):
    path = one(tmp_path, *(forge.record(b"%d" % n, None, offset=n) for n in range(3)))
    assert json.loads(printed(path, kind=JsonArray)) == rebuild.lines(printed(path))
    path.write_bytes(b"")
    assert json.loads(printed(path, kind=JsonArray)) == []


def test_a_path_that_is_not_utf8(tmp_path):
    path = one(tmp_path, forge.record(None, None))
    other = path.with_name(b"a\xff.log".decode("utf-8", "surrogateescape"))
    path.rename(other)
    (line,) = rebuild.lines(printed(other))
    assert line["file"].endswith(r"a\xff.log")
