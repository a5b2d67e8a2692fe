"""kdump: read Apache Kafka's files on disk, with no broker and no JVM.

>>> import kdump
>>> for record in kdump.open("orders-0", since=1_700_000_000_000):  # doctest: +SKIP
...     print(record.offset, record.key, record.value)
"""

from __future__ import annotations

TYPE_CHECKING = False  # the module typing takes some milliseconds, in which Ctrl-C would show a traceback
if TYPE_CHECKING:
    from typing import Any

    from kdump.api import Log, LogBatch, LogRecord, open  # noqa: A004  as in gzip.open: called as kdump.open
    from kdump.questions import (
        Answer,
        compaction,
        diff,
        disk_usage,
        events,
        explain,
        groups,
        metadata,
        offsets,
        producers,
        retention,
        statistics,
        transactions,
    )

__all__ = [
    "Answer",
    "Log",
    "LogBatch",
    "LogRecord",
    "compaction",
    "diff",
    "disk_usage",
    "events",
    "explain",
    "groups",
    "metadata",
    "offsets",
    "open",
    "producers",
    "retention",
    "statistics",
    "transactions",
]
_OF_API = ("Log", "LogBatch", "LogRecord", "open")
__version__ = "0.1.0"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import what users of the library need when they ask for it: the command line starts without it."""
    if name in _OF_API:
        from kdump import api

        return getattr(api, name)
    if name in __all__:
        from kdump import questions

        return getattr(questions, name)
    raise AttributeError(f"module 'kdump' has no attribute {name!r}")
