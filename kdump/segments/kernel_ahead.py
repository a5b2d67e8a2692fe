"""The kernel's lines of batch runs. A thread may have made the first lines ahead of time.

A thread that reads ahead (:func:`kdump.segments.read_ahead.read_making`) makes the first lines of a run. The printer
prints them, and makes the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from kdump.kernel.batches import WIDTH
from kdump.kernel.lines import Lines
from kdump.parallel import costs
from kdump.parallel.costs import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.kernel.lines import Shape
    from kdump.primitives.wire import Bytes
    from kdump.segments.batch_runs import Run

L = TypeVar("L", bound=Lines)

AHEAD: Final = 6 << 20
"""Bytes of output after which a thread stops; the printer makes the other lines of the run."""
SPARE: Final = 4
"""Kernels that are kept for the next run, each with the memory of its lines."""


class MadeLines(NamedTuple):
    """The first lines of a run, and the kernel that makes the others."""

    kernel: Lines
    lines: Bytes

    @property
    def size(self) -> int:
        """The bytes of the lines."""
        return len(self.lines)


class LinesAhead(Generic[L]):
    """Makes the lines of runs. ``kernel`` is the printer's own; a thread uses others of its kind."""

    def __init__(self, make_kernel: Callable[[], L]) -> None:
        self.kernel = make_kernel()
        self._make_kernel = make_kernel
        self._spare: list[Lines] = []

    def make(self, run: Run, head: Shape | None, shape: Shape) -> MadeLines | None:
        """Return the first lines of a run, None for a small one: ``head`` for each batch, ``shape`` for each record."""
        if run.size < costs.PRINTED_AHEAD:
            return None
        try:
            kernel: Lines = self._spare.pop()
        except IndexError:
            kernel = self._make_kernel()
        kernel.stack(run.block, run.rows, WIDTH, 0, run.batch_count)
        kernel.last_offset = UNKNOWN
        return MadeLines(kernel, kernel.run(head, shape, AHEAD))

    def begin(self, run: Run, row: int, stop: int, made: MadeLines | None) -> MadeLines:
        """Return the first lines of the batches from ``row`` to before ``stop``: ``made`` if it is of all of them."""
        if made is not None and (row, stop) == (0, run.batch_count):
            return made
        self.kernel.stack(run.block, run.rows, WIDTH, row, stop)
        self.kernel.stuck = False
        return MadeLines(self.kernel, b"")

    def end(self, kernel: Lines) -> None:
        """Take back the kernel that :meth:`begin` returned."""
        if kernel is not self.kernel and len(self._spare) < SPARE:
            self._spare.append(kernel)
