from array import array
from collections.abc import Sequence

from kdump.formats.record_layout import BatchHeader
from kdump.primitives.wire import Bytes

VERSION: int
RECORD_NUMBERS: tuple[str, ...]
FAR: int
NUMBERS: int

def slots(others: Sequence[str]) -> dict[str, int]: ...

class Cursor:
    left: int
    row: int
    rows: int

    def begin(self, data: Bytes, at: int, header: BatchHeader, others: Sequence[int]) -> bool: ...
    def stack(self, block: Bytes, table: array[int], width: int, first: int, behind: int) -> None: ...
    def sound_rows(self) -> int: ...
    def sound(self) -> bool: ...
    def spans(self) -> tuple[int, int, int, int] | None: ...
    def facts(self) -> tuple[int, int, int] | None: ...
