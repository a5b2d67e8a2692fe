"""Parses option values, such as times, sizes, offsets and lists. Raises UsageError or click's BadParameter."""

from __future__ import annotations

import binascii
import os
import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kdump.errors import UnreadableError, UsageError
from kdump.primitives.messages import did_you_mean
from kdump.primitives.timestamps import duration, moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kdump.answers.topic_configs import GivenConfig

T = TypeVar("T")

_SIZE: Final = r"(\d{1,20})\s*(?:(k|m|g|t)i?b?|b)?"


class _LocalZone(tzinfo):
    """The time zone of this machine: each date has the offset of its season."""

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        if at is None:
            return None
        inside = min(max(at.year, 2), 9998)  # astimezone() fails if the time in UTC has a year below 1 or above 9999
        return at.replace(tzinfo=None, year=inside).astimezone().utcoffset()

    def dst(self, at: datetime | None) -> timedelta | None:  # noqa: ARG002  part of the interface
        return None

    def tzname(self, at: datetime | None) -> str | None:  # noqa: ARG002  part of the interface
        return "local"


def zone(name: str) -> tzinfo:
    """Return the time zone of ``UTC``, ``local``, a name such as Europe/Berlin, or +02:00. Raises UsageError."""
    if name == "UTC":
        return UTC
    if name == "local":
        return _LocalZone()
    if re.fullmatch(r"[+-](?:[01]\d|2[0-3]):[0-5]\d", name, re.ASCII):
        return datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo or UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # all of these are raised for unknown names
        raise UsageError(f"{name!r} is not a time zone: write it as UTC, local, Europe/Berlin or +02:00") from None


def offsets(text: str) -> tuple[int | None, int | None]:
    """Return the first and last offset of ``A..B``, ``A..``, ``..B`` or ``A``. Raises UsageError."""
    found = re.fullmatch(r"(\d{0,20})\.\.(\d{0,20})|(\d{1,20})", text, re.ASCII)
    if found is None or text == "..":
        raise UsageError(f"{text!r} is not a range of offsets: write it as 5..9, 5.., ..9 or 5")
    if found[3]:
        return int(found[3]), int(found[3])
    first, last = (int(part) if part else None for part in (found[1], found[2]))
    if first is not None and last is not None and first > last:
        raise UsageError(f"the range of offsets {text} ends before it begins")
    return first, last


def payload(text: str) -> bytes:
    """Return a text as UTF-8 (also after ``utf8:``), or the bytes after ``hex:`` or ``base64:``. Raises UsageError."""
    name, colon, rest = text.partition(":")
    try:
        if colon and name == "hex":
            return bytes.fromhex(rest)
        if colon and name == "base64":
            from base64 import b64decode

            return b64decode(rest, validate=True)
    except (ValueError, binascii.Error):
        raise UsageError(f"{text!r} is not valid {name}; write utf8:{text} if you mean this text") from None
    return (rest if colon and name == "utf8" else text).encode("utf-8", "surrogateescape")


def header(text: str) -> tuple[bytes, bytes | None]:
    """Return the name and value of ``k=v``; for ``k`` the value is None. Raises UsageError, as :func:`payload` does."""
    name, equals, value = text.partition("=")
    return name.encode("utf-8", "surrogateescape"), payload(value) if equals else None


def pairs(option: str, texts: Iterable[str], form: str, example: str) -> dict[str, str]:
    """Return the pairs in options like ``NAME=VALUE``. Raises UsageError, whose text has ``form`` and ``example``."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text}: expected {form}, as in {example}")
        found[name] = value
    return found


def names(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names in options like ``a,b``. Raises UsageError for an empty name."""
    found = [part.strip() for text in texts for part in text.split(",")]
    if not all(found):
        raise UsageError(f"{','.join(texts)!r} holds an empty topic name: leave the option out for all topics")
    return tuple(found)


