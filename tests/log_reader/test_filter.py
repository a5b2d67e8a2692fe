"""Expressions are searched in linear time, with the same results as ``re``."""

import re
import sys
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdump.log_reader.filter import Filter, linear, search
from kdump.records.magic_2 import Batch
from testing import forge

SAME = [
    rb"[a-z]{,3};",
    rb"a{,}1",
    rb"a", rb"\w+@", rb".*x", rb"(a+)+b", rb"[^\s,]+;", rb"\s\S", rb"a$", rb"^a|b$", rb"a{2,3}?c", rb"(?s)a.b",
    rb"(?m)^a$",
    rb"(?P<n>a)|(?:b)", rb"\x41\.\-", rb"[]a]+b",
    rb"[^]]a", rb"\bword\b", rb"\Aab", rb"[\x00-\x1f]", rb"a??b", rb"\$\d",
    rb"\xff.", b"\xc3\xa4+", rb"[\w.]+@[\w.]+\.com",
]  # fmt: skip
OTHERS = [
    rb"(a)\1", rb"(?=a)b", rb"(?<!a)b", rb"(?i)a", rb"a\Z", rb"a$\n", rb"(a$)b", rb"(?>a)b", rb"a++b", rb"[[:alpha:]]",
    rb"(?x) a", rb"[\b]", rb"[\S]", rb"(?s:a.)b", rb"a{2000}", rb"[\\s]", rb"(?#note)a", rb"\07",
]  # fmt: skip
LETTERS = [
    b"a",
    b"b",
    b"c",
    b"x",
    b"@",
    b" ",
    b"\n",
    b"\x0b",
    b"\r",
    b"]",
    b",",
    b";",
    b"A",
    b".",
    b"-",
    b"$",
    b"1",
    b"\xff",
]
TEXTS = st.lists(st.sampled_from([*LETTERS, b"word", b"\xc3\xa4", b"aab", b"ab\n", b".com"]), max_size=8).map(b"".join)


@pytest.mark.parametrize("source", SAME)
@given(text=TEXTS)
def test_both_find_the_same(source, text):
    pattern = re.compile(source)
    assert linear(pattern) is not None
    assert search(pattern, text) == (pattern.search(text) is not None)


@pytest.mark.parametrize("source", OTHERS)
def test_what_means_something_else_goes_to_re(source):
    with warnings.catch_warnings(action="ignore"):
        assert linear(re.compile(source)) is None


def test_without_re2_everything_goes_to_re(monkeypatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    linear.cache_clear()
    try:
        pattern = re.compile(rb"\w+@")
        assert linear(pattern) is None
        assert search(pattern, b"me@x")
    finally:
        linear.cache_clear()


@pytest.mark.parametrize("source", [rb"\w+@", rb".*x$", rb"(a+)+b", rb"(a|aa)+$"])
def test_a_long_text_takes_no_quadratic_time(source):
    """RE2 takes milliseconds; ``re`` would take minutes, and is not used."""
    pattern = re.compile(source)
    assert linear(pattern) is not None
    assert not search(pattern, b"a" * 1_000_000 + b"!")


@pytest.mark.parametrize("source", [rb"^$", rb"x*"])
@pytest.mark.parametrize(("key", "value"), [(b"", None), (None, b""), (None, None)])
def test_an_empty_text_may_match_and_a_null_may_not(source, key, value):
    batch = Batch(memoryview(forge.batch([forge.record(key, value)])), 0, 75)
    assert Filter(greps=(re.compile(source),)).takes(batch, next(batch.records())) is ((key, value) != (None, None))


def test_only_a_filter_for_all_or_all_committed_records_takes_runs():
    """Without times ``out_of_order`` selects nothing else: SQL always sets it then."""
    assert all(Filter(out_of_order=late, committed=only).takes_runs for late in (False, True) for only in (False, True))
    assert not any(one.takes_runs for one in (Filter(until=5, out_of_order=True), Filter(first_offset=0)))
