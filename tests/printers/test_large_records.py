"""Large records are printed in pieces: the same bytes as at once, in the memory of a piece."""

import gzip
import io

import pytest

from kdump import kernel
from kdump.dump_log_segments import log_printer
from kdump.formats import record
from kdump.log_dirs.finder import Finder
from kdump.log_reader.reader import PartitionReader
from kdump.primitives.encodings import ENCODINGS, java_text, java_text_in_pieces, to_text
from kdump.printers import cells, classic_text, format_string, json_text, record_rows, table
from kdump.printers.output_formats import PrintOptions
from kdump.records import magic_2
from kdump.rows import columns, pieces
from kdump.rows.redaction import Redactor
from kdump.segments import lazy_records
from testing import forge
from tests.commands.test_limits import IDLE, LOG, MIB, peak_in_child

TEXTS = [
    b"",
    b"plain",
    b'quotes " and, commas\r\n\x00\x1b\x7f',
    "umlaut ä, snowman ☃, clef \U0001d11e, bidi \u202e, line \u2028".encode(),
    b"\xff\xfe broken",
    "cut ☃".encode()[:-1],
    b"\xed\xa0\x80",
    b'{"a": [1, 2.5e3,\n null, "\\u00e4"]}',
    b'{"a": [1, 2.5e3, nul]}',
    b'"\\ud800"',
    b" space",
    b"space ",
]


def in_small_pieces(monkeypatch, size=3):
    """Treat every record as large, and make pieces of a few bytes."""
    monkeypatch.setattr(pieces, "PIECE", size)
    for module in (cells, record_rows, format_string, json_text, lazy_records, log_printer, pieces):
        monkeypatch.setattr(module, "LARGE", 0, raising=False)
    monkeypatch.setattr(json_text, "_GATHERED", 2)
    monkeypatch.setattr(lazy_records, "LARGE_BATCH", 0)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("text", TEXTS, ids=repr)
@pytest.mark.parametrize("size", [3, 6, 9, 48])
def test_pieces_are_the_text(monkeypatch, size, text, encoding):
    whole = to_text(text, encoding)
    in_small_pieces(monkeypatch, size)
    made = pieces.to_pieces(text, encoding)
    for _ in range(2):
        assert "".join(made.texts()) == whole.text
    assert made.encoding == whole.encoding


def segment(folder):
    """A partition of records with every text as key, as value and in headers, some of them null."""
    (folder / "t-0").mkdir()
    headers = [(text, value) for text in TEXTS for value in (text, None)]
    records = [
        forge.record(key, value, offset=number, headers=headers[: number % 30])
        for number, (key, value) in enumerate((a, b) for a in [*TEXTS, None] for b in [*TEXTS, None])
    ]
    (folder / "t-0" / LOG).write_bytes(forge.batch(records[:100]) + forge.batch(records[100:], base_offset=100))
    return folder


ALL = columns.RECORD
FORMAT = "%t %p %o %T %k %s %h %K %S %%"
FORMS = {
    "jsonl": lambda out, encoding: record_rows.JsonLines(out, PrintOptions(ALL, encoding=encoding)),
    "json": lambda out, encoding: record_rows.JsonArray(out, PrintOptions(ALL, encoding=encoding)),
    "csv": lambda out, encoding: record_rows.Separated(out, PrintOptions(ALL, encoding=encoding)),
    "table": lambda out, encoding: table.Tables(Utf8(out), PrintOptions(ALL, encoding=encoding)),
    "text": lambda out, encoding: classic_text.DumpText(out, PrintOptions(encoding=encoding)),
    "format": lambda out, _: record_rows.Plain(out, PrintOptions(template=FORMAT)),
}


class Utf8(io.TextIOWrapper):
    """The text layer of an output, without a buffer."""

    def __init__(self, out):
        super().__init__(out, "utf-8", newline="\n", write_through=True)


def printed(folder, form, encoding):
    out = io.BytesIO()
    printer = FORMS[form](out, encoding)
    printer.begin()
    for part in Finder().find([str(folder)]):
        for item in PartitionReader().read(part):
            printer.found(item)
    printer.end()
    made = out.getvalue()
    getattr(printer, "console", printer)  # the text side closes what it wraps when it goes
    return made


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_in_pieces(tmp_path, monkeypatch, form, encoding):
    whole = printed(segment(tmp_path), form, encoding)
    in_small_pieces(monkeypatch)
    assert printed(tmp_path, form, encoding) == whole
    assert len(whole) > 1000


def packed(folder, *records):
    """A segment of one gzip batch."""
    (folder / "t-0").mkdir(parents=True)
    content = b"".join(records)
    batch = forge.batch(records, attributes=1, payload=gzip.compress(content, mtime=0))
    (folder / "t-0" / LOG).write_bytes(batch)
    return folder / "t-0"