def numbers(texts: Iterable[str], what: str) -> frozenset[int]:
    """Return the numbers in options like ``0,2-4``. Raises UsageError."""
    found: set[int] = set()
    for part in ",".join(texts).split(",") if texts else ():
        ends = re.fullmatch(r"(-?\d{1,20})(?:-(\d{1,20}))?", part.strip(), re.ASCII)
        if ends is None:
            raise UsageError(f"{part!r} is not a {what}: write it as 7, as a list 0,2 or as a range 0-3")
        low = int(ends[1])
        high = low if ends[2] is None else int(ends[2])
        if high < low:
            raise UsageError(f"{part!r} is not a {what}: write {high}-{low}")
        if high - low > 1_000_000:
            raise UsageError(f"{part!r} holds more than a million numbers")
        found.update(range(low, high + 1))
    return frozenset(found)


def one_of(texts: Iterable[str], known: Iterable[T], name: Callable[[T], str], what: str) -> list[T]:
    """Return the items named in lists like ``a,b``, each once. Raises UsageError, which suggests known names."""
    table = {name(item): item for item in known}
    found = {}
    for part in ",".join(texts).split(","):
        word = part.strip()
        if word not in table:
            hint = did_you_mean(word, table) or f"; choose from {', '.join(table)}"
            raise UsageError(f"{word!r} is not a {what}{hint}")
        found[word] = table[word]
    return list(found.values())


def log_dirs(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths. ``/d1,/d2`` is split at commas if it does not exist itself, and one part exists or is a URI.

    It also exists if it is the path of a folder or file in an archive.
    """
    found: list[str] = []
    for path in paths:
        parts = [part.strip() for part in path.split(",") if part.strip()]
        is_list = len(parts) > 1 or path.strip(", ") != path
        is_any_there = any(is_there(part.split(":")[0]) or "://" in part for part in parts)
        if is_list and is_any_there and not is_there(path) and not _is_in_archive(path):
            found += parts
        else:
            found.append(path)
    return tuple(found)


def _is_in_archive(path: str) -> bool:
    if ":" not in path:
        return False
    from kdump.log_dirs import archives

    try:
        inside = archives.within(path)
    except UnreadableError:  # it is reported when the path is read
        return False
    return inside is not None and inside[0].look(inside[1]) is not None


def is_folder(path: str) -> bool:
    """Like ``Path.is_dir``, but False if this user cannot read a parent folder."""
    return os.path.isdir(path)  # noqa: PTH112  Path.is_dir raises then


def is_there(path: str) -> bool:
    """Like ``Path.exists``, but False if this user cannot read a parent folder."""
    return os.path.exists(path)  # noqa: PTH110  as above


class Size(click.ParamType[int]):
    """A size in bytes: ``256MB``, ``1GiB``. All units are powers of 1024."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(_SIZE, value.strip(), re.IGNORECASE | re.ASCII)
        if found is None or not int(found[1]):
            self.fail(f"{value!r} is not a size: write it as 256MB or 1GB", param, ctx)
        return int(found[1]) << (10 * (1 + "kmgt".index(found[2].lower())) if found[2] else 0)


class Parsed(click.ParamType[Any]):
    """A value that ``parse`` makes from a text. Raises UsageError."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002  click gives them
        return self._parse(value) if isinstance(value, str) else value


def _config(text: str) -> GivenConfig:
    from kdump.answers.topic_configs import given_config

    return given_config(text)


MOMENT: Final = Parsed("time", moment)
"""A time in ms since 1970: ISO 8601 (UTC unless it has an offset), ms, or an age (``-2h``)."""
DURATION: Final = Parsed("duration", duration)
"""A duration in ms: ``15m``, ``7d``, ``1h30m``."""
CONFIG: Final = Parsed("config", _config)
"""A config of a topic, or of all: ``TOPIC:KEY=VALUE`` or ``*:KEY=VALUE``."""


class Release(click.ParamType[tuple[int, ...]]):
    """A known release of Kafka, such as 3.9 or 3.9.1, as a tuple of numbers."""

    name = "release"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        if not re.fullmatch(r"\d{1,3}(\.\d{1,3}){1,3}", value, re.ASCII):
            self.fail(f"{value!r} is not a release: write it as 3.9 or 2.8.1", param, ctx)
        from kdump.dump_log_segments.dialects import known_release

        return known_release(value)
