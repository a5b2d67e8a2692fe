# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The records of magic 2 batches as objects."""

from kdump.formats.record import MANY_HEADERS, Header, ManyHeaders, Record
from kdump.kernel.cursor import RECORD_NUMBERS

cimport cython
from kdump.kernel.cursor cimport Cursor

cdef int _OFFSET = RECORD_NUMBERS.index("offset")
cdef int _TIMESTAMP = RECORD_NUMBERS.index("timestamp")
cdef int _KEY_SIZE = RECORD_NUMBERS.index("key_size")
cdef int _VALUE_SIZE = RECORD_NUMBERS.index("value_size")
cdef int _SEQUENCE = RECORD_NUMBERS.index("sequence")
cdef Py_ssize_t _MANY_HEADERS = MANY_HEADERS
_new = tuple.__new__  # what the constructor of a NamedTuple comes down to


cdef class Records(Cursor):
    """Turns the records of one batch after the other into objects."""

    def records(self, most):
        """Return the next records, ``most`` of them; with fewer, the one behind them is not well-formed, or none is."""
        cdef list made = []
        cdef Py_ssize_t left = most
        while left > 0 and self.left > 0 and self.read():
            made.append(self.record())
            self.left -= 1
            left -= 1
        return made

    def stacked(self):
        """Return the records of the stacked batches: offset, timestamp in ms, key, value and size in bytes of each.

        They end before the first batch that has one which is not well-formed. ``row`` is then that of this batch, else
        the one after the last.
        """
        return self.briefs()

    cdef list briefs(self):
        """Return what :meth:`brief` makes of the records of the stacked batches."""
        cdef list made = []
        cdef Py_ssize_t before
        self.data = self.block
        while self.row < self.rows:
            before = len(made)
            good = False
            if self.next_batch():
                while self.left > 0 and self.read():
                    made.append(self.brief())
                    self.left -= 1
                good = self.left == 0
            if not good:
                del made[before:]
                self.row -= 1
                break
        return made

    cdef brief(self):
        """Return what :meth:`stacked` has of the record that was just read; an ending may have something else."""
        cdef long long key_size = self.values[_KEY_SIZE], value_size = self.values[_VALUE_SIZE]
        return (
            self.values[_OFFSET],
            self.values[_TIMESTAMP],
            None if key_size < 0 else self.bytes_at(self.key_at, key_size),
            None if value_size < 0 else self.bytes_at(self.value_at, value_size),
            self.at - self.start,
        )

    cdef record(self):
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

    cdef headers(self):
        """Return the headers of the record that was just read: they fill it up to its end."""
        if self.header_count > _MANY_HEADERS:
            return ManyHeaders(self.bytes_at(self.headers_at, self.at - self.headers_at), self.header_count)
        made = []
        cdef Py_ssize_t at = self.headers_at
        for _ in range(self.header_count):
            at = self.header(at)
            value = None if self.content_size < 0 else self.bytes_at(self.content_at, self.content_size)
            made.append(_new(Header, (self.bytes_at(self.name_at, self.name_size), value)))
        return tuple(made)

    @cython.boundscheck(False)
    cdef bytes bytes_at(self, Py_ssize_t at, Py_ssize_t size):
        """Return ``size`` bytes of the record."""
        return (<char*> &self.data[at])[:size]
