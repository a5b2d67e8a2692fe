"""What the metadata log holds in the clear and people are not shown: SCRAM salts and keys, sensitive configs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

HIDDEN: Final = "[redacted]"
_CREDENTIAL: Final = ("salt", "storedKey", "serverKey")
_SENSITIVE: Final = (
    *(".password", "sasl.jaas.config", "ssl.keystore.key"),
    *("ssl.keystore.certificate.chain", "ssl.truststore.certificates"),
)
"""How the names of configs end whose type is PASSWORD in Kafka, whatever the listener in front."""


def config(name: str, value: str | None) -> str | None:
    """Return the value of a config, but for a sensitive one."""
    return HIDDEN if value is not None and name.endswith(_SENSITIVE) else value


def record(data: Mapping[str, Any], was: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the JSON of a record without what is secret; what differs from that in ``was`` is marked."""
    secret = [name for name in _CREDENTIAL if name in data]
    if "resourceName" in data and "value" in data and config(data["name"], data["value"]) is HIDDEN:
        secret.append("value")
    changed = {name for name in secret if was is not None and was.get(name) != data[name]}
    return {**data, **{name: f"{HIDDEN}, changed" if name in changed else HIDDEN for name in secret}}
