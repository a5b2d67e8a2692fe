"""Archives made to break their reader: false names, links, holes, sizes and headers."""

from __future__ import annotations

import bz2
import errno
import gc
import gzip
import io
import json
import lzma
import os
import pickle
import random
import re
import shlex
import shutil
import struct
import tarfile
import types
import zipfile
import zlib

import pytest
import zstandard

from kdump.errors import Reporter, UnreadableError
from kdump.log_dirs import archives, zip_directory
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LOCAL, LocalFile
from kdump.primitives import compression
from testing import forge
from testing.processes import kdump
from tests.commands.test_limits import IDLE, MIB, peak_in_child

LOG = "00000000000000000000.log"
RECORD = forge.batch([forge.record(b"k", b"in the archive")])


def header(name=f"t-0/{LOG}", **fields):
    """Return a header of one block; any field may be given in its encoded form."""
    info = tarfile.TarInfo(name)
    size, kind = fields.pop("size", 0), fields.pop("type", tarfile.REGTYPE)
    info.type, info.linkname = kind, fields.pop("linkname", "")
    block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = size if isinstance(size, bytes) else b"%011o\0" % size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def member(name, data=RECORD, **fields):
    return header(name, size=len(data), **fields) + data + bytes(-len(data) % 512)


def archive(folder, *members, end=bytes(1024)):
    path = folder / "a.tar"
    path.write_bytes(b"".join(members) + end)
    return path


def values(path, *more):
    done = kdump("dump", path, "-o", "raw", "--leftovers", *more)
    assert b"Traceback" not in done.stderr
    return done


SOUND = member(f"s-0/{LOG}", forge.batch([forge.record(b"k", b"sound")]))


@pytest.mark.parametrize(
    "name", [f"../../../../etc/t-0/{LOG}", f"/etc/t-0/{LOG}", f"t-0/../../t-0/{LOG}", f"./t-0//{LOG}"]
)
def test_names_stay_in_the_archive(tmp_path, name):
    outside = tmp_path / "etc" / "t-0"
    outside.mkdir(parents=True)
    (outside / LOG).write_bytes(forge.batch([forge.record(b"k", b"OUTSIDE")]))
    done = values(archive(tmp_path, member(name)))
    assert (done.returncode, done.stdout) == (0, b"in the archive\n")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", [f"../../outside/{LOG}", f"/{LOG}", "/etc/passwd", f"t-1/{LOG}", "gone"])
def test_links_out_of_the_archive_and_in_circles_are_left_out(tmp_path, kind, target):
    circle = [header(f"t-1/{LOG}", type=kind, linkname=f"t-2/{LOG}"), header(f"t-2/{LOG}", type=kind, linkname=target)]
    done = values(archive(tmp_path, SOUND, *circle))
    assert (done.returncode, done.stdout) == (0, b"sound\n")
    assert done.stderr.count(b"is left out: it links to") == 2


@pytest.mark.parametrize(
    ("links", "topics"),
    [
        ({"d1/a-0": "../ssd/a-0"}, {"a": "d1/a-0"}),
        ({"d1/a-0": "/ssd/a-0"}, {"a": "d1/a-0"}),
        ({"d1/a-0": "../hot/a-0", "hot": "ssd"}, {"a": "d1/a-0"}),
        ({"hot": "ssd", "d1/a-0": "../hot/a-0"}, {"a": "d1/a-0"}),
        ({"d1/b-0": "../d1/c-0", "d1/c-0": "../d1/b-0"}, {"a": "ssd/a-0"}),
        ({"d1/up": "..", "ssd/a-0/self": ".", "ssd/d1": "../d1", "d1/ssd": "../ssd"}, {"a": "d1/ssd/a-0"}),
        ({"ssd/a-0": "../d1"}, {"a": "ssd/a-0"}),
        ({"ssd/a-0/more": "../../d1"}, {"a": "ssd/a-0"}),
    ],
)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_links_to_folders_are_followed_as_on_disk(tmp_path, kind, links, topics):
    log = f"ssd/a-0/{LOG}"
    if kind == "tar":
        made = [header(name, type=tarfile.SYMTYPE, linkname=target) for name, target in links.items()]
        path = archive(tmp_path, *made, member("d1/meta.properties", b"node.id=1\n"), member(log))
    else:
        made = [link(name, target) for name, target in links.items()]
        path = zipped(tmp_path / "a.zip", [*made, ("d1/meta.properties", b"node.id=1\n"), (log, RECORD)])
    done = kdump("dump", path, "-o", "jsonl", "--fields", "topic,file")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {one["topic"]: one["file"] for one in found} == {
        topic: f"{path}:{folder}/{LOG}" for topic, folder in topics.items()
    }
    assert len(found) == 1
    assert values(f"{path}:**/*.log").stdout == b"in the archive\n"
    [folder] = topics.values()
    assert kdump("offsets", f"{path}:{folder}").returncode == 0


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_left_out(tmp_path, kind):
    done = values(archive(tmp_path, header(type=kind), SOUND))
    assert (done.returncode, done.stdout) == (0, b"sound\n")
    assert b"is not a file" in done.stderr


