"""The kernel, in both builds, against the general path: same text, same gaps, same end, whatever the bytes are."""

import io
import os
import random
import re
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest

from kdump import codecs, dialects, kernel
from kdump.errors import KdumpError
from kdump.formats import batch
from kdump.printers import classic_lines
from kdump.printers.classic import Classic, Options
from tests import forge
from tests.support import GOLDEN, ROOT, kdump

SOURCE = ROOT / "kdump" / "kernel.py"
NAME = "00000000000000000000.log"


def from_source():
    """The kernel as plain Python, whatever else is loaded."""
    spec = spec_from_loader("kernel_in_python", SourceFileLoader("kernel_in_python", str(SOURCE)))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PLAIN = from_source()


@pytest.fixture(params=["active", "python"])
def build(request, monkeypatch):
    """Each build of the kernel in turn: the active one (compiled where there is a compiler), and plain Python."""
    if request.param == "python":
        monkeypatch.setattr(kernel, "Kernel", PLAIN.Kernel)
        monkeypatch.setattr(classic_lines, "Kernel", PLAIN.Kernel)
        monkeypatch.setattr(classic_lines, "Shape", PLAIN.Shape)


def dumped(path, release="4.3", **options):
    """What a run prints, the gaps it finds, and how it ends."""
    out = io.BytesIO()
    run = Classic(dialects.find(release), Options(**options), out)
    error = None
    try:
        run.run([str(path)])
    except KdumpError as reason:
        error = str(reason)
    return out.getvalue(), run.gaps, error


def general(path, release="4.3", **options):
    """The same without the kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classic_lines.FastLines, "batch", lambda *_, **__: 0)
        patch.setattr(kernel, "Kernel", NoKernel)
        return dumped(path, release, **options)


class NoKernel:
    """A kernel that takes no batch."""

    def begin(self, *_):
        return False


def read(data):
    """The records of a batch, and how reading them ends."""
    records = []
    try:
        for record in batch.Batch(memoryview(data), 0, len(data)).records():
            records.append(record)  # noqa: PERF402  what stands in front of an error counts
    except KdumpError as error:
        return records, str(error)
    return records, None


def read_one_by_one(data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "Kernel", NoKernel)
        return read(data)


TEXTS = [
    b"",
    b"k",
    b"plain text of more than eight bytes",
    "grüße, 東京 😀".encode(),
    b"\xff\xfe",
    b"seven b\xc3",  # cut off
    b"\xed\xa0\x80 surrogate",
    b"\xc0\x80 overlong \xe0\x80\x80 \xf0\x80\x80\x80",
    b"\xf4\x90\x80\x80 \xf5\x80\x80\x80",
    "\ud7ff\ue000\U0010ffff\x80\u0800\U00010000".encode(),
    b"x" * 64 + b"\x80",
    b"100% %d %s",
    b"y" * 9000,
    None,
]


def records(texts=TEXTS):
    """Records with each text as key and as value, with none, one and many headers."""
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
@pytest.mark.usefixtures("build")
def test_well_formed_batches_read_the_same(case, release, tmp_path):
    path = tmp_path / NAME
    path.write_bytes(forge.batch(records(), **CASES[case]) + forge.batch(records(), base_offset=40))
    for options in (
        {},
        {"print_data_log": True},
        {"deep_iteration": True},
        {"print_data_log": True, "deep_iteration": True},
        {"print_data_log": True, "deep_iteration": True, "skip_record_metadata": True},
    ):
        assert dumped(path, release, **options) == general(path, release, **options)


@pytest.mark.usefixtures("build")
def test_the_kernel_takes_what_is_well_formed(tmp_path, monkeypatch):
    path = tmp_path / NAME
    path.write_bytes(forge.batch(records()))
    want = general(path, print_data_log=True)
    monkeypatch.setattr("kdump.printers.classic_log.LogPrinter.record", None)
    assert dumped(path, print_data_log=True) == want


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("build")
def test_records_are_the_same(case, monkeypatch):
    monkeypatch.setattr(batch, "CHUNK", 4)
    data = forge.batch(records(), **CASES[case])
    assert read(data) == read_one_by_one(data)
    assert len(read(data)[0]) == len(TEXTS) + 1


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("build")
def test_facts_are_those_of_the_records(case):
    odd = [forge.record(b"k", b"v", offset=2, attributes=1), forge.record(b"k", b"v", offset=2)]
    for made in (records(), odd):
        data = forge.batch(made, **CASES[case])
        header = batch.HEADER.read(data)
        known, facts = read(data)[0], kernel.Kernel()
        if not facts.begin(memoryview(data), batch.HEADER.size, header, (), False) or not facts.sound():
            continue  # the general reader takes these
        highest = max(-1, *(record.timestamp for record in known))
        assert facts.facts() == (known[-1].offset, highest, 2 if made is odd else 0)
        for broken in (data[:-1], data + b"x"):
            facts.begin(memoryview(broken), batch.HEADER.size, header, (), False)
            assert facts.facts() is None


@pytest.mark.usefixtures("build")
def test_broken_records_are_the_same():
    plain = b"".join(records([b"key", None, b"w" * 70]))
    seed = random.Random(1)
    for at in range(len(plain)):
        for byte in (0, 1, 0x7F, 0x80, 0xFF, seed.randrange(256)):
            body = plain[:at] + bytes([byte]) + plain[at + 1 :]
            for told in (body, plain[:at], plain + bytes([byte])):
                data = forge.batch([told], count=4, base_sequence=5)
                assert read(data) == read_one_by_one(data), (at, byte)


@pytest.mark.parametrize("codec", range(5), ids=codecs.NAMES)
@pytest.mark.usefixtures("build")
def test_broken_records_read_the_same(codec, tmp_path):
    """Every byte of a small batch's records changed, and each cut: what stands before the bad record is printed."""
    path = tmp_path / NAME
    plain = b"".join(records([b"key", None, b"w" * 70]))
    seed = random.Random(codec)
    for at in range(len(plain)):
        broken = bytearray(plain)
        broken[at] = seed.choice([0, 1, 0x7F, 0x80, 0xFF, seed.randrange(256)])
        for body in (bytes(broken), plain[:at]):
            packed = codecs.compress(codec, body)
            path.write_bytes(forge.batch([packed], count=4, attributes=codec))
            assert dumped(path, print_data_log=True) == general(path, print_data_log=True), (at, body)


