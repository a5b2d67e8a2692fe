"""Break folders of golden/ in seeded ways, and run every command on each: none may hang, crash or give a wrong status.

    python -m tools.fuzz.hunt                                   300 folders, seed 1, 20 seconds for each run.
    python -m tools.fuzz.hunt --first 17 --count 1 --keep DIR   one of them again, kept in DIR.
    python -m tools.fuzz.hunt --folders '__*' --command groups  folders and commands of some names alone

One to three files of a folder are broken (tools/fuzz/mutations). --report writes the figures to
golden/reports/hunt.md. The exit status is 1 after a fault.
"""

import argparse
import pkgutil
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from random import Random

import kdump
from kdump.internal_topics import DECODER_SWITCHES
from testing import GOLDEN
from tools.fuzz import forked
from tools.fuzz.mutations import segments, whole

SOUND = {0, 1, 3, 4, 5}
"""The valid exit statuses of a command: fine, unreadable, a damaged log, wrong files beside it, absent."""
EMPTY = (2, b" holds no batch that covers --offset ")
"""The exit status and message of ``slice`` for an empty log, which has no range of offsets."""
TEXT = """\
Status 1: what cannot be read, or `--files` at damage, where the original dies. Status 2: `slice` of a log that has been
emptied. Status 3: damage. Status 4: only files beside the log are wrong. Status 5: not there. Odd is any other end."""
COMMANDS = {
    "--files": ["--files", "{files}", "--print-data-log"],
    "--files, decoded": ["--files", "{files}", "{decoder}"],
    "--files --verify-index-only": ["--files", "{files}", "--verify-index-only"],
    "--files, release 0.11": ["--compat", "0.11", "--files", "{files}", "--deep-iteration"],
    "dump -o text": ["dump", "{folder}", "--leftovers"],
    "dump -o jsonl": ["dump", "{folder}", "-o", "jsonl", "--decode", "auto", "--include-damaged"],
    "dump -o json": ["dump", "{folder}", "-o", "json", "--on-error", "skip"],
    "dump -o csv": ["dump", "{folder}", "-o", "csv", "--isolation", "read_committed"],
    "dump -o table": ["dump", "{folder}", "-o", "table", "--tail", "3"],
    "dump -o raw": ["dump", "{folder}", "-o", "raw", "--since", "2000-01-01"],
    "dump --batches": ["dump", "{folder}", "--batches", "--offset", "5.."],
    "dump --count": ["dump", "{folder}", "--count"],
    "get": ["get", "{name}@{offset}", "--in", "{folder}", "--batch"],
    "get --hexdump": ["get", "{name}@{offset}", "--in", "{folder}", "--hexdump"],
    "check": ["check", "{folder}", "--remarks"],
    "check --json": ["check", "{folder}", "--json"],
    "verify-index": ["verify-index", "{folder}", "--remarks"],
    "rebuild-index": ["rebuild-index", "{log}", "--out", "{out}/index"],
    "salvage": ["salvage", "{folder}", "--leftovers", "--out", "{out}/salvage"],
    "slice": ["slice", "{folder}", "--offset", "0..", "--out", "{out}/slice"],
    "groups": ["groups", "{folder}", "--history"],
    "groups -o jsonl": ["groups", "{folder}", "-o", "jsonl", "--history", "--stable"],
    "groups -o reset-csv": ["groups", "{folder}", "-o", "reset-csv"],
    "groups --top": ["groups", "{folder}", "--top", "bytes", "-o", "csv"],
}
NOT_NEEDED = ("kdump.spark_", "kdump.commands.spark_", "kdump.__main__")
REPORT = GOLDEN / "reports" / "hunt.md"


def folders(names: str) -> list[Path]:
    """Yield every folder of golden/ that has a segment and matches the glob ``names``."""
    found = {path.parent for place in ("brokers", "damaged") for path in (GOLDEN / place).rglob("*.log")}
    return sorted(folder for folder in found if fnmatchcase(folder.name, names))


