"""What tells an archive: the short cut in front of tarfile, which is slow to import, says what that says."""

import os
import random
import tarfile

from kdump.log_dirs.files import is_archive, is_tar
from kdump.log_dirs.local import LOCAL
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
        front + b"%6o" + behind
        for front in (b"", b"0o", b"0_", b"+", b"-", b"\t", b"\x1c", b"\x85")
        for behind in (b"\0 ", b" ")
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
    assert not is_archive(path.read_bytes())
    code = (
        "import sys; from kdump import cli; status = cli.main(); "
        "sys.exit(status or 9 * bool({'tarfile', 'tempfile'} & set(sys.modules)))"
    )
    done = python("-c", code, "dump", "-o", "jsonl", path)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1), done.stderr


def test_an_entry_says_when_its_file_was_written_and_what_it_occupies(tmp_path):
    path = tmp_path / "holes.log"
    with path.open("wb") as file:
        file.write(b"x" * 4096)
        file.truncate(1 << 20)
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    (entry,) = LOCAL.entries(str(tmp_path))
    assert (entry.size, entry.modified) == (1 << 20, 1_700_000_000_123)
    assert entry.disk_size == path.stat().st_blocks * 512 < entry.size
