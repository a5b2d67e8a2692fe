from array import array
from collections.abc import Callable
from typing import NamedTuple

from kdump.kernel.fields import Fields

WRITES: tuple[str, ...]
WRITE: int

class Program(NamedTuple):
    texts: bytes
    code: array[int]
    escapes: bytes
    frame: int
    types: int
    versions: int
    keys: int
    values: int
    deleted: tuple[int, int]

class Payloads(Fields):
    def __init__(self, program: Program, general: Callable[[int, bytes | None, bytes | None], bytes]) -> None: ...
