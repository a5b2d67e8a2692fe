"""What the parsers of records have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from kdump.errors import DamageError
from kdump.primitives.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.internal_topics.interpreter import PayloadError

DELETE: Final = "<DELETE>"
"""What a null value says."""


class Texts(NamedTuple):
    """The texts of a key and a payload; None where nothing is printed."""

    key: str | None
    payload: str | None

    def parts(self, prefix: str, bare_payload: str) -> Iterator[bytes]:
        """Yield what is printed, with what stands in front of a key, and of a payload without a key."""
        if self.key is not None:
            yield f"{prefix}key: {self.key}".encode()
        if self.payload is not None:
            yield f"{bare_payload if self.key is None else ' '}payload: {self.payload}".encode()


Parser: TypeAlias = "Callable[[int, bytes | None, bytes | None], Texts]"
"""Offset, key and value of a record -> its texts. Raises DamageError where the original's run ends."""


def no_key(offset: int) -> DamageError:
    """Return the damage of a record without a key."""
    return DamageError(
        "payload", f"the record at offset {offset} has no key: the type of the record should stand there"
    )


def unknown(what: str, version: int, offset: int) -> DamageError:
    """Return the damage of a type or version that the release does not know."""
    return DamageError("payload", f"the record at offset {offset} has an unknown {what}", found=version)


def broken(error: PayloadError, what: str) -> DamageError:
    """Return the damage of a record whose key or value cannot be read; its position counts in the payload."""
    return DamageError("payload", error.within(what).reason)