def test_the_last_of_two_members_of_one_name_counts(tmp_path):
    later = forge.batch([forge.record(b"k", b"later")])
    done = values(archive(tmp_path, member(f"t-0/{LOG}"), member(f"t-0/{LOG}", later)))
    assert (done.returncode, done.stdout) == (0, b"later\n")


@pytest.mark.parametrize("gap", [0, 9 * 512, 3 << 20])
def test_data_after_the_end_of_a_tar_are_an_error(tmp_path, gap):
    """``cat a.tar b.tar``: tar reads the first one only."""
    end = bytes(1024 + gap)
    path = archive(tmp_path, SOUND, end, member("u-0/00000000000000000000.log"))
    done = kdump("dump", path, "-o", "raw")
    assert (done.returncode, done.stdout) == (1, b"sound\n")
    position = len(SOUND) + len(end)
    assert f"the archive ends before byte {position}, where other data follow".encode() in done.stderr
    assert f"-xf {path} extracts all".encode() in done.stderr
    assert b"-xf FILE extracts all" in kdump("dump", "-", input=path.read_bytes()).stderr
    assert kdump("dump", archive(tmp_path, SOUND, end)).returncode == 0


def test_an_archive_in_an_archive_is_no_segment(tmp_path):
    inner = member(f"t-0/{LOG}") + bytes(1024)
    done = values(archive(tmp_path, member("inner.tar", inner), member("inner.tar.gz", gzip.compress(inner)), SOUND))
    assert (done.returncode, done.stdout) == (0, b"sound\n")


def test_names_that_are_no_text_and_names_that_steer_a_terminal(tmp_path):
    path = archive(tmp_path, member(f"\udcff\x1b[2J-0/{LOG}"))
    done = values(path)
    assert (done.returncode, done.stdout) == (0, b"in the archive\n")
    lines = kdump("dump", path, "-o", "jsonl").stdout
    assert lines.decode("utf-8").count("\n") == 1
    assert b"\x1b" not in lines
    for command in (["check", "--json"], ["verify-index", "--json"]):
        done = kdump(*command, path)
        assert b"Traceback" not in done.stderr
        assert "\x1b" not in done.stdout.decode("utf-8")


NEGATIVE = b"\xff" + b"\xff" * 10 + b"\x00"
HUGE = b"\x80" + bytes(3) + b"\x7f" + b"\xff" * 7


@pytest.mark.parametrize(
    "size", [NEGATIVE, HUGE, b"77777777777\0", b"\x80" + b"\xff" * 11], ids=["<0", "8EiB", "8GiB", "2^88"]
)
@pytest.mark.parametrize(
    "kind",
    [
        tarfile.REGTYPE,
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_SPARSE,
        b"?",
        tarfile.DIRTYPE,
    ],
    ids=["regular", "pax", "global", "longname", "sparse", "unknown", "folder"],
)
def test_sizes_that_lie(tmp_path, kind, size):
    path = archive(tmp_path, SOUND, header(type=kind, size=size), end=bytes(512))
    done = peak_in_child("dump", path, "-o", "raw", "--leftovers")
    assert b"Traceback" not in done.stderr
    assert b"memory" not in done.stderr
    assert b"sound\n" in done.stdout
    assert done.peak < IDLE + 16 * MIB
    assert done.status in {0, 1, 3}


@pytest.mark.parametrize("size", [NEGATIVE, HUGE, b"\x80" + b"\xff" * 11], ids=["<0", "8EiB", "2^88"])
def test_headers_of_members_with_lying_sizes_are_read_once(tmp_path, monkeypatch, size):
    lies = [header(type=kind, size=size) for kind in (tarfile.REGTYPE, tarfile.GNUTYPE_LONGNAME, b"?")]
    path = archive(tmp_path, *lies * 20, SOUND, end=bytes(512))
    places, original = [], archives._Headers.read

    def read(self, wanted):
        places.append(self.tell())
        return original(self, wanted)

    monkeypatch.setattr(archives._Headers, "read", read)
    with LOCAL.open(str(path)) as source:
        archives.open_archive(source, "a")
    assert len(places) == len(set(places)) <= path.stat().st_size // 512 + 2


