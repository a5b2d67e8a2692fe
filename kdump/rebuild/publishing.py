"""Writes a rebuilt cluster to a folder that appears complete or not at all, with a ``node-N.properties`` per node."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from kdump.answers.metadata import snapshot_writer
from kdump.answers.metadata.image import Copies
from kdump.errors import SILENT
from kdump.log_dirs import file_names
from kdump.output import access, files
from kdump.rebuild import account, copying, metadata
from kdump.rebuild.copying import Journal, PlacedPartition
from kdump.rebuild.first_start import DELAY
from kdump.rebuild.metadata import protocol_of
from kdump.rebuild.nodes import PROTOCOLS, address, folder_of, meta_properties_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kdump.rebuild.cluster import RebuiltCluster
    from kdump.rebuild.metadata import LostCluster, NewCluster
    from kdump.rebuild.nodes import NewNode, Replicas
    from kdump.rebuild.partition_plan import PartitionPlan
    from kdump.rebuild.volumes import Volumes


METADATA_FOLDER: Final = "__cluster_metadata-0"


class Publishing:
    """The output folder ``out``, which is not complete yet. It appears complete when the ``with`` block succeeds.

    If the disk certainly has room, each partition is written as soon as it is planned, while its copies are in the page
    cache. Otherwise :meth:`finish` writes all partitions, when it knows the needed space. With ``resume``, complete
    segments of a killed run are used again, and are kept if this run ends early too. Raises UsageError if ``out`` is
    not empty, and UnreadableError if it cannot be written.
    """

    def __init__(self, volumes: Volumes, out: Path, *, resume: bool, note: Callable[[str], None]) -> None:
        self._volumes, self._out, self._note = volumes, out, note
        self._access = access.of_sources(folder.partition for folder in volumes.folders)
        self._resumes = partial(Journal.is_of, out=str(out)) if resume else None
        self._stack = ExitStack()
        self._folder: Path | None = None
        self._replicas: Replicas = {}
        self._early: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    def _begun(self) -> Path:
        if self._folder is None:
            folder = files.new_folder(
                self._out, last=account.FILE, access=self._access, note=self._note, resumes=self._resumes
            )
            self._folder = self._stack.enter_context(folder)
            self._journal = self._stack.enter_context(Journal(self._folder, str(self._out), self._access))
        return self._folder

    def begin(self, replicas: Replicas) -> None:
        """Set the nodes of each partition, and begin to write if the disk certainly has room."""
        self._replicas = replicas
        copies = max(map(len, replicas.values()), default=0)
        found = [each.partition for each in self._volumes.folders]
        needed = sum(one.size + copying.small_size(one) for one in found)
        needed += len(replicas) * copying.SMALL_BYTES
        if needed * copies <= copying.free_bytes(str(self._out)) + self._copied_before():
            self._begun()

    def _copied_before(self) -> int:
        return 0 if self._resumes is None else copying.copied_before(str(self._out))

    def write(self, plan: PartitionPlan) -> None:
        if self._folder is not None:
            copying.write_partition(self._folder, self._placed(plan), self._access, self._journal)

    def written(self, plan: PartitionPlan) -> None:
        """Flush a partition that :meth:`write` has written, here or in a worker, and add it to the journal."""
        if self._folder is not None:
            copying.flush_partition(self._folder, self._placed(plan), self._journal)
            self._early.add(plan.name)

    def _placed(self, plan: PartitionPlan) -> PlacedPartition:
        nodes = self._replicas[plan.topic_id or b"", plan.partition]
        return PlacedPartition(plan, tuple(map(folder_of, nodes)))

    def finish(self, rebuilt: RebuiltCluster, *, jobs: int, progress: Callable[[int], None]) -> None:
        """Write the other partitions, ``lost+found``, metadata and properties of all nodes, last ``account.json``."""
        placed = list(map(self._placed, rebuilt.plans))
        if self._folder is None:
            copying.make_sure_of_room(str(self._out), copying.room(placed) - self._copied_before())
        folder, who = self._begun(), self._access
        copying.write(folder, placed, who, self._journal, jobs=jobs, early=self._early, done=progress)
        copying.write_lost(folder, rebuilt.plans, rebuilt.unknown, who)
        copies = Copies(self._volumes.metadata_copies, SILENT)
        secret = who.without(access.of_files(copies.sources()))  # the snapshot has the credentials of these copies
        name, data = snapshot_writer.file_name(rebuilt.image), snapshot_writer.encode(rebuilt.image)
        for node in rebuilt.to.nodes:
            log_dir = files.make_folders(folder, node.folder, access=who)
            ids = meta_properties_file(node, rebuilt.account.metadata.cluster_id)
            files.fill(log_dir / file_names.META_PROPERTIES, ids, who)
            files.fill(files.make_folders(log_dir, METADATA_FOLDER, access=who) / name, data, secret)
            path = str(self._out.absolute() / node.folder)
            minutes, delays = rebuilt.retention_minutes, rebuilt.delays_retention
            lines = properties(node, rebuilt.to, rebuilt.lost, path, minutes, delays=delays)
            files.fill(folder / f"{node.folder}.properties", "".join(f"{line}\n" for line in lines).encode(), who)
        self._journal.end()
        files.fill(folder / account.FILE, rebuilt.account.encode(), who)


HEAD: Final = """\
# Node {id} of a cluster that kdump rebuilt for Kafka {release}. These lines are enough to start a plain node.
# Before the first start:
# 1. Copy {folder}/ to the host of this node. The user that runs Kafka must own it: chown -R kafka: {folder}
#    Set log.dirs below to its path on the host. Nothing else may be in this folder, and it must be on one disk.
# 2. Copy the old server.properties of a node (security, listeners, quotas, remote storage), and put each line below
#    into the copy. If it has a line with the same key, replace that line. If controller.quorum.bootstrap.servers is
#    below, remove controller.quorum.voters.
# 3. Never format this log dir: it is complete.
# 4. Start all controllers first. `kdump check {folder}` prints the effects of a start."""


