"""Decoded keys and values in text and tables."""

import json
import os
import re
import struct

import pytest

from kdump import kernel
from kdump.commands.root import root
from kdump.primitives import compression
from kdump.printers.classic_text import _Printer
from kdump.printers.record_rows import JsonLines, RecordRows, Separated
from kdump.printers.table import Tables
from testing import forge
from testing.processes import kdump
from tests.helpers import log_dirs
from tests.schemas.test_store import schema

AVRO = json.dumps(
    {
        "type": "record",
        "name": "shop.Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "x", "type": "string"}],
    }
)
ORDER = b"\0\0\0\0\1\x0e\x02a"
WINDOW = struct.pack(">qi", 1_789_999_980_000, 0)
SESSION = struct.pack(">qq", 1_790_000_001_351, 1_789_999_980_000)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    versions = [schema("orders-value", 1, 1, AVRO), schema("old-value", 1, 2, '"int"', deleted=True)]
    made = [forge.record(*pair, offset=offset) for offset, pair in enumerate(versions)]
    log_dirs.write(folder, "_schemas-0", {0: forge.batch(made, count=2)})
    records = [
        (b"k", ORDER),
        (b"k", ORDER + b"zz"),
        (b"\0\0\0\0\2\2", ORDER[:-1]),
        (None, b"\0\0\0\0\x09a"),
        (b"k", b"1"),
    ]
    made = [forge.record(*pair, offset=offset) for offset, pair in enumerate(records)]
    log_dirs.write(folder, "orders-0", {0: forge.batch(made, count=len(made))})
    keys = [b"c\n1" + WINDOW, b"c2" + SESSION, struct.pack(">qb", 1_789_999_980_000, 1) + b"c3"]
    made = [forge.record(key, b"v", offset=offset) for offset, key in enumerate(keys)]
    log_dirs.write(folder, "app-s-changelog-0", {0: forge.batch(made, count=len(made))})
    return folder


ORIGIN = "  decoded value (avro, schema id 1, orders-value version 1, shop.Order): "


def decoded_lines(out):
    return [line for line in out.decode().splitlines() if line.startswith("  decoded")]


def test_text_has_a_line_for_each_decoded_side(logs):
    done = kdump("dump", logs, "--topic", "orders", "--decode", "auto")
    assert (done.returncode, done.stderr) == (0, b"")
    assert decoded_lines(done.stdout) == [
        ORIGIN + '{"id":7,"x":"a"}',
        ORIGIN + '{"id":7,"x":"a"} (trailing-bytes: 2 bytes are left after the value)',
        "  decoded key (avro, schema id 2, old-value version 1 soft-deleted): 1",
        "  decoded value (avro, schema id 1, orders-value version 1): "
        "payload-invalid: a length is 1, but 0 bytes are left",
        "  decoded value (schema id 9): schema-missing: no schema of _schemas has the id 9",
    ]
    plain = kdump("dump", logs, "--topic", "orders").stdout
    assert b"".join(line for line in done.stdout.splitlines(True) if not line.startswith(b"  decoded")) == plain
    in_processes = kdump("dump", logs, "--topic", "orders", "--decode", "auto", "--jobs", "2")
    assert (in_processes.stderr, in_processes.stdout) == (b"", done.stdout)


def test_text_leaves_out_sides_that_are_not_printed(logs):
    done = kdump("dump", logs, "--topic", "orders", "--decode", "auto", "--keys-only")
    assert decoded_lines(done.stdout) == ["  decoded key (avro, schema id 2, old-value version 1 soft-deleted): 1"]
    assert decoded_lines(kdump("dump", logs, "--topic", "orders", "--decode", "auto", "--no-payload").stdout) == []


def test_windows_of_keys(logs):
    done = kdump("dump", logs, "--topic", "app-s-changelog", "--decode", "auto")
    assert decoded_lines(done.stdout) == [
        '  decoded key (@ 2026-09-21T14:13:00.000Z): "c\\n1"',
        '  decoded key (@ 2026-09-21T14:13:00.000Z/2026-09-21T14:13:21.351Z): "c2"',
        '  decoded key (@ 2026-09-21T14:13:00.000Z left): "c3"',
    ]
    table = kdump("dump", logs, "--topic", "app-s-changelog", "--decode", "auto", "-o", "table").stdout.decode()
    for text in (
        "c\\n1 @ 2026-09-21T14:13:00.000Z ",
        "c2 @ 2026-09-21T14:13:00.000Z/2026-",
        "c3 @ 2026-09-21T14:13:00.000Z left",
    ):
        assert text in table


@pytest.mark.parametrize("kernel", ["on", "off"])
def test_tables_show_the_data_in_place_of_the_bytes(logs, kernel):
    env = os.environ | {"KDUMP_KERNEL": kernel}
    done = kdump("dump", logs, "--topic", "orders", "--decode", "auto", "-o", "table", env=env)
    head, _, *rows = [re.split(r" {2,}", line.strip()) for line in done.stdout.decode().splitlines() if line.strip()]
    assert head == ["topic", "partition", "offset", "timestamp", "key", "value"]
    broken = "(payload-invalid: a length is 1, but 0 bytes are left) \\x00\\x00\\x00\\x00\\x01\\x0e\\x02"
    assert [row[4:] for row in rows] == [
        ["k", '{"id":7,"x":"a"}'],
        ["k", '(trailing-bytes: 2 bytes are left after the value) {"id":7,"x":"a"}'],
        ["1", broken],
        ["null", "(schema-missing: no schema of _schemas has the id 9) \\x00\\x00\\x00\\x00\\ta"],
        ["k", "1"],
    ]
    got = kdump("get", "orders-0@2", "--in", logs, "--decode", "auto", "-o", "table").stdout.decode()
    assert broken in got


