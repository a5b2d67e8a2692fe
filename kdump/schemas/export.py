"""Exports schemas as files for protoc and Avro's tools, and as a script that restores them on a registry."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from posixpath import normpath
from shlex import quote
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote as url_quote

from kdump.schemas import SchemaError
from kdump.schemas.proto_descriptor import as_text
from kdump.schemas.store import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kdump.schemas.store import SchemaStore, SchemaVersion

ENDINGS: Final = {"AVRO": ".avsc", "PROTOBUF": ".proto", "JSON": ".json"}
_MAX_NAME: Final = 200
"""Maximum length of a file name in bytes, without a suffix."""


class ExportedSchemas:
    """Exported ``files`` (relative path -> content), and ``notes`` on references left out and on changed schemas."""

    def __init__(self, versions: Iterable[SchemaVersion], store: SchemaStore) -> None:
        self.files: dict[str, bytes] = {}
        self.notes: list[str] = []
        self._store = store
        for version in versions:
            self._add(version)

    def _add(self, version: SchemaVersion) -> None:
        folder = file_name(version.subject)
        ending = ENDINGS.get(version.schema_type, ".txt")
        text = _text(version)
        if text != version.text:
            what = f"version {version.version} of {version.subject}"
            self.notes.append(
                f"{what}: the log has only a descriptor, so the file lacks services and most options (java_package)"
            )
        self.files[f"{folder}/{version.version}{ending}"] = text.encode("utf-8", "surrogatepass")
        self._add_references(version, folder, {(version.subject, version.version)})

    def _add_references(self, version: SchemaVersion, folder: str, seen: set[tuple[str, int]]) -> None:
        """Add the schemas that a schema refers to, also indirectly. Notes name those that are left out."""
        for reference in version.references:
            found = self._store.referenced(version, reference)
            what = f"version {version.version} of {version.subject}"
            path = self._reference_path(reference.name, version)
            if found is None:
                self.notes.append(f"{what}: the referenced schema {reference.name!r} is not in the log")
            elif path is None:
                self.notes.append(
                    f"{what}: the reference {reference.name!r} cannot be the name of a file in the folder: left out"
                )
            else:
                content = _text(found).encode("utf-8", "surrogatepass")
                if self.files.setdefault(f"{folder}/{path}", content) != content:
                    self.notes.append(
                        f"{what}: {reference.name!r} is another schema in an earlier version, and only that is exported"
                    )
                if (found.subject, found.version) not in seen:
                    seen.add((found.subject, found.version))
                    self._add_references(found, folder, seen)

    @staticmethod
    def _reference_path(name: str, version: SchemaVersion) -> str | None:
        """Return the path of a reference in the folder of its schema; None if it is too long or leads out of it.

        A relative path, as in Protobuf's imports and in ``$ref`` of JSON Schema, stays. A URI and the name of a
        type in Avro become a file name with its suffix.
        """
        if version.schema_type == "AVRO" or _URI.match(name):
            suffix = ENDINGS.get(version.schema_type, "")
            return file_name(name.removesuffix(suffix)) + suffix
        path = normpath(name)
        parts = path.split("/")
        if path.startswith("/") or ".." in parts or "\0" in path or any(len(part.encode()) > 255 for part in parts):
            return None
        return path


_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def file_name(subject: str) -> str:
    """Return the file name for a subject. Unusual characters are escaped; a hash replaces the end of a long name."""
    name = _quoted(subject)
    if name[:1] in ("", "."):
        name = "%2E" + name[1:]
    if len(name) <= _MAX_NAME:
        return name
    digest = sha256(name.encode()).hexdigest()[:16]
    return f"{name[: _MAX_NAME - len(digest) - 1]}-{digest}"


def _text(version: SchemaVersion) -> str:
    if version.schema_type == "PROTOBUF":
        try:
            return as_text(version.text)
        except SchemaError:
            return version.text
    return version.text


_HEAD: Final = """#!/bin/sh
# Restores subjects, versions and schema ids on a new schema registry. Two ways:
#   REGISTRY=http://localhost:8081 sh FILE
#     calls a registry that has the mode IMPORT, such as Confluent's. It must be empty.
#   BOOTSTRAP=localhost:9092 sh FILE
#     writes the registry's topic, with Kafka's command-line tools. The topic must not exist. Start the registry, such
#     as Karapace, afterwards. SCHEMAS_TOPIC names another topic than _schemas.
set -eu
call() {  # METHOD PATH [JSON]
  printf %s "${3:-}" | curl -fsS -X "$1" -H "Content-Type: application/vnd.schemaregistry.v1+json" --data-binary @- \\
    "$REGISTRY$2" > /dev/null
}
if [ -z "${BOOTSTRAP:-}" ]; then
: "${REGISTRY:?set it to the URL of the registry, or BOOTSTRAP to the address of a broker}"
""".splitlines()
_IF_REFUSED: Final = (
    " || { echo 'this registry has no mode IMPORT, so it cannot restore ids: set BOOTSTRAP instead of REGISTRY' >&2; "
    "exit 1; }"
)
_TOPIC_TOOLS: Final = """exit
fi
topic=${SCHEMAS_TOPIC:-_schemas}
kafka-topics.sh --bootstrap-server "$BOOTSTRAP" --create --topic "$topic" --partitions 1 --config cleanup.policy=compact
kafka-console-producer.sh --bootstrap-server "$BOOTSTRAP" --topic "$topic" --sync --request-required-acks all \
  --property parse.key=true --property key.separator="$(printf '\t')" << 'END_OF_RECORDS'""".splitlines()


def import_script(versions: Iterable[SchemaVersion], store: SchemaStore, *, whole: bool = False) -> Iterator[str]:
    """Yield the lines of a shell script that restores versions and ids, by REST calls or as records of the topic.

    A schema comes after the given schemas that it refers to. Deleted versions become soft-deleted, so that their ids
    can be looked up. Settings of the subjects are restored and, with ``whole``, of the registry and its contexts.
    """
    chosen = list(_in_order(versions, store))
    contexts = sorted({version.context for version in chosen} - {DEFAULT_CONTEXT})
    names = dict.fromkeys(version.subject for version in chosen)
    subjects = [*(["", *(f":{context}:" for context in contexts)] if whole else ()), *names]
    yield from _HEAD
    yield from _calls(chosen, contexts, subjects, store)
    yield from _TOPIC_TOOLS
    yield from _records(chosen, subjects, store)
    yield "END_OF_RECORDS"


def _calls(
    chosen: Sequence[SchemaVersion], contexts: Sequence[str], subjects: Sequence[str], store: SchemaStore
) -> Iterator[str]:
    """Yield lines that call a registry's REST API. Each context has its own mode (Confluent's InMemoryCache.mode).

    A version is deleted before the versions that refer to it are registered, because a registry refuses it afterwards.
    A deleted version is left out if a later one of its subject has the same id and nothing refers to it: a registry has
    only one of the two. Older releases keep the first one, and its deletion would hide the second.
    """
    by_version = sorted(chosen, key=lambda each: each.version)
    newest = {(version.subject, version.id): version.version for version in by_version}
    needed = {
        (found.subject, found.version)
        for version in chosen
        for reference in version.references
        if (found := store.referenced(version, reference)) is not None
    }
    paths = ["/mode", *(f"/mode/{_quoted(f':{context}:')}" for context in contexts)]
    for path in paths:
        yield _call("PUT", f"{path}?force=true", {"mode": "IMPORT"}) + (_IF_REFUSED if path == "/mode" else "")
    for version in chosen:
        is_replaced = version.state != "current" and newest[version.subject, version.id] > version.version
        is_needed = (version.subject, version.version) in needed
        if is_replaced and not is_needed:
            continue
        body: dict[str, Any] = {"schema": version.text, "id": version.id, "version": version.version}
        if version.schema_type != "AVRO":
            body["schemaType"] = version.schema_type
        if version.references:
            body["references"] = [
                {"name": one.name, "subject": one.subject, "version": one.version} for one in version.references
            ]
        extra = {"metadata": version.metadata, "ruleSet": version.rule_set}
        body |= {name: value for name, value in extra.items() if value is not None}
        yield _call("POST", f"{_subject(version)}/versions", body)
        if version.state != "current" and not is_replaced:
            yield _call("DELETE", f"{_subject(version)}/versions/{version.version}")
    yield _call("PUT", "/mode?force=true", {"mode": "READWRITE"})
    for path in paths[1:]:
        yield _call("DELETE", path)
    for subject in subjects:
        path = f"/{_quoted(subject)}" if subject else ""
        config, mode = store.config(subject), store.mode(subject)
        if config is not None:
            settings = {"compatibility": config.get("compatibilityLevel"), **config}
            left_out = {"subject", "compatibilityLevel"}
            body = {name: each for name, each in settings.items() if name not in left_out and each is not None}
            yield _call("PUT", f"/config{path}", body)
        if mode is not None:
            yield _call("PUT", f"/mode{path}?force=true", {"mode": mode})


def _records(chosen: Sequence[SchemaVersion], subjects: Sequence[str], store: SchemaStore) -> Iterator[str]:
    """Yield the records for the registry's topic, each a line with key and value (SchemaKey, ConfigKey and ModeKey)."""
    for version in chosen:
        key: dict[str, Any] = {"keytype": "SCHEMA", "subject": version.subject, "version": version.version, "magic": 1}
        own = {"subject": version.subject, "version": version.version, "deleted": version.state != "current"}
        yield _record(key, version.stored | own)
    for subject in subjects:
        named = {"subject": subject} if subject else {}
        config, mode = store.config(subject), store.mode(subject)
        if config is not None:
            yield _record({"keytype": "CONFIG", **named, "magic": 0}, config)
        if mode is not None:
            yield _record({"keytype": "MODE", **named, "magic": 0}, {**named, "mode": mode})


