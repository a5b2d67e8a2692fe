"""What the metadata log holds in the clear and is not shown unless asked for: SCRAM salts and keys, secret configs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kdump.internal_topics.secrets import CREDENTIAL, HIDDEN, is_secret

if TYPE_CHECKING:
    from collections.abc import Mapping


def config(resource: int, name: str, value: str | None) -> str | None:
    """Return the value of a config, but for a secret one; ``resource`` is the number of a ``ConfigResource.Type``."""
    return HIDDEN if value is not None and is_secret(resource, name) else value


def configs(resource: int, values: Mapping[str, str], *, show: bool) -> dict[str, str]:
    """Return the configs of a resource by name; the values of secret ones only with ``show``."""
    return {name: value if show else config(resource, name, value) or "" for name, value in sorted(values.items())}


def record(data: Mapping[str, Any], was: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the JSON of a record without what is secret; what differs from that in ``was`` is marked."""
    secret = [name for name in CREDENTIAL if name in data]
    is_config = "resourceName" in data and "value" in data
    if is_config and config(data["resourceType"], data["name"], data["value"]) is HIDDEN:
        secret.append("value")
    changed = {name for name in secret if was is not None and was.get(name) != data[name]}
    return {**data, **{name: f"{HIDDEN}, changed" if name in changed else HIDDEN for name in secret}}
