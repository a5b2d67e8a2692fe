"""The hot loop: the records of one magic 2 batch, read one after the other, as objects or as lines of text.

The modules of this package are one source for two builds. Cython compiles them ("pure Python mode") where a C compiler
is there; elsewhere the same files run as Python. What only C needs, or only Python, stands under ``cython.compiled``.
The builds are never mixed: without all of the compiled modules, none of them is used.

The kernel knows well-formed records alone. At anything else it stops in front of the record, and whoever called it
hands the rest of the batch to the general reader (:mod:`kdump.records.magic_2`, which also tells the layout), so that
there is one place that says what is wrong.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from typing import Final

MODULES: Final = (
    "cursor",
    "records",
    "quoting",
    "lines",
    "json_lines",
    "arrow",
    "indexes",
    "fields",
    "payloads",
    "messages",
    "batches",
)
"""What is compiled, each module behind those that it builds on."""


def _compiled() -> set[str]:
    """Return the names of the modules that this Python finds compiled."""
    folders = [folder for folder in __path__ if os.path.isdir(folder)]  # noqa: PTH112  pathlib is slow to import
    files = {name for folder in folders for name in os.listdir(folder)}  # noqa: PTH208  likewise
    # The whole name counts: modules that another Python compiled may lie beside this one's.
    return {name for name in MODULES if any(name + suffix in files for suffix in EXTENSION_SUFFIXES)}


def only_sources() -> None:
    """Let the imports of this package's modules that are still to come see their sources alone."""
    for folder in filter(os.path.isdir, __path__):  # in a zip archive are sources alone
        sys.path_importer_cache[folder] = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))


_FOUND: Final = _compiled()
COMPILED: Final = len(_FOUND) == len(MODULES) and os.environ.get("KDUMP_KERNEL") != "python"
if not COMPILED:
    only_sources()


def stamps() -> dict[str, str]:
    """Return the stamp that each module should bear: a checksum of its other lines and of the declarations for C.

    Empty where the sources are not there.
    """
    from pathlib import Path

    from kdump.primitives.crc import crc32

    folder = Path(__file__).parent
    if not all((folder / f"{name}.py").exists() for name in MODULES):
        return {}
    shared = "".join(path.read_text("utf-8") for path in sorted(folder.glob("*.pxd")))
    made = {}
    for name in MODULES:
        lines = (folder / f"{name}.py").read_text("utf-8").splitlines(keepends=True)
        text = shared + "".join(line for line in lines if not line.startswith("STAMP"))
        made[name] = f"{crc32(text.encode()):08x}"
    return made


def build() -> str:
    """Tell which build of the kernel is at work, for people."""
    if not COMPILED:
        some = 0 < len(_FOUND) < len(MODULES)
        return f"Python; only {', '.join(sorted(_FOUND))} of it compiled" if some else "Python"
    from importlib import import_module

    for name, stamp in stamps().items():
        if stamp != import_module(f"kdump.kernel.{name}").STAMP:
            return f"compiled from another kernel/{name}.py (pip install -e . makes it anew)"
    return "compiled"
