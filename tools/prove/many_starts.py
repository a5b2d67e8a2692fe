"""Compare `kdump check` with real starts of brokers whose log dirs have many independent changes.

    python -m tools.prove.many_starts [--changes 2000] [--seed 1] [--first 0] [--release 4.3.1,4.4.0]
                                      [--base FOLDER] [--keep FOLDER] [--out FILE] [--together 20] [--seconds 230]

The log dirs are those of tools.prove.starts with more partitions. A group changes the folders of up to 20 partitions,
each in one or two ways. Half of the groups also change a file of a log dir or of the metadata log. kdump checks the
result, and a broker starts on it. For each partition the records of a consumer, the outcome, log start and log end are
compared with the findings that name the partition. A change that prevents the start, or takes a log dir offline, is
tested again in a separate log dir. So is each half of a group whose start kdump did not predict. Prints a line per
difference. Exits with 1 if check gave 0 or 4, or no grave finding on the partition, and the broker does not start or a
consumer gets fewer records. Changes, starts and checks are counted separately. TMPDIR=/dev/shm makes starts faster.
"""

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple, cast

from kdump.errors import DamageError
from tools import arguments
from tools.prove.start_changes import CHANGES, Scene
from tools.prove.starts import (
    RELEASES,
    Base,
    Machine,
    Truth,
    bases,
    check,
    copy,
    differences,
    load_kdump,
    log_difference,
    losses,
    observe,
    records_of,
)

TOPICS = {"plain": 7, "idem": 6, "dele": 6, "txn": 6, "zst": 5, "comp": 5, "cleaned": 6, "bare": 1}
OF_A_PARTITION = (
    "torn_tail",
    "cut_border",
    "cut_older",
    "flip",
    "flip_header",
    "zeros",
    "tail",
    "log_empty",
    "batch_twice",
    "length",
    "offset",
    "magic",
    "seg_lost_first",
    "seg_lost_middle",
    "seg_lost_last",
    "seglog_lost_first",
    "seglog_lost_middle",
    "seglog_lost_last",
    "renamed",
    "overlap",
    "odd_name",
    "log_folder",
    "special_file",
    "all_lost",
    "index",
    "snapshot",
    "swap",
    "cleaned",
    "deleted",
    "partition_metadata",
    "epochs",
    "log_start",
    "recovery_point",
    "high_watermark",
    "folder_lost",
    "folder_named",
    "folder_twice",
    "folder_is_file",
    "files_beside",
    "any_file",
    "exchanged",
)
OF_THE_NODE = (
    "meta_properties",
    "directory_id_twice",
    "disk",
    "marker",
    "marker",
    "checkpoint",
    "checkpoint",
    "folder_foreign",
    "files_beside",
    "metadata_folder",
    "metadata_log",
    "metadata_log",
    "metadata_snapshot",
    "directories",
    "epochs_of_metadata",
    "quorum_state",
    "quorum_state_text",
    "snapshot_name",
    "checkpoint_number",
    "bootstrap",
)


class Change(NamedTuple):
    """One change: its kinds, its partition ("" for the files of the node), and the seed of its choices."""

    kinds: tuple[str, ...]
    partition: str
    seed: str

    def make(self, base: Base, folder: Path) -> str:
        """Change log dirs; return a description of the change. Raises ValueError if the change does not apply."""
        scene = Scene([folder / each for each in base.dirs], random.Random(self.seed), self.partition)
        done = []
        for kind in sorted(
            self.kinds, key="special_file".__eq__
        ):  # the last: others would copy a /dev/zero without end
            try:
                did = CHANGES[kind](scene)
            except (OSError, IndexError, KeyError, DamageError) as reason:  # as of a file that a change before broke
                raise ValueError(f"{kind}: {reason!r}") from None
            if did is None:
                raise ValueError(kind)
            done.append(did)
        return "; ".join(done)


class Group(NamedTuple):
    """Changes of one start."""

    number: int
    base: Base
    changes: tuple[Change, ...]


def group(found: Sequence[Base], seed: int, number: int, together: int) -> Group:
    """Return the changes of a group, by its number."""
    rng = random.Random(f"{seed} {number}")
    base = rng.choices(found, [1 if each.kind == "two" else 0.3 for each in found])[0]
    own = [each for each in base.partitions if not each.startswith("__")]
    parts = rng.sample(own, min(together, len(own)))
    picked: list[tuple[str, tuple[str, ...]]] = [("", OF_THE_NODE)] if rng.random() < 0.5 else []
    picked += [(part, OF_A_PARTITION) for part in parts]
    changes = []
    for part, kinds in picked:
        names = [rng.choice(kinds), *([rng.choice(kinds)] if rng.random() < 0.2 else [])]
        changes.append(Change(tuple(names), part, f"{seed} {number} {part} {zlib.crc32(b'change')}"))
    return Group(number, base, tuple(changes))