def sparse(claimed, stored=b"", holes=((1 << 40, 0),)):
    """Return a member with holes and with the size ``claimed``."""
    block = bytearray(header(type=tarfile.GNUTYPE_SPARSE, size=len(stored)))
    for number, (position, size) in enumerate(holes):
        block[386 + 24 * number : 386 + 24 * number + 24] = b"%011o\0%011o\0" % (position, size)
    block[483:495] = b"\x80" + claimed.to_bytes(11, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + stored + bytes(-len(stored) % 512)


@pytest.mark.parametrize(
    "command", [["dump", "-o", "jsonl"], ["check"], ["verify-index"], ["salvage", "--out", "OUT"]], ids=" ".join
)
def test_holes_of_terabytes_are_not_walked(tmp_path, command):
    path = archive(tmp_path, SOUND, sparse(1 << 42, RECORD.ljust(512, b"\0"), ((0, 512), (1 << 33, 0))))
    done = peak_in_child(*(word.replace("OUT", str(tmp_path / "out")) for word in command), path)
    assert b"Traceback" not in done.stderr
    assert b"is left out: it claims 4398046511104 bytes" in done.stderr


def test_holes_that_overlap_or_lie_outside_are_survived(tmp_path):
    for holes in (((0, 512), (0, 512)), ((1 << 20, 512),), ((512, 512), (0, 512))):
        done = values(archive(tmp_path, SOUND, sparse(2048, bytes(1024), holes)))
        assert b"sound\n" in done.stdout


def test_a_name_of_ten_thousand_folders(tmp_path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("a/" * 10_000 + f"t-0/{LOG}")
        info.size = len(RECORD)
        tar.addfile(info, io.BytesIO(RECORD))
    done = values(archive(tmp_path, out.getvalue()))
    assert done.returncode in {0, 1}


@pytest.mark.parametrize(
    "pack", [gzip.compress, lambda data: compression.compress(compression.ZSTD, data)], ids=["gzip", "zstd"]
)
def test_a_bomb_does_not_fill_the_disk(tmp_path, monkeypatch, pack):
    path = tmp_path / "bomb"
    path.write_bytes(pack(bytes(64 * MIB)))
    free = os.statvfs(tmp_path)

    class Small:
        f_bavail, f_frsize = 8 * MIB // free.f_frsize, free.f_frsize

    monkeypatch.setattr(os, "fstatvfs", lambda _fd: Small)
    with LocalFile(path) as source, pytest.raises(UnreadableError, match="more than half of the free space"):
        archives.open_archive(source, "bomb")


def test_headers_about_headers_without_end(tmp_path):
    done = values(archive(tmp_path, SOUND, *[header(type=tarfile.XHDTYPE)] * 5000))
    assert b"sound\n" in done.stdout
    assert done.returncode == 1
    assert b"the archive is broken" in done.stderr


@pytest.mark.parametrize(
    ("text", "ms"),
    [("1700000000.123456789", 1_700_000_000_123), ("0", 0), ("nan", None), ("inf", None), ("1e99", None), ("x", None)],
)
def test_times_of_members_are_whole_and_those_without_sense_are_not_known(tmp_path, text, ms):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("t-0/" + LOG)
        info.size, info.pax_headers = len(RECORD), {"mtime": text}
        tar.addfile(info, io.BytesIO(RECORD))
    with LOCAL.open(str(path)) as source:
        place = archives.open_archive(source, str(path))
    entry = place.look("t-0/" + LOG)
    assert (entry.modified, entry.disk_size) == (ms, len(RECORD))


def pax(*records, kind=tarfile.XHDTYPE):
    """Return a PAX header of encoded records."""
    return member("PaxHeaders/x", b"".join(records), type=kind)


def pax_record(keyword, value):
    """Return a record with its own length at the start, as in POSIX."""
    rest = b" " + keyword + b"=" + value + b"\n"
    size = len(rest)
    while len(b"%d" % size) + len(rest) != size:
        size = len(b"%d" % size) + len(rest)
    return b"%d" % size + rest


DIGITS = b"1" * 1_000_000


@pytest.mark.parametrize(
    "records",
    [
        (DIGITS,),
        (DIGITS + b" hdrcharset=BINARY\n",),
        (pax_record(b"path", DIGITS),),
        (pax_record(b"size", DIGITS),),
        (pax_record(b"GNU.sparse.size", b"9"), pax_record(b"GNU.sparse.offset", DIGITS)),
        (pax_record(b"GNU.sparse.map", DIGITS),),
        (b"0 path=x\n",),
        (b"3 a",),
        (b"99 path=x\n",),
        (b"9 path=xy\n",),
        (b"10 pathxyz\n",),
        (b"8 =value\n",),
        (b"-9 path=x\n",),
        (pax_record(b"comment", b"sound"), b"x"),
    ],
    ids=lambda records: records[-1][:20].decode(),
)
@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE], ids=["x", "g", "X"])
def test_a_broken_pax_header_ends_an_archive_at_once(tmp_path, kind, records):
    with LOCAL.open(str(archive(tmp_path, SOUND, pax(*records, kind=kind), member(f"t-0/{LOG}")))) as source:
        place = archives.open_archive(source, "a.tar")
    assert "the archive is broken" in place.broken
    assert [entry.name for entry in place.entries("")] == ["s-0"]


def test_a_broken_pax_header_is_an_unreadable_archive(tmp_path):
    done = peak_in_child("check", archive(tmp_path, pax(DIGITS), SOUND))
    assert done.status == 1
    assert b"a.tar: the archive is broken" in done.stderr
    assert b"the record of a PAX header at byte" in done.stderr


@pytest.mark.parametrize("keyword", [b"comment", b"SCHILY.xattr.user.x", b"GNU.sparse.unknown"])
@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_long_values_of_other_pax_records_are_no_fault(tmp_path, kind, keyword):
    name = pax_record(b"path", f"t-0/{LOG}".encode())
    path = archive(
        tmp_path, pax(name, pax_record(keyword, DIGITS), kind=kind), member("other" if kind == b"x" else f"t-0/{LOG}")
    )
    done = peak_in_child("dump", path, "-o", "raw")
    assert (done.status, done.stdout) == (0, b"in the archive\n")


