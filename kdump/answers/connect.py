"""The lines of ``kdump connect``: connectors, their tasks, states and source offsets.

:class:`ConnectTopics` finds the topics of Connect clusters by the keys of their records, unless options name them;
:class:`ConnectCluster` replays these records like a worker. Sources: KafkaConfigBackingStore, KafkaStatusBackingStore,
KafkaOffsetBackingStore and ConnectorsResource of Kafka Connect (3.6.2).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from kdump.errors import Reporter
from kdump.internal_topics import DECODER_SWITCHES
from kdump.internal_topics.secrets import connect_config
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_reader import replicas
from kdump.log_reader.reader import PartitionReader
from kdump.log_reader.topic_ids import of_present_topics
from kdump.log_reader.unnamed_logs import with_names
from kdump.primitives.encodings import java_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.log_dirs.partition import Partition
    from kdump.rows.selection import DamagedRange


Role: TypeAlias = Literal["configs", "status", "offsets"]

_CONFIG_KEY: Final = re.compile(
    r"(?P<what>target-state|connector|tasks-fencing|commit|restart-connector|logger-cluster)-(?P<name>.+)"
    r"|task-(?P<of>.+)-(?P<number>[^-]+)|(?P<session>session-key)",
    re.DOTALL,
)
_STATUS_KEY: Final = re.compile(
    r"status-(?:connector-(?P<name>.+)|task-(?P<of>.+)-(?P<number>[^-]+)|topic-(?P<topic>[^:]+):connector-(?P<by>.+))",
    re.DOTALL,
)


@dataclass(frozen=True)
class ConnectorLine:
    """A connector. ``type`` is sink if its config has ``topics`` or ``topics.regex``, else source.

    ``inconsistent``: the last committed task configs are incomplete, so a worker will write all of them again.
    """

    kind: ClassVar[str] = "connector"
    connector: str
    type: str
    state: str | None
    worker_id: str | None
    trace: str | None
    target_state: str | None
    tasks: int
    inconsistent: bool
    topics: tuple[str, ...]
    config: dict[str, str | None]
    configs_topic: str
    timestamp_ms: int


@dataclass(frozen=True)
class ConnectTaskLine:
    """A task of a connector: its state, and its committed config."""

    kind: ClassVar[str] = "task"
    connector: str
    task: int
    state: str | None
    worker_id: str | None
    trace: str | None
    config: dict[str, str | None]


@dataclass(frozen=True)
class SourceOffsetLine:
    """The committed offset of a source's partition. The connector chooses the fields of partition and offset."""

    kind: ClassVar[str] = "sourceOffset"
    connector: str
    partition: dict[str, Any]
    offset: dict[str, Any]
    timestamp_ms: int


ConnectLine: TypeAlias = ConnectorLine | ConnectTaskLine | SourceOffsetLine


def role_of(keys: Iterable[bytes | None]) -> Role | None:
    """Return the role of a topic from the keys of some records; None unless all keys have the same role."""
    roles = {_role(key) for key in keys}
    return roles.pop() if len(roles) == 1 else None


def _role(key: bytes | None) -> Role | None:
    text = _text(key)
    if text is None:
        return None
    if _STATUS_KEY.fullmatch(text):
        return "status"
    if _CONFIG_KEY.fullmatch(text):
        return "configs"
    return "offsets" if _source_partition(text) is not None else None


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _source_partition(key: str) -> tuple[str, dict[str, Any]] | None:
    """Return connector and partition from a key of the offsets topic (a JSON array), or None for other text."""
    match _json(key):
        case [str() as connector, dict() as partition]:
            return connector, partition
    return None


def _json(text: str | None) -> Any:
    """Return the value of a JSON text, without the schema envelope of a converter; None for null and for other text."""
    try:
        made = None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(made, dict) and made.keys() == {"schema", "payload"}:
        return made["payload"]
    return made


@dataclass
class _Connector:
    config: dict[str, str | None] | None = None
    timestamp: int = -1
    target: str | None = None
    tasks: dict[int, dict[str, str | None]] = field(default_factory=dict)
    deferred: dict[int, dict[str, str | None]] = field(default_factory=dict)
    count: int = 0
    inconsistent: bool = False


