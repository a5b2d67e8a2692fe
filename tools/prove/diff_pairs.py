"""Compare `kdump diff` with a byte-by-byte comparison of records, over seeded pairs of replicas.

    python -m tools.prove.diff_pairs [--pairs 500] [--first 0]

Both sides of a pair are one log, truncated, flipped, zeroed, diverged, compacted, packed in other batches or of another
magic. The exit status is 1 unless diff lists exactly the offsets that differ, and gives the same result after the sides
are swapped.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdump.answers.collector import Place, as_json
from kdump.answers.replica_diff import BrokerReplica, compare
from kdump.errors import RAISING, Reporter
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates
from testing import replica_pairs
from tools import arguments

if TYPE_CHECKING:
    from kdump.errors import UnreadableError

Lines = list[dict[str, Any]]
SWAPPED = {"left": "right", "right": "left"}


def compared(left: Path, right: Path) -> Lines:
    """Return the lines of a pair, the lines of its records first. Raises UnreadableError."""

    def replica(broker: Path) -> BrokerReplica:
        found = next(one for one in finder.find([str(broker)]) if one.topic)
        return BrokerReplica(broker.name, Place(found, states.of(found)))

    def fail(error: UnreadableError) -> None:
        raise error

    states = LogDirStates(Reporter(fail=fail))
    finder = Finder(Wanted(siblings=True, log_dirs=True))
    lines = compare(replica(left), replica(right), records=True, report=RAISING)
    return [as_json(line) for line in lines]


def swapped(lines: Lines) -> Lines:
    """Return the expected lines after the sides are swapped, without sentences."""
    return [{_other(name): _value(name, value) for name, value in line.items()} for line in plain(lines)]


def plain(lines: Lines) -> Lines:
    """Return lines without sentences."""
    return [{name: value for name, value in line.items() if name != "because"} for line in lines]


def _value(name: str, value: Any) -> Any:
    if name == "stale":
        return SWAPPED.get(value)
    return sorted(SWAPPED[side] for side in value) if name == "damaged" else value


def _other(name: str) -> str:
    for one, other in (("left", "right"), ("Left", "Right"), ("right", "left"), ("Right", "Left")):
        if name.endswith(one):
            return name.removesuffix(one) + other
    return name


def faults(seed: int, folder: Path) -> tuple[tuple[str, str], list[str]]:
    """Return the changes of the sides of a pair, and the faults of diff."""
    left, right, kinds = replica_pairs.pair(seed)
    left.write(folder / "1")
    right.write(folder / "2")
    forwards, backwards = compared(folder / "1", folder / "2"), compared(folder / "2", folder / "1")
    found = []
    offsets = sorted(line["offset"] for line in forwards[:-1])
    if offsets != replica_pairs.differences(left, right):
        found.append(f"offsets {offsets}, not {replica_pairs.differences(left, right)}")
    if sorted(map(str, map(_sorted, swapped(forwards)))) != sorted(map(str, map(_sorted, plain(backwards)))):
        found.append(f"not symmetric: {forwards[-1]} and {backwards[-1]}")
    return kinds, found


def _sorted(line: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(line.items())


def main() -> int:
    """Compare the pairs; return the exit status."""
    given = arguments.parser(__doc__, pairs=500, first=0).parse_args()
    met: Counter[tuple[str, str]] = Counter()
    wrong = 0
    for seed in range(given.first, given.first + given.pairs):
        with tempfile.TemporaryDirectory() as folder:
            kinds, found = faults(seed, Path(folder))
        met[kinds] += 1
        wrong += bool(found)
        for text in found:
            print(f"seed {seed}, {' and '.join(kinds)}: {text}")
    print(f"{given.pairs} pairs of {len(met)} kinds, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
