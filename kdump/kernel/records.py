# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The records of one magic 2 batch as objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kdump.formats.record import Header, Record
from kdump.kernel.cursor import RECORD_NUMBERS

if TYPE_CHECKING:
    import cython
else:
    from kdump.kernel import _shadow as cython

if not cython.compiled:
    from kdump.kernel.cursor import Cursor
else:
    from cython.cimports.kdump.kernel.cursor import Cursor  # type: ignore[no-redef]  # the same in C


STAMP: Final = "5f6f3b40"

_OFFSET = cython.declare(cython.int, RECORD_NUMBERS.index("offset"))
_TIMESTAMP = cython.declare(cython.int, RECORD_NUMBERS.index("timestamp"))
_KEY_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("key_size"))
_VALUE_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("value_size"))
_SEQUENCE = cython.declare(cython.int, RECORD_NUMBERS.index("sequence"))
_new: Final[Any] = tuple.__new__  # what the constructor of a NamedTuple comes down to


@cython.final
@cython.cclass
class Records(Cursor):
    """Turns the records of one batch after the other into objects."""

    def records(self, most: int) -> list[Record]:
        """Return the next records, ``most`` of them; with fewer, the one behind them is not well-formed, or none is."""
        made: list[Record] = []
        left: cython.Py_ssize_t = most
        try:
            while left > 0 and self.left > 0 and self.read():
                made.append(self.record())
                self.left -= 1
                left -= 1
        except IndexError:
            pass  # its data end too early
        return made

    @cython.cfunc
    def record(self) -> Record:
        """Return the record that was just read."""
        key_size, value_size = self.values[_KEY_SIZE], self.values[_VALUE_SIZE]
        return _new(
            Record,
            (
                self.values[_OFFSET],
                self.values[_TIMESTAMP],
                None if key_size < 0 else self.bytes_at(self.key_at, key_size),
                None if value_size < 0 else self.bytes_at(self.value_at, value_size),
                self.headers() if self.header_count else (),
                self.values[_SEQUENCE],
                self.attributes,
                key_size,
                value_size,
                self.at - self.start,
                None,
                None,
            ),
        )

    @cython.cfunc
    def headers(self) -> tuple[Header, ...]:
        """Return the headers of the record that was just read."""
        made = []
        at: cython.Py_ssize_t = self.headers_at
        for _ in range(self.header_count):
            at = self.header(at)
            value = None if self.content_size < 0 else self.bytes_at(self.content_at, self.content_size)
            made.append(_new(Header, (self.bytes_at(self.name_at, self.name_size), value)))
        return tuple(made)

    @cython.cfunc
    @cython.boundscheck(False)
    def bytes_at(self, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> bytes:
        """Return ``size`` bytes of the record."""
        if cython.compiled:
            return cython.cast(cython.p_char, cython.address(self.data[at]))[:size]
        return bytes(self.data[at : at + size])
