from collections.abc import Callable, Sequence
from typing import TypeAlias

from kdump.kernel.cursor import Cursor
from kdump.kernel.spelling import KeyedHash
from kdump.primitives.wire import Bytes

Part: TypeAlias = bytes | int
SLOTS_OF_TEXTS: dict[str, int]

def slots(others: Sequence[str]) -> dict[str, int]: ...

class Shape:
    def __init__(self, lines: Sequence[Sequence[Part]]) -> None: ...

class Lines(Cursor):
    last_offset: int
    gaps: list[tuple[int, int]]
    memory: Callable[[int], memoryview | None] | None
    armed: bool
    stuck: bool
    whole_batches: bool

    def __init__(
        self,
        key_decoder: Callable[[bytes], bytes] | None = None,
        value_decoder: Callable[[bytes], bytes] | None = None,
        keyed_hash: KeyedHash | None = None,
    ) -> None: ...
    def lines(self, head: Shape | None, shape: Shape | None, limit: int) -> Bytes: ...
    def run(self, head: Shape | None, shape: Shape | None, limit: int) -> Bytes: ...