def test_the_headers_of_one_member_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_ABOUT_A_MEMBER", 1 << 14)
    holes = b"1000\n" + b"".join(b"%d\n0\n" % number for number in range(1000))
    sparse_1_0 = pax(*(pax_record(b"GNU.sparse." + key, value) for key, value in SPARSE_1_0))
    with LOCAL.open(str(archive(tmp_path, SOUND, sparse_1_0, member(f"t-0/{LOG}", holes * 4)))) as source:
        assert archives.open_archive(source, "a").broken is None
    with LOCAL.open(str(archive(tmp_path, SOUND, sparse_1_0, member(f"t-0/{LOG}", b"9" + holes * 4)))) as source:
        assert "has more than 16384 bytes of headers" in archives.open_archive(source, "a").broken


SPARSE_1_0 = ((b"major", b"1"), (b"minor", b"0"), (b"name", f"t-0/{LOG}".encode()), (b"realsize", b"1024"))


FOLDER = "extract the archive, then name the folder; or name an archive with fewer members"


def test_members_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_MEMBERS", 10)
    for count, is_broken in ((10, False), (11, True)):
        with LOCAL.open(str(archive(tmp_path, *(member(f"t-{n}/{LOG}") for n in range(count))))) as source:
            place = archives.open_archive(source, "a")
        limit = "later members are not read, because it has more than 10 members (a limit of kdump, not damage)"
        assert (place.broken, place.hint) == ((limit, FOLDER) if is_broken else (None, ""))
        assert len(place.entries("")) == 10


def test_a_name_that_no_system_takes_is_left_out_and_shown_in_short(tmp_path):
    done = values(archive(tmp_path, pax(pax_record(b"path", b"a" * 100_000)), member("x"), SOUND))
    assert (done.returncode, done.stdout) == (0, b"sound\n")
    assert b"aaa... is left out: it has a name of more than 16384 bytes" in done.stderr
    assert len(done.stderr) < 1000


def zipped(path, members, **options):
    """Write a zip of pairs of name and content; a name may be a ZipInfo."""
    with zipfile.ZipFile(path, "w", **{"compression": zipfile.ZIP_DEFLATED, **options}) as file:
        for name, data in members:
            file.writestr(name, data)
    return path


def link(name, target, mode=0o120777):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info, target


LOGS = [(f"d1/t-0/{LOG}", RECORD), (f"d1/t-0/{0:020}.index", bytes(10)), ("d1/meta.properties", b"version=1\n")]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_zip(tmp_path, method):
    path = zipped(tmp_path / "a.zip", LOGS, compression=method)
    for where in (path, f"{path}:d1", f"{path}:d1/t-0", f"{path}:d1/t-0/{LOG}", f"{path}:d*/t-[0-9]"):
        done = values(where)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"in the archive\n", b"")
    assert [file.name for file in tmp_path.iterdir()] == ["a.zip"]


def test_a_zip_through_a_pipe_and_in_other_formats(tmp_path):
    path = zipped(tmp_path / "a.zip", LOGS)
    with path.open("rb") as stdin:
        assert kdump("dump", "-", "-o", "raw", stdin=stdin).stdout == b"in the archive\n"
    assert kdump("dump", "-", "-o", "raw", input=path.read_bytes()).stdout == b"in the archive\n"
    (tmp_path / "a.zip.xz").write_bytes(lzma.compress(path.read_bytes()))
    assert values(tmp_path / "a.zip.xz").stdout == b"in the archive\n"


@pytest.mark.parametrize(
    ("flags", "method", "reason"),
    [(1, 8, "is encrypted"), (0, 9, "is compressed with deflate64"), (0, 77, "method 77")],
)
def test_members_that_cannot_be_read_end_with_1(tmp_path, flags, method, reason):
    path = zipped(tmp_path / "a b.zip", [(f"s-0/{LOG}", RECORD), (f"t-0/{LOG}", RECORD)])
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 8], data[at + 10] = flags, method
    path.write_bytes(data)
    done = values(path)
    assert (done.returncode, done.stdout) == (1, b"in the archive\n")
    assert f"1 of 2 members cannot be read: t-0/{LOG} ".encode() in done.stderr
    assert reason.encode() in done.stderr
    assert f"7z x '{path}'".encode() in done.stderr
    assert kdump("check", path).returncode == 1


def test_a_zip_cut_at_every_byte_and_with_garbage_after(tmp_path):
    whole = zipped(tmp_path / "a.zip", LOGS).read_bytes()
    path = tmp_path / "cut.zip"

    def read(data):
        path.write_bytes(data)
        found, fails = [], []
        for partition in Finder(report=Reporter(fail=fails.append)).find([str(path)]):
            for segment in partition.segments:
                with segment.open() as source:
                    found.append(source.read(0, source.size))
        return found, fails

    assert read(whole) == ([RECORD], [])
    for size in range(4, len(whole)):
        found, fails = read(whole[:size])
        assert (found, len(fails)) == ([], 1), size
    found, fails = read(whole + b"\r\n" * 10)
    assert found == [RECORD]
    seed = random.Random(5)
    for _ in range(300):
        data = bytearray(whole)
        data[seed.randrange(4, len(whole))] ^= 1 << seed.randrange(8)
        try:
            found, _ = read(data)
        except UnreadableError:
            continue
        assert found in ([RECORD], [])


