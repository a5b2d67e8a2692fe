# What the modules of the kernel know in C of records as objects.

from kdump.kernel.cursor cimport Cursor

cdef class Records(Cursor):
    cdef list briefs(self)
    cdef brief(self)
    cdef record(self)
    cdef headers(self)
    cdef bytes bytes_at(self, Py_ssize_t at, Py_ssize_t size)
