from array import array
from typing import Protocol

from kdump.kernel.cursor import Cursor
from kdump.primitives.wire import Bytes

class EntryCheck(Cursor):
    def __init__(self, fd: int, log_end: int, most: int, base: int) -> None: ...
    def by_offset(self, entries: Bytes, first: int, stop: int, flags: bytearray) -> None: ...
    def by_time(self, entries: Bytes, offsets: Bytes, first: int, stop: int, flags: bytearray) -> None: ...

class NewEntries(Protocol):
    base_offset: int
    interval: int
    first_offsets: bool
    offsets: array[int]
    positions: array[int]
    timestamps: array[int]
    time_offsets: array[int]
    since: int
    highest: int
    held_by: int
    last: int

    @property
    def timed(self) -> int: ...

def add_run(entries: NewEntries, table: array[int], position: int) -> bool: ...
