"""Every kind that the code reports is a row of the one table, and the docs page is the table."""

import ast

from kdump.broker_start.outcome import Code
from kdump.findings.codes import CODES, code
from testing import ROOT
from tools.docs.finding_codes import PAGE, page

FIRST = {"Fault": 0, "DamageError": 0, "LimitError": 0}
ROOMS = ("checks", "broker_start")


def kinds(path):
    """The kinds that a module's findings are written with."""
    for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        found = [word.value for word in call.keywords if name == "Finding" and word.arg == "kind"]
        found += call.args[FIRST[name] : FIRST[name] + 1] if name in FIRST else []
        yield from (value.value for value in found if isinstance(value, ast.Constant))


def test_each_kind_has_a_code():
    told = {kind for room in ROOMS for path in (ROOT / "kdump" / room).glob("*.py") for kind in kinds(path)}
    told |= {kind for path in (ROOT / "kdump" / "formats").glob("*.py") for kind in kinds(path)}
    assert len(told) > 40
    assert {kind for kind in told if code(kind) not in CODES} == set()
    assert {each for each in Code if str(each) not in CODES} == set()


def test_the_page_is_the_table():
    assert PAGE.read_text() == page()
