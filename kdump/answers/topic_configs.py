"""Determines the configs :data:`KEYS`, mostly of retention and compaction, in force for a topic, and their sources.

The first valid value counts: the command line, the config of the topic, the dynamic config of the broker, the dynamic
default of all brokers, Kafka's default. No log dir has a broker's properties file, so its values must be given on the
command line. Source: Kafka's classes TopicConfig, LogConfig and ServerTopicConfigSynonyms (4.3).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.errors import UsageError
from kdump.formats.sparse_index import INDEX_INTERVAL, INDEX_SIZE
from kdump.internal_topics import consumer_offsets, share_group_state, transaction_state
from kdump.primitives.encodings import java_config_integer, java_config_is_true
from kdump.primitives.messages import did_you_mean
from kdump.primitives.terminal import is_selected
from kdump.primitives.wire import INT64_END

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kdump.answers.metadata.cluster_image import ClusterImage

UNKNOWN: Final = "the topic's configs are unknown without __cluster_metadata in the paths"
"""The reason if the configs of a topic are neither in a metadata log nor on the command line."""
FOREVER: Final = -1
INHERIT: Final = -2
"""The value of a local retention that equals the total retention (KIP-405)."""
_DAY: Final = 86_400_000


class ConfigKey(NamedTuple):
    """A config of topics, its default, and the broker configs (``synonyms``) that replace the default.

    Each synonym has a factor: the number of ms in its unit, or 1. Values of --config must be from ``lowest`` to
    ``highest`` (validators of LogConfig; None: no bound). The values of the metadata log are not tested for this range.
    """

    default: str
    synonyms: tuple[tuple[str, int], ...] = ()
    lowest: int | None = None
    highest: int | None = None


KEYS: Final[dict[str, ConfigKey]] = {
    "cleanup.policy": ConfigKey("delete", (("log.cleanup.policy", 1),)),
    "retention.ms": ConfigKey(
        str(7 * _DAY),
        (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
        lowest=FOREVER,
    ),
    "retention.bytes": ConfigKey("-1", (("log.retention.bytes", 1),)),
    "local.retention.ms": ConfigKey("-2", (("log.local.retention.ms", 1),), lowest=INHERIT),
    "local.retention.bytes": ConfigKey("-2", (("log.local.retention.bytes", 1),), lowest=INHERIT),
    "remote.storage.enable": ConfigKey("false"),
    "remote.log.copy.disable": ConfigKey("false"),
    "min.cleanable.dirty.ratio": ConfigKey("0.5", (("log.cleaner.min.cleanable.ratio", 1),), 0, 1),
    "min.compaction.lag.ms": ConfigKey("0", (("log.cleaner.min.compaction.lag.ms", 1),), lowest=0),
    "max.compaction.lag.ms": ConfigKey(str(INT64_END - 1), (("log.cleaner.max.compaction.lag.ms", 1),), lowest=1),
    "delete.retention.ms": ConfigKey(str(_DAY), (("log.cleaner.delete.retention.ms", 1),), lowest=0),
    "max.message.bytes": ConfigKey("1048588", (("message.max.bytes", 1),), lowest=0),
}
COMPACTED: Final = frozenset({consumer_offsets.TOPIC, transaction_state.TOPIC, share_group_state.TOPIC})
"""Kafka's own topics that brokers create with ``cleanup.policy=compact``."""


class GivenConfig(NamedTuple):
    """A config from the command line. ``topic`` may be a glob. The last matching one counts."""

    topic: str
    key: str
    value: str


class Setting(NamedTuple):
    """A value and its source: given, topic, broker, brokerDefault, default, or unknown (with Kafka's default)."""

    value: str
    source: str


class TopicConfig(NamedTuple):
    """The configs :data:`KEYS` of a topic on a broker, by Kafka's names."""

    settings: Mapping[str, Setting]

    def number(self, key: str) -> int:
        return int(_number(key, self.settings[key].value))

    def real(self, key: str) -> float:
        return float(self.settings[key].value)

    def is_on(self, key: str) -> bool:
        return java_config_is_true(self.settings[key].value)

    @property
    def cleanup_policy(self) -> str:
        return self.settings["cleanup.policy"].value

    @property
    def policies(self) -> frozenset[str]:
        """The policies: delete, compact, both, or none (KIP-1150)."""
        return _policies(self.cleanup_policy)

    def sources(self, keys: Sequence[str]) -> dict[str, str]:
        return {key: self.settings[key].source for key in keys}


