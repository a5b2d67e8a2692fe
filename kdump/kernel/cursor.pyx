# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The reading of the records of one magic 2 batch, one after the other: what all endings of the kernel share.

The layout is told by :mod:`kdump.records.magic_2`. What C needs of this class stands in ``cursor.pxd``.
"""

import sys

cimport cython

from kdump.formats.record_layout import TIMESTAMP_TYPE_FLAG, BatchHeader

VERSION = 21
"""The number that ``kdump/kernel/__init__.py`` must have: it counts up when what they ask of each other changes."""
RECORD_NUMBERS = ("offset", "timestamp", "key_size", "value_size", "sequence")
"""The numbers of a record. In ``values`` they come first, behind them those of the batch's header, then the others."""
FAR = 1 << 62
"""Numbers between this and its negative add up within 64 bits."""
NUMBERS = 32
"""How many numbers ``values`` has room for."""


def _slot(name):
    """Return the slot of a number of the batch's header."""
    return len(RECORD_NUMBERS) + BatchHeader._fields.index(name)


cdef extern from *:
    """
    #if defined(__GLIBC__)
    #include <malloc.h>
    static void kdump_keep_freed(void) { mallopt(M_TRIM_THRESHOLD, 64 << 20); mallopt(M_MMAP_THRESHOLD, 32 << 20); }
    #else
    static void kdump_keep_freed(void) {}
    #endif
    #if defined(__linux__)
    #include <fcntl.h>
    static int kdump_reserve(int file, long long size) { return fallocate(file, FALLOC_FL_KEEP_SIZE, 0, size); }
    #else
    static int kdump_reserve(int file, long long size) { return -1; }
    #endif
    """
    void keep_freed "kdump_keep_freed"()
    int set_aside "kdump_reserve"(int file, long long size) nogil


cdef int _OFFSET = RECORD_NUMBERS.index("offset")
cdef int _TIMESTAMP = RECORD_NUMBERS.index("timestamp")
cdef int _KEY_SIZE = RECORD_NUMBERS.index("key_size")
cdef int _VALUE_SIZE = RECORD_NUMBERS.index("value_size")
cdef int _SEQUENCE = RECORD_NUMBERS.index("sequence")
cdef int _OF_BATCH = len(RECORD_NUMBERS)
cdef int _BASE_OFFSET = _slot("base_offset")
cdef int _LAST_DELTA = _slot("last_offset_delta")
cdef int _BASE_TIMESTAMP = _slot("base_timestamp")
cdef int _BASE_SEQUENCE = _slot("base_sequence")
cdef int _MAX_TIMESTAMP = _slot("max_timestamp")
cdef int _BATCH_ATTRIBUTES = _slot("attributes")
cdef int _COUNT = _slot("records_count")
cdef long long _APPENDED = TIMESTAMP_TYPE_FLAG
cdef long long _FAR = FAR
cdef long long _MOST = (1 << 63) - 1
cdef Py_ssize_t _BEHIND = sys.maxsize >> 1  # behind all data: nothing can be read there


def keep_freed_memory():
    """Do what the package's function of this name says."""
    keep_freed()


def reserve(int file, long long size):
    """Do what the package's function of this name says."""
    with nogil:
        set_aside(file, size)


def slots(others):
    """Return where in ``values`` the numbers of a record, of its batch's header and ``others`` stand, by name."""
    return {name: slot for slot, name in enumerate((*RECORD_NUMBERS, *BatchHeader._fields, *others))}


