"""Converts errors of Spark, of its tasks and of Java into kdump's errors, and reports executors without kdump."""

from __future__ import annotations

import pickle
import re
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kdump.errors import KdumpError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


LACKS: Final = (
    "{python} on {host} has no {module}: pip install 'kdump[spark]' there, name another Python with PYSPARK_PYTHON, "
    "or add the missing package (docs/spark/cluster.md, Executors)"
)
"""The message for an executor whose Python lacks a module."""


class MalformedError(KdumpError):
    """Damage that ended an export in mode FAILFAST."""


class SparkFailedError(KdumpError):
    """Spark itself failed; its own output has the details."""


_OURS: Final = re.compile(r"kdump\.[\w.]+\.(\w+Error): (.*)")
_FAILFAST: Final = "mode FAILFAST stops here"
_OF_A_DISK: Final = re.compile(
    r"(?:java\.io\.(?:IO|FileNotFound)Exception"
    r"|(?:java\.nio\.file|org\.apache\.hadoop\.(?:fs|security|hdfs))\.[\w.$]*(?:Exception|Error))"
    r": (?!Cannot run program )(.+)"
)
"""Matches the error of a file system, but not of a process or a Java object. The last match is the cause."""


@contextmanager
def errors() -> Iterator[None]:
    """Raise KdumpError if Spark fails: the error of a task, or the cause in one line."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException

    try:
        yield
    except BrokenPipeError:  # standard error is closed; Py4J has its own error for a pipe to Java
        raise
    except ConnectionError as error:
        raise SparkFailedError(f"Spark failed: its Java process is gone ({error.strerror or error})") from error
    except (PySparkException, Py4JError) as error:
        text = str(error)
        found = _OURS.search(text)
        if found is None:
            raise SparkFailedError(f"Spark failed: {_gist(text)}") from error
        if _FAILFAST in found[2]:
            raise MalformedError(found[2]) from error
        file, colon, reason = found[2].partition(": ")
        raise (UnreadableError(file, reason) if colon else KdumpError(found[2])) from error


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Raise UnreadableError for ``path`` if a file system returns an error in the block."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        reasons = _OF_A_DISK.findall(text)
        if not reasons or _OURS.search(text):
            raise
        raise UnreadableError(path, f"cannot be written: {reasons[-1].strip()}") from error


def try_to(clean_up: Callable[[], None]) -> bool:
    """Call ``clean_up``; return False if Spark, Java or the system reports an error. Other errors are raised."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        clean_up()
    except (PySparkException, Py4JError, OSError):  # OSError: the connection to Java is broken
        return False
    return True


_RAISED: Final = re.compile(r"^.*Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(?P<what>\S.*)", re.MULTILINE)
_MISSING: Final = re.compile(r"No module named '(\w+)|\[PACKAGE_NOT_INSTALLED\] (\w+)")
_HOST: Final = re.compile(r"\(TID \d+\) \((\S+) executor \S+\)")


def _gist(text: str) -> str:
    """Return the lines that name the cause of an error, without the stack trace."""
    raised = [found["what"] for found in _RAISED.finditer(text)]
    if raised:
        missing = _MISSING.search(raised[-1])
        if missing is None:
            return f"in a task: {raised[-1]}"
        host = _HOST.search(text)
        module = "kdump" if missing[1] == "pyspark_kdump" else (missing[1] or missing[2]).lower()
        return LACKS.format(python=_python(), host=host[1] if host else "this machine", module=module)
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("at ", "File ", "JVM stacktrace", "... "))]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return " / ".join(dict.fromkeys([*lines[:2], *causes[-1:]]))


def _python() -> str:
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return "python3" if context is None else context.pythonExec


class Carried:
    """Base of the objects that Spark pickles for executors. If an executor lacks kdump, the error names its Python."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacker(LACKS), (pickle.dumps(partial(_made, type(self), vars(self))),)


def _unpacker(lacks: str) -> Callable[[bytes], Any]:
    def unpack(packed: bytes) -> Any:
        """Unpickle an object on an executor. This function is pickled by value, because kdump may be missing there."""
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