class ConnectCluster:
    """Replays the records of one Connect cluster, each partition in the order of its log."""

    def __init__(self, configs_topic: str, *, show_secrets: bool = False) -> None:
        self._topic, self._show_secrets = configs_topic, show_secrets
        self._connectors: dict[str, _Connector] = {}
        self._states: dict[str | tuple[str, int], dict[str, Any]] = {}
        self._topics: dict[str, set[str]] = {}
        self._offsets: dict[str, tuple[str, dict[str, Any], dict[str, Any], int]] = {}
        self.skipped = 0
        """The number of records that a worker skips: the key is not Connect's, or the value does not fit the key."""

    def add(self, role: Role, timestamp: int, key: bytes | None, value: bytes | None) -> None:
        text, made = _text(key), _json(_text(value))
        if text is None or (made is None and value is not None) or not self._add(role, timestamp, text, made):
            self.skipped += 1

    def _add(self, role: Role, timestamp: int, key: str, value: Any) -> bool:
        if role == "offsets":
            return self._add_offset(timestamp, key, value)
        pattern = _STATUS_KEY if role == "status" else _CONFIG_KEY
        found = pattern.fullmatch(key)
        if found is None or not (value is None or isinstance(value, dict)):
            return False
        return self._add_status(found, value) if role == "status" else self._add_config(found, timestamp, value)

    def _add_config(self, key: re.Match[str], timestamp: int, value: dict[str, Any] | None) -> bool:
        if key["of"] is not None:
            config, number = _properties(value), java_integer(key["number"], 32)
            if config is None or number is None:
                return False
            self._connector(key["of"]).deferred[number] = config
            return True
        if key["what"] == "connector":
            return self._add_connector(key["name"], timestamp, value)
        if key["what"] == "target-state":
            state = (value or {}).get("state.v2", (value or {}).get("state"))
            self._connector(key["name"]).target = state if isinstance(state, str) else None
            return value is None or isinstance(state, str)
        return key["what"] != "commit" or self._commit(key["name"], value)

    def _add_connector(self, name: str, timestamp: int, value: dict[str, Any] | None) -> bool:
        if value is None:  # the connector and its tasks are deleted; the target state has its own tombstone
            self._connectors[name] = _Connector(target=self._connector(name).target)
            return True
        config = _properties(value)
        if config is None:
            return False
        found = self._connector(name)
        found.config, found.timestamp = config, timestamp
        return True

    def _commit(self, name: str, value: dict[str, Any] | None) -> bool:
        """Apply the task configs since the last commit if they are complete; return whether ``value`` is valid."""
        count = (value or {}).get("tasks")
        if type(count) is not int or count >= 1 << 31:
            return False
        found = self._connector(name)
        found.inconsistent = sum(0 <= number < count for number in found.deferred) < count
        if not found.inconsistent:
            found.tasks |= found.deferred
        found.deferred, found.count = {}, count
        return True

    def _add_status(self, key: re.Match[str], value: dict[str, Any] | None) -> bool:
        if key["topic"] is not None:
            used = self._topics.setdefault(key["by"], set())
            (used.discard if value is None else used.add)(key["topic"])
            return True
        of: str | tuple[str, int] = key["name"]
        if key["of"] is not None:
            number = java_integer(key["number"], 32)
            if number is None:
                return False
            of = key["of"], number
        if value is None:
            self._states.pop(of, None)
            return True
        state, generation = value.get("state"), value.get("generation")
        has_texts = all(isinstance(value.get(name), str | None) for name in ("worker_id", "trace"))
        if not isinstance(state, str) or type(generation) is not int or not has_texts:
            return False
        known = self._states.get(of, {})
        is_stale = state == "UNASSIGNED" and known.get("state") == "RUNNING" and known["generation"] >= generation
        if key["of"] is None or not is_stale:  # a task may run on another worker, whose status came first
            self._states[of] = value
        return True

    def _add_offset(self, timestamp: int, key: str, value: Any) -> bool:
        found = _source_partition(key)
        if found is None or not (value is None or isinstance(value, dict)):
            return False
        if value is None:
            self._offsets.pop(key, None)
        else:
            self._offsets[key] = (*found, value, timestamp)
        return True

    def _connector(self, name: str) -> _Connector:
        return self._connectors.setdefault(name, _Connector())

    def lines(self) -> Iterator[ConnectLine]:
        """Yield connectors by name, each with its tasks and source offsets. A deleted connector has only offsets."""
        offsets: dict[str, list[SourceOffsetLine]] = {}
        for key in sorted(self._offsets):
            name, partition, offset, timestamp = self._offsets[key]
            offsets.setdefault(name, []).append(SourceOffsetLine(name, partition, offset, timestamp))
        names = {name for name, found in self._connectors.items() if found.config is not None}
        for name in sorted(names | offsets.keys()):
            if name in names:
                yield from self._lines_of(name, self._connectors[name])
            yield from offsets.get(name, ())

    def _lines_of(self, name: str, found: _Connector) -> Iterator[ConnectLine]:
        config = found.config or {}
        state = self._states.get(name, {})
        yield ConnectorLine(
            name,
            "sink" if config.get("topics") or config.get("topics.regex") else "source",
            state.get("state"),
            state.get("worker_id"),
            state.get("trace"),
            found.target,
            found.count,
            found.inconsistent,
            tuple(sorted(self._topics.get(name, ()))),
            self._shown(config),
            self._topic,
            found.timestamp,
        )
        is_sane = found.count <= _MOST_TASKS
        for number in range(found.count) if is_sane else sorted(found.tasks):
            state = self._states.get((name, number), {})
            shown = self._shown(found.tasks.get(number, {}))
            yield ConnectTaskLine(name, number, state.get("state"), state.get("worker_id"), state.get("trace"), shown)

    def _shown(self, config: dict[str, str | None]) -> dict[str, str | None]:
        return config if self._show_secrets else connect_config(config)


