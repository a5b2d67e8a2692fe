import re

import pytest

from kdump.primitives.patterns import Pattern


def test_a_pattern_finds_what_the_compiled_one_finds():
    lazy, compiled = Pattern(r"(?P<word>[a-z]+)\d", re.ASCII), re.compile(r"(?P<word>[a-z]+)\d", re.ASCII)
    for text in ("ab1", "-ab1 c2", "x", ""):
        for method in ("fullmatch", "match", "search"):
            found, expected = getattr(lazy, method)(text), getattr(compiled, method)(text)
            assert (found and found["word"]) == (expected and expected["word"])
        assert [match.span() for match in lazy.finditer(text)] == [match.span() for match in compiled.finditer(text)]
        assert lazy.sub(r"<\1>", text) == compiled.sub(r"<\1>", text)


def test_it_is_compiled_when_it_is_asked():
    wrong = Pattern("(")
    with pytest.raises(re.error):
        wrong.search("")
