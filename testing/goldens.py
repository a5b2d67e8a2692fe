"""The recorded outputs in golden/: the command lines, and the output of each release of the original.

golden/cases.tsv holds a case per line: its name and the arguments of the tool, separated by tabs; paths are relative to
golden/. golden/runs/RELEASE.jsonl holds the runs of one release, a JSON object per line in the order of the names:

    {"case": NAME, "status": 0, "stdout": TEXT, "stderr": TEXT}     as recorded
    {"case": NAME, "as": "4.2.2"}                                   the same outcome as that older release's

Text that differs from run to run has placeholders: @ROOT@ for the folder of the files, [B@HASH for identity hashes of
Java arrays. Reports on stderr are sorted by file, because their order in the original depends on the absolute path.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

from testing import GOLDEN

Runs = dict[str, dict[str, "Outcome"]]


class Outcome(NamedTuple):
    """The result of a run of the original: exit status, and the text of both streams."""

    status: int
    stdout: str
    stderr: str


def numbers(release: str) -> tuple[int, ...]:
    """A release as numbers, to sort by: "0.8.2.1" -> (0, 8, 2, 1)."""
    return tuple(int(part) for part in release.split("."))


def cases() -> dict[str, list[str]]:
    """Return the cases of golden/: name -> arguments."""
    text = (GOLDEN / "cases.tsv").read_text(encoding="utf-8")
    return {name: arguments for name, *arguments in (line.split("\t") for line in text.splitlines())}


def releases() -> list[str]:
    """Return the releases with recorded runs, oldest first."""
    return sorted((path.stem for path in (GOLDEN / "runs").glob("*.jsonl")), key=numbers)


def load() -> Runs:
    """Return the recorded runs: release -> case -> outcome, oldest release first."""
    runs: Runs = {}
    for release in releases():
        runs[release] = {}
        with (GOLDEN / "runs" / f"{release}.jsonl").open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                run = json.loads(line)
                name, same = run.pop("case"), run.get("as")
                runs[release][name] = runs[same][name] if same else Outcome(**run)
    return runs


def save(runs: Runs) -> None:
    """Write all recorded runs. An outcome equal to that of an older release becomes a reference to it."""
    (GOLDEN / "runs").mkdir(exist_ok=True)
    first: dict[tuple[str, Outcome], str] = {}
    for release in sorted(runs, key=numbers):
        lines = []
        for name, outcome in sorted(runs[release].items()):
            same = first.setdefault((name, outcome), release)
            run = outcome._asdict() if same == release else {"as": same}
            lines.append(json.dumps({"case": name, **run}, ensure_ascii=False) + "\n")
        with (GOLDEN / "runs" / f"{release}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)


def plain(text: str, root: Path) -> str:
    """Return a text with placeholders for the folder of the files and for identity hashes."""
    return re.sub(r"\[B@[0-9a-f]+", "[B@HASH", text.replace(str(root), "@ROOT@"))


def sorted_reports(stderr: str) -> str:
    """Return stderr with sorted reports: each is a title, then lines that begin with two blanks or `Indexed offset`."""
    reports: list[str] = []
    for line in stderr.splitlines(keepends=True):
        if reports and line.startswith(("  ", "Indexed offset:")):
            reports[-1] += line
        else:
            reports.append(line)
    return "".join(sorted(reports))


def outcome(status: int, stdout: bytes, stderr: str, root: Path) -> Outcome:
    """Return a run as it is recorded and compared.

    Raises UnicodeDecodeError when stdout is not UTF-8: the original prints only text.
    """
    return Outcome(status, plain(stdout.decode("utf-8"), root), sorted_reports(plain(stderr, root)))


def first_difference(got: str, want: str) -> str:
    """Return the first difference between two texts: line, column and the text there."""
    pairs = zip([*got.split("\n"), "<end>"], [*want.split("\n"), "<end>"], strict=False)
    for number, (ours, theirs) in enumerate(pairs, 1):
        if ours != theirs:
            pairs_of_letters = zip(ours, theirs, strict=False)
            at = next((i for i, (x, y) in enumerate(pairs_of_letters) if x != y), min(len(ours), len(theirs)))
            start = max(0, at - 60)
            return f"line {number}, column {at}\n  got  {ours[start : at + 120]!r}\n  want {theirs[start : at + 120]!r}"
    return "no difference"