@pytest.mark.parametrize("size", [1 << 18, 3 << 20], ids=["whole", "in pieces"])
@pytest.mark.parametrize("codec", [codecs.NONE, codecs.ZSTD])
@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
@pytest.mark.usefixtures("build")
def test_large_batches_read_the_same(size, codec, broken, tmp_path, monkeypatch):
    monkeypatch.setattr(classic_lines, "CHUNK", 1 << 16)
    count = size // 1000
    made = [forge.record(b"%d" % number, b"v" * 990, offset=number * 2) for number in range(count)]
    if broken:
        made[count // 2] = b"\x02\x00"
    path = tmp_path / NAME
    path.write_bytes(forge.batch([codecs.compress(codec, b"".join(made))], count=count, attributes=codec))
    assert dumped(path, print_data_log=True) == general(path, print_data_log=True)


@pytest.mark.usefixtures("build")
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


@pytest.mark.parametrize("path", sorted(GOLDEN.rglob("*.log")), ids=lambda path: str(path.relative_to(GOLDEN)))
@pytest.mark.usefixtures("build")
def test_golden_segments_read_the_same(path):
    assert dumped(path, print_data_log=True) == general(path, print_data_log=True)


def test_the_stamp_is_that_of_the_source():
    """After an edit: write the new stamp into kernel.py, and install again where a compiler is there."""
    source = SOURCE.read_text()
    (stamp,) = re.findall(r'^STAMP: Final = "(\w+)"', source, re.MULTILINE)
    assert stamp == kernel.stamp(source)
    assert stamp == kernel.STAMP, "the compiled kernel was made from another source: pip install -e . again"


def test_version_says_which_kernel_is_active():
    assert f"kernel: {kernel.build()}".encode() in kdump("--version").stdout
    forced = kdump("--version", env={**os.environ, "KDUMP_KERNEL": "python"})
    assert b"kernel: Python)" in forced.stdout
