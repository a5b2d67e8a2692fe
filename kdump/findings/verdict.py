"""Makes the verdict on one broker from findings: whether to start it, the records that a start loses, and commands."""

from __future__ import annotations

from posixpath import basename
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import first_of, many, many_are
from kdump.findings import Level, joined
from kdump.findings.codes import Code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.findings import Finding

SHOWN: Final = 3
NO_START_TEXT: Final = "a broker does not start: "
DAMAGED: Final = " damaged: "
MISSING: Final = "offsets are missing in "
CAN_BE_REBUILT: Final = " can be rebuilt"
NOT_KNOWN: Final = "it is unknown what a start would lose"
"""Parts of a verdict's sentence. A report finds the sentences that repeat the verdict by these parts."""
OPEN: Final = Code.METADATA_ELSEWHERE
"""The code of a finding that leaves the result of a start unknown."""
HELD: Final = Code.ONLY_COPY_IS_STRAY
"""The code for records that only a stray folder holds. The commands of the finding restore them."""
FORGOTTEN: Final = Code.METADATA_LOG_MISSING
"""The code of a finding with which a start makes every partition stray."""
RESTORE_FIRST: Final = "; restore the metadata log first"
OF_SEVERAL: Final = Code.CLUSTER_ID
"""The code of the finding that log dirs belong to several brokers. Each of these brokers starts."""


class StartVerdict(NamedTuple):
    """The verdict on one broker: a line for people, and shell commands in order.

    ``is_decided`` is False if no problem was found, but the files do not show whether the broker starts. ``is_safe`` is
    False then too, and if a start loses records, records are missing, or a log is damaged.
    """

    text: str
    commands: tuple[str, ...]
    is_safe: bool
    is_decided: bool = True


def verdict(
    findings: Sequence[Finding], broker: str = "the broker", *, starts: bool | None = True, why: str = ""
) -> StartVerdict:
    """Return the verdict on one broker. If ``starts`` is None (unknown), ``why`` is the reason."""
    grave = [finding for finding in findings if finding.is_grave]
    commands = joined([command for finding in grave for command in finding.commands])
    findings = [finding for finding in findings if finding.code != OF_SEVERAL or finding.fatal]
    fatal = [finding for finding in findings if finding.fatal]
    if fatal:
        others = len({finding.file for finding in fatal}) - 1
        more = f" (and {many(others, 'other reason')})" if others else ""
        text = fatal[0].text.removeprefix(NO_START_TEXT)
        return StartVerdict(f"DO NOT START {broker}: {fatal[0].file}: {text}{more}", commands, False)
    loses = [finding for finding in findings if finding.loses is not None]
    missing = [finding for finding in findings if finding.missing is not None and finding.code != HELD]
    held = [finding for finding in findings if finding.missing is not None and finding.code == HELD]
    wait = f"DO NOT START {broker} yet: "
    if loses or missing or held:
        first = RESTORE_FIRST if any(finding.code == FORGOTTEN for finding in loses) else ""
        return StartVerdict(f"{wait}{_lost(loses, missing, held)}{first}", commands, False)
    unsure = next((finding for finding in findings if finding.code == OPEN and finding.level is Level.LOG), None)
    if unsure is not None:
        return StartVerdict(f"{wait}{unsure.file}: {unsure.text}", commands, False)
    unknown = f"the files do not show whether {broker} starts"
    if of_logs := [finding for finding in findings if finding.level is Level.LOG]:
        damaged = [finding for finding in of_logs if not finding.is_hole]
        files = len({finding.file for finding in damaged or of_logs})
        if damaged:
            text = f"{wait}{many_are(files, 'log file')}{DAMAGED}"
        else:
            text = f"{f'{broker} starts' if starts else unknown}, but {MISSING}{many(files, 'log file')}: "
        return StartVerdict(f"{text}{_first(damaged or of_logs)}", commands, False)
    if starts is None:
        return StartVerdict(f"nothing is lost here, but {unknown}{why}", commands, False, is_decided=False)
    derived = [finding for finding in findings if finding.level is Level.DERIVED]
    if derived:
        wrong = many(len({finding.file for finding in derived}), "file")
        return StartVerdict(f"safe to start {broker}: no record is lost; {wrong}{CAN_BE_REBUILT}", commands, True)
    return StartVerdict(f"safe to start {broker}: nothing is lost", commands, True)


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
