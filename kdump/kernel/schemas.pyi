from collections.abc import Callable, Sequence

AVRO_KINDS: tuple[str, ...]

class AvroText:
    def __init__(
        self,
        nodes: Sequence[tuple[int, int, int, int, int]],
        links: Sequence[int],
        texts: Sequence[bytes],
        quote: Callable[[str], str],
    ) -> None: ...
    def text(self, payload: bytes, position: int) -> bytes | None: ...

PROTOBUF_KINDS: tuple[str, ...]
LABELS: tuple[str, ...]
MESSAGES: tuple[str, ...]
MAX_FIELDS: int

class ProtobufText:
    def __init__(
        self,
        messages: Sequence[tuple[int, int, int]],
        fields: Sequence[tuple[int, int, int, int, int, bool, int, bytes, bytes]],
        names: Sequence[tuple[int, bytes]],
        indexes: bytes,
        quote: Callable[[str], str],
    ) -> None: ...
    def text(self, payload: bytes, position: int) -> bytes | None: ...
