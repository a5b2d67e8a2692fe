"""The tables of the metadata log: topics, images, events, differences, nodes, records, written snapshots."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from kdump.answers.metadata import answer, cluster_image
from kdump.answers.metadata.records import level_name
from kdump.formats.partition_metadata import id_text
from kdump.primitives.timestamps import for_people
from kdump.printers.answer_lines import AnswerTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.answers.collector import AnswerLine
    from kdump.answers.metadata.answer import ImageDifference
    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.events import Event
    from kdump.answers.metadata.records import Fields
    from kdump.answers.metadata.snapshot_writer import Written
    from kdump.answers.metadata.tree import NodeLine


def topics(lines: list[AnswerLine]) -> Iterator[AnswerTable]:
    found = cast("list[answer.TopicLine]", lines)
    yield _topics(found)
    rows = (
        {
            "topic": line.topic,
            "partition": each.partition,
            "leader": None if each.leader < 0 else each.leader,
            "leader epoch": each.leader_epoch,
            "replicas": _list(each.replicas),
            "isr": _list(each.isr) or None,
            "elr": _list(each.elr) or None,
            "moving": _moving(each),
        }
        for line in found
        for each in line.partitions
    )
    table = AnswerTable.of("Partitions", rows, ("partition", "leader", "leader epoch"))
    if table.rows:
        yield table


def _topics(lines: Iterable[answer.TopicLine]) -> AnswerTable:
    rows = [
        {
            "topic": line.topic,
            "id": line.topic_id,
            "partitions": len(line.partitions),
            "no leader": sum(each.leader < 0 for each in line.partitions),
            "under-replicated": sum(len(each.isr) < len(each.replicas) for each in line.partitions),
            "configs": _pairs(line.configs),
        }
        for line in lines
    ]
    return AnswerTable.of(f"Topics: {len(rows)}", rows, ("partitions", "no leader", "under-replicated"))


def _moving(line: answer.PartitionLine) -> str | None:
    adding = f"adds {_list(line.adding)}" if line.adding else ""
    removing = f"removes {_list(line.removing)}" if line.removing else ""
    return " ".join(filter(None, (adding, removing))) or None


def _list(values: Sequence[object]) -> str:
    return ",".join(map(str, values))


def _pairs(values: dict[str, Any]) -> str | None:
    return " ".join(f"{name}={value}" for name, value in values.items()) or None


def image(found: ClusterImage, wanted: Sequence[str], *, show_secrets: bool = False) -> Iterator[AnswerTable]:
    """Yield title, topics and, without ``wanted`` topics, the other tables with rows. ``show_secrets``: of configs."""
    level = found.features.metadata_version
    time = for_people(found.timestamp) or "-"
    title = f"Image of the records below offset {found.end_offset}: epoch {found.epoch}, {time}"
    yield AnswerTable(f"{title}, metadata.version {level_name(level)}", (), ())
    yield _topics(answer.topic_lines(found, wanted, show_secrets=show_secrets))
    if wanted:
        return
    configs = _configs(found, show_secrets=show_secrets)
    others = (_acls, _quotas, _scram, _tokens)
    for table in (_brokers(found), _controllers(found), _features(found), configs, *(make(found) for make in others)):
        if table.rows:
            yield table


def _brokers(found: ClusterImage) -> AnswerTable:
    rows = [
        (number, each["brokerEpoch"], _state(each), each["rack"], _endpoints(each), len(each.get("logDirs", ())))
        for number, each in sorted(found.cluster.brokers.items())
    ]
    names = ("broker", "epoch", "state", "rack", "endpoints", "log dirs")
    return AnswerTable(f"Brokers: {len(rows)}", names, rows, frozenset(("broker", "epoch", "log dirs")))


def _state(broker: Fields) -> str:
    state = "fenced" if broker.get("fenced", True) else "unfenced"
    return f"{state}, shutting down" if broker.get("inControlledShutdown") else state


def _endpoints(fields: Fields) -> str:
    return _list([f"{each['name']}://{each['host']}:{each['port']}" for each in fields["endPoints"]])


def _controllers(found: ClusterImage) -> AnswerTable:
    voters = {voter["voterId"]: id_text(voter["voterDirectoryId"]) for voter in found.voters or ()}
    known = found.cluster.controllers
    rows = [
        {
            "controller": number,
            "voter": "yes" if number in found.voter_ids else "no",
            "directory": voters.get(number),
            "endpoints": _endpoints(known[number]) if number in known else None,
        }
        for number in sorted({*known, *found.voter_ids})
    ]
    return AnswerTable.of(f"Controllers: {len(rows)}", rows, ("controller",))


def _features(found: ClusterImage) -> AnswerTable:
    rows = sorted(found.features.levels.items())
    return AnswerTable("Features", ("feature", "level"), rows, frozenset(("level",)))


def _configs(found: ClusterImage, *, show_secrets: bool) -> AnswerTable:
    rows = [
        (cluster_image.RESOURCE_TYPES.get(kind, kind), name or "<default>", key, value)
        for (kind, name), values in sorted(found.configs.resources.items())
        if kind != cluster_image.TOPIC_RESOURCE
        for key, value in cluster_image.hidden_configs(kind, values, show=show_secrets).items()
    ]
    return AnswerTable("Configs, except those of topics", ("type", "name", "config", "value"), rows)


def _acls(found: ClusterImage) -> AnswerTable:
    names = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
    words = map(cluster_image.acl_in_words, found.acls.by_key.values())
    rows = sorted(tuple(each[name] for name in names) for each in words)
    return AnswerTable(f"ACLs: {len(rows)}", names, rows)


def _quotas(found: ClusterImage) -> AnswerTable:
    rows = [
        (cluster_image.entity_text(entity), key, value)
        for entity, values in found.quotas.entities.items()
        for key, value in sorted(values.items())
    ]
    return AnswerTable("Quotas", ("entity", "quota", "value"), sorted(rows), frozenset(("value",)))


def _scram(found: ClusterImage) -> AnswerTable:
    rows = sorted(
        (each["name"], cluster_image.scram_mechanism(each), each["iterations"]) for each in found.scram.by_key.values()
    )
    return AnswerTable("SCRAM users", ("user", "mechanism", "iterations"), rows, frozenset(("iterations",)))


def _tokens(found: ClusterImage) -> AnswerTable:
    rows = [
        (number, each["owner"], _list(each["renewers"]) or None, for_people(each["expirationTimestamp"]))
        for number, each in sorted(found.tokens.by_key.items())
    ]
    return AnswerTable("Delegation tokens", ("token", "owner", "renewers", "expires"), rows)


def events(lines: list[AnswerLine]) -> Iterator[AnswerTable]:
    found = cast("list[Event]", lines)
    unclean = sum(event.what == "UncleanElection" for event in found)
    title = f"Events: {len(found)}" + (f", UNCLEAN ELECTIONS: {unclean}" if unclean else "")
    rows = [
        (event.offset, for_people(event.timestamp_ms), event.what, _name(event), details_text(_with_id(event)))
        for event in found
    ]
    yield AnswerTable(title, ("offset", "time", "what", "name", "details"), rows, frozenset(("offset",)))


def _name(event: Event) -> str | None:
    return event.name or ("<default>" if event.what == "ConfigChanged" else None)


def _with_id(event: Event) -> dict[str, Any]:
    comes_or_goes = event.what in ("TopicCreated", "TopicDeleted")
    return {"id": event.id, **event.details} if comes_or_goes else event.details


def details_text(details: dict[str, Any]) -> str | None:
    """Return the fields that are not null as text, or None if there are none."""
    return _pairs({name: _plain(value) for name, value in details.items() if value is not None})


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)


def differences(lines: list[AnswerLine]) -> Iterator[AnswerTable]:
    found = cast("list[ImageDifference]", lines)
    rows = [(line.kind, each.type, each.topic, _difference(each)) for line, each in zip(lines, found, strict=True)]
    yield AnswerTable(f"Differences: {len(rows)}", ("what", "record", "topic", "data"), rows)


NAMES = frozenset(
    (
        *("partitionId", "brokerId", "controllerId", "resourceType", "resourceName"),
        *("name", "mechanism", "entity", "key", "id", "tokenId"),
    )
)
"""The fields that identify a changed record. A difference shows them even if they did not change."""


def _difference(line: ImageDifference) -> str | None:
    if line.was is None:
        is_named = line.type != "TOPIC_RECORD" and line.topic is not None  # the column ``topic`` names it
        hidden = "topicId" if is_named else None
        return details_text({name: value for name, value in line.data.items() if value != [] and name != hidden})
    before: dict[str, Any] = line.was["data"]
    names = [*line.data, *(name for name in before if name not in line.data)]
    words = []
    for name in names:
        new, old = line.data.get(name), before.get(name)
        if new != old:
            words.append(f"{name}={_plain(old)}->{_plain(new)}")
        elif name in NAMES:
            words.append(f"{name}={_plain(new)}")
    return " ".join(words)


def nodes(lines: list[AnswerLine]) -> Iterator[AnswerTable]:
    rows = [(line.path, line.value) for line in cast("list[NodeLine]", lines)]
    yield AnswerTable("", ("node", "value"), rows)


def records(lines: list[AnswerLine]) -> Iterator[AnswerTable]:
    rows = [(line.type, line.version, details_text(line.data)) for line in cast("list[answer.RecordLine]", lines)]
    yield AnswerTable("", ("record", "version", "data"), rows)


def written(lines: list[AnswerLine]) -> Iterator[AnswerTable]:
    rows = [(line.path, line.end_offset, line.epoch, line.bytes) for line in cast("list[Written]", lines)]
    yield AnswerTable("", ("snapshot", "end offset", "epoch", "bytes"), rows)