def test_get_prints_chosen_fields(logs):
    chosen = ["--decode", "auto", "--fields", "offset,value.x,value.absent"]
    done = kdump("get", "orders-0@0", "--in", logs, *chosen)
    assert done.stdout.decode().split() == ["offset", "0", "value.x", "a", "value.absent", "null"]
    done = kdump("get", "orders-0@0", "--in", logs, "-o", "jsonl", *chosen)
    assert json.loads(done.stdout) == {"offset": 0, "value.x": "a", "value.absent": None}
    refused = kdump("get", "orders-0@0", "--in", logs, "--fields", "value.x")
    assert (refused.returncode, b"add --decode auto" in refused.stderr) == (2, True)
    refused = kdump("get", "orders-0@0", "--in", logs, "--no-payload", *chosen)
    assert (refused.returncode, b"--no-payload omit this column" in refused.stderr) == (2, True)


@pytest.mark.parametrize("framed", [None, 0, 7, 39])
def test_text_of_plain_batches_is_that_of_the_kernel(logs, tmp_path, framed):
    batches = []
    for number in range(40):
        records = [forge.record(b"k%d" % n, b"value %d" % n, offset=n) for n in range(50)]
        if number == framed:
            records[7] = forge.record(b"k", ORDER, offset=7)
        batches.append(forge.batch(records, base_offset=number * 50))
    broken = bytearray(batches[20])
    broken[-1] ^= 1
    log_dirs.write(tmp_path, "orders-0", {0: b"".join([*batches[:20], bytes(broken), *batches[21:]])})
    plain = kdump("dump", tmp_path).stdout
    for env in ({}, {"KDUMP_KERNEL": "off"}):
        done = kdump("dump", tmp_path, "--decode", "auto", "--schemas", logs, env=os.environ | env)
        assert done.returncode == 3
        assert len(decoded_lines(done.stdout)) == (framed is not None)
        lines = done.stdout.splitlines(keepends=True)
        assert b"".join(line for line in lines if not line.startswith(b"  decoded")) == plain


PLAIN = [b"k%d" % number for number in range(300)]
FRAMED = {
    "no frame": {},
    "value": {7: (b"k", ORDER, [])},
    "key and null": {0: (b"\0\0\0\0\2\2", None, []), 299: (None, ORDER, [])},
    "header": {150: (b"k", b"\x02", [(b"a", b"b"), (b"__value_schema_id", b"\0\0\0\0\2")])},
    "unknown id": {299: (b"k", b"\0\0\0\0\x09a", [])},
    "like a frame": {3: (b"\0\0\0\0", b"Obj\2", [(b"__value_schema_ie", b"\0\0\0\0\2")]), 4: (b"\xc3\1", b"\xc3", [])},
}


@pytest.mark.parametrize(
    ("codec", "size"), [(compression.NONE, 20), (compression.NONE, 4000), (compression.GZIP, 1000)]
)
def test_every_format_decodes_in_the_kernel_as_without_it(logs, tmp_path, codec, size):
    """Batches of 300 records, small ones and ones of more than a megabyte, which are printed in parts."""
    batches = []
    for base, changed in enumerate(FRAMED.values()):
        records = [
            forge.record(shown[0], shown[1], headers=shown[2], offset=number)
            for number, key in enumerate(PLAIN)
            for shown in [changed.get(number, (key, b"v" * size, []))]
        ]
        payload = compression.compress(codec, b"".join(records))
        made = forge.batch(records, payload=payload, attributes=codec, base_offset=300 * base)
        batches.append(made)
    log_dirs.write(tmp_path, "orders-0", {0: b"".join(batches)})
    formats = [["-o", "csv"], ["-o", "table"], ["--jobs", "3"]]
    for options in [*formats, ["-o", "jsonl"], ["--keys-only"], ["--encoding", "hex"]] if size == 20 else formats:
        words = ["dump", tmp_path, "--decode", "auto", "--schemas", logs, *options]
        compiled, plain = (kdump(*words, env=os.environ | {"KDUMP_KERNEL": kernel}) for kernel in ("on", "off"))
        assert (compiled.returncode, compiled.stderr) == (plain.returncode, plain.stderr) == (0, b"")
        assert compiled.stdout == plain.stdout
        assert b"schema-missing" in plain.stdout or "--keys-only" in options


@pytest.mark.skipif(not kernel.COMPILED, reason="the kernel prints")
@pytest.mark.parametrize("ending", ["text", "jsonl", "csv", "table"])
def test_records_without_frames_are_printed_by_the_kernel(logs, tmp_path, monkeypatch, capfdbinary, ending):
    records = [forge.record(key, b"v", offset=number) for number, key in enumerate(PLAIN)]
    log_dirs.write(tmp_path, "orders-0", {0: b"".join(forge.batch(records, base_offset=300 * n) for n in range(3))})
    monkeypatch.setattr(_Printer, "record", refuse)
    monkeypatch.setattr(RecordRows, "records", refuse)
    for printer in (Separated, JsonLines):
        monkeypatch.setattr(printer, "records", refuse)
    stream = Tables._stream
    rows = []
    monkeypatch.setattr(Tables, "_stream", lambda self, row: (rows.append(row), stream(self, row))[1])
    words = ["dump", str(tmp_path), "--decode", "auto", "--schemas", str(logs), "-o", ending, "--jobs", "1"]
    assert not root.main(words, standalone_mode=False)
    assert len(rows) <= len(PLAIN)  # the first batch decides the widths of a table
    assert capfdbinary.readouterr().out.count(b"k299") == 3


def refuse(*_):
    raise AssertionError("a record without a frame is printed one by one")
