"""One pass over log dirs that gathers the data of a report.

The check reads the selected partitions, and passes the regions of live logs to all collectors. Kafka's own topics that
are not selected are read without a check. The metadata log is replayed before; log end offsets are read afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from kdump.answers.disk_usage import DiskUsage
from kdump.answers.groups.collector import TOPICS, ConsumerGroups, GroupsWanted
from kdump.answers.log_dir_pass import LogDirPass, PassTap, gather_with
from kdump.answers.log_events import DamagedRanges, LogEvents
from kdump.answers.metadata.image import image_of, partition_count, topic_ids, topic_names
from kdump.answers.retention import Retention, copied_offsets
from kdump.answers.statistics import Statistics
from kdump.answers.topic_configs import TopicConfigs
from kdump.answers.transactions import Transactions
from kdump.checks import across_log_dirs, whole_partition
from kdump.errors import discard
from kdump.internal_topics import cluster_metadata, remote_log_metadata, transaction_state
from kdump.log_dirs.file_names import LEFTOVER_ENDS, Name, leftover_state
from kdump.log_dirs.finder import holds_a_log
from kdump.log_reader.replicas import spares
from kdump.log_reader.topic_ids import current_ids, of_deleted_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kdump.answers.collector import Collector, Place
    from kdump.answers.topic_configs import GivenConfig
    from kdump.broker_start.started import Started
    from kdump.checks.log_dir import LogDirs
    from kdump.checks.whole_partition import CheckedPartition, CheckOptions
    from kdump.errors import Reporter
    from kdump.log_dirs.finder import Wanted
    from kdump.log_dirs.partition import Partition
    from kdump.primitives.processes import Workers

ALSO = (*TOPICS, transaction_state.TOPIC, cluster_metadata.TOPIC, remote_log_metadata.TOPIC)
"""Kafka's own topics that are always read, because they describe other topics."""


@dataclass
class ReportCollectors:
    """The collectors of a report, the options of its check (``how``), and the results of the check."""

    how: CheckOptions
    usage: DiskUsage
    statistics: Statistics
    retention: Retention
    transactions: Transactions
    groups: ConsumerGroups
    damage: DamagedRanges
    events: LogEvents
    checked: list[CheckedPartition] = field(default_factory=list)
    started: list[Started] = field(default_factory=list)
    found_all: bool = True
    """Whether, before the pass, no file was reported as unreadable, damaged or unused."""

    @property
    def of_logs(self) -> list[Collector]:
        """The collectors that read the logs of selected topics."""
        return [self.statistics, self.damage, self.events, self.retention, *self.of_coordinators]

    @property
    def of_coordinators(self) -> list[Collector]:
        """The collectors that read Kafka's own topics, even if --topic does not select these topics."""
        return [self.transactions, self.groups]

    def merge(self, other: ReportCollectors) -> None:
        self.usage.merge(other.usage)
        for mine, theirs in zip(self.of_logs, other.of_logs, strict=True):
            mine.merge(theirs)
        known = {finding for one in self.checked for finding in one.findings}  # several workers may share a log dir
        for one in other.checked:
            new = tuple(finding for finding in one.findings if finding not in known)
            self.checked.append(one._replace(findings=new))


def collectors_for(
    partitions: Sequence[Partition],
    asked: Wanted,
    report: Reporter,
    how: CheckOptions,
    configs: Sequence[GivenConfig] = (),
) -> ReportCollectors:
    """Return new collectors. ``configs`` override the configs in the metadata log in ``partitions``."""
    logs = live_of(partitions)
    image = image_of(logs, report)
    copied = copied_offsets(partitions, image, report)
    current = current_ids(topic_ids(image), logs)
    left_out = [*spares(logs, discard), *of_deleted_topics(logs, discard, current)]
    answer = ReportCollectors(
        how=how,
        usage=DiskUsage(),
        statistics=Statistics(hours=True, spares=left_out),
        retention=Retention(TopicConfigs(image, configs), copied=copied),
        transactions=Transactions(asked, coordinators=partition_count(image, transaction_state.TOPIC)),
        groups=ConsumerGroups(GroupsWanted(partitions=asked)),
        damage=DamagedRanges(),
        events=LogEvents(),
    )
    answer.groups.ends.topic_ids.update(topic_names(image))
    for one in (answer.retention, *answer.of_coordinators):
        one.current_ids = current
    return answer


class ReportPass:
    """Reads partitions once for all collectors and the check; ``progress`` is called with numbers of bytes."""

    def __init__(
        self,
        into: ReportCollectors,
        asked: Wanted,
        report: Reporter,
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._into, self._asked, self._report, self._progress = into, asked, report, progress
        self.dirs = into.how.log_dirs(report)
        self._files = LogDirPass([into.usage], report, self.dirs)
        self._logs = LogDirPass(into.of_logs, report, self.dirs)
        self._coordinators = LogDirPass(into.of_coordinators, report, self.dirs)

    def run(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            log = live(partition)
            if self._asked.takes(Name(partition.topic, partition.partition)):
                self._partition(self._files.place(partition), log)
            elif log is not None and log.topic in ALSO:
                self._coordinators.partition(self._coordinators.place(log))
                self._progress(log.size)

    def _partition(self, place: Place, log: Partition | None) -> None:
        partition = place.partition
        if partition.segments or holds_a_log(partition.others, log_dirs=True):
            tap = None
            if log is not None:
                tap = PassTap(self._logs, place if log is partition else place._replace(partition=log))
            checked = whole_partition.check(partition, self._into.how, self.dirs, self._progress, tap)
            if tap is not None:
                tap.close()
            for error in checked.failed:
                self._report.fail(error)
            self._into.checked.append(checked)
        self._files.partition(place)  # after the check, which has read the end of the log


def live(partition: Partition) -> Partition | None:
    """Return a partition without .deleted, .cleaned and .swap files; None for a leftover folder or without a topic."""
    if partition.topic is None or leftover_state(partition.folder):
        return None
    kept = tuple([segment for segment in partition.segments if not segment.path.endswith(LEFTOVER_ENDS)])
    return partition if len(kept) == len(partition.segments) else partition._replace(segments=kept)


def live_of(partitions: Iterable[Partition]) -> list[Partition]:
    return [log for log in map(live, partitions) if log is not None]


def gather(
    into: ReportCollectors,
    partitions: Sequence[Partition],
    asked: Wanted,
    report: Reporter,
    *,
    workers: Workers | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> LogDirs:
    """Fill new collectors from partitions, in this process or with ``workers``, and look up log end offsets for lag.

    Return the log dirs of the partitions, read at first use. ``report`` may receive the same sentence more than once.
    """
    if workers is not None:
        gather_with(workers, into, partial(_feed, asked), partitions, report._replace(progress=progress))
        dirs = into.how.log_dirs()
    else:
        reader = ReportPass(into, asked, report, progress)
        reader.run(partitions)
        dirs = reader.dirs
    across = tuple(
        across_log_dirs.check([one for one in partitions if asked.takes(Name(one.topic, one.partition))], dirs)
    )
    into.checked.append(whole_partition.CheckedPartition(0, 0, 0, across))
    _look_up_ends(into, partitions, report)
    return dirs


def _feed(asked: Wanted, into: ReportCollectors, partitions: Sequence[Partition], report: Reporter) -> None:
    ReportPass(into, asked, report).run(partitions)


def _look_up_ends(into: ReportCollectors, partitions: Sequence[Partition], report: Reporter) -> None:
    into.groups.ends = into.groups.log_ends()
    if into.groups.partitions():
        LogDirPass([into.groups.ends], report).run(live_of(partitions))
