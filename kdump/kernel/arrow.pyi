from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from kdump.formats.record_layout import BatchHeader
from kdump.kernel.records import Cursor
from kdump.primitives.wire import Bytes

COLUMNS: tuple[str, ...]
ALL: tuple[int, int]

class Buffers(NamedTuple):
    length: int
    nulls: int
    buffers: tuple[bytearray | None, ...]
    children: tuple[Buffers, ...] = ()

class ArrowColumns(Cursor):
    size: int

    def __init__(
        self, wanted: Collection[str], offsets: tuple[int, int] = ..., times: tuple[int, int] = ...
    ) -> None: ...
    def add(self, data: Bytes, at: int, header: BatchHeader) -> bool: ...
    def take(self) -> dict[str, Buffers]: ...
