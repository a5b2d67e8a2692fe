# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The reading of the records of one magic 2 batch, one after the other: what all endings of the kernel share.

The layout is told by :mod:`kdump.records.magic_2`. What C needs of this class stands in ``cursor.pxd``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from kdump.formats.record_layout import TIMESTAMP_TYPE_FLAG, BatchHeader

if TYPE_CHECKING:
    import cython
else:
    from kdump.kernel import _shadow as cython

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from kdump.primitives.wire import Bytes

STAMP: Final = "26defbad"

RECORD_NUMBERS: Final = ("offset", "timestamp", "key_size", "value_size", "sequence")
"""The numbers of a record. In ``values`` they come first, behind them those of the batch's header, then the others."""
FAR: Final = 1 << 62
"""Numbers between this and its negative add up within 64 bits."""
NUMBERS: Final = 32
"""How many numbers ``values`` has room for."""


def _slot(name: str) -> int:
    """Return the slot of a number of the batch's header."""
    return len(RECORD_NUMBERS) + BatchHeader._fields.index(name)


_OFFSET = cython.declare(cython.int, RECORD_NUMBERS.index("offset"))
_TIMESTAMP = cython.declare(cython.int, RECORD_NUMBERS.index("timestamp"))
_KEY_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("key_size"))
_VALUE_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("value_size"))
_SEQUENCE = cython.declare(cython.int, RECORD_NUMBERS.index("sequence"))
_OF_BATCH = cython.declare(cython.int, len(RECORD_NUMBERS))
_BASE_OFFSET = cython.declare(cython.int, _slot("base_offset"))
_BASE_TIMESTAMP = cython.declare(cython.int, _slot("base_timestamp"))
_BASE_SEQUENCE = cython.declare(cython.int, _slot("base_sequence"))
_MAX_TIMESTAMP = cython.declare(cython.int, _slot("max_timestamp"))
_BATCH_ATTRIBUTES = cython.declare(cython.int, _slot("attributes"))
_COUNT = cython.declare(cython.int, _slot("records_count"))
_APPENDED = cython.declare(cython.longlong, TIMESTAMP_TYPE_FLAG)
_FAR = cython.declare(cython.longlong, FAR)
_MOST = cython.declare(cython.longlong, (1 << 63) - 1)
_BEHIND = cython.declare(cython.Py_ssize_t, sys.maxsize >> 1)  # behind all data: to read there is an IndexError


def slots(others: Sequence[str]) -> dict[str, int]:
    """Return where in ``values`` the numbers of a record, of its batch's header and ``others`` stand, by name."""
    return {name: slot for slot, name in enumerate((*RECORD_NUMBERS, *BatchHeader._fields, *others))}


