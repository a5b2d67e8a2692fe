"""Dynamic configs: of topics, brokers, groups, client metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.metadata.snapshot_record import SnapshotRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kdump.answers.metadata.records import Fields

TOPIC: Final = 2
BROKER: Final = 4
TYPES: Final = {TOPIC: "TOPIC", BROKER: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
"""Resource type -> its name in ``ConfigResource.Type``."""
_NONE: Final[Mapping[str, str]] = {}


class Configs:
    """``resources`` has the configs of each resource by type and name; the name of all brokers together is ""."""

    def __init__(self) -> None:
        self.resources: dict[tuple[int, str], dict[str, str]] = {}

    def topic(self, name: str) -> Mapping[str, str]:
        """The topic's own configs."""
        return self.resources.get((TOPIC, name), _NONE)

    def broker(self, number: int | str) -> Mapping[str, str]:
        """The dynamic configs of one broker."""
        return self.resources.get((BROKER, str(number)), _NONE)

    @property
    def broker_defaults(self) -> Mapping[str, str]:
        """The dynamic configs of all brokers: ``--entity-default``."""
        return self.broker("")

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        """Return what applies each record."""
        return {"ConfigRecord": self._set}

    def _set(self, fields: Fields) -> None:
        resource = fields["resourceType"], fields["resourceName"]
        if fields["value"] is not None:
            self.resources.setdefault(resource, {})[fields["name"]] = fields["value"]
        elif resource in self.resources:
            self.resources[resource].pop(fields["name"], None)
            if not self.resources[resource]:
                del self.resources[resource]

    def remove_topic(self, name: str) -> None:
        """Forget the configs of a topic, which go with it."""
        self.resources.pop((TOPIC, name), None)

    def records(self) -> Iterator[SnapshotRecord]:
        """Yield the records of a snapshot."""
        for (kind, name), configs in sorted(self.resources.items()):
            for key, value in sorted(configs.items()):
                fields = {"resourceType": kind, "resourceName": name, "name": key, "value": value}
                yield SnapshotRecord("ConfigRecord", 0, fields)
