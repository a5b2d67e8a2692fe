from array import array
from typing import Protocol

from kdump.primitives.wire import Bytes

OTHERS: tuple[str, ...]
WIDTH: int

class FirstBatch(Protocol):
    position: int

    @property
    def crc_valid(self) -> bool: ...
    @property
    def attributes(self) -> int: ...
    @property
    def base_timestamp(self) -> int: ...

def usual(table: array[int], agrees: bytearray) -> bytearray: ...
def follows(table: array[int], offset: int) -> bool: ...
def rows(first: FirstBatch, block: Bytes, place: int, most: int, stop: int) -> array[int]: ...
