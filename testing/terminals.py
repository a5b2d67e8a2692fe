"""kdump on a terminal: command lines of every command and format, and the control characters they print."""

from __future__ import annotations

import os
import pty
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STEERS = re.compile(
    b"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xaf]"
)
"""Control characters (a line's end and a status line have CR), C1, marks and controls of the writing direction."""
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
FORMS = ("table", "jsonl", "csv")
DUMPS = (
    *(["-o", form] for form in ("text", "jsonl", "json", "csv", "table", "raw")),
    ["-f", "%t %p %o %k %s %h\\n"],
    ["--batches"],
    ["--batches", "-o", "csv"],
    ["-o", "jsonl", "--decode", "auto"],
    ["-o", "table", "--decode", "auto"],
    ["-o", "csv", "--include-damaged"],
    ["--count"],
    ["--tail", "1"],
)
ANSWERS = (
    ["offsets"],
    ["transactions", "--all"],
    ["producers", "--gaps"],
    ["groups"],
    ["groups", "--history"],
    ["groups", "--top", "bytes"],
    ["metadata"],
    ["metadata", "--topics"],
    ["metadata", "--events"],
    ["metadata", "--tree", "/"],
    ["metadata", "--diff", "0.."],
    ["schemas", "--all"],
    ["schemas", "--subjects"],
    ["schemas", "--history"],
    ["connect"],
    ["du"],
    ["ls"],
    ["ls", "--segments"],
    ["stats", "--records"],
    ["retention", "--at", "2026-11-22"],
    ["compaction", "--records", "--config", "*:cleanup.policy=compact"],
)
CHECKS = (["check"], ["check", "--remarks", "-v"], ["check", "--json"], ["verify-index"], ["verify-index", "--json"])
REPORTS = (["report"], ["report", "--json"], ["report", "-o", "jsonl"])


class Screen(NamedTuple):
    """The bytes that a terminal received, and the exit status."""

    shown: bytes
    status: int
    colours: bool = False

    @property
    def faults(self) -> list[bytes]:
        """Return the control characters on the screen that are not kdump's colours, with the text around them."""
        plain = COLOUR.sub(b"", self.shown) if self.colours else self.shown
        return [plain[max(0, found.start() - 40) : found.end() + 20] for found in STEERS.finditer(plain)]


def matrix(log_dir: Path, out: Path) -> Iterator[list[str]]:
    """Yield the command lines: each command and format over a log dir, its folders and files, and wrong usage."""
    where = os.fspath(log_dir)
    folders = sorted(entry.path for entry in os.scandir(log_dir) if entry.is_dir())
    files = sorted(entry.path for folder in folders for entry in os.scandir(folder) if entry.is_file())
    logs = [name for name in files if name.endswith(".log")]
    for more in DUMPS:
        yield ["dump", where, "--leftovers", *more]
    for words in ANSWERS:
        for form in FORMS:
            yield [words[0], where, *words[1:], "-o", form]
    yield ["groups", where, "-o", "reset-csv"]
    yield ["schemas", where, "--import-script"]
    yield ["schemas", where, "--export", os.fspath(out / "schemas")]
    for words in (*CHECKS, *REPORTS):
        yield [words[0], where, *words[1:]]
    yield ["diff", where, where]
    for number, name in enumerate(logs):
        for more in ([], ["--print-data-log"], ["--deep-iteration"]):
            yield ["--files", name, *more]
        yield ["dump", name]
        yield ["slice", name, "--offset", "0..", "--out", os.fspath(out / f"slice{number}")]
        yield ["rebuild-index", name, "--out", os.fspath(out / f"index{number}")]
        yield ["salvage", os.fspath(Path(name).parent), "--out", os.fspath(out / f"salvage{number}")]
    for name in files:
        if name not in logs:
            yield ["--files", name]
            yield ["dump", name]
    for folder in folders:
        for form in ("text", "jsonl", "table"):
            yield ["get", "@0", "--in", folder, "-o", form]
        yield ["get", "@0", "--in", folder, "--hexdump"]
        yield ["get", "@0", "--in", folder, "--batch"]
        yield ["explain", f"{Path(folder).name}@0..3", "--in", where]
        yield from wrong_usage(folder, where)


