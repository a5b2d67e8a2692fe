"""Objects that Spark pickles for executors. The error of a Python without kdump names that Python and its host."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LACKS: Final = (
    "{python} on {host} has no {module}: pip install 'kdump[spark]' there, name another Python by PYSPARK_PYTHON, "
    "or add the missing package (docs/spark/cluster.md, Executors)"
)
"""The message for an executor whose Python lacks a module."""


class Carried:
    """Base of objects that Spark pickles for executors. Unpickling raises ModuleNotFoundError that names the Python."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacker(LACKS), (pickle.dumps(partial(_made, type(self), vars(self))),)


def _unpacker(lacks: str) -> Callable[[bytes], Any]:
    def unpack(packed: bytes) -> Any:
        """Unpickle where kdump may be missing. A local function is pickled whole and refers to no module."""
        import pickle
        import socket
        import sys

        try:
            make = pickle.loads(packed)  # noqa: S301  the driver's own
        except ModuleNotFoundError as error:
            module = str(error.name).partition(".")[0]
            message = lacks.format(python=sys.executable, host=socket.gethostname(), module=module)
            raise ModuleNotFoundError(message, name=error.name) from None
        return make()

    return unpack


def _made(kind: type[object], state: dict[str, Any]) -> Any:
    made = object.__new__(kind)
    vars(made).update(state)
    return made
