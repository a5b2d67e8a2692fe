# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The offsets and sizes of records as columns of numbers: no record becomes an object."""

from array import array

from kdump.formats.record_layout import BatchHeader
from kdump.kernel.cursor import RECORD_NUMBERS

cimport cython
from kdump.kernel.cursor cimport Cursor

cdef int _OFFSET = RECORD_NUMBERS.index("offset")
cdef int _KEY_SIZE = RECORD_NUMBERS.index("key_size")
cdef int _VALUE_SIZE = RECORD_NUMBERS.index("value_size")
cdef Py_ssize_t _COUNT = 2 + BatchHeader._fields.index("records_count")
cdef Py_ssize_t _SMALLEST = 7  # bytes of a record: size, attributes, two deltas, key size, value size, header count


@cython.final
cdef class Sizes(Cursor):
    """Turns the records of stacked batches into columns."""

    def columns(self):
        """Return the offsets and the sizes in bytes of keys and of values, -1 for null, of the stacked batches.

        They end before the first batch that has a record which is not well-formed. ``row`` is then that of this batch,
        else the one after the last.
        """
        cdef Py_ssize_t room = self._room()
        offsets, keys, values = (array("q", (0,)) * room for _ in range(3))
        count = self._fill(offsets, keys, values, room)
        for column in (offsets, keys, values):
            del column[count:]
        return offsets, keys, values

    def largest(self):
        """Return the bytes of the largest record of the batch, as far as its records are well-formed."""
        cdef Py_ssize_t most = 0
        cdef Py_ssize_t start
        with nogil:
            while self.left > 0:
                start = self.at
                if not self.read():
                    break
                most = max(most, self.at - start)
                self.left -= 1
        return most

    cdef Py_ssize_t _room(self) except -1:
        """Return how many records there are, as far as their bytes allow."""
        cdef Py_ssize_t room = 0
        cdef Py_ssize_t at
        for at in range(self.row * self.width, self.rows * self.width, self.width):
            room += max(0, min(self.stacked[at + _COUNT], (self.stacked[at + 1] - self.stacked[at]) // _SMALLEST))
        return room

    cdef Py_ssize_t _fill(self, long long[::1] offsets, long long[::1] keys, long long[::1] values, Py_ssize_t room):
        """Write the columns; return how many records they have."""
        cdef Py_ssize_t count = 0
        cdef Py_ssize_t good = 0
        cdef Py_ssize_t row = self.row
        self.data = self.block
        with nogil:
            while self.row < self.rows and self.next_batch() and self.left <= room - count:
                while self.left > 0 and self.read():
                    offsets[count] = self.values[_OFFSET]
                    keys[count] = self.values[_KEY_SIZE]
                    values[count] = self.values[_VALUE_SIZE]
                    count += 1
                    self.left -= 1
                if self.left > 0:
                    break
                good, row = count, self.row
        self.row = row
        return good
