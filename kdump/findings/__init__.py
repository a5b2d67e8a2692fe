"""The results of a check: findings are problems, remarks are not.

A remark never changes an exit status. Each names the one thing it is about, so that a person can look at the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from kdump.errors import ExitStatus, brief
from kdump.findings.codes import Code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Level(StrEnum):
    """How grave a finding is."""

    REMARK = "remark"
    """Worth knowing, and not wrong: padding, coverage, conventions of old releases."""
    DERIVED = "derived"
    """A file is wrong that can be rebuilt from the log."""
    LOG = "log"
    """The log itself is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One statement about one file.

    ``kind`` is the word of a :class:`~kdump.findings.codes.Code` or of damage, ``text`` a sentence for people.
    ``entry`` counts the entries of an index from 0, ``position`` is the byte in ``file`` at which the bad thing starts,
    ``offset`` an offset of the log. ``expected`` and ``found`` are the values that disagree, cut by
    :func:`kdump.errors.brief`; ``advice`` is the action. ``fatal`` is a condition with which a broker does not start,
    ``poison`` a batch that was written so that consumers stop at it: a broker and salvage keep it.
    """

    level: Level
    file: str
    kind: str
    text: str
    entry: int | None = None
    position: int | None = None
    offset: int | None = None
    expected: str | int | None = None
    found: str | int | None = None
    advice: str = ""
    fatal: bool = False
    poison: bool = False
    missing: int | None = None
    """Records that are gone already: their number, 0 where files do not have it; None: none is."""
    loses: int | None = None
    """Records that a start of the broker removes or no longer serves; 0 and None as for ``missing``."""
    commands: tuple[str, ...] = ()
    """Shell commands that mend it, in order; each works when pasted."""

    def __post_init__(self) -> None:
        """Write ``kind`` with blanks, and cut the values that disagree where they are too long to be read."""
        object.__setattr__(self, "kind", self.kind.replace("-", " "))
        for name in ("expected", "found"):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, brief(value))

    @property
    def is_remark(self) -> bool:
        """Whether nothing is wrong."""
        return self.level is Level.REMARK

    @property
    def code(self) -> str:
        """The stable code: a value of :class:`kdump.findings.codes.Code`."""
        return self.kind.replace(" ", "-")

    @property
    def is_grave(self) -> bool:
        """Whether a broker does not start, or records are missing or would be lost."""
        return self.fatal or self.missing is not None or self.loses is not None

    @property
    def is_hole(self) -> bool:
        """Whether offsets are missing from a log, and nothing more is wrong: a broker takes it."""
        return self.level is Level.LOG and is_hole(self.kind, self.file)


def remark(file: str, kind: str, text: str, **more: Any) -> Finding:
    """Return a remark; ``more`` are further fields of :class:`Finding`."""
    return Finding(level=Level.REMARK, file=file, kind=kind, text=text, **more)


METADATA_LOG: Final = "__cluster_metadata-"
"""The part that the names of all metadata log files contain."""


def is_hole(kind: str, file: str) -> bool:
    """Return whether what is wrong with a log is that offsets are missing.

    The metadata log is none of these: its replay breaks there.
    """
    return kind == Code.GAP and file.endswith(".log") and METADATA_LOG not in file


KDUMP: Final = "kdump "
"""The first words of commands that change no input."""


def of_a_copy(finding: Finding) -> Finding:
    """Return a finding on files that cannot be changed where they are, in an archive or an object store.

    Only kdump's own commands stay: the others would not run.
    """
    kept = tuple(command for command in finding.commands if command.startswith(KDUMP))
    if kept == finding.commands:
        return finding
    advice = f"{finding.advice} Extract or copy the files first: they cannot be changed where they are.".lstrip()
    return replace(finding, commands=kept, advice=advice)


def text_of(value: object) -> str | None:
    """Return an expected or found value as the text of a finding."""
    return None if value is None else str(value)


def status(findings: Iterable[Finding]) -> int:
    """Return the exit status of a check.

    3: a broker would not start, records are missing or would be lost, or a log is damaged. 4: only files are wrong that
    can be rebuilt. 0: nothing is.
    """
    found = list(findings)
    if any(finding.level is Level.LOG or finding.is_grave for finding in found):
        return ExitStatus.DAMAGED
    return ExitStatus.DERIVED if any(finding.level is Level.DERIVED for finding in found) else 0


_SALVAGE: Final = "kdump salvage "
_OUT: Final = " --out salvaged"


def salvage(words: Iterable[str]) -> str:
    """Return the command that salvages the partitions of folders, given as words of a shell's command line."""
    return f"{_SALVAGE}{' '.join(words)}{_OUT}"


def joined(commands: Sequence[str]) -> tuple[str, ...]:
    """Return commands without repetitions; salvage of several partitions is one command, since it has one output."""
    found = list(dict.fromkeys(commands))
    several = [command for command in found if command.startswith(_SALVAGE) and command.endswith(_OUT)]
    if len(several) > 1:
        folders = dict.fromkeys(command.removeprefix(_SALVAGE).removesuffix(_OUT) for command in several)
        found[found.index(several[0])] = f"{_SALVAGE}{' '.join(folders)}{_OUT}"
        found = [command for command in found if command not in several[1:]]
    return tuple(found)


def is_salvage(command: str) -> bool:
    """Return whether a command is the one that :func:`salvage` returns."""
    return command.startswith(_SALVAGE)


MAY_HAVE: Final = "Another replica may have them."
TAKE_IT: Final = "With the broker stopped, take it from another replica of the partition."
TAKE_PARTITION: Final = "The loader of this topic fails at it or skips it: take the partition from another replica."
ALONE: Final = "The partition has one replica: no other broker has them. Look for a backup or the disk."
_ALONE: Final = {
    MAY_HAVE: ALONE,
    TAKE_IT: "The partition has one replica: with the broker stopped, take the file from a backup.",
    TAKE_PARTITION: "The loader of this topic fails at it or skips it. The partition has one replica: take it from "
    "a backup.",
}
"""Advice that names another replica -> advice for a partition with one replica."""


def of_one_replica(finding: Finding) -> Finding:
    """Return a finding on a partition that has one replica: its advice does not name another."""
    advice = _ALONE.get(finding.advice)
    return finding if advice is None else replace(finding, advice=advice)
