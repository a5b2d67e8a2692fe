"""Hides secrets in values of the metadata log and of Kafka Connect's configs: passwords, credentials and keys.

A config's value is hidden if the config is unknown or of the type PASSWORD, as in Kafka's own tools (class
``KafkaConfig``, method ``maybeSensitive``; class ``RecordRedactor``). A value with a URL that has a password is hidden
too. The same rules hold for the topic of Kafka Connect's configs (class ``KafkaConfigBackingStore``). There the key
with which workers sign requests is also hidden.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from kdump.internal_topics import cluster_metadata, interpreter
from kdump.internal_topics.decode import decode
from kdump.primitives.wire import write_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kdump.internal_topics.schema import Value, Values

    Mask = Callable[[bytes | None, bytes | None], bytes | None]
    """A function of a record's key and value. It returns the value without secrets."""

HIDDEN: Final = "[redacted]"
HIDDEN_BYTES: Final = HIDDEN.encode()
CREDENTIAL: Final = frozenset(("salt", "saltedPassword", "storedKey", "serverKey"))
"""The secret fields of SCRAM credentials. Releases before 3.5 have saltedPassword instead of the two keys."""
RESOURCES: Final = {2: "topic", 4: "broker", 16: "client-metrics", 32: "group"}
"""``ConfigResource.Type`` -> its name in :func:`shown`."""
_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.*)", re.DOTALL)
_MECHANISM: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
"""The configs that may follow the name of a SASL mechanism (``DynamicBrokerConfig.ListenerMechanismConfigs``)."""
_CONFIG, _SCRAM = "ConfigRecord", "UserScramCredentialRecord"
_HARMLESS: Final = frozenset(
    number
    for name, message in cluster_metadata.MESSAGES.items()
    if name not in (_CONFIG, _SCRAM)
    for number, _ in message.types.items
)
"""The types of those records of the metadata log that never have secrets."""
_CONNECT_TOPIC: Final = re.compile(r".*connect.*config.*|mm2-configs\..*", re.DOTALL)
"""The usual names of Connect's config topic (``config.storage.topic`` of a worker)."""
_CONNECT_KEY: Final = re.compile(rb"(?:connector|task|session-key)\b.*", re.DOTALL)
_CONNECT_CONFIGS_KEY: Final = re.compile(
    rb"(?:connector|task|tasks-fencing|commit|target-state|restart-connector|logger-cluster)-.+|session-key", re.DOTALL
)
"""The keys of Connect's config topic (class ``KafkaConfigBackingStore``)."""
_CONNECT_VALUE: Final = re.compile(rb'"(?:properties|algorithm)"')
"""A value of Connect with secrets has one of these fields. The pattern finds them in damaged JSON, too."""
_PASSWORD_IN_URL: Final = re.compile(r"://[^/\s@:]*:(?!\d+(?:[/,\s]|$))[^\s@]+@")
"""A user and a password in a URL. The password may have slashes, but ``h:1/`` is taken for a host and its port."""
_CONNECT_CLIENT: Final = re.compile(r"(?:(?:producer|consumer|admin)\.(?:override\.)?)(.+)", re.DOTALL)


@cache
def shown() -> dict[str, frozenset[str]]:
    """Return owner -> names of configs that are not secret. The owners: values of RESOURCES, connect, client."""
    from importlib.resources import files

    text = files("kdump.internal_topics").joinpath("config_names.txt").read_text(encoding="utf-8")
    sections = (section.split() for section in text.split("\n\n")[1:])
    return {owner: frozenset(names) for owner, *names in sections}


def is_secret(resource: int, name: str, *values: str | None) -> bool:
    """Return whether ``values`` of a config must be hidden; ``resource`` is a code of ``ConfigResource.Type``."""
    if any(map(_has_password, values)):
        return True
    owner = RESOURCES.get(resource, "")
    known = shown().get(owner, frozenset())
    if name in known:
        return False
    listener = _LISTENER.fullmatch(name) if owner == "broker" else None
    if listener is None:
        return True
    return next((config for config in _MECHANISM if listener[1].endswith(config)), listener[1]) not in known


def _has_password(value: object) -> bool:
    """Return whether a value holds a URL with a user and a password. Kafka's own tools print such values."""
    return isinstance(value, str) and _PASSWORD_IN_URL.search(value) is not None


