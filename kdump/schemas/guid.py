"""The GUID of a schema, which Confluent's serializers write into record headers.

Source: ``Schema.updateHash`` of Confluent's schema-registry (client/rest/entities/Schema.java, Apache 2.0). The GUID is
not stored in ``_schemas``; it is the MD5 of the schema's text, references, metadata and rules, shown as a UUID.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from hashlib import md5
from struct import pack
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kdump.schemas.framing import DIGEST_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def of_value(value: Mapping[str, Any], text: str, references: Sequence[Mapping[str, Any]]) -> str:
    """Return the GUID of a SCHEMA value: the stored digest (field ``md5``), else the computed one."""
    stored = value.get("md5")
    if isinstance(stored, str):
        try:
            digest = b64decode(stored, validate=True)
        except Base64Error:
            digest = b""
        if len(digest) == DIGEST_SIZE:
            return str(UUID(bytes=digest))
    return compute(text, references, value.get("metadata"), value.get("ruleSet"))


def compute(
    text: str, references: Sequence[Mapping[str, Any]], metadata: object = None, rule_set: object = None
) -> str:
    """Return the GUID of a schema as text (8-4-4-4-12 hexadecimal digits)."""
    digest = md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    for reference in references:
        _texts(digest, (reference.get("name"), reference.get("subject")))
        version = reference.get("version")
        digest.update(pack(">i", version if isinstance(version, int) and -(2**31) <= version < 2**31 else -1))
    if isinstance(metadata, dict):
        digest.update(b"\x01")
        for name, values in sorted(_items(metadata.get("tags"))):
            _texts(digest, (name, *sorted(map(str, values if isinstance(values, list) else ()))))
        for name, value in sorted(_items(metadata.get("properties"))):
            _texts(digest, (name, value))
        sensitive = metadata.get("sensitive")
        _texts(digest, sorted(map(str, sensitive)) if isinstance(sensitive, list) else ())
    if isinstance(rule_set, dict):
        digest.update(b"\x01")
        for kind in ("migrationRules", "domainRules", "encodingRules"):
            rules = rule_set.get(kind)
            for rule in rules if isinstance(rules, list) else ():
                if isinstance(rule, dict):
                    _rule(digest, rule)
        _texts(digest, (rule_set.get("enableAt"),))
    return str(UUID(bytes=digest.digest()))


def _rule(digest: Any, rule: Mapping[str, Any]) -> None:
    tags = rule.get("tags")
    _texts(digest, (rule.get(name) for name in ("name", "doc", "kind", "mode", "type")))
    _texts(digest, sorted(map(str, tags)) if isinstance(tags, list) else ())
    for name, value in sorted(_items(rule.get("params"))):
        _texts(digest, (name, value))
    _texts(digest, (rule.get(name) for name in ("expr", "onSuccess", "onFailure")))
    if rule.get("disabled") is True:
        digest.update(b"\x01")


def _items(value: object) -> list[tuple[str, Any]]:
    return [(str(name), each) for name, each in value.items()] if isinstance(value, dict) else []


def _texts(digest: Any, texts: Iterable[object]) -> None:
    for text in texts:
        if text is not None:
            digest.update(str(text).encode("utf-8", "surrogatepass"))
