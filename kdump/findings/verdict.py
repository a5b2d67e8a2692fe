"""Makes the verdict on one broker from findings: whether to start it, the records that a start loses, and commands."""

import re
from collections.abc import Callable, Iterator, Sequence
from posixpath import basename, dirname, normpath
from typing import Final, Literal, NamedTuple, TypeAlias

from kdump.errors import first_of, many, many_are
from kdump.findings import (
    ALONE,
    MAY_HAVE,
    METADATA_FOLDER,
    NOT_SALVAGEABLE,
    ONLY_A_COPY,
    Finding,
    Level,
    changes_files,
    is_salvage,
    joined,
    label_of,
    salvage,
    salvage_output,
    salvageable,
)
from kdump.findings.codes import Code

SHOWN: Final = 3
"""Maximum number of names in a sentence, and of folders in the commands that this module makes."""
NO_START_TEXT: Final = "a broker does not start: "
OPEN: Final = Code.METADATA_ELSEWHERE
"""The code of a finding that leaves the result of a start unknown."""
HELD: Final = Code.ONLY_COPY_IS_STRAY
"""The code for records that only a -stray, -delete or -future folder holds."""
FORGOTTEN: Final = Code.METADATA_LOG_MISSING
"""The code of a finding after which a start makes every partition stray."""
UNSERVED: Final = frozenset({FORGOTTEN, Code.INDEX_SKIPS, Code.SEGMENT_IGNORED})
"""Codes of findings on records that stay in the log dir, but that consumers do not receive."""
RESTORE_FIRST: Final = "; restore the metadata log first, and run kdump check again"
OF_SEVERAL: Final = Code.CLUSTER_ID
"""The code of the finding that log dirs have several cluster ids. It does not prevent a start with those of one."""

OF_PARTITION: Final = r"-\d+$"
"""Matches the end of a partition folder's path."""
CHECK: Final = "kdump check "
START: Final = "kafka-server-start.sh server.properties"
ALL_DIRS: Final = (
    "Run kdump check again with all log dirs of {broker}: those of log.dirs and metadata.log.dir in its "
    "server.properties."
)
NOT_WHOLE: Final = (
    "This is not a verdict on a whole broker: no meta.properties is in these paths. Before a start, run kdump check "
    "with all log dirs of the broker (log.dirs and metadata.log.dir in server.properties). Start it only when check "
    "says safe to start."
)
RESTORE_METADATA: Final = (
    "Only if __cluster_metadata-0 is lost: keep the broker stopped, restore the folder from a backup or from another "
    "controller, and run kdump check again."
)
WITHOUT_LOG_DIR: Final = (
    "remove it from log.dirs, or format an empty folder in its place (kafka-storage.sh format --ignore-formatted, with "
    "the cluster.id of the other log dirs)"
)
OR_START: Final = f"Or start the broker with the damaged log ({START}): the lines above say what a start does to it."
FOLLOW: Final = "Follow the advice of the findings (what to do), and run kdump check again."
OR_ACCEPT: Final = f"Or start the broker ({START}), if these effects of a start are intended."
OF_OFFSET: Final = (
    "Replace the folder by one from another replica or from a backup, and run kdump check again. If there is none: "
    f"copy the folder, and start the broker ({START}). Consumers get the records of the batch at wrong offsets, and "
    "new records get offsets above them."
)
OF_UNSURE_END: Final = f"{FOLLOW} If no segment is missing, start the broker ({START})."
OF_METADATA: Final = (
    f"Copy {METADATA_FOLDER} from another controller or from a backup, and run kdump check again. {OR_START}"
)

Outcome: TypeAlias = Literal[
    "no-start", "lost", "open", "damaged", "missing", "unread", "unknown", "rebuilt", "safe", "several"
]
"""The outcome of a verdict, for scripts and the report. The first that fits counts (``several``: several brokers):

- ``no-start``: the broker does not start;
- ``lost``: records are missing, or a start loses records, or does not serve those in stray folders;
- ``open``: records may be lost, but the metadata log that decides this is not in the paths (METADATA_ELSEWHERE);
- ``damaged``: a log is damaged;
- ``missing``: offsets are missing from a log whose batches are all valid;
- ``unread``: a file or folder could not be read;
- ``unknown``: nothing is lost, but the files do not show whether the broker starts, or only selected partitions were
  checked;
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


class VerdictFacts(NamedTuple):
    """The facts of a broker's log dirs for its verdict."""

    paths: Sequence[str] = ()
    """The log dirs that commands may change."""
    copied: Callable[[str, str], str] = lambda log_dir, _: log_dir
    """Returns the command that copies a log dir, with a label. The second argument is the condition of the copy."""
    others: Callable[[str], Sequence[int]] = lambda _: ()
    """Returns the other brokers with a replica of a partition, from the metadata log."""
    replaced: Callable[[str], str] | None = None
    """Returns the command that replaces a folder by its salvaged copy; None if the files cannot be changed there."""
    quoted: Callable[[str], str] = str
    """Quotes a path for a shell."""
    are_whole: bool = True
    """Whether the log dirs have a broker's id, or a finding reports its absence. Otherwise log dirs may be missing."""
    is_partial: bool = False
    """Whether only selected partitions were checked."""
    alone: str = ""
    """The condition of a safe start, if the paths have log dirs of several clusters."""


