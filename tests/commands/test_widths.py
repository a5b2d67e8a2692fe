"""Tables of every command on terminals of 60 to 120 columns: a row is a line, and none is longer than the terminal."""

import re

import pytest

from testing import GOLDEN, terminals

BROKER = str(GOLDEN / "brokers" / "4.2.2")
WIDTHS = (60, 80, 100, 120)
MORE = 1.2
"""How many times the lines of a terminal of 120 columns a narrow one may take."""
LINES = [
    *([words[0], BROKER, *words[1:]] for words in terminals.ANSWERS),
    ["diff", BROKER, f"{BROKER}-live"],
    ["dump", BROKER, "--topic", "headers", "-o", "table"],
    ["dump", BROKER, "--topic", "headers", "-o", "table", "--batches"],
]
COMMAND = re.compile(r"^\s*(# |kdump|kafka-)")
"""Lines that are to be pasted, or are of standard error: no width folds them."""


@pytest.mark.parametrize("words", LINES, ids=lambda words: " ".join([words[0], *words[2:]]))
def test_a_row_is_a_line_at_every_width(words):
    shown = {}
    for width in WIDTHS:
        text = re.sub(r"\x1b\[[\d;]*m|\r[^\n]*\r(?!\n)", "", terminals.show(words, width=width).shown.decode())
        shown[width] = [line for line in text.splitlines() if not COMMAND.match(line)]
        assert [line for line in shown[width] if len(line) > width] == []
    assert len(shown[80]) <= MORE * len(shown[120]) + 1
    assert len(shown[60]) <= MORE * len(shown[120]) + 3


def test_offsets_of_eighteen_partitions_are_as_many_lines_at_80_as_at_120():
    topics = "c-*,librdkafka-*,multi,headers,idem,mixed,nulls,numeric,one"
    lines = [
        terminals.show(["offsets", BROKER, "--topic", topics, "-q"], width=width).shown.decode().splitlines()
        for width in (80, 120)
    ]
    assert abs(len(lines[0]) - len(lines[1])) <= 2
    assert len(lines[0]) <= 18 + 6
