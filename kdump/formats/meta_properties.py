"""``meta.properties``: the cluster, broker and directory ids of a log dir.

Source: Kafka's classes PropertiesUtils and MetaPropertiesVersion (0.9; directory ids since KIP-858, 3.7). The syntax is
that of Java's ``Properties.load``: lines that begin with ``#`` or ``!`` are comments. ``=``, ``:`` or white space ends
a key. A backslash escapes a character; at the end of a line it joins the next line. The encoding is ISO 8859-1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import DamageError
from kdump.formats.partition_metadata import id_of
from kdump.primitives.encodings import java_config_integer, java_integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kdump.primitives.wire import Bytes

BLANKS = " \t\f"
NEEDED: Final[Mapping[int, tuple[str, ...]]] = {0: (), 1: ("node.id", "cluster.id")}
"""Version -> the required keys."""
NODE: Final[Mapping[int, str]] = {0: "broker.id", 1: "node.id"}
"""Version -> the key whose value is the node's number."""
RESERVED_IDS: Final = 100
"""Directory ids below this number are reserved (KIP-858). :func:`check` refuses them unless ``takes_reserved``."""
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
WRITTEN = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"} | {mark: "\\" + mark for mark in "\\=:#!"}


class MetaProperties(NamedTuple):
    """Keys and values in the file's order, and the comment lines, which start with ``#`` or ``!``."""

    values: Mapping[str, str]
    comments: tuple[str, ...] = ()

    @property
    def cluster_id(self) -> str | None:
        return self.values.get("cluster.id")

    @property
    def broker_id(self) -> str | None:
        """The text of ``node.id`` (KRaft) or, without it, of ``broker.id`` (ZooKeeper)."""
        return self.values.get("node.id", self.values.get("broker.id"))

    @property
    def version(self) -> int | None:
        """The version, 0 if the key is missing; None if it is not a number."""
        return java_config_integer(self.values.get("version", "0"), 32)

    @property
    def node_id(self) -> int | None:
        """The number in ``node.id`` (version 1) or ``broker.id`` (version 0 or None); None without a valid number."""
        found = self.values.get(NODE.get(self.version or 0, ""))
        return None if found is None else java_integer(found, 32)

    @property
    def directory_id(self) -> str | None:
        return self.values.get("directory.id")


def read(data: Bytes) -> MetaProperties:
    """Return the properties. The last line of a repeated key counts. Raises DamageError for a malformed ``\\uXXXX``."""
    values: dict[str, str] = {}
    comments: list[str] = []
    for text, position in _logical_lines(bytes(data)):
        if text[0] in "#!":
            comments.append(text)
        else:
            key, value = _split(text)
            values[_unescape(key, position)] = _unescape(value, position)
    return MetaProperties(values, tuple(comments))


def check(properties: MetaProperties, *, takes_reserved: bool = False) -> None:
    """Raise DamageError for no or a missing property, and for an invalid version, node's number or directory id."""
    if not properties.values:
        raise DamageError("property", "the file holds no property", expected="version, node.id, cluster.id")
    version = properties.version
    if version is None or version not in NEEDED:
        found = properties.values["version"]
        raise DamageError("version", "meta.properties has an unknown version", expected="0 or 1", found=found)
    for name in NEEDED[version]:
        if name not in properties.values:
            raise DamageError("property", f"{name} is missing", expected=f"a line {name}=...")
    value = properties.values.get(NODE[version])
    if value is not None and properties.node_id is None:
        raise DamageError("property", f"{NODE[version]} is not a number", expected="a whole number", found=value)
    directory = properties.directory_id
    if directory is None:
        return
    number = id_of(directory)
    if not number:
        raise DamageError("property", "directory.id is not a Uuid", expected="22 characters of base64", found=directory)
    if not takes_reserved and int.from_bytes(number, "big") < RESERVED_IDS:
        raise DamageError("property", "Kafka reserves this directory.id", expected="a random Uuid", found=directory)


def encode(properties: MetaProperties) -> bytes:
    """Return the bytes of the file: the comments, then a line for each key."""
    lines = [*properties.comments]
    for key, value in properties.values.items():
        escaped = _escape(value)
        lead = len(escaped) - len(escaped.lstrip(" "))
        lines.append(_escape(key).replace(" ", "\\ ") + "=" + ("\\ " if lead else "") + escaped[1 if lead else 0 :])
    return "".join(f"{line}\n" for line in lines).encode("latin-1")


def _logical_lines(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield the non-empty lines and their positions. Leading white space is removed, continuation lines are joined."""
    joined, start, end = "", 0, 0
    for natural in data.splitlines(keepends=True):
        line = natural.decode("latin-1").rstrip("\r\n").lstrip(BLANKS)
        begin, end = end, end + len(natural)
        if not joined:
            start = begin
            if not line:
                continue
            if line[0] in "#!":
                yield line, start
                continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            joined += line[:-1]
            continue
        if joined + line:
            yield joined + line, start
        joined = ""
    if joined:
        yield joined, start


def _split(line: str) -> tuple[str, str]:
    """Split a line at the first separator that no backslash escapes."""
    at = 0
    while at < len(line) and line[at] not in "=:" + BLANKS:
        at += 2 if line[at] == "\\" else 1
    key, rest = line[:at], line[at:].lstrip(BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(BLANKS)
    return key, rest


def _unescape(text: str, position: int) -> str:
    out: list[str] = []
    at = 0
    while at < len(text):
        mark = text[at]
        if mark != "\\" or at + 1 == len(text):
            out.append(mark)
            at += 1
        elif text[at + 1] == "u":
            digits = text[at + 2 : at + 6]
            if len(digits) < 4 or set(digits) - set("0123456789abcdefABCDEF"):
                raise DamageError(
                    "escape", "a line has a malformed \\uXXXX", position=position, expected="4 hex digits", found=digits
                )
            out.append(chr(int(digits, 16)))
            at += 6
        else:
            out.append(ESCAPES.get(text[at + 1], text[at + 1]))
            at += 2
    return "".join(out)


def _escape(text: str) -> str:
    return "".join(
        WRITTEN[mark] if mark in WRITTEN else mark if " " <= mark <= "~" else f"\\u{ord(mark):04X}" for mark in text
    )
