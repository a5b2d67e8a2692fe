from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from kdump.formats.record import Header
from kdump.kernel.digests import KeyedHash
from kdump.kernel.records import Cursor
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
    stops_at_frames: bool

    def __init__(
        self,
        key_decoder: Callable[[bytes], bytes] | None = None,
        value_decoder: Callable[[bytes], bytes] | None = None,
        keyed_hash: KeyedHash | None = None,
    ) -> None: ...
    def lines(self, head: Shape | None, shape: Shape | None, limit: int) -> Bytes: ...
    def run(self, head: Shape | None, shape: Shape | None, limit: int) -> Bytes: ...

MESSAGE_SLOTS: dict[str, int]

class Messages(Lines):
    done: int

    def turn_to(
        self, data: Bytes, at: int, end: int, *, place: int = 0, base: int = 0, timestamp: int = -1
    ) -> None: ...
    def position(self) -> int: ...
    def skip(self, size: int) -> None: ...
    def last_offset_stored(self) -> int | None: ...
    def lines_like(self, shape: Shape, magic: int, attributes: int, limit: int, *, deep: bool) -> Bytes: ...

def end_of_messages(data: Bytes, at: int, most: int) -> int: ...

WAYS: tuple[str, ...]
FIELDS: tuple[str, ...]
ROW_SLOTS: dict[str, int]
WIDEST: int

def left(width: int) -> int: ...
def right(width: int) -> int: ...

HEADER_WAYS: tuple[str, ...]

class General(NamedTuple):
    quote: Callable[[str], str]
    key: Callable[[bytes], bytes]
    value: Callable[[bytes], bytes]
    mark: Callable[[bytes], bytes]
    headers: Callable[[Sequence[Header]], bytes]
    marks: tuple[bytes, bytes]
    prefix: bytes
    first: int
    last: int
    decoded: Callable[[bytes | None, bytes | None, Sequence[Header]], bytes]

class RowLines(Lines):
    is_open: bool
    count: int
    def __init__(self, general: General, *, headers: str, keyed_hash: KeyedHash | None = None) -> None: ...
    def frame(self, above: bytes, below: bytes, *, group: int, longest: int) -> None: ...
