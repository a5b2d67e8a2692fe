"""Makes the verdict on one broker from findings: whether to start it, the records that a start loses, and commands."""

from __future__ import annotations

import re
from posixpath import basename, dirname, normpath
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from kdump.errors import first_of, many, many_are
from kdump.findings import ALONE, MAY_HAVE, NO_COMMAND, Level, changes_files, joined
from kdump.findings.codes import Code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kdump.findings import Finding

SHOWN: Final = 3
NO_START_TEXT: Final = "a broker does not start: "
OPEN: Final = Code.METADATA_ELSEWHERE
"""The code of a finding that leaves the result of a start unknown."""
HELD: Final = Code.ONLY_COPY_IS_STRAY
"""The code for records that only a stray folder holds. The commands of the finding restore them."""
FORGOTTEN: Final = Code.METADATA_LOG_MISSING
"""The code of a finding after which a start makes every partition stray."""
RESTORE_FIRST: Final = "; restore the metadata log first"
OF_SEVERAL: Final = Code.CLUSTER_ID
"""The code of the finding that log dirs belong to several brokers. It does not prevent the start of any of them."""

START: Final = "kafka-server-start.sh server.properties"
ALL_DIRS: Final = (
    "Run kdump check again with all log dirs of the broker: those of log.dirs and metadata.log.dir in its "
    "server.properties."
)
OF_DAMAGE: Final = (
    "Then put the salvaged folder in the place of the damaged one, or start the broker with the damaged one "
    f"({START}): the notes above say what it truncates."
)


Outcome: TypeAlias = Literal[
    "no-start", "lost", "open", "damaged", "missing", "unread", "unknown", "rebuilt", "safe", "several"
]
"""The outcome of a verdict, for scripts and the report. The first that fits counts:

- ``no-start``: the broker does not start;
- ``lost``: a start loses records, or does not serve records that are missing or in stray folders;
- ``open``: records may be lost, but the metadata log that decides this is not in the paths (METADATA_ELSEWHERE);
- ``damaged``: a log is damaged;
- ``missing``: offsets are missing from a log whose batches are all valid;
- ``unread``: a file or folder could not be read;
- ``unknown``: nothing is lost, but the files do not show whether the broker starts;
- ``rebuilt``: safe to start; files beside the logs are wrong and can be rebuilt;
- ``safe``: safe to start;
- ``several``: the log dirs belong to several brokers. A verdict on each of them follows.
"""


class StartVerdict(NamedTuple):
    """The verdict on one broker: a line for people, its outcome, and shell commands in order."""

    text: str
    outcome: Outcome
    commands: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    """Sentences for people on the steps after the commands, in order."""


def verdict(
    findings: Sequence[Finding],
    broker: str = "the broker",
    *,
    starts: bool | None = True,
    why: str = "",
    copies: Mapping[str, str] | None = None,
) -> StartVerdict:
    """Return the verdict on one broker. If ``starts`` is None (unknown), ``why`` is the reason.

    ``copies``: log dir -> the command that copies it. Those of the log dirs that other commands change come first.
    :mod:`kdump.broker_start.started` adds the outcomes ``unread`` and ``several``.
    """
    grave = [finding for finding in findings if finding.is_grave]
    commands = joined([command for finding in grave for command in finding.commands])
    commands = (*dict.fromkeys(_copies(grave, copies or {})), *commands)
    findings = [finding for finding in findings if finding.code != OF_SEVERAL]
    fatal = [finding for finding in findings if finding.fatal]
    if fatal:
        others = len({finding.file for finding in fatal}) - 1
        more = f" (and {many(others, 'other reason')})" if others else ""
        text = fatal[0].text.removeprefix(NO_START_TEXT)
        return StartVerdict(f"DO NOT START {broker}: {fatal[0].file}: {text}{more}", "no-start", commands)
    loses = [finding for finding in findings if finding.loses is not None]
    missing = [finding for finding in findings if finding.missing is not None and finding.code != HELD]
    held = [finding for finding in findings if finding.missing is not None and finding.code == HELD]
    wait = f"DO NOT START {broker} yet: "
    if loses or missing or held:
        first = RESTORE_FIRST if any(finding.code == FORGOTTEN for finding in loses) else ""
        later = tuple(_later(missing, has_commands=bool(commands)))
        return StartVerdict(f"{wait}{_lost(loses, missing, held)}{first}", "lost", commands, later)
    unsure = next((finding for finding in findings if finding.code == OPEN and finding.level is Level.LOG), None)
    if unsure is not None:
        return StartVerdict(f"{wait}{unsure.file}: {unsure.text}", "open", commands, (ALL_DIRS,))
    unknown = f"the files do not show whether {broker} starts"
    if of_logs := [finding for finding in findings if finding.level is Level.LOG]:
        damaged = [finding for finding in of_logs if not finding.is_hole]
        files = len({finding.file for finding in damaged or of_logs})
        if damaged:
            return StartVerdict(
                f"{wait}{many_are(files, 'log file')} damaged: {_first(damaged)}", "damaged", commands, (OF_DAMAGE,)
            )
        text = f"{f'{broker} starts' if starts else unknown}, but offsets are missing in {many(files, 'log file')}"
        return StartVerdict(f"{text}: {_first(of_logs)}", "missing", commands)
    if starts is None:
        return StartVerdict(f"a start loses no record, but {unknown}{why}", "unknown", commands, (ALL_DIRS,))
    derived = [finding for finding in findings if finding.level is Level.DERIVED]
    if derived:
        wrong = many(len({finding.file for finding in derived}), "file")
        return StartVerdict(f"safe to start {broker}: no record is lost; {wrong} can be rebuilt", "rebuilt", commands)
    return StartVerdict(f"safe to start {broker}: nothing is lost", "safe", commands)


