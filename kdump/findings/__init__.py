"""The results of a check (:class:`Finding`), their exit status, and the texts of their advice and commands.

A finding is a problem or a remark. A remark never changes the exit status. :mod:`.codes` lists all kinds of findings.
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import count
from posixpath import basename, exists
from typing import Any, Final, NamedTuple, cast

from kdump.errors import ExitStatus, brief
from kdump.findings.codes import Code


class Level(StrEnum):
    REMARK = "remark"
    """A note without effect on the exit status: padding, leftover files, open transactions."""
    DERIVED = "derived"
    """A wrong file that can be rebuilt from the log, or another fault that costs no records, such as a wrong name."""
    LOG = "log"
    """Any other problem: a damaged log, missing records, or a wrong file or folder that a start depends on."""


def _brief(value: str | int | None) -> str | int | None:
    return cast("str", brief(value)) if isinstance(value, str) else value


class _FindingFields(NamedTuple):
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
    """The number of records that the log lacks (a stray folder may have them): 0 if unknown, None if there are none."""
    loses: int | None = None
    """The number of records that a start removes or stops serving: 0 if unknown, None if there are none."""
    commands: tuple[str, ...] = ()
    """Shell commands for the problem, in order. A label (:func:`labelled`) is the condition of its command."""


class Finding(_FindingFields):
    """A finding on one file or folder.

    ``kind`` is a :class:`~kdump.findings.codes.Code` with blanks in place of hyphens; ``text`` is a sentence for
    people. ``entry`` is the number of an index entry, from 0. ``position`` is the first faulty byte in ``file``.
    ``offset`` is an offset of the log. ``expected`` and ``found`` are the values that differ, texts shortened by
    :func:`kdump.errors.brief`. ``advice`` is the action to take. ``fatal``: the problem prevents a broker's start.
    ``poison``: consumers stop at this batch, but a broker and salvage keep the batch.
    """

    __slots__ = ()

    def __new__(  # noqa: PLR0913  the fields
        cls,
        *,
        level: Level,
        file: str,
        kind: str,
        text: str,
        entry: int | None = None,
        position: int | None = None,
        offset: int | None = None,
        expected: str | int | None = None,
        found: str | int | None = None,
        advice: str = "",
        fatal: bool = False,
        poison: bool = False,
        missing: int | None = None,
        loses: int | None = None,
        commands: tuple[str, ...] = (),
    ) -> "Finding":
        return super().__new__(
            cls,
            level,
            file,
            kind.replace("-", " "),
            text,
            entry,
            position,
            offset,
            _brief(expected),
            _brief(found),
            advice,
            fatal,
            poison,
            missing,
            loses,
            commands,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return self._make, (tuple(self),)

    @property
    def is_remark(self) -> bool:
        return self.level is Level.REMARK

    @property
    def code(self) -> str:
        """The stable code: a value of :class:`kdump.findings.codes.Code`."""
        return self.kind.replace(" ", "-")

    @property
    def is_grave(self) -> bool:
        """Whether the problem prevents a broker's start, or records are missing or would be lost."""
        return self.fatal or self.missing is not None or self.loses is not None

    @property
    def is_hole(self) -> bool:
        """Whether the only problem is missing offsets: a broker accepts such a log."""
        return self.level is Level.LOG and is_hole(self.kind, self.file)


def remark(file: str, kind: str, text: str, **more: Any) -> Finding:
    """Return a remark; ``more`` are further fields of :class:`Finding`."""
    return Finding(level=Level.REMARK, file=file, kind=kind, text=text, **more)


METADATA_LOG: Final = "__cluster_metadata-"


def is_hole(kind: str, file: str) -> bool:
    """Return whether a finding reports missing offsets, except in the metadata log, whose replay fails at a gap."""
    return kind == Code.GAP and file.endswith(".log") and METADATA_LOG not in file


KDUMP: Final = "kdump "
"""The first word of kdump's own commands: they change no input."""
_SHOW: Final = "ls -l "


def of_a_copy(finding: Finding) -> Finding:
    """Drop commands other than kdump's own from a finding on archived or stored files. If any, advise a copy."""
    kept = tuple(command for command in finding.commands if label_of(command)[1].startswith(KDUMP))
    if kept == finding.commands:
        return finding
    advice = f"{finding.advice} Extract or copy the files first: they cannot be changed where they are.".lstrip()
    return finding._replace(commands=kept, advice=advice)


def text_of(value: object) -> str | None:
    return None if value is None else str(value)


