"""The nodes of a rebuilt cluster: options ``--node`` and ``--voters``, replicas of each node, ``meta.properties``."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias
from uuid import uuid4

from kdump.errors import UsageError
from kdump.formats import meta_properties
from kdump.formats.partition_metadata import id_of
from kdump.primitives.wire import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.answers.metadata.topics import PartitionImage, Topics

DEFAULT: Final = "1@localhost:9092/9093"
_PLACE: Final = r"(?P<id>\d{1,10})@(?P<host>\[[^\]\s]+\]|[^\s:/@\[\]]+):(?P<port>\d{1,5})"
NODE: Final = re.compile(_PLACE + r"(?:/(?P<controller>\d{1,5}))?")
VOTER: Final = re.compile(_PLACE + r"(?::(?P<directory>[\w-]{22}))?")
PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Security protocol -> its number (``SecurityProtocol``). A listener with the name of a protocol uses this protocol."""
CLUSTER_ID: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)
LISTENER: Final = re.compile(r"[\w.-]+", re.ASCII)

Replicas: TypeAlias = "dict[tuple[bytes, int], tuple[int, ...]]"
"""Topic id and partition -> the nodes that have a replica, the leader first."""


class NewNode(NamedTuple):
    """A node of the new cluster. Without a controller port it is only a broker."""

    id: int
    host: str
    port: int
    controller_port: int | None
    directory_id: bytes

    @property
    def folder(self) -> str:
        return folder_of(self.id)

    @property
    def roles(self) -> str:
        return "broker" if self.controller_port is None else "broker,controller"

    @property
    def directory_text(self) -> str:
        return urlsafe_b64encode(self.directory_id)[:22].decode()


def folder_of(number: int) -> str:
    return f"node-{number}"


class Voter(NamedTuple):
    """A member of the quorum: its id, its controller address, and the id of its metadata log dir (None if unknown)."""

    id: int
    host: str
    port: int
    directory_id: bytes | None


class Listeners(NamedTuple):
    """The names of the listeners of brokers (``inter.broker.listener.name``) and of controllers."""

    broker: str = "PLAINTEXT"
    controller: str = "CONTROLLER"

    def checked(self) -> Self:
        """Return the names. Raises UsageError for names that ``listeners`` cannot have, and for equal names."""
        for option, name in (("--listener", self.broker), ("--controller-listener", self.controller)):
            if not LISTENER.fullmatch(name):
                raise UsageError(f"{option} {name!r} is not the name of a listener, such as PLAINTEXT or INTERNAL")
        if self.broker.upper() == self.controller.upper():
            raise UsageError(f"--listener and --controller-listener have the same name {self.broker}: Kafka refuses it")
        return self


def new_directory_id() -> bytes:
    """Return a random id for a log dir. Like ids of ``Uuid.randomUuid``, it does not start with a dash in base64."""
    while True:
        made = uuid4().bytes
        if not urlsafe_b64encode(made).startswith(b"-"):
            return made


def parse_nodes(texts: Sequence[str]) -> list[NewNode]:
    """Return the nodes of ``--node``, or DEFAULT. Raises UsageError for a wrong value, a repeat, or no controller."""
    found = [_node(text) for text in texts or (DEFAULT,)]
    _once("--node: node id", (each.id for each in found))
    addresses = ((each.host, port) for each in found for port in (each.port, each.controller_port) if port is not None)
    _once("--node: address", (f"{host}:{port}" for host, port in addresses))
    if all(each.controller_port is None for each in found):
        first = found[0]
        text = f"{first.id}@{first.host}:{first.port}/{min(first.port + 1, 65535)}"
        raise UsageError(f"no node is a controller: add a controller port to at least one, such as --node {text}")
    return found


def _once(what: str, values: Iterable[object]) -> None:
    seen: set[object] = set()
    for value in values:
        if value in seen:
            raise UsageError(f"{what} {value} is given twice")
        seen.add(value)


def _node(text: str) -> NewNode:
    found = NODE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"--node {text!r} is not of the form ID@HOST:PORT[/CONTROLLERPORT], such as 1@broker1.example.com:9092/9093"
        )
    controller = found["controller"]
    return NewNode(
        _number(text, found["id"], INT32_MAX),
        found["host"].strip("[]"),
        _port(text, found["port"]),
        None if controller is None else _port(text, controller),
        new_directory_id(),
    )


