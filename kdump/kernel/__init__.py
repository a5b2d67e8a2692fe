"""The kernel, kdump's compiled code for records, internal topics, index entries, digests, schemas and folder listings.

Compiled code reads well-formed records only. It stops before any other; plain Python (the general path) continues and
reports errors. Without compiled code, plain Python reads everything with the same results. A module of this package
may be imported only if ``COMPILED`` is true. The environment variable ``KDUMP_KERNEL=off`` makes it false.
"""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Final

SHARED: Final = "shared"
"""Cython's own code for memoryviews, compiled once for all modules."""
MODULES: Final = ("records", "batches", "texts", "digests", "lines", "arrow", "indexes", "internal_topics", "schemas")
"""The compiled modules. Each follows the modules that it imports. setup.py and tools.dev.build_kernel use this list."""
VERSION: Final = 28
"""The number of the modules' interface, equal to ``VERSION`` in ``records.pyx``. Increased with each change."""


def _files() -> set[str]:
    """Return the names in this package's folders; empty in an archive. One listing is faster than many searches."""
    try:
        return {name for folder in __path__ for name in os.listdir(folder)}  # noqa: PTH208  pathlib is slow to import
    except OSError:
        return set()


def _absence() -> str:
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
    """If compiled, make glibc keep up to 64 MiB of freed memory. New memory is slower: the system clears pages."""
    if COMPILED:
        from kdump.kernel import records

        records.keep_freed_memory()


def reserve(file: int, size: int) -> None:
    """Reserve disk space for ``size`` bytes of an open file (descriptor). Writes then take half the time.

    The size of the file does not change. If kdump is not compiled, or the system refuses, nothing is reserved.
    """
    if COMPILED:
        from kdump.kernel import records

        records.reserve(file, size)


def version() -> str:
    from kdump import __version__

    return f"kdump, version {__version__} (kernel: {build()})"


def build() -> str:
    """Return "compiled", or "none" and the reason why the compiled modules are not used."""
    return "compiled" if COMPILED else f"none, {_ABSENCE}"
