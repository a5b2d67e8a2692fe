"""Recognises archives and compressed files by their first bytes, also of some formats that kdump does not read.

Segments do not begin so: their base offset would be negative, or above 10^17. Sources: RFC 1952 (gzip), RFC 8878
(zstd), LZ4 frame format 1.6, .xz 1.2, bzip2 1.0, APPNOTE 6.3 (zip), POSIX.1-2008 (tar), and ``magic(5)`` of file 5.45.
"""

from typing import Final, NamedTuple

HEAD: Final = 512
"""Number of bytes that identify an archive, at the start of a file: one block of a tar."""
GZIP: Final = "gzip"
ZSTD: Final = "zstd"
XZ: Final = "xz"
BZIP2: Final = "bzip2"
LZ4: Final = "lz4"
ZIP: Final = "zip"
TAR: Final = "tar"
_READ: Final = (
    (GZIP, b"\x1f\x8b\x08"),
    (ZSTD, b"\x28\xb5\x2f\xfd"),
    (XZ, b"\xfd7zXZ\0"),
    (LZ4, b"\x04\x22\x4d\x18"),
    (ZIP, b"PK\x03\x04"),
    (ZIP, b"PK\x05\x06"),  # an empty zip
    *((BZIP2, b"BZh%d" % level + block) for level in range(1, 10) for block in (b"1AY&SY", b"\x17rE8P\x90")),
)
"""Formats and their first bytes. For bzip2 these include the start of the first block, or the end mark."""
SKIPPABLE: Final = tuple(bytes((number, 0x2A, 0x4D, 0x18)) for number in range(0x50, 0x60))
"""The first bytes of a frame without data in lz4 and zstd; pzstd and lz4mt write one first. The size follows."""
SUFFIXES: Final = (
    *(".tar", ".tgz", ".tar.gz", ".taz", ".tzst", ".tar.zst", ".txz", ".tar.xz", ".tbz", ".tbz2", ".tar.bz2"),
    *(".tar.lz4", ".zip"),
)
ENDS: Final = frozenset(suffix.rpartition(".")[2] for suffix in SUFFIXES)
"""The parts of SUFFIXES after the last dot."""
_COMPRESSED: Final = (".gz", ".zst", ".xz", ".bz2", ".lz4")
_CHECKSUM: Final = slice(148, 156)
_LARGE: Final = (b"\x80", b"\xff")
"""The first bytes of a binary number in a tar header."""
_OCTAL: Final = b"01234567oO_+- \t\n\r\f\v\x1c\x1d\x1e\x1f"
"""The characters that Python accepts in an octal number of a tar header."""


class Foreign(NamedTuple):
    """A format that kdump does not read: its name with an article, and the command that extracts it."""

    name: str
    extract: str


_FOREIGN: Final = (
    (b"7z\xbc\xaf\x27\x1c", Foreign("a 7-Zip archive", "7z x")),
    (b"Rar!\x1a\x07", Foreign("a RAR archive", "unrar x")),
    (b"PK\x07\x08", Foreign("a part of a zip in several files", "7z x")),
    (b"LZIP\x01", Foreign("an lzip file", "lzip -dk")),
    (b"\x02\x21\x4c\x18", Foreign("an lz4 file of the legacy format", "lz4 -dk")),
    (b"\x1f\x9d", Foreign("a .Z file of the Unix program 'compress'", "gzip -d -c")),
    (b"070701", Foreign("a cpio archive", "cpio -idF")),
    (b"070707", Foreign("a cpio archive", "cpio -idF")),
    (b"!<arch>\n", Foreign("an ar archive", "ar x")),
    (b"hsqs", Foreign("a SquashFS image", "unsquashfs")),
    (b"MSCF\0\0\0\0", Foreign("a cabinet file", "7z x")),
)


def format_of(head: bytes) -> str | None:
    """Return the format of an archive or compressed file by its first HEAD bytes; None if kdump reads it as neither."""
    start = 0
    while head.startswith(SKIPPABLE, start):
        start += 8 + int.from_bytes(head[start + 4 : start + 8], "little")
    for name, magic in _READ:
        if head.startswith(magic, start) and (not start or name in (LZ4, ZSTD)):
            return name
    return TAR if is_tar(head) else None


def foreign(head: bytes) -> Foreign | None:
    """Return the format of a packed file that kdump does not read, by its first bytes; None for any other file."""
    return next((found for magic, found in _FOREIGN if head.startswith(magic)), None)


def name_inside(name: str) -> str:
    """Return the name of a compressed file without the suffix of the compression."""
    return next((name.removesuffix(suffix) for suffix in _COMPRESSED if name.endswith(suffix)), name)


def is_tar(head: bytes) -> bool:
    """Return whether ``head`` is the first block of a tar, by its checksum."""
    number = head[_CHECKSUM].partition(b"\0")[0]
    if not number or (number.strip(_OCTAL) and not number.startswith(_LARGE)):  # the file is nearly always a segment
        return False
    import tarfile

    try:
        tarfile.TarInfo.frombuf(head[:HEAD], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True