def _record(key: Mapping[str, Any], value: Mapping[str, Any]) -> str:
    return "\t".join(json.dumps(each, separators=(",", ":")) for each in (key, value))


def _subject(version: SchemaVersion) -> str:
    return f"/subjects/{_quoted(version.subject)}"


def _quoted(subject: str) -> str:
    return url_quote(subject, safe="", errors="surrogatepass")


def _call(method: str, path: str, body: Mapping[str, Any] | None = None) -> str:
    words = ["call", method, path, *([] if body is None else [json.dumps(body)])]
    return " ".join(map(quote, words))


def _in_order(versions: Iterable[SchemaVersion], store: SchemaStore) -> Iterator[SchemaVersion]:
    """Yield versions in the order of their numbers, but each after those of them that it refers to."""
    chosen = {(version.subject, version.version): version for version in versions}
    done: set[tuple[str, int]] = set()
    left = sorted(chosen.values(), key=lambda each: (each.version, each.first_offset))

    def visit(version: SchemaVersion) -> Iterator[SchemaVersion]:
        key = (version.subject, version.version)
        if key in done:
            return
        done.add(key)
        for reference in version.references:
            found = store.referenced(version, reference)
            if found is not None and (found.subject, found.version) in chosen:
                yield from visit(found)
        yield version

    for version in left:
        yield from visit(version)
