from collections.abc import Callable, Sequence
from typing import NamedTuple

from kdump.formats.record import Header
from kdump.kernel.lines import Lines
from kdump.kernel.spelling import KeyedHash

WAYS: tuple[str, ...]
FIELDS: tuple[str, ...]
SLOTS: dict[str, int]
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
