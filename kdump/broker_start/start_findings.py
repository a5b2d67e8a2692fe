"""Makes findings from the result of a dry start: problems of the start, and the records that are lost or missing.

Records are missing if other files prove that the log had more offsets: checkpoints, producer snapshots, indexes, leader
epochs, committed offsets, or the metadata log. :mod:`~kdump.broker_start.repairs` has the advice on causes.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.broker_start.outcome import CONTROLLERS_HAVE_IT, NO_METADATA_LOG, StartOutcome
from kdump.broker_start.repairs import ADVICE, Repairs
from kdump.broker_start.shortfall import absent_text, evidence_text, missing_text, named_in
from kdump.checks.evidence import is_credible, proves_end
from kdump.checks.repair_commands import aside, beside, in_turn, metadata_command, swaps_aside
from kdump.checks.whole_partition import COPY_OF_A_RUNNING_BROKER
from kdump.errors import first_of, many, many_are
from kdump.findings import ALONE, ONLY_A_COPY, Finding, Level, labelled, remark, salvage
from kdump.findings.codes import Code, FindingCode
from kdump.formats.partition_metadata import id_text
from kdump.internal_topics import CLUSTER_METADATA
from kdump.log_dirs import file_names
from kdump.primitives.terminal import path_text, shell_path, shell_word

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from kdump.broker_start.outcome import BrokerStart, LogStart, StartCause
    from kdump.recovery.segment_end import Cut

SERVER_START: Final = "kafka-server-start.sh"
EPOCHS: Final = "leader epochs"
NO_START: Final = "a broker does not start: "
NO_COPY: Final = f"{ONLY_A_COPY}merge the log with a backup or with another replica, or start without them."
NO_COPY_ALONE: Final = NO_COPY.replace(" or with another replica", "")
SERVED: Final = frozenset({StartOutcome.LOADED, StartOutcome.RECOVERED, StartOutcome.TRUNCATED})


class Everything:
    """A set that contains all objects."""

    def __contains__(self, _: object) -> bool:
        return True


class LogEvidence(NamedTuple):
    """The offsets of a log, and the bounds of its start and end offset that other files prove. ``size`` is in bytes."""

    start: int | None = None
    end: int | None = None
    size: int = 0
    evidence: Mapping[str, int] = {}
    """Kind of file -> the lowest log end offset that the file proves."""
    first: Mapping[str, int] = {}
    """Kind of file -> the highest log start offset that the file permits."""
    base: int = 0
    """The base offset of the first segment."""
    is_reported: bool = False
    """Whether the check reports records at the end of the log, as missing or as removed by recovery."""
    cuts_are_reported: bool = False
    """Whether the check reports the records that recovery removes."""
    recovers: bool = False
    """Whether the check advises to move the clean shutdown marker away: a start then recovers the log."""
    is_damaged: bool = False
    """Whether the check found damage in the log, not only missing offsets."""
    is_closed: bool = False
    """Whether the newest segment is closed: its indexes are trimmed, but the indexes of most other logs are not."""


class SpareFolder(NamedTuple):
    """A folder with segments and a topic id, whose name or place is not that of a partition folder in a log dir."""

    path: str
    topic_id: bytes
    size: int

    def partition_of(self, topic: str) -> int | None:
        """Return the partition of ``topic`` in the folder's name, such as 0 for ``orders-0.bak``, or None."""
        found = re.search(rf"{re.escape(topic)}-(\d+)(?!\d)", posixpath.basename(self.path))
        return None if found is None else int(found[1])


class Context(NamedTuple):
    """The facts to compare with a dry start. ``replicas``, ``ids`` and ``nodes`` are empty without a metadata log."""

    facts: Mapping[str, LogEvidence]
    """Path of a partition folder -> the facts of its log."""
    marks: Callable[[str, int], Mapping[str, int]]
    """Returns, for a partition, kind of file -> the end offset that checkpoints or committed offsets prove."""
    replicas: Mapping[tuple[str, int], tuple[int, ...]] = {}
    """Partition -> the nodes of its replicas, from the metadata log."""
    ids: Mapping[str, bytes] = {}
    """Topic name -> topic id, from the metadata log."""
    nodes: Mapping[int, tuple[str, ...]] = {}
    """Broker id -> registered directory ids, from the metadata log."""
    directories: Mapping[str, str] = {}
    """Normalized path of a log dir -> its directory.id."""
    clusters: Mapping[str, str] = {}
    """Normalized path of a log dir of any broker -> its cluster.id."""
    is_kraft: bool = True
    """Whether any folder has ``partition.metadata``. Otherwise an old broker may have written the folders."""
    compacted: Container[str] = Everything()
    """The compacted topics, from the metadata log. If there is no metadata log, all topics."""
    is_complete: bool = False
    """Whether the given paths are certainly all log dirs of the broker."""
    takes: Callable[[str, int], bool] = lambda _topic, _number: True
    """Whether --topic and --partition select a partition."""
    tiered: Container[str] | None = None
    """The topics with remote storage; None if they are unknown."""
    spares: Sequence[SpareFolder] = ()


def findings(start: BrokerStart, context: Context) -> Iterator[Finding]:
    """Yield the findings on one broker's start: causes, log dirs and, if these are surely its own, partitions."""
    return _StartFindings(start, context).all()


def findings_alone(start: BrokerStart, context: Context) -> Iterator[Finding]:
    """Yield the findings on the loading of single partition folders (:func:`kdump.broker_start.start.start_alone`)."""
    return _StartFindings(start, context).alone()


