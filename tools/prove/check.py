"""List for each damaged folder of golden/, or of another corpus, whether `kdump check` reports the damage.

    python -m tools.prove.check [--damaged golden/damaged] [--brokers golden/brokers] [--release 4.2.2] [--all]

A folder without a report is compared with its source (listed in LIST.tsv), and must be harmless in one of the ways of
`Verdict`. The bytes decide this, not a list. Prints a line for each folder without a report (--all: for each), and
figures. The exit status is 1 if a damage is neither reported nor harmless.
"""

import collections
import json
import re
import shutil
import sys
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from kdump.formats.offset_index import OffsetIndex
from kdump.formats.time_index import TimeIndex
from kdump.log_dirs import local
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync
from testing import GOLDEN
from testing.processes import kdump
from tools import arguments

RELEASE = "4.2.2"
FROM = re.compile(
    r"\(from (?P<release>[^/]+)/(?P<folder>[^/]+?)(?:-(?P<stem>\d{20})-(?P<batches>\d+))?/(?P<file>[^/)]+)\)"
)
PARTITION = re.compile(r"\((?P<partition>__\w+-\d+)\)")
"""The partition of a damaged record of one of Kafka's own topics: it is checked in a folder of that name."""


class Verdict(StrEnum):
    """Whether a damage is reported, and its effect if not."""

    NAMED = "named by a finding"
    REMARKED = "named by a remark"
    SAME = "harmless: the bytes are those of the source"
    PADDING = "harmless: zeros at the end, every record is there"
    SCAN = "harmless: an index with fewer entries, all of them right: a look-up reads more of the log"
    EQUAL = "harmless: other bytes, the same records"
    CONTENT = "other content under a right crc: nothing in the files shows it"
    ZEROS = "nothing but zeros is left of what is gone: no different from a preallocated file"
    SILENT = "not named, and not harmless"


class Case(NamedTuple):
    """A damaged folder, the change, and the report on it: kinds of findings and of remarks."""

    name: str
    done: str
    findings: tuple[str, ...]
    remarks: tuple[str, ...]
    verdict: Verdict


def reported(damaged: Path) -> dict[str, str]:
    """Return folder -> change, of the existing folders."""
    lines = (line.split("\t", 1) for line in (damaged / "LIST.tsv").read_text(encoding="utf-8").splitlines())
    return {name: done for name, done in sorted(lines) if (damaged / name).is_dir()}


def checked(folders: dict[str, Path]) -> dict[str, tuple[list[str], list[str]]]:
    """Run `kdump check` over folders; return the kinds of findings and remarks by name."""
    done = kdump("check", "--json", *folders.values())
    if done.returncode not in {0, 3, 4}:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    by_path = {str(path): name for name, path in folders.items()}
    found: dict[str, tuple[list[str], list[str]]] = {name: ([], []) for name in folders}
    for line in map(json.loads, done.stdout.splitlines()):
        if line["kind"] == "summary":
            continue
        path = Path(line["file"])
        name = next(by_path[str(each)] for each in (path, *path.parents) if str(each) in by_path)
        found[name][line["kind"] == "remark"].append(line["check"])
    return found


def judge(folder: Path, done: str, brokers: Path, release: str) -> Verdict:  # noqa: PLR0911  one verdict per line
    """Compare a folder without a report with its source; a record of Kafka's own topics with ``release``."""
    source = FROM.search(done)
    own = PARTITION.search(done)
    if source is None:
        return Verdict.SILENT
    (path,) = (each for each in folder.iterdir() if each.suffix in SUFFIXES and _is_damaged(each, done, source["file"]))
    name = own["partition"] if own else source["folder"]
    original = brokers / (release if own else source["release"]) / name / path.name
    if path.suffix == ".index":
        return _scan([*_offsets(path)], [*_offsets(original)])
    if path.suffix == ".timeindex":
        return _scan([*_times(path)], [*_times(original)])
    if path.suffix != ".log":
        return Verdict.SILENT
    batches = int(source["batches"]) if source["batches"] and not own else None
    whole = _cut(original, batches)
    data = path.read_bytes()
    if data == whole:
        return Verdict.SAME
    ours, theirs = _records(path), _records(original, batches)
    if own:  # cut too, and nothing says where
        theirs = theirs[: len(ours)]
    if ours == theirs:
        return Verdict.PADDING if data.rstrip(b"\0") == whole.rstrip(b"\0") else Verdict.EQUAL
    if [record[0] for record in ours] == [record[0] for record in theirs]:
        return Verdict.CONTENT
    if ours == theirs[: len(ours)] and not data[_end(path) :].strip(b"\0"):
        return Verdict.ZEROS
    return Verdict.SILENT


