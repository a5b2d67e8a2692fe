# What the modules of the kernel know in C of messages that are read by their schema.

cdef struct View:
    const unsigned char* data
    Py_ssize_t at
    Py_ssize_t end

cdef class SchemaReader:
    cdef list plain, tagged, fresh
    cdef dict blank
    cdef bint flexible

    cdef dict whole(self, View* view)
    cdef dict fields(self, View* view)
    cdef object known(self, Py_ssize_t tag)
