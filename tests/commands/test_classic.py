"""The clone as a command: command lines that skip the parser have the same result as with the parser."""

import itertools

import pytest

from kdump.commands import classic, root
from testing import GOLDEN
from testing.processes import python

SEGMENT = str(GOLDEN / "tiny" / "oc0" / "00000000000000000000.log")
SUBSETS = [flags for count in range(len(classic.FLAGS) + 1) for flags in itertools.combinations(classic.FLAGS, count)]


@pytest.mark.parametrize("flags", SUBSETS)
@pytest.mark.parametrize("at", [0, 1, 9])
def test_a_plain_command_line_is_what_click_makes_of_it(flags, at, monkeypatch):
    calls = []
    monkeypatch.setattr(root, "classic", lambda *arguments: calls.append(arguments))
    words = [*flags[:at], "--files", "a.log,b.index", *flags[at:], *flags[:1]]
    root.root.main(words, standalone_mode=False)
    ((files, options, given, compat, jobs),) = calls
    assert classic.plain(words) is not None
    found, chosen, named = classic.plain(words)
    assert (found, chosen, sorted(named)) == (files, options, sorted(given))
    assert (compat, jobs) == (classic.COMPAT, None)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--print-data-log"],
        ["--files"],
        ["--files", "--print-data-log"],
        ["--files", "-"],
        ["--files", "a", "--files", "b"],
        ["--files=a"],
        ["--files", "a", "b"],
        ["--files", "a", "--max-bytes", "1"],
        ["--files", "a", "--help"],
        ["--files", "a", "--offsets-decoder"],
        ["--files", "a", "--print"],
        ["check", "--files", "a"],
    ],
)
def test_anything_else_is_left_to_click(words):
    assert classic.plain(words) is None


def test_a_plain_dump_needs_no_parser_and_nothing_else_that_is_slow_to_import():
    code = f"import sys; sys.argv = ['kdump', '--files', {SEGMENT!r}, '--print-data-log']; before = set(sys.modules)\n"
    code += "from kdump.cli import main; main(); sys.stderr.write(' '.join({*sys.modules} - before))"
    done = python("-c", code, check=True)
    assert done.stdout.startswith(b"Dumping ")
    slow = {"click", "dataclasses", "inspect", "pathlib", "logging", "json", "subprocess", "rich", "asyncio"}
    assert not slow & set(done.stderr.decode().split())
