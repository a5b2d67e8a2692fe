"""The kernel's lines of batches in a row, the first of which a thread may have made ahead of time.

A thread that reads ahead (:func:`kdump.segments.read_ahead.read`) makes lines of a run and leaves them with it. The
printer of the run prints them, and makes the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

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
"""Kernels that wait for the next run, each with the memory of its lines: more are let go."""


class LinesAhead(Generic[L]):
    """Makes the lines of runs. ``kernel`` is the printer's own; a thread uses others of its kind."""

    def __init__(self, make_kernel: Callable[[], L]) -> None:
        self.kernel = make_kernel()
        self._make_kernel = make_kernel
        self._spare: list[Lines] = []

    def make(self, run: Run, head: Shape | None, shape: Shape) -> int:
        """Make the first lines of a run, ``head`` for each batch and ``shape`` for each record, and leave them there.

        Return how many bytes they are.
        """
        if run.size < costs.PRINTED_AHEAD:
            return 0
        try:
            kernel: Lines = self._spare.pop()
        except IndexError:
            kernel = self._make_kernel()
        kernel.stack(run.block, run.rows, WIDTH, 0, run.batch_count)
        kernel.last_offset = UNKNOWN
        lines = kernel.run(head, shape, AHEAD)
        run.made = kernel, lines
        return len(lines)

    def begin(self, run: Run, row: int, behind: int) -> tuple[Lines, Bytes]:
        """Return what makes the lines of batches from ``row`` to the one before ``behind``, and those it has made."""
        made, run.made = run.made, None
        if made is not None and (row, behind) == (0, run.batch_count):
            return made
        self.kernel.stack(run.block, run.rows, WIDTH, row, behind)
        self.kernel.stuck = False
        return self.kernel, b""

    def end(self, kernel: Lines) -> None:
        """Take back what :meth:`begin` returned."""
        if kernel is not self.kernel and len(self._spare) < SPARE:
            self._spare.append(kernel)