class _StartFindings:
    def __init__(self, start: BrokerStart, context: Context) -> None:
        self.start, self.context = start, context
        self.repairs = Repairs(start, context.ids, context.nodes, context.directories, context.clusters)
        self.broker = start.name
        self.by_partition: dict[tuple[str, int], list[LogStart]] = defaultdict(list)
        for log in start.logs:
            self.by_partition[log.topic, log.partition].append(log)
        self.restores: dict[str, str] = {}
        """Path of a spare folder -> the command of a finding that makes it the folder of a partition."""

    def all(self) -> Iterator[Finding]:
        of_logs = list(self._of_logs())
        causes = dict.fromkeys(cause for cause in self.start.fatal if self._counts(cause))
        for cause in causes:
            yield self._fatal(cause)
        for offline in self.start.offline:
            if offline.cause not in causes:
                yield self._offline(offline.log_dir, offline.cause)
        for log_dir, paths in self.start.closed.items():
            yield self._closed(log_dir, paths)
        for log_dir, reason in self.start.no_writes.items():
            yield remark(
                log_dir,
                Code.FILE_SYSTEM,
                f"the file system of the log dir is {reason}: a broker that uses this path does not start, or "
                "takes the log dir offline",
                advice="Before the broker starts, free space on the file system, or mount it read-write. kdump itself "
                "needs no space here.",
            )
        for cause in self.start.unserved:
            yield self._unserved(cause)
        for cause in self.start.unknown:
            if cause.code is Code.LOG_DIR_MISSING:
                text = "the log dir is missing: a broker creates it, and its partitions begin empty"
                yield self._of_cause(cause, "", text, None)._replace(missing=0)
        yield from of_logs

    def _of_logs(self) -> Iterator[Finding]:
        if self.repairs.is_mixed:
            return  # repairs by the metadata of one broker would damage the log dirs of the other
        if self.start.node_id is None and self.start.fatal:
            for log in self.start.logs:
                yield from self._hidden(log, self._facts(log))
            return  # the partitions of a broker without an id are unknown
        yield from self._partitions()

    def alone(self) -> Iterator[Finding]:
        for cause in self.start.fatal:
            yield self._fatal(cause)
        by_path = {log.path: log for log in self.start.logs}
        for path, cause in self.start.offline:
            records = self._records(by_path[path])
            text = "a broker that loads this folder takes its log dir offline, and does not serve "
            yield self._of_cause(cause, path, f"{text}{many(records, 'record')} of it: {cause.text}", records)
        for log in self.start.logs:
            if log.outcome in SERVED:
                facts = self._facts(log)
                yield from self._changed(log, facts)
                yield from self._begins_late(log, facts)
                yield from self._ends_early(log, facts)

    def _partitions(self) -> Iterator[Finding]:
        forgotten = self._metadata_is_empty() and not self._controllers_have_it()
        if forgotten and self._metadata_is_here():
            yield self._forgotten()
        elif forgotten or self._metadata_place():
            yield self._elsewhere_metadata()
        absent: list[LogStart] = []
        for log in self.start.logs:
            if log.topic == CLUSTER_METADATA or not self.context.takes(log.topic, log.partition):
                continue
            if log.outcome is StartOutcome.STRAY:
                yield from () if forgotten and not _named_stray(log) else self._stray(log)
            elif log.folder is None and log.outcome is StartOutcome.CREATED_EMPTY:
                yield from self._created(log)
            elif log.folder is None and log.outcome is None and _has(log, Code.METADATA_ELSEWHERE):
                absent.append(log)
            elif log.outcome in SERVED or _may_be_served(log):
                yield from self._served(log)
            elif log.outcome is StartOutcome.FUTURE:
                yield from self._damaged_future(log)
        if absent:
            yield self._absent(absent)
        yield from self._leaderless()
        if any(cause.code is Code.METADATA_ELSEWHERE for cause in self.start.unknown):
            yield from self._checkpointed()

    def _checkpointed(self) -> Iterator[Finding]:
        """Yield the findings on partitions with checkpoints but no folder, after a clean stop, with unknown metadata.

        At a clean stop, a broker writes recovery points and high watermarks of exactly the logs in each log dir.
        """
        if not set(self.start.log_dirs) <= self.start.clean:
            return
        found: dict[tuple[str | None, int | None], tuple[int, str, dict[str, int]]] = {}
        for log_dir, of_dir in self.start.checkpointed.items():
            for key, reached in of_dir.items():
                most = min(reached.values()) if len(reached) > 1 else 0
                if most > (found[key][0] if key in found else 0):
                    found[key] = most, log_dir, reached
        for (topic, number), (most, log_dir, reached) in sorted(found.items(), key=str):
            if topic is None or number is None or (topic, number) in self.by_partition or topic == CLUSTER_METADATA:
                continue
            if self.context.takes(topic, number):
                name = f"{topic}-{number}"
                yield Finding(
                    level=Level.LOG,
                    file=posixpath.join(log_dir, name),
                    kind=Code.PARTITION_MISSING,
                    text=f"{self.broker} had a log of {name} when it stopped, but the folder is gone: "
                    f"{many_are(most, 'record')} missing ({evidence_text(reached)})",
                    expected=f"a folder {name}",
                    found="no folder",
                    missing=most,
                    advice=f"Another replica or a backup may have the records. {NO_COPY}",
                )

    def _counts(self, cause: StartCause) -> bool:
        """Return whether a cause is fatal. A missing ``meta.properties`` is not if it may be a broker of 0.8."""
        is_modern = self.context.is_kraft or self.context.is_complete
        return is_modern or cause.code is not Code.META_PROPERTIES_MISSING

    def _fatal(self, cause: StartCause) -> Finding:
        finding = self._of_cause(cause, self.start.log_dirs[0], f"{NO_START}{cause.text}", None)
        if cause.code is Code.FOREIGN_FOLDER:
            finding = self._with_restores(finding)
        advice = f"{finding.advice}{self._without_disk(finding.file)}" if cause.code is Code.FOLDER_IS_DANGLING else ""
        return finding._replace(level=Level.DERIVED, fatal=True, advice=advice or finding.advice)

    def _with_restores(self, finding: Finding) -> Finding:
        """Return the finding on a foreign folder with the commands that restore folders in it, before it is moved."""
        inside = {path for path in self.restores if f"{path}/".startswith(f"{finding.file}/")}
        if not inside:
            return finding
        commands = tuple(command for path, command in self.restores.items() if path in inside)
        if finding.file in inside:
            return finding._replace(advice="Give the folder its name back.", commands=commands)
        return finding._replace(commands=(*commands, *finding.commands))

    def _without_disk(self, folder: str) -> str:
        """Return the sentences on the records of a partition whose disk is lost."""
        found = file_names.parse_folder(posixpath.basename(folder))
        if found is None or found.partition is None:
            return ""
        reached = self.context.marks(found.topic, found.partition)
        most = max(reached.values(), default=0)
        gone = f"{many_are(most, 'record')} missing ({evidence_text(reached)})" if most else "its log begins empty"
        return f" In that case {gone}. {self._elsewhere(found.topic, found.partition)}"

    def _offline(self, log_dir: str, cause: StartCause) -> Finding:
        logs = [log for log in self.start.logs if log.log_dir == log_dir]
        records = sum(self._records(log) for log in logs)
        text = f"{self.broker} starts without log dir {log_dir}, and does not serve {many(records, 'record')} of "
        return self._of_cause(cause, log_dir, f"{text}{many(len(logs), 'partition')}: {cause.text}", records)

    def _of_cause(self, cause: StartCause, place: str, text: str, loses: int | None) -> Finding:
        """Return the finding on a cause, with repairs. Its file is the file of the cause, or else ``place``."""
        return Finding(
            level=Level.LOG,
            file=cause.file or place,
            kind=cause.code,
            text=text,
            expected=cause.expected,
            found=cause.found,
            loses=loses,
            advice=self.repairs.advice(cause),
            commands=tuple(self.repairs.commands(cause)),
        )

    def _closed(self, log_dir: str, paths: Sequence[str]) -> Finding:
        return remark(
            log_dir,
            Code.FILE_OWNER,
            f"the owner of the log dir may not write {many(len(paths), 'file or folder', 'files and folders')} in "
            f"it: {first_of(list(paths), 10)}. If the broker runs as this user, the log dir goes offline "
            "(AccessDeniedException)",
            advice="Let the user of the broker write them before it starts, for example with: "
            f"chown -R --reference={shell_path(log_dir)} {shell_path(log_dir)}",
        )

    def _unserved(self, cause: StartCause) -> Finding:
        logs = [log for log in self.start.logs if log.outcome in SERVED and log.topic != CLUSTER_METADATA]
        records = sum(self._records(log) for log in logs)
        text = f"{self.broker} starts, but serves none of its {many(len(logs), 'partition')} "
        return self._of_cause(
            cause, self.start.log_dirs[0], f"{text}({many(records, 'record')}): {cause.text}", records
        )

    def _metadata_is_empty(self) -> bool:
        return any(_has(log, Code.METADATA_LOG_EMPTY) for log in self.start.logs if log.topic == CLUSTER_METADATA)

    def _controllers_have_it(self) -> bool:
        """Return whether the node can fetch the metadata from controllers, because it is not the only controller."""
        return any(cause.text == CONTROLLERS_HAVE_IT for cause in self.start.unknown)

    def _metadata_is_here(self) -> bool:
        """Return whether the given paths have the metadata log, or are known to be all log dirs of the broker."""
        folders = (log for log in self.start.logs if log.topic == CLUSTER_METADATA and log.folder is not None)
        return self.context.is_complete or any(folders)

    def _metadata_place(self) -> str | None:
        """Return the path of a bootstrap.checkpoint or missing metadata log, if logs become stray without that log.

        A node that can fetch the metadata from controllers does not need its own log.
        """
        file = next((cause.file for cause in self.start.unknown if cause.text == NO_METADATA_LOG), None)
        is_needed = self.start.is_sole_controller and any(log.topic_id is not None for log in self.start.logs)
        return file if is_needed else None

    def _elsewhere_metadata(self) -> Finding:
        """Return the finding that the given paths have no metadata log.

        Its file is the log dir with bootstrap.checkpoint, if there is one: ``kafka-storage.sh format`` writes this file
        into the metadata log dir (before 3.9 into each log dir).
        """
        log_dir = posixpath.dirname(self._metadata_place() or "") or self.start.log_dirs[0]
        count = sum(log.topic_id is not None for log in self.start.logs)
        return Finding(
            level=Level.LOG,
            file=log_dir,
            kind=Code.METADATA_ELSEWHERE,
            text="these log dirs have no __cluster_metadata-0: if no other log dir of the broker has this "
            "folder, a start makes "
            f"{many(count, 'partition')} stray",
            advice="Name all log dirs of the broker, including its metadata.log.dir. If __cluster_metadata-0 is "
            "lost: keep the broker stopped, and restore the folder from a backup or from another controller.",
        )

    def _forgotten(self) -> Finding:
        strays = [log for log in self.start.logs if log.outcome is StartOutcome.STRAY and not _named_stray(log)]
        records = sum(self._records(log) for log in strays)
        metadata = next(log for log in self.start.logs if log.topic == CLUSTER_METADATA)
        dirs, out = self.start.log_dirs, beside(self.start.log_dirs[0], file_names.REBUILT)
        release = self.start.bootstrap_release or self.start.release
        rebuild = f"kdump rebuild-cluster {' '.join(map(shell_path, dirs))} --out {shell_path(out)} --release {release}"
        node = posixpath.join(out, "node-1")
        is_known = self.start.bootstrap_release is not None
        return Finding(
            level=Level.LOG,
            file=metadata.path or self.start.log_dirs[0],
            kind=Code.METADATA_LOG_MISSING,
            text=f"the metadata log is missing or empty: after a start the broker has no topics. It renames "
            f"{many(len(strays), 'partition folder')} to -stray: {many_are(records, 'record')} not served, but not "
            "deleted",
            loses=records,
            advice="Keep the broker stopped. Restore __cluster_metadata-0 from a backup or from another controller, "
            "and run kdump check again. If none has it, kdump rebuild-cluster writes new log dirs with the records "
            "and committed offsets. Topic configs, ACLs, SCRAM users, quotas and client metrics are then lost. "
            f"Release {release} is {'that of bootstrap.checkpoint' if is_known else 'the newest that kdump knows'}: "
            "give the release of the new brokers.",
            commands=(
                labelled(
                    "only if no backup and no controller has the metadata log. Name the log dirs of all brokers",
                    rebuild,
                ),
                labelled(
                    f"then read the first lines of {path_text(node)}.properties. When check says safe to start, run "
                    f"{SERVER_START} with this file",
                    f"kdump check {shell_path(node)}",
                ),
            ),
        )

    def _facts(self, log: LogStart) -> LogEvidence:
        return self.context.facts.get(log.path or "", LogEvidence())

    def _records(self, log: LogStart) -> int:
        facts = self._facts(log)
        end = facts.end if facts.end is not None else log.log_end_offset
        first = max(facts.start or 0, log.log_start_offset or 0) if facts.end is None else facts.start
        return max((end or 0) - (first or 0), 0)

    def _elsewhere(self, topic: str, partition: int) -> str:
        nodes = self.context.replicas.get((topic, partition))
        if nodes is None:
            return f"Another replica or a backup may have the records. {NO_COPY}"
        others = [str(node) for node in nodes if node != self.start.node_id]
        if not others:
            return f"{ALONE} {NO_COPY_ALONE}"
        return f"Broker{'' if len(others) == 1 else 's'} {', '.join(others)} may have the records. {NO_COPY}"

    def _with_spare(self, finding: Finding, log: LogStart) -> Finding:
        """Return the finding on a partition without records. A spare folder with its topic id is named.

        ``finding.file`` is the partition folder. If no other broker has a replica, a command puts the spare folder in
        its place. Otherwise the broker fetches the records.
        """
        name, topic_id = f"{log.topic}-{log.partition}", self._topic_id(log)
        found = [(each, each.partition_of(log.topic)) for each in self.context.spares if each.topic_id == topic_id]
        named = [each for each, number in found if number == log.partition]
        spares = named or [each for each, number in found if number is None]
        if not spares:
            return finding
        spare = max(spares, key=lambda each: each.size)
        text = f"{finding.text}; {spare.path} has {spare.size:,} bytes of log with the topic id of {log.topic}"
        nodes = self.context.replicas.get((log.topic, log.partition), ())
        count = sum(topic == log.topic for topic, _ in self.context.replicas)
        if len(nodes) > 1 or not (named or count == 1):
            return finding._replace(text=text, advice=f"{finding.advice} {spare.path} may be a copy of {name}.")
        commands = [f"mv {shell_path(spare.path)} {shell_path(finding.file)}"]
        if log.path is not None:
            commands.insert(0, aside(log.path))
        command = labelled(f"if {path_text(spare.path)} is the folder of {name}", in_turn(commands))
        self.restores[spare.path] = command
        advice = f"{spare.path} is most likely the folder of {name}: with the broker stopped, give it its name back."
        return finding._replace(text=text, advice=advice, commands=(command,))

    def _topic_id(self, log: LogStart) -> bytes | None:
        """Return the topic id of a partition in the metadata log, else that of its current folder."""
        name = f"{log.topic}-{log.partition}"
        others = self.by_partition[log.topic, log.partition]
        own = next((other.topic_id for other in others if other.folder == name), None)
        return self.context.ids.get(log.topic, own)

    def _stray(self, log: LogStart) -> Iterator[Finding]:
        where, name, records = log.path or log.folder or "", f"{log.topic}-{log.partition}", self._records(log)
        if _named_stray(log):
            yield from self._old_stray(log, where, name, records)
            return
        cause = log.causes[0] if log.causes else None
        code = None if cause is None else cause.code
        others = self.by_partition[log.topic, log.partition]
        promoted = [other for other in others if _has(other, Code.PROMOTED) and other.outcome is StartOutcome.FUTURE]
        served_too = promoted or [other for other in others if other.outcome in SERVED]  # two would stop the broker
        is_second = bool(served_too)
        is_copy = bool(promoted) or _has(log, Code.NAMED_FUTURE)
        is_copy = is_copy and any(self._end(other) >= self._end(log) for other in served_too)
        wanted = not is_second and (log.is_assigned or (log.is_assigned is None and log.assigned_id is not None))
        served = f", and {many_are(records, 'record')} then not served" if records else ""
        becomes = f"a start renames {log.folder or name} to {name}.UUID-stray"
        if log.is_assigned is None and log.assigned_id is None and not self.context.is_complete:
            return  # the assignment is unknown
        if not records and not (code is Code.NO_TOPIC_ID and wanted):
            return
        file = (cause.file if cause is not None else None) or where
        commands: tuple[str, ...] = ()
        if is_second:
            text = f"the broker serves another folder of {name} instead: {becomes}{served}"
            advice = f"If you need the records of this folder, salvage them first: {salvage([shell_path(where)])}"
        elif code is Code.NO_TOPIC_ID and (wanted or log.is_assigned is None):
            text = f"the file is missing: {becomes}{' and creates an empty log' if wanted else ''}{served}"
            advice = "Write the file before a broker starts."
        elif wanted:
            text = f"the topic id differs from the metadata log: {becomes} and creates an empty log{served}"
            advice = "If the folder has the data of this topic, write the topic id from the metadata log to this file."
        else:
            text = f"{cause.text if cause is not None else 'not assigned to this broker'}: {becomes}{served}"
            rescue = salvage([shell_path(where)])
            advice = (
                f"If the topic was deleted or moved, this is intended. Otherwise salvage the records first: {rescue}"
            )
        if log.assigned_id is not None and wanted:
            commands = (metadata_command(where, id_text(log.assigned_id), exists=log.topic_id is not None),)
        yield Finding(
            level=Level.REMARK if is_copy else Level.LOG if records else Level.DERIVED,
            file=file,
            kind=Code.BECOMES_STRAY,
            text=text,
            expected=None if log.assigned_id is None or not wanted else f"topic_id: {id_text(log.assigned_id)}",
            found="no file" if code is Code.NO_TOPIC_ID else None if cause is None else cause.found,
            loses=records if records and not is_copy else None,
            advice=advice,
            commands=commands,
        )

    def _old_stray(self, log: LogStart, where: str, name: str, records: int) -> Iterator[Finding]:
        others = [other for other in self.by_partition[log.topic, log.partition] if other is not log]
        live = next((other for other in others if other.folder == name), None)
        current = next((other for other in others if other.folder == name or other.folder is None), None)
        served = 0 if live is None else self._records(live)
        topic_id = self.context.ids.get(log.topic)
        end = 0 if live is None else self._end(live)
        if current is None or served or log is not self._held(log) or self._end(log) <= end:
            yield Finding(
                level=Level.REMARK,
                file=where,
                kind=Code.STRAY_FOLDER,
                text=f"a stray replica with {many(records, 'record')}: no broker serves or removes it",
                advice="Compare the folder with the live replica before you remove it.",
            )
            return
        target = posixpath.join(posixpath.dirname(where), name)
        commands = []
        if live is not None and live.path is not None:
            commands.append(aside(live.path))
        commands.append(f"mv {shell_path(where)} {shell_path(target)}")
        if log.topic_id is None and topic_id is not None:
            commands.append(metadata_command(target, id_text(topic_id), exists=False))
        state, advice = "is missing", f"With the broker stopped, rename this folder to {target}."
        if live is not None:
            state = "has no records"
            advice = f"With the broker stopped, move {target} away, and rename this folder to {target}."
        directory = self.context.directories.get(log.log_dir or "")
        state += f" (directory.id of the log dir: {directory})" if directory else ""
        if log.topic_id is None and topic_id is not None:
            advice += f" Give it a partition.metadata: in the metadata log, {log.topic} has id {id_text(topic_id)}."
        yield Finding(
            level=Level.LOG,
            file=where,
            kind=Code.ONLY_COPY_IS_STRAY,
            text=f"this folder has {many(records, 'record')} of {name}, but the folder {target} {state}: "
            "consumers do not receive these records",
            missing=records,
            advice=advice,
            commands=(in_turn(commands),),
        )

    def _held(self, log: LogStart) -> LogStart | None:
        """Return the -stray folder with most records of a log's partition and topic id. Its finding reports them."""
        found = [
            each
            for each in self.by_partition[log.topic, log.partition]
            if _named_stray(each) and each.topic_id in {None, self._topic_id(log)} and self._records(each)
        ]
        return max(found, key=self._records, default=None)

    def _created(self, log: LogStart) -> Iterator[Finding]:
        name = f"{log.topic}-{log.partition}"
        others = self.by_partition[log.topic, log.partition]
        renamed = [other for other in others if other.outcome is StartOutcome.STRAY and not _named_stray(other)]
        if self._held(log) is not None or any(map(self._records, renamed)):
            return  # reported with the stray folder
        if (ahead := self._ahead_of(log)) is not None:
            yield self._future_ahead(ahead, log, name)
            return
        if (doomed := self._doomed(log)) is not None:
            yield self._deleted(doomed, log)
            return
        reached = self.context.marks(log.topic, log.partition)
        most = max(reached.values(), default=0)
        log_dir = log.log_dir
        if not any(cause.file for cause in log.causes):  # metadata does not name the log dir
            log_dir = named_in(self.start.checkpointed, log.topic, log.partition) or log_dir
        directory = self.context.directories.get(log_dir or "")
        where = "" if log_dir is None else f" in {log_dir}" + (f" (directory.id {directory})" if directory else "")
        if _has(log, Code.LOG_DIR_OFFLINE):
            yield self._begun_elsewhere(log, name, reached)
            return
        text = absent_text(name, self.broker, where, reached)
        if reached and not most:
            if renamed:
                return  # the folder exists, and a start makes it stray
            yield Finding(
                level=Level.REMARK, file=log_dir or self.start.log_dirs[0], kind=Code.PARTITION_MISSING, text=text
            )
            return
        finding = Finding(
            level=Level.LOG,
            file=posixpath.join(log_dir or self.start.log_dirs[0], name),
            kind=Code.PARTITION_MISSING,
            text=text,
            expected=f"a folder {name}",
            found="no folder",
            missing=most,
            advice=self._elsewhere(log.topic, log.partition),
        )
        ignored = next((each for each in others if each.outcome is StartOutcome.IGNORED), None)
        if ignored is not None:
            advice = f"{ignored.path} has the partition, but the broker loads no logs from {ignored.log_dir}. "
            finding = finding._replace(advice=f"{advice}Add {ignored.log_dir} to log.dirs, if it was one of them.")
        yield self._with_spare(finding, log)

    def _end(self, log: LogStart) -> int:
        end = self._facts(log).end
        return (log.log_end_offset if end is None else end) or 0

    def _ahead_of(self, log: LogStart) -> LogStart | None:
        """Return the -future folder that has records after the end of the partition's current log, if there is one."""
        found = [
            each
            for each in self.by_partition[log.topic, log.partition]
            if each.outcome is StartOutcome.FUTURE
            and not _has(each, Code.PROMOTED)
            and each.topic_id in {None, self._topic_id(log)}
            and self._records(each)
            and self._end(each) > (log.log_end_offset or 0)
        ]
        return max(found, key=self._end, default=None)

    def _future_ahead(self, future: LogStart, current: LogStart, name: str) -> Finding:
        """Return the finding on a -future folder that a start truncates to the end of the shorter current log."""
        where = future.path or future.folder or ""
        records = min(self._end(future) - (current.log_end_offset or 0), self._records(future))
        nodes = self.context.replicas.get((current.topic, current.partition), ())
        end = current.log_end_offset
        is_certain = len(nodes) < 2 or current.folder is None or end is None or (current.high_watermark or 0) > end
        rename = f"mv {shell_path(where)} {shell_path(posixpath.join(posixpath.dirname(where), name))}"
        if current.path is None:
            text = (
                f"{name} has no current folder, and this -future folder has {many(records, 'record')}: a start "
                "creates an "
            )
            text += "empty log, and truncates this folder to match"
        else:
            text = f"the log of {name} ends at offset {end}, and this -future folder has {many(records, 'more record')}"
            text += ": a start truncates this folder"
        return Finding(
            level=Level.LOG if is_certain else Level.REMARK,
            file=where,
            kind=Code.ONLY_COPY_IS_STRAY,
            text=text,
            loses=records if is_certain else None,
            advice="Keep this folder. With the broker stopped, replace the current folder by this folder.",
            commands=(rename if current.path is None else in_turn([aside(current.path), rename]),),
        )

    def _damaged_future(self, log: LogStart) -> Iterator[Finding]:
        """Yield the finding on a damaged -future folder that replaces a valid log (KIP-113)."""
        others = self.by_partition[log.topic, log.partition]
        current = next((other for other in others if other.outcome in SERVED and other.topic_id == log.topic_id), None)
        if current is None or not self._facts(log).is_damaged or self._facts(current).is_damaged:
            return
        where = log.path or ""
        yield Finding(
            level=Level.LOG,
            file=where,
            kind=Code.PROMOTED,
            text=f"this -future folder is damaged, but {current.path} is not: soon after a start the broker replaces "
            f"{current.path} with this folder",
            loses=0,
            advice="Move this folder away before a broker starts: the partition then stays in its current log dir.",
            commands=(aside(where),),
        )

    def _doomed(self, log: LogStart) -> LogStart | None:
        """Return the -delete folder with most records past the end of a log without records, if there is one."""
        if self._records(log):
            return None
        ids, end = {self._topic_id(log)}, self._end(log)
        ids = ids | {None} if log.path is None else ids - {None}
        found = [
            each
            for each in self.by_partition[log.topic, log.partition]
            if each.outcome is StartOutcome.DELETED
            and each.topic_id in ids
            and self._records(each)
            and self._end(each) > end
        ]
        return max(found, key=self._records, default=None)

    def _deleted(self, log: LogStart, current: LogStart) -> Finding:
        """Return the finding on a -delete folder. ``current`` is the empty log that a start creates or serves."""
        where, name, records = log.path or log.folder or "", f"{log.topic}-{log.partition}", self._records(log)
        rename = f"mv {shell_path(where)} {shell_path(posixpath.join(posixpath.dirname(where), name))}"
        text = f"this is the only folder of {name}, and its name marks it for deletion: a start deletes its "
        text += f"{many(records, 'record')} and creates an empty log"
        advice = "Keep this folder. With the broker stopped, rename it."
        if current.path is not None:
            text = f"{current.path} has no records, and the name of this folder marks it for deletion: a start deletes "
            text += f"its {many(records, 'record')} of {name}"
            advice = f"Keep this folder. With the broker stopped, move {current.path} away, and rename this folder."
        return Finding(
            level=Level.LOG,
            file=where,
            kind=Code.ONLY_COPY_IS_STRAY,
            text=text,
            missing=records,
            advice=advice,
            commands=(rename if current.path is None else in_turn([aside(current.path), rename]),),
        )

    def _begun_elsewhere(self, log: LogStart, name: str, reached: Mapping[str, int]) -> Finding:
        """Return the finding on a new empty log. If the offline folder exists, another finding counts its records."""
        held = any(other.outcome is StartOutcome.OFFLINE for other in self.by_partition[log.topic, log.partition])
        most = 0 if held else max(reached.values(), default=0)
        missing = f", and {many_are(most, 'record')} missing ({evidence_text(reached)})" if most else ""
        return Finding(
            level=Level.LOG,
            file=posixpath.join(log.log_dir or self.start.log_dirs[0], name),
            kind=Code.PARTITION_MISSING,
            text=f"the log dir of {name} is offline: a start can create an empty log in {log.log_dir}{missing}",
            missing=most or None,
            loses=None if most else 0,
            advice="Repair the offline log dir before a broker starts: clients would write to the new empty log.",
        )

    def _leaderless(self) -> Iterator[Finding]:
        """Yield a note for each log dir with partitions that can be without a leader after the start."""
        if self.start.fatal:
            return  # first the broker must start
        found: dict[str, list[str]] = defaultdict(list)
        for log in self.start.logs:
            for cause in log.causes:
                if cause.code is Code.LEADER_DELAYED and self.context.takes(log.topic, log.partition):
                    found[cause.file or ""].append(f"{log.topic}-{log.partition}")
        for file, names in found.items():
            one = len(names) == 1
            yield remark(
                file,
                Code.LEADER_DELAYED,
                f"{many(len(names), 'partition')} can be without a leader for up to 5 minutes after a start "
                f"(leader.imbalance.check.interval.seconds): {first_of(names, 10)}. The metadata log assigns "
                f"{'it' if one else 'them'} to a directory.id that no log dir of {self.broker} has. No record is lost",
                advice="To end this earlier, elect the leaders after the start: kafka-leader-election.sh "
                "--bootstrap-server HOST:PORT --election-type PREFERRED --all-topic-partitions",
            )

    def _absent(self, logs: list[LogStart]) -> Finding:
        names = [f"{log.topic}-{log.partition}" for log in logs]
        shown = first_of(names, 10)
        nodes = self.context.replicas
        alone = [
            name for name, log in zip(names, logs, strict=True) if len(nodes.get((log.topic, log.partition), ())) == 1
        ]
        of_alone = f"{len(alone)} of them" if len(alone) < len(logs) else "them"
        shown += f". No other broker has a replica of {of_alone}" if alone else ". Other brokers have replicas"
        shown += f": {first_of(alone, 10)}" if 0 < len(alone) < len(logs) else ""
        return Finding(
            level=Level.LOG,
            file=self.start.log_dirs[0],
            kind=Code.LOG_DIR_MISSING,
            text=f"{many(len(logs), 'partition')} of {self.broker} "
            f"{'is' if len(logs) == 1 else 'are'} in a log dir that is not among the paths: {shown}",
            missing=0,
            advice="Name all log dirs of the broker, with their disks mounted. The missing log dir has "
            f"{first_of(self._directories(logs), 3)} in its meta.properties. A broker does not start while a log dir "
            "of log.dirs is missing. If it is removed from log.dirs, a start creates empty logs.",
        )

    def _directories(self, logs: Sequence[LogStart]) -> list[str]:
        """Return the lines ``directory.id=ID`` of the log dirs that the metadata log assigns to partitions."""
        found = set()
        for log in logs:
            topic = None if self.start.image is None else self.start.image.topics.by_name.get(log.topic)
            state = None if topic is None else topic.partitions.get(log.partition)
            directory = None if state is None else state.directory_of(self.start.node_id)
            if directory is not None:
                found.add(f"directory.id={id_text(directory)}")
        return sorted(found)

    def _served(self, log: LogStart) -> Iterator[Finding]:
        facts = self._facts(log)
        where, name = log.path or "", f"{log.topic}-{log.partition}"
        if log.topic_id is not None and log.assigned_id not in {None, log.topic_id}:
            yield self._of_another_topic(log, where, name)
        yield from self._changed(log, facts)
        if any(cut.code is Code.START_BEYOND_END for cut in log.cuts):
            return
        for cause in log.causes:
            if cause.code is Code.CLEANED_DISCARDS_SWAP:
                yield Finding(level=Level.REMARK, file=cause.file or where, kind=cause.code, text=cause.text)
        yield from self._begins_late(log, facts)
        ahead = None if log.outcome is StartOutcome.FUTURE else self._ahead_of(log)
        if ahead is not None:
            yield self._future_ahead(ahead, log, name)
        elif not any(cut.code is Code.SWAPPED for cut in log.cuts):
            found = list(self._ends_early(log, facts))
            doomed = self._doomed(log) if self._held(log) is None else None
            if doomed is not None:
                nodes = self.context.replicas.get((log.topic, log.partition), ())
                is_certain = len(nodes) < 2 or any(one.code == Code.RECORDS_MISSING for one in found)
                one = self._deleted(doomed, log)
                found = [one if is_certain else one._replace(level=Level.REMARK, missing=None, commands=())]
            yield from found

    def _changed(self, log: LogStart, facts: LogEvidence) -> Iterator[Finding]:
        """Yield the findings on records that the loading of a log removes, hides or does not read."""
        name = f"{log.topic}-{log.partition}"
        for cut in log.cuts:
            if cut.code is Code.START_BEYOND_END:
                yield self._start_beyond_end(log, name, cut.reason)
                return
        for cut in log.cuts:
            if cut.code is not Code.SWAPPED:
                continue
            is_compaction = cut.superseded == cut.records and log.topic in self.context.compacted
            if not cut.records or (is_compaction and not cut.is_replaced_by_nothing):
                continue  # compaction would remove the same records
            yield Finding(
                level=Level.LOG,
                file=cut.replaced_by or cut.file,
                kind=Code.SWAPPED,
                text=f"a start replaces {posixpath.basename(cut.file)} with this file without a check of the file: "
                f"{many(cut.records, 'record')} of {name} would be lost, and the log would end at offset "
                f"{log.log_end_offset}",
                offset=cut.first_offset,
                loses=cut.records,
                advice=ADVICE[Code.SWAPPED],
                commands=(swaps_aside(cut.replaced_by or cut.file),),
            )
        others = [cut for cut in log.cuts if cut.code is not Code.SWAPPED]
        is_of_disk = any(cut.code is Code.LOG_UNREADABLE for cut in others)
        records = sum(cut.records for cut in others)
        if is_of_disk or (records and not facts.cuts_are_reported):
            yield self._cut(log, others, name)
        if log.causes:
            yield from self._misnamed(log, facts)
            yield from self._hidden(log, facts)
            yield from self._unread_indexes(log)
            yield from self._skipping(log)

    def _ends_early(self, log: LogStart, facts: LogEvidence) -> Iterator[Finding]:
        where = log.path or ""
        checkpoints = {"high watermark": log.high_watermark or 0, "recovery point": log.recovery_point or 0}
        evidence = {**facts.evidence, **{what: at for what, at in checkpoints.items() if is_credible(at)}}
        end = log.log_end_offset if facts.end is None else max(facts.end, log.log_end_offset or 0)
        most = max(evidence.values(), default=0)
        is_clean = log.log_dir in self.start.clean
        beyond = {what: offset for what, offset in evidence.items() if offset > (end or 0)}
        mark = log.high_watermark if len(self.context.replicas.get((log.topic, log.partition), ())) == 1 else None
        if is_clean and end and beyond and proves_end(end, log.recovery_point, evidence, high_watermark=mark):
            by = "recovery point proves" if log.recovery_point == end else "other files prove"
            yield Finding(
                level=Level.REMARK,
                file=where,
                kind=Code.HIGH_WATERMARK,
                text=f"no record is missing, although another file has a higher offset ({evidence_text(beyond)}): "
                f"after the clean stop the {by} that the log ends at offset {end}",
                offset=end,
                found=most,
            )
        elif (
            end is not None and most > end and not facts.is_reported and (self._records(log) or self._held(log) is None)
        ):
            copy = "" if is_clean else COPY_OF_A_RUNNING_BROKER
            finding = Finding(
                level=Level.LOG,
                file=where,
                kind=Code.RECORDS_MISSING,
                text=missing_text(end, evidence) + copy,
                offset=end,
                expected=f"{most} or later",
                found=end,
                missing=most - end,
                advice=self._elsewhere(log.topic, log.partition),
            )
            yield finding if self._records(log) else self._with_spare(finding, log)
        elif facts.is_closed and not is_clean and not facts.is_reported:
            yield Finding(
                level=Level.LOG,
                file=where,
                kind=Code.RECORDS_MISSING,
                text=f"a segment that begins at offset {end} may be missing: the newest segment here is closed (its "
                "indexes are trimmed), but the broker stopped with open segments in other logs. There are two other "
                "possible causes: the folder was copied from another place, or the broker crashed while it loaded "
                "its logs",
                offset=end,
                advice=self._elsewhere(log.topic, log.partition),
            )

    def _unread_indexes(self, log: LogStart) -> Iterator[Finding]:
        """Yield the findings on folders and sockets named like time indexes. A broker opens them after the start."""
        for cause in log.causes:
            if cause.code is Code.INDEX_UNREADABLE:
                yield Finding(
                    level=Level.LOG,
                    file=cause.file or log.path or "",
                    kind=cause.code,
                    text=f"{self.broker} starts, but log dir {log.log_dir} goes offline when retention, "
                    "compaction or a "
                    f"search by time opens this index: {cause.text}",
                    advice="Move the folder away: a broker rebuilds the index.",
                    commands=tuple(self.repairs.commands(cause)),
                )

    def _skipping(self, log: LogStart) -> Iterator[Finding]:
        for cause in log.causes:
            if cause.code is Code.INDEX_SKIPS:
                index = cause.file or ""
                yield Finding(
                    level=Level.LOG,
                    file=index,
                    kind=cause.code,
                    text=f"{cause.text}: consumers skip up to {many(cause.records, 'record')} of "
                    f"{log.topic}-{log.partition}",
                    loses=cause.records,
                    advice="Move this .index away: a start then rebuilds all indexes of the segment.",
                    commands=(aside(index),),
                )

    def _misnamed(self, log: LogStart, facts: LogEvidence) -> Iterator[Finding]:
        """Yield the findings on files that a broker lists as segments, but does not read."""
        hidden = max((facts.end or 0) - (log.log_end_offset or 0), 0)
        renamed: set[str] = set()
        for cause in log.causes:
            file = cause.file or log.path or ""
            if cause.code is not Code.SEGMENT_NAME or file.endswith(f".{file_names.SWAP}"):
                continue  # log.cuts has the records that a .swap file replaces
            folder, name = posixpath.split(file)
            if records := cause.records:
                text = f"{cause.text}: {many_are(records, 'record')} then not served"
                opened = file_names.opened_name(name) or name
                target = posixpath.join(folder, opened)
                advice = f"Rename the file to {opened} before a broker starts."
                command = f"mv {shell_path(file)} {shell_path(target)}"
                if target in renamed:  # a second command would overwrite the first file
                    advice = f"Move the file away: another file gets the name {opened}."
                    command = aside(file)
                renamed.add(target)
            elif hidden and file_names.offset_of(name) == log.log_end_offset:
                text = f"{cause.text}: the log would end at offset {log.log_end_offset}, "
                text += "and new records would get the offsets of existing records"
                records, advice, command = hidden, "Move the file away before a broker starts.", aside(file)
            else:
                yield Finding(level=Level.REMARK, file=file, kind=cause.code, text=cause.text)
                continue
            yield Finding(
                level=Level.LOG,
                file=file,
                kind=cause.code,
                text=text,
                loses=records,
                advice=advice,
                commands=(command,),
            )

    def _cut(self, log: LogStart, cuts: list[Cut], name: str) -> Finding:
        """Return the finding on the records that recovery removes, and that the check does not report."""
        first = next((cut for cut in cuts if cut.blocked_by is not None), cuts[0])
        records = sum(cut.records for cut in cuts)
        is_blocked = first.blocked_by is not None
        folder = shell_path(log.path or "")
        return Finding(
            level=Level.LOG,
            file=first.blocked_by or first.file,
            kind=first.code,
            text=f"a start truncates or deletes {many(len(cuts), 'segment')} of {name}: {many(records, 'record')} "
            f"would be lost, and the log would end at offset {log.log_end_offset} ({first.reason})",
            offset=first.first_offset,
            loses=records,
            advice="Move the folder away before a broker starts."
            if is_blocked
            else "Copy the disk first, for example with ddrescue: a start would empty the segment."
            if first.code is Code.LOG_UNREADABLE
            else "Salvage the records first.",
            commands=(aside(first.blocked_by) if first.blocked_by is not None else salvage([folder]),),
        )

    def _of_another_topic(self, log: LogStart, where: str, name: str) -> Finding:
        """Return the finding on a folder with the topic id of another topic that is on this broker too.

        The folder does not become stray, because ``LogManager.isStrayReplica`` compares only the id. But the first
        image fails with InconsistentTopicIdException. A broker of 4.3 starts, but answers no client.
        """
        return Finding(
            level=Level.LOG,
            file=posixpath.join(where, file_names.PARTITION_METADATA),
            kind=Code.BECOMES_STRAY,
            text=f"this file gives {name} the id of another topic, and this broker also has partition {log.partition} "
            "of that topic: a broker of 4.3 starts, but answers no client",
            expected=None if log.assigned_id is None else f"topic_id: {id_text(log.assigned_id)}",
            found=None if log.topic_id is None else id_text(log.topic_id),
            loses=self._records(log),
            advice="If the folder has the data of this topic, write the topic id from the metadata log to this file.",
            commands=()
            if log.assigned_id is None
            else (metadata_command(where, id_text(log.assigned_id), exists=True),),
        )

    def _begins_late(self, log: LogStart, facts: LogEvidence) -> Iterator[Finding]:
        """Yield the finding on records before the first segment that are missing, but were not deleted by a broker."""
        first, deleted = log.log_start_offset or 0, log.checkpoint_start or 0
        tiered = self.context.tiered
        reached = {
            what: offset
            for what, offset in facts.first.items()
            if offset < first and (what != EPOCHS or log.topic not in (tiered or ()))
        }
        if not reached:
            return
        if deleted >= first:
            if EPOCHS in reached and tiered is not None and max(reached[EPOCHS], facts.base) < first:
                yield self._start_raised(log, max(reached[EPOCHS], facts.base))
            return
        least = max(min(reached.values()), deleted)
        is_certain = tiered is not None or set(reached) != {EPOCHS}
        shown = ", ".join(f"{what}: {offset}" for what, offset in reached.items())
        compacted = self._may_be_compacted(log)
        gone = "the first segment is" if compacted else many_are(first - least, "record")
        below = many(first - least, "record")
        yield Finding(
            level=Level.LOG if is_certain else Level.REMARK,
            file=log.path or "",
            kind=Code.RECORDS_MISSING,
            text=f"{gone} missing: the log begins at offset {first}, but once began at or below {least} ({shown})"
            + (f"; compaction may have removed some of the {below} below offset {first}" if compacted else "")
            + ("" if is_certain else ". This is normal if the topic is in remote storage"),
            offset=least,
            expected=f"{least} or lower",
            found=first,
            missing=(0 if compacted else first - least) if is_certain else None,
            advice=self._elsewhere(log.topic, log.partition),
        )

    def _may_be_compacted(self, log: LogStart) -> bool:
        """Return whether the topic is compacted in the metadata log. The number of lost records is then unknown."""
        return bool(self.context.ids) and log.topic in self.context.compacted

    def _start_raised(self, log: LogStart, least: int) -> Finding:
        """Return the finding on a log start offset above that of the first leader epoch: DeleteRecords raises both."""
        name, first = f"{log.topic}-{log.partition}", log.checkpoint_start or 0
        compacted = self._may_be_compacted(log)
        return Finding(
            level=Level.LOG,
            file=posixpath.join(log.log_dir or "", file_names.LOG_STARTS),
            kind=Code.LOG_START_RAISED,
            text=f"log start offset {first} of {name} hides {'up to ' if compacted else ''}"
            f"{many(first - least, 'record')}: the leader epochs of the log begin at offset {least}, so no broker "
            f"deleted the records below {first}",
            offset=least,
            expected=f"{least} or no line",
            found=first,
            loses=0 if compacted else first - least,
            advice="Correct the line of the checkpoint before a broker starts. Otherwise the broker deletes the "
            f"segments below offset {first}.",
            commands=(self._log_start_command(log, least),),
        )

    def _log_start_command(self, log: LogStart, first: int) -> str:
        line = f"{log.topic} {log.partition}"
        expression = f"s/^{line.replace('.', '[.]')} .*/{line} {first}/"
        checkpoint = posixpath.join(log.log_dir or "", file_names.LOG_STARTS)
        return f"sed -i.bak {shell_word(expression)} {shell_path(checkpoint)}"

    def _hidden(self, log: LogStart, facts: LogEvidence) -> Iterator[Finding]:
        """Yield the finding on an index that hides records from a broker (LogSegment.readNextOffset)."""
        hidden = next((cause for cause in log.causes if cause.code is Code.INDEX_BEYOND_LOG), None)
        if hidden is None or facts.recovers:
            return
        index = hidden.file or log.path or ""
        if index.endswith(f".{file_names.SWAP}"):
            yield self._hiding_swap(log, index)
            return
        records = max((facts.end or 0) - (log.log_end_offset or 0), 0)
        if records:
            text = (
                "a start after a clean stop takes the log end from the last entry of this index, but the entry points "
                f"past the segment: the log would end at offset {log.log_end_offset}, and "
                f"{many(records, 'record')} would not be served"
            )
        else:
            text = (
                f"after a clean stop a broker looks up offset {log.log_end_offset} in this index, but the entry that "
                "it finds points past the segment: consumers would not receive new records"
            )
        yield Finding(
            level=Level.LOG,
            file=index,
            kind=Code.INDEX_BEYOND_LOG,
            text=text,
            loses=records,
            advice="Move this .index away: a start then rebuilds all indexes of the segment.",
            commands=(aside(index),),
        )

    def _hiding_swap(self, log: LogStart, swap: str) -> Finding:
        """Return the finding on a ``.swap`` that becomes a segment, but has no batch at or above its base offset.

        Brokers of 4.2.2 and 4.4.0 started so. Each produce failed, and consumers stopped before the segment.
        """
        return Finding(
            level=Level.LOG,
            file=swap,
            kind=Code.SWAPPED,
            text="a start makes this file a segment without a check. The file has no batch at or above "
            f"its base offset: the log would end at offset {log.log_end_offset}, and the broker would accept no new "
            "records",
            loses=0,
            advice=ADVICE[Code.SWAPPED],
            commands=(swaps_aside(swap),),
        )

    def _start_beyond_end(self, log: LogStart, name: str, reason: str) -> Finding:
        """Return the finding on a log whose end is below the log start offset, in the files or only after recovery.

        ``reason`` has both offsets. Records that the check already reports as truncated by recovery are not counted.
        """
        checkpoint = posixpath.join(log.log_dir or "", file_names.LOG_STARTS)
        facts, given = self._facts(log), log.checkpoint_start or 0
        records = sum(cut.records for cut in log.cuts)
        loses = None if facts.cuts_are_reported else records
        counted = f"({many(records, 'record')})"
        after = "after recovery " if log.recovered else ""
        text = f"{after}{reason}: a start then deletes all segments of {name} {counted}"
        rescue = salvage([shell_path(log.path or "")])
        advice = "Salvage the records before a broker starts."
        commands: tuple[str, ...] = (rescue,)
        if facts.end is not None and facts.end < given:
            epoch = 0 if log.topic in (self.context.tiered or ()) else facts.first.get(EPOCHS, 0)
            first = max(facts.start or 0, epoch if epoch <= facts.end else 0)
            text = f"log start offset {given} of {name} is above the log end offset {facts.end}: "
            text += f"a start deletes all segments of the log {counted}"
            advice = "Correct the line of the checkpoint before a broker starts. With log start offset "
            advice += f"{first} the broker keeps all segments."
            commands = (self._log_start_command(log, first),)
            if facts.cuts_are_reported:
                advice = "Salvage the records and correct the line of the checkpoint before a broker starts."
                loses, commands = 0, (rescue, *commands)  # not None: the verdict needs the commands
        return Finding(
            level=Level.LOG,
            file=checkpoint,
            kind=Code.LOG_START_BEYOND_END,
            text=text,
            offset=given,
            found=given,
            loses=loses,
            advice=advice,
            commands=commands,
        )


def _may_be_served(log: LogStart) -> bool:
    """Return whether a broker may serve a log: a promoted one, or one that may become stray (metadata unknown)."""
    if log.outcome is StartOutcome.FUTURE:
        return _has(log, Code.PROMOTED)
    return log.outcome is None and log.folder is not None and log.log_end_offset is not None


def _has(log: LogStart, code: FindingCode) -> bool:
    return any(cause.code is code for cause in log.causes)


def _named_stray(log: LogStart) -> bool:
    return _has(log, Code.NAMED_STRAY)