class Run:
    """The groups of a run, their counts, and the differences."""

    def __init__(self, options: argparse.Namespace, machines: dict[str, Machine]) -> None:
        self.options, self.machines = options, machines
        self.counts: Counter[str] = Counter()

    def all(self, whole: Group) -> None:
        """Start a group; if it does not start as a whole, start its parts."""
        base = whole.base
        with tempfile.TemporaryDirectory(prefix="kdump-start-") as temporary:
            records_of(self.machines[base.release], base)
            applies = []
            folder = Path(temporary, "tried")
            copy(base.folder, folder)
            for change in whole.changes:
                try:
                    change.make(base, folder)
                    applies.append(change)
                except ValueError:
                    self.counts["not applicable"] += 1
                    shutil.rmtree(folder)
                    copy(base.folder, folder)
                    for each in applies:
                        each.make(base, folder)
        if applies:
            self.part(whole._replace(changes=tuple(applies)))

    def part(self, some: Group) -> None:
        """Check and start some changes of a group; judge them, or split them."""
        base = some.base
        with tempfile.TemporaryDirectory(prefix="kdump-start-") as temporary:
            folder = Path(temporary, "scene")
            copy(base.folder, folder)
            done = {change: change.make(base, folder) for change in some.changes}
            status, rows, err = check(base, folder)
            self.counts["checks"] += 1
            start = next((row for row in rows if row.get("kind") == "start"), {})
            if len(some.changes) > 1 and (apart := self.apart(some.changes, start, rows)):
                for few in apart:
                    self.part(some._replace(changes=few))
                return
            kept = self.keep(some, folder)
            truth = observe(self.machines[base.release], base, folder, 25)
            self.counts["starts"] += 1
            if is_unanswered(truth):  # the machine is too busy, or the change is the reason
                shutil.rmtree(folder)
                copy(base.folder, folder)
                for change in some.changes:
                    change.make(base, folder)
                self.machines[base.release].end()
                truth = observe(self.machines[base.release], base, folder, 60)
                self.counts["starts again, without an answer"] += 1
                if is_unanswered(truth):
                    truth = replace(truth, starts=False, why="no answer")
            self.counts["starts of many"] += len(some.changes) > 1
            offline = set(cast("list[str]", start.get("offlineLogDirs", [])))
            foreseen = bool(start) and start["starts"] is not False and truth.starts and truth.offline == offline
            if len(some.changes) > 1 and not foreseen:
                half = len(some.changes) // 2
                self.counts["unforeseen"] += 1
                for few in (some.changes[:half], some.changes[half:]):
                    self.part(some._replace(changes=few))
                return
            is_alone = len(some.changes) == 1
            wrong = (
                {some.changes[0]: list(differences(base, truth, status, rows, err))}
                if is_alone
                else by_change(some, truth, rows, err)
            )
            self.show(some, done, status, truth, wrong)
            if kept is not None and not any(wrong.values()):
                shutil.rmtree(kept)

    def apart(
        self, changes: Sequence[Change], start: dict[str, object], rows: Sequence[dict[str, object]]
    ) -> list[tuple[Change, ...]]:
        """Return the changes that kdump expects to stop the broker or a log dir, each alone, and the others."""
        if start.get("starts") is not False and not start.get("offlineLogDirs"):
            return []
        causes = cast("list[dict[str, object]]", start.get("fatal", []))
        texts = [f"{each['file']} {each['text']}" for each in causes]
        texts += [
            f"{row.get('file')} {row.get('text')}"
            for row in rows
            if row.get("fatal") or (row.get("level") == "log" and "without log dir" in str(row.get("text")))
        ]
        stops = [each for each in changes if each.partition and any(names(each.partition, text) for text in texts)]
        stops = stops or [each for each in changes if not each.partition]
        rest = tuple(each for each in changes if each not in stops)
        if not stops:
            half = len(changes) // 2
            return [tuple(changes[:half]), tuple(changes[half:])]
        return [*((each,) for each in stops), *([rest] if rest else [])]

    def keep(self, some: Group, folder: Path) -> Path | None:
        """Keep the log dirs of a start, with its changes."""
        if self.options.keep is None:
            return None
        name = f"{self.options.seed}-{some.number}-{some.changes[0].partition or 'node'}-{len(some.changes)}"
        target: Path = self.options.keep / name
        shutil.rmtree(target, ignore_errors=True)
        copy(folder, target)
        return target

    def show(
        self, some: Group, done: dict[Change, str], status: int, truth: Truth, wrong: dict[Change, list[str]]
    ) -> None:
        """Print and count the differences."""
        for change, said in done.items():
            self.counts["changes"] += 1
            self.counts["changes: broker starts" if truth.starts else "changes: broker does not start"] += 1
            mine = wrong.get(change, [])
            self.counts["silent"] += any(each.startswith("SILENT") for each in mine)
            self.counts["alarms"] += any(each.startswith("ALARM") for each in mine)
            self.counts["different"] += any(not each.startswith(("ALARM", "SILENT")) for each in mine)
            self.counts["equal"] += not mine
            for each in mine:
                print(
                    f"{some.number} {some.base.name} {'+'.join(change.kinds)} ({len(some.changes)}): {said}\n"
                    f"    exit {status}, {each}",
                    flush=True,
                )
        if self.options.out is not None:
            line = {"seed": self.options.seed, "number": some.number, "base": some.base.name, "status": status}
            line |= {"changes": [[*each] for each in some.changes], "done": list(done.values())}
            line |= {"wrong": list(wrong.values()), "truth": asdict(truth)}
            with self.options.out.open("a") as file:
                print(json.dumps(line, default=sorted), file=file)