def _copies(grave: Sequence[Finding], copies: Mapping[str, str]) -> Iterator[str]:
    """Yield the commands that copy the log dirs of findings whose commands change files."""
    for finding in grave:
        if not any(map(changes_files, finding.commands)):
            continue
        file = normpath(finding.file)
        for log_dir, command in sorted(copies.items(), key=lambda each: -len(each[0])):
            path = normpath(log_dir)
            if path in {".", file} or file.startswith(f"{path.rstrip('/')}/"):
                yield command
                break


def _later(missing: Sequence[Finding], *, has_commands: bool) -> Iterator[str]:
    """Yield the steps for missing records: how to restore them, and what a start without them does."""
    if any(finding.code == Code.LOG_DIR_MISSING for finding in missing):
        yield ALL_DIRS
        yield (
            f"Only if the missing log dir is lost: start the broker ({START}). It creates its partitions empty, and "
            "fetches the records of those that have another replica. All other records of that log dir are lost."
        )
        return
    missing = [finding for finding in missing if any(text in finding.advice for text in (ALONE, MAY_HAVE, NO_COMMAND))]
    if not missing:
        return
    yield f"For records that are missing{' after the commands' if has_commands else ''}:"
    yield (
        "- If a backup or a lost disk has them: move away what is left of the partition's folder, copy the folder from "
        "there into the log dir, and run kdump check again."
    )
    if not all(ALONE in finding.advice for finding in missing):
        yield (
            "- If another broker has them: start that broker first. When it is the leader of the partition "
            "(kafka-topics.sh --describe), start this broker: it fetches the records from the leader."
        )
    names = list(dict.fromkeys(_partition(finding.file) for finding in missing))
    yield (
        f"- If nothing has them: start the broker ({START}). {_sum(missing, 'missing').capitalize()} of "
        f"{first_of(names, SHOWN)} are then lost for good, and new records get their offsets."
    )


def _partition(file: str) -> str:
    name = basename(file)
    return name if re.search(r"-\d+$", name) else basename(dirname(file))


def _lost(loses: Sequence[Finding], missing: Sequence[Finding], held: Sequence[Finding]) -> str:
    """Return a text on the records that a start loses, those already missing, and those in stray folders."""
    parts = []
    if loses:
        parts.append(f"a start loses {_sum(loses, 'loses')}: {_first(loses)}")
    if missing and loses:
        parts.append(f"{_are(missing)} missing already: {_most(missing).file}")
    elif missing:
        parts.append(f"{_are(missing)} missing: {_first(missing)}")
    if held:
        parts.append(_held(held))
    return "; ".join(parts)


def _held(findings: Sequence[Finding]) -> str:
    """Return the sentence on records in stray folders, which a broker does not serve."""
    names = list(dict.fromkeys(basename(finding.file).rpartition(".")[0] for finding in findings))
    shown = first_of(names, SHOWN)
    how = "the commands below restore them"
    if not all(finding.commands for finding in findings):
        how = "stray folders in these log dirs hold them"
    return f"a start does not serve {_sum(findings, 'missing')} of {shown}: {how}"


def _sum(findings: Sequence[Finding], name: str) -> str:
    total = sum(getattr(finding, name) for finding in findings)
    return "records" if not total else f"{total:,} records" if total > 1 else "1 record"


def _are(missing: Sequence[Finding]) -> str:
    total = sum(finding.missing or 0 for finding in missing)
    return f"{_sum(missing, 'missing')} {'is' if total == 1 else 'are'}"


def _most(findings: Sequence[Finding]) -> Finding:
    return max(findings, key=lambda finding: (finding.loses or 0) + (finding.missing or 0))


def _first(findings: Sequence[Finding]) -> str:
    first = _most(findings)
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return f"{first.file}: {first.text}{more}"
