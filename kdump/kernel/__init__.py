"""The compiled hot loops: records of valid batches and entries of indexes, straight to text or columns.

The kernel is compiled or absent, and everything that uses it has a general path in plain Python. It knows well-formed
batches alone: in front of anything else it stops, and the general path goes on, so that one place says what is wrong.
Only where ``COMPILED`` is true may a module of this package be imported.
"""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Final

SHARED: Final = "shared"
"""Cython's own code for memoryviews, compiled once for all modules."""
MODULES: Final = ("records", "batches", "texts", "digests", "lines", "arrow", "indexes", "internal_topics", "schemas")
"""The modules that are compiled, each after those that it builds on; setup.py and tools.dev.build_kernel read this."""
VERSION: Final = 22
"""Counts up when what the modules and their callers ask of each other changes (``VERSION`` in ``records.pyx``)."""


def _files() -> set[str]:
    """Return the names in the folders of this package; none where it is no folder, but part of an archive.

    One look at a folder takes a quarter of the time of a search for each module.
    """
    try:
        return {name for folder in __path__ for name in os.listdir(folder)}  # noqa: PTH208  pathlib is slow to import
    except OSError:
        return set()


def _absence() -> str:
    """Return why there is no kernel, nothing where there is one."""
    if os.environ.get("KDUMP_KERNEL") == "off":
        return "turned off by KDUMP_KERNEL"
    files = _files()
    missing = [name for name in (SHARED, *MODULES) if not any(name + suffix in files for suffix in EXTENSION_SUFFIXES)]
    if missing:
        return "not compiled" if len(missing) > len(MODULES) else f"{', '.join(missing)} not compiled"
    try:
        from kdump.kernel import records
    except ImportError as reason:
        return f"cannot be loaded ({reason})"
    return "" if getattr(records, "VERSION", None) == VERSION else "compiled from other sources, install kdump again"


_ABSENCE: Final = _absence()
COMPILED: Final = not _ABSENCE


def keep_freed_memory() -> None:
    """Have the C library keep what is freed, tens of MiB, for the next block: the system would clear it first.

    That holds for the whole process, so that only a program that is kdump and nothing else may ask for it.
    """
    if COMPILED:
        from kdump.kernel import records

        records.keep_freed_memory()


def reserve(file: int, size: int) -> None:
    """Have the file system set ``size`` bytes aside for an open file, which keeps its size, if it can do that.

    To write them takes half the time then, as it need not ask for each page.
    """
    if COMPILED:
        from kdump.kernel import records

        records.reserve(file, size)


def build() -> str:
    """Return whether the kernel is compiled, for people; if it is not, why."""
    return "compiled" if COMPILED else f"none, {_ABSENCE}"