def test_names_in_a_zip_stay_in_it(tmp_path):
    hostile = [
        (f"../../../etc/a-0/{LOG}", RECORD),
        (f"/etc/b-0/{LOG}", RECORD),
        (f"c-0/{LOG}\0.txt", RECORD),
        (f"d-0\\{LOG}", RECORD),
        ("", RECORD),
        ("..", RECORD),
        ("x/" * 200 + LOG, RECORD),
        ("x" * 20_000, RECORD),
    ]
    members = []
    for name, data in hostile:
        info = zipfile.ZipInfo("placeholder")
        info.filename, info.create_system = name, 0
        members.append((info, data))
    path = zipped(tmp_path / "a.zip", members)
    done = kdump("dump", path, "-o", "jsonl")
    assert done.returncode == 0
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted((line["topic"], line["file"]) for line in lines) == [
        ("a", f"{path}:etc/a-0/{LOG}"),
        ("b", f"{path}:etc/b-0/{LOG}"),
        ("c", f"{path}:c-0/{LOG}"),
        ("d", f"{path}:d-0/{LOG}"),
    ]
    assert b"is more than 100 folders deep" in done.stderr
    assert b"has a name of more than 16384 bytes" in done.stderr


def test_links_in_a_zip(tmp_path):
    outside = tmp_path / "outside.log"
    outside.write_bytes(RECORD)
    path = zipped(
        tmp_path / "a.zip",
        [
            (f"t-0/{LOG}", RECORD),
            link(f"t-1/{LOG}", f"../t-0/{LOG}"),
            link(f"t-2/{LOG}", str(outside)),
            link(f"t-3/{LOG}", f"../t-3/{LOG}"),
            link(f"t-4/{LOG}", "pipe", mode=0o010644),
            link(f"t-5/{LOG}", "x" * 20_000),
        ],
    )
    done = values(path)
    assert (done.returncode, done.stdout) == (0, b"in the archive\n" * 2)
    assert done.stderr.count(b" is left out: it ") == 4


def test_a_disk_error_in_a_zip_is_of_its_member(tmp_path, monkeypatch):
    stored = zipfile.ZipInfo(f"s-0/{LOG}")
    path = zipped(tmp_path / "a.zip", [(f"t-0/{LOG}", RECORD), (stored, RECORD), link(f"u-0/{LOG}", f"../t-0/{LOG}")])
    with zipfile.ZipFile(path) as file:
        begins = file.start_dir

    def failing(descriptor, size, position):
        if position < begins:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return os.pread(descriptor, size, position)

    monkeypatch.setattr(zip_directory, "os", types.SimpleNamespace(**{**vars(os), "pread": failing}))
    found = archives.opened(LOCAL, LOCAL.look(str(path)))
    assert found.left_out == [(f"u-0/{LOG}", "is a link that cannot be read: Input/output error")]
    for topic in ("t", "s"):
        with pytest.raises(UnreadableError, match="Input/output error") as raised:
            found.open(f"{topic}-0/{LOG}")
        assert (raised.value.path, raised.value.errno) == (f"{path}:{topic}-0/{LOG}", errno.EIO)


def test_a_bomb_in_a_zip_is_bounded(tmp_path, monkeypatch):
    path = zipped(tmp_path / "a.zip", [(f"t-0/{LOG}", bytes(64 * MIB)), (f"s-0/{LOG}", RECORD)])
    data = bytearray(path.read_bytes())
    small = data.replace((64 * MIB).to_bytes(4, "little"), (1 * MIB).to_bytes(4, "little"))
    path.write_bytes(small)
    done = peak_in_child("dump", path, "-o", "raw")
    assert b"in the archive\n" in done.stdout
    assert done.status == 1
    assert b"its size in the zip's directory is 1048576 bytes, but its content has more" in done.stderr
    path.write_bytes(data)
    free = os.statvfs(tmp_path)

    class Small:
        f_bavail, f_frsize = 8 * MIB // free.f_frsize, free.f_frsize

    monkeypatch.setattr(os, "fstatvfs", lambda _fd: Small)
    with LocalFile(path) as source:
        place = archives.open_archive(source, "bomb")
    with pytest.raises(UnreadableError, match="more than half of the free space"):
        place.open(f"t-0/{LOG}")


