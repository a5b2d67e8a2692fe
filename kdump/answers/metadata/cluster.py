"""The brokers and controllers that are registered (KIP-631, KIP-919)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.metadata import metadata_versions
from kdump.answers.metadata.records import Fields, ReplayError
from kdump.answers.metadata.snapshot_record import SnapshotRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FENCING: Final = {-1: False, 0: None, 1: True}
SHUTDOWN: Final = {0: None, 1: True}


class Cluster:
    """Registrations by id, in the fields of RegisterBrokerRecord and RegisterControllerRecord."""

    def __init__(self) -> None:
        self.brokers: dict[int, Fields] = {}
        self.controllers: dict[int, Fields] = {}

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        """Return what applies each record."""
        return {
            "RegisterBrokerRecord": self._register,
            "UnregisterBrokerRecord": self._unregister,
            "FenceBrokerRecord": lambda fields: self._fence(fields, fenced=True),
            "UnfenceBrokerRecord": lambda fields: self._fence(fields, fenced=False),
            "BrokerRegistrationChangeRecord": self._change,
            "RegisterControllerRecord": self._register_controller,
            "UnregisterControllerRecord": self._unregister_controller,
        }

    def _register(self, fields: Fields) -> None:
        self.brokers[fields["brokerId"]] = fields

    def _unregister(self, fields: Fields) -> None:
        self._broker(fields["brokerId"], fields["brokerEpoch"])
        del self.brokers[fields["brokerId"]]

    def _broker(self, number: int, epoch: int) -> Fields:
        """Return a registration. Raises ReplayError unless a broker is registered with that epoch."""
        found = self.brokers.get(number)
        if found is None:
            raise ReplayError(f"broker {number} is not registered")
        if found["brokerEpoch"] != epoch:
            raise ReplayError(f"broker {number} is registered with epoch {found['brokerEpoch']}, not {epoch}")
        return found

    def _fence(self, fields: Fields, *, fenced: bool) -> None:
        broker = self._broker(fields["id"], fields["epoch"])
        self.brokers[fields["id"]] = {**broker, "fenced": fenced}

    def _change(self, fields: Fields) -> None:
        broker = self._broker(fields["brokerId"], fields["brokerEpoch"])
        fenced, shutdown = fields["fenced"], fields.get("inControlledShutdown", 0)
        if fenced not in FENCING or shutdown not in SHUTDOWN:
            raise ReplayError(f"fenced is {fenced}, inControlledShutdown {shutdown}: no such change is known")
        changes = {
            "fenced": FENCING[fenced],
            "inControlledShutdown": SHUTDOWN[shutdown],
            "logDirs": fields.get("logDirs") or None,
            "cordonedLogDirs": fields.get("cordonedLogDirs"),
        }
        made = {name: value for name, value in changes.items() if value is not None}
        self.brokers[fields["brokerId"]] = {**broker, **made}

    def _register_controller(self, fields: Fields) -> None:
        self.controllers[fields["controllerId"]] = fields

    def _unregister_controller(self, fields: Fields) -> None:
        if self.controllers.pop(fields["controllerId"], None) is None:
            raise ReplayError(f"controller {fields['controllerId']} is not registered")

    def records(self, level: int) -> Iterator[SnapshotRecord]:
        """Yield the records of a snapshot at a level of ``metadata.version``."""
        version = metadata_versions.record_version("RegisterBrokerRecord", level)
        struct = SnapshotRecord("RegisterBrokerRecord", version, {}).struct
        for _, broker in sorted(self.brokers.items()):
            fields = {slot.name: broker.get(slot.name, slot.default()) for slot in struct.slots}
            yield SnapshotRecord("RegisterBrokerRecord", version, fields)
        if level >= metadata_versions.CONTROLLERS_SINCE:
            for _, controller in sorted(self.controllers.items()):
                yield SnapshotRecord("RegisterControllerRecord", 0, controller)
