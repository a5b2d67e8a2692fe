"""The prompt: statements over several lines, commands with a dot, Ctrl-C, history."""

import os
import pty
import subprocess
import sys
import time

import pytest

pytest.importorskip("duckdb")

from kdump.queries.prompt import Prompt, statements
from kdump.queries.statement import is_complete
from kdump.queries.views import Views
from testing import ROOT

FOLDER = "golden/brokers/4.2.2/txn-0"


def test_statements_end_with_a_semicolon():
    lines = ["select 1", "  as a;", "", ".tables", "select ';'", "-- ;", ";", "select 2", None, "select 3;"]
    assert list(statements(iter(lines))) == ["select 1\n  as a;", ".tables", "select ';'\n-- ;\n;", "select 3;"]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("select 1;", True),
        ("select 1; -- c", True),
        ("select ';'", False),
        ("select 1", False),
        ("", False),
        (";", True),
        ("select 1; /* c */", True),
        ("select 1; /* c", False),
        ("select 1; /*/", False),
        ("select 'a''b;", False),
        ("select $$ ;", False),
        ('select "a;', False),
    ],
)
def test_a_semicolon_in_a_text_ends_nothing(text, complete):
    assert is_complete(text) is complete


@pytest.fixture
def prompt():
    asked, reported = [], []
    one = Prompt(Views(), lambda *given: asked.append(given), reported.append, reported.append)
    one.asked, one.reported = asked, reported
    return one


def test_commands_with_a_dot(prompt, capsys):
    for line in (".mode jsonl", ".out rows.jsonl", "select 1;", "select 2;", ".schema offsets", ".tables", ".help"):
        prompt.take(line)
    assert prompt.asked == [("select 1;", "jsonl", "rows.jsonl"), ("select 2;", "jsonl", None)]
    assert prompt.reported == [("offsets",)]
    assert "group_offsets" in capsys.readouterr().out
    prompt.take(".quit")
    assert prompt.is_over


@pytest.mark.parametrize("line", [".nosuch", ".mode xml", ".timer yes", ".out", "."])
def test_a_wrong_command_is_reported(prompt, line):
    prompt.take(line)
    assert len(prompt.reported) == 1


def test_ctrl_c_ends_a_query_and_not_the_prompt(capsys):
    def stopped(*_):
        raise KeyboardInterrupt

    Prompt(Views(), stopped, print, print).take("select 1;")
    assert capsys.readouterr().err == "\n"


def test_a_person_at_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    history = tmp_path / "state" / "kdump" / "sql_history"
    reported = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "dumb", "NO_COLOR": "1"}
    reported.pop("KDUMP_HISTORY", None)
    words = [sys.executable, "-m", "kdump", "sql", FOLDER]
    process = subprocess.Popen(words, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, env=reported)
    os.close(theirs)

    def shown_until(text):
        seen, ends = b"", time.monotonic() + 60
        while text not in seen and time.monotonic() < ends:
            seen += os.read(ours, 4096)
        assert text in seen
        return seen

    shown_until(b"kdump> ")
    os.write(ours, b"select count(*) as n\nfrom batches;\n")
    assert b"n\r\n" in shown_until(b"\r\nkdump> ")
    os.write(ours, b"selec 1;\n")
    assert b"query: Parser Error" in shown_until(b"kdump> ")
    os.write(ours, b"\x04")
    assert process.wait(60) == 0
    os.close(ours)
    assert "from batches" in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600