cdef class Cursor:
    """Reads the records of one batch after the other. ``left`` counts the records still to come.

    Behind :meth:`read`, ``values`` holds the numbers of the record, ``start`` and ``at`` say where it lies in ``data``,
    ``key_at`` and ``value_at`` where key and value start (their sizes, -1 for null, are among the numbers), and
    :meth:`header`, from ``headers_at`` on, where each of ``header_count`` headers lies.
    """

    def begin(self, data, at, header, others):
        """Turn to the records of a batch, from ``at`` on in ``data``; return whether the kernel can.

        The numbers of ``header`` go to the slots behind the record's own, ``others`` behind them.
        """
        self.data = data
        cdef int slot = _OF_BATCH
        for number in header:
            self.values[slot] = number
            slot += 1
        if len(others) > NUMBERS - slot:
            raise ValueError("there are more numbers than slots")
        for number in others:
            self.values[slot] = number
            slot += 1
        return self.turn(at, len(data))

    @cython.final
    cdef bint turn(self, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
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

    def stack(self, block, table, width, first, behind):
        """Turn to batches that stand uncompressed in ``block``: those of some rows of ``table``.

        A row has ``width`` numbers: where the records start and end in ``block``, those of the header, and those of the
        other slots.
        """
        self.block = block
        self.stacked = table
        self.size = len(block)
        self.left = 0
        self.row = first
        self.rows = behind
        self.width = width
        if not (2 <= width <= 2 + NUMBERS - len(RECORD_NUMBERS) and 0 <= first <= behind <= len(table) // width):
            raise ValueError("the table does not have these rows, or they have more numbers than there are slots")

    @cython.final
    cdef bint next_batch(self) except -1 nogil:
        """Turn to the batch of the next row; return whether the kernel can."""
        cdef Py_ssize_t at = self.row * self.width
        cdef Py_ssize_t slot
        for slot in range(self.width - 2):
            self.values[_OF_BATCH + slot] = self.stacked[at + 2 + slot]
        self.row += 1
        return 0 <= self.stacked[at] <= self.stacked[at + 1] <= self.size and self.turn(
            self.stacked[at], self.stacked[at + 1]
        )

    def sound_rows(self):
        """Return how many rows there are before the first whose batch has a record that is not well-formed."""
        cdef Py_ssize_t good = self.row
        self.data = self.block
        with nogil:
            while self.row < self.rows and self.next_batch():
                while self.left > 0 and self.read():
                    self.left -= 1
                if self.left > 0:
                    break
                good = self.row
        return good

    def sound(self):
        """Tell whether all records to come are well-formed; nothing moves."""
        at, left = self.at, self.left
        with nogil:
            while self.left > 0 and self.read():
                self.left -= 1
        is_sound = self.left == 0
        self.at, self.left = at, left
        return is_sound

    def spans(self):
        """Return lowest and highest offset and timestamp (ms) of all records to come, None when one is not well-formed.

        Nothing moves.
        """
        at, left = self.at, self.left
        cdef long long low = _MOST
        cdef long long high = -_MOST - 1
        cdef long long early = _MOST
        cdef long long late = -_MOST - 1
        try:
            with nogil:
                while self.left > 0 and self.read():
                    self.left -= 1
                    if self.values[_OFFSET] < low:  # min() needs the GIL
                        low = self.values[_OFFSET]
                    if self.values[_OFFSET] > high:  # likewise
                        high = self.values[_OFFSET]
                    if self.values[_TIMESTAMP] < early:  # likewise
                        early = self.values[_TIMESTAMP]
                    if self.values[_TIMESTAMP] > late:  # likewise
                        late = self.values[_TIMESTAMP]
            return (low, high, early, late) if self.left == 0 else None
        finally:
            self.at, self.left = at, left

    def agrees(self):
        """Tell whether all records to come are what the header of their batch says, and there is one.

        They are well-formed and fill the batch, have no attributes and offsets that rise to its last one at most, and
        the greatest timestamp is its own (ms), unless the broker set it.
        """
        cdef bint agree
        with nogil:
            agree = self.agree()
        return agree

    def agreeing(self):
        """Return a byte for each stacked row: 1 where the records of the batch agree with its header, else 0."""
        cdef Py_ssize_t first = self.row
        cdef Py_ssize_t row
        agreeing = bytearray(self.rows - first)
        cdef unsigned char[::1] verdicts = agreeing
        self.data = self.block
        with nogil:
            while self.row < self.rows:
                row = self.row - first
                verdicts[row] = self.next_batch() and self.agree()
        return agreeing

    @cython.final
    cdef bint agree(self) except -1 nogil:
        """Do what :meth:`agrees` does."""
        cdef long long last = self.base_offset - 1
        cdef long long highest = -1
        if self.left == 0:
            return False
        while self.left > 0:
            if not self.read() or self.attributes != 0 or self.values[_OFFSET] <= last:
                return False
            self.left -= 1
            last = self.values[_OFFSET]
            if self.values[_TIMESTAMP] > highest:  # max() needs the GIL
                highest = self.values[_TIMESTAMP]
        return (
            self.at == self.end
            and last <= self.base_offset + self.values[_LAST_DELTA]
            and (self.appended or highest == self.values[_MAX_TIMESTAMP])
        )

    @cython.final
    @cython.boundscheck(False)
    cdef bint read(self) noexcept nogil:
        """Read the next record's fields; return whether it is well-formed."""
        cdef Py_ssize_t at = self.at
        cdef long long size
        cdef long long delta
        self.start = at
        size = varint(self, &at, 28)
        cdef Py_ssize_t stop = at + (size >> 1)
        if size & 1 or stop > self.end or at >= self.data.shape[0]:
            return False
        self.attributes = self.data[at]
        at += 1
        delta = varint(self, &at, 56)
        if not self.appended:
            self.values[_TIMESTAMP] = self.base_timestamp + ((delta >> 1) ^ -(delta & 1))
        delta = varint(self, &at, 28)
        delta = (delta >> 1) ^ -(delta & 1)
        self.values[_OFFSET] = self.base_offset + delta
        if self.base_sequence >= 0:
            if delta < 0 or self.base_sequence + delta > 0x7FFFFFFF:  # it wraps around
                return False
            self.values[_SEQUENCE] = self.base_sequence + delta
        size = varint(self, &at, 28)
        self.key_at = at
        if size & 1:
            self.values[_KEY_SIZE] = -1
        else:
            self.values[_KEY_SIZE] = size >> 1
            at += size >> 1
        size = varint(self, &at, 28)
        self.value_at = at
        if size & 1:
            self.values[_VALUE_SIZE] = -1
        else:
            self.values[_VALUE_SIZE] = size >> 1
            at += size >> 1
        size = varint(self, &at, 28)
        if size & 1 or size >> 1 > stop - at:
            return False
        self.headers_at = at
        self.header_count = size >> 1
        while size > 0 and at >= 0:
            at = header_at(self, at)
            size -= 2
        if at != stop or (self.left == 1 and stop != self.end):
            return False
        self.at = at
        return True

    cdef Py_ssize_t header(self, Py_ssize_t at) noexcept nogil:
        """Read the header at ``at``; return the position behind it, or -2 when its key is null.

        ``name_at`` and ``name_size`` say where its key lies, ``content_at`` and ``content_size`` its value, with a size
        of -1 for null.
        """
        return header_at(self, at)


cdef inline Py_ssize_t header_at(Cursor self, Py_ssize_t at) noexcept nogil:
    """Do what :meth:`Cursor.header` does."""
    cdef long long size = varint(self, &at, 28)
    if size & 1:
        return -2
    self.name_at = at
    self.name_size = size >> 1
    at += size >> 1
    size = varint(self, &at, 28)
    self.content_at = at
    if size & 1:
        self.content_size = -1
    else:
        self.content_size = size >> 1
        at += size >> 1
    return at


@cython.boundscheck(False)
cdef inline long long varint(Cursor self, Py_ssize_t* at, int last) noexcept nogil:
    """Return a varint, with its sign in the lowest bit, and move behind it, as longer() does."""
    cdef Py_ssize_t far = at[0]
    cdef const unsigned char* text
    cdef long long value
    if far < self.data.shape[0] - 1:
        text = &self.data[0] + far
        value = text[0]
        if value < 128:
            at[0] += 1
            return value
        if text[1] < 128:
            at[0] += 2
            return value + (<long long> text[1] - 1) * 128  # of a second byte of 0, no shift is defined
    value = longer(self, &far, last)
    at[0] = far
    return value


@cython.boundscheck(False)
cdef long long longer(Cursor self, Py_ssize_t* at, int last) noexcept nogil:
    """Return a varint of any size, and move behind it. ``last`` is the shift of the last byte that the type has.

    For what the general reader would refuse, or cut to the size of the type, a size of null behind all data is
    returned, which fits nowhere. So it is for what the end of the data cuts off.
    """
    cdef Py_ssize_t behind = at[0]
    cdef long long value = 0
    cdef long long byte
    cdef int shift = 0
    at[0] = _BEHIND
    while shift <= last and behind < self.data.shape[0]:
        byte = self.data[behind]
        behind += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            if last == 28 and value >> 32:
                return 1
            at[0] = behind
            return value
    return 1
