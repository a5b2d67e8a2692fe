import ast
import re
import struct
from itertools import pairwise

import pytest

from kdump.dump_log_segments.dialects import payload as dialects_payload
from kdump.dump_log_segments.dialects import releases
from kdump.dump_log_segments.dialects import segments as dialects
from kdump.dump_log_segments.dialects import state as dialects_state
from kdump.errors import UsageError
from testing import ROOT, forge
from testing.processes import kdump

PACKAGE = ROOT / "kdump"
HOMES = {
    PACKAGE / "dump_log_segments" / "dialects",
    PACKAGE / "internal_topics" / "schema.py",
    PACKAGE / "answers",
    PACKAGE / "broker_start",
}
"""Packages outside the dialects that may compare releases: answers and start depend on the broker's release."""
TABLES = [dialects.DIALECTS, dialects_payload.DIALECTS, dialects_state.DIALECTS]


@pytest.mark.parametrize("table", TABLES)
def test_dialects_stand_in_order_each_with_its_reason(table):
    since = [dialect.since for dialect in table]
    assert since == sorted(set(since))
    assert all(dialect.why for dialect in table)


@pytest.mark.parametrize("table", TABLES)
def test_a_dialect_says_something_else_than_the_one_before(table):
    for before, after in pairwise(table):
        fields = set(after._fields) - {"since", "why"}
        assert any(getattr(before, name) != getattr(after, name) for name in fields), after.why


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("0.8", (0, 8, 2)),
        ("0.8.0", (0, 8, 0)),
        ("0.8.1.1", (0, 8, 1)),
        ("0.9", (0, 9, 0, 1)),
        ("0.9.0.0", (0, 9, 0, 0)),
        ("0.11", (0, 11, 0, 2)),
        ("0.11.0.1", (0, 11, 0, 0)),
        ("1.1.0", (1, 1, 0)),
        ("1", (1, 1, 1)),
        ("2.0.0", (2, 0, 0)),
        ("2.0", (2, 0, 1)),
        ("3.6.1", (3, 6, 0)),
        ("4.3.1", (4, 3, 0)),
    ],
)
def test_a_release_is_held_by_the_newest_dialect_that_is_not_newer(text, since):
    assert dialects.find(text).since == since


@pytest.mark.parametrize("text", ["0.7", "0.7.2", "x", "3.x", "", "3..1", "-1"])
def test_what_is_no_release_or_too_old_is_bad_usage(text):
    with pytest.raises(UsageError):
        dialects.find(text)


def test_nothing_outside_the_dialects_knows_a_release():
    """No other module compares a release, or a dialect's name or rank: printers read a named field."""
    for path in PACKAGE.rglob("*.py"):
        if HOMES & {path, *path.parents}:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                owner = last_word(node.value)
                assert not (owner in {"dialect", "state"} and node.attr in {"since", "why"}), f"{path}:{node.lineno}"
                assert not (owner.startswith("dialects") and re.match(r"V\d", node.attr)), f"{path}:{node.lineno}"
            if isinstance(node, ast.Compare) and not isinstance(node.ops[0], ast.Is | ast.IsNot):
                words = {last_word(each) for each in ast.walk(node)}
                assert not words & {"release", "compat", "NEWEST", "DIALECTS"}, f"{path}:{node.lineno}"


def last_word(node: ast.AST) -> str:
    """Return the last name of an expression."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


@pytest.mark.parametrize("text", ["33", "9.9", "5", "4.9", "2.9.1", "0.12", "1.2"])
def test_a_release_that_there_is_not_is_refused(text):
    for find in (dialects.find, dialects_state.find, dialects_payload.find, releases.find):
        with pytest.raises(UsageError, match=f"there is no Kafka {text}: "):
            find(text)


def test_the_newest_release_is_the_default(tmp_path):
    path = tmp_path / f"{0:020}.log"
    value = b"\0\0" + struct.pack(">qhib", 7, 0, 60000, 4) + b"\xff\xff\xff\xff" + bytes(16)
    path.write_bytes(forge.batch([forge.record(b"\0\0\0\3tid", value)]))
    default, named = (
        kdump(*words, "--transaction-log-decoder", "--files", path) for words in ([], ["--compat", "4.4"])
    )
    assert (default.returncode, default.stderr) == (0, b"")
    assert default.stdout == named.stdout
    assert b'"transactionStatus":"CompleteCommit"' in default.stdout
