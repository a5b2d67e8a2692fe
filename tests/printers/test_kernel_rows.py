"""Rows and classic text from the kernel equal those of the general path, byte for byte, for any records."""

import io
import threading
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kdump import kernel
from kdump.log_dirs.finder import Finder
from kdump.log_reader.batch_selection import Take
from kdump.log_reader.filter import Filter
from kdump.log_reader.reader import PartitionReader
from kdump.parallel import costs
from kdump.parallel.chunks import _ChunkThreads
from kdump.primitives import compression
from kdump.primitives.encodings import ENCODINGS
from kdump.primitives.timestamps import FIRST, LAST
from kdump.printers.classic_text import DumpText
from kdump.printers.output_formats import PrintOptions
from kdump.printers.record_rows import JsonArray, JsonLines, Plain, Separated
from kdump.printers.table import Tables
from kdump.records import magic_2
from kdump.rows import columns as rows
from kdump.rows.redaction import Redactor
from kdump.rows.selection import SegmentFacts
from kdump.rows.values import MARKS
from kdump.segments import read_ahead
from kdump.segments.batch_runs import Run
from kdump.segments.lazy_records import BatchRecords, RunRecords
from testing import GOLDEN, forge
from tests.helpers.in_place import InPlace

if not kernel.COMPILED:
    pytest.skip("there is no kernel", allow_module_level=True)
from kdump.dump_log_segments import kernel_lines
from kdump.kernel import digests
from kdump.kernel import texts as kernel_texts
from kdump.printers import kernel_rows

NAME = "00000000000000000000.log"
REDACTOR = Redactor(b"s" * 70)


def without_values(out, options):
    return DumpText(out, options._replace(values=False))


def without_payload(out, options):
    return DumpText(out, options._replace(keys=False, values=False))


def values(out, options):
    return Plain(out, options._replace(delimiter="\\0|"))


def formatted(out, options):
    return Plain(out, options._replace(template="%t %p %o %T %k %s %h %K %S %R %% %k\\n"))


ENDINGS = [JsonLines, JsonArray, Separated, DumpText, without_values, without_payload, values, formatted]


def printed(
    path, *, unread, runs=None, take=Take.RUNS, kind=JsonLines, columns=rows.RECORD, mark=None, out=None, **options
):
    """Return the output for a path or its partitions, and the number of batches that the kernel printed."""
    out = io.BytesIO() if out is None else out
    reader = PartitionReader(
        take=take if unread else Take.RECORDS,
        filter=options.pop("filter", Filter()),
        include_damaged=runs is None,
    )
    printer = kind(out, PrintOptions(columns, **options))
    taken = 0
    for partition in path if isinstance(path, list) else found(path):
        for item, made in reader.read_making(partition, printer.make):
            if hasattr(item, "damage"):
                printer.lost(item)
                continue
            if isinstance(item.records, RunRecords):
                taken += 1 if runs else item.records.count_of_batches
            taken += isinstance(item.records, BatchRecords) and not runs
            printer.found(item if mark is None else item._replace(file=mark), made)
    printer.end()
    return out.getvalue(), taken


def found(path):
    return list(Finder().find([str(path)]))


def same(path, **options):
    """Assert equal output both ways; return the number of batches that the kernel may print."""
    path = found(path)
    got, taken = printed(path, unread=True, **options)
    want, none = printed(path, unread=False, **options)
    assert got == want
    assert none == 0
    return taken


