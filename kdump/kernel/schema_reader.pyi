from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kdump.kernel.records import Records

M = TypeVar("M")
O = TypeVar("O")

class SchemaReader:
    def __init__(self, schema: Any, sizes: Mapping[str, int], longest: int) -> None: ...
    def read(self, data: bytes, at: int) -> dict[str, Any] | None: ...

class FramedMessages(Records):
    def decoded(
        self,
        known: Callable[[bytes], tuple[str, SchemaReader] | None],
        made: type[M],
        other: Callable[[int, int, bytes | None, bytes | None], O],
    ) -> list[M | O]: ...
