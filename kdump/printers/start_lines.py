"""A dry start as JSON: a ``start`` line per broker, a ``startLog`` line per partition folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.primitives.terminal import path_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.broker_start.outcome import BrokerStart, LogStart, StartCause

VERSION: Final = 1


def start_lines(start: BrokerStart) -> Iterator[dict[str, object]]:
    """Yield the lines of one broker: its own, then one for each of its logs."""
    yield {
        "kind": "start",
        "version": VERSION,
        "release": start.release,
        "nodeId": start.node_id,
        "clusterId": _text(start.cluster_id),
        "logDirs": [path_text(path) for path in start.log_dirs],
        "starts": start.starts,
        "fatal": [_cause(cause) for cause in start.fatal],
        "offlineLogDirs": [path_text(path) for path in start.offline_log_dirs],
        "unknown": [_cause(cause) for cause in start.unknown],
    }
    for log in start.logs:
        yield _log(log)


def _log(log: LogStart) -> dict[str, object]:
    return {
        "kind": "startLog",
        "version": VERSION,
        "topic": _text(log.topic),
        "partition": log.partition,
        "folder": _text(log.folder),
        "logDir": _text(log.log_dir),
        "outcome": log.outcome,
        "logStartOffset": log.log_start_offset,
        "logEndOffset": log.log_end_offset,
        "causes": [_cause(cause) for cause in log.causes],
    }


def _cause(cause: StartCause) -> dict[str, object]:
    return {"code": cause.code, "file": _text(cause.file), "text": path_text(cause.text)}


def _text(value: str | None) -> str | None:
    return None if value is None else path_text(value)
