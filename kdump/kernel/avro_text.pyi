from collections.abc import Callable, Sequence

KINDS: tuple[str, ...]

class AvroText:
    def __init__(
        self,
        nodes: Sequence[tuple[int, int, int, int, int]],
        links: Sequence[int],
        texts: Sequence[bytes],
        quote: Callable[[str], str],
    ) -> None: ...
    def text(self, payload: bytes, position: int) -> bytes | None: ...