def test_the_directory_of_a_zip_is_bounded(tmp_path, monkeypatch):
    path = zipped(tmp_path / "a.zip", [(f"t-0/{number:020}.log", RECORD) for number in range(300)])
    monkeypatch.setattr(archives, "_MEMBERS", 200)
    with LocalFile(path) as source:
        place = archives.open_archive(source, "a")
    text = "its members are not read, because it has more than 200 members (a limit of kdump, not damage)"
    assert (place.broken, place.hint) == (text, FOLDER)
    monkeypatch.setattr(zip_directory, "_LARGEST", 1 << 10)
    with LocalFile(path) as source:
        place = archives.open_archive(source, "a")
    assert (place.broken, place.hint) == (
        text.replace("it has more than 200 members", "its list of members takes more than 0 MiB"),
        FOLDER,
    )


def test_the_time_of_a_member_is_known_where_it_names_its_zone(tmp_path):
    with_zone, without = zipfile.ZipInfo(f"t-0/{LOG}"), zipfile.ZipInfo("other")
    with_zone.extra = struct.pack("<HHBi", 0x5455, 5, 1, 1_700_000_000)
    path = zipped(tmp_path / "a.zip", [(with_zone, RECORD), (without, b"")])
    with LocalFile(path) as source:
        place = archives.open_archive(source, "a")
    assert place.look(f"t-0/{LOG}").modified == 1_700_000_000_000
    assert place.look("other").modified is None


@pytest.mark.parametrize("kind", ["tar", "gztar", "zip"])
def test_an_empty_folder_in_an_archive_counts_as_on_disk(tmp_path, kind):
    """A broker does not start with it, or makes a log of it."""
    folder = tmp_path / "d1"
    for name in ("t-0", "t-1", "lost+found", "t-0/.kafka_cleanshutdown"):
        (folder / name).mkdir(parents=True)
    (folder / "t-0" / LOG).write_bytes(RECORD)
    (folder / "meta.properties").write_text("version=1\ncluster.id=x\nnode.id=1\n")
    packed = shutil.make_archive(str(tmp_path / "packed"), kind, tmp_path, "d1")
    no_part = re.compile(r'"diskBytes":[0-9]+|"\w*[cC]ommands":.*')  # commands cannot move what is in an archive
    for command in ("check", "du", "ls"):
        on_disk, inside = (kdump(command, path, "-o", "jsonl").stdout.decode() for path in (folder, f"{packed}:d1"))
        assert no_part.sub("", inside.replace(f"{packed}:d1", str(folder))) == no_part.sub("", on_disk)
        assert ("lost+found: a broker does not start" in inside) is (command == "check")
        assert kdump(command, packed, "-o", "jsonl").stdout.decode() == inside


def test_two_archives_with_equal_names_inside_are_both_read(tmp_path):
    paths = []
    for name in ("b.tar", "a.tar"):
        path = archive(tmp_path, member(f"t-{name[0]}/{LOG}"), member(f"x/same-0/{LOG}"))
        paths.append(path.rename(tmp_path / name))
    done = values(*paths, "--every-replica")
    assert (done.returncode, done.stdout.count(b"in the archive\n"), done.stderr) == (0, 4, b"")


def test_an_archive_that_is_named_twice_is_read_once(tmp_path):
    path = archive(tmp_path, member(f"d1/t-0/{LOG}"), member(f"d2/s-0/{LOG}"))
    (tmp_path / "hard.tar").hardlink_to(path)
    for second in (path, f"{path}:d1", tmp_path / "hard.tar"):
        done = values(path, second)
        assert done.stdout.count(b"in the archive\n") == 2
        assert b"read once" in done.stderr


def test_paths_in_archives(tmp_path):
    inner = member(f"d1/t-0/{LOG}") + bytes(1024)
    outer = tmp_path / "10:30 out.tar.gz"
    members = [member("in.tar", inner), member(f"a:b/s-0/{LOG}"), member(f"-x/r-0/{LOG}")]
    outer.write_bytes(gzip.compress(b"".join(members) + bytes(1024)))
    for inside, count in (
        (":in.tar", 1),
        (":in.tar:d1", 1),
        (f":in.tar:d1/t-0/{LOG}", 1),
        (":a:b", 1),
        (":a:b/s-0/", 1),
        (":./a:b//s-0", 1),
        (":-x", 1),
        (":", 2),
        (":.", 2),
        (":*", 3),
        (":*/*-0", 2),
        ("", 2),
    ):
        done = values(f"{outer}{inside}")
        assert (done.returncode, done.stdout) == (0, b"in the archive\n" * count), inside
    for inside, reported in ((":d9", ": it has -x, a:b, in.tar"), (":in.tar:d9", "it is not in the archive")):
        done = values(f"{outer}{inside}")
        assert done.returncode == 1
        assert reported.encode() in done.stderr


def test_a_path_in_an_archive_may_hold_a_comma(tmp_path):
    path = archive(tmp_path, member(f"c,d/t-0/{LOG}"), member(f"e/t-1/{LOG}"))
    for inside in ("c,d", "c,d/t-0", f"c,d/t-0/{LOG}"):
        assert values(f"{path}:{inside}").stdout == b"in the archive\n"
    assert values(f"{path}:c,d/t-0,{path}:e").returncode == 1
    assert values(f"{path}:e,{path}:e/t-1").stdout == b"in the archive\n"


