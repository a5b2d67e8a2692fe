"""Holes of sparse files are found, and no command reads their zeros."""

from __future__ import annotations

import os
import tarfile

import pytest

from kdump.errors import UnreadableError
from kdump.log_dirs import files
from kdump.log_dirs.archives import Extent, Extents, OwnedDescriptor
from kdump.log_dirs.files import MOST_WHOLE, read_whole
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LOCAL, LocalFile
from testing import forge
from testing.processes import kdump, patched
from tests.helpers.asking import LINES
from tests.helpers.segments import Memory

PAGE = 1 << 16
FAR = 5 << 40
LOG = "00000000000000000000.log"
MOST_READ = 64 << 20
"""Maximum bytes that a command may read of files with some kilobytes of data."""
WRITERS = {
    "salvage": ["salvage", "{folder}", "--out", "{out}"],
    "slice": ["slice", "{folder}", "--offset", "3", "--out", "{out}"],
    "report": ["report", "{folder}"],
    "check": ["check", "{folder}", "--notes"],
    "check --jobs": ["check", "{folder}", "--jobs", "2"],
    "verify-index": ["verify-index", "{folder}"],
    "dump": ["dump", "{folder}"],
    "dump --jobs": ["dump", "{folder}", "-o", "jsonl", "--jobs", "2"],
    "dump --tail": ["dump", "{folder}", "--tail", "2"],
    "get": ["get", "t-0@15", "--in", "{folder}"],
    "rebuild-index": ["rebuild-index", "{folder}", "--out", "{out}"],
    "--files": ["--files", f"{{folder}}/{LOG}"],
}


def sparse(path, pieces: dict[int, bytes], size: int) -> None:
    """Write pieces at their positions into a file of ``size`` bytes; skip the test if the disk makes no holes."""
    with path.open("wb") as file:
        for position, data in pieces.items():
            file.seek(position)
            file.write(data)
        file.truncate(size)
    with LocalFile(path) as source:
        if source.next_data(size - 1) != size:
            pytest.skip("this file system knows no holes")


def batches(first: int, until: int) -> bytes:
    return b"".join(forge.batch([forge.record(b"k", b"v")], base_offset=offset) for offset in range(first, until))


def test_data_and_holes_of_a_local_file(tmp_path):
    sparse(tmp_path / "f", {0: b"a" * PAGE, FAR: b"b" * PAGE}, 2 * FAR)
    with LocalFile(tmp_path / "f") as source:
        assert [files.next_data(source, at) for at in (0, 5, PAGE, FAR, FAR + 5)] == [0, 5, FAR, FAR, FAR + 5]
        assert files.next_data(source, FAR + PAGE) == source.size
        assert [files.next_hole(source, at) for at in (0, PAGE, FAR)] == [PAGE, PAGE, FAR + PAGE]
        assert files.data_end(source, 0, source.size) == FAR + PAGE
        assert files.data_end(source, 0, FAR) == PAGE
        assert files.data_end(source, 2 * PAGE, FAR) == 2 * PAGE
        assert files.data_end(source, 0, FAR + 9) == FAR + 9
        assert files.size_of_holes(source, 0, source.size) == 2 * FAR - 2 * PAGE
        assert files.size_of_holes(source, PAGE - 1, FAR + 1) == FAR - PAGE


def test_a_file_that_has_shrunk_has_no_hole_at_its_end(tmp_path):
    (tmp_path / "f").write_bytes(b"a" * 2 * PAGE)
    with LocalFile(tmp_path / "f") as source:
        os.truncate(tmp_path / "f", PAGE)
        assert files.next_data(source, PAGE + 5) == PAGE + 5


def test_holes_of_a_member_of_an_archive_are_those_of_its_extents(tmp_path):
    (tmp_path / "f").write_bytes(b"a" * PAGE + b"b" * PAGE)
    held = OwnedDescriptor((tmp_path / "f").open("rb"))
    source = Extents(held, "f", 2 * FAR, (Extent(PAGE, PAGE, 0), Extent(FAR, PAGE, PAGE), Extent(2 * FAR, 0, 0)))
    assert [files.next_data(source, at) for at in (0, PAGE, PAGE + 9)] == [PAGE, PAGE, PAGE + 9]
    assert [files.next_data(source, at) for at in (2 * PAGE, FAR + PAGE)] == [FAR, 2 * FAR]
    assert [files.next_hole(source, at) for at in (0, PAGE, FAR)] == [0, 2 * PAGE, FAR + PAGE]
    assert files.size_of_holes(source, 0, source.size) == 2 * FAR - 2 * PAGE
    assert source.read(FAR - 2, 4) == b"\0\0bb"


def test_other_sources_have_no_holes():
    source = Memory(bytes(100))
    assert (files.next_data(source, 7), files.next_hole(source, 7)) == (7, 100)
    assert (files.data_end(source, 0, 100), files.size_of_holes(source, 0, 100)) == (100, 0)