def parse_voters(text: str) -> list[Voter]:
    """Return the voters of ``--voters``. Raises UsageError for a malformed value or a repeated id."""
    voters = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        found = VOTER.fullmatch(part)
        if found is None:
            raise UsageError(
                f"--voters {part!r} is not of the form ID@HOST:PORT[:DIRECTORYID], "
                "such as 1@controller1.example.com:9093"
            )
        directory = found["directory"]
        number, port = _number(part, found["id"], INT32_MAX), _port(part, found["port"])
        voters.append(Voter(number, found["host"].strip("[]"), port, None if directory is None else uuid(directory)))
    if not voters:
        raise UsageError("--voters names no voter: ID@HOST:PORT[:DIRECTORYID],...")
    _once("--voters: id", (voter.id for voter in voters))
    return voters


def uuid(text: str) -> bytes:
    """Return the 16 bytes of an id of 22 characters. Raises UsageError if ``text`` is not an id."""
    value = id_of(text)
    if not value:
        raise UsageError(f"{text!r} is not an id (an id has 22 letters of URL-safe base64)")
    return value


def _number(text: str, digits: str, most: int) -> int:
    number = int(digits)
    if number > most:
        raise UsageError(f"{text!r}: {digits} is more than {most}")
    return number


def _port(text: str, digits: str) -> int:
    port = _number(text, digits, 65535)
    if not port:
        raise UsageError(f"{text!r}: 0 is not a port")
    return port


def replication_of(old: PartitionImage, brokers: int, wanted: int | None) -> int:
    """Return the new number of replicas of a partition, 1 to ``brokers``: ``wanted`` or, if None, the old number.

    ``wanted`` is the value of ``--replication``. The old number excludes replicas that a reassignment was adding.
    """
    factor = len(old.replicas) - len(old.adding) if wanted is None else wanted
    return max(1, min(factor, brokers))


def assign(topics: Topics, nodes: Sequence[NewNode], wanted: int | None = None) -> Replicas:
    """Return the nodes of each partition, the leader first. ``wanted`` is the value of ``--replication``, or None.

    If ``wanted`` is None and the new nodes are exactly the nodes of all old replicas, each node keeps its replicas,
    except those that a reassignment was adding. Otherwise leaders are assigned round-robin, one node later for each
    topic. The followers are the nodes after the leader; their distance from it changes with each round.
    """
    ids = [node.id for node in nodes]
    partitions = [
        (topic.id, number, state)
        for _, topic in sorted(topics.by_name.items())
        for number, state in sorted(topic.partitions.items())
    ]
    old = {number for _, _, state in partitions for number in state.replicas}
    stays = old == set(ids) and wanted is None
    made: Replicas = {}
    starts = {topic.id: place for place, (_, topic) in enumerate(sorted(topics.by_name.items()))}
    for topic, number, state in partitions:
        count = replication_of(state, len(ids), wanted)
        kept = [node for node in state.replicas if node not in state.adding] or state.replicas
        made[topic, number] = tuple(kept[:count] if stays else _go_round(ids, starts[topic] + number, count))
    return made


def _go_round(ids: Sequence[int], leader: int, count: int) -> Iterator[int]:
    """Yield nodes in the order of Kafka's placement: the leader, then nodes at a distance that changes each round."""
    yield ids[leader % len(ids)]
    others = len(ids) - 1
    shift = leader // len(ids)
    for number in range(count - 1):
        yield ids[(leader + 1 + (shift + number) % others) % len(ids)]


def meta_properties_file(node: NewNode, cluster_id: str) -> bytes:
    """Return the bytes of ``meta.properties`` (version 1, KIP-858)."""
    values = {
        "version": "1",
        "cluster.id": cluster_id,
        "node.id": str(node.id),
        "directory.id": node.directory_text,
    }
    return meta_properties.encode(meta_properties.MetaProperties(values, ("#",)))


def address(host: str, port: int) -> str:
    """Return ``host:port``, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
