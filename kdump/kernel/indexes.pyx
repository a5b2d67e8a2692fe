# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""Compares entries of an index with the batches at their positions, and creates the entries of new indexes.

An offset entry is confirmed only if its offset is the last one of the batch of magic 2 at its position. A time entry is
confirmed only if its offset is the last one of a batch, and its timestamp the largest of that batch's records. The
search for this batch starts at the last ``.index`` entry up to its offset. The general path checks the other entries
and reports errors.
"""

from kdump.formats.offset_index import OffsetIndex
from kdump.formats.record_layout import BATCH_HEADER, CODEC_MASK, LOG_OVERHEAD, MAGIC_2, TIMESTAMP_TYPE_FLAG
from kdump.formats.sparse_index import MAX_RELATIVE_OFFSET
from kdump.formats.time_index import NO_TIMESTAMP, TimeIndex
from kdump.kernel.batches import COLUMNS, WIDTH
from kdump.kernel.records import FAR, RECORD_NUMBERS

cimport cython
from posix.unistd cimport pread
from kdump.kernel.records cimport Cursor
from kdump.kernel.words cimport big

cdef Py_ssize_t _WINDOW = 1 << 18
"""Bytes of the log per read if records are checked. The general path checks larger batches."""
cdef Py_ssize_t _NEAR = 1 << 12
"""Headers closer than this many bytes are read together."""
cdef Py_ssize_t _SEVERAL = 1 << 14
cdef int _STEPS = 64
"""Maximum number of batches that are searched for a time entry. Ctrl-C cannot interrupt this loop."""


cdef long long _FAR = FAR
cdef int _TIMESTAMP = RECORD_NUMBERS.index("timestamp")
cdef Py_ssize_t _OFFSET_ENTRY = OffsetIndex.layout.size
cdef Py_ssize_t _AT_POSITION = OffsetIndex.layout.offsets["position"]
cdef Py_ssize_t _TIME_ENTRY = TimeIndex.layout.size
cdef Py_ssize_t _AT_OFFSET = TimeIndex.layout.offsets["relative_offset"]

cdef Py_ssize_t _HEADER = BATCH_HEADER.size
cdef Py_ssize_t _OVERHEAD = LOG_OVERHEAD.size
cdef Py_ssize_t _AT_LENGTH = BATCH_HEADER.offsets["length"]
cdef Py_ssize_t _AT_MAGIC = BATCH_HEADER.offsets["magic"]
cdef Py_ssize_t _AT_ATTRIBUTES = BATCH_HEADER.offsets["attributes"]
cdef Py_ssize_t _AT_LAST_DELTA = BATCH_HEADER.offsets["last_offset_delta"]
cdef Py_ssize_t _AT_BASE_TIMESTAMP = BATCH_HEADER.offsets["base_timestamp"]
cdef Py_ssize_t _AT_MAX_TIMESTAMP = BATCH_HEADER.offsets["max_timestamp"]
cdef Py_ssize_t _AT_BASE_SEQUENCE = BATCH_HEADER.offsets["base_sequence"]
cdef Py_ssize_t _AT_COUNT = BATCH_HEADER.offsets["records_count"]
cdef int _MAGIC = MAGIC_2
cdef int _ROW = WIDTH
cdef int _BASE = COLUMNS["base_offset"]
cdef int _MAX_TIMESTAMP = COLUMNS["max_timestamp"]
cdef int _LAST = COLUMNS["last_offset"]
cdef int _SIZE = COLUMNS["size"]
cdef long long _MAX_RELATIVE = MAX_RELATIVE_OFFSET
cdef long long _NO_TIMESTAMP = NO_TIMESTAMP
cdef long long _CODEC_MASK = CODEC_MASK
cdef long long _APPENDED = TIMESTAMP_TYPE_FLAG


@cython.final
cdef class EntryCheck(Cursor):
    """Compares entries of a segment's indexes with its log.

    The result is a byte for each entry: 0 if it is confirmed, else 1.
    """

    cdef int fd
    cdef long long log_end
    cdef long long most
    cdef long long base
    cdef bint sane
    cdef unsigned char[::1] window
    cdef long long window_at
    cdef Py_ssize_t held
    cdef const unsigned char[::1] entries
    cdef const unsigned char[::1] offsets
    cdef unsigned char[::1] flags
    cdef long long batch_size
    cdef long long last

    def __init__(self, fd, log_end, most, base):
        """``fd`` is the open log of ``log_end`` bytes. ``most`` is the size of the largest batch in bytes.

        ``base`` is the base offset of the segment.
        """
        self.sane = -_FAR < base < _FAR
        self.fd, self.log_end, self.most = fd, log_end, most
        self.base = base if self.sane else 0
        self.window_at = self.held = 0
        window = bytearray(_WINDOW)
        self.window = self.data = window

    def by_offset(self, entries, first, stop, flags):
        """Compare the entries ``first`` to ``stop`` (exclusive) of an ``.index`` with their batches' last offsets."""
        self.entries, self.flags = entries, flags
        cdef Py_ssize_t slot = first
        cdef Py_ssize_t end = stop
        with nogil:
            while slot < end:
                self.flags[slot] = not (self.sane and self.offset_entry(slot))
                slot += 1

    def by_time(self, entries, offsets, first, stop, flags):
        """Compare the entries ``first`` to ``stop`` (exclusive) of a ``.timeindex`` with the records of their batches.

        ``offsets`` is the content of the ``.index``, whose entries must be in increasing order.
        """
        self.entries, self.offsets, self.flags = entries, offsets, flags
        cdef Py_ssize_t slot = first
        cdef Py_ssize_t end = stop
        with nogil:
            while slot < end:
                self.flags[slot] = not (self.sane and self.time_entry(slot))
                slot += 1

    cdef bint offset_entry(self, Py_ssize_t slot) except -1 nogil:
        """Return whether the offset of an entry is the last offset of the batch at its position."""
        cdef long long relative = big(&self.entries[slot * _OFFSET_ENTRY], 4)
        cdef long long position = big(&self.entries[slot * _OFFSET_ENTRY + _AT_POSITION], 4)
        cdef Py_ssize_t following = (slot + 1) * _OFFSET_ENTRY
        if relative == 0 and slot > 0:
            return False
        cdef long long near = 0
        if following + _OFFSET_ENTRY <= self.entries.shape[0]:
            near = big(&self.entries[following + _AT_POSITION], 4) - position
        cdef Py_ssize_t at = self.load(position, _HEADER, _SEVERAL if 0 < near <= _NEAR else _HEADER)
        return at >= 0 and self.header_at(position, at) and self.last == self.base + relative

    cdef bint time_entry(self, Py_ssize_t slot) except -1 nogil:
        """Return whether an entry has the last offset of a batch, and the largest timestamp of that batch's records."""
        cdef long long timestamp = big(&self.entries[slot * _TIME_ENTRY], 8)
        cdef long long relative = big(&self.entries[slot * _TIME_ENTRY + _AT_OFFSET], 4)
        if timestamp < 0:
            return False
        if slot > 0 and (relative == 0 or big(&self.entries[(slot - 1) * _TIME_ENTRY], 8) >= timestamp):
            return False
        cdef long long position = self.look_up(relative)
        cdef Py_ssize_t at = self.load(position, _HEADER, _WINDOW)
        cdef int steps = 0
        while at >= 0 and self.header_at(position, at) and self.last < self.base + relative and steps < _STEPS:
            position += self.batch_size
            at = self.load(position, _HEADER, _WINDOW)
            steps += 1
        if at < 0 or not self.header_at(position, at):
            return False
        if self.last != self.base + relative or self.batch_size > _WINDOW:
            return False
        at = self.load(position, self.batch_size, _WINDOW)
        return at >= 0 and self.highest(at) == timestamp

    cdef long long look_up(self, long long relative) noexcept nogil:
        """Return the position of the last ``.index`` entry whose offset is at most ``relative``; 0 without one."""
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = self.offsets.shape[0] // _OFFSET_ENTRY
        cdef Py_ssize_t middle
        while low < high:
            middle = (low + high) // 2
            if big(&self.offsets[middle * _OFFSET_ENTRY], 4) <= relative:
                low = middle + 1
            else:
                high = middle
        return big(&self.offsets[(low - 1) * _OFFSET_ENTRY + _AT_POSITION], 4) if low > 0 else 0

    cdef Py_ssize_t load(self, long long position, long long size, Py_ssize_t ahead) noexcept nogil:
        """Return the index in the window of ``size`` bytes of the log from ``position`` on; -1 if they are unreadable.

        If they are not in the window, ``ahead`` bytes are read. Both numbers are at most the size of the window.
        """
        cdef long long at = position - self.window_at
        if at >= 0 and at + size <= self.held:
            return at
        if position < 0 or position > self.log_end:
            return -1
        self.window_at = position
        self.held = pread(self.fd, &self.window[0], ahead, position)
        return 0 if size <= self.held else -1

    cdef bint header_at(self, long long position, Py_ssize_t at) noexcept nogil:
        """Read the size and the last offset of the batch at ``position``. Return whether they are plausible."""
        cdef long long base = big(&self.window[at], 8)
        self.batch_size = _OVERHEAD + big(&self.window[at + _AT_LENGTH], 4)
        if not -_FAR < base < _FAR:
            return False
        self.last = base + big(&self.window[at + _AT_LAST_DELTA], 4)
        return (
            self.window[at + _AT_MAGIC] == _MAGIC
            and _HEADER <= self.batch_size <= self.most
            and position + self.batch_size <= self.log_end
        )

    cdef long long highest(self, Py_ssize_t at) except? -1 nogil:
        """Return the largest timestamp of the records of the batch in the window; -1 if they have no timestamp.

        -2 means that the records are compressed or not well-formed.
        """
        cdef long long attributes = big(&self.window[at + _AT_ATTRIBUTES], 2)
        self.base_offset = big(&self.window[at], 8)
        self.base_timestamp = big(&self.window[at + _AT_BASE_TIMESTAMP], 8)
        self.base_sequence = big(&self.window[at + _AT_BASE_SEQUENCE], 4)
        self.appended = attributes & _APPENDED != 0
        self.values[_TIMESTAMP] = big(&self.window[at + _AT_MAX_TIMESTAMP], 8)
        self.left = big(&self.window[at + _AT_COUNT], 4)
        if attributes & _CODEC_MASK or self.left < 0 or not -_FAR < self.base_timestamp < _FAR:
            return -2
        self.at = at + _HEADER
        self.end = at + self.batch_size
        cdef long long found = -1
        while self.left > 0:
            if not self.read():
                return -2
            self.left -= 1
            if self.values[_TIMESTAMP] > found:  # max() may need the GIL
                found = self.values[_TIMESTAMP]
        return found


