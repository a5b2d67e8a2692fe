from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from kdump.kernel.lines import Lines
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

WAYS: tuple[str, ...]
ALWAYS: object

Pairs: TypeAlias = list[tuple[SchemaReader, StructText]]
Argument: TypeAlias = StructText | tuple[bytes, ...] | tuple[str, str] | str | Pairs | Callable[[Any], str]
Message: TypeAlias = tuple[SchemaReader, StructText | Callable[[Any], StructText]]

class FieldText:
    def __init__(
        self,
        literal: bytes,
        name: str,
        way: str,
        argument: Argument | None = None,
        array: bool = False,
        default: object = ...,
    ) -> None: ...

class StructText:
    def __init__(
        self, fields: Iterable[FieldText], opening: bytes, closing: bytes, separator: bytes, escapes: bytes
    ) -> None: ...

class Payloads(Lines):
    def __init__(
        self,
        general: Callable[[int, bytes | None, bytes | None], bytes],
        find: Callable[[int, int], Message | None],
        frame: int = -1,
        key: Callable[[bytes], tuple[int, bytes | None]] | None = None,
        deleted: bytes = b"",
    ) -> None: ...
