"""The kernel and the general path print the same text and the same gaps, and end equally, for any bytes."""

import io
import os
import random
import sys

import pytest

from kdump import kernel
from kdump.dump_log_segments import Options
from kdump.dump_log_segments.dialects import segments as dialects
from kdump.dump_log_segments.dispatch import dump_files
from kdump.dump_log_segments.log_printer import LogPrinter
from kdump.dump_log_segments.run import DumpRun
from kdump.errors import KdumpError
from kdump.formats import record_layout
from kdump.internal_topics import DECODER_SWITCHES
from kdump.parallel import costs
from kdump.primitives import compression
from kdump.records import magic_2
from kdump.segments import read_ahead
from kdump.segments import resync as segments_read
from kdump.segments.batch_runs import Run
from kdump.segments.regions import DATA
from testing import GOLDEN, ROOT, forge
from tests.helpers.in_place import InPlace
from tests.helpers.segments import Memory, batches

if not kernel.COMPILED:
    pytest.skip("there is no kernel", allow_module_level=True)
from kdump.dump_log_segments import kernel_lines
from kdump.kernel import records as compiled

NAME = "00000000000000000000.log"


def test_the_array_of_c_is_as_long_as_python_says():
    sources = {path.name: path.read_text("utf-8") for path in (ROOT / "kdump" / "kernel").glob("*.p*")}
    assert f"cdef long long[{compiled.NUMBERS}] values\n" in sources["records.pxd"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems set nothing aside")
def test_room_that_is_set_aside_for_a_file_does_not_make_it_longer(tmp_path):
    with (tmp_path / "other").open("xb") as file:
        os.posix_fallocate(file.fileno(), 0, 1 << 20)
        if os.fstat(file.fileno()).st_blocks * 512 < 1 << 20:
            pytest.skip("this file system sets nothing aside")
    with (tmp_path / NAME).open("xb") as file:
        kernel.reserve(file.fileno(), 1 << 20)
        held = os.fstat(file.fileno())
    assert (held.st_size, held.st_blocks * 512 >= 1 << 20) == (0, True)
    kernel.reserve(-1, 1 << 20)  # what cannot be done is left


def in_place(path, release="4.3", *, room=0, **options):
    """The same as :func:`dumped`, in memory of the output with space for all lines, and for ``room`` bytes."""
    ends = dumped(path, release, **options)
    for size in (len(ends[0]) * 2 + (1 << 17), room):
        out = InPlace(size)
        assert dumped(path, release, out, **options) == ends
    return ends


def dumped(path, release="4.3", out=None, **options):
    """Return what a run prints, the gaps it finds, and how it ends."""
    out = io.BytesIO() if out is None else out
    run = DumpRun(dialects.find(release), Options(**options), out)
    error = None
    try:
        dump_files(run, [str(path)])
    except KdumpError as reason:
        error = str(reason)
    return out.getvalue(), run.gaps, error


def general(path, release="4.3", **options):
    """Return the result of :func:`dumped` without the kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "COMPILED", False)
        return dumped(path, release, **options)


def made_ahead(path, monkeypatch, **options):
    """Return the result of :func:`dumped` if a thread makes every second region ahead of time."""
    taken = []

    def ahead(regions, _source, _size, make, **_):
        for number, region in enumerate(regions):
            made = make(region) if number % 2 == 0 and make is not None and isinstance(region, Run) else None
            taken.append(0 if made is None else made.size)
            yield region, made

    with monkeypatch.context() as patch:
        patch.setattr(read_ahead, "read_making", ahead)
        patch.setattr(costs, "PRINTED_AHEAD", 0)
        return dumped(path, **options), sum(taken)


def read(data):
    """Return the records of a batch, and the error that ends reading, if any."""
    records = []
    try:
        for record in magic_2.Batch(memoryview(data), 0, len(data)).records():
            records.append(record)  # noqa: PERF402  the records before an error count
    except KdumpError as error:
        return records, str(error)
    return records, None


def read_one_by_one(data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "COMPILED", False)
        return read(data)


TEXTS = [
    b"",
    b"k",
    b"plain text of more than eight bytes",
    "grüße, 東京 😀".encode(),
    b"\xff\xfe",
    b"seven b\xc3",  # truncated
    b"\xed\xa0\x80 surrogate",
    b"\xc0\x80 overlong \xe0\x80\x80 \xf0\x80\x80\x80",
    b"\xf4\x90\x80\x80 \xf5\x80\x80\x80",
    "\ud7ff\ue000\U0010ffff\x80\u0800\U00010000".encode(),
    b"x" * 64 + b"\x80",
    b"100% %d %s",
    b"y" * 9000,
    None,
]


def made_of(texts=TEXTS):
    """Return records with each text as key and as value, with no, one and many headers."""
    made = []
    for number, text in enumerate(texts):
        headers = [(key, text) for key in TEXTS[: number % 5] if key is not None]
        made.append(forge.record(text, texts[-1 - number], offset=number, timestamp=number**5, headers=headers))
    made.append(forge.record(None, None, offset=len(texts), timestamp=-7))
    return made


CASES = {
    "plain": {},
    "log append time": {"attributes": 8, "max_timestamp": 5, "base_timestamp": -1},
    "producer": {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0, "attributes": 0x10},
    "sequence wraps": {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0x7FFFFFFF - 3},
    "delete horizon": {"attributes": 0x40, "base_timestamp": 1_700_000_000_000},
    "far base offset": {"base_offset": (1 << 63) - 4},
    "negative base offset": {"base_offset": -5},
    "far base timestamp": {"base_timestamp": -(1 << 63)},
}


@pytest.mark.parametrize("release", ["4.3", "4.2", "3.6", "2.8", "1.0"])
@pytest.mark.parametrize("case", CASES)
def test_well_formed_batches_read_the_same(case, release, tmp_path):
    path = tmp_path / NAME
    path.write_bytes(forge.batch(made_of(), **CASES[case]) + forge.batch(made_of(), base_offset=40))
    for options in (
        {},
        {"print_data_log": True},
        {"deep_iteration": True},
        {"print_data_log": True, "deep_iteration": True},
        {"print_data_log": True, "deep_iteration": True, "skip_record_metadata": True},
    ):
        assert dumped(path, release, **options) == general(path, release, **options)


def test_the_kernel_takes_what_is_well_formed(tmp_path, monkeypatch):
    path = tmp_path / NAME
    path.write_bytes(forge.batch(made_of()))
    want = general(path, print_data_log=True)
    monkeypatch.setattr("kdump.dump_log_segments.log_printer.LogPrinter.record", None)
    assert dumped(path, print_data_log=True) == want


@pytest.mark.parametrize("case", CASES)
def test_records_are_the_same(case, monkeypatch):
    monkeypatch.setattr(magic_2, "CHUNK", 4)
    data = forge.batch(made_of(), **CASES[case])
    assert read(data) == read_one_by_one(data)
    assert len(read(data)[0]) == len(TEXTS) + 1


@pytest.mark.parametrize("case", CASES)
def test_records_agree_with_their_batch(case):
    plain = made_of()
    highest = forge.batch(plain, **{"max_timestamp": 1, **CASES[case]})
    odd = [forge.record(b"k", b"v", attributes=1), forge.record(b"k", b"v", offset=1)]
    doubled = [forge.record(b"k", b"v"), forge.record(b"k", b"v")]
    for data in (
        forge.batch(plain, **CASES[case]),
        highest,
        *(forge.batch(made, **CASES[case]) for made in (odd, doubled)),
    ):
        (batch,) = batches(data)
        asked = compiled.Cursor()
        if not asked.begin(memoryview(data), record_layout.BATCH_HEADER.size, batch.header, ()) or not asked.sound():
            continue  # the general reader takes these
        records = list(batch.records())
        offsets = [record.offset for record in records]
        agrees = (
            not any(record.attributes for record in records)
            and offsets == sorted(set(offsets))
            and offsets[-1] <= batch.last_offset
            and (batch.timestamp_type or batch.max_timestamp == max(-1, *(record.timestamp for record in records)))
        )
        assert asked.agrees() == bool(agrees)
        for broken in (data[:-1], data + b"x"):
            asked.begin(memoryview(broken), record_layout.BATCH_HEADER.size, batch.header, ())
            assert not asked.agrees()


def test_each_batch_of_a_run_is_asked_whether_its_records_agree():
    record = forge.record(b"k", b"v")
    bad = {2: [record[:-1]], 4: [record, record], 5: [b"\x7f" * 9], 7: []}
    log = b"".join(forge.batch(bad.get(n, [record]), base_offset=n, count=len(bad.get(n, [0]))) for n in range(9))
    for data in (log, log[: -len(record)]):
        found = [run for run in segments_read.read(Memory(data), on_error="stop", runs=DATA) if isinstance(run, Run)]
        reported = [verdict for run in found for verdict in run.stack(compiled.Cursor()).agreeing()]
        assert reported == [n not in bad for n in range(len(reported))]
        assert len(reported) == 9 - (data is not log)


def test_broken_records_are_the_same():
    plain = b"".join(made_of([b"key", None, b"w" * 70]))
    seed = random.Random(1)
    for at in range(len(plain)):
        for byte in (0, 1, 0x7F, 0x80, 0xFF, seed.randrange(256)):
            body = plain[:at] + bytes([byte]) + plain[at + 1 :]
            for reported in (body, plain[:at], plain + bytes([byte])):
                data = forge.batch([reported], count=4, base_sequence=5)
                assert read(data) == read_one_by_one(data), (at, byte)


@pytest.mark.parametrize("codec", range(5), ids=compression.NAMES)
def test_broken_records_read_the_same(codec, tmp_path):
    """Each byte of a batch's records is changed, and the records are truncated there: earlier records are printed."""
    path = tmp_path / NAME
    plain = b"".join(made_of([b"key", None, b"w" * 70]))
    seed = random.Random(codec)
    for at in range(len(plain)):
        broken = bytearray(plain)
        broken[at] = seed.choice([0, 1, 0x7F, 0x80, 0xFF, seed.randrange(256)])
        for body in (bytes(broken), plain[:at]):
            packed = compression.compress(codec, body)
            path.write_bytes(forge.batch([packed], count=4, attributes=codec))
            assert dumped(path, print_data_log=True) == general(path, print_data_log=True), (at, body)


@pytest.mark.parametrize("size", [1 << 18, 3 << 20], ids=["whole", "in regions"])
@pytest.mark.parametrize("codec", [compression.NONE, compression.ZSTD])
@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
def test_large_batches_read_the_same(size, codec, broken, tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_lines, "CHUNK", 1 << 16)
    count = size // 1000
    made = [forge.record(b"%d" % number, b"v" * 990, offset=number * 2) for number in range(count)]
    if broken:
        made[count // 2] = b"\x02\x00"
    path = tmp_path / NAME
    path.write_bytes(forge.batch([compression.compress(codec, b"".join(made))], count=count, attributes=codec))
    assert in_place(path, room=1 << 17, print_data_log=True) == general(path, print_data_log=True)


def test_lines_outgrow_the_memory_that_is_made_for_them(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_lines, "CHUNK", 1 << 25)
    path = tmp_path / NAME
    made = [forge.record(b"%d" % number, b"v" * 990, offset=number) for number in range(20_000)]
    path.write_bytes(forge.batch(made))
    assert dumped(path, print_data_log=True) == general(path, print_data_log=True)


@pytest.mark.parametrize("release", ["4.3", "2.8", "2.0"])
@pytest.mark.parametrize("limit", [1, 700, 1 << 20])
def test_runs_with_a_broken_batch_read_the_same(limit, release, tmp_path, monkeypatch):
    """Successive batches are printed together, in regions of any size, up to the broken record."""
    monkeypatch.setattr(kernel_lines, "CHUNK", limit)
    path = tmp_path / NAME
    made = [forge.record(b"k%d" % number, b"v" * 60, offset=number) for number in range(5)]
    sound = [forge.batch(made, base_offset=5 * number) for number in range(6)]
    for broken in (
        None,
        forge.batch([b"\x02\x00", *made], base_offset=10),
        forge.batch([*made[:3], b"\x02\x00", *made[3:]], base_offset=10),
        forge.batch([*made, b"\x02\x00"], base_offset=10),
        forge.batch(made, count=6, base_offset=10),
        forge.batch(made, count=-1, base_offset=10),
        forge.batch([], base_offset=10),
        forge.batch([forge.record(b"\xff", b"\xfe" * 900, offset=7)], base_offset=10),
    ):
        path.write_bytes(b"".join([*sound[:2], broken or sound[2], *sound[3:]]))
        monkeypatch.setattr(read_ahead, "AHEAD", limit)
        for options in ({}, {"deep_iteration": True}, {"print_data_log": True}):
            want = general(path, release, **options)
            assert dumped(path, release, **options) == want
            assert made_ahead(path, monkeypatch, release=release, **options)[0] == want
    assert dumped(path, release, print_data_log=True)[0].count(b" payload: ") > 25


def test_a_record_that_reaches_into_the_next_batch_is_damage(tmp_path):
    path = tmp_path / NAME
    sound = [forge.batch([forge.record(b"k", b"v")], base_offset=offset) for offset in (0, 3)]
    for broken in (forge.reaching(1), forge.reaching(1, 1 << 17), forge.endless(1)):
        path.write_bytes(sound[0] + broken + sound[1])
        for release in ("4.3", "2.8"):
            found = dumped(path, release, print_data_log=True)
            assert found == general(path, release, print_data_log=True)
            assert b"offset: 2" not in found[0]


def test_numbers_of_every_length_read_the_same(tmp_path):
    path = tmp_path / NAME
    numbers = [sign * (10**power + more) for power in range(19) for more in (-1, 0, 1) for sign in (1, -1)]
    made = [forge.record(b"k", b"v")]
    path.write_bytes(b"".join(forge.batch(made, producer_id=each) for each in (*numbers, (1 << 63) - 1, -(1 << 63))))
    assert dumped(path) == general(path)


def test_numbers_near_each_other_read_the_same(tmp_path):
    """The digits above the last four are reused for the next record."""
    chance = random.Random(5)
    edges = [sign * 10**power for power in range(19) for sign in (1, -1)] + [20_000, 19_999_9999, (1 << 62) - 20_000]
    far = [chance.choice(edges) + chance.choice((-10_001, -10_000, -9_999, -1, 0, 1, 9_999)) for _ in range(150)]
    made = b"".join(
        forge.batch(
            [
                forge.record(b"k" * (delta % 1002), None, offset=delta, timestamp=chance.randrange(-20_000, 20_000))
                for delta in range(0, 4000, 73)
            ],
            base_offset=offset,
            base_timestamp=chance.choice(far),
        )
        for offset in far
    )
    path = tmp_path / NAME
    path.write_bytes(made)
    assert dumped(path, print_data_log=True) == general(path, print_data_log=True)


def test_texts_of_every_length_read_the_same(tmp_path):
    """They are copied 64 bytes at a time, without reading beyond the file or printing bytes after the text."""
    path = tmp_path / NAME
    ends = [*range(1, 20), *range(60, 70), *range(124, 134), 192]
    texts = [b"x" * size for size in (*range(140), 1023, 1024, 1025)]
    for character in ("ü".encode(), b"\xff"):
        texts += [b"x" * at + character + b"y" * (size - at) for size in (3, 14, 63, 64, 130) for at in range(size + 1)]
    for text in [b"z" * size for size in ends] + [b"z" * (size - 1) + b"\xff" for size in ends]:
        path.write_bytes(forge.batch([forge.record(text, None)]))
        assert dumped(path, print_data_log=True) == general(path, print_data_log=True)
    path.write_bytes(forge.batch([forge.record(text, text, offset=number) for number, text in enumerate(texts)]))
    assert dumped(path, print_data_log=True) == general(path, print_data_log=True)


def test_decoders_read_the_same(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(
        forge.batch([forge.record(number.to_bytes(8, "big"), b"abcdefgh", offset=number) for number in range(9)])
        + forge.batch([forge.record(b"12345678", b"short" * (number % 3), offset=number) for number in range(9)])
    )
    package = "org.apache.kafka.tools.api."
    options = {"print_data_log": True, "key_decoder_class": f"{package}LongDecoder"}
    for name in ("Long", "Integer", "Default", "String"):
        options["value_decoder_class"] = f"{package}{name}Decoder"
        assert dumped(path, **options) == general(path, **options)


@pytest.mark.parametrize("release", ["4.3", "3.8", "1.0"])
@pytest.mark.parametrize("topic", DECODER_SWITCHES)
def test_decoder_switches_read_the_same(topic, release):
    options = {"print_data_log": True, "decoder_switch": DECODER_SWITCHES[topic]}
    for path in sorted(GOLDEN.glob(f"brokers/4*/{topic}-*/*.log")):
        assert dumped(path, release, **options) == general(path, release, **options)
        bare = {**options, "skip_record_metadata": True, "deep_iteration": True}
        assert dumped(path, release, **bare) == general(path, release, **bare)


@pytest.mark.parametrize("codec", [compression.NONE, compression.ZSTD])
@pytest.mark.parametrize("bad", [(None, b"x"), (b"\0\x09", b""), (b"\0", b"")])
def test_a_record_that_a_decoder_switch_refuses_ends_the_run_at_the_same_place(bad, codec, tmp_path):
    good = (b"\0\2\0\1g", b"\0\0\0\0\0\0\0\1\xff\xff\xff\xff\0\0\0\0")
    path = tmp_path / NAME
    for at in range(4):
        pairs = [bad if number == at else good for number in range(4)]
        body = b"".join(forge.record(*pair, offset=3 * number) for number, pair in enumerate(pairs))
        path.write_bytes(forge.batch([compression.compress(codec, body)], count=4, attributes=codec))
        for release in ("4.3", "3.3", "1.0"):
            options = {"print_data_log": True, "decoder_switch": "offsets-decoder"}
            assert dumped(path, release, **options) == general(path, release, **options)


def messages(magic, texts=TEXTS):
    """Messages with each text as key and as value, offsets from 0 on."""
    return [
        forge.message(magic, text, value, timestamp=number**5, attributes=8 * (magic and number % 3 == 0))
        for number, (text, value) in enumerate(zip([*texts, None], [*reversed(texts), None], strict=True))
    ]


def old_segment(magic, codec=compression.NONE):
    """Return entries, then a wrapper, with some offsets left out."""
    made = messages(magic)
    plain = b"".join(forge.entry(number + (number > 4), body) for number, body in enumerate(made))
    if not codec:
        return plain
    last = len(made)
    packed = compression.compress(codec, plain, magic=magic)
    wrappers = [
        forge.entry(
            40 * (1 + late) + last, forge.message(magic, None, packed, timestamp=9, attributes=codec | late * 8)
        )
        for late in (0, magic)
    ]
    return plain + b"".join(wrappers) + plain


OLD = [(magic, codec) for magic in (0, 1) for codec in (compression.NONE, compression.GZIP, compression.LZ4)]


@pytest.mark.parametrize("release", ["4.3", "4.2", "3.6", "2.8", "2.2", "1.0", "0.11"])
@pytest.mark.parametrize(("magic", "codec"), OLD)
def test_well_formed_messages_read_the_same(magic, codec, release, tmp_path):
    path = tmp_path / NAME
    path.write_bytes(old_segment(magic, codec) + forge.batch(made_of(), base_offset=200))
    for options in (
        {},
        {"print_data_log": True},
        {"deep_iteration": True},
        {"print_data_log": True, "deep_iteration": True},
        {"print_data_log": True, "skip_record_metadata": True},
        {"print_data_log": True, "deep_iteration": True, "value_decoder_class": "kafka.serializer.LongDecoder"},
        {"print_data_log": True, "max_batch_bytes": 300},
    ):
        assert dumped(path, release, **options) == general(path, release, **options), options


@pytest.mark.parametrize(("magic", "codec"), OLD)
def test_no_well_formed_message_takes_the_general_path(magic, codec, tmp_path, monkeypatch):
    path = tmp_path / NAME
    path.write_bytes(old_segment(magic, codec))
    expected = general(path, print_data_log=True)
    monkeypatch.setattr(LogPrinter, "record", None)
    assert dumped(path, print_data_log=True) == expected


@pytest.mark.parametrize(("magic", "codec"), OLD)
def test_broken_messages_read_the_same(magic, codec, tmp_path):
    """Bytes of a message's fields are changed, with and without a new checksum, and the messages are truncated."""
    path = tmp_path / NAME
    seed = random.Random(f"{magic} {codec}")
    texts = [b"key", None, b"w" * 70, b""]
    for turn in range(150):
        entries = []
        for number, body in enumerate(messages(magic, texts)):
            body = bytearray(body)
            if seed.random() < 0.2:
                at = seed.randrange(4, len(body))
                body[at] = seed.choice([0, 1, 0x7F, 0x80, 0xFF, seed.randrange(256)])
                if seed.random() < 0.6:
                    body[:4] = forge.crc32(bytes(body[4:])).to_bytes(4, "big")
            entries.append(forge.entry(seed.choice([number, number, -1, (1 << 63) - 1]), bytes(body)))
        data = b"".join(entries)
        if turn % 3 == 0:
            data = data[: seed.randrange(len(data))]
        if codec:
            packed = compression.compress(codec, data, magic=magic)
            stamp, kind = seed.choice([-5, 7]), codec | 8 * seed.randrange(2)
            offset = seed.choice([0, 3, 90, -1, (1 << 63) - 1])
            data = forge.entry(offset, forge.message(magic, None, packed, timestamp=stamp, attributes=kind)) * 2
        path.write_bytes(data)
        for release in ("4.3", "2.8", "1.0"):
            for deep in (False, True):
                options = {"print_data_log": deep, "deep_iteration": deep}
                assert dumped(path, release, **options) == general(path, release, **options), (turn, data)


def test_many_messages_read_the_same(tmp_path, monkeypatch):
    """More than are printed or read at a time, with a broken one among them."""
    monkeypatch.setattr(kernel_lines, "CHUNK", 1 << 12)
    body = forge.message(1, b"key", b"value" * 20, timestamp=5)
    entries = [forge.entry(number, body) for number in range(3000)]
    entries[1500] = forge.entry(1500, forge.message(1, b"key", b"value", crc=5))
    path = tmp_path / NAME
    path.write_bytes(b"".join(entries))
    assert dumped(path, print_data_log=True) == general(path, print_data_log=True)
    packed = compression.compress(compression.GZIP, b"".join(entries))
    path.write_bytes(forge.entry(2999, forge.message(1, None, packed, attributes=compression.GZIP)))
    assert dumped(path, print_data_log=True) == general(path, print_data_log=True)


@pytest.mark.parametrize("path", sorted(GOLDEN.rglob("*.log")), ids=lambda path: str(path.relative_to(GOLDEN)))
def test_golden_segments_read_the_same(path, monkeypatch):
    want = general(path, print_data_log=True)
    assert in_place(path, print_data_log=True) == want
    assert made_ahead(path, monkeypatch, print_data_log=True)[0] == want


@pytest.mark.parametrize("release", ["4.3", "2.0"])
def test_lines_made_ahead_of_time_join_the_gaps_between_them(release, tmp_path, monkeypatch):
    """Runs end where the attributes change: while a run is made, the last offset of the previous one is unknown."""
    records = [forge.record(b"k", b"v" * 60, offset=number) for number in range(5)]
    kinds = [(0, 0), (5, 0), (10, 8), (15, 8), (30, 0), (35, 0), (12, 8), (17, 8), (-5, 0), (0, 0), (5, 8), (20, 8)]
    path = tmp_path / NAME
    path.write_bytes(b"".join(forge.batch(records, base_offset=base, attributes=of) for base, of in kinds))
    want = dumped(path, release, deep_iteration=True)
    found, size = made_ahead(path, monkeypatch, release=release, deep_iteration=True)
    assert found == want == general(path, release, deep_iteration=True)
    assert size > 1000
    assert [len(pairs) for pairs in want[1].values()] == [4]
    offsets = [0, 1, -1, 7, 8]  # what follows -1 is a gap for releases that look at the first offset too
    odd = [forge.batch([forge.record(b"k", b"v")], base_offset=offset) for offset in offsets]
    path.write_bytes(b"".join(odd))
    want = general(path, release, deep_iteration=True)
    found, size = made_ahead(path, monkeypatch, release=release, deep_iteration=True)
    assert found == want
    assert size > 100


def test_lines_are_made_in_the_memory_of_an_output(tmp_path):
    """Batches in a row, then a single one: the kernel asks again for memory for its lines."""
    made = [forge.record(b"k%d" % number, b"v" * 60, offset=number) for number in range(5)]
    kinds = [(0, 0), (5, 0), (10, 8), (15, 0), (20, 0), (25, 0)]
    path = tmp_path / NAME
    path.write_bytes(b"".join(forge.batch(made, base_offset=base, attributes=of) for base, of in kinds))
    want = general(path, print_data_log=True)
    out = InPlace(1 << 17)
    assert dumped(path, "4.3", out, print_data_log=True) == want
    assert out.taken > 1


SIZES = (None, 0, 1, 63, 64, 8191, 8192, 1 << 20)
"""Sizes at which a varint gets another byte."""


@pytest.mark.parametrize("sequence", [-1, 0, 0x7FFFFFFE])
def test_what_is_sound_can_be_read(sequence):
    """The general path reads all records that ``sound`` accepts, of any size, and ``spans`` locates them."""
    seeded = random.Random(sequence)
    asked = compiled.Cursor()
    verdicts = set()
    for _ in range(1000):
        made = []
        for number in range(seeded.randrange(1, 4)):
            sizes = seeded.choices(SIZES, (4, 4, 4, 4, 4, 2, 2, 0.05), k=3)
            key, value, content = (None if size is None else bytes(size) for size in sizes)
            headers = [(b"h" * seeded.choice((0, 1, 70)), content)] * seeded.choice((0, 1, 3, 70))
            delta = seeded.choice((0, 1, 63, 64, -1, 1 << 13, 1 << 20, 1 << 40))
            made.append(forge.record(key, value, offset=number, timestamp=delta, headers=headers))
        data = bytearray(forge.batch(made, base_sequence=sequence))
        start = record_layout.BATCH_HEADER.size
        (batch,) = batches(bytes(data))
        for _ in range(seeded.choice((0, 0, 1, 2))):
            data[seeded.randrange(start, min(len(data), start + 60))] = seeded.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF))
        kept = bytes(data[: len(data) - seeded.choice((0, 0, 0, 1, 2, 5))])
        assert asked.begin(memoryview(kept), start, batch.header, ())
        sound = asked.sound()
        assert sound == (asked.spans() is not None)
        if sound and len(kept) == len(data):
            assert read_one_by_one(kept)[1] is None
        verdicts.add(sound)
    assert verdicts == {False, True}