def verdict(
    findings: Sequence[Finding],
    broker: str = "the broker",
    *,
    starts: bool | None = True,
    why: str = "",
    log_dirs: VerdictFacts = VerdictFacts(),  # noqa: B008  immutable
) -> StartVerdict:
    """Return the verdict on one broker. ``starts``: False only with a fatal finding; None if unknown (``why``).

    :mod:`kdump.broker_start.started` adds the outcomes ``unread`` and ``several``.
    """
    made = _verdict(findings, broker, starts, why, log_dirs)
    if log_dirs.are_whole or made.outcome in {"safe", "rebuilt", "unknown"}:
        return made
    return made._replace(later=(*made.later, NOT_WHOLE))


def _verdict(
    findings: Sequence[Finding], broker: str, starts: bool | None, why: str, log_dirs: VerdictFacts
) -> StartVerdict:
    grave = [finding for finding in findings if finding.is_grave]
    commands = joined([command for finding in grave for command in finding.commands])
    commands = tuple(_with_copies(commands, grave, log_dirs)) if commands else ()
    salvaged = list(dict.fromkeys(_folder(finding) for finding in grave if any(map(is_salvage, finding.commands))))
    all_dirs = ALL_DIRS.format(broker=broker)
    findings = [finding for finding in findings if finding.code != OF_SEVERAL]
    fatal = [finding for finding in findings if finding.fatal]
    loses = [finding for finding in findings if finding.loses is not None]
    if fatal:
        return _of_fatal(fatal, loses, broker, commands)
    missing = list(_missing(findings))
    held = [finding for finding in findings if finding.missing is not None and finding.code == HELD]
    wait = f"DO NOT START {broker} yet: "
    if loses or missing or held:
        first = RESTORE_FIRST if any(finding.code == FORGOTTEN for finding in loses) else ""
        if any(finding.code == Code.LOG_DIR_MISSING for finding in missing):
            later = _without_a_log_dir(all_dirs)
        else:
            has_index = any(finding.code == Code.NO_LOG for finding in findings)
            later = tuple(_later(missing, log_dirs, has_commands=bool(commands), has_index=has_index))
        metadata = any(map(_is_metadata_damage, findings))
        later = (*_after_salvage(salvaged, log_dirs), *((OF_METADATA,) if metadata else ()), *later)
        if not later and not _lead_on(commands):
            later = (f"{FOLLOW} {OR_ACCEPT}",)
        return StartVerdict(f"{wait}{_lost(loses, missing, held)}{first}", "lost", commands, later)
    unsure = next((finding for finding in findings if finding.code == OPEN), None)
    if unsure is not None:
        return StartVerdict(f"{wait}{unsure.file}: {unsure.text}", "open", commands, (all_dirs, RESTORE_METADATA))
    unknown = f"the files do not show whether {broker} starts"
    if of_logs := [finding for finding in findings if finding.level is Level.LOG]:
        begins = f"{broker} starts" if starts else unknown
        is_truncated = any(finding.code == Code.BEYOND_THE_LOG for finding in findings)
        return _of_logs(of_logs, wait, begins, commands, salvaged, log_dirs, is_truncated=is_truncated)
    if starts is None:
        return StartVerdict(f"a start loses no record, but {unknown}{why}", "unknown", commands, (all_dirs,))
    derived = [finding for finding in findings if finding.level is Level.DERIVED]
    if log_dirs.is_partial:
        text = f"{broker}: a start loses no record of the selected partitions"
    elif derived:
        wrong = many(len({finding.file for finding in derived}), "file")
        text = f"safe to start {broker}{log_dirs.alone}: no record is lost; {wrong} can be rebuilt"
    else:
        text = f"safe to start {broker}{log_dirs.alone}: nothing is lost"
    return StartVerdict(text, "unknown" if log_dirs.is_partial else "rebuilt" if derived else "safe", commands)


