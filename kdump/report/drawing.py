"""Draws charts in a process of its own: a script that reads specifications of Vega-Lite as JSON, and prints SVGs.

The engine of vl-convert takes some 35 MiB, and keeps more with each chart; pages of its file come on top. These are
released before each chart, and the process ends above a limit: another process draws the remaining charts. The script
imports nothing of kdump.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, Final

VERSION: Final = "5.20"
"""The version of Vega-Lite."""
MUCH: Final = 48 << 20
"""Private bytes of a process above which it draws no further chart."""
_FIRST: Final = {"data": {"values": [{}]}, "mark": "point"}
"""The smallest chart: drawing it starts the engine."""
_DONTNEED: Final = 4
"""MADV_DONTNEED of Linux."""
_PR_SET_PDEATHSIG: Final = 1
_SIGKILL: Final = 9
_FILE: Final = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-(?:-p 0+|xp \S+) .* (/.*)")
"""A line of ``/proc/self/maps``: a mapping of a file's unchanged pages, constants and code without relocations."""


def draw(specs: list[dict[str, Any]]) -> list[str]:
    """Return the SVGs of one or more specifications; stop when the process holds more than :data:`MUCH` bytes."""
    import vl_convert

    vl_convert.vegalite_to_svg(_FIRST, vl_version=VERSION)
    drawn: list[str] = []
    for spec in specs:
        if _held(vl_convert.__file__) > MUCH and drawn:
            break
        drawn.append(vl_convert.vegalite_to_svg(spec, vl_version=VERSION))
    return drawn


def _held(library: str) -> int:
    """Release the pages of the library's file; return the private bytes of this process, 0 if unknown.

    The pages come back from the page cache in some milliseconds. Without this a process would have to end after fewer
    charts to stay below 100 MiB: six charts take 2.7 s instead of 1.7 s.
    """
    import ctypes

    try:
        mappings = Path("/proc/self/maps").read_text("utf-8", "surrogateescape").splitlines()
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    advise = ctypes.CDLL(None).madvise
    for line in mappings:
        if (found := _FILE.fullmatch(line)) and Path(found[3]).parent == Path(library).parent:
            start, end = int(found[1], 16), int(found[2], 16)
            advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _DONTNEED)
    own = re.search(r"RssAnon:\s+(\d+)", status)
    return int(own[1]) << 10 if own else 0


def _end_with_parent(parent: int) -> None:
    """Let the system kill this process when its parent ends. Only Linux does."""
    import ctypes

    if hasattr(ctypes.CDLL(None), "prctl"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    _end_with_parent(int(sys.argv[1]))
    try:
        print(json.dumps(draw(json.load(sys.stdin))), flush=True)
    except BrokenPipeError:  # the reader has gone
        os._exit(1)
