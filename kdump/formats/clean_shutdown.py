"""``.kafka_cleanshutdown``: the file that a broker writes into each log dir when it stops cleanly.

Source: Kafka's class CleanShutdownFileHandler. The file is empty up to 3.6. From 3.7 on it is JSON with the broker's
epoch (KIP-966). Without the file a broker recovers the logs of the log dir when it starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.errors import DamageError

if TYPE_CHECKING:
    from kdump.primitives.wire import Bytes

CURRENT_VERSION = 0


class CleanShutdown(NamedTuple):
    """The file's version and the broker's epoch: None for an empty file. JSON may lack them: version 0, epoch None."""

    version: int | None = None
    broker_epoch: int | None = None


def read(data: Bytes) -> CleanShutdown:
    """Return the content, of any version. Raises DamageError if it is neither empty nor JSON with whole numbers."""
    if not len(data):
        return CleanShutdown()
    import json

    try:
        content = json.loads(bytes(data))
    except (ValueError, RecursionError) as fault:
        raise DamageError("json", f"a clean shutdown marker is not JSON: {fault}") from None
    if not isinstance(content, dict):
        raise DamageError("json", "a clean shutdown marker is not a JSON object", found=type(content).__name__)
    version, epoch = content.get("version", CURRENT_VERSION), content.get("brokerEpoch")
    if type(version) is not int or type(epoch) not in (int, type(None)):
        raise DamageError("json", "a clean shutdown marker does not hold whole numbers", found=content)
    return CleanShutdown(version, epoch)


def encode(content: CleanShutdown) -> bytes:
    if content == CleanShutdown():
        return b""
    import json

    fields = {"version": content.version, "brokerEpoch": content.broker_epoch}
    return json.dumps(fields, separators=(",", ":")).encode()
