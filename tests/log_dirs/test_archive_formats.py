"""The bytes that identify an archive; the short cut before tarfile, which is slow to import, agrees with it."""

import random
import tarfile

import pytest

from kdump.log_dirs import archive_formats
from kdump.log_dirs.archive_formats import format_of, is_tar
from testing import forge
from testing.processes import python


def says_tarfile(head):
    try:
        tarfile.TarInfo.frombuf(head[:512], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def test_a_tar_is_what_tarfile_takes_for_one():
    seed = random.Random(3)
    forms = [
        front + b"%6o" + after
        for front in (b"", b"0o", b"0_", b"+", b"-", b"\t", b"\x1c", b"\x85")
        for after in (b"\0 ", b" ")
    ]
    taken = 0
    for number in range(1000):
        info = tarfile.TarInfo(f"f{number}")
        head = bytearray(info.tobuf(seed.choice((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT)))[:512])
        for _ in range(seed.randrange(3)):
            head[seed.choice((seed.randrange(512), seed.randrange(148, 156)))] = seed.randrange(256)
        total = sum(head[:148]) + sum(head[156:]) + 256
        if number % 2:
            head[148:156] = (seed.choice(forms) % total).ljust(8, b"\0")[:8]
        elif number % 5 == 0:
            head[148:156] = b"\x80" + total.to_bytes(7, "big")
        assert is_tar(bytes(head)) == says_tarfile(bytes(head)), head[148:156]
        taken += is_tar(bytes(head))
    assert 250 < taken < 1000
    for head in (b"", b"x", bytes(100), bytes(512), b"\x80" * 512):
        assert is_tar(head) == says_tarfile(head) is False


def test_a_segment_is_no_archive_and_needs_no_tarfile(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(forge.batch([forge.record(b"key", b"value" * 100)]))
    assert format_of(path.read_bytes()) is None
    code = (
        "import sys; from kdump import cli; status = cli.main(); "
        "sys.exit(status or 9 * bool({'tarfile', 'tempfile'} & set(sys.modules)))"
    )
    done = python("-c", code, "dump", "-o", "jsonl", path)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1), done.stderr


@pytest.mark.parametrize("batch", [forge.batch([forge.record(b"k", b"v")]), b"", bytes(600)])
def test_no_segment_is_a_foreign_format(batch):
    assert format_of(batch) is None
    assert archive_formats.foreign(batch) is None


def test_the_content_of_a_compressed_file_has_its_name_without_the_suffix():
    names = {"0.log.gz": "0.log", "a/0.log.zst": "a/0.log", "0.log": "0.log", "notes.txt.xz": "notes.txt"}
    assert {name: archive_formats.name_inside(name) for name in names} == names