def test_archives_that_a_folder_or_an_archive_holds_are_named(tmp_path):
    inner = member(f"d1/t-0/{LOG}") + bytes(1024)
    (tmp_path / "case 1").mkdir()
    (tmp_path / "case 1" / "outer.tar").write_bytes(member("in side.tar", inner) + bytes(1024))
    for path, hint in (
        (tmp_path / "case 1", f"'{tmp_path}/case 1/outer.tar'"),
        (tmp_path / "case 1/outer.tar", f"'{tmp_path}/case 1/outer.tar:in side.tar'"),
    ):
        done = kdump("dump", path)
        assert done.returncode == 1
        assert f"name the archives inside as paths: {hint}".encode() in done.stderr
    (path,) = shlex.split(hint)
    assert values(path).stdout == b"in the archive\n"


@pytest.mark.parametrize(
    ("head", "reported"),
    [(b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"), (b"Rar!\x1a\x07\x01\0", "a RAR archive"), (b"LZIP\x01", "lzip")],
)
@pytest.mark.parametrize("command", ["dump", "check", "stats", "verify-index"])
def test_formats_that_are_not_read_are_named(tmp_path, command, head, reported):
    path = tmp_path / "it's.bin"
    path.write_bytes(head + bytes(range(100)))
    done = kdump(command, path)
    assert done.returncode == 1
    assert reported.encode() in done.stderr
    assert b"which kdump does not read" in done.stderr
    assert shlex.quote(str(path)).encode() in done.stderr


@pytest.mark.parametrize("command", ["dump", "check", "verify-index"])
def test_compressed_files_of_something_else_are_no_damage(tmp_path, command):
    path = tmp_path / "notes.txt.gz"
    path.write_bytes(gzip.compress(b"a text about something that is no log at all\n"))
    done = kdump(command, path)
    assert done.returncode == 1
    assert b"it is text, not a file of Kafka's" in done.stderr
    path = tmp_path / f"{LOG}.gz"
    path.write_bytes(gzip.compress(RECORD))
    assert kdump(command, path).returncode == 0


def test_a_run_unpacks_an_archive_once(tmp_path, monkeypatch):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(member(f"d1/t-0/{LOG}") + bytes(1024)))
    made = []
    monkeypatch.setattr(
        archives, "open_archive", lambda *given, make=archives.open_archive: made.append(1) or make(*given)
    )
    first = list(Finder().find([str(path)]))
    assert list(Finder().find([f"{path}:d1"])) == first
    assert made == [1]
    del first
    gc.collect()
    assert list(Finder().find([str(path)]))
    assert made == [1, 1]


def test_what_is_read_of_an_archive_is_open_to_those_that_the_archive_is(tmp_path):
    inner = member(f"d1/t-0/{LOG}") + bytes(1024)
    path = archive(tmp_path, member("in.tar", inner))
    path.chmod(0o600)
    out = tmp_path / "out"
    done = kdump("salvage", f"{path}:in.tar:d1", "--out", out)
    assert done.returncode == 0, done.stderr
    assert {file.stat().st_mode & 0o077 for file in out.rglob("*.log")} == {0}


@pytest.mark.parametrize("kind", ["tar", "zip", "nested", "one file", "one file in a tar", "one file in a nested tar"])
def test_another_process_opens_an_archive_again(tmp_path, kind):
    path = tmp_path / "a"
    tar = member(f"d1/t-0/{LOG}") + bytes(1024)
    named = str(path)
    if kind == "zip":
        zipped(path, LOGS)
    elif kind == "nested":
        path.write_bytes(member("in.tar", tar) + bytes(1024))
        named = f"{path}:in.tar"
    elif "one file in" in kind:
        inner = member(f"d1/t-0/{LOG}.gz", gzip.compress(RECORD))
        path.write_bytes(member("in.tar", inner + bytes(1024)) if "nested" in kind else inner)
        named = f"{path}:in.tar:d1/t-0/{LOG}.gz" if "nested" in kind else f"{path}:d1/t-0/{LOG}.gz"
    else:
        path.write_bytes(gzip.compress(tar if kind == "tar" else RECORD))
    (partition,) = Finder().find([named])
    carried = pickle.loads(pickle.dumps(partition))
    with carried.segments[0].open() as source:
        assert source.read(0, source.size) == RECORD
    data = pickle.dumps(partition)
    del partition, carried
    path.unlink()
    with pytest.raises(UnreadableError, match="is not an archive on this machine"):
        pickle.loads(data)


def listed(*entries: tuple[int, str], data: bytes, claimed: int | None = None) -> bytes:
    """Return a zip whose members are stored at positions of ``data``; the directory lists offsets and names."""
    central = b""
    for offset, name in entries:
        size = len(RECORD) if claimed is None or offset else claimed
        fields = (20, 20, 0, 0, 0, 0, zlib.crc32(RECORD), size, size, len(name), 0, 0, 0, 0, 0, offset)
        central += struct.pack("<4s6H3I5H2I", b"PK\1\2", *fields) + name.encode()
    counts = (0, 0, len(entries), len(entries), len(central), len(data), 0)
    return data + central + struct.pack("<4s4H2IH", b"PK\5\6", *counts)


STORED = (
    struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 0, zlib.crc32(RECORD), len(RECORD), len(RECORD), 0, 0) + RECORD
)


