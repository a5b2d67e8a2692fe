# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The headers of consecutive similar batches of magic 2 as a table of numbers.

:mod:`kdump.records.magic_2` has the layout.
"""

from array import array

from kdump.formats.record_layout import BATCH_HEADER, CRC_COVERS_FROM, LOG_OVERHEAD, MAGIC_2
from kdump.formats.record_layout import DELETE_HORIZON_FLAG, TRANSACTIONAL_FLAG
from kdump.kernel.records import FAR
from kdump.primitives.crc import crc32c
from kdump.primitives.wire import INT32_MAX

from kdump.kernel.crc32c cimport fast_crc32c, has_crc32c
from kdump.kernel.words cimport big

OTHERS = ("last_offset", "last_sequence", "position", "size")
"""The names of the last numbers of a row. They follow the fields of the batch header."""
_FIELDS = BATCH_HEADER.fields._fields
WIDTH = 2 + len(_FIELDS) + len(OTHERS)
"""The length of a row: start and end of the records in the block, the header's fields, and OTHERS."""
COLUMNS = {name: 2 + number for number, name in enumerate((*_FIELDS, *OTHERS))}
"""Field of the header, or name in OTHERS -> its index in a row."""


cdef Py_ssize_t _HEADER_SIZE = BATCH_HEADER.size
cdef Py_ssize_t _OVERHEAD_SIZE = LOG_OVERHEAD.size
cdef Py_ssize_t _LENGTH = BATCH_HEADER.offsets["length"]
cdef Py_ssize_t _MAGIC_AT = BATCH_HEADER.offsets["magic"]
cdef Py_ssize_t _ATTRIBUTES = BATCH_HEADER.offsets["attributes"]
cdef Py_ssize_t _LAST_DELTA = BATCH_HEADER.offsets["last_offset_delta"]
cdef Py_ssize_t _BASE_TIMESTAMP = BATCH_HEADER.offsets["base_timestamp"]
cdef Py_ssize_t _BASE_SEQUENCE = BATCH_HEADER.offsets["base_sequence"]
cdef int _BASE = COLUMNS["base_offset"]
cdef int _EPOCH = COLUMNS["partition_leader_epoch"]
cdef int _FLAGS = COLUMNS["attributes"]
cdef int _DELTA = COLUMNS["last_offset_delta"]
cdef int _PRODUCER = COLUMNS["producer_id"]
cdef int _PRODUCER_EPOCH = COLUMNS["producer_epoch"]
cdef int _SEQUENCE = COLUMNS["base_sequence"]
cdef int _COUNT = COLUMNS["records_count"]
cdef int _LAST = COLUMNS["last_offset"]
cdef int _CRC = _FIELDS.index("crc")
cdef Py_ssize_t _CRC_AT = BATCH_HEADER.offsets["crc"]
cdef Py_ssize_t _COVERED = CRC_COVERS_FROM
cdef int _COUNT_OF_FIELDS = len(_FIELDS)
cdef Py_ssize_t _ROW = WIDTH
cdef int _MAGIC = MAGIC_2
cdef int _TRANSACTIONAL = TRANSACTIONAL_FLAG
cdef int _DATED = DELETE_HORIZON_FLAG
cdef long long _FAR = FAR
cdef long long _INT32_MAX = INT32_MAX
cdef unsigned int[16] _STARTS
cdef unsigned int[16] _SIZES
cdef bint _HAS_CRC32C = has_crc32c()
cdef unsigned int _X8 = 1 << 23


def rows(first, block, place, most, stop):
    """Return a row for each of two or more consecutive similar batches from ``first`` on; empty without them.

    Similar batches are complete, have right checksums, and have the same attributes and delete horizon as ``first``.
    ``place`` is the position of the block in the file. ``most`` is the largest size of a batch in bytes. The batches
    start before the position ``stop`` of the file. The call reads one batch more than it returns, so calls for all
    batches read a block at most twice.
    """
    at = first.position - place
    if not 0 <= at <= len(block) - BATCH_HEADER.size:
        return array("q")
    return _rows(first, block, at, place, most, stop - first.position)


