"""kdump: read Apache Kafka's files on disk, with no broker and no JVM.

>>> import kdump
>>> for record in kdump.open("orders-0", since=1_700_000_000_000):  # doctest: +SKIP
...     print(record.offset, record.key, record.value)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kdump.api import Log, LogBatch, LogRecord, open  # noqa: A004  as in gzip.open: called as kdump.open

__all__ = ["Log", "LogBatch", "LogRecord", "open"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what users of the library need when they ask for it: the command line starts without it."""
    if name in __all__:
        from kdump import api

        return getattr(api, name)
    raise AttributeError(f"module 'kdump' has no attribute {name!r}")


if os.environ.get("KDUMP_KERNEL") == "python":  # to measure, and to tell a fault of the compiled build from ours
    import sys
    from importlib.machinery import SourceFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    _source = os.path.join(os.path.dirname(__file__), "kernel.py")  # noqa: PTH118, PTH120  pathlib is slow to import
    _loader = SourceFileLoader("kdump.kernel", _source)
    _spec = spec_from_loader("kdump.kernel", _loader)
    if _spec is not None:
        kernel = sys.modules["kdump.kernel"] = module_from_spec(_spec)
        _loader.exec_module(kernel)
