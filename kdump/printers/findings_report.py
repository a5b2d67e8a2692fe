"""Findings and remarks: JSON lines for machines, plain text for people and pipes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, BinaryIO, Final, Protocol

from kdump.findings import Level, many
from kdump.primitives.terminal import harmless_line, path_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.findings import Finding

VERSION: Final = 1
"""The version of the lines in ``kdump/findings.schema.json``: a new optional name keeps it, other changes raise it."""
COMMONPLACE: Final = frozenset({"convention", "empty", "zero tail", "absent"})
"""Remarks that healthy files get in large numbers: people get their count, and the text where they ask for it."""
UNREADABLE: Final = 1
SHOWN: Final = 10
"""Damaged partitions that the conclusion names."""
MOST: Final = 20
"""Findings of one file that are written out for people."""
WORDS: Final = {Level.REMARK: "note", Level.DERIVED: "WRONG", Level.LOG: "DAMAGED"}


@dataclass
class CheckSummary:
    """What a check went through and found; ``size`` is that of the log in bytes."""

    segments: int = 0
    batches: int = 0
    size: int = 0
    levels: Counter[Level] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    """The folders of the partitions whose log is damaged."""
    commonplace: Counter[str] = field(default_factory=Counter)

    def add(self, findings: Sequence[Finding], folder: str = "") -> None:
        """Count what was found in the partition of ``folder``."""
        if folder and any(finding.level is Level.LOG for finding in findings):
            self.damaged.append(folder)
        for finding in findings:
            self.levels[finding.level] += 1
            if finding.is_remark and finding.kind in COMMONPLACE:
                self.commonplace[finding.kind] += 1

    @property
    def findings(self) -> int:
        """How many findings there are, remarks not among them."""
        return self.levels[Level.DERIVED] + self.levels[Level.LOG]


class Report(Protocol):
    """An ending of a check. Only files with something to say are told to it."""

    def file(self, name: str, findings: Sequence[Finding]) -> None: ...
    def end(self, summary: CheckSummary, status: int) -> None: ...


class JsonReport:
    """One object per line: findings and remarks, and a summary at the end."""

    def __init__(self, out: BinaryIO, *, quiet: bool = False) -> None:
        """``quiet`` leaves out remarks and the summary."""
        self._out = out
        self._quiet = quiet

    def file(self, name: str, findings: Sequence[Finding]) -> None:  # noqa: ARG002  each finding names its file
        for finding in findings:
            if self._quiet and finding.is_remark:
                continue
            fields = asdict(finding)
            check = fields.pop("kind")
            kind = "remark" if finding.is_remark else "finding"
            self._line({"kind": kind, "version": VERSION, "check": check, **fields})

    def end(self, summary: CheckSummary, status: int) -> None:
        if self._quiet:
            return
        self._line(
            {
                "kind": "summary",
                "version": VERSION,
                "segments": summary.segments,
                "batches": summary.batches,
                "logBytes": summary.size,
                "findings": summary.findings,
                "remarks": summary.levels[Level.REMARK],
                "status": status,
            }
        )

    def _line(self, line: dict[str, object]) -> None:
        texts = {name: path_text(value) for name, value in line.items() if isinstance(value, str)}  # they name files
        self._out.write(json.dumps({**line, **texts}, ensure_ascii=False).encode() + b"\n")


class PlainReport:
    """Text without colours: a block for each file that has something to say."""

    def __init__(self, out: IO[str], *, quiet: bool = False, remarks: bool = False) -> None:
        """``quiet`` leaves out remarks and the summary; ``remarks`` writes out the commonplace ones too."""
        self._out = out
        self._quiet = quiet
        self._remarks = remarks

    def file(self, name: str, findings: Sequence[Finding]) -> None:
        shown = choose(findings, quiet=self._quiet, remarks=self._remarks)
        if not shown:
            return
        self._say(name)
        for finding in shown[:MOST]:
            self._say(f"  {WORDS[finding.level]:7} {place(finding)}{finding.text}")
            if finding.expected is not None or finding.found is not None:
                self._say(f"          {values(finding)}")
        if len(shown) > MOST:
            self._say(f"  ... and {len(shown) - MOST} more (--json writes them all)")
        for advice in dict.fromkeys(finding.advice for finding in shown if finding.advice):
            self._say(f"  what to do: {advice}")

    def end(self, summary: CheckSummary, status: int) -> None:
        if not self._quiet:
            for text in conclusion(summary, status):
                self._say(text)

    def _say(self, text: str) -> None:
        self._out.write(harmless_line(text) + "\n")


def choose(findings: Sequence[Finding], *, quiet: bool, remarks: bool) -> list[Finding]:
    """Return what people want to read of one file, the worst first."""
    order = list(WORDS)[::-1]
    shown = [
        finding
        for finding in findings
        if not finding.is_remark or (not quiet and (remarks or finding.kind not in COMMONPLACE))
    ]
    return sorted(shown, key=lambda finding: order.index(finding.level))


def place(finding: Finding) -> str:
    """Return where a finding stands in its file."""
    return "" if finding.position is None else f"byte {finding.position}: "


def values(finding: Finding) -> str:
    """Return the two values that disagree."""
    told = [("expected", finding.expected), ("found", finding.found)]
    return ", ".join(f"{what} {value}" for what, value in told if value is not None)


def conclusion(summary: CheckSummary, status: int) -> list[str]:
    """Return what was gone through, how it went, and what to do next. ``status`` is the exit status."""
    findings, remarks = summary.findings, summary.levels[Level.REMARK]
    verdict = many(findings, "finding") if findings else "nothing is wrong"
    if status == UNREADABLE:
        verdict = f"{verdict} there, and something could not be read" if summary.segments else "nothing could be read"
    batches, size = many(summary.batches, "batch", "batches"), many(summary.size, "byte")
    through = f"{many(summary.segments, 'segment')}, {batches}, {size} of log"
    lines = [f"{through}: {verdict}"]
    if remarks:
        of = ", ".join(f"{count} {kind}" for kind, count in sorted(summary.commonplace.items()))
        lines.append(f"{many(remarks, 'remark')}{f' ({of}; --remarks writes them out)' if of else ''}")
    if summary.damaged:
        shown = ", ".join(summary.damaged[:SHOWN]) + (", ..." if len(summary.damaged) > SHOWN else "")
        lines.append(f"Damaged: {many(len(summary.damaged), 'partition')}: {shown}")
        lines.append(
            "What to do next: keep the broker stopped and a copy of these folders; then kdump salvage gets the sound "
            "batches out, of several replicas together what any of them has."
        )
    elif summary.levels[Level.DERIVED]:
        lines.append("No log is damaged: what is wrong can be made anew, as said above.")
    return lines
