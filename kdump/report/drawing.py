"""Draws charts in a process of its own: a script that reads specifications of Vega-Lite as JSON, and writes their SVGs.

The engine of vl-convert takes some 80 MiB, and more with each chart, which it keeps. So the process ends where it holds
much: the charts that are left are for another one. It imports nothing of kdump.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

VERSION: Final = "5.20"
"""Of Vega-Lite."""
MUCH: Final = 55 << 20
"""Bytes that a process holds between two charts, at most, if it is to draw another."""
_DONTNEED: Final = 4
"""MADV_DONTNEED of Linux."""
_MAPPING: Final = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+ +(.*)\n")


def draw(specs: list[dict[str, Any]]) -> list[str]:
    """Return the SVGs of the first specifications: of one or more."""
    import vl_convert

    drawn = []
    for spec in specs:
        drawn.append(vl_convert.vegalite_to_svg(spec, vl_version=VERSION))
        if len(drawn) < len(specs) and _held(vl_convert.__file__) > MUCH:
            break
    return drawn


def _held(library: str) -> int:
    """Return the bytes that this process holds when it has let go of the pages of the library's file.

    Those come back from the page cache where they are needed, in some milliseconds. Where the system does not tell,
    0 is returned.
    """
    import ctypes

    try:
        lines = Path("/proc/self/smaps").read_text("utf-8", "surrogateescape").splitlines(keepends=True)
    except OSError:
        return 0
    advise = ctypes.CDLL(None).madvise
    held = 0
    start, end, of_file, size = 0, 0, False, 0
    for line in lines:
        if found := _MAPPING.fullmatch(line):
            start, end = int(found[1], 16), int(found[2], 16)
            of_file = found[3] in ("r--p", "r-xp") and Path(found[4]).parent == Path(library).parent
        elif line.startswith("Rss:"):
            size = int(line.split()[1]) << 10
            held += size
        elif line.startswith("Anonymous:"):
            as_in_file = of_file and line.split()[1] == "0"
            if as_in_file and not advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _DONTNEED):
                held -= size
    return held


if __name__ == "__main__":
    json.dump(draw(json.load(sys.stdin)), sys.stdout)
