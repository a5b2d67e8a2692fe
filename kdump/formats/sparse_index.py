"""The common part of ``.index`` and ``.timeindex``: entries of a fixed size in rising order, with a binary search.

Source: Kafka's class AbstractIndex. The index file of an active segment is preallocated: zeros may follow its last
entry. A broker truncates the file to its entries when it rolls the segment or stops cleanly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import chain, islice, repeat
from operator import lt
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from kdump.errors import UsageError
from kdump.primitives.wire import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.primitives.wire import Bytes, Layout

E = TypeVar("E", bound=tuple[int, int])

MAX_RELATIVE_OFFSET = INT32_MAX
INDEX_INTERVAL = "index.interval.bytes"
DEFAULT_INTERVAL = 4096
"""The topic config INDEX_INTERVAL and its default: ``.index`` entries are more than this many bytes of log apart."""
INDEX_SIZE = "segment.index.bytes"
BROKER_INDEX_SIZE = "log.index.size.max.bytes"
"""The config of the size of a preallocated ``.index`` or ``.timeindex``, of a topic and of a broker."""
WARM = 8192
AT_ONCE = 4096
"""Number of entries that are compared or encoded at a time."""
_ZEROS = bytes(1 << 16)


class BeforeHole(bytes):
    """The bytes of a sparse file before the hole at its end. ``hole`` is the size of the hole in bytes."""

    hole: int

    @classmethod
    def of(cls, data: bytes, hole: int) -> BeforeHole:
        made = cls(data)
        made.hole = hole
        return made

    def __bool__(self) -> bool:
        return len(self) + self.hole > 0


class SparseIndex(ABC, Generic[E]):
    """The entries of one index file, as ``(key, value)`` pairs with absolute offsets.

    ``size`` is the size of the file in bytes. ``count`` is the number of complete entries, including zero entries at
    the end; ``filled`` (also ``len()``) is the number without these. ``ragged`` is the number of bytes after the last
    complete entry (0 in a valid file). ``data`` may lack the zeros at the end (:class:`BeforeHole`).
    """

    layout: ClassVar[Layout[Any]]

    def __init__(self, data: Bytes, base_offset: int) -> None:
        hole = data.hole if isinstance(data, BeforeHole) else 0
        self.size = len(data) + hole
        self.data = data + bytes(min(hole, -len(data) % self.layout.size)) if isinstance(data, BeforeHole) else data
        self.base_offset = base_offset
        self.count, self.ragged = divmod(self.size, self.layout.size)
        self._held = min(self.count, len(self.data) // self.layout.size)
        self.filled = self._without_zeros()

    def __getitem__(self, slot: int) -> E:
        """Return entry number ``slot``, also a zero entry at the end. Raises IndexError, also for negative numbers."""
        if not 0 <= slot < self.count:
            raise IndexError(slot)
        return self.entry(*self.stored(slot))

    def __len__(self) -> int:
        return self.filled

    def __iter__(self) -> Iterator[E]:
        entry = self.entry
        whole = memoryview(self.data)[: self.filled * self.layout.size]
        for pair in self.layout.struct.iter_unpack(whole):
            yield entry(*pair)

    def slots(self) -> Iterator[tuple[int, int]]:
        """Yield the two fields of every entry as stored, including zeros at the end."""
        held = memoryview(self.data)[: self._held * self.layout.size]
        return chain(self.layout.struct.iter_unpack(held), repeat((0, 0), self.count - self._held))

    def rises(self) -> bool:
        """Return whether both fields rise strictly from entry to entry, without the zero entries at the end."""
        layout, whole = self.layout, memoryview(self.data)
        for start in range(0, self.filled, AT_ONCE) if self.filled > 1 else ():
            stop = min(self.filled, start + AT_ONCE + 1)  # parts overlap by one entry
            firsts, seconds = zip(
                *layout.struct.iter_unpack(whole[start * layout.size : stop * layout.size]), strict=True
            )
            if not (all(map(lt, firsts, firsts[1:])) and all(map(lt, seconds, seconds[1:]))):
                return False
        return True

    def position(self, slot: int) -> int:
        return slot * self.layout.size

    def stored(self, slot: int) -> tuple[int, int]:
        """Return the two fields of an entry as stored. ``slot`` must exist."""
        if slot >= self._held:
            return 0, 0
        first, second = self.layout.struct.unpack_from(self.data, slot * self.layout.size)
        return first, second

    def _without_zeros(self) -> int:
        size = self.layout.size
        end = self._held * size
        if not end or self.data[end - 1]:
            return self._held
        while end > len(_ZEROS) and self.data[end - len(_ZEROS) : end] == _ZEROS:  # ten times as fast as rstrip()
            end -= len(_ZEROS)
        start = max(0, end - len(_ZEROS))
        meant = start + len(bytes(self.data[start:end]).rstrip(b"\0"))
        return -(-meant // size)

    @property
    def zero_tail(self) -> int:
        """The size in bytes of the zero entries at the end."""
        return (self.count - self.filled) * self.layout.size

    def slot_for(self, target: int, among: int | None = None, *, warm: bool = True) -> int | None:
        """Return the slot of the entry with the greatest key up to ``target``; None if all keys are greater.

        Only the first ``among`` entries are searched (default: all before the zero entries). If keys do not rise, the
        result may be another entry, as in Kafka. ``warm``: the search begins in the last 8 KiB (KAFKA-6432, 2.1).
        """
        low, high = 0, (self.filled if among is None else among) - 1
        if high < 0:
            return None
        first_warm = max(0, high - WARM // self.layout.size)
        if warm and self[first_warm][0] < target:
            low = first_warm
        elif self[0][0] > target:
            return None
        elif warm:
            high = first_warm
        while low < high:
            middle = (low + high + 1) // 2
            key = self[middle][0]
            if key == target:
                return middle
            if key > target:
                high = middle - 1
            else:
                low = middle
        return low

    @abstractmethod
    def entry(self, first: int, second: int) -> E:
        """Return an entry from its two stored fields."""

    def relatives(self, offsets: Sequence[int]) -> list[int]:
        """Return offsets minus the base offset. Raises UsageError if a difference does not fit into 31 bits."""
        base = self.base_offset
        found = [offset - base for offset in offsets]
        for outermost in (min(found), max(found)) if found else ():
            if not 0 <= outermost <= MAX_RELATIVE_OFFSET:
                raise UsageError(f"offset {base + outermost} does not fit into an index with base offset {base}")
        return found


def columns(entries: Iterable[tuple[int, int]]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield (first fields, second fields) of up to AT_ONCE entries at a time."""
    left = iter(entries)
    while flat := list(chain.from_iterable(islice(left, AT_ONCE))):
        yield flat[::2], flat[1::2]
