"""What the kernel needs of ``import cython`` where Cython is not installed: names that mean nothing in plain Python."""

from __future__ import annotations

from typing import Any, Final

compiled: Final = False


class _Nothing:
    """A decorator and a context manager that changes nothing."""

    def __call__(self, thing: Any) -> Any:
        return thing

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


cclass = cfunc = final = inline = nogil = with_gil = _Nothing()


def exceptval(*_: object, **__: object) -> Any:
    """Return a decorator that changes nothing."""
    return cfunc


def boundscheck(_: bool) -> Any:
    """Return a decorator that changes nothing."""
    return cfunc


def declare(_kind: object, value: Any = None, **_: object) -> Any:
    """Return the value that a C variable starts with."""
    return value


class _Numbers:
    """A type of which there are arrays."""

    def __getitem__(self, _: object) -> _Numbers:
        return self


uint = _Numbers()
int = longlong = ulonglong = Py_ssize_t = bint = uchar = p_char = None  # noqa: A001  the names are Cython's
