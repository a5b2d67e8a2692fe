"""Every command on terminals of 60 to 120 columns: a row is a line, and none is longer than the terminal."""

import re

import pytest

from kdump.primitives.messages import LEVEL
from testing import GOLDEN, terminals

BROKER = "4.2.2"
WIDTHS = (60, 80, 100, 120)
MORE = 1.2
"""Upper limit for the number of lines on a narrow terminal, as a multiple of that for 120 columns."""
LINES = [
    *([words[0], BROKER, *words[1:]] for words in terminals.ANSWERS),
    ["diff", BROKER, f"{BROKER}-live"],
    ["dump", BROKER, "--topic", "headers", "-o", "table"],
    ["dump", BROKER, "--topic", "headers", "-o", "table", "--batches"],
    [BROKER],
    [f"{BROKER}/txn-0/{64:020}.log"],
    ["check", BROKER],
    ["check", BROKER, "--notes"],
    ["check", BROKER, "-v", "--notes"],
    ["check", f"{BROKER}/txn-0", "--headers-only", "--notes"],
    ["verify-index", BROKER],
    ["report", BROKER],
    ["report", BROKER, "--text"],
    ["explain", "txn-0@64", "--in", BROKER],
    ["explain", "headers-0@0..3", "--in", BROKER],
    ["get", "headers-0@0", "--in", BROKER],
    ["get", "headers-0@0", "--in", BROKER, "-o", "table"],
    ["sql", "from transactions", BROKER],
    ["sql", "select * from records limit 3", BROKER],
    ["sql", "select topic, count(*) n from records group by 1", BROKER],
    ["dump", BROKER, "--topic", "txn", "-o", "table", "--batches", "--limit", "9"],
    ["dump", BROKER, "--count"],
    ["rebuild-cluster", BROKER, "--plan"],
    ["compat"],
    ["coordinator", "orders", "--type", "group", "--partitions", "50"],
    ["help", "damage"],
]
WRONG = [
    ["check", "--nope"],
    ["chek", BROKER],
    ["get", "X@0", BROKER],
    ["dump", BROKER, "--topic", "nope"],
    ["dump", "gone"],
    ["dump", BROKER, "-o", "xyz"],
    ["dump", BROKER, "--since", "noon"],
    ["metadata", BROKER, "--tree", "/topics/none"],
    ["salvage", BROKER],
    ["help", "nonsense"],
    ["report", BROKER, "--overwrite"],
]
COMMAND = re.compile(r"^\s*(# |hint: kdump|kdump|kafka-)")
"""Lines that the user pastes: no width folds them."""


@pytest.fixture(autouse=True)
def golden(monkeypatch):
    monkeypatch.chdir(GOLDEN / "brokers")


def lines_of(words, width):
    """Return the lines on a terminal except the status line, commands, and single words: a long path is not broken."""
    text = terminals.show(words, width=width).shown.decode().replace("\r\n", "\n")
    text = re.sub(r"\x1b\[[\d;]*m|[^\n]*\r", "", text)
    return [line for line in text.splitlines() if not COMMAND.match(line) and " " in re.sub(LEVEL, "", line).strip()]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
@pytest.mark.parametrize("width", [60, 100])
def test_what_is_said_of_wrong_usage_fits(words, width):
    assert [line for line in lines_of(words, width) if len(line) > width] == []


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_a_row_is_a_line_at_every_width(words):
    shown = {}
    for width in WIDTHS:
        shown[width] = lines_of(words, width)
        long = [line for line in shown[width] if len(line) > width]
        assert [line for line in long if not line.startswith("Repeat: kdump ")] == [], "only a command is not wrapped"
    assert len(shown[80]) <= MORE * len(shown[120]) + 1
    assert len(shown[60]) <= MORE * len(shown[120]) + 3


@pytest.mark.parametrize("width", [60, 100, 140])
def test_bytes_fit(width):
    """Narrow terminals get more lines of fewer bytes."""
    lines = lines_of(["get", "headers-0@0", "--in", BROKER, "--hexdump"], width)
    assert max(map(len, lines)) <= width
    assert re.search(r"baseTimestamp\s+1700000000000 \(2023-11-14T22:13:20.000Z\)", "\n".join(lines))


def test_offsets_of_eighteen_partitions_are_as_many_lines_at_80_as_at_120():
    topics = "c-*,librdkafka-*,multi,headers,idem,mixed,nulls,numeric,one"
    lines = [
        terminals.show(["offsets", BROKER, "--topic", topics, "-q"], width=width).shown.decode().splitlines()
        for width in (80, 120)
    ]
    assert abs(len(lines[0]) - len(lines[1])) <= 2
    assert len(lines[0]) <= 18 + 6
