"""Search for regular expressions in time that grows with the text alone, whatever the expression.

Python's ``re`` tries every start and every way to repeat: ``\\w+@`` takes time that is quadratic in a value, ``(a+)+b``
exponential time. RE2 (google-re2) does not. It finds the same texts where both read an expression alike. These go to
``re``: references to groups, looking ahead and behind, atomic groups, possessive repetitions, flags other than ``(?s)``
and ``(?m)``, ``\\Z``, ``$`` anywhere but at the end, and more than 1,000 repetitions.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, Protocol

from kdump import kernel
from kdump.errors import DamageError

if TYPE_CHECKING:
    from kdump.primitives.wire import Bytes

    class Match(Protocol):
        """Where an expression was found."""

        def start(self) -> int: ...

    class Expression(Protocol):
        """An expression that can be looked for in a part of a text."""

        def search(self, text: Bytes, pos: int = ..., endpos: int = ..., /) -> Match | None: ...

    from collections.abc import Collection
    from typing import Self

    from kdump.formats.record import Record
    from kdump.log_reader.filter import Filter
    from kdump.records.magic_2 import Batch
    from kdump.schemas.decoder import PayloadDecoder
    from kdump.schemas.framing import Side
    from kdump.segments.batch_runs import Run


_PART: Final = re.compile(
    rb"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<group>\((?!\?)|\(\?(?::|P<\w+>))|(?P<flags>\(\?[a-zA-Z-]*\)?)"
    rb"|(?P<repeat>(?:[*+?]|\{\d*,?\d*\})(?P<more>[+?]?))|(?P<end>\$)|(?P<other>.)",
    re.DOTALL,
)
_SAME_ESCAPES: Final = rb"\\(?:[dDwWbBAafnrtv]|x[0-9a-fA-F]{2}|[^a-zA-Z0-9])"
_SPACES: Final = rb"\t-\r "
"""What ``\\s`` stands for in bytes; RE2 leaves the vertical tab out."""


@lru_cache(maxsize=64)
def linear(pattern: re.Pattern[bytes]) -> Expression | None:
    """Return what RE2 makes of an expression; None where it is absent, or may find something else than ``re``."""
    text = _translated(pattern)
    if text is None:
        return None
    try:
        import re2  # needed with --grep alone
    except ImportError:
        return None
    options = re2.Options()
    options.encoding, options.log_errors = re2.Options.Encoding.LATIN1, False
    try:
        made: Expression = re2.compile(text, options)
    except re2.error:
        return None
    return made


def search(pattern: re.Pattern[bytes], text: bytes) -> bool:
    """Tell whether a text holds a match."""
    return (linear(pattern) or pattern).search(text) is not None


def _translated(pattern: re.Pattern[bytes]) -> bytes | None:
    """Return an expression as RE2 reads it, None where it cannot mean the same."""
    if pattern.flags & ~(re.DOTALL | re.MULTILINE):
        return None
    source, out = pattern.pattern, []
    for part in _PART.finditer(source):
        made: bytes | None = part[0]
        if part["escape"]:
            made = _escape(source[part.start() : part.start() + 4], part[0])
        elif part["set"]:
            made = _set(part[0])
        elif part["flags"]:
            made = part[0] if re.fullmatch(rb"\(\?[sm]+\)", part[0]) and not part.start() else None
        elif part["repeat"]:
            made = None if part["more"] == b"+" else part[0]
        elif part["end"] and not pattern.flags & re.MULTILINE:
            made = rb"\n?\z" if part.end() == len(source) else None
        if made is None:
            return None
        out.append(made)
    flags = b"".join(letter for flag, letter in ((re.DOTALL, b"s"), (re.MULTILINE, b"m")) if pattern.flags & flag)
    return (b"(?%b)" % flags if flags else b"") + b"".join(out)


def _escape(source: bytes, escape: bytes) -> bytes | None:
    if escape in {rb"\s", rb"\S"}:
        return b"[" + (b"^" if escape == rb"\S" else b"") + _SPACES + b"]"
    if escape == rb"\x":  # its digits follow as letters
        return escape if re.fullmatch(rb"\\x[0-9a-fA-F]{2}", source) else None
    return escape if re.fullmatch(_SAME_ESCAPES, escape) else None


def _set(source: bytes) -> bytes | None:
    if b"[" in source[1:] or rb"\S" in source or rb"\b" in source:  # [: is a class for RE2, \b a backspace for re
        return None
    for escape in re.findall(rb"\\x[0-9a-fA-F]{2}|\\.", source, re.DOTALL):
        if escape != rb"\s" and not re.fullmatch(_SAME_ESCAPES, escape):
            return None
    return source.replace(rb"\s", _SPACES) if rb"\\" not in source else (None if rb"\s" in source else source)


_SIDES: Final[tuple[Literal["key", "value"], ...]] = ("key", "value")


class DecodedSearch:
    """The decoded payloads of records of one topic, as the JSON text of their ``data``, in one line without blanks.

    A key or value that carries no schema, or that cannot be decoded, has none.
    """

    def __init__(self, decoder: PayloadDecoder, topic: str) -> None:
        self._decoder, self._topic = decoder, topic

    def keys(self, record: Record) -> frozenset[bytes]:
        """Return what --key may be for the record: the JSON text of its key, and for a text the text itself."""
        side = self._side("key", record)
        if side is None:
            return frozenset()
        found = {self._text(side)}
        if isinstance(side, str):
            found.add(side.encode("utf-8", "surrogatepass"))
        return frozenset(found)

    def texts(self, record: Record, parts: Collection[str] = ("key", "value")) -> tuple[bytes, ...]:
        """Return the JSON texts of its key and its value, as far as there are some, and ``parts`` has them."""
        sides = [self._side(side, record) for side in _SIDES if side in parts]
        return tuple(self._text(side) for side in sides if side is not None)

    def _side(self, side: Side, record: Record) -> object:
        payload = record.key if side == "key" else record.value
        found = self._decoder.side(self._topic, side, payload, record.headers)
        return None if found is None else found.get("data")

    @staticmethod
    def _text(data: object) -> bytes:
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


MOST_TEXTS: Final = 64
"""Keys, names and values of headers that the kernel compares with."""
_TOKEN: Final = re.compile(
    rb"\\(?P<escape>.)|(?P<wide>\.|\[\^\]?(?:\\.|[^\]\\])*\])|\[\]?(?:\\.|[^\]\\])*\]"
    rb"|(?P<group>\(\?(?!:|P<)|\)(?=[*+{?]))|(?P<anchor>[\^$])|(?P<repeat>(?:[*+]|\{\d*,\d*\})(?P<possessive>\+?))|.",
    re.DOTALL,
)


class Prefilter:
    """Counts the records of batches of magic 2 that a filter may take. The headers of batches are not looked at.

    Where it is ``exact``, the filter takes these records. ``looks`` says whether more than offsets decides.
    """

    def __init__(self, wanted: Filter) -> None:
        from kdump.kernel.records import Picks  # needed with such a filter alone

        values = wanted.types & {"data", "tombstone"}
        self._picks = Picks(
            first=wanted.first_offset,
            last=wanted.last_offset,
            since=wanted.since,
            until=wanted.until,
            keys=sorted(wanted.keys),
            headers=wanted.headers,
            values=None if len(values) != 1 else "data" in values,
        )
        self._greps = [(_fast(grep), literal(grep)) for grep in wanted.greps]
        self.looks = wanted.looks_into_fields or wanted.since is not None or wanted.until is not None
        self.exact = not wanted.greps

    @classmethod
    def of(cls, wanted: Filter) -> Self | None:
        """Return the prefilter of a filter, None where it has no use for one."""
        few = len(wanted.keys) + 2 * len(wanted.headers) <= MOST_TEXTS
        takes_all = not wanted.looks_into_records and not wanted.looks_into_headers
        if not kernel.COMPILED or wanted.decoded or takes_all or not few or not all(map(is_local, wanted.greps)):
            return None
        return cls(wanted)

    def of_run(self, run: Run, end: int) -> list[int]:
        """Return how many records each batch of a run before row ``end`` may have, up to the first not well-formed."""
        from kdump.kernel.batches import WIDTH
        from kdump.kernel.records import may_hold

        self._picks.stack(run.block, run.rows, WIDTH, 0, end)
        counts = list(self._picks.of_rows())
        if not self._greps:
            return counts
        starts, ends = run.rows[::WIDTH], run.rows[1::WIDTH]
        matched = bytearray(len(counts))
        for grep, needle in self._greps:
            row = len(counts) if needle and not may_hold(run.block, needle) else 0
            while row < len(counts):
                found = grep.search(run.block, starts[row], ends[len(counts) - 1])
                if found is None:
                    break
                while ends[row] <= found.start() and row < len(counts) - 1:
                    row += 1
                matched[row] = 1
                row += 1
        return [count if match else 0 for count, match in zip(counts, matched, strict=True)]

    def of_batch(self, batch: Batch) -> int:
        """Return how many records a batch may have, -1 where the kernel cannot tell."""
        if batch.count <= 0:
            return -1
        try:
            data, start = batch.payload()
        except DamageError:  # reported where the records are read
            return -1
        if not self._picks.begin(data, start, batch.header, ()):
            return -1
        count = self._picks.of_batch()
        return count if count <= 0 or not self._greps or self._is_in(data, start) else 0

    def _is_in(self, data: Bytes, start: int) -> bool:
        return any(grep.search(data, start) for grep, _ in self._greps)


def _fast(grep: re.Pattern[bytes]) -> Expression:
    """Return what looks for an expression: ``re``, which starts sooner, where no repetition can run far."""
    repeats = (token["repeat"] for token in _TOKEN.finditer(grep.pattern))
    if all(_is_bounded(repeat) for repeat in repeats if repeat):
        return grep

    return linear(grep) or grep


def is_local(grep: re.Pattern[bytes]) -> bool:
    """Tell whether an expression can be looked for in a block of many texts at once.

    What it matches must depend on nothing around it, and no repetition may run far across the texts.
    """
    if grep.flags & re.VERBOSE:
        return False
    wide = False
    for token in _TOKEN.finditer(grep.pattern):
        escape = token["escape"]
        if token["group"] or token["anchor"] or token["possessive"] or escape in _PLACES:
            return False
        if token["repeat"] and wide and not _is_bounded(token["repeat"]):
            return False
        wide = token["wide"] is not None or escape in _WIDE
    return True


def literal(grep: re.Pattern[bytes]) -> bytes:
    """Return a text that stands in all that a local expression matches: the longest that is easy to tell, b"" for none.

    To look for it takes a fraction of the time that the expression does.
    """
    if grep.flags & re.IGNORECASE or re.search(rb"[|(?{]|\\[0-9A-Za-z]", grep.pattern):
        return b""
    found = [b""]
    for token in _TOKEN.finditer(grep.pattern):
        if token["repeat"]:
            found[-1] = found[-1][:-1]  # what is repeated may not be there at all
            found.append(b"")
        elif token["escape"]:
            found[-1] += token["escape"]
        elif len(token[0]) == 1 and not token["wide"]:
            found[-1] += token[0]
        else:
            found.append(b"")
    return max(found, key=len)


_PLACES: Final = {b"A", b"b", b"B", b"Z"}
_WIDE: Final = {b"D", b"S", b"W"}


def _is_bounded(repeat: bytes) -> bool:
    most = repeat.strip(b"{}").rpartition(b",")[2]
    return most.isdigit() and int(most) <= 1000
