"""The decoders of the metadata log, which print JSON, and of remote log metadata, which prints ``toString``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kdump.dump_log_segments.decoders import java
from kdump.dump_log_segments.decoders.remote_log import text as remote_log_text
from kdump.dump_log_segments.decoders.texts import Parser, Texts
from kdump.internal_topics import cluster_metadata, frame, remote_log_metadata
from kdump.internal_topics.decode import by_type
from kdump.internal_topics.interpreter import PayloadError, Reader, read_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.dump_log_segments.dialects.payload import FrameWords
    from kdump.internal_topics.schema import MessageSchema, Release, Struct, Values

WORD = re.compile(r"(?<!^)(?=[A-Z])")


def metadata_parser(words: FrameWords, release: Release) -> Parser:
    """Return what prints records of the metadata log as ``release`` knows them."""
    types = by_type(cluster_metadata.MESSAGES, "Record", release)

    def parse(offset: int, _key: bytes | None, value: bytes | None) -> Texts:
        try:
            struct, version, values = _read(types, words, release, value)
        except PayloadError as error:
            return Texts(None, f"Error at {offset}, skipping. {_said(error)}")
        return Texts(None, f"{metadata_head(struct, version)}{java.json(struct, values)}}}")

    return parse


def metadata_head(struct: Struct, version: int) -> str:
    """Return what stands in front of the fields of a message, up to a closing brace behind them."""
    return f'{{"type":"{WORD.sub("_", struct.name).upper()}","version":{version},"data":'


def remote_log_parser(words: FrameWords, release: Release, *, txn_index: bool) -> Parser:
    """Return what prints remote log metadata as ``release`` knows it."""
    types = by_type(remote_log_metadata.MESSAGES, "Record", release)

    def parse(offset: int, _key: bytes | None, value: bytes | None) -> Texts:
        try:
            struct, _, values = _read(types, words, release, value)
            return Texts(None, remote_log_text(struct.name, values, txn_index=txn_index))
        except PayloadError as error:
            return Texts(None, f"Error at offset {offset}, skipping. {_said(error)}")

    return parse


def _said(error: PayloadError) -> str:
    return "null" if error.said is None else error.said


def _read(
    types: dict[int, MessageSchema], words: FrameWords, release: Release, value: bytes | None
) -> tuple[Struct, int, Values]:
    """Read a framed message: its fields, the version it says it has, its values."""
    if value is None:
        raise PayloadError(words.null_value, "the value is null", 0)
    reader = Reader(value)
    number = _number(reader, words)
    version = number("frame version")
    if version != words.frame:
        raise PayloadError(_frame_said(version, words), f"frame version {version}", 0)
    kind, message_version = number("type"), number("version")
    message = types.get(kind)
    if message is None:
        said = f"Unknown metadata id {kind}"
        if words.tells_part:
            said = f"org.apache.kafka.common.errors.UnsupportedVersionException: {said}"
        raise PayloadError(said, f"unknown type {kind}", reader.position)
    struct = message.struct(message_version, release)
    try:
        values = read_fields(struct, reader)
    except PayloadError as error:
        if words.tells_part:
            error.said = f"Failed to deserialize record with type {kind}"
        raise
    if words.tells_part and reader.remaining:
        said = f"Found {reader.remaining} byte(s) of garbage after {kind}"
        raise PayloadError(said, "bytes left over", reader.position)
    return struct, message_version, values


def _number(reader: Reader, words: FrameWords) -> Callable[[str], int]:
    if words.tells_part:
        return lambda name: frame.read_number(reader, name)
    return lambda _: (reader.varint() + 0x8000 & 0xFFFF) - 0x8000


def _frame_said(version: int, words: FrameWords) -> str:
    if version == frame.PREVIEW:
        return (
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release "
            "of KRaft in 2.8 to newer versions are not supported."
        )
    return (
        f"Could not deserialize metadata record due to unknown frame version {version}"
        f"(only frame version {words.frame} is supported)"
    )
