"""A script that draws charts in its own process: it reads a JSON list of Vega-Lite specifications, and prints SVGs.

The engine of vl-convert takes about 35 MiB, the pages of its library file, and more with each chart. The script, which
does not import kdump, releases these pages before each chart. Above a limit it ends, and another draws the rest.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, Final

VERSION: Final = "5.20"
MUCH: Final = 48 << 20
"""Limit of the private memory of a process, in bytes; above it no further chart is drawn."""
_FIRST: Final = {"data": {"values": [{}]}, "mark": "point"}
"""The smallest chart, which is drawn to start the engine."""
_DONTNEED: Final = 4
_PR_SET_PDEATHSIG: Final = 1
_SIGKILL: Final = 9
_FILE: Final = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-(?:-p 0+|xp \S+) .* (/.*)")
"""A line of ``/proc/self/maps`` for unchanged pages of a file: constants, or code without relocations."""


def draw(specs: list[dict[str, Any]]) -> list[str]:
    """Return the SVGs of the first specifications. After the first, stop when more than :data:`MUCH` bytes are held."""
    import vl_convert

    vl_convert.vegalite_to_svg(_FIRST, vl_version=VERSION)
    drawn: list[str] = []
    for spec in specs:
        if _held(vl_convert.__file__) > MUCH and drawn:
            break
        drawn.append(vl_convert.vegalite_to_svg(spec, vl_version=VERSION))
    return drawn


def _held(library: str) -> int:
    """Release unchanged pages of the library's files; return the private memory of this process in bytes, 0 if unknown.

    A process that kept the pages could draw fewer charts within 100 MiB. Loading them again takes some milliseconds.
    """
    import ctypes

    try:
        mappings = Path("/proc/self/maps").read_text("utf-8", "surrogateescape").splitlines()
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    advise = ctypes.CDLL(None).madvise
    folder = Path(library).resolve().parent  # the system names files without symbolic links
    for line in mappings:
        if (found := _FILE.fullmatch(line)) and Path(found[3]).parent == folder:
            start, end = int(found[1], 16), int(found[2], 16)
            advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _DONTNEED)
    own = re.search(r"RssAnon:\s+(\d+)", status)
    return int(own[1]) << 10 if own else 0


def _end_with_parent(parent: int) -> None:
    """On Linux, let the system kill this process when its parent ends. Exit now if the parent has ended."""
    import ctypes

    if hasattr(ctypes.CDLL(None), "prctl"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    _end_with_parent(int(sys.argv[1]))
    try:
        print(json.dumps(draw(json.load(sys.stdin))), flush=True)
    except BrokenPipeError:  # the reader has ended
        os._exit(1)