def test_members_of_a_zip_that_share_bytes_are_not_read_many_times(tmp_path):
    path = tmp_path / "bomb.zip"
    names = [f"t-{number}/{LOG}" for number in range(3000)]
    path.write_bytes(listed(*((0, name) for name in names), data=STORED))
    content = zip_directory.directory(os.open(path, os.O_RDONLY))
    assert [one.path for one in content.members] == names[-1:]
    assert {reason for _, reason in content.unread} == {"overlaps another member (at byte 0)"}
    done = kdump("ls", path)
    assert done.returncode == 1
    assert (
        f"2,999 of 3,000 members cannot be read: {names[0]} overlaps another member (at byte 0)" in done.stderr.decode()
    )


@pytest.mark.parametrize("claimed", [len(RECORD) + 1, 1 << 31])
def test_a_member_with_a_lying_size_hides_no_other(tmp_path, claimed):
    path = tmp_path / "some.zip"
    entries = [(number * len(STORED), f"t-{number}/{LOG}") for number in range(3)]
    path.write_bytes(listed(*entries, data=3 * STORED, claimed=claimed))
    content = zip_directory.directory(os.open(path, os.O_RDONLY))
    assert [one.path for one in content.members] == [name for _, name in entries[1:]]


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.xz", "a.tar.bz2", "a.tar.zst", "one.log.gz"])
def test_what_stands_before_the_end_of_a_cut_stream_is_read_and_the_run_fails(tmp_path, name):
    """A truncated tar is read up to its end, also if it is compressed as a whole."""
    seed = random.Random(1)  # bytes that cannot be compressed
    batches = [forge.batch([forge.record(b"k", seed.randbytes(5000))], base_offset=number) for number in range(60)]
    tar = archive(tmp_path, *(member(f"t-{number}/{LOG}", b"".join(batches)) for number in range(4)))
    content = b"".join(batches) if name == "one.log.gz" else tar.read_bytes()
    compress = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress, "zst": zstandard.compress}
    packed = compress[name.rpartition(".")[2]](content)
    path = tmp_path / name
    path.write_bytes(packed)
    assert kdump("dump", path, "--count").returncode == 0
    found = set()
    for part in range(1, 20):
        path.write_bytes(packed[: len(packed) * part // 20])
        for command in ("dump", "check", "stats"):
            done = kdump(command, path, *(("--count",) if command == "dump" else ()))
            assert done.returncode == 1, (command, part)
            assert f"{path}: the ".encode() in done.stderr
            assert b"stream is truncated" in done.stderr
            if command == "dump":
                found.add(int(done.stdout))
    assert max(found) > 0


def test_a_member_that_ends_with_its_archive_names_the_archive(tmp_path):
    tar = archive(tmp_path, member(f"t-0/{LOG}", RECORD * 20))
    tar.write_bytes(tar.read_bytes()[: 512 + len(RECORD) * 10 + 7])
    for path in (tar, f"{tar}:t-0", f"{tar}:t-0/{LOG}"):
        done = kdump("dump", path, "--count")
        assert (done.returncode, done.stdout) == (1, b"10\n")
        assert f"error: {tar}: the archive is broken, so its later members are not read".encode() in done.stderr


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tgz", "a.tar.xz"])
def test_a_file_with_the_name_of_an_archive_and_without_its_bytes_is_no_log(tmp_path, name):
    """kdump reports neither "there is no record" nor damage: it is a failed download, or a program before a zip."""
    path = tmp_path / name
    whole = zipped(tmp_path / "whole.zip", LOGS).read_bytes()
    for data, says in (
        (b"", "the file is empty, so it is not an archive"),
        (bytes(10240), "the archive is empty"),
        (b"#!/bin/sh\n" * 20 + whole, "the file name is that of an archive, but the content is not an archive"),
    ):
        path.write_bytes(data)
        for command in ("dump", "check", "stats", "report"):
            done = kdump(command, path)
            assert done.returncode == 1, command
            assert f"error: {path}: {says}\n".encode() in done.stderr
            assert b"DAMAGED" not in done.stdout
    assert f"hint: 7z x {path}, then name the folder".encode() in done.stderr


def test_an_empty_pipe_is_an_error():
    """Most likely the command before the pipe has failed."""
    for command in ("dump", "check", "stats", "report"):
        done = kdump(command, "-", input=b"")
        assert done.returncode == 1, command
        assert done.stderr == (
            b"error: -: standard input is empty\nhint: check that the command before the pipe has succeeded\n"
        )


def test_a_zip_without_a_directory_names_what_mends_it(tmp_path):
    path = tmp_path / "a b.zip"
    path.write_bytes(zipped(tmp_path / "whole.zip", LOGS).read_bytes()[:-30])
    done = kdump("dump", path)
    assert done.returncode == 1
    assert f"hint: zip -FF '{path}' --out mended.zip repairs".encode() in done.stderr
