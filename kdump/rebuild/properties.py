"""``node-N.properties``: the lines of server.properties that a rebuilt node needs, with instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.rebuild import release_facts
from kdump.rebuild.metadata import protocol_of
from kdump.rebuild.nodes import PROTOCOLS, address
from kdump.rebuild.warnings import DELAY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.rebuild.metadata import LostCluster, NewCluster
    from kdump.rebuild.nodes import NewNode

HEAD: Final = """\
# Node {id} of a cluster that kdump rebuilt for Kafka {release}. With these lines alone it starts as a plain node.
# Before the first start:
# 1. Copy {folder}/ to the host of this node, owned by the user that runs Kafka: chown -R kafka: {folder}
#    Where it lies on the host is the value of log.dirs below. It must hold nothing else, and be on one disk.
# 2. Take the old server.properties of a node (security, listeners, quotas, remote storage), and replace in it
#    the lines that stand here. Leave out controller.quorum.voters where controller.quorum.bootstrap.servers is set.
# 3. Never format this log dir: it is complete.
# 4. Start all controllers first. `kdump check {folder}` says beforehand what a broker makes of it.
"""


def properties(node: NewNode, to: NewCluster, lost: LostCluster, log_dir: str, minutes: int, *, delays: bool) -> str:
    """Return the text of the file. ``delays`` postpones the first retention check by an hour."""
    head = HEAD.format(id=node.id, release=to.release.name, folder=node.folder)
    return head + "".join(f"{line}\n" for line in _lines(node, to, lost, log_dir, minutes, delays=delays))


def _lines(
    node: NewNode, to: NewCluster, lost: LostCluster, log_dir: str, minutes: int, *, delays: bool
) -> Iterator[str]:
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
    if release_facts.has_voters(to.release):
        yield f"controller.quorum.bootstrap.servers={','.join(servers)}"
    else:
        named = [f"{each.id}@{server}" for each, server in zip(voters, servers, strict=True)]
        yield f"controller.quorum.voters={','.join(named)}"
    yield ""
    yield "# Committed offsets older than this many minutes are deleted seconds after the start (default: 7 days)."
    yield f"offsets.retention.minutes={minutes}"
    if delays:
        yield ""
        yield "# The first retention check comes after an hour, not after 30 seconds: raise retention.ms of topics"
        yield "# with kafka-configs.sh until then, take this line out, and restart."
        yield f"{DELAY}=3600000"
    yield ""
    yield "# Topics of the coordinators that do not exist yet are created with these."
    least = min(2, brokers)
    factor = min(3, brokers)
    yield f"offsets.topic.replication.factor={factor}"
    yield f"transaction.state.log.replication.factor={factor}"
    yield f"transaction.state.log.min.isr={least}"
    if release_facts.has_share_groups(to.release):
        yield f"share.coordinator.state.topic.replication.factor={factor}"
        yield f"share.coordinator.state.topic.min.isr={least}"


def _protocols(to: NewCluster, lost: LostCluster) -> Iterator[str]:
    """Yield the security protocol of each listener; PLAINTEXT for controllers with an unknown one."""
    words = {number: name for name, number in PROTOCOLS.items()}
    yield f"{to.listeners.broker}:{words[protocol_of(to.listeners.broker, lost.image)]}"
    yield f"{to.listeners.controller}:{words[protocol_of(to.listeners.controller, lost.image)]}"
