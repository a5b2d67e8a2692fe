"""The kinds of files. Most have ``read`` or, for .index and .timeindex, a class, and ``encode`` for the bytes."""
