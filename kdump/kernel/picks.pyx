# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""How many records of a batch a filter takes: a batch without one need not be read.

:class:`kdump.log_reader.filter.Filter` tells what it takes; its regular expressions are no part of this.
"""

from array import array

from kdump.kernel.cursor import RECORD_NUMBERS

cimport cython
from libc.string cimport memcmp
from kdump.kernel.cursor cimport Cursor

cdef int _OFFSET = RECORD_NUMBERS.index("offset")
cdef int _TIMESTAMP = RECORD_NUMBERS.index("timestamp")
cdef int _KEY_SIZE = RECORD_NUMBERS.index("key_size")
cdef int _VALUE_SIZE = RECORD_NUMBERS.index("value_size")
cdef long long _MOST = (1 << 63) - 1


cdef extern from *:
    """
    #if defined(__GLIBC__) && defined(_GNU_SOURCE)
    #include <string.h>
    #define kdump_find(text, size, needle, length) memmem(text, size, needle, length)
    #else
    #define kdump_find(text, size, needle, length) (text)
    #endif
    """
    const void* find "kdump_find"(const void* text, size_t size, const void* needle, size_t length) noexcept nogil


def may_hold(const unsigned char[::1] block, bytes needle):
    """Tell whether a text stands in a block; True where the system has no fast way to find out."""
    cdef Py_ssize_t size = block.shape[0]
    if len(needle) > size:
        return False
    return size == 0 or find(&block[0], size, <const unsigned char*> needle, len(needle)) != NULL


@cython.final
cdef class Picks(Cursor):
    """Counts the records of one batch after the other that are wanted. ``since`` and ``until`` are ms.

    Their offsets are ``first`` to ``last``. Each of ``headers`` must be there, a value of None takes any. ``values`` says
    whether the value must be there, or must not; None takes both.
    """

    cdef long long first
    cdef long long last
    cdef long long since
    cdef long long until
    cdef int wants_value
    cdef list texts
    cdef (const unsigned char*)[64] pointers
    cdef Py_ssize_t[64] sizes
    cdef int keys
    cdef int headers

    def __init__(self, *, first, last, since, until, keys, headers, values):
        self.first = -_MOST - 1 if first is None else max(first, -_MOST - 1)
        self.last = _MOST if last is None else min(last, _MOST)
        self.since = -_MOST - 1 if since is None else max(since, -_MOST - 1)
        self.until = _MOST if until is None else min(until, _MOST)
        self.wants_value = -1 if values is None else values
        self.texts = [*keys]
        for name, value in headers:
            self.texts += [name, value]
        if len(self.texts) > 64:
            raise ValueError("these are too many texts to look for")
        self.keys = len(keys)
        self.headers = len(headers)
        for at, text in enumerate(self.texts):
            self.sizes[at] = -1
            if text is not None:
                self.pointers[at] = text
                self.sizes[at] = len(text)

    def of_rows(self):
        """Return how many records are wanted of each of the stacked batches, up to the first that is not sound."""
        found = array("q", bytes(8 * (self.rows - self.row)))
        cdef long long[::1] counts = found
        cdef Py_ssize_t first = self.row
        cdef Py_ssize_t good = self.row
        cdef long long count
        self.data = self.block
        with nogil:
            while self.row < self.rows and self.next_batch():
                count = self.wanted()
                if count < 0:
                    break
                counts[good - first] = count
                good = self.row
        return found[: good - first]

    def of_batch(self):
        """Return how many of the records to come are wanted, -1 where one is not well-formed."""
        cdef long long count
        with nogil:
            count = self.wanted()
        return count

    cdef long long wanted(self) except -2 nogil:
        """Return how many of the records to come are wanted, -1 where one is not well-formed."""
        cdef long long count = 0
        while self.left > 0:
            if not self.read():
                return -1
            self.left -= 1
            count += self.takes()
        return count

    @cython.boundscheck(False)
    cdef bint takes(self) except -1 nogil:
        """Tell whether the record that was just read is wanted."""
        cdef int at
        if not self.first <= self.values[_OFFSET] <= self.last:
            return False
        if self.values[_TIMESTAMP] < self.since or (self.until != _MOST and self.values[_TIMESTAMP] >= self.until):
            return False
        if self.wants_value >= 0 and (self.values[_VALUE_SIZE] >= 0) != self.wants_value:
            return False
        if self.keys:
            for at in range(self.keys):
                if self.is_text(at, self.key_at, self.values[_KEY_SIZE]):
                    break
            else:
                return False
        for at in range(self.headers):
            if not self.has_header(self.keys + 2 * at):
                return False
        return True

    @cython.boundscheck(False)
    cdef bint is_text(self, int text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
        """Tell whether ``size`` bytes of the record are the text of that number."""
        return size == self.sizes[text] and (size == 0 or memcmp(&self.data[at], self.pointers[text], size) == 0)

    cdef bint has_header(self, int text) except -1 nogil:
        """Tell whether the record has a header with the name of that number, and the value behind it if there is one."""
        cdef Py_ssize_t at = self.headers_at
        cdef Py_ssize_t done
        for done in range(self.header_count):
            at = self.header(at)
            if self.is_text(text, self.name_at, self.name_size) and (
                self.sizes[text + 1] < 0 or self.is_text(text + 1, self.content_at, self.content_size)
            ):
                return True
        return False
