"""The answers to questions about log dirs, and the registry of the questions.

Each front reads the registry: the command, the Python function, the output of the Spark source, the section of the
report, the views of SQL and the tool of the MCP server. A new question is one module with a
:class:`~kdump.answers.question.LogQuestion`, and its line in :data:`QUESTIONS`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # a start imports this package for the names alone
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
"""The questions by name, in the order of every list; the module of each, where not ``QUESTION`` with the constant."""


def question_named(name: str) -> LogQuestion[Any]:
    """Import and return a question. Raises KeyError for an unknown name."""
    from importlib import import_module

    module, _, constant = QUESTIONS[name].partition(":")
    found: LogQuestion[Any] = getattr(import_module(module), constant or "QUESTION")
    return found
