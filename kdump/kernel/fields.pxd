# What the modules of the kernel know of going through structs in C.

cimport cython
from kdump.kernel.lines cimport Lines

cdef class Fields(Lines):
    cdef const int[::1] code
    cdef long long found

    @cython.final
    cdef Py_ssize_t skip(self, int index, Py_ssize_t at, Py_ssize_t end) except -2 nogil
    @cython.final
    cdef Py_ssize_t find(self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t end, Py_ssize_t* starts, Py_ssize_t* sizes) except -2 nogil
    @cython.final
    cdef Py_ssize_t find_field(self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t end, Py_ssize_t* starts, Py_ssize_t* sizes) except -2 nogil
    @cython.final
    cdef Py_ssize_t find_struct(self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t end, Py_ssize_t* starts, Py_ssize_t* sizes) except -2 nogil
    @cython.final
    cdef Py_ssize_t find_elements(self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t end) except -2 nogil
    @cython.final
    cdef Py_ssize_t find_tags(self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t end, Py_ssize_t* starts, Py_ssize_t* sizes) except -2 nogil
    @cython.final
    cdef Py_ssize_t length(self, Py_ssize_t at, Py_ssize_t end, int size, int flags) except -2 nogil
    @cython.final
    cdef Py_ssize_t varint(self, Py_ssize_t at, Py_ssize_t end) except -2 nogil
    @cython.final
    cdef long long integer(self, Py_ssize_t at, int size) noexcept nogil