def _properties(value: dict[str, Any] | None) -> dict[str, str | None] | None:
    found = (value or {}).get("properties")
    if not isinstance(found, dict):
        return None
    return {name: one if isinstance(one, str | None) else json.dumps(one) for name, one in found.items()}


_NAMES: Final = re.compile(r".*(?:connect|config|status|offset|storage).*", re.IGNORECASE | re.DOTALL)
"""Pattern of the names of topics whose keys are examined, apart from unnamed logs."""
_MOST_TASKS: Final = 100_000
"""If a commit has more tasks, only the tasks with a config have a line."""
_SAMPLE: Final = 32
"""Maximum number of records that are read to determine the role of a topic from their keys."""


class ConnectNames(NamedTuple):
    """The names of the topics of a Connect cluster. A name is empty if the topic is unknown."""

    configs: str = ""
    status: str = ""
    offsets: str = ""


class ConnectTopics:
    def __init__(
        self,
        paths: Sequence[str],
        wanted: Wanted,
        *,
        report: Reporter,
        lost: Callable[[DamagedRange], None] = lambda _: None,
    ) -> None:
        """Topics outside ``wanted`` are not read. ``report`` receives unreadable files and notes, ``lost`` damage."""
        of_files = Reporter(fail=report.fail)
        self._reader = PartitionReader(outcomes=False, report=of_files)
        self._lost = lost
        found = list(Finder(wanted, of_files._replace(note=report.note), brief=True).find(paths))
        self._unnamed: set[str | None] = set()
        """The names that :func:`with_names` gives to logs without a topic."""
        known = [one for one in found if one.topic is not None]
        unnamed = (one for one in found if one.topic is None and one.is_named and one.segments)
        for one in with_names(unnamed, report.note):
            self._unnamed.add(one.topic)
            known.append(one)
        self._partitions: dict[str, list[Partition]] = {}
        for partition in replicas.each_once(of_present_topics(known, report.note), report.note, ""):
            if partition.topic is not None and partition.topic not in DECODER_SWITCHES:
                self._partitions.setdefault(partition.topic, []).append(partition)

    @property
    def names(self) -> list[Name]:
        return [Name(topic, each.partition) for topic, found in self._partitions.items() for each in found]

    def absent(self, named: ConnectNames) -> list[str]:
        """Return the names in ``named`` that no topic has."""
        return [topic for topic in named if topic and topic not in self._partitions]

    def clusters(self, named: ConnectNames) -> list[ConnectNames]:
        """Return the topics of each cluster: those in ``named``, else the topics whose keys are Connect's.

        A cluster has one configs topic. Its status and offsets topics are those with the most similar names.
        """
        roles: dict[Role, list[str]] = {"configs": [], "status": [], "offsets": []}
        for topic in sorted(self._partitions):
            role = self._role(topic) if _NAMES.fullmatch(topic) or topic in self._unnamed else None
            if role is not None:
                roles[role].append(topic)
        configs = [named.configs] if named.configs else roles["configs"]
        return [
            ConnectNames(
                topic,
                named.status or _nearest(topic, roles["status"]),
                named.offsets or _nearest(topic, roles["offsets"]),
            )
            for topic in configs
        ]

    def _role(self, topic: str) -> Role | None:
        keys = []
        for record in self._reader.records(self._partitions[topic]):
            keys.append(record.key)
            if len(keys) == _SAMPLE:
                break
        return role_of(keys) if keys else None

    def read(self, names: ConnectNames, *, show_secrets: bool = False) -> ConnectCluster:
        cluster = ConnectCluster(names.configs, show_secrets=show_secrets)
        roles: tuple[tuple[Role, str], ...] = (
            ("configs", names.configs),
            ("status", names.status),
            ("offsets", names.offsets),
        )
        for role, topic in roles:
            for record in self._reader.records(self._partitions.get(topic, ()), self._lost):
                cluster.add(role, record.timestamp, record.key, record.value)
        return cluster


def _nearest(topic: str, others: list[str]) -> str:
    return max(others, key=lambda other: SequenceMatcher(None, topic, other).ratio(), default="")