def wrong_usage(path: str, log_dir: str) -> Iterator[list[str]]:
    """Yield wrong command lines, with a path instead of other words."""
    name = Path(path).name
    yield [path]
    yield ["get", "X@0", path]
    yield ["get", f"{name}@0", path]
    yield ["get", f"{name}@0", "--in", path + "-gone"]
    yield ["get", name, "--in", log_dir]
    yield ["explain", f"{name}@0", path]
    yield ["dump", path + "-gone"]
    yield ["--files", path + "-gone"]
    yield ["--files", path, path]
    yield ["dump", log_dir, "--topic", name + "x"]
    yield ["dump", log_dir, f"--{name}"]
    yield ["dump", log_dir, "-o", name]
    yield ["dump", log_dir, "--offset", name]
    yield ["dump", log_dir, "--since", name]
    yield ["dump", log_dir, "--grep", f"[{name}"]
    yield ["dump", log_dir, "--fields", name, "-o", "jsonl"]
    yield ["check", log_dir, "--topic", name + "x"]
    yield ["metadata", log_dir, "--tree", f"/topics/{name}x"]
    yield ["metadata", log_dir, "--topics", "--topic", name + "x"]
    yield ["retention", log_dir, "--config", f"{name}:{name}={name}"]
    yield ["groups", log_dir, "--group", name + "x"]
    yield ["help", name]
    yield ["compat", name]
    yield ["coordinator", name, "--type", "group", "--partitions", "50"]
    yield ["salvage", path + "-gone", "--out", path]
    yield ["slice", path, "--offset", "0..", "--out", path]
    yield ["schemas", log_dir, "--schemas-topic", name]
    yield ["schemas", path + "-gone", "--subject", name]
    yield ["schemas", log_dir, "--export", path]
    yield ["spark-export", path + "-gone", "--out", path + "-out"]
    yield ["spark-export", log_dir, "--out", path + "-out", "--topic", name, "--columns", name]
    yield ["spark-export", log_dir, "--out", path + "-out", "--partition-by", name]
    yield ["spark-export", log_dir, "--out", path + "-out", "--master", name]


def spark_matrix(log_dir: Path, out: Path) -> Iterator[list[str]]:
    """Yield command lines that start Spark: exports of all partitions, of one folder, into one; answers of workers."""
    where = os.fspath(log_dir)
    first = next(entry.path for entry in sorted(os.scandir(log_dir), key=lambda one: one.name) if entry.is_dir())
    spark = ["--master", "local[1]", "--conf", "spark.driver.memory=512m"]
    yield ["spark-export", where, "--out", os.fspath(out / "all"), *spark]
    yield ["spark-export", where, "--out", os.fspath(out / "all"), *spark]
    yield ["spark-export", where, "--out", os.fspath(out / "failfast"), "--read-mode", "FAILFAST", *spark]
    yield ["spark-export", where, "--out", os.fspath(out / "more"), "--incremental", *spark]
    yield ["spark-export", first, "--out", os.fspath(out / Path(first).name), "--partition-by", "none", *spark]
    for words in (["check"], ["stats", "--records"], ["groups"]):
        yield [words[0], where, *words[1:], *spark]


def show(words: Sequence[str], *, colours: bool = False, width: int = 100) -> Screen:
    """Run a command line in a fork of this process, on a new terminal of ``width`` columns.

    Without ``colours`` the terminal supports none, and every escape sequence is a fault.
    """
    child, screen = pty.fork()
    if not child:
        _run(words, colours=colours, width=width)
    shown = b""
    try:
        while region := os.read(screen, 1 << 16):
            shown += region
    except OSError:  # that is how a terminal ends
        pass
    os.close(screen)
    return Screen(shown, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), colours)


def _run(words: Sequence[str], *, colours: bool, width: int) -> None:
    status = 99
    try:
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False, errors="backslashreplace")
        os.environ |= {"KDUMP_PAGER": "", "COLUMNS": str(width), "TERM": "xterm-256color" if colours else "dumb"}
        os.environ.pop("NO_COLOR", None)
        if not colours:
            os.environ["NO_COLOR"] = "1"
        from kdump import cli

        sys.argv = ["kdump", *words]
        status = cli.main()
        sys.stdout.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
    os._exit(status)
