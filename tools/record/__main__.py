"""Record golden outputs again: run releases of the original on the cases of golden/ and write golden/runs/.

    python -m tools.record 4.2.2 2.8.2          all recorded cases of both releases, again.
    python -m tools.record 4.5.0 --like 4.4.0   a new release, with the cases of 4.4.0.
    python -m tools.record 4.2.2 --add 'tiny/'  also the cases whose name matches this expression.
    python -m tools.record all --check          record nothing, print what would change

Needs Maven and a JDK 17 to 23 (see tools/record/original.py). The exit status is 1 if --check finds a difference.
"""

import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from testing import GOLDEN, goldens
from tools import arguments
from tools.record import original


def record(release: str, cases: Mapping[str, Sequence[str]]) -> dict[str, goldens.Outcome]:
    """Run a release's tool on cases in a copy of golden/, each with its current files."""
    recorded = {}
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary).resolve() / "golden"
        shutil.copytree(GOLDEN, root, ignore=shutil.ignore_patterns("runs"))
        for run in original.runs(release, cases, root):
            stderr = original.without_noise(run.stderr.decode("utf-8"))
            recorded[run.name] = goldens.outcome(run.status, run.stdout, stderr, root)
    return recorded


def differences(old: Mapping[str, goldens.Outcome], new: Mapping[str, goldens.Outcome]) -> list[str]:
    """Return the names of the cases with a changed or new outcome."""
    return [name for name, outcome in new.items() if old.get(name) != outcome]


def main() -> int:
    """Run the command line."""
    parser = arguments.parser(__doc__)
    parser.add_argument("releases", nargs="+", metavar="RELEASE", help="such as 4.3.1, or all")
    parser.add_argument("--like", metavar="RELEASE", help="take the cases that this release has")
    parser.add_argument("--add", metavar="REGEX", help="take also the cases whose name holds this")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    cases, runs = goldens.cases(), goldens.load()
    changed = 0
    for release in list(runs) if options.releases == ["all"] else options.releases:
        old = runs.get(release, {})
        names = {*old, *(runs[options.like] if options.like else ())}
        names.update(name for name in cases if options.add and re.search(options.add, name))
        recorded = record(release, {name: cases[name] for name in sorted(names)})
        found = differences(old, recorded)
        changed += len(found)
        print(f"{release}: {len(recorded)} cases, {len(found)} new or changed", *found[:10], sep="\n    ", flush=True)
        runs[release] = recorded
    if not options.check:
        goldens.save(runs)
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
