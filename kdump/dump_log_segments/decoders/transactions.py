"""The transaction-log decoder before it printed JSON (up to 4.0)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kdump.dump_log_segments.decoders.texts import DELETE, Parser, Texts, broken, no_key, unknown
from kdump.internal_topics.interpreter import PayloadError, Reader, read_fields
from kdump.internal_topics.transaction_state import MESSAGES, STATES
from kdump.primitives.java_hash_order import partition_hash

if TYPE_CHECKING:
    from kdump.dump_log_segments.dialects.payload import TransactionWords
    from kdump.internal_topics.schema import Release, Values

KEY = MESSAGES["TransactionLogKey"]
VALUE = MESSAGES["TransactionLogValue"]


def parser(words: TransactionWords, release: Release) -> Parser:
    """Return what prints transactions as ``release`` knows them."""
    types = KEY.types.at(release)

    def parse(offset: int, key: bytes | None, value: bytes | None) -> Texts:
        if key is None:
            raise no_key(offset)
        reader = Reader(key)
        try:
            number = reader.int16()
            if number in types:
                named = read_fields(KEY.struct(0, release), reader)
                return Texts(words.key.format(id=named["transactionalId"]), _value(words, release, offset, value))
        except PayloadError as error:
            raise broken(error, f"the record at offset {offset}") from None
        if not words.unknown_key:
            raise unknown("type", number, offset)
        return Texts(words.unknown_key.format(version=number), None)

    return parse


def _value(words: TransactionWords, release: Release, offset: int, value: bytes | None) -> str:
    if value is None:
        if words.deletes:
            return DELETE
        raise PayloadError(None, "the value is null, which this release cannot print", 0)
    reader = Reader(value)
    version = reader.int16()
    versions = VALUE.versions(release)
    if versions is None or not versions.has(version):
        raise unknown(f"version of {VALUE.name}", version, offset)
    values = read_fields(VALUE.struct(version, release), reader)
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
        state=STATES[status],
        partitions=left + between.join(_partitions(words, values) if status else []) + right,
        last_update=values["transactionLastUpdateTimestampMs"],
        timeout=values["transactionTimeoutMs"],
    )


def _partitions(words: TransactionWords, values: Values) -> list[str]:
    """Return the partitions, in the order of the hash set that holds them."""
    topics = cast("list[Values] | None", values["transactionPartitions"])
    if topics is None:
        raise PayloadError(None, "a transaction that is not empty has no list of partitions", 0)
    sets = [[(str(topic["topic"]), number) for number in cast("list[int]", topic["partitionIds"])] for topic in topics]
    return [f"{name}-{number}" for name, number in words.partitions_order(sets, partition_hash)]
