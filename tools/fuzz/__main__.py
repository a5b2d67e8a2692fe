"""Give broken bytes to every reader: each must return a result, or raise one of kdump's own errors.

    python -m tools.fuzz                               2,000 seeded inputs for each target.
    python -m tools.fuzz kernel --count 100000 --seed 7 --jobs 2
    python -m tools.fuzz --count 10000 --report "every reader"
                                                       also write that section of golden/reports/fuzz.md.
    python -m tools.fuzz kernel-alone --count 100000 --golden
                                                       for a kernel built with --address or --bounds
                                                       (tools.dev.build_kernel): also unchanged golden files.
    python -m tools.fuzz segment codec --coverage 600 --report "Guided by coverage"
                                                       600 s each, guided by coverage (pip install atheris)

Inputs are mutations of golden files (tools/fuzz/mutations) and noise. An input that breaks a target is written to
tests/hostile/TARGET-DIGEST, which tests/tools/test_fuzz.py tests again. The exit status is 1 if there is one.
"""

import argparse
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec

from tools.fuzz import attempts, guided
from tools.fuzz.inputs import golden_files
from tools.fuzz.report import Figures
from tools.fuzz.targets import TARGETS

STEP = 1000
"""The number of inputs between two updates of the figures."""


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000, help="inputs for each target (%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--coverage", type=int, metavar="SECONDS", help="guided by coverage, so long for each target")
    parser.add_argument("--golden", action="store_true", help="try every file of golden/ as it is, too")
    parser.add_argument("--report", metavar="TITLE", help="write the figures to this section of golden/reports/fuzz.md")
    options = parser.parse_args()
    wanted = options.targets or [target for target in TARGETS if target != "kernel-alone"]
    if unknown := set(wanted) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if options.coverage:
        if find_spec("atheris") is None:
            parser.error("--coverage needs atheris: pip install atheris (it has no wheel for every Python)")
        return 0 if guided.run(wanted, options.coverage, options.report) else 1
    figures = Figures(options.seed, options.report)
    for target in wanted:
        for part in _parts(target, options):
            figures.add(target, part)
        if options.golden:
            figures.add(f"{target}, golden files", attempts.tried(target, golden_files()))
    print(figures.text())
    return 1 if figures.failed else 0


def _parts(target: str, options: argparse.Namespace) -> Iterator[Counter[str]]:
    """Yield the results of ranges of a target's inputs, tried by several processes."""
    end, step = options.first + options.count, max(1, min(STEP, options.count // options.jobs))
    jobs = [(target, options.seed, first, min(step, end - first)) for first in range(options.first, end, step)]
    if options.jobs > 1:
        with multiprocessing.Pool(options.jobs) as pool:
            yield from pool.imap_unordered(attempts.work, jobs)
    else:
        yield from map(attempts.work, jobs)


if __name__ == "__main__":
    sys.exit(main())