COMMANDS = [
    *(["dump", "-o", form] for form in ("text", "jsonl", "json", "csv", "table", "raw")),
    ["dump", "-f", "%o %k %s %h\\n"],
    ["dump", "-o", "jsonl", "--encoding", "base64"],
    *(["dump", "-o", "text", "--encoding", form] for form in ("hex", "base64")),
    *(["get", "@0", "-o", form, "--in"] for form in ("text", "jsonl", "table")),
    ["get", "@0", "-o", "jsonl", "--batch", "--in"],
    ["explain", "t-0@0", "--in"],
    ["check"],
    ["stats"],
    ["stats", "--records"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("letter", [b"\xff", b'"'], ids=["not UTF-8", "quote"])
def test_a_value_just_below_the_limit_takes_two_and_a_half_times_the_limit(tmp_path, command, letter):
    limit = 32 * MIB
    folder = packed(tmp_path, forge.record(None, letter * (limit - MIB)))
    done = peak_in_child(*command, folder, "--max-batch-bytes", limit)
    assert done.status == 0
    assert done.peak < IDLE + 2.5 * limit


def test_many_headers_are_read_when_they_are_needed(tmp_path, monkeypatch):
    headers = [(b"k%d" % number, None if number % 3 else b"v" * number) for number in range(300)]
    (many,) = forge_records(forge.record(b"k", None, headers=headers))
    monkeypatch.setattr(magic_2, "kernel", type("Off", (), {"COMPILED": False}))
    (general,) = forge_records(forge.record(b"k", None, headers=headers))
    for found in (many, general):
        assert isinstance(found.headers, record.ManyHeaders)
        assert found.headers == tuple(headers)
        assert list(found.headers) == headers
        assert found.headers[-1] == headers[-1]
        assert found.headers[2:5] == headers[2:5]
        assert len(found.headers) == 300
    assert many == general
    assert hash(many) == hash(general)
    same = many.headers.changed(lambda header: header)
    assert many.headers == same == tuple(headers)
    assert len({many.headers, same, tuple(headers)}) == 1


def test_many_headers_are_hashed_when_they_are_read():
    headers = [(b"k%d" % number, None if number % 3 else b"v" * number) for number in range(300)]
    (many,) = forge_records(forge.record(b"k", None, headers=headers))
    redactor = Redactor(b"secret")
    hashed = redactor.record(many).headers
    assert isinstance(hashed, record.ManyHeaders)  # a tuple of objects would take 40 times the memory
    want = [(key, None if value is None else redactor.hash(value).encode()) for key, value in headers]
    assert list(hashed) == want
    assert hashed[3] == want[3]
    assert hashed == tuple(want)
    assert many.headers == tuple(headers)
    (few,) = forge_records(forge.record(b"k", None, headers=headers[:3]))
    assert redactor.record(few).headers == tuple(want[:3])


def forge_records(*made):
    batch = forge.batch(made)
    return list(magic_2.Batch(memoryview(batch), 0, len(batch)).records())


def test_a_record_of_headers_alone_takes_little_memory(tmp_path):
    """The general path reads a million headers a second: more of them would only take time."""
    count, limit = 1_000_000, 4 * MIB
    body = b"\0\0\0\x01\x01" + forge.varint(count) + b"\x02a\x01" * count
    many = packed(tmp_path / "many", forge.varint(len(body)) + body)
    one = packed(tmp_path / "one", forge.record(b"k", None))
    for command in (["dump", "-o", "raw"], ["check"], ["stats"]):
        idle, done = (peak_in_child(*command, folder, "--max-batch-bytes", limit) for folder in (one, many))
        assert (idle.status, done.status) == (0, 0)
        assert done.peak - idle.peak < 2.5 * limit


@pytest.mark.skipif(not kernel.COMPILED, reason="records are unread with the kernel alone")
def test_what_is_large_is_no_matter_of_a_batch_of_small_records():
    records = [forge.record(b"k", b"v" * 1000, offset=number) for number in range(5000)]
    data = forge.batch(records)
    batch = magic_2.Batch(memoryview(data), 0, len(data))
    unread = lazy_records.BatchRecords(batch, *batch.payload())
    assert not lazy_records.holds_large(unread)
    assert [len(some) for some in lazy_records.in_chunks(unread)] == [1000] * 5


@pytest.mark.parametrize("size", range(1, 8))
def test_text_of_java_in_pieces(size):
    for text in (
        *TEXTS,
        b"\xed",
        b"\xed\xa0",
        b"a\xed\xa0\x80\xed\xbf\xbfb",
        b"\xed\xed\xa0\xa0",
        b"\xe2\x98\xed\xa0",
        b"\xf0\x9f",
    ):
        assert b"".join(java_text_in_pieces(text, size)) == java_text(text)
