"""Finds the parser of a decoder switch of DumpLogSegments, such as ``--offsets-decoder``, for a release.

A parser turns a record's key and value into printed text. Each switch imports only the modules that it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.dump_log_segments.dialects.payload import CoordinatorWords

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.dump_log_segments.decoders.texts import Parser
    from kdump.dump_log_segments.dialects.payload import PayloadDialect


def _offsets(dialect: PayloadDialect) -> Parser:
    if isinstance(dialect.offsets, CoordinatorWords):
        from kdump.dump_log_segments.decoders.coordinator import CoordinatorParser
        from kdump.internal_topics.consumer_offsets import MESSAGES

        return CoordinatorParser(MESSAGES, dialect.offsets, dialect)
    from kdump.dump_log_segments.decoders.before_json import offsets_parser

    return offsets_parser(dialect.offsets, dialect.definitions)


def _transactions(dialect: PayloadDialect) -> Parser:
    if isinstance(dialect.transactions, CoordinatorWords):
        from kdump.dump_log_segments.decoders.coordinator import CoordinatorParser
        from kdump.internal_topics.transaction_state import MESSAGES

        return CoordinatorParser(MESSAGES, dialect.transactions, dialect)
    from kdump.dump_log_segments.decoders.before_json import transactions_parser

    return transactions_parser(dialect.transactions, dialect.definitions)


def _share_group_state(dialect: PayloadDialect) -> Parser:
    from kdump.dump_log_segments.decoders.coordinator import CoordinatorParser
    from kdump.internal_topics.share_group_state import MESSAGES

    return CoordinatorParser(MESSAGES, dialect.share, dialect)


def _cluster_metadata(dialect: PayloadDialect) -> Parser:
    from kdump.dump_log_segments.decoders.framed import MetadataParser
    from kdump.internal_topics.cluster_metadata import MESSAGES

    return MetadataParser(MESSAGES, dialect.metadata, dialect)


def _remote_log_metadata(dialect: PayloadDialect) -> Parser:
    from kdump.dump_log_segments.decoders.framed import RemoteLogParser
    from kdump.internal_topics.remote_log_metadata import MESSAGES

    return RemoteLogParser(MESSAGES, dialect.remote_log, dialect)


PARSERS: Final[dict[str, Callable[[PayloadDialect], Parser]]] = {
    "offsets-decoder": _offsets,
    "transaction-log-decoder": _transactions,
    "cluster-metadata-decoder": _cluster_metadata,
    "remote-log-metadata-decoder": _remote_log_metadata,
    "share-group-state-decoder": _share_group_state,
}
