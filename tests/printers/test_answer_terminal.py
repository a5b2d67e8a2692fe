"""Answers on terminals of several widths."""

import io
import re

import pytest
from rich.cells import cell_len

from kdump.printers import answer_terminal
from kdump.printers.answer_lines import AnswerTable
from tests.helpers.counting import calls, is_linear

WHEN = "2026-11-22T08:33:20.846Z"
SENTENCE = "hanging for 3 h, holds back 12,345 offsets of orders-0, ends with: kafka-transactions.sh --abort"
TABLE = AnswerTable(
    "one title",
    ("PARTITION", "START", "PRODUCER", "LAST", "STATE"),
    [("orders-0", 12, 1042, WHEN, SENTENCE), ("payments-17", 1234567, None, WHEN, "open")],
    frozenset({"START", "PRODUCER"}),
)


def drawn(table: AnswerTable, width: int) -> list[str]:
    out = io.StringIO()
    answer_terminal.draw([table], out, width)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 120, 250])
def test_numbers_and_times_stay_whole_and_no_line_is_longer_than_the_terminal(width):
    lines = drawn(TABLE, width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert text.count(WHEN) == 2
    assert {"orders-0", "payments-17", "1234567", "1042"} <= set(re.split(r"\s+", text))
    for word in SENTENCE.split():
        assert word in text


def test_wide_terminals_have_a_line_for_each_row():
    assert len(drawn(TABLE, 250)) == 4


MANY = TABLE._replace(rows=[*TABLE.rows, ("orders-1", 5, 6, WHEN.replace("22", "23", 1), "open")])


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_many_rows_have_a_line_each_whatever_the_width(width):
    lines = drawn(MANY, width)
    assert max(map(cell_len, lines)) <= width
    assert len(lines) == 6
    assert lines[-1].startswith("(")
    assert "--all-columns or -x" in lines[-1]
    assert [line.split()[0] for line in lines[2:-1]] == ["orders-0", "payments-17", "orders-1"]
    assert lines[2].endswith("…") or "STATE" in lines[-1]


def test_all_columns_are_shown_on_request():
    for layout in ("all columns", "expanded"):
        out = io.StringIO()
        answer_terminal.draw([MANY], out, 60, layout=layout)
        text = " ".join(out.getvalue().split())
        assert SENTENCE in text
        assert "not shown" not in text


def test_paths_are_cut_in_the_middle():
    assert answer_terminal.shortened("/var/kafka/orders-0/00000000000000000000.log", 24) == "/var/kaf…00000000000.log"
    assert answer_terminal.shortened("a sentence of words", 12) == "a sentence…"
    assert answer_terminal.shortened("short", 12) == "short"
    assert cell_len(answer_terminal.shortened("表" * 20, 12)) <= 12


def test_few_rows_on_narrow_terminals_have_a_line_for_each_field():
    lines = drawn(TABLE, 60)
    assert lines[0] == "one title"
    assert [line.split()[0] for line in lines if line.startswith("PARTITION")] == ["PARTITION", "PARTITION"]
    assert "START      1234567" in [line.rstrip() for line in lines]


def test_what_many_rows_share_is_said_once_where_there_is_no_room():
    rows = [("/var/kafka/" + "x" * 30, f"orders-{number}", number, None, "current") for number in range(3)]
    table = AnswerTable("title", ("log dir", "partition", "bytes", "why", "state"), rows, frozenset({"bytes"}))
    lines = drawn(table, 50)
    assert lines[1:3] == [f"log dir  {rows[0][0]}", "state    current"]
    assert [line.split() for line in lines[3:]] == [
        ["partition", "bytes"],
        *([f"orders-{n}", str(n)] for n in range(3)),
    ]
    assert "log dir  " not in "".join(drawn(table._replace(rows=rows[:2]), 100)[2:])
    assert len(drawn(table, 100)) == 5
    alike = table._replace(rows=[rows[0]] * 3)
    assert [line.split()[1] for line in drawn(alike, 50)[2:5]] == ["orders-0"] * 3


SPARE = AnswerTable(
    "title",
    ("bytes", "first", "last", "state", "folder"),
    [(n, WHEN.replace("22", f"{n:02}", 1), WHEN, f"state-{n}", f"orders-{n}") for n in range(1, 9)],
    frozenset({"bytes"}),
    spare=("last", "first", "state"),
)


@pytest.mark.parametrize(
    ("width", "missing"), [(80, []), (70, ["last"]), (50, ["last"]), (40, ["first", "last"]), (20, SPARE.columns[1:4])]
)
def test_many_rows_do_without_the_least_needed_columns_and_that_is_said(width, missing):
    varied = SPARE._replace(rows=[(n, first, f"{n}{last[1:]}", *rest) for n, first, last, *rest in SPARE.rows])
    lines = drawn(varied, width)
    assert max(map(len, lines)) <= width
    reported = " ".join(lines[10:])
    assert reported.replace("\n", " ") == (
        f"(not shown: {', '.join(missing)}; --all-columns or -x shows all)" if missing else ""
    )
    assert lines[1].split() == [name for name in SPARE.columns if name not in missing]
    left = [number for number, name in enumerate(SPARE.columns) if name not in missing]
    assert [line.split() for line in lines[2:10]] == [[str(row[number]) for number in left] for row in varied.rows]


def test_where_even_the_needed_columns_have_no_room_the_last_go_too():
    lines = drawn(SPARE, 10)
    assert [line for line in lines if line.startswith("  ") and line.strip().isdigit()] == [
        f"{n:5}" for n in range(1, 9)
    ]
    assert max(map(len, lines)) <= 10
    assert sum(line.startswith("first") for line in drawn(SPARE._replace(rows=SPARE.rows[:2], spare=()), 60)) == 2


def test_hostile_names_steer_no_terminal():
    assert "\x1b" not in "".join(drawn(AnswerTable("t\x1b[2J", ("A",), [("\x1b]0;x\x07",)]), 80))


def test_ten_thousand_rows_are_drawn_at_once():
    """A table of rich takes half a minute: thousands of calls for a row."""
    tables = [AnswerTable("t", TABLE.columns, TABLE.rows * times, TABLE.right) for times in (250, 1000)]
    few, many = (calls(lambda table=table: drawn(table, 250)) for table in tables)
    assert is_linear(few, many)
    assert many < 200 * len(tables[1].rows)
    assert len(drawn(tables[1]._replace(rows=TABLE.rows * 5000), 250)) == 10_002


def test_what_is_twice_as_wide_is_folded_by_its_width():
    lines = drawn(AnswerTable("", ("NAME", "WHY"), [("表" * 20, "表 " * 40)]), 60)
    assert max(map(cell_len, lines)) <= 60
    assert "".join(lines).count("表") == 60


LINE = "kafka-transactions.sh --bootstrap-server b1:9092 abort --topic orders --partition 0 --start-offset 4711"


@pytest.mark.parametrize("width", [40, 250])
def test_a_command_to_copy_is_a_line_of_its_own_that_no_width_folds(width):
    lines = drawn(TABLE._replace(commands=[("aborts orders-0 at offset 4711", LINE)]), width)
    assert lines[-3:] == ["", "# aborts orders-0 at offset 4711", LINE]
