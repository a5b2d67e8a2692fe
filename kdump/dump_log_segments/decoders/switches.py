"""The decoder switches: which parser each stands for in a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.dump_log_segments.decoders import coordinator, framed, offsets, transactions
from kdump.dump_log_segments.dialects.payload import CoordinatorWords
from kdump.internal_topics import consumer_offsets, share_group_state, transaction_state

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.dump_log_segments.decoders.texts import Parser
    from kdump.dump_log_segments.dialects.payload import PayloadDialect


def _offsets(dialect: PayloadDialect) -> Parser:
    if isinstance(dialect.offsets, CoordinatorWords):
        return coordinator.CoordinatorParser(consumer_offsets.MESSAGES, dialect.offsets, dialect.definitions)
    return offsets.parser(dialect.offsets, dialect.definitions)


def _transactions(dialect: PayloadDialect) -> Parser:
    if isinstance(dialect.transactions, CoordinatorWords):
        return coordinator.CoordinatorParser(transaction_state.MESSAGES, dialect.transactions, dialect.definitions)
    return transactions.parser(dialect.transactions, dialect.definitions)


PARSERS: Final[dict[str, Callable[[PayloadDialect], Parser]]] = {
    "offsets-decoder": _offsets,
    "transaction-log-decoder": _transactions,
    "cluster-metadata-decoder": lambda dialect: framed.MetadataParser(dialect.metadata, dialect.definitions),
    "remote-log-metadata-decoder": lambda dialect: framed.RemoteLogParser(
        dialect.remote_log, dialect.definitions, txn_index=dialect.remote_log_txn_index
    ),
    "share-group-state-decoder": lambda dialect: coordinator.CoordinatorParser(
        share_group_state.MESSAGES, dialect.share, dialect.definitions
    ),
}
"""Switch -> what makes its parser."""
