"""The lines of ``kafka-transactions.sh`` that end transactions, in the form for the broker's release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.primitives.terminal import shell_text

if TYPE_CHECKING:
    from kdump.answers.producer_state import Producer
    from kdump.transaction_replay.replay import OpenTransaction

TOOL: Final = "kafka-transactions.sh --bootstrap-server"
BY_START_OFFSET: Final = (3, 0)
"""The first release whose tool takes a transaction by its start offset (DescribeProducers)."""
TERMINATE: Final = (4, 1)
"""The first release that has forceTerminateTransaction, as it has two-phase commit (KIP-939)."""


class AbortLines(NamedTuple):
    """Writes lines for a broker of ``release``, as numbers; None where the files must tell."""

    bootstrap_server: str = "HOST:9092"
    release: tuple[int, ...] | None = None

    def abort(self, key: tuple[str, int], begun: OpenTransaction, producer: Producer, *, is_old: bool) -> str:
        """Return the line that aborts a hanging transaction; ``is_old``: the files are of a broker before 3.0."""
        where = f"--topic {shell_text(key[0])} --partition {key[1]}"
        if is_old if self.release is None else self.release < BY_START_OFFSET:
            epoch = producer.coordinator_epoch or 0
            names = f"--producer-id {begun.producer_id} --producer-epoch {producer.epoch} --coordinator-epoch {epoch}"
            return f"{self._tool} abort {where} {names}"
        return f"{self._tool} abort {where} --start-offset {begun.first_offset}"

    def terminate(self, transactional_id: str) -> str | None:
        """Return the line that ends what its coordinator still knows, None where the release has none."""
        if self.release is not None and self.release < TERMINATE:
            return None
        return f"{self._tool} forceTerminateTransaction --transactionalId {shell_text(transactional_id)}"

    @property
    def _tool(self) -> str:
        return f"{TOOL} {shell_text(self.bootstrap_server)}"
