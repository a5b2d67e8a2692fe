"""Regular expressions that are compiled when they are first asked: most runs ask few of those that kdump knows."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, AnyStr, Generic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Pattern(Generic[AnyStr]):
    """A regular expression with the methods of ``re.Pattern`` that kdump uses; each is the compiled one's own."""

    def __init__(self, text: AnyStr, flags: int = 0) -> None:
        self._text: AnyStr = text
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[AnyStr]:
        return re.compile(self._text, self._flags)

    @cached_property
    def fullmatch(self) -> Callable[..., re.Match[AnyStr] | None]:
        return self._compiled.fullmatch

    @cached_property
    def match(self) -> Callable[..., re.Match[AnyStr] | None]:
        return self._compiled.match

    @cached_property
    def search(self) -> Callable[..., re.Match[AnyStr] | None]:
        return self._compiled.search

    @cached_property
    def finditer(self) -> Callable[..., Iterator[re.Match[AnyStr]]]:
        return self._compiled.finditer

    @cached_property
    def sub(self) -> Callable[..., AnyStr]:
        return self._compiled.sub