def broken(seed: int, number: int, place: Path, names: str = "*") -> Path:
    """Copy a folder to ``place`` and break the copy there; return it. The seed and number determine the result."""
    random = Random(f"hunt:{seed}:{number}")
    source = random.choice(folders(names))
    name = source.name if source.name.rpartition("-")[2].isdigit() else "t-0"
    target = place / name
    shutil.copytree(source, target)
    files = sorted(path for path in target.rglob("*") if path.is_file() and path.stat().st_size)
    for path in random.sample(files, min(len(files), random.randint(1, 3))):
        sound = path.suffix == ".log" and "brokers" in source.parts  # else the positions of its batches are unknown
        kind = random.choice(segments.KINDS if sound else whole.KINDS)
        path.write_bytes(kind(random, path.read_bytes()))
    return target


def arguments(words: list[str], folder: Path, out: Path, offset: int) -> list[str]:
    """Fill in a command line."""
    logs = sorted(folder.glob("*.log"))
    files = sorted(path for path in folder.iterdir() if path.is_file())
    values = {
        "folder": folder,
        "files": ",".join(map(str, files)),
        "decoder": "--" + DECODER_SWITCHES.get(folder.name.rpartition("-")[0], "offsets-decoder"),
        "name": folder.name,
        "offset": offset,
        "log": logs[offset % len(logs)],
        "out": out,
    }
    return [word.format(**values) for word in words]


def hunt(seed: int, numbers: range, keep: Path | None, names: str, command: str) -> dict[str, Counter[str]]:
    """Run the commands whose names begin with ``command``; return each outcome, and print the faults."""
    for module in pkgutil.walk_packages(kdump.__path__, "kdump."):  # once, and not in each child
        if not module.name.startswith(NOT_NEEDED):
            import_module(module.name)
    tallies: dict[str, Counter[str]] = defaultdict(Counter)
    for number in numbers:
        with tempfile.TemporaryDirectory() as temporary:
            place = keep or Path(temporary)
            folder = broken(seed, number, place / "in", names)
            for name, words in COMMANDS.items():
                if not name.startswith(command):
                    continue
                line = arguments(words, folder, place / f"out-{name}", number % 50)
                run = forked.run(line, place)
                odd = run.status not in SOUND and not (run.status == EMPTY[0] and EMPTY[1] in run.stderr)
                tallies[name].update(runs=1, crashes=run.crashed, hangs=run.hung, odd=odd, **{str(run.status): 1})
                if odd or b"Traceback" in run.stderr:
                    tallies[name].update(tracebacks=b"Traceback" in run.stderr)
                    print(f"--- {number} {name}: status {run.status}: {' '.join(line)}")
                    print(run.stderr.decode(errors="replace")[-1000:], flush=True)
    return tallies


def table(tallies: dict[str, Counter[str]], title: str) -> str:
    columns = ("runs", "0", "1", "2", "3", "4", "5", "crashes", "hangs", "tracebacks", "odd")
    lines = [f"# {title}", "", TEXT, ""]
    lines.append(f"| command | {' | '.join(f'status {name}' if name.isdigit() else name for name in columns)} |")
    lines.append("|---" * (len(columns) + 1) + "|")
    total: Counter[str] = sum(tallies.values(), Counter())
    for name, tally in [*tallies.items(), ("**all**", total)]:
        lines.append(f"| {name} | " + " | ".join(str(tally[column]) for column in columns) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first folder")
    parser.add_argument("--folders", default="*", metavar="GLOB", help="names of the folders to break")
    parser.add_argument("--command", default="", metavar="NAME", help="commands whose name begins so")
    parser.add_argument("--keep", type=Path, help="keep the files in this folder")
    parser.add_argument("--report", action="store_true", help="write the figures to golden/reports/hunt.md")
    options = parser.parse_args()
    started = time.monotonic()
    tallies = hunt(
        options.seed,
        range(options.first, options.first + options.count),
        options.keep,
        options.folders,
        options.command,
    )
    text = table(tallies, f"Every command on {options.count} broken folders (seed {options.seed})")
    print(f"{text}{time.monotonic() - started:.0f} s")
    if options.report:
        REPORT.write_text(text, encoding="utf-8")
    return 1 if any(tally["odd"] or tally["tracebacks"] for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