cdef _rows(first, block, Py_ssize_t at, long long place, long long most, long long before):
    cdef const unsigned char[::1] text = block
    cdef const unsigned char* data = &text[at]
    cdef Py_ssize_t left = text.shape[0] - at
    cdef Py_ssize_t stop = 0
    cdef Py_ssize_t count = 0
    cdef long long attributes = first.attributes
    cdef long long horizon = first.base_timestamp
    cdef Py_ssize_t size = like(data, left, attributes, horizon, most)
    if size == 0 or size >= before or not like(data + size, left - size, attributes, horizon, most) or not first.crc_valid:
        return array("q")
    with nogil:
        while size > 0 and (count == 0 or is_sound(data + stop, size)):
            stop += size
            count += 1
            size = like(data + stop, left - stop, attributes, horizon, most) if stop < before else 0
    if count < 2:
        return array("q")
    table = array("q", bytes(8 * _ROW * count))
    fill(data, count, at, place, table)
    return table


cdef Py_ssize_t like(
    const unsigned char* data, Py_ssize_t left, long long attributes, long long horizon, long long most
) noexcept nogil:
    """Return the size of a complete batch at ``data`` that :func:`rows` takes, or 0. The checksum is not verified."""
    if left < _HEADER_SIZE:
        return 0
    cdef long long size = _OVERHEAD_SIZE + big(data + _LENGTH, 4)
    cdef long long sequence = big(data + _BASE_SEQUENCE, 4)
    cdef long long delta = big(data + _LAST_DELTA, 4)
    cdef long long base = big(data, 8)
    if data[_MAGIC_AT] != _MAGIC or big(data + _ATTRIBUTES, 2) != attributes:
        return 0
    if size < _HEADER_SIZE or size > most or size > left:
        return 0
    if attributes & _DATED and big(data + _BASE_TIMESTAMP, 8) != horizon:
        return 0
    if sequence != -1 and (sequence < 0 or delta < 0 or delta > _INT32_MAX - sequence):
        return 0
    return size if -_FAR < base < _FAR else 0


cdef bint is_sound(const unsigned char* data, Py_ssize_t size) except -1 nogil:
    """Return whether the checksum of a whole batch is right."""
    cdef unsigned int crc = <unsigned int> big(data + _CRC_AT, 4)
    if _HAS_CRC32C:
        return crc == fast_crc32c(data + _COVERED, size - _COVERED)
    with gil:  # the checksum package needs the GIL
        return crc == crc32c(<const unsigned char[: size - _COVERED]> (data + _COVERED))


cdef void fill(const unsigned char* data, Py_ssize_t count, Py_ssize_t at, long long place, long long[::1] table):
    """Write the rows of ``count`` batches. The first is at ``data``, byte ``at`` of the block."""
    cdef Py_ssize_t row
    for row in range(0, count * _ROW, _ROW):
        fill_row(data, at, place + at, &table[row])
        data += table[row + 1] - at
        at = table[row + 1]


cdef void fill_row(const unsigned char* data, Py_ssize_t at, long long position, long long* row) noexcept nogil:
    """Write the row of the batch at ``data``: byte ``at`` of the block, ``position`` of the file."""
    cdef Py_ssize_t size = _OVERHEAD_SIZE + big(data + _LENGTH, 4)
    cdef long long sequence = big(data + _BASE_SEQUENCE, 4)
    cdef long long delta = big(data + _LAST_DELTA, 4)
    cdef int field
    row[0] = at + _HEADER_SIZE
    row[1] = at + size
    for field in range(_COUNT_OF_FIELDS):
        row[2 + field] = big(data + _STARTS[field], _SIZES[field])
    row[2 + _CRC] = <unsigned int> row[2 + _CRC]
    field = 2 + _COUNT_OF_FIELDS
    row[field] = big(data, 8) + delta
    row[field + 1] = sequence if sequence == -1 else sequence + delta
    row[field + 2] = position
    row[field + 3] = size


def rises(table):
    """Return whether the offsets are not negative and rise, and each batch spans at most 2**31 offsets."""
    cdef const long long[::1] numbers = table
    cdef long long last = -1
    cdef Py_ssize_t at
    for at in range(0, numbers.shape[0], _ROW):
        if numbers[at + _BASE] <= last or not 0 <= numbers[at + _DELTA] <= _INT32_MAX:  # = MAX_RELATIVE_OFFSET
            return False
        last = numbers[at + _LAST]
    return True