def is_unanswered(truth: Truth) -> bool:
    """Return whether a broker did not report its start in time, or did not answer a consumer after it."""
    is_silent = truth.starts and not any(truth.records.values())
    has_topics = set(truth.fails.values()) != {"no such partition"}  # without a metadata log a broker has none
    return truth.why == "no answer" or (is_silent and has_topics)


def by_change(some: Group, truth: Truth, rows: Sequence[dict[str, object]], err: str) -> dict[Change, list[str]]:
    """Return the differences between kdump and the broker by change."""
    base = some.base
    by_partition = {each.partition: each for each in some.changes}
    of_the_node = by_partition.get("") or some.changes[0]
    found: dict[Change, list[str]] = {each: [] for each in some.changes}
    if "Traceback" in err:
        found[of_the_node].append(f"SILENT traceback: {err[-300:]}")
    lost, fails, unread = losses(base, truth)
    grave = [row for row in rows if row.get("level") == "log" or row.get("fatal")]
    for name in base.partitions:
        said = [row for row in grave if names(name, f"{row.get('file')} {row.get('text')}")]
        mine = found[by_partition.get(name, of_the_node)]
        harm = [each[name] for each in (lost, fails, unread) if name in each]
        if harm and not said:
            mine.append(f"SILENT {name}: lost, fails, new record: {harm}")
        if said and not harm:
            mine.append(f"ALARM {name}: {said[0]['code']} {said[0]['file']}: {said[0]['text']}"[:300])
    for row in rows:
        if row.get("kind") == "startLog" and (text := log_difference(row, truth)):
            name = f"{row['topic']}-{row['partition']}"
            found[by_partition.get(name, of_the_node)].append(text)
    return found


def names(partition: str, text: str) -> bool:
    """Return whether a text contains the name of a partition, as a word or in a path."""
    return re.search(rf"(?<![\w.-]){re.escape(partition)}(?![\w-])", text) is not None


def groups(found: Sequence[Base], options: argparse.Namespace) -> Iterator[Group]:
    """Yield the groups of a run from its first number on."""
    number = options.first
    while True:
        yield group(found, options.seed, number, options.together)
        number += 1


def main() -> int:
    """Run the groups."""
    parser = arguments.parser(__doc__, changes=2000, seed=1, first=0, seconds=230, release="", kind="", together=20)
    parser.add_argument("--base", type=Path, default=Path(tempfile.gettempdir(), "kdump-many-starts"))
    parser.add_argument("--keep", type=Path, help="folder that keeps the log dirs of starts that differ")
    parser.add_argument("--out", type=Path, help="file that a line of JSON is added to for each start")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    releases = options.release.split(",") if options.release else RELEASES
    options.base.mkdir(parents=True, exist_ok=True)
    machines = {release: Machine(release, options.base / f"{release}.txt") for release in releases}
    run = Run(options, machines)
    try:
        found = [
            each
            for machine in machines.values()
            for kind in (options.kind.split(",") if options.kind else ("two", "one", "apart"))
            for each in bases(machine, kind, options.base, TOPICS)
        ]
        load_kdump(found[0].folder / "d1")
        for one in groups(found, options):
            if time.monotonic() > until or run.counts["changes"] >= options.changes:
                print(f"stopped before group {one.number}: go on with --first {one.number}")
                break
            run.all(one)
            run.counts["groups"] += 1
    finally:
        for machine in machines.values():
            machine.end()
    print(", ".join(f"{count} {what}" for what, count in sorted(run.counts.items())))
    return 1 if run.counts["silent"] or run.counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
