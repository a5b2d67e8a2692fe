"""The coordinators' decoder switches before they printed JSON: offsets up to 3.7, transactions up to 4.0."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from kdump.dump_log_segments.decoders import java
from kdump.dump_log_segments.decoders.texts import DELETE, Parser, Texts, broken, no_key, unknown
from kdump.errors import DamageError
from kdump.internal_topics import consumer_offsets, transaction_state
from kdump.internal_topics.consumer_offsets import MESSAGES
from kdump.internal_topics.interpreter import PayloadError, Reader, read_fields
from kdump.primitives.java_hash_order import java_hash, partition_hash

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from kdump.dump_log_segments.dialects.payload import OffsetsWords, TransactionWords
    from kdump.internal_topics.schema import MessageSchema, Release, Values

    _TextsOfType: TypeAlias = Callable[[int, Reader, int, bytes | None], Texts | None]
    """(type in the key, reader of the rest, offset, value) -> texts of the record; None for an unknown type."""


CONSUMER: Final = "consumer"
ASSIGNMENT: Final = consumer_offsets.MEMBER_MESSAGES["ConsumerProtocolAssignment"]
NEWEST_ASSIGNMENT: Final = 3
"""The newest known version. Newer versions are read like it."""
SUBSCRIPTION: Final = consumer_offsets.MEMBER_MESSAGES["ConsumerProtocolSubscription"].struct(0)


def offsets_parser(words: OffsetsWords, release: Release) -> Parser:
    """Return the parser that prints offsets and classic groups as in ``release``."""
    offset_types = MESSAGES["OffsetCommitKey"].types.at(release)
    group_types = MESSAGES["GroupMetadataKey"].types.at(release)

    def texts(number: int, reader: Reader, offset: int, value: bytes | None) -> Texts | None:
        if number in offset_types:
            named = read_fields(MESSAGES["OffsetCommitKey"].struct(0, release), reader)
            return Texts(words.offset_key.format_map(named), _offset(words, release, offset, value))
        if number in group_types:
            named = read_fields(MESSAGES["GroupMetadataKey"].struct(0, release), reader)
            group = _quoted(words, str(named["group"])) if words.group_key_as_json else named["group"]
            return Texts(words.group_key.format(group=group), _group(words, release, offset, value))
        return None

    def parse(offset: int, key: bytes | None, value: bytes | None) -> Texts:
        if value is None and words.needs_value:
            return Texts(None, None)
        return _parsed(words.unknown_key, texts, offset, key, value)

    return parse


def _parsed(unknown_key: str, texts: _TextsOfType, offset: int, key: bytes | None, value: bytes | None) -> Texts:
    """Return the texts of a record. Raises DamageError if it is unreadable, in some releases also for unknown types."""
    if key is None:
        raise no_key(offset)
    reader = Reader(key)
    try:
        number = reader.int16()
        found = texts(number, reader, offset, value)
    except PayloadError as error:
        raise broken(error, f"the record at offset {offset}") from None
    if found is not None:
        return found
    if not unknown_key:
        raise unknown("type", number, offset)
    return Texts(unknown_key.format(version=number), None)


def _value(message: MessageSchema, release: Release, offset: int, value: bytes) -> Values:
    reader = Reader(value)
    version = reader.int16()
    versions = message.versions(release)
    if versions is None or not versions.has(version):
        raise unknown(f"version of {message.name}", version, offset)
    return read_fields(message.struct(version, release), reader)


def _offset(words: OffsetsWords, release: Release, offset: int, value: bytes | None) -> str:
    if value is None:
        return DELETE
    values = _value(MESSAGES["OffsetCommitValue"], release, offset, value)
    return (words.offset_metadata if values["metadata"] else words.offset).format_map(values)


def _quoted(words: OffsetsWords, text: str) -> str:
    return java.string(text) if words.escapes else f'"{text}"'


def _group(words: OffsetsWords, release: Release, offset: int, value: bytes | None) -> str:
    if value is None:
        return DELETE
    values = _value(MESSAGES["GroupMetadataValue"], release, offset, value)
    listed = cast("list[Values]", values["members"])
    _check_once(words, listed, offset)
    members = {str(member["memberId"]): member for member in listed}
    order = words.members_order(members, java_hash)
    kind = str(values["protocolType"])
    if words.reads_subscriptions and kind == CONSUMER and values["protocol"] is not None:
        _check_subscriptions([cast("bytes", members[name]["subscription"]) for name in order])
    shown = kind if members or words.protocol_type_of_empty else ""
    texts = [_member(words, shown, members[name], offset) for name in order]
    assignment = "{" + ",".join(texts) + "}"
    protocol = values["protocol"]
    if words.group_as_json:
        shown, assignment = _quoted(words, shown), _quoted(words, assignment)
        protocol = None if protocol is None else _quoted(words, str(protocol))
    return words.group.format(
        protocol_type=shown,
        protocol="null" if protocol is None else protocol,
        generation=values["generation"],
        assignment=assignment,
    )


def _check_once(words: OffsetsWords, members: list[Values], offset: int) -> None:
    """Raise DamageError for a repeated id (not the last member's) or instance id, in releases that check this."""
    names = [member["memberId"] for member in members[:-1]]
    if words.members_once and len(set(names)) < len(names):
        raise DamageError("payload", f"the record at offset {offset} has a member of the group twice")
    instances = [member["groupInstanceId"] for member in members if member.get("groupInstanceId") is not None]
    if words.instances_once and len(set(instances)) < len(instances):
        raise DamageError("payload", f"the record at offset {offset} has a static member twice")


def _check_subscriptions(subscriptions: list[bytes]) -> None:
    """Raise PayloadError for a malformed subscription. A truncated one ends the check without an error."""
    try:
        for data in subscriptions:
            reader = Reader(data)
            reader.int16()
            read_fields(SUBSCRIPTION, reader)
    except PayloadError as error:
        if error.java_message is not None:
            raise


def _member(words: OffsetsWords, protocol_type: str, member: Values, offset: int) -> str:
    name, assignment = str(member["memberId"]), cast("bytes", member["assignment"])
    if protocol_type != CONSUMER:
        return f"{name}={_hex(words, assignment, offset)}"
    reader = Reader(assignment)
    version = reader.int16()
    if version < 0:
        raise unknown("version of an assignment", version, offset)
    values = read_fields(ASSIGNMENT.struct(min(version, NEWEST_ASSIGNMENT)), reader)
    topics = cast("list[Values]", values["assignedPartitions"])
    partitions = ", ".join(
        f"{topic['topic']!s}-{partition}" for topic in topics for partition in cast("list[int]", topic["partitions"])
    )
    if values["userData"] is None and not words.null_user_data:
        raise DamageError("payload", f"the record at offset {offset}: the user data of member {name} is null")
    user_data = _hex(words, cast("bytes", values["userData"] or b""), offset)
    return f"{name}=[{partitions}]" + (f":{user_data}" if user_data else "")


def _hex(words: OffsetsWords, data: bytes, offset: int) -> str:
    if data and not words.prints_bytes:
        raise DamageError("payload", f"the record at offset {offset}: this release cannot print the bytes of a member")
    return java.hex_number(data)


TRANSACTION_KEY: Final = transaction_state.MESSAGES["TransactionLogKey"]
TRANSACTION_VALUE: Final = transaction_state.MESSAGES["TransactionLogValue"]


def transactions_parser(words: TransactionWords, release: Release) -> Parser:
    """Return the parser that prints the states of transactional ids as in ``release``."""
    types = TRANSACTION_KEY.types.at(release)

    def texts(number: int, reader: Reader, offset: int, value: bytes | None) -> Texts | None:
        if number not in types:
            return None
        named = read_fields(TRANSACTION_KEY.struct(0, release), reader)
        return Texts(words.key.format(id=named["transactionalId"]), _transaction(words, release, offset, value))

    return partial(_parsed, words.unknown_key, texts)


def _transaction(words: TransactionWords, release: Release, offset: int, value: bytes | None) -> str:
    if value is None:
        if words.deletes:
            return DELETE
        raise PayloadError(None, "the value is null: this release cannot print null", 0)
    values = _value(TRANSACTION_VALUE, release, offset, value)
    status = cast("int", values["transactionStatus"])
    if not 0 <= status < words.states:
        raise unknown("transaction state", status, offset)
    client = cast("int", values.get("clientTransactionVersion", 0))
    if words.client_versions is not None and not 0 <= client <= words.client_versions:
        raise unknown("transaction version of the client", client, offset)
    left, between, right = words.partitions
    return words.value.format(
        producer_id=values["producerId"],
        producer_epoch=values["producerEpoch"],
        state=transaction_state.STATES[status],
        partitions=left + between.join(_partitions(words, values) if status else []) + right,
        last_update=values["transactionLastUpdateTimestampMs"],
        timeout=values["transactionTimeoutMs"],
    )


def _partitions(words: TransactionWords, values: Values) -> list[str]:
    """Return the partitions of a transaction, in the order of the release's hash set. Raises PayloadError for null."""
    topics = cast("list[Values] | None", values["transactionPartitions"])
    if topics is None:
        raise PayloadError(None, "the list of partitions is null, but the state of the transaction is not Empty", 0)
    sets = [[(str(topic["topic"]), number) for number in cast("list[int]", topic["partitionIds"])] for topic in topics]
    return [f"{name}-{number}" for name, number in words.partitions_order(sets, partition_hash)]
