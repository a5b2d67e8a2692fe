"""The options of a dry start, ``--release`` and ``--config``, and the log dirs that it is about."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from kdump.errors import StoreError, UnreadableError, UsageError
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.local import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kdump.broker_start.outcome import BrokerStart
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.finder import Wanted
    from kdump.log_dirs.partition import Partition


def _release(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    if name is not None:
        from kdump.dump_log_segments.dialects.release_numbers import known_release  # most runs name none

        known_release(name)
    return name


def _configs(_: click.Context, __: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--config {pair}: expected KEY=VALUE, as in node.id=1")
        found[name.strip()] = value.strip()
    node_id(found)
    return found


def node_id(configs: Mapping[str, str]) -> int | None:
    """Return the node.id of configs, None without one. Raises UsageError where it is no number."""
    given = configs.get("node.id", configs.get("broker.id"))
    if given is None:
        return None
    if not given.isdecimal():
        raise UsageError(f"--config node.id={given}: a whole number is expected")
    return int(given)


START: Final[list[Callable[[Callable[..., Any]], Callable[..., Any]]]] = [
    click.option(
        "--release",
        metavar="R",
        callback=_release,
        help="Release of the broker that would start: 3.9.2, 4.3. Default: the newest that kdump knows.",
    ),
    click.option(
        "--config",
        "configs",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_configs,
        help="A line of its server.properties. With node.id=N the PATHs are the log.dirs of this one broker.",
    ),
]
"""Options of the commands that work out a start."""
LOG_DIR_FILES: Final = frozenset(
    {
        file_names.META_PROPERTIES,
        file_names.CLEAN_SHUTDOWN,
        file_names.RECOVERY_POINTS,
        file_names.HIGH_WATERMARKS,
        file_names.LOG_STARTS,
        file_names.CLEANER_OFFSETS,
        file_names.BOOTSTRAP_SNAPSHOT,
    }
)


def log_dirs(
    paths: tuple[str, ...], partitions: Iterable[Partition], configs: Mapping[str, str]
) -> list[tuple[Files, str]]:
    """Return the log dirs that a start is about: with a node.id all PATHs, else those that lie in the PATHs."""
    if node_id(configs) is not None:
        return [place for path in paths for place in _place(path)]
    given = [os.path.abspath(path) for path in paths]  # noqa: PTH100  pathlib is slow to import
    found: dict[tuple[Files, str], None] = {}
    for part in partitions:
        path = part.folder if part.topic is None else part.log_dir
        if (part.files, path) in found:
            continue
        if part.files is LOCAL and not any(_holds(each, os.path.abspath(path or ".")) for each in given):  # noqa: PTH100  pathlib is slow to import
            continue
        try:
            names = {entry.name for entry in part.files.entries(path or ("." if part.files is LOCAL else ""))}
        except StoreError:
            raise
        except UnreadableError:
            continue
        if names & LOG_DIR_FILES:
            found[part.files, path] = None
    return list(found)


def _place(path: str) -> Iterator[tuple[Files, str]]:
    from kdump.log_dirs.remote import as_written, places

    for files, inside in places([path], as_written):
        for each in inside:
            yield files, each


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def searchable(paths: tuple[str, ...], configs: Mapping[str, str]) -> tuple[str, ...]:
    """Return the PATHs to look for partitions in: of a broker's log dirs those that are folders."""
    if node_id(configs) is None:
        return paths
    return tuple(path for path in paths if "://" in path or os.path.isdir(path))  # noqa: PTH112  pathlib is slow


def starts(
    places: Sequence[tuple[Files, str]],
    name: str | None,
    configs: Mapping[str, str],
    known: Mapping[str, int],
    wanted: Wanted,
) -> Iterator[BrokerStart]:
    """Yield a start of each broker whose log dirs are given; of its logs those of the topics that are wanted.

    ``name`` is the release (None: the newest), ``known`` the next offset of each valid log, by the folder's
    path as shown.
    """
    if not places:
        return
    from kdump.broker_start import release  # what is no log dir needs none
    from kdump.broker_start.start import StartOptions, brokers, dry_start

    options = StartOptions(release.of(name or release.NEWEST), configs, node_id(configs), wanted.max_batch_bytes)
    for broker in brokers(places, options):
        found = dry_start(broker, options, known)
        if wanted.is_choosy:
            found = replace(
                found, logs=tuple(log for log in found.logs if wanted.takes(Name(log.topic, log.partition)))
            )
        yield found