def is_connect_secret(name: str, value: object = None) -> bool:
    """Return whether the value of a connector's or task's config is hidden."""
    if _has_password(value):
        return True
    if name in shown()["connect"]:
        return False
    client = _CONNECT_CLIENT.fullmatch(name)
    return client is None or client[1] not in shown()["client"]


def connect_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a connector's or task's config with secrets hidden. Null values stay null."""
    return {
        name: HIDDEN if value is not None and is_connect_secret(name, value) else value
        for name, value in config.items()
    }


def fields(message: str, values: Mapping[str, Value]) -> Values:
    """Return the fields of a message of the metadata log, with secrets hidden."""
    found = dict(values)
    if message == _CONFIG and found.get("value") is not None:
        if is_secret(int(str(found["resourceType"])), str(found["name"]), str(found["value"])):
            found["value"] = HIDDEN
    elif message == _SCRAM:
        for name in CREDENTIAL & found.keys():
            found[name] = HIDDEN_BYTES
        if infos := cast("list[Values] | None", found.get("credentialInfos")):
            found["credentialInfos"] = [info | dict.fromkeys(CREDENTIAL & info.keys(), HIDDEN_BYTES) for info in infos]
    return found


@cache
def mask_of(topic: str) -> Mask | None:
    """Return the function that hides secrets in the metadata log, or in a topic named like Connect's; else None."""
    if topic == cluster_metadata.TOPIC:
        return metadata_value
    return connect_value if _CONNECT_TOPIC.fullmatch(topic) else None


def is_connect_key(key: bytes | None) -> bool:
    """Return whether a key is like those of Connect's config topic, for a topic that its name does not identify."""
    return key is not None and _CONNECT_CONFIGS_KEY.fullmatch(key) is not None


def uncertain_connect_value(key: bytes | None, value: bytes | None) -> bytes | None:
    """Like :func:`connect_value`, for a topic that may not be Connect's."""
    return connect_value(key, value, is_certain=False)


def is_metadata(key: bytes | None, value: bytes | None) -> bool:
    """Return whether a record can be decoded as one of the metadata log, for a log whose topic is unknown."""
    if key is not None or not value or value[0] > 1:
        return False
    made = decode(cluster_metadata.TOPIC, None, value)
    return made is not None and made.value is not None and made.value.values is not None and not made.value.reason


def metadata_value(_: bytes | None, value: bytes | None) -> bytes | None:
    """Return a value of the metadata log without secrets. Undecodable values are hidden, unless their type has none."""
    if not value or (made := decode(cluster_metadata.TOPIC, None, value)) is None or made.value is None:
        return value
    if made.type in _HARMLESS:
        return value
    read = made.value
    if made.type is None or read.values is None or read.struct is None or read.version is None:
        return HIDDEN_BYTES
    hidden = fields(read.name, read.values)
    if hidden == read.values and not read.reason:
        return value
    hidden.pop(interpreter.UNKNOWN_TAGS, None)
    head = b"".join(map(write_unsigned_varint, (value[0], made.type, read.version)))
    return head + interpreter.write(read.struct, hidden)


def connect_value(key: bytes | None, value: bytes | None, *, is_certain: bool = True) -> bytes | None:
    """Return a value of Connect's config topic with secrets hidden, as compact JSON like Connect's.

    Only the records of connectors, tasks and session keys are changed. Such a value is hidden whole if it is not a JSON
    object. If not ``is_certain``, the topic may not be Connect's. Then a value without a field in which Connect stores
    secrets is not changed, unless it is a session key in a JSON object.
    """
    if key is None or value is None or not _CONNECT_KEY.fullmatch(key):
        return value
    import json

    unreadable = HIDDEN_BYTES if is_certain or _CONNECT_VALUE.search(value) else value
    try:
        made: Any = json.loads(value)
    except (ValueError, RecursionError):
        return unreadable
    body = made.get("payload", made) if isinstance(made, dict) else made  # the converter may write an envelope
    if not isinstance(body, dict):
        return unreadable
    is_session_key = key.startswith(b"session-key")
    configs = body.get("properties")
    if not is_certain and not is_session_key and not isinstance(configs, dict):
        return value
    if isinstance(configs, dict):
        body["properties"] = connect_config(configs)
    if is_session_key and body.get("key") is not None:
        body["key"] = HIDDEN
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