def _of_logs(
    of_logs: Sequence[Finding],
    wait: str,
    begins: str,
    commands: tuple[str, ...],
    salvaged: Sequence[str],
    log_dirs: VerdictFacts,
    *,
    is_truncated: bool,
) -> StartVerdict:
    """Return the verdict on damaged logs, which a start does not make shorter, and on missing offsets."""
    faults = [finding for finding in of_logs if not finding.is_hole]
    damaged = [finding for finding in faults if not finding.poison]
    files = len({finding.file for finding in damaged or faults or of_logs})
    if damaged:
        if not commands and log_dirs.replaced is not None and (salvaged := _salvageable(damaged)):
            commands = (salvage(map(log_dirs.quoted, salvaged)),)
        later = tuple(_of_damage(damaged, salvaged, log_dirs))
        return StartVerdict(
            f"{wait}{many_are(files, 'log file')} damaged: {_first(damaged)}", "damaged", commands, later
        )
    if faults:  # salvage would keep the batches
        text = f"{begins}, but consumers stop in {many(files, 'log file')}: {_first(faults)}"
        return StartVerdict(text, "damaged", commands)
    later = tuple(_of_holes(of_logs, log_dirs, is_truncated=is_truncated))
    text = f"{begins}, but offsets are missing in {many(files, 'log file')}: {_first(of_logs)}"
    return StartVerdict(text, "missing", commands, later)


def _of_fatal(
    fatal: Sequence[Finding], loses: Sequence[Finding], broker: str, commands: tuple[str, ...]
) -> StartVerdict:
    """Return the verdict on a broker that does not start. ``loses``: the findings on records that a start loses."""
    file, text = fatal[0].file, fatal[0].text.removeprefix(NO_START_TEXT)
    if not text.startswith((f"{file}:", f"{file},", f"{file}.")):
        text = f"{file}: {text}"
    if others := len({finding.file for finding in fatal}) - 1:
        text += f" (and {many(others, 'other reason')})"
    if any(finding.loses for finding in loses):
        text += f"; after this repair alone a start would lose {_sum(loses, 'loses')}: {_most(loses).file}"
    later = () if _lead_on(commands) else (FOLLOW,)
    return StartVerdict(f"DO NOT START {broker}: {text}", "no-start", commands, later)


def _restored(findings: Sequence[Finding]) -> dict[str, int]:
    """Return partition -> the records that a -stray, -delete or -future folder has and commands restore."""
    held = (finding for finding in findings if finding.code == HELD and finding.commands)
    return {basename(each.file).rpartition(".")[0]: (each.loses or 0) + (each.missing or 0) for each in held}


