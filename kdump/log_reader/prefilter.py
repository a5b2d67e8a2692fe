"""What a filter can tell of records before they become objects: batches without a match are passed over."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kdump import kernel
from kdump.errors import DamageError

if TYPE_CHECKING:
    from typing import Self

    from kdump.log_reader.filter import Filter
    from kdump.log_reader.linear_search import Expression
    from kdump.primitives.wire import Bytes
    from kdump.records.magic_2 import Batch
    from kdump.segments.batch_runs import Run

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
    from kdump.log_reader.linear_search import linear  # needed with such expressions alone

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
