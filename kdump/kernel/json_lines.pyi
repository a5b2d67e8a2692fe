from collections.abc import Callable, Sequence
from typing import NamedTuple

from kdump.formats.record import Header
from kdump.kernel.lines import Lines

FIELDS: tuple[str, ...]
SLOTS: dict[str, int]

class General(NamedTuple):
    quote: Callable[[str], str]
    key: Callable[[bytes], bytes]
    value: Callable[[bytes], bytes]
    headers: Callable[[Sequence[Header]], bytes]
    first: int
    last: int

class ObjectLines(Lines):
    def __init__(self, general: General, *, plain: bool) -> None: ...
