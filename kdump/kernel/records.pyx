# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""Reads the records of consecutive magic 2 batches: as objects, as sizes, or to count those that a filter selects.

:mod:`kdump.records.magic_2` has the layout. :class:`Cursor` reads records. Its subclasses, also in other modules, write
an output; ``records.pxd`` has its C interface. Some functions call the system, such as :func:`listing`.

"Well-formed" is what this module reads. :mod:`kdump.records.magic_2` reads all valid records: also those whose sequence
begins again at 0, or with times of 2**62 ms and more.
"""

import sys
from array import array

from kdump.formats.record import MANY_HEADERS, Header, ManyHeaders, Record
from kdump.formats.record_layout import TIMESTAMP_TYPE_FLAG, BatchHeader

cimport cython
from cpython.exc cimport PyErr_SetFromErrnoWithFilenameObject
from libc.errno cimport errno
from libc.string cimport memcmp, strcmp

VERSION = 28
"""Equal to ``VERSION`` of ``kdump/kernel/__init__.py``."""
RECORD_NUMBERS = ("offset", "timestamp", "key_size", "value_size", "sequence")
"""The ``values`` of a Cursor begin with these numbers of a record. Fields of the batch's header and others follow."""
FAR = 1 << 62
"""The sum of two numbers from -FAR to FAR fits into 64 bits, except FAR + FAR."""
NUMBERS = 32
"""Maximum number of ``values``."""


def _slot(name):
    """Return the slot of a field of the batch's header."""
    return len(RECORD_NUMBERS) + BatchHeader._fields.index(name)


cdef extern from *:
    """
    #if defined(__GLIBC__)
    #include <malloc.h>
    static void kdump_keep_freed(void) { mallopt(M_TRIM_THRESHOLD, 64 << 20); mallopt(M_MMAP_THRESHOLD, 8 << 20); }
    #else
    static void kdump_keep_freed(void) {}
    #endif
    #if defined(__linux__)
    #include <fcntl.h>
    static int kdump_reserve(int file, long long size) { return fallocate(file, FALLOC_FL_KEEP_SIZE, 0, size); }
    #else
    static int kdump_reserve(int file, long long size) { return -1; }
    #endif
    #include <dirent.h>
    #include <fcntl.h>
    #include <sys/stat.h>
    #if defined(__linux__) && defined(STATX_ATTR_IMMUTABLE)
    #define FIXED (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)
    static int kdump_fixed(const char *path) {
        struct statx found;
        if (statx(AT_FDCWD, path, 0, 0, &found) || (found.stx_attributes_mask & FIXED) != FIXED) return -1;
        return (found.stx_attributes & FIXED) != 0;
    }
    #else
    static int kdump_fixed(const char *path) { return -1; }
    #endif
    #if defined(__APPLE__)
    #define st_mtim st_mtimespec
    #endif
    """
    void keep_freed "kdump_keep_freed"()
    int set_aside "kdump_reserve"(int file, long long size) nogil
    int has_fixed "kdump_fixed"(const char *path) nogil

    ctypedef struct Folder "DIR":
        pass
    struct Item "dirent":
        char d_name[256]
    struct Time "timespec":
        long long tv_sec
        long tv_nsec
    struct Status "stat":
        unsigned long long st_dev
        unsigned long long st_ino
        unsigned int st_mode
        long long st_size
        long long st_blocks
        Time st_mtim
    Folder *opendir(const char *path) nogil
    Item *readdir(Folder *folder) nogil
    int closedir(Folder *folder) nogil
    int dirfd(Folder *folder) nogil
    int fstatat(int folder, const char *name, Status *status, int flags) nogil
    bint S_ISREG(unsigned int mode) nogil
    bint S_ISDIR(unsigned int mode) nogil
    bint S_ISFIFO(unsigned int mode) nogil
    bint S_ISSOCK(unsigned int mode) nogil
    object decoded "PyUnicode_DecodeFSDefault"(const char *name)
    object encoded "PyUnicode_EncodeFSDefault"(object name)