def add_run(builder, table, long long position):
    """Add the batches of a run to an IndexBuilder. ``table`` has their rows; the first is at byte ``position``.

    Return the number of added batches: all before the first one whose offset does not fit into the segment.
    """
    if not (-FAR < builder.base_offset < FAR and builder.interval < FAR):
        return 0
    cdef const long long[::1] numbers = table
    cdef long long base = builder.base_offset
    cdef long long interval = builder.interval
    cdef long long since = builder.since
    cdef long long highest = builder.highest
    cdef long long held_by = builder.held_by
    cdef long long entered = builder.offsets[len(builder.offsets) - 1] if builder.offsets else -_FAR
    cdef long long timed = builder.timestamps[len(builder.timestamps) - 1] if builder.timestamps else _NO_TIMESTAMP
    cdef long long timed_by = builder.time_offsets[len(builder.time_offsets) - 1] if builder.timestamps else -_FAR
    cdef long long refused_at = -1
    cdef bint refuses = builder.refuses
    cdef int named = _BASE if builder.first_offsets else _LAST
    cdef Py_ssize_t at = 0
    while at < numbers.shape[0] and 0 <= numbers[at + _LAST] - base <= _MAX_RELATIVE:
        if numbers[at + _MAX_TIMESTAMP] > highest:
            highest = numbers[at + _MAX_TIMESTAMP]
            held_by = numbers[at + _LAST]
        if since > interval:
            refuses |= numbers[at + named] <= entered
            entered = numbers[at + named]
            builder.offsets.append(entered)
            builder.positions.append(position)
            if highest > timed:
                refuses |= held_by < timed_by
                timed, timed_by = highest, held_by
                builder.timestamps.append(timed)
                builder.time_offsets.append(timed_by)
            if refuses and refused_at < 0:
                refused_at = position
            since = 0
        since += numbers[at + _SIZE]
        position += numbers[at + _SIZE]
        at += _ROW
    builder.since, builder.highest, builder.held_by, builder.refuses = since, highest, held_by, refuses
    if refused_at >= 0 and builder.refused_at is None:
        builder.refused_at = refused_at
    return at // _ROW