SUFFIXES = {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"}


def _is_damaged(path: Path, done: str, file: str) -> bool:
    """Return the changed file of a damaged folder: an index has its log in the same folder."""
    if "entry #" in done:
        return path.suffix == (".timeindex" if path.parent.name.startswith("tidx") else ".index")
    return path.suffix not in {".index", ".timeindex"} and bool(file)


def _regions(path: Path, batches: int | None = None) -> list[RecordBatch]:
    with local.LocalFile(path) as source:
        found = [region for region in resync.read(source) if isinstance(region, RecordBatch)]
    return found[:batches]


def _end(path: Path) -> int:
    return max((region.end for region in _regions(path)), default=0)


def _cut(path: Path, batches: int | None) -> bytes:
    """Return the bytes of the first batches of a segment; all bytes without a number."""
    data = path.read_bytes()
    return data if batches is None else data[: _regions(path, batches)[-1].end]


def _records(path: Path, batches: int | None = None) -> list[tuple[object, ...]]:
    found = []
    for region in _regions(path, batches):
        found += [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in region.records()]
    return found


def _offsets(path: Path) -> list[object]:
    index = OffsetIndex(path.read_bytes(), int(path.stem))
    return [entry for entry in index if entry.position]


def _times(path: Path) -> list[object]:
    index = TimeIndex(path.read_bytes(), int(path.stem))
    return [entry for entry in index if entry.timestamp]


def _scan(ours: list[object], theirs: list[object]) -> Verdict:
    return Verdict.SCAN if ours == theirs[: len(ours)] else Verdict.SILENT


def cases(damaged: Path, brokers: Path, release: str = RELEASE) -> list[Case]:
    """Check every damaged folder."""
    done = reported(damaged)
    with tempfile.TemporaryDirectory() as temporary:
        folders: dict[str, Path] = {}
        for name, text in done.items():
            folders[name] = damaged / name
            if own := PARTITION.search(text):
                folders[name] = Path(temporary, name, own["partition"])
                shutil.copytree(damaged / name, folders[name])
        found = checked(folders)
    made = []
    for name, text in done.items():
        findings, remarks = found[name]
        special = [kind for kind in remarks if kind in {"timestamp type", "unknown payload"}]
        verdict = Verdict.NAMED if findings else Verdict.REMARKED
        if not findings and not special:
            verdict = judge(damaged / name, text, brokers, release)
        made.append(Case(name, text, tuple(findings), tuple(remarks), verdict))
    return made


def main() -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("--damaged", type=Path, default=GOLDEN / "damaged")
    parser.add_argument("--brokers", type=Path, default=GOLDEN / "brokers")
    parser.add_argument(
        "--release", default=RELEASE, help="whose own topics the damaged records of them were made from"
    )
    parser.add_argument("--all", action="store_true", help="a line for each, named or not")
    options = parser.parse_args()
    made = cases(options.damaged.resolve(), options.brokers.resolve(), options.release)
    for case in made:
        if options.all or case.verdict is not Verdict.NAMED:
            kinds = ", ".join(dict.fromkeys(case.findings or case.remarks))
            print(f"{case.name}: {case.verdict} [{kinds}]\n    {case.done}")
    count = collections.Counter(case.verdict for case in made)
    for verdict in Verdict:
        print(f"{count[verdict]:5} {verdict}")
    print(f"{len(made):5} in all")
    return 1 if count[Verdict.SILENT] else 0


if __name__ == "__main__":
    sys.exit(main())