def test_reading_a_member_costs_what_is_read_whatever_the_number_of_extents(tmp_path):
    (tmp_path / "f").write_bytes(b"a")

    class Listed(tuple):
        looked_at = 0

        def __getitem__(self, number):
            Listed.looked_at += 1
            assert not isinstance(number, slice)
            return super().__getitem__(number)

    extents = Listed(Extent(2 * number, 1, 0) for number in range(100_000))
    source = Extents(OwnedDescriptor((tmp_path / "f").open("rb")), "f", 200_000, extents)
    assert source.read(150_000, 6) == b"a\0a\0a\0"
    assert Listed.looked_at < 20


def test_a_small_file_of_terabytes_is_not_read(tmp_path):
    sparse(tmp_path / "f", {}, MOST_WHOLE + 1)
    with LocalFile(tmp_path / "f") as source, pytest.raises(UnreadableError, match=f"has {MOST_WHOLE + 1} bytes"):
        read_whole(source)


READ_LITTLE = f"""
import os
from kdump.log_dirs.local import LocalFile
whole, left = LocalFile.read, {MOST_READ}
def read(self, position, size):
    global left
    left -= min(size, max(0, self.size - position))
    if left < 0:
        os._exit(98)
    return whole(self, position, size)
LocalFile.read = read
"""
"""End the process that reads more than MOST_READ bytes of local files in all."""


@pytest.mark.parametrize("name", [*LINES, *WRITERS])
def test_no_command_reads_through_holes(tmp_path, name):
    folder = tmp_path / "t-0"
    folder.mkdir()
    sparse(folder / LOG, {0: batches(0, 10) + b"\xff" * 99, FAR: b"\xff" * 99 + batches(10, 20)}, 2 * FAR)
    places = {"folder": folder, "out": tmp_path / "out"}
    args = [arg.format(**places) for arg in {**LINES, **WRITERS}[name]]
    done = patched(READ_LITTLE, *args)
    assert done.returncode in (0, 1, 3), done.stderr.decode()
    assert b"Traceback" not in done.stderr
    if name == "check":
        assert b"in holes of the file" in done.stdout
    if name == "salvage":
        (saved,) = (tmp_path / "out" / "lost+found").rglob("*@*")
        assert saved.stat().st_size == FAR + 99 - len(batches(0, 10))
        assert saved.stat().st_blocks * 512 < MOST_READ


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "00000000000000000000.index", "partition.metadata"])
def test_a_small_file_that_is_all_hole_is_named(tmp_path, name):
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / LOG).write_bytes(batches(0, 3))
    sparse(folder / name, {}, FAR)
    done = patched(READ_LITTLE, "check", tmp_path)
    assert done.returncode == 1
    assert f"{name}: has {FAR} bytes: Kafka reads at most {MOST_WHOLE}".encode() in done.stderr


def test_a_sparse_member_of_a_tar_is_read_without_its_holes(tmp_path):
    """The old sparse format of GNU tar: two extents, a hole of nearly 4 GiB between them."""
    first, second, far = batches(0, 10).ljust(1024, b"\0"), batches(10, 20).ljust(1024, b"\0"), (1 << 32) - 2048
    info = tarfile.TarInfo("t-0/" + LOG)
    info.size, info.type = 2048, tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    spans = b"".join(b"%011o\0" % number for number in (0, 1024, far, 1024))
    header[386 : 386 + len(spans)] = spans
    header[483:495] = b"%011o\0" % (far + 1024)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    (tmp_path / "a.tar").write_bytes(bytes(header) + first + second + bytes(1024))
    done = kdump("dump", tmp_path / "a.tar", "-f", "%o\n")
    assert done.stdout.split() == [b"%d" % offset for offset in range(20)]
    assert done.returncode == 3
    assert b"are in holes of the file" in done.stderr


def test_places_list_holes_as_no_bytes_of_the_disk(tmp_path):
    sparse(tmp_path / "f", {}, FAR)
    assert LOCAL.look(str(tmp_path / "f")).disk_size < 1 << 20


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("start", [b"", b"\1" * 24, b"\1" * (3 * PAGE)])
def test_the_hole_at_the_end_of_an_index_is_not_read(tmp_path, start, suffix):
    path = tmp_path / f"{LOG[:-4]}.{suffix}"
    with path.open("wb") as out:
        out.write(start)
        out.truncate(10 << 20)
    (tmp_path / LOG).write_bytes(forge.batch([forge.record(b"k", b"v")]))
    (found,) = Finder().find([str(tmp_path)])
    content = found.segments[0].sibling(suffix)
    assert content.startswith(start)
    assert len(content) + content.hole == 10 << 20
    assert len(content) < len(start) + PAGE
    assert not any(content[len(start) :])


def test_a_hole_within_an_index_or_none_is_read(tmp_path):
    path = tmp_path / f"{LOG[:-4]}.index"
    with path.open("wb") as out:
        out.seek(4 * PAGE)
        out.write(b"\1" * 8)
    assert files.read_index(LOCAL, str(path)) == path.read_bytes()
    path.write_bytes(bytes(PAGE))
    assert files.read_index(LOCAL, str(path)) == bytes(PAGE)
    path.write_bytes(b"")
    assert files.read_index(LOCAL, str(path)) == b""