def status(findings: Iterable[Finding]) -> int:
    """Return the exit status: 3 for damage, losses or a failing start, 4 if only derived files are wrong, else 0."""
    found = list(findings)
    if any(finding.level is Level.LOG or finding.is_grave for finding in found):
        return ExitStatus.DAMAGED
    return ExitStatus.DERIVED if any(finding.level is Level.DERIVED for finding in found) else 0


METADATA_FOLDER: Final = f"{METADATA_LOG}0"
_SALVAGE: Final = "kdump salvage "
_IN_LOG_DIR: Final = ("meta.properties", "recovery-point-offset-checkpoint")
_IN_PARTITION: Final = ("partition.metadata", "leader-epoch-checkpoint")


def salvage_output() -> str:
    """Return the output folder of the printed ``kdump salvage``. It does not exist: ``salvaged``, ``salvaged-2`` ...

    If the current folder is a log dir or partition folder, it is above: a broker refuses foreign folders in a log dir.
    """
    above = 1 if any(map(exists, _IN_LOG_DIR)) else 2 if any(map(exists, _IN_PARTITION)) else 0
    out = "../" * above + "salvaged"
    return next(path for number in count(1) if not exists(path := out if number == 1 else f"{out}-{number}"))


def salvage(words: Iterable[str]) -> str:
    """Return the shell command that salvages partition folders. ``words`` are their paths, quoted for a shell."""
    return f"{_SALVAGE}{' '.join(words)} --out {salvage_output()}"


NOT_SALVAGEABLE: Final = frozenset({Code.OFFSET_TOO_HIGH, Code.RECORDS_MISSING})
"""Codes of faults that kdump salvage does not remove. It also keeps batches with ``poison`` findings."""


def salvageable(folders: Iterable[str]) -> list[str]:
    """Return the partition folders without that of the metadata log: a controller needs all changes of this log."""
    return [each for each in folders if basename(each) != METADATA_FOLDER]


def joined(commands: Sequence[str]) -> tuple[str, ...]:
    """Return commands without repetitions. Salvage commands without a label become one command with one output."""
    found = list(dict.fromkeys(commands))
    out = f" --out {salvage_output()}"
    several = [command for command in found if command.startswith(_SALVAGE) and command.endswith(out)]
    if len(several) > 1:
        folders = dict.fromkeys(command.removeprefix(_SALVAGE).removesuffix(out) for command in several)
        found[found.index(several[0])] = f"{_SALVAGE}{' '.join(folders)}{out}"
        found = [command for command in found if command not in several[1:]]
    return tuple(found)


_LABELLED: Final = r"(?s): '((?:[^']|'\\'')*)' && (.*)"


def labelled(label: str, command: str) -> str:
    """Return a command with the condition under which to run it. A shell ignores the label."""
    text = label.replace("'", r"'\''")
    return f": '{text}' && {command}"


def label_of(command: str) -> tuple[str, str]:
    """Return the label of a command, or "", and the command without it."""
    found = re.fullmatch(_LABELLED, command)
    return ("", command) if found is None else (found[1].replace(r"'\''", "'"), found[2])


def changes_files(command: str) -> bool:
    return not label_of(command)[1].startswith((KDUMP, _SHOW))


def is_salvage(command: str) -> bool:
    return command.startswith(_SALVAGE)


MAY_HAVE: Final = "Another replica may have the missing records."
TAKE_IT: Final = "With the broker stopped, take the file from another replica of the partition."
TAKE_SEGMENT: Final = (
    "With the broker stopped, move the file away, and take the segment from a backup or from another replica."
)
TAKE_PARTITION: Final = (
    "The broker that loads this topic fails at the record or skips it: take the partition from another replica."
)
TAKE_UNDAMAGED: Final = (
    "Salvage cannot correct the offset. With the broker stopped, take the partition from another replica or from a "
    "backup."
)
ONLY_A_COPY: Final = "Only a copy can restore them: "
ALONE: Final = "The partition has one replica: no other broker has the records. Look for a backup or the lost disk."
_ALONE: Final = {
    TAKE_SEGMENT: "The partition has one replica: with the broker stopped, move the file away, and take the segment "
    "from a backup.",
    MAY_HAVE: ALONE,
    TAKE_UNDAMAGED: "Salvage cannot correct the offset. The partition has one replica: with the broker stopped, take "
    "the partition from a backup.",
    TAKE_IT: "The partition has one replica: with the broker stopped, take the file from a backup.",
    TAKE_PARTITION: "The broker that loads this topic fails at the record or skips it. The partition has one replica: "
    "take the partition from a backup.",
}
"""Advice that names another replica -> advice for a partition with one replica."""


def of_one_replica(finding: Finding) -> Finding:
    advice = _ALONE.get(finding.advice)
    return finding if advice is None else finding._replace(advice=advice)
