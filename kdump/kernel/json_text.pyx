# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The text of JSON values: what the writers of payloads share."""

from __future__ import annotations

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.string cimport memcpy
from kdump.kernel.spelling cimport base64

cdef extern from "Python.h":
    char* PyOS_double_to_string(double value, char format_code, int precision, int flags, int* kind) except NULL
    double PyOS_string_to_double(const char* text, char** end, object overflow) except? -1.0
    int Py_DTSF_ADD_DOT_0

cdef double _MAX_SINGLE = 3.4028234663852886e38
cdef long long _DAY = 86_400
cdef long long _FIRST_DAY = -719_162  # 0001-01-01
cdef long long _LAST_DAY = 2_932_896  # 9999-12-31


cdef class JsonText:
    """Writes values of a payload into one buffer. ``quote`` writes a text with other characters than printable ASCII.

    The methods that read move ``at`` and return False where the value is left to the general path.
    """

    def __cinit__(self, *_, **__):
        self.room = 1024
        self.out = <unsigned char*> PyMem_Malloc(self.room)
        if not self.out:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.out)

    cdef void begin(self, bytes payload, Py_ssize_t position):
        """Read from a position of a payload, and write at the beginning of the buffer."""
        self.data = <const unsigned char*> PyBytes_AS_STRING(payload)
        self.at, self.end, self.used = position, len(payload), 0

    cdef object made(self):
        """Return what was written."""
        return PyBytes_FromStringAndSize(<char*> self.out, self.used)

    cdef bint reserve(self, Py_ssize_t size) except False:
        """Make room for ``size`` more bytes."""
        cdef unsigned char* grown
        if self.used + size > self.room:
            grown = <unsigned char*> PyMem_Realloc(self.out, 2 * (self.used + size))
            if grown == NULL:
                raise MemoryError
            self.out = grown
            self.room = 2 * (self.used + size)
        return True

    cdef bint literal(self, Text text) except False:
        self.reserve(text.size)
        memcpy(&self.out[self.used], text.data, text.size)
        self.used += text.size
        return True

    cdef bint character(self, unsigned char one) except False:
        self.reserve(1)
        self.out[self.used] = one
        self.used += 1
        return True

    cdef int string(self, Py_ssize_t size) except -1:
        """Write bytes of the payload, which are there, as a string."""
        cdef const unsigned char* text = &self.data[self.at]
        cdef unsigned char* out
        cdef unsigned char byte
        cdef unsigned char odd = 0
        cdef Py_ssize_t place
        self.reserve(size + 2)
        out = &self.out[self.used]
        out[0] = 34
        for place in range(size):
            byte = text[place]
            odd |= (<unsigned char> (byte - 32) > 94) | (byte == 34) | (byte == 92)
            out[place + 1] = byte
        out[size + 1] = 34
        self.at += size
        if not odd:
            self.used += size + 2
            return True
        try:
            shown = self.quote(PyBytes_FromStringAndSize(<char*> text, size).decode()).encode()
        except UnicodeError:
            return False
        return self.literal(Text(PyBytes_AS_STRING(shown), len(shown)))

    cdef int binary_text(self, Py_ssize_t size) except -1:
        """Write bytes of the payload, which are there, in base64."""
        self.reserve(2 * size + 8)
        self.out[self.used] = 34
        self.used = base64(&self.out[self.used + 1], &self.data[self.at], size) - self.out
        self.out[self.used] = 34
        self.used += 1
        self.at += size
        return True

    cdef int real(self, int size, bint is_short) except -1:
        """Write a floating point number of 4 or 8 bytes; ``is_short`` asks for the fewest digits that mean these 4 bytes."""
        cdef float single
        cdef double value
        cdef double rounded
        cdef char* shown
        cdef int digits
        if size > self.end - self.at:
            return False
        if size == 4:
            memcpy(&single, &self.data[self.at], 4)
            value = single
        else:
            memcpy(&value, &self.data[self.at], 8)
        if value - value != 0:
            return False
        self.at += size
        if is_short:
            for digits in range(6, 9):
                shown = PyOS_double_to_string(value, b"g", digits, 0, NULL)
                try:
                    rounded = PyOS_string_to_double(shown, NULL, None)
                finally:
                    PyMem_Free(shown)
                if -_MAX_SINGLE <= rounded <= _MAX_SINGLE and <float> rounded == single:
                    value = rounded
                    break
        shown = PyOS_double_to_string(value, b"r", 0, Py_DTSF_ADD_DOT_0, NULL)
        digits = 0
        self.reserve(AROUND)
        while shown[digits]:
            self.out[self.used] = shown[digits]
            self.used += 1
            digits += 1
        PyMem_Free(shown)
        return True

    cdef int moment(self, long long seconds) noexcept:
        """Write a second since 1970 as date and time of day, without what is less than a second and without a zone."""
        cdef long long day = seconds // _DAY
        seconds %= _DAY
        if seconds < 0:
            seconds += _DAY
            day -= 1
        if not self.date(day):
            return False
        self.out[self.used] = 84
        self.used += 1
        return self.clock(seconds)

    cdef int clock(self, long long second) noexcept:
        """Write a second of a day."""
        if not 0 <= second < _DAY:
            return False
        self.two(second // 3600, 58)
        self.two(second // 60 % 60, 58)
        self.two(second % 60, 0)
        self.used -= 1
        return True

    cdef void fraction(self, long long value, int digits) noexcept:
        """Write the digits after a point."""
        cdef int place
        self.out[self.used] = 46
        self.used += 1
        for place in range(digits):
            self.out[self.used + digits - 1 - place] = <unsigned char> (48 + value % 10)
            value //= 10
        self.used += digits

    cdef void two(self, long long value, unsigned char after) noexcept:
        """Write two digits and what follows them."""
        self.out[self.used] = <unsigned char> (48 + value // 10)
        self.out[self.used + 1] = <unsigned char> (48 + value % 10)
        self.out[self.used + 2] = after
        self.used += 3

    cdef int date(self, long long day) noexcept:
        """Write a day since 1970; years begin in March here."""
        if not _FIRST_DAY <= day <= _LAST_DAY:
            return False
        day += 719_468
        cdef long long cycle = day // 146_097
        day %= 146_097
        cdef long long year = (day - day // 1460 + day // 36524 - day // 146096) // 365
        day -= 365 * year + year // 4 - year // 100
        cdef long long month = (5 * day + 2) // 153
        day -= (153 * month + 2) // 5
        month += 3
        year += 400 * cycle
        if month > 12:
            month -= 12
            year += 1
        self.two(year // 100, 0)
        self.used -= 1
        self.two(year % 100, 45)
        self.two(month, 45)
        self.two(day + 1, 0)
        self.used -= 1
        return True

    cdef void digits(self, long long value) noexcept:
        """Write a whole number."""
        cdef unsigned char[24] reverse
        cdef int count = 0
        cdef unsigned long long left = <unsigned long long> value
        if value < 0:
            self.out[self.used] = 45
            self.used += 1
            left = 0 - left
        while True:
            reverse[count] = <unsigned char> (48 + left % 10)
            count += 1
            left //= 10
            if left == 0:
                break
        while count:
            count -= 1
            self.out[self.used] = reverse[count]
            self.used += 1
