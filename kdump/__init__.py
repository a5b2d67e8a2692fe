"""kdump: read Apache Kafka's files on disk, with no broker and no JVM.

>>> import kdump
>>> for record in kdump.open("orders-0", since=1_700_000_000_000):  # doctest: +SKIP
...     print(record.offset, record.key, record.value)
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing takes milliseconds, and Ctrl-C during this time would show a traceback
if TYPE_CHECKING:
    from typing import Any

    from kdump import errors
    from kdump.api import (
        CheckReport,
        Log,
        LogBatch,
        LogRecord,
        SalvageReport,
        check,
        open,  # noqa: A004  as in gzip.open: called as kdump.open
        salvage,
        verify_index,
    )
    from kdump.queries.lazy_frame import scan
    from kdump.queries.result import QueryResult, sql
    from kdump.questions import (
        Answer,
        compaction,
        diff,
        disk_usage,
        du,
        events,
        explain,
        groups,
        ls,
        metadata,
        offsets,
        producers,
        retention,
        statistics,
        stats,
        transactions,
    )

__all__ = [
    "Answer",
    "CheckReport",
    "Log",
    "LogBatch",
    "LogRecord",
    "QueryResult",
    "SalvageReport",
    "check",
    "compaction",
    "diff",
    "disk_usage",
    "du",
    "errors",
    "events",
    "explain",
    "groups",
    "ls",
    "metadata",
    "offsets",
    "open",
    "producers",
    "retention",
    "salvage",
    "scan",
    "sql",
    "statistics",
    "stats",
    "transactions",
    "verify_index",
]
_OF_API = ("CheckReport", "Log", "LogBatch", "LogRecord", "SalvageReport", "check", "open", "salvage", "verify_index")
_MODULES = {
    **dict.fromkeys(_OF_API, "kdump.api"),
    "scan": "kdump.queries.lazy_frame",
    **dict.fromkeys(("QueryResult", "sql"), "kdump.queries.result"),
}
"""Public name -> its module. The module of the others is kdump.questions."""
__version__ = "0.1.0"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is first used. The command line starts faster this way."""
    if name in __all__:
        from importlib import import_module

        if name == "errors":
            return import_module("kdump.errors")
        return getattr(import_module(_MODULES.get(name, "kdump.questions")), name)
    from importlib.machinery import PathFinder

    if PathFinder.find_spec(f"kdump.{name}", __path__) is None:  # importing a submodule calls this function first
        from kdump.answers import QUESTIONS

        if name in QUESTIONS:
            from kdump.questions import function_of

            return function_of(name)
    raise AttributeError(f"module 'kdump' has no attribute {name!r}")
