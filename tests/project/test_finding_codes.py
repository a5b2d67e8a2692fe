"""Each finding has a code from the table, and the docs page is generated from the table."""

import ast

import pytest

from kdump.findings.codes import CODES, Code
from testing import ROOT
from tools.docs.finding_codes import PAGE, page

KINDS = {"Fault": 0, "DamageError": 0, "LimitError": 0, "_report": 0, "_stops": 1, "_remark": 1, "_wrong": 1}
"""Calls that make findings, and the argument with the code; Finding calls it ``kind``."""


def literals(path):
    """Yield the codes that a module passes as text to these calls."""
    for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        found = [word.value for word in call.keywords if word.arg == "kind"]
        found += call.args[KINDS[name] : KINDS[name] + 1] if name in KINDS else []
        for value in found:
            parts = {part for each in ast.walk(value) if isinstance(each, ast.JoinedStr) for part in each.values}
            words = (each for each in ast.walk(value) if isinstance(each, ast.Constant) and each not in parts)
            yield from (each.value for each in words if isinstance(each.value, str))


@pytest.mark.parametrize("room", ["checks", "broker_start", "findings"])
def test_no_room_that_makes_findings_writes_a_code(room):
    assert {path.name: found for path in (ROOT / "kdump" / room).glob("*.py") if (found := set(literals(path)))} == {}


@pytest.mark.parametrize("room", ["formats", "records", "segments", "primitives"])
def test_each_kind_of_damage_has_a_code(room):
    kinds = {kind for path in (ROOT / "kdump" / room).glob("*.py") for kind in literals(path)}
    assert {kind for kind in kinds if kind.replace(" ", "-") not in CODES} == set()


def test_a_finding_has_the_word_and_the_code():
    assert (Code.END_OF_LOG.kind, str(Code.END_OF_LOG), Code.END_OF_LOG.level) == ("end of log", "end-of-log", "log")
    assert all(code.level in {"log", "derived", "remark"} and code.sentence for code in CODES)


def test_the_page_is_the_table():
    assert PAGE.read_text() == page()
