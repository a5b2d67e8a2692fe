"""``.kafka_cleanshutdown``: a broker that stopped in good order leaves it in each log directory.

Source: Kafka's class CleanShutdownFileHandler. Empty up to 3.6; from 3.7 (KIP-966) JSON with the broker's epoch.
Its presence is what counts: without it a broker recovers the directory's logs at its start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.errors import DamageError

if TYPE_CHECKING:
    from kdump.primitives.wire import Bytes

CURRENT_VERSION = 0


class CleanShutdown(NamedTuple):
    """The file's version and the broker's epoch; None in an empty file, and for an epoch that is not reported."""

    version: int | None = None
    broker_epoch: int | None = None


def read(data: Bytes) -> CleanShutdown:
    """Return the content. Raises DamageError where it is neither empty nor an object with whole numbers."""
    if not len(data):
        return CleanShutdown()
    import json  # slow to import, and few files need it

    try:
        content = json.loads(bytes(data))
    except (ValueError, RecursionError) as fault:  # the second when it is nested deeply
        raise DamageError("json", f"a clean shutdown file is not JSON: {fault}") from None
    if not isinstance(content, dict):
        raise DamageError("json", "a clean shutdown file is no JSON object", found=type(content).__name__)
    version, epoch = content.get("version", CURRENT_VERSION), content.get("brokerEpoch")
    if type(version) is not int or type(epoch) not in (int, type(None)):
        raise DamageError("json", "a clean shutdown file does not hold whole numbers", found=content)
    return CleanShutdown(version, epoch)


def encode(content: CleanShutdown) -> bytes:
    """Return the bytes of the file."""
    if content == CleanShutdown():
        return b""
    import json

    fields = {"version": content.version, "brokerEpoch": content.broker_epoch}
    return json.dumps(fields, separators=(",", ":")).encode()
