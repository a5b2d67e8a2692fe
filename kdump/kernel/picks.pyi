from array import array
from collections.abc import Sequence

from kdump.kernel.cursor import Cursor

class Picks(Cursor):
    def __init__(
        self,
        *,
        first: int | None,
        last: int | None,
        since: int | None,
        until: int | None,
        keys: Sequence[bytes],
        headers: Sequence[tuple[bytes, bytes | None]],
        values: bool | None,
    ) -> None: ...
    def of_rows(self) -> array[int]: ...
    def of_batch(self) -> int: ...

def may_hold(block: memoryview, needle: bytes) -> bool: ...