class Cursor:
    """Reads the records of one batch after the other. ``left`` counts the records still to come.

    Behind :meth:`read`, ``values`` holds the numbers of the record, ``start`` and ``at`` say where it lies in ``data``,
    ``key_at`` and ``value_at`` where key and value start (their sizes, -1 for null, are among the numbers), and
    :meth:`header`, from ``headers_at`` on, where each of ``header_count`` headers lies.
    """

    def begin(self, data: Bytes, at: int, header: BatchHeader, others: Sequence[int]) -> bool:
        """Turn to the records of a batch, from ``at`` on in ``data``; return whether the kernel can.

        The numbers of ``header`` go to the slots behind the record's own, ``others`` behind them.
        """
        if not cython.compiled:
            self.values = [0] * (2 * NUMBERS)  # texts go into the other half
        self.data = data if cython.compiled or isinstance(data, bytes) else bytes(data)
        slot: cython.int = _OF_BATCH
        for number in header:
            self.values[slot] = number
            slot += 1
        if len(others) > NUMBERS - slot:
            raise ValueError("there are more numbers than slots")
        for number in others:
            self.values[slot] = number
            slot += 1
        return self.turn(at, len(data))

    def turn(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Turn to the records from ``at`` to ``end`` of the batch whose numbers are in place, as :meth:`begin` does."""
        self.left = 0
        self.base_offset = self.values[_BASE_OFFSET]
        self.base_timestamp = self.values[_BASE_TIMESTAMP]
        self.base_sequence = self.values[_BASE_SEQUENCE]
        self.appended = self.values[_BATCH_ATTRIBUTES] & _APPENDED != 0
        self.values[_TIMESTAMP] = self.values[_MAX_TIMESTAMP]  # under LogAppendTime it is that of all records
        self.values[_SEQUENCE] = -1
        self.at = at
        self.end = end
        if self.values[_COUNT] < 0 or not (-_FAR < self.base_offset < _FAR and -_FAR < self.base_timestamp < _FAR):
            return False
        self.left = self.values[_COUNT]
        return True

    def stack(self, block: Bytes, table: array[int], width: int, first: int, behind: int) -> None:
        """Turn to batches that stand uncompressed in ``block``: those of some rows of ``table``.

        A row has ``width`` numbers: where the records start and end in ``block``, those of the header, and those of the
        other slots.
        """
        if cython.compiled:
            self.block = block
            self.stacked = table
        else:
            self.values = [0] * (2 * NUMBERS)
            self.stacked = table
            self.data = bytes(block)
        self.size = len(block)
        self.left = 0
        self.row = first
        self.rows = behind
        self.width = width
        if not (2 <= width <= 2 + NUMBERS - len(RECORD_NUMBERS) and 0 <= first <= behind <= len(table) // width):
            raise ValueError("the table does not have these rows, or they have more numbers than there are slots")

    def next_batch(self) -> cython.bint:
        """Turn to the batch of the next row; return whether the kernel can."""
        at: cython.Py_ssize_t = self.row * self.width
        slot: cython.Py_ssize_t
        for slot in range(self.width - 2):
            self.values[_OF_BATCH + slot] = self.stacked[at + 2 + slot]
        self.row += 1
        return 0 <= self.stacked[at] <= self.stacked[at + 1] <= self.size and self.turn(
            self.stacked[at], self.stacked[at + 1]
        )

    def sound_rows(self) -> int:
        """Return how many rows there are before the first whose batch has a record that is not well-formed."""
        good: cython.Py_ssize_t = self.row
        if cython.compiled:
            self.data = self.block
        try:
            with cython.nogil:
                while self.row < self.rows and self.next_batch():
                    while self.left > 0 and self.read():
                        self.left -= 1
                    if self.left > 0:
                        break
                    good = self.row
        except IndexError:
            pass  # its data end too early
        return good

    def sound(self) -> bool:
        """Tell whether all records to come are well-formed; nothing moves."""
        at, left = self.at, self.left
        try:
            with cython.nogil:
                while self.left > 0 and self.read():
                    self.left -= 1
            return self.left == 0
        except IndexError:
            return False
        finally:
            self.at, self.left = at, left

    def spans(self) -> tuple[int, int, int, int] | None:
        """Return lowest and highest offset and timestamp (ms) of all records to come, None when one is not well-formed.

        Nothing moves.
        """
        at, left = self.at, self.left
        low: cython.longlong = _MOST
        high: cython.longlong = -_MOST - 1
        early: cython.longlong = _MOST
        late: cython.longlong = -_MOST - 1
        try:
            with cython.nogil:
                while self.left > 0 and self.read():
                    self.left -= 1
                    if self.values[_OFFSET] < low:  # noqa: PLR1730  min() needs the GIL
                        low = self.values[_OFFSET]
                    if self.values[_OFFSET] > high:  # noqa: PLR1730  likewise
                        high = self.values[_OFFSET]
                    if self.values[_TIMESTAMP] < early:  # noqa: PLR1730  likewise
                        early = self.values[_TIMESTAMP]
                    if self.values[_TIMESTAMP] > late:  # noqa: PLR1730  likewise
                        late = self.values[_TIMESTAMP]
            return (low, high, early, late) if self.left == 0 else None
        except IndexError:
            return None
        finally:
            self.at, self.left = at, left

    def facts(self) -> tuple[int, int, int] | None:
        """Read all records to come: the last offset, the greatest timestamp in ms (-1 or more), and how many have
        attributes or an offset that does not rise. None where one is not well-formed or bytes are left behind them.
        """
        odd: cython.longlong = 0
        last: cython.longlong = self.base_offset - 1
        highest: cython.longlong = -1
        try:
            with cython.nogil:
                while self.left > 0 and self.read():
                    self.left -= 1
                    if self.attributes != 0 or self.values[_OFFSET] <= last:
                        odd += 1
                    last = self.values[_OFFSET]
                    if self.values[_TIMESTAMP] > highest:  # noqa: PLR1730  max() needs the GIL
                        highest = self.values[_TIMESTAMP]
            return (last, highest, odd) if self.left == 0 and self.at == self.end else None
        except IndexError:
            return None

    def read(self) -> cython.bint:
        """Read the next record's fields; return whether it is well-formed. Raises IndexError where the data end."""
        at: cython.Py_ssize_t = self.at
        self.start = at
        size: cython.longlong = self.data[at]
        at += 1
        if size > 127:
            size = self.longer(size, at, 28)
            at = self.at
        stop: cython.Py_ssize_t = at + (size >> 1)
        if size & 1 or stop > self.end:
            return False
        self.attributes = self.data[at]
        at += 1
        delta: cython.longlong = self.data[at]
        at += 1
        if delta > 127:
            delta = self.longer(delta, at, 56)
            at = self.at
        if not self.appended:
            self.values[_TIMESTAMP] = self.base_timestamp + ((delta >> 1) ^ -(delta & 1))
        delta = self.data[at]
        at += 1
        if delta > 127:
            delta = self.longer(delta, at, 28)
            at = self.at
        delta = (delta >> 1) ^ -(delta & 1)
        self.values[_OFFSET] = self.base_offset + delta
        if self.base_sequence >= 0:
            if delta < 0 or self.base_sequence + delta > 0x7FFFFFFF:  # it wraps around
                return False
            self.values[_SEQUENCE] = self.base_sequence + delta
        size = self.data[at]
        at += 1
        if size > 127:
            size = self.longer(size, at, 28)
            at = self.at
        self.key_at = at
        if size & 1:
            self.values[_KEY_SIZE] = -1
        else:
            self.values[_KEY_SIZE] = size >> 1
            at += size >> 1
        size = self.data[at]
        at += 1
        if size > 127:
            size = self.longer(size, at, 28)
            at = self.at
        self.value_at = at
        if size & 1:
            self.values[_VALUE_SIZE] = -1
        else:
            self.values[_VALUE_SIZE] = size >> 1
            at += size >> 1
        size = self.data[at]
        at += 1
        if size > 127:
            size = self.longer(size, at, 28)
            at = self.at
        if size & 1 or size >> 1 > stop - at:
            return False
        self.headers_at = at
        self.header_count = size >> 1
        if size:
            at = self.skip_headers(at, size >> 1)
        if at != stop or (self.left == 1 and stop != self.end):
            return False
        self.at = at
        return True

    def longer(self, value: cython.longlong, at: cython.Py_ssize_t, last: cython.int) -> cython.longlong:
        """Read on in a varint whose first byte was ``value``; leave ``at`` behind it.

        ``last`` is the shift of the last byte that the type has. What the general reader would refuse, or cut to the
        size of the type, is given back as a size of null behind all data: that fits nowhere.
        """
        byte: cython.longlong = self.data[at]
        at += 1
        value += (byte - 1) << 7
        shift: cython.int = 14
        while byte > 127 and shift <= last:
            byte = self.data[at]
            at += 1
            value += (byte - 1) << shift
            shift += 7
        if byte > 127 or (last == 28 and value >> 32):
            self.at = _BEHIND
            return 1
        self.at = at
        return value

    def skip_headers(self, at: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Return the position behind ``count`` headers, or -2 when a key among them is null."""
        if not cython.compiled:
            self.names: list[bytes] = []
        while count > 0 and at >= 0:
            at = self.header(at)
            count -= 1
        return at

    def header(self, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Read the header at ``at``; return the position behind it, or -2 when its key is null.

        ``name_at`` and ``name_size`` say where its key lies, ``content_at`` and ``content_size`` its value, with a size
        of -1 for null.
        """
        behind: cython.Py_ssize_t = self.at
        size: cython.longlong = self.data[at]
        at += 1
        if size > 127:
            size = self.longer(size, at, 28)
            at = self.at
            self.at = behind
        if size & 1:
            return -2
        self.name_at = at
        self.name_size = size >> 1
        at += size >> 1
        if not cython.compiled:
            self.names.append(bytes(self.data[self.name_at : at]))
        size = self.data[at]
        at += 1
        if size > 127:
            size = self.longer(size, at, 28)
            at = self.at
            self.at = behind
        self.content_at = at
        if size & 1:
            self.content_size = -1
        else:
            self.content_size = size >> 1
            at += size >> 1
        return at