def least(table, Py_ssize_t column, Py_ssize_t row, Py_ssize_t end):
    """Return the least number of a column in the rows ``row`` to ``end`` (exclusive). Raises ValueError for no rows."""
    return _extreme(table, column, row, end, False)


def greatest(table, Py_ssize_t column, Py_ssize_t row, Py_ssize_t end):
    """Return the greatest number of a column in the rows ``row`` to ``end`` (exclusive), as :func:`least`."""
    return _extreme(table, column, row, end, True)


cdef long long _extreme(table, Py_ssize_t column, Py_ssize_t row, Py_ssize_t end, bint is_greatest) except? -1:
    cdef const long long[::1] numbers = table
    cdef long long found, number
    if not 0 <= column < _ROW or not 0 <= row < end <= numbers.shape[0] // _ROW:
        raise ValueError("there are no such rows")
    found = numbers[row * _ROW + column]
    for row in range(row + 1, end):
        number = numbers[row * _ROW + column]
        if (number > found) == is_greatest:
            found = number
    return found


def usual(table, agrees):
    """Return a byte for each row: 1 if its batch is complete and continues that of the previous row, else 0.

    The byte of the first row is 0. A batch that continues another starts with the next offset and has the same leader
    epoch. It has a record for each of its offsets, and either all of producer id, epoch and sequence or none of them.
    Its records agree with its header: ``agrees`` is the result of :meth:`kdump.kernel.records.Cursor.agreeing`.
    """
    told = bytearray(len(table) // _ROW)
    cdef const long long[::1] numbers = table
    cdef const unsigned char[::1] agreeing = agrees
    cdef unsigned char[::1] verdicts = told
    cdef Py_ssize_t row
    if agreeing.shape[0] != verdicts.shape[0]:
        raise ValueError("the number of bytes differs from the number of rows")
    for row in range(1, verdicts.shape[0]):  # cheaper than releasing and reacquiring the GIL
        verdicts[row] = agreeing[row] and goes_on(&numbers[row * _ROW])
    return told


def follows(table, long long offset):
    """Return whether the batches have, by their headers, one record for each offset, beginning with ``offset``."""
    cdef const long long[::1] numbers = table
    cdef const long long* row
    cdef Py_ssize_t at
    for at in range(0, numbers.shape[0], _ROW):
        row = &numbers[at]
        if row[_BASE] != offset or row[_COUNT] != row[_DELTA] + 1:
            return False
        offset = row[_LAST] + 1
    return True


cdef bint goes_on(const long long* row) noexcept nogil:
    """Return whether the batch of a row continues the previous batch, as in :func:`usual`."""
    if row[_BASE] != row[_LAST - _ROW] + 1 or row[_EPOCH] != row[_EPOCH - _ROW]:
        return False
    if row[_COUNT] <= 0 or row[_COUNT] != row[_DELTA] + 1:
        return False
    if row[_PRODUCER] == -1:
        return row[_PRODUCER_EPOCH] == -1 and row[_SEQUENCE] == -1 and not row[_FLAGS] & _TRANSACTIONAL
    return row[_PRODUCER] >= 0 and row[_PRODUCER_EPOCH] >= 0 and row[_SEQUENCE] >= 0


def _split():
    for field, (start, stop) in enumerate(BATCH_HEADER.spans.values()):
        _STARTS[field], _SIZES[field] = start, stop - start


_split()


def moved(unsigned int checksum, unsigned long long size, unsigned int polynomial):
    """Return a checksum times x to the power of 8 * size. This is its effect on the checksum after ``size`` more bytes.

    :mod:`kdump.segments.resync` thus gets the checksum of a range from checksums of the bytes up to its start and end.
    """
    cdef unsigned int square = _X8
    with nogil:
        while size:
            if size & 1:
                checksum = _times(checksum, square, polynomial)
            square = _times(square, square, polynomial)
            size >>= 1
    return checksum


cdef unsigned int _times(unsigned int one, unsigned int other, unsigned int polynomial) noexcept nogil:
    """Multiply two remainders modulo the polynomial, all with the bits in reverse order."""
    cdef unsigned int product = 0
    while one:
        product ^= other & (0 - (one >> 31))
        one <<= 1
        other = other >> 1 ^ (polynomial & (0 - (other & 1)))
    return product