def _missing(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings on missing records, without the records that commands restore.

    The records of segments that commands or the user rename are restored at the end of the log if their offsets are
    above it.
    """
    restored = _restored(findings)
    renamed = [
        finding
        for finding in findings
        if (finding.code == Code.ONLY_IN_DELETED and finding.commands) or finding.code == Code.SEGMENT_IGNORED
    ]
    for finding in findings:
        if finding.missing is None or finding.code == HELD:
            continue
        there = restored.get(basename(_folder(finding)), 0) + sum(
            each.loses or 0
            for each in renamed
            if _folder(each) == _folder(finding) and (each.offset or 0) >= (finding.offset or 0) == finding.found
        )
        if not there:
            yield finding
        elif finding.missing > there:
            yield finding._replace(missing=finding.missing - there)


def _lead_on(commands: Sequence[str]) -> bool:
    """Return whether one of ``commands`` is a check or changes files: a check is then printed after them."""
    return any(changes_files(each) or label_of(each)[1].startswith(CHECK) for each in commands)


def _with_copies(commands: Sequence[str], grave: Sequence[Finding], of: VerdictFacts) -> list[str]:
    """Return commands and copies of the log dirs that they change. A copy has the condition that all changes share."""
    from shlex import split

    conditions: dict[str, set[str]] = {}
    for finding in grave:
        changes = [label_of(command) for command in finding.commands if changes_files(command)]
        named = [(label, word) for label, command in changes for word in split(command) if "/" in word]
        for label, file in (*((label, finding.file) for label, _ in changes), *named):
            if (log_dir := _log_dir_of(file, of.paths)) is not None:
                conditions.setdefault(log_dir, set()).add(label)
    made, first = list(commands), []
    for log_dir, labels in conditions.items():
        label = next(iter(labels)) if len(labels) == 1 else ""
        copy = of.copied(log_dir, label)
        if label:
            at = next(number for number, command in enumerate(made) if label_of(command)[0] == label)
            made.insert(at, copy)
        else:
            first.append(copy)
    return [*first, *made]


def _log_dir_of(file: str, log_dirs: Sequence[str]) -> str | None:
    file = normpath(file)
    for log_dir in sorted(log_dirs, key=len, reverse=True):
        path = normpath(log_dir)
        is_in = file.startswith(f"{path.rstrip('/')}/") or (path == "." and not file.startswith(("/", "../")))
        if path == file or is_in:
            return log_dir
    return None


def _of_damage(damaged: Sequence[Finding], salvaged: Sequence[str], of: VerdictFacts) -> Iterator[str]:
    """Yield the steps for damaged logs. ``salvaged``: the folders that commands salvage."""
    codes = {finding.code for finding in damaged if not _is_metadata_damage(finding)}
    if salvaged:
        yield from _after_salvage(salvaged, of)
    elif codes - NOT_SALVAGEABLE:
        yield _of_salvage()
    elif Code.RECORDS_MISSING in codes:
        yield OF_UNSURE_END
    if Code.OFFSET_TOO_HIGH in codes:
        yield OF_OFFSET
    if any(map(_is_metadata_damage, damaged)):
        yield OF_METADATA


def _salvageable(damaged: Sequence[Finding]) -> list[str]:
    """Return the first partition folders whose valid batches kdump salvage can copy."""
    folders = dict.fromkeys(_folder(finding) for finding in damaged if finding.code not in NOT_SALVAGEABLE)
    return salvageable(folder for folder in folders if re.search(OF_PARTITION, folder))[:SHOWN]


def _of_salvage() -> str:
    place = f"{salvage_output()}/logs"
    return f"Then put the folder from {place} in the place of the damaged one, and run kdump check again. {OR_START}"


def _after_salvage(folders: Sequence[str], of: VerdictFacts) -> Iterator[str]:
    if of.replaced is None or not 0 < len(folders) <= SHOWN:
        yield from (_of_salvage(),) if folders else ()
        return
    yield "Then put what salvage wrote in the place of the damaged log:"
    for folder in folders:
        yield f"  {of.replaced(folder)}"
    yield f"And run kdump check again. {OR_START}"


def _without_a_log_dir(all_dirs: str) -> tuple[str, ...]:
    return (
        all_dirs,
        f"Only if the missing log dir is lost: {WITHOUT_LOG_DIR}. Then start the broker ({START}). It creates the "
        "partitions of that log dir empty, and fetches the records of those that have another replica. All other "
        "records of that log dir are lost.",
    )


def _later(missing: Sequence[Finding], of: VerdictFacts, *, has_commands: bool, has_index: bool) -> Iterator[str]:
    """Yield the steps for missing records. ``has_index``: a segment has index files, but no .log."""
    missing = [finding for finding in missing if any(text in finding.advice for text in (ALONE, MAY_HAVE, ONLY_A_COPY))]
    if not missing:
        return
    yield f"For records that are missing{' after the commands' if has_commands else ''}:"
    if has_index:
        yield "- If the .log of a segment was moved or renamed: put it back, and run kdump check again."
    folders = list(dict.fromkeys(map(_folder, missing)))
    left = [_folder(finding) for finding in missing if finding.code != Code.PARTITION_MISSING]
    names = _names(folders)
    if left:
        yield _merged(left, of)
    if absent := [folder for folder in folders if folder not in left]:
        copy = f"copy {_names(absent)} from there into {first_of(list(dict.fromkeys(map(_log_dir, absent))), SHOWN)}"
        yield f"- If a backup or a lost disk has them: {copy}, and run kdump check again."
    if not all(ALONE in finding.advice for finding in missing):
        yield (
            f"- If another broker has them{_replicas(folders, of)}: start that broker first. When it is the leader of "
            "the partition (kafka-topics.sh --describe), start this broker: it fetches the records from the leader."
        )
    yield (
        f"- If nothing has them: keep a copy of the log dirs, and start the broker ({START}). "
        f"{_sum(missing, 'missing').capitalize()} of {names} {_are(missing).rpartition(' ')[2]} then lost for good"
        f"{'' if all(map(_is_at_start, missing)) else ', and new records can get their offsets'}. "
        "kdump check prints DO NOT START until they are back: a start without them is your decision."
    )


def _of_holes(holes: Sequence[Finding], of: VerdictFacts, *, is_truncated: bool) -> Iterator[str]:
    """Yield the steps for missing offsets between valid batches: how to restore them, and what a start does.

    ``is_truncated``: an index points past its log. Then the end of this log may be missing, not a whole file.
    A follower fetches from its log end on (``ReplicaFetcherThread``). Only an empty folder gets the missing offsets.
    """
    folders = list(dict.fromkeys(map(_folder, holes)))
    names = _names(folders)
    yield "For offsets that are missing:"
    named = ((finding, f"{finding.expected:0>20}.log") for finding in holes if finding.position == 0)
    absent = [name for finding, name in named if basename(finding.file) != name]
    if absent and not is_truncated:
        files = first_of(list(dict.fromkeys(absent)), SHOWN)
        yield f"- If {files} was moved or renamed: put it back, and run kdump check again."
    yield _merged(folders, of)
    if not all(ALONE in finding.advice for finding in holes):
        yield (
            f"- If another broker has them{_replicas(folders, of)}: start that broker first. When it is the leader of "
            f"the partition (kafka-topics.sh --describe), move {names} of this broker away, and start this broker: it "
            "fetches the whole partition from the leader."
        )
    yield (
        f"- If nothing has them: start the broker ({START}). Consumers skip these offsets. A copy can be merged with "
        "this log later, too. kdump check gives exit status 3 as long as they are missing."
    )


def _merged(folders: Sequence[str], of: VerdictFacts) -> str:
    folders = list(dict.fromkeys(folders))
    step = "give kdump salvage these folders and their copies"
    moves = "Move the old folders out of the log dirs, put those of merged/logs in their places"
    if len(folders) == 1:
        step = f"kdump salvage {of.quoted(folders[0])} COPY --out merged (COPY is the path of that copy)"
        name = basename(normpath(folders[0])).strip(".") or "TOPIC-PARTITION"
        moves = f"Move the old folder out of the log dir, put merged/logs/{name} in its place"
    return (
        f"- If a backup or a lost disk has a copy of {_names(folders)}, merge both with the broker stopped: {step}. "
        f"{moves}, and run kdump check again."
    )


def _names(folders: Sequence[str]) -> str:
    return first_of([basename(folder).strip(".") or "the partition" for folder in folders], SHOWN)


def _replicas(folders: Sequence[str], of: VerdictFacts) -> str:
    known = {name: of.others(name) for name in map(basename, folders)}
    texts = [f"{name}: broker {', '.join(map(str, nodes))}" for name, nodes in known.items() if nodes]
    return f" ({first_of(texts, SHOWN)})" if texts else ""


def _is_at_start(finding: Finding) -> bool:
    """Return whether the records before the first segment are missing."""
    return isinstance(finding.offset, int) and isinstance(finding.found, int) and finding.offset < finding.found


def _folder(finding: Finding) -> str:
    """Return the path of a finding's partition folder. The finding names this folder or a file in it."""
    return finding.file if re.search(OF_PARTITION, finding.file) else dirname(finding.file) or "."


def _is_metadata_damage(finding: Finding) -> bool:
    """Return whether a finding is on damage in the metadata log. The batches after it are of no use to a node."""
    is_damage = finding.level is Level.LOG and not finding.is_hole and finding.code != FORGOTTEN
    return is_damage and basename(_folder(finding)) == METADATA_FOLDER


def _log_dir(folder: str) -> str:
    return dirname(folder) or "."


def _lost(loses: Sequence[Finding], missing: Sequence[Finding], held: Sequence[Finding]) -> str:
    """Return a text on the records that a start loses, those already missing, and those in stray folders."""
    parts = []
    if loses:
        verb = "does not serve" if all(finding.code in UNSERVED for finding in loses) else "loses"
        parts.append(f"a start {verb} {_sum(loses, 'loses')}: {_first(loses)}")
    if missing and loses:
        parts.append(f"{_are(missing)} missing already: {_most(missing).file}")
    elif missing:
        parts.append(f"{_are(missing)} missing: {_first(missing, f'{_are([_most(missing)])} missing: ')}")
    if held:
        parts.append(_held(held))
    return "; ".join(parts)


def _held(findings: Sequence[Finding]) -> str:
    """Return the sentence on records in -stray, -delete and -future folders, which a broker does not serve."""
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


def _first(findings: Sequence[Finding], said: str = "") -> str:
    """Return file and text (without ``said`` at its start) of the finding with most records, and how many others."""
    first = _most(findings)
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return f"{first.file}: {first.text.removeprefix(said)}{more}"
