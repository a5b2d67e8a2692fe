from array import array
from typing import Protocol

from kdump.kernel.records import Cursor
from kdump.primitives.wire import Bytes

class EntryCheck(Cursor):
    def __init__(self, fd: int, log_end: int, most: int, base: int) -> None: ...
    def by_offset(self, entries: Bytes, first: int, stop: int, flags: bytearray) -> None: ...
    def by_time(self, entries: Bytes, offsets: Bytes, first: int, stop: int, flags: bytearray) -> None: ...

class Builder(Protocol):
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
    refuses: bool
    refused_at: int | None

def add_run(builder: Builder, table: array[int], position: int) -> int: ...