cdef int _BLOCK = 512
"""Bytes in a unit of ``st_blocks``."""


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
cdef Py_ssize_t _PAST_END = sys.maxsize >> 1  # a position after all data


def keep_freed_memory():
    keep_freed()


def reserve(int file, long long size):
    with nogil:
        set_aside(file, size)


def is_fixed(path):
    """Return whether a file has the attribute immutable or append-only (``chattr``); None if the system cannot say."""
    cdef bytes name = encoded(path)
    cdef int found = has_fixed(name)
    return None if found < 0 else found > 0


def listing(folder, kind):
    """Return the entries of a folder as tuples of the type ``kind``: :class:`kdump.log_dirs.files.Entry`.

    A broken link, or a file that was deleted meanwhile, has the size 0. Raises OSError and ValueError.
    """
    cdef bytes encoded_folder = encoded(folder)
    cdef const char *path = encoded_folder
    cdef Folder *opened
    cdef Item *item
    cdef Status status
    cdef int failed
    cdef unsigned long long device = 0
    if b"\0" in encoded_folder:
        raise ValueError("embedded null byte")
    with nogil:
        opened = opendir(path)
    if opened is NULL:
        PyErr_SetFromErrnoWithFilenameObject(OSError, folder)
    before = folder if folder.endswith("/") else folder + "/"
    high, new, intern, found = 0, tuple.__new__, sys.intern, []
    try:
        while True:
            with nogil:
                errno = 0
                item = readdir(opened)
            if item is NULL:
                if errno:
                    PyErr_SetFromErrnoWithFilenameObject(OSError, folder)
                return found
            if not strcmp(item.d_name, ".") or not strcmp(item.d_name, ".."):
                continue
            with nogil:
                failed = fstatat(dirfd(opened), item.d_name, &status, 0)
            name = intern(decoded(item.d_name))
            whole = before + name
            if failed:
                found.append(new(kind, (name, whole, False, 0, whole, None, None, "")))
                continue
            if status.st_dev != device:
                device = status.st_dev
                high = <object>device << 64
            identity = high | status.st_ino
            modified = status.st_mtim.tv_sec * 1000 + status.st_mtim.tv_nsec // 1_000_000
            if S_ISREG(status.st_mode):
                fields = name, whole, False, status.st_size, identity, modified, status.st_blocks * _BLOCK, ""
            elif S_ISDIR(status.st_mode):
                fields = name, whole, True, 0, identity, modified, 0, ""
            else:
                special = "pipe" if S_ISFIFO(status.st_mode) else "socket" if S_ISSOCK(status.st_mode) else "device"
                fields = name, whole, False, 0, identity, modified, 0, special
            found.append(new(kind, fields))
    finally:
        closedir(opened)


def slots(others):
    """Return name -> index in ``values`` for the numbers of a record, of its batch's header, and for ``others``."""
    return {name: slot for slot, name in enumerate((*RECORD_NUMBERS, *BatchHeader._fields, *others))}