def same_in_runs(path, **options):
    """Assert equal output both ways, many batches together; return the number of runs that the kernel may print."""
    path = found(path)
    got, taken = printed(path, unread=True, runs=True, **options)
    unchecked, _ = printed(path, unread=True, runs=True, take=Take.UNCHECKED_RUNS, **options)
    want, none = printed(path, unread=False, runs=False, **options)
    assert got == want
    assert unchecked == want
    assert none == 0
    assert printed(path, unread=True, runs=True, out=InPlace(len(want) // 2), **options)[0] == want
    return taken


@pytest.mark.parametrize("path", sorted(GOLDEN.rglob("*.log")), ids=lambda path: str(path.relative_to(GOLDEN)))
def test_golden_segments_print_the_same(path):
    for kind in ENDINGS:
        same(path, kind=kind)
        same_in_runs(path, kind=kind)
    for encoding in ("json", "hex"):
        same(path, encoding=encoding)
        same_in_runs(path, kind=Separated, encoding=encoding)
    for kind in (JsonLines, Separated, DumpText, formatted):
        same_in_runs(path, kind=kind, redactor=REDACTOR)


@pytest.mark.parametrize("stride", [64, 16, 0])
def test_every_byte_at_every_place_prints_the_same(stride, tmp_path):
    if kernel_texts.look_at(stride) != stride:
        pytest.skip("this processor cannot look at so many bytes at once")
    try:
        for odd in [*range(128), "é".encode(), b'"\x1f"\\"', b'""""""""', b"\xff"]:
            mark = bytes([odd]) if isinstance(odd, int) else odd
            texts = [bytes(97 + place % 26 for place in range(size)) for size in range(73)]
            texts += [text[:place] + mark + text[place:] for text in texts[::5] for place in range(len(text) + 1)]
            body = [
                forge.record(text[len(text) // 2 :], text, offset=number, headers=[(text[:9], text[9:])])
                for number, text in enumerate(texts)
            ]
            path = tmp_path / NAME
            path.write_bytes(forge.batch(body))
            assert same(path)
            path.write_bytes(forge.batch([forge.record(None, mark * 40, headers=[])]))
            assert same(path)  # no byte follows the last text
    finally:
        kernel_texts.look_at(64)


@pytest.mark.parametrize("alone", [False, True], ids=["instructions", "words"])
def test_keyed_hashes_of_any_size(alone, tmp_path):
    digests.mix_words(alone)
    try:
        body = [forge.record(b"k" * size, bytes(range(256))[:size] * 3, offset=size) for size in range(200)]
        path = tmp_path / NAME
        path.write_bytes(forge.batch(body))
        for secret in (b"s", b"s" * 64, b"s" * 200):
            assert same(path, redactor=Redactor(secret))
    finally:
        digests.mix_words(alone=False)


@pytest.mark.parametrize("alone", [False, True], ids=["instructions", "words"])
@pytest.mark.parametrize("kind", [JsonLines, Separated, DumpText, formatted])
@pytest.mark.parametrize("limit", [1, 1 << 20])
def test_hashes_that_wait_go_to_their_places(limit, kind, alone, tmp_path, monkeypatch):
    """Rows grow, move and start again while hashes wait. The general path gets names that are not text."""
    monkeypatch.setattr(kernel_rows, "CHUNK", limit)
    digests.mix_words(alone)
    try:
        names = [b"h", b"", b"\xff", b'"', "é".encode()]
        body = [
            forge.record(
                None if number % 3 == 0 else b"k" * number,
                None if number % 7 == 0 else b"v" * (number * 37 % 300),
                offset=number,
                headers=[
                    (names[number % 5 if at == 30 else 0], None if at % 11 == 5 else b"x" * (number * at % 130))
                    for at in range(number % 40)
                ],
            )
            for number in range(180)
        ]
        path = tmp_path / NAME
        path.write_bytes(b"".join(forge.batch(body, base_offset=60 * at) for at in range(6)))
        assert same(path, kind=kind, redactor=REDACTOR) == 6
        assert same_in_runs(path, kind=kind, redactor=REDACTOR)
    finally:
        digests.mix_words(alone=False)


TEXT = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace")),
    st.text(
        alphabet='"\\/ab\x00\x1f\x7f\x80\x9f\xa0é\u2027\u2028\u202e\u2039\u2066\u2069\u206a東😀\n\r\t', max_size=70
    ).map(str.encode),
    st.sampled_from(
        [b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80", b"\xc2", b'{"a": [1, "x\\n"]}', b"NaN"]
    ),
)
TIME = st.one_of(
    st.integers(-(1 << 61), 1 << 61),
    st.integers(FIRST - 2000, FIRST + 2000),
    st.integers(LAST - 2000, LAST + 2000),
    st.integers(-90_000_000, 90_000_000),
    st.integers(FIRST, LAST),
)
RECORDS = st.lists(
    st.tuples(TEXT, TEXT, st.lists(st.tuples(TEXT.map(lambda text: text or b""), TEXT), max_size=4), TIME),
    min_size=1,
    max_size=5,
)


@settings(max_examples=300, deadline=None)
@given(
    made=RECORDS,
    kind=st.sampled_from(ENDINGS),
    redactor=st.sampled_from([None, None, REDACTOR]),
    encoding=st.sampled_from(ENCODINGS),
    header=st.sampled_from([{}, {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0}, {"attributes": 0x48}]),
    base=st.integers(0, 1 << 61),
)
@example(
    made=[(b"k", b"\x01" * 9000 + b'"' * 9000, [(b'"' * 300, b"\\" * 300)] * 9, 0)],
    kind=JsonLines,
    redactor=None,
    encoding="auto",
    header={},
    base=0,
)
@example(
    made=[(b'"' * 9000, b"", [(b"h", b'"' * 9000)] * 40, 0)],
    kind=Separated,
    redactor=None,
    encoding="base64",
    header={},
    base=0,
)
@example(
    made=[(b"", b"", [], moment) for moment in (FIRST, FIRST - 1, LAST, LAST - 1, -1, -2, 0, 999)],
    kind=JsonLines,
    redactor=None,
    encoding="auto",
    header={},
    base=5,
)
def test_any_records_print_the_same(made, kind, redactor, encoding, header, base, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any" / NAME
    path.parent.mkdir(exist_ok=True)
    body = [
        forge.record(key, value, offset=number * 3, timestamp=time, headers=headers, attributes=number)
        for number, (key, value, headers, time) in enumerate(made)
    ]
    path.write_bytes(forge.batch(body, base_offset=base, base_timestamp=0, **header))
    assert same(path, kind=kind, encoding=encoding, redactor=redactor) == 1


JSON_TEXTS = [
    *('{"a":[1,-2.5e+3,null,true,false,{}],"é":"\\u00e9\\n"}', "[]", "{}", " [ 1 ,\n2\r] ", '"text"', "0", "-0", "-"),
    *("01", "1.", "1e", "1e5", "1E-2", ".5", "+1", "NaN", "Infinity", "-Infinity", "[NaN]", "nul", "null", "nullx"),
    *("tru", "", '{"a":1,}', "[1,]", "[,]", '{"a"}', "{1:2}", '{"a":1 "b":2}', "[1 2]", '"a', r'"\\"', r'"\x"'),
    *(r'"\u12"', '"\t"', r'"\ud83d\ude00"', r'"\ud83d"', r'"\udc00"', r'"\uD83Dx"', r'"\\ud83d"', r'"\\n"', '"\x7f"'),
    *('"\u2028"', '"\x80"', "\ufeff1", "[" * 70 + "]" * 70, "[" * 50 + "]" * 50, "[" * 50, "1" * 4200, "1" * 5000),
    *("[1]]", "{}{}", "1 1", "  ", '"a" ', "[\x0c1]", "truefalse", "é", "[é]"),
]


@pytest.mark.parametrize("kind", [JsonLines, Separated])
def test_values_of_json_are_those_of_the_general_path(kind, tmp_path):
    path = tmp_path / NAME
    texts = [text.encode() for text in JSON_TEXTS] + [b'"\xff"', b'{"a":"\xc3"}']
    made = [
        forge.record(one, texts[-1 - number], offset=number, headers=[(b"h", one)]) for number, one in enumerate(texts)
    ]
    path.write_bytes(forge.batch(made))
    assert same(path, kind=kind, encoding="json") == 1


@pytest.mark.parametrize("secret", [b"", b"s" * 32, b"s" * 64, b"s" * 65, bytes(range(200))])
def test_hashes_of_all_sizes_are_those_of_the_library(secret, tmp_path):
    path = tmp_path / NAME
    made = [forge.record(bytes(size), b"v" * (size + 150), offset=size) for size in range(150)]
    path.write_bytes(forge.batch(made))
    assert same(path, redactor=Redactor(secret)) == 1


def test_escapes_are_found_at_each_place(tmp_path):
    """Texts are read eight bytes at a time, and room is made for 1024 of them at once."""
    special = (b'"', b"\\", b"\x1f", b"\x7f", b" ", b"\xff", "\u2028".encode())
    made = [
        b"x" * at + one + b"~" * (size - at - 1)
        for size in (*range(1, 26), 1023, 1025)
        for at in range(0, size, 1 if size < 26 else 93)
        for one in special
    ]
    made += ["é".encode() * size + b'"' * (size % 3) for size in range(1020 // 2, 1040 // 2)]
    path = tmp_path / NAME
    path.write_bytes(forge.batch([forge.record(text, text, headers=[(text, text)]) for text in made]))
    assert same(path) == same(path, encoding="utf8") == 1


def test_each_file_has_lines_of_its_own(tmp_path):
    for number in (0, 5):
        record = forge.record(b"k", b"v")
        (tmp_path / f"{number:020}.log").write_bytes(forge.batch([record], base_offset=number))
    assert same(tmp_path) == 2
    assert b"00005.log" in printed(tmp_path, unread=True)[0]


def test_dates_are_those_of_the_calendar(tmp_path):
    """The first and the last day of each month, from the year 1 to 9999."""
    days = [
        datetime(year, month, day, 23, 59, 59, 999_000, UTC)
        for year in range(1, 10_000, 7)
        for month in range(1, 13)
        for day in (1, 28)
    ]
    days += [datetime(year, 2, 29, tzinfo=UTC) for year in range(4, 10_000, 4) if year % 100 or not year % 400]
    days += [datetime(year, 12, 31, tzinfo=UTC) for year in range(1, 10_000, 9)]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    times = [(day - epoch).days * 86_400_000 + (day - epoch).seconds * 1000 + day.microsecond // 1000 for day in days]
    path = tmp_path / NAME
    path.write_bytes(forge.batch([forge.record(b"", b"", timestamp=time) for time in times], base_timestamp=0))
    column = [next(column for column in rows.RECORD if column.name == "timestamp")]
    texts = [day.isoformat(timespec="milliseconds").replace("+00:00", "Z") for day in days]
    want = "".join(f'{{"timestamp":"{text}"}}\n' for text in texts)
    assert printed(path, unread=True, columns=column) == (want.encode(), 1)


@pytest.mark.parametrize(
    "names",
    [
        ["value"],
        ["crc", "key"],
        ["key", "value", "headers"],
        ["belowLogStart"],
        ["timestamp", "controlType"],
        ["aboveHighWatermark", "offset"],
    ],
)
def test_chosen_columns_print_the_same(names, tmp_path):
    columns = [next(column for column in rows.RECORD if column.name == name) for name in names]
    path = tmp_path / NAME
    path.write_bytes(forge.batch([forge.record(b"k", None, offset=number) for number in range(4)]))
    for low, high in ((None, None), (0, 9), (2, 2), (9, 0)):
        assert same(path, columns=columns, mark=SegmentFacts("x", "t\x1b\udcff", 1, high, low)) == 1


def test_kinds_of_batches_do_not_mix(tmp_path):
    """Codec, transaction, delete horizon and validity are constants of a line: each kind of batch has its own."""
    path = tmp_path / NAME
    record = [forge.record(b"k", b"v")]
    broken = bytearray(forge.batch(record, base_offset=90))
    broken[20] ^= 1
    data = b""
    for number in range(80):
        attributes = (number % 4 == 1) * 0x10 | (number % 4 == 2) * 0x40 | (number % 4 == 3) * 8
        data += forge.batch(
            record, base_offset=number, attributes=attributes, base_timestamp=number, max_timestamp=number
        )
    data += forge.batch(
        [compression.compress(compression.ZSTD, record[0])], count=1, base_offset=81, attributes=compression.ZSTD
    )
    path.write_bytes(data + broken)
    assert same(path) == 82


def test_many_pieces_print_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_rows, "CHUNK", 1000)
    path = tmp_path / NAME
    path.write_bytes(forge.batch([forge.record(b"k", b"v" * number, offset=number * 2) for number in range(300)]))
    assert same(path) == same(path, kind=JsonArray) == 1


@pytest.mark.parametrize(
    ("wanted", "unread"),
    [
        ({"first_offset": 5, "last_offset": 24}, 1),
        ({"first_offset": 10, "last_offset": 19}, 1),
        ({"first_offset": 10}, 2),
        ({"since": 5, "until": 25}, 1),
        ({"since": 10, "until": 20}, 1),
        ({"since": 11, "until": 20}, 0),
        ({"first_offset": 29}, 0),
        ({"keys": frozenset({b"3"})}, 0),
        ({"types": frozenset({"data"})}, 3),
        ({"types": frozenset({"control"})}, 0),
    ],
)
def test_filters_take_the_same(wanted, unread, tmp_path):
    path = tmp_path / NAME
    path.write_bytes(
        b"".join(
            forge.batch(
                [forge.record(b"%d" % number, b"v", offset=number, timestamp=number) for number in range(10)],
                base_offset=start,
                base_timestamp=start,
                max_timestamp=start + 9,
            )
            for start in (0, 10, 20)
        )
    )
    assert same(path, filter=Filter(**wanted)) == unread


def test_broken_batches_print_the_same(tmp_path):
    """Every byte of a small batch's records is changed, and the records are truncated there."""
    path = tmp_path / NAME
    plain = b"".join(forge.record(b"key", b'"v"', offset=number, headers=[(b"h", b"\n")]) for number in range(3))
    for at in range(len(plain)):
        for body in (plain[:at], plain[:at] + b"\x81" + plain[at + 1 :], plain[:at] + b"\x00" + plain[at + 1 :]):
            path.write_bytes(forge.batch([body], count=3))
            same(path)


def test_records_can_still_be_read():
    data = forge.batch([forge.record(b"%d" % number, b"v", offset=number) for number in range(2500)])
    made = magic_2.Batch(memoryview(data), 0, len(data), 1 << 20)
    unread = BatchRecords.of(made, lambda *_: True)
    want = list(made.records())
    assert list(unread) == want
    assert (len(unread), unread[0], unread[-1], list(unread[3:7])) == (2500, want[0], want[-1], want[3:7])
    assert BatchRecords.of(made, lambda *_: False) is None
    assert BatchRecords.of(made, lambda low, high, *_: (low, high) != (0, 2499)) is None


def batches(count, **header):
    made = [forge.record(b"k", b'"v" %d' % number, offset=number, headers=[(b"h", b"x")]) for number in range(5)]
    return [forge.batch(made, base_offset=5 * number, **header) for number in range(count)]


@pytest.mark.parametrize("limit", [1, 2000, 1 << 20])
def test_runs_with_a_broken_batch_print_the_same(limit, tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_rows, "CHUNK", limit)
    path = tmp_path / NAME
    sound = batches(9)
    record = forge.record(b"k", b"v")
    for broken in (
        sound[3],
        forge.batch([record, b"\x02\x00"], base_offset=15),
        forge.batch([record], count=2, base_offset=15),
        forge.batch([record], count=-1, base_offset=15),
        forge.batch([], base_offset=15),
        forge.batch([record], base_offset=15, attributes=5),
        sound[3][:-1] + b"?",
        sound[3][:-7],
        b"\xff" * 100,
        forge.entry(15, forge.message(1, b"k", b"v")),
    ):
        path.write_bytes(b"".join([*sound[:3], broken, *sound[4:]]))
        assert same_in_runs(path) >= 1
        for kind in ENDINGS:
            same_in_runs(path, kind=kind)


@pytest.mark.parametrize("kind", ENDINGS)
@pytest.mark.parametrize("limit", [1, 300, 1000, 1 << 20])
def test_nothing_of_a_batch_with_a_broken_record_is_printed_in_a_run(limit, kind, tmp_path, monkeypatch):
    """This holds for any broken record in a run, and any number of lines printed together."""
    monkeypatch.setattr(kernel_rows, "CHUNK", limit)
    monkeypatch.setattr(kernel_lines, "CHUNK", limit)
    path = tmp_path / NAME
    sound = batches(6)
    for at, row in ((0, 0), (0, 2), (3, 2), (11, 2), (12, 0), (12, 5)):
        body = [forge.record(b"k", b"%d" % number, offset=number, headers=[(b"h", b"x")]) for number in range(13)]
        body[at] = body[at][:-2] + b"\x7f" + body[at][-1:]
        broken = forge.batch(body, base_offset=5 * row, last_offset_delta=4)
        empty = [forge.batch([], base_offset=0, last_offset_delta=0)] * 3
        path.write_bytes(b"".join([*empty, *sound[:row], broken, *sound[row + 1 :]]))
        same_in_runs(path, kind=kind)
        path.write_bytes(b"".join([*sound[:row], broken, *sound[row + 1 :]]))
        same_in_runs(path, kind=kind)
        if kind is not formatted:
            same_in_runs(path, kind=kind, redactor=REDACTOR)


def test_a_record_that_reaches_into_the_next_batch_is_damage(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(b"".join([*batches(3), forge.reaching(15), *batches(9)[5:]]))
    assert same_in_runs(path) >= 1


@pytest.mark.parametrize("template", ["%h", "%k%s", "", None])
@pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP])
def test_batches_of_which_no_byte_is_printed_are_no_fault(template, codec, tmp_path):
    path = tmp_path / NAME
    records = b"".join(forge.record(None, None, offset=number) for number in range(3))
    path.write_bytes(forge.batch([compression.compress(codec, records)], count=3, attributes=codec))

    def kind(out, _):
        return Plain(out, PrintOptions(template=template, delimiter=""))

    assert same(path, kind=kind) == 1
    assert printed(found(path), unread=True, kind=kind) == (b"", 1)
    same_in_runs(path, kind=kind)


@pytest.mark.parametrize("kind", [JsonLines, JsonArray])
@pytest.mark.parametrize("limit", [1, 1 << 20])
def test_batches_without_records_say_nothing(limit, kind, tmp_path, monkeypatch):
    """Compaction leaves such batches; they may be anywhere in a run."""
    monkeypatch.setattr(kernel_rows, "CHUNK", limit)
    path = tmp_path / NAME
    record = forge.record(b"k", b"v")
    for order in ("fffeef", "ffee", "eeff", "eeee", "fefefe", "eefeeffee"):
        made = [
            forge.batch([record] if each == "f" else [], base_offset=at, last_offset_delta=0)
            for at, each in enumerate(order)
        ]
        path.write_bytes(b"".join(made))
        same(path, kind=kind)
        same_in_runs(path, kind=kind)
        other = forge.batch([record], base_offset=50, attributes=8), forge.batch([record], base_offset=51, attributes=8)
        path.write_bytes(b"".join([*made, *other, *made, *other]))
        same_in_runs(path, kind=kind)


def test_a_size_without_an_end_at_the_end_of_a_batch_is_damage(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(b"".join([*batches(3), forge.endless(15), *batches(9)[4:]]))
    assert same(path)
    assert same_in_runs(path)
    assert b"does not end" in printed(path, unread=True)[0]


def test_runs_whose_rows_differ_within_print_the_same(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(b"".join(batches(9)))
    for mark in (20, 22):
        same_in_runs(path, mark=SegmentFacts("f", "t", 0, high_watermark=mark))
    assert same_in_runs(path, columns=(*rows.RECORD, *(each for each in rows.BATCH if each.name == "lastOffset"))) == 1
    path.write_bytes(b"".join(batches(9, attributes=0x10, producer_id=7, producer_epoch=0, base_sequence=0)))
    assert same_in_runs(path) == 0


@pytest.mark.parametrize("kind", [JsonLines, Separated, DumpText])
def test_runs_on_one_side_of_a_mark_are_printed_in_one_go(kind, tmp_path):
    path = tmp_path / NAME
    path.write_bytes(b"".join(batches(9)))
    last = 9 * 5 - 1
    for low, high in ((0, 0), (0, last + 1), (last + 1, last + 1), (None, 0)):
        columns = [each for each in rows.RECORD if each.source in MARKS]
        mark = SegmentFacts("f", "t", 0, high_watermark=high, log_start=low)
        assert same_in_runs(path, kind=kind, mark=mark) == 1
        of_all = printed(path, unread=True, runs=True, columns=columns, mark=mark)[0]
        assert of_all.count(b'"belowLogStart":true') == (45 if low == last + 1 else 0)
        assert of_all.count(b'"aboveHighWatermark":true') == (45 if high == 0 else 0)


@pytest.mark.parametrize("mark", [3, 12, 20, 30])
def test_offsets_that_go_back_are_on_their_side_of_a_mark(mark, tmp_path):
    """Batches out of order have both ends on one side of a mark, and other batches on the other side."""
    path = tmp_path / NAME
    some = batches(9)
    path.write_bytes(b"".join([*some[2:4], *some[:9], *some[2:4]]))
    for facts in ({"high_watermark": mark}, {"log_start": mark}):
        same_in_runs(path, mark=SegmentFacts("f", "t", 0, **facts))
        same_lists(path, mark=SegmentFacts("f", "t", 0, **facts))


def listed(path, take, kind, mark, tail=None):
    """Return the printed batches of a file, or its last ones, and the number of runs."""
    out = io.StringIO() if kind is Tables else io.BytesIO()
    printer = kind(out, PrintOptions(rows.BATCH, batches=True))
    printer.begin()
    runs = 0
    for partition in Finder().find([str(path)]):
        reader = PartitionReader(take=take)
        for item in reader.read(partition) if tail is None else reader.tail(partition, tail):
            item = item if mark is None else item._replace(file=mark)
            if hasattr(item, "damage"):
                printer.lost(item)
            else:
                runs += isinstance(item.records, RunRecords)
                printer.found(item)
    printer.end()
    return out.getvalue(), runs


def same_lists(path, mark=None):
    """Assert equal lists of batches, one by one and in runs; return the number of runs."""
    for kind in (JsonLines, JsonArray, Separated, DumpText, Tables):
        singly, none = listed(path, Take.BATCHES, kind, mark)
        in_runs, runs = listed(path, Take.BATCH_RUNS, kind, mark)
        assert in_runs == singly
        assert none == 0
        for tail in (1, 7, 1000):
            assert listed(path, Take.BATCH_RUNS, kind, mark, tail)[0] == listed(path, Take.BATCHES, kind, mark, tail)[0]
    return runs


@pytest.mark.parametrize("path", sorted(GOLDEN.rglob("*.log")), ids=lambda path: str(path.relative_to(GOLDEN)))
def test_batches_of_golden_segments_are_listed_the_same(path):
    same_lists(path)


@pytest.mark.parametrize("wanted", [Filter(first_offset=7), Filter(last_offset=30), Filter(since=-5), Filter()])
@pytest.mark.parametrize("encoding", ["auto", "hex", "base64"])
@pytest.mark.parametrize("redactor", [None, REDACTOR])
def test_a_list_of_batches_shows_nothing_of_records(wanted, encoding, redactor, tmp_path):
    path = tmp_path / NAME
    path.write_bytes(b"".join(batches(9)))
    for take in (Take.BATCHES, Take.BATCH_RUNS):
        for kind in (DumpText, JsonLines, Separated):
            out = io.BytesIO()
            printer = kind(out, PrintOptions(rows.BATCH, batches=True, encoding=encoding, redactor=redactor))
            for partition in Finder().find([str(path)]):
                for item in PartitionReader(wanted, take).read(partition):
                    printer.found(item)
            lines = out.getvalue().splitlines()
            assert sum(b"lastOffset" in line or line.startswith(b"batch,") for line in lines) >= 7
            assert not [line for line in lines if line.startswith(b"|")]


@pytest.mark.parametrize("codec", [compression.NONE, compression.ZSTD])
def test_batches_are_listed_the_same(codec, tmp_path):
    """Only headers matter, not the records and whether they are readable."""
    path = tmp_path / NAME
    far = [{"base_timestamp": at, "max_timestamp": at} for at in ((1 << 62) + 1, -(1 << 62) - 1, 253402300800000)]
    usual = [{"max_timestamp": -1}, {"count": 0}, {"base_sequence": 5, "producer_id": 9, "producer_epoch": 1}, {}]
    for odd, runs in ((usual, 1), ([*usual, far[2]], 1), ([*usual, *far], 0), ([*usual, {"count": -1}], 0)):
        data = b""
        for number in range(70):
            records = [b"none of it" * (number % 5)]
            header = {"count": 2, **odd[number % len(odd)]}
            data += forge.batch(records, base_offset=9 * number, attributes=codec, **header)
        path.write_bytes(data)
        for mark in (None, SegmentFacts("f", "t", 0, 0, 999), SegmentFacts("f", "t", 0, 300)):
            assert same_lists(path, mark) == runs
    path.write_bytes(b"".join(batches(700)))
    assert same_lists(path) >= 1


def test_a_long_file_prints_the_same_by_threads(tmp_path, monkeypatch):
    path = tmp_path / NAME
    path.write_bytes(b"".join(batches(5000)))
    beside = threading.Event()
    plain, following = read_ahead.RegionChunks.take, _ChunkThreads.next

    def take(chunks, *most):
        if threading.current_thread().name == "chunks":
            beside.set()
        return plain(chunks, *most)

    def after_a_thread(workers):
        assert beside.wait(60)
        return following(workers)

    monkeypatch.setattr(read_ahead.RegionChunks, "take", take)
    monkeypatch.setattr(_ChunkThreads, "next", after_a_thread)
    monkeypatch.setattr(costs, "processors", lambda: 3)
    monkeypatch.setattr(costs, "READING_AHEAD", 0)
    assert same_in_runs(path) > 1
    assert beside.is_set()


@pytest.mark.parametrize("least", [1, 300, 1 << 20])
@pytest.mark.parametrize("kind", ENDINGS)
def test_rows_made_ahead_of_time_print_the_same(kind, least, tmp_path, monkeypatch):
    """Every second run is made before its turn, completely or in part, as a thread does; kinds of batches change."""
    made = []

    def ahead(regions, _source, _size, make, **_):
        for number, region in enumerate(regions):
            lines = make(region) if number % 2 and isinstance(region, Run) else None
            made.append(0 if lines is None else lines.size)
            yield region, lines

    monkeypatch.setattr(read_ahead, "read_making", ahead)
    monkeypatch.setattr(read_ahead, "FIRST", 0)
    monkeypatch.setattr(costs, "PRINTED_AHEAD", 0)
    monkeypatch.setattr(read_ahead, "AHEAD", least)
    some = batches(200)
    appended = batches(200, attributes=8, max_timestamp=5)
    broken = forge.batch([forge.record(b"k", b"v"), b"\x02\x00"], base_offset=15)
    mixed = [
        each[at]
        for at in range(0, 190, 10)
        for each in (some[at : at + 10], appended[at : at + 10])
        for at in range(10)
    ]
    path = tmp_path / NAME
    path.write_bytes(b"".join([*mixed[:90], broken, *mixed[90:]]))
    (tmp_path / "t-0").mkdir()
    path = path.rename(tmp_path / "t-0" / NAME)
    for options in ({}, {"redactor": REDACTOR}, {"mark": "a real one"}):
        if options.pop("mark", None):
            (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 500\n")
        made.clear()
        assert same_in_runs(path, kind=kind, **options) > 10
        assert len([size for size in made if size]) > 5


def test_runs_come_only_where_all_is_taken(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(b"".join(batches(9)))
    assert same_in_runs(path, filter=Filter(first_offset=7)) == 1
    assert same_in_runs(path, filter=Filter(first_offset=11, last_offset=13)) == 0
    assert same_in_runs(path, filter=Filter(keys=frozenset({b"k"}))) == 1
    assert same_in_runs(path, filter=Filter(keys=frozenset({b"other"}))) == 0
