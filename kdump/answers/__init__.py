"""The registry of the questions that kdump answers about log dirs.

The registry has names only; :func:`question_named` imports the module of a question. A new question is one module
with a :class:`~kdump.answers.question.LogQuestion`, and a line in :data:`QUESTIONS`. Its command, Python function, SQL
views, MCP tool and, if it has a collector, Spark output are then derived from the registry.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing kdump loads this module: it must stay cheap
if TYPE_CHECKING:
    from typing import Any

    from kdump.answers.question import LogQuestion

QUESTIONS: dict[str, str] = {
    "offsets": "kdump.answers.offsets",
    "transactions": "kdump.answers.transactions",
    "producers": "kdump.answers.producers",
    "groups": "kdump.answers.groups.collector",
    "ls": "kdump.answers.listing",
    "du": "kdump.answers.disk_usage",
    "stats": "kdump.answers.statistics",
    "retention": "kdump.answers.retention",
    "compaction": "kdump.answers.compaction.compacted_logs",
    "metadata": "kdump.answers.metadata.answer:TOPICS",
    "events": "kdump.answers.metadata.answer:EVENTS",
    "diff": "kdump.answers.replica_diff",
    "explain": "kdump.answers.explain.explanation",
}
"""Question -> ``module:CONSTANT`` of its declaration. The default constant is QUESTION."""

TABLES: dict[str, tuple[str, ...]] = {
    "offsets": ("offsets",),
    "transactions": ("transactions", "transaction_details", "transactional_ids", "replica_differences"),
    "producers": ("producers", "sequence_breaks"),
    "groups": ("groups", "group_offsets", "commits"),
    "ls": ("segment_ranges",),
    "du": ("partitions", "segments", "other_files"),
    "stats": ("stats", "record_stats", "producer_stats", "hours"),
    "retention": ("retention", "topic_configs", "topic_config_details"),
    "compaction": ("compaction", "removed_records"),
    "metadata": ("topics",),
    "events": ("events",),
    "diff": ("differences",),
    "explain": (),
}
"""Question -> the names of its SQL tables, repeated here so that a query imports only the questions it needs."""


def question_named(name: str) -> LogQuestion[Any]:
    """Import and return a question. Raises KeyError for an unknown name."""
    from importlib import import_module

    module, _, constant = QUESTIONS[name].partition(":")
    found: LogQuestion[Any] = getattr(import_module(module), constant or "QUESTION")
    return found


def table_names(question: str) -> tuple[str, ...]:
    known = TABLES.get(question)
    return tuple(table.name for table in question_named(question).tables) if known is None else known