def properties(
    node: NewNode, to: NewCluster, lost: LostCluster, log_dir: str, minutes: int, *, delays: bool
) -> Iterator[str]:
    """Yield ``node-N.properties``. ``minutes``: offsets.retention.minutes; ``delays``: with DELAY of an hour."""
    yield HEAD.format(id=node.id, release=to.release.name, folder=node.folder)
    names, brokers = to.listeners, len(to.nodes)
    yield ""
    yield f"node.id={node.id}"
    yield f"process.roles={node.roles}"
    yield f"log.dirs={log_dir}"
    listeners = [f"{names.broker}://:{node.port}"]
    if node.controller_port is not None:
        listeners.append(f"{names.controller}://:{node.controller_port}")
    yield f"listeners={','.join(listeners)}"
    yield f"advertised.listeners={names.broker}://{address(node.host, node.port)}"
    yield f"inter.broker.listener.name={names.broker}"
    yield f"controller.listener.names={names.controller}"
    yield f"listener.security.protocol.map={','.join(_protocols(to, lost))}"
    voters = [each for each in to.nodes if each.controller_port is not None]
    servers = [address(each.host, each.controller_port or 0) for each in voters]
    if metadata.has_voters(to.release):
        yield f"controller.quorum.bootstrap.servers={','.join(servers)}"
    else:
        named = [f"{each.id}@{server}" for each, server in zip(voters, servers, strict=True)]
        yield f"controller.quorum.voters={','.join(named)}"
    yield ""
    yield "# Committed offsets older than this many minutes are deleted seconds after the start (default: 7 days)."
    yield f"offsets.retention.minutes={minutes}"
    if delays:
        yield ""
        yield "# The first retention check comes after an hour, not after 30 seconds. Raise retention.ms of topics"
        yield "# with kafka-configs.sh within this hour, remove this line, and restart."
        yield f"{DELAY}=3600000"
    yield ""
    yield "# A broker uses these lines when it creates the topics of the coordinators."
    least = min(2, brokers)
    factor = min(3, brokers)
    yield f"offsets.topic.replication.factor={factor}"
    yield f"transaction.state.log.replication.factor={factor}"
    yield f"transaction.state.log.min.isr={least}"
    share_version = to.release.highest_of("share.version")  # KIP-932
    if share_version > 0:
        yield f"share.coordinator.state.topic.replication.factor={factor}"
        yield f"share.coordinator.state.topic.min.isr={least}"


def _protocols(to: NewCluster, lost: LostCluster) -> Iterator[str]:
    """Yield the security protocol of each listener; PLAINTEXT if it is unknown."""
    words = {number: name for name, number in PROTOCOLS.items()}
    yield f"{to.listeners.broker}:{words[protocol_of(to.listeners.broker, lost.image)]}"
    yield f"{to.listeners.controller}:{words[protocol_of(to.listeners.controller, lost.image)]}"