cdef class Cursor:
    """Reads the records of consecutive batches. ``left`` is the number of remaining records of the batch.

    After :meth:`read`:

    - ``values`` has the numbers of the record, including the sizes of key and value (-1 for null);
    - ``start`` and ``at`` are the start and the end of the record in ``data``;
    - ``key_at`` and ``value_at`` are the starts of key and value;
    - :meth:`header` finds each of ``header_count`` headers, from ``headers_at`` on.
    """

    def begin(self, data, at, header, others):
        """Start with the records of a batch, from ``at`` on in ``data``. Return whether the kernel can read them.

        The fields of ``header`` are put into ``values`` after the numbers of a record, and ``others`` after them.
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
        """Start with the records from ``at`` to ``end``, like :meth:`begin`. ``values`` must have the batch's numbers."""
        self.left = 0
        self.base_offset = self.values[_BASE_OFFSET]
        self.base_timestamp = self.values[_BASE_TIMESTAMP]
        self.base_sequence = self.values[_BASE_SEQUENCE]
        self.appended = self.values[_BATCH_ATTRIBUTES] & _APPENDED != 0
        self.values[_TIMESTAMP] = self.values[_MAX_TIMESTAMP]  # the timestamp of all records with LogAppendTime
        self.values[_SEQUENCE] = -1
        self.at = at
        self.end = end
        if self.values[_COUNT] < 0 or not (-_FAR < self.base_offset < _FAR and -_FAR < self.base_timestamp < _FAR):
            return False
        self.left = self.values[_COUNT]
        return True

    def stack(self, block, table, width, first, stop):
        """Start with the uncompressed batches in ``block`` of the rows ``first`` to ``stop`` (exclusive) of ``table``.

        A row has ``width`` numbers: start and end of the records in ``block``, the header's fields, other numbers.
        """
        self.block = block
        self.stacked = table
        self.size = len(block)
        self.left = 0
        self.row = first
        self.rows = stop
        self.width = width
        if not (2 <= width <= 2 + NUMBERS - len(RECORD_NUMBERS) and 0 <= first <= stop <= len(table) // width):
            raise ValueError("the table does not have these rows, or they have more numbers than there are slots")

    @cython.final
    cdef bint next_batch(self) except -1 nogil:
        """Start with the batch of the next row. Return whether the kernel can read it."""
        cdef Py_ssize_t at = self.row * self.width
        cdef Py_ssize_t slot
        for slot in range(self.width - 2):
            self.values[_OF_BATCH + slot] = self.stacked[at + 2 + slot]
        self.row += 1
        return 0 <= self.stacked[at] <= self.stacked[at + 1] <= self.size and self.turn(
            self.stacked[at], self.stacked[at + 1]
        )

    def sound_rows(self):
        """Return the number of rows before the first batch that has a malformed record."""
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
        """Return whether all remaining records are well-formed. The position does not change."""
        at, left = self.at, self.left
        with nogil:
            while self.left > 0 and self.read():
                self.left -= 1
        is_sound = self.left == 0
        self.at, self.left = at, left
        return is_sound

    def spans(self):
        """Return the lowest and highest offset, and the lowest and highest timestamp (ms), of all remaining records.

        Return None if a record is not well-formed. The position does not change.
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
                    if self.values[_OFFSET] > high:  # as above
                        high = self.values[_OFFSET]
                    if self.values[_TIMESTAMP] < early:  # as above
                        early = self.values[_TIMESTAMP]
                    if self.values[_TIMESTAMP] > late:  # as above
                        late = self.values[_TIMESTAMP]
            return (low, high, early, late) if self.left == 0 else None
        finally:
            self.at, self.left = at, left

    def agrees(self):
        """Return whether there are records and all agree with the header of their batch.

        They agree if they are well-formed, fill the batch and have no attributes, and their offsets increase up to at
        most the header's last offset. With CreateTime their largest timestamp, at least -1, must be the header's.
        """
        cdef bint agree
        with nogil:
            agree = self.agree()
        return agree

    def agreeing(self):
        """Return a byte for each row of :meth:`stack`: 1 if the records of the batch agree with its header, else 0."""
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
        """Read the fields of the next record. Return whether it is well-formed."""
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
            if delta < 0 or self.base_sequence + delta > 0x7FFFFFFF:  # the sequence wraps around
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
        """Read the header at ``at``. Return the position after it, or -2 if its key is null.

        This sets ``name_at`` and ``name_size`` of the key, ``content_at`` and ``content_size`` of the value (-1 for
        null).
        """
        return header_at(self, at)


cdef inline Py_ssize_t header_at(Cursor self, Py_ssize_t at) noexcept nogil:
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
    """Return a varint, with its sign in the lowest bit, and move past it. ``last``: see :func:`longer`."""
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
            return value + (<long long> text[1] - 1) * 128  # a shift by a second byte of 0 is undefined
    value = longer(self, &far, last)
    at[0] = far
    return value


@cython.boundscheck(False)
cdef long long longer(Cursor self, Py_ssize_t* at, int last) noexcept nogil:
    """Return a varint of any size, and move past it. ``last``: the shift (bits) of its last possible byte.

    A varint is invalid if it is truncated or has too many bits. The result is then 1 (-1 as a size), and the position
    is past all data, so the record is not well-formed.
    """
    cdef Py_ssize_t position = at[0]
    cdef long long value = 0
    cdef long long byte
    cdef int shift = 0
    at[0] = _PAST_END
    while shift <= last and position < self.data.shape[0]:
        byte = self.data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            if last == 28 and value >> 32:
                return 1
            at[0] = position
            return value
    return 1


cdef Py_ssize_t _MANY_HEADERS = MANY_HEADERS
_new = tuple.__new__  # faster than the constructor of a NamedTuple


cdef class Records(Cursor):
    """Converts the records of consecutive batches to objects."""

    def records(self, most):
        """Return the next ``most`` records; fewer if the end or a record that is not well-formed comes first."""
        cdef list made = []
        cdef Py_ssize_t left = most
        while left > 0 and self.left > 0 and self.read():
            made.append(self.record())
            self.left -= 1
            left -= 1
        return made

    def lazy(self, kind, batch, most):
        """Like :meth:`records`, but return objects of ``kind``, a subclass of :class:`RecordOfBatch`.

        Use the cursor for one batch only, because the objects refer to its bytes.
        """
        cdef list made = []
        cdef Py_ssize_t left = most
        cdef RecordOfBatch one
        if not issubclass(kind, RecordOfBatch):
            raise TypeError("the class is not one of RecordOfBatch")
        while left > 0 and self.left > 0 and self.read():
            one = <RecordOfBatch> (<Type*> kind).tp_new(<Type*> kind, (), NULL)
            one.batch, one.reader = batch, self
            one.offset, one.timestamp = self.values[_OFFSET], self.values[_TIMESTAMP]
            one.key_size, one.value_size = self.values[_KEY_SIZE], self.values[_VALUE_SIZE]
            one.sequence = self.values[_SEQUENCE]
            one.start, one.key_at, one.value_at, one.end = self.start, self.key_at, self.value_at, self.at
            one.headers_at, one.header_count, one.attributes = self.headers_at, self.header_count, self.attributes
            made.append(one)
            self.left -= 1
            left -= 1
        return made

    def stacked(self):
        """Return the records of :meth:`stack`'s batches: offset, timestamp in ms, key, value and size in bytes of each.

        Reading ends before the first batch that has a malformed record; ``row`` is then the row of this batch. If no
        record is malformed, ``row`` is the ``stop`` of :meth:`stack`.
        """
        return self.briefs()

    cdef list briefs(self):
        """Return the results of :meth:`brief` for the records of the batches of :meth:`stack`."""
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
        """Return the current record as an item of :meth:`stacked`. Subclasses may return another object."""
        cdef long long key_size = self.values[_KEY_SIZE], value_size = self.values[_VALUE_SIZE]
        return (
            self.values[_OFFSET],
            self.values[_TIMESTAMP],
            self.bytes_at(self.key_at, key_size),
            self.bytes_at(self.value_at, value_size),
            self.at - self.start,
        )

    cdef record(self):
        key_size, value_size = self.values[_KEY_SIZE], self.values[_VALUE_SIZE]
        return _new(
            Record,
            (
                self.values[_OFFSET],
                self.values[_TIMESTAMP],
                self.bytes_at(self.key_at, key_size),
                self.bytes_at(self.value_at, value_size),
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
        """Return the headers of the current record. They are its last bytes."""
        if self.header_count > _MANY_HEADERS:
            return ManyHeaders(self.bytes_at(self.headers_at, self.at - self.headers_at), self.header_count)
        made = []
        cdef Py_ssize_t at = self.headers_at
        for _ in range(self.header_count):
            at = self.header(at)
            value = self.bytes_at(self.content_at, self.content_size)
            made.append(_new(Header, (self.bytes_at(self.name_at, self.name_size), value)))
        return tuple(made)

    @cython.boundscheck(False)
    cdef bytes bytes_at(self, Py_ssize_t at, Py_ssize_t size):
        """Return ``size`` bytes of the data, or None if ``size`` is negative."""
        return None if size < 0 else (<char*> &self.data[at])[:size]


cdef extern from "Python.h":
    ctypedef struct Type "PyTypeObject":
        object (*tp_new)(Type*, object, void*)


@cython.no_gc  # these objects are in no reference cycle
cdef class RecordOfBatch:
    """A record and its batch, as in :mod:`kdump.api`. :meth:`Records.lazy` makes objects that decode fields on use.

    ``reader`` holds the bytes. ``made`` is the decoded record, or None before its first use.
    """

    cdef readonly object batch
    cdef readonly long long offset
    cdef readonly long long timestamp
    cdef object made
    cdef Records reader
    cdef long long sequence
    cdef Py_ssize_t key_size
    cdef Py_ssize_t value_size
    cdef Py_ssize_t start
    cdef Py_ssize_t key_at
    cdef Py_ssize_t value_at
    cdef Py_ssize_t headers_at
    cdef Py_ssize_t end
    cdef Py_ssize_t header_count
    cdef int attributes

    def __init__(self, batch, record):
        self.batch, self.made, self.offset, self.timestamp = batch, record, record.offset, record.timestamp

    def __reduce__(self):
        return type(self), (self.batch, self.record)

    @property
    def record(self):
        if self.made is None:
            self.made = self.cursor().record()
        return self.made

    @property
    @cython.nonecheck(True)
    def key(self):
        return self.reader.bytes_at(self.key_at, self.key_size) if self.made is None else self.made.key

    @property
    @cython.nonecheck(True)
    def value(self):
        return self.reader.bytes_at(self.value_at, self.value_size) if self.made is None else self.made.value

    @property
    def headers(self):
        if self.made is not None:
            return self.made.headers
        return self.cursor().headers() if self.header_count else ()

    @cython.nonecheck(True)
    cdef Records cursor(self):
        """Return a cursor whose current record is this record."""
        cdef Records cursor = Records.__new__(Records)
        cursor.data = self.reader.data
        cursor.values[_OFFSET], cursor.values[_TIMESTAMP] = self.offset, self.timestamp
        cursor.values[_KEY_SIZE], cursor.values[_VALUE_SIZE] = self.key_size, self.value_size
        cursor.values[_SEQUENCE] = self.sequence
        cursor.start, cursor.key_at, cursor.value_at, cursor.at = self.start, self.key_at, self.value_at, self.end
        cursor.headers_at, cursor.header_count, cursor.attributes = self.headers_at, self.header_count, self.attributes
        return cursor


cdef Py_ssize_t _COUNT_IN_ROW = 2 + BatchHeader._fields.index("records_count")
cdef Py_ssize_t _SMALLEST = 7  # bytes of a record: size, attributes, two deltas, key size, value size, header count


@cython.final
cdef class Sizes(Cursor):
    """Converts the records of batches to columns."""

    def columns(self):
        """Return the records of :meth:`stack`'s batches as columns: offsets, sizes in bytes of keys and of values.

        A size of -1 means null. Reading ends as in :meth:`Records.stacked`.
        """
        cdef Py_ssize_t room = self._room()
        offsets, keys, values = (array("q", (0,)) * room for _ in range(3))
        count = self._fill(offsets, keys, values, room)
        for column in (offsets, keys, values):
            del column[count:]
        return offsets, keys, values

    def some(self, most):
        """Return the next records of the current batch as columns: ``most``, or all if fewer remain.

        The columns end before a malformed record.
        """
        cdef Py_ssize_t room = min(<Py_ssize_t> most, self.left, (self.end - self.at) // _SMALLEST)
        offsets, keys, values = (array("q", (0,)) * room for _ in range(3))
        count = self._of_batch(offsets, keys, values, 0, room)
        for column in (offsets, keys, values):
            del column[count:]
        return offsets, keys, values

    def largest(self):
        """Return the size of the largest record before the first one that is not well-formed."""
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
        """Return the number of records by the headers. A batch counts no more records than its size allows."""
        cdef Py_ssize_t room = 0
        cdef Py_ssize_t at
        for at in range(self.row * self.width, self.rows * self.width, self.width):
            room += max(0, min(self.stacked[at + _COUNT_IN_ROW], (self.stacked[at + 1] - self.stacked[at]) // _SMALLEST))
        return room

    cdef Py_ssize_t _fill(self, long long[::1] offsets, long long[::1] keys, long long[::1] values, Py_ssize_t room):
        """Fill the columns. Return the number of records."""
        cdef Py_ssize_t count = 0
        cdef Py_ssize_t good = 0
        cdef Py_ssize_t row = self.row
        self.data = self.block
        with nogil:
            while self.row < self.rows and self.next_batch() and self.left <= room - count:
                count = self._of_batch(offsets, keys, values, count, room)
                if self.left > 0:
                    break
                good, row = count, self.row
        self.row = row
        return good

    cdef Py_ssize_t _of_batch(
        self, long long[::1] offsets, long long[::1] keys, long long[::1] values, Py_ssize_t count, Py_ssize_t room
    ) except -1 nogil:
        """Fill the columns from ``count`` to ``room`` with records of the batch. Return the new ``count``."""
        while count < room and self.left > 0 and self.read():
            offsets[count] = self.values[_OFFSET]
            keys[count] = self.values[_KEY_SIZE]
            values[count] = self.values[_VALUE_SIZE]
            count += 1
            self.left -= 1
        return count


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
    """Return whether a block contains a text, or True if the system has no fast search."""
    cdef Py_ssize_t size = block.shape[0]
    if len(needle) > size:
        return False
    return size == 0 or find(&block[0], size, <const unsigned char*> needle, len(needle)) != NULL


@cython.final
cdef class Picks(Cursor):
    """Counts the wanted records of consecutive batches. ``since`` and ``until`` (exclusive) are in ms.

    Wanted offsets are ``first`` to ``last`` (inclusive). A wanted record has one of ``keys`` (empty: any key) and all
    ``headers`` (key, and value or None for any). ``values``: False: only null values, True: only others, None: all.
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
            raise ValueError("there are too many keys and headers")
        self.keys = len(keys)
        self.headers = len(headers)
        for at, text in enumerate(self.texts):
            self.sizes[at] = -1
            if text is not None:
                self.pointers[at] = text
                self.sizes[at] = len(text)

    def of_rows(self):
        """Return the number of wanted records of each batch of :meth:`stack` before the first malformed one."""
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
        """Return the number of wanted remaining records, -1 if one is not well-formed."""
        cdef long long count
        with nogil:
            count = self.wanted()
        return count

    cdef long long wanted(self) except -2 nogil:
        """Return the number of wanted remaining records, -1 if one is not well-formed."""
        cdef long long count = 0
        while self.left > 0:
            if not self.read():
                return -1
            self.left -= 1
            count += self.takes()
        return count

    @cython.boundscheck(False)
    cdef bint takes(self) except -1 nogil:
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
        """Return whether ``size`` bytes of the record from ``at`` on equal ``texts[text]``."""
        return size == self.sizes[text] and (size == 0 or memcmp(&self.data[at], self.pointers[text], size) == 0)

    cdef bint has_header(self, int text) except -1 nogil:
        """Return whether the record has a header with the key ``texts[text]`` and the value ``texts[text + 1]``."""
        cdef Py_ssize_t at = self.headers_at
        cdef Py_ssize_t done
        for done in range(self.header_count):
            at = self.header(at)
            if self.is_text(text, self.name_at, self.name_size) and (
                self.sizes[text + 1] < 0 or self.is_text(text + 1, self.content_at, self.content_size)
            ):
                return True
        return False