class TopicConfigs:
    """The configs of all topics, from the command line and from an image of the metadata log."""

    def __init__(self, image: ClusterImage | None = None, given: Sequence[GivenConfig] = ()) -> None:
        self._given = tuple(given)
        resources = {} if image is None else image.configs.resources
        self._resources = {key: dict(values) for key, values in resources.items()}
        self._topics = frozenset() if image is None else frozenset(image.topics.by_name)
        self._known: dict[tuple[str, str | None], TopicConfig] = {}

    def of(self, topic: str, broker_id: str | None) -> TopicConfig:
        """Return the configs of a topic on a broker. Without an id, dynamic configs of single brokers are ignored."""
        key = topic, broker_id
        if key not in self._known:
            self._known[key] = TopicConfig(  # brokers and controllers refuse invalid values
                {
                    name: next(one for one in self._settings(name, topic, broker_id) if _parses(name, one.value))
                    for name in KEYS
                }
            )
        return self._known[key]

    def knows(self, topic: str) -> bool:
        """Return whether a topic is in COMPACTED or in the metadata log, or the command line has a config of it."""
        return topic in self._topics or topic in COMPACTED or any(is_selected(topic, one.topic) for one in self._given)

    def _settings(self, key: str, topic: str, broker_id: str | None) -> Iterator[Setting]:
        for given in reversed(self._given):
            if given.key == key and is_selected(topic, given.topic):
                yield Setting(given.value, "given")
        own = self._resources.get((_TOPIC, topic), {})
        if key in own:
            yield Setting(own[key], "topic")
        for name, source in ((broker_id, "broker"), ("", "brokerDefault")):
            configs = self._resources.get((_BROKER, name or ""), {}) if name is not None else {}
            for synonym, unit in KEYS[key].synonyms:
                if synonym in configs:
                    yield Setting(_in_ms(configs[synonym], unit), source)
        if key == "cleanup.policy" and topic in COMPACTED:
            yield Setting("compact", "default")
        yield Setting(KEYS[key].default, "default" if self.knows(topic) else "unknown")


def compacted_topics(image: ClusterImage | None) -> frozenset[str]:
    """Return the compacted topics of an image; empty without an image."""
    if image is None:
        return frozenset()
    configs = TopicConfigs(image)
    return frozenset(name for name in image.topics.by_name if "compact" in configs.of(name, None).policies)


def tiered_topics(image: ClusterImage) -> frozenset[str]:
    """Return the topics of an image that have remote storage."""
    return frozenset(
        name
        for name in image.topics.by_name
        if java_config_is_true(image.configs.topic(name).get("remote.storage.enable", ""))
    )


def index_intervals(image: ClusterImage | None) -> dict[str, int]:
    """Return topic -> its own valid ``index.interval.bytes``; empty without an image."""
    return _own_numbers(image, INDEX_INTERVAL)


def index_sizes(image: ClusterImage | None) -> dict[str, int]:
    """Return topic -> its own valid ``segment.index.bytes``; empty without an image."""
    return _own_numbers(image, INDEX_SIZE)


def _own_numbers(image: ClusterImage | None, config: str) -> dict[str, int]:
    own = {} if image is None else image.configs.resources
    texts = {name: configs[config] for (kind, name), configs in own.items() if config in configs and kind == _TOPIC}
    numbers = {name: java_config_integer(text, 32) for name, text in texts.items()}
    return {name: number for name, number in numbers.items() if number is not None and number >= 0}


_TOPIC: Final = 2
_BROKER: Final = 4


def _in_ms(text: str, unit: int) -> str:
    number = java_config_integer(text, 64)
    return text if unit == 1 or number is None or number < 0 else str(number * unit)


def given_config(text: str) -> GivenConfig:
    """Parse ``TOPIC:KEY=VALUE``. Raises UsageError for a malformed text, an unknown key or an invalid value."""
    topic, colon, rest = text.partition(":")
    key, equals, value = rest.partition("=")
    if not (topic and colon and equals):
        raise UsageError(
            f"{text!r} is not a config: write it as 'orders:retention.ms=3600000' or '*:retention.bytes=-1'"
        )
    if key not in KEYS:
        hint = did_you_mean(key, KEYS) or f"; known configs: {', '.join(KEYS)}"
        raise UsageError(f"{key!r} is not a config of retention or compaction{hint}")
    _check(key, value)
    return GivenConfig(topic, key, value)


def _parses(key: str, value: str) -> bool:
    """Return whether a text is a value of the right type for a config. The range is not checked."""
    default = KEYS[key].default
    if default in {"true", "false"}:
        return value.strip().lower() in {"true", "false"}
    if key == "cleanup.policy":
        return {word.strip() for word in value.strip("[]").split(",")} <= {"delete", "compact", ""}
    try:
        _number(key, value)
    except ValueError:
        return False
    return True


@lru_cache(1 << 8)
def _policies(value: str) -> frozenset[str]:
    return frozenset(word.strip() for word in value.strip("[]").split(",") if word.strip())


@lru_cache(1 << 8)  # the partitions of a topic have the same configs
def _number(key: str, value: str) -> float:
    """Return the number in a value (ConfigDef.parseType). Raises ValueError."""
    if "." in KEYS[key].default:
        return float(value)
    number = java_config_integer(value, 64)
    if number is None:
        raise ValueError(value)
    return number


def _check(key: str, value: str) -> None:
    default = KEYS[key].default
    if not _parses(key, value):
        raise UsageError(f"{value!r} is not a value of {key} (a valid value is {default!r})")
    lowest, highest = KEYS[key].lowest, KEYS[key].highest
    if lowest is None:
        return
    number = _number(key, value)
    if not (lowest <= number and (highest is None or number <= highest)):  # NaN is in no range
        accepted = f"{lowest} or more" if highest is None else f"{lowest} to {highest}"
        raise UsageError(f"{number} is not a value of {key}: a broker accepts {accepted}")


def config_option() -> Any:
    from kdump.answers.question import option  # checks import this module without questions

    return option(
        (),
        "configs",
        "--config",
        "Use this topic config, not the one in the files; TOPIC may be a glob: '*:retention.ms=3600000'.",
        metavar="TOPIC:KEY=VALUE",
    )
