"""Tables longer than the screen are shown in the user's pager, but only on a terminal."""

import os

import pytest

from testing.forge import batch, record
from testing.processes import kdump, on_a_terminal

PREFIXED = "sed -u s/^/paged:/"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A partition of 3,000 records."""
    folder = tmp_path_factory.mktemp("logs") / "orders-0"
    folder.mkdir()
    records = [[record(b"k%d" % n, b"v", offset=n) for n in range(30)] for _ in range(100)]
    content = b"".join(batch(each, base_offset=30 * number) for number, each in enumerate(records))
    (folder / f"{0:020}.log").write_bytes(content)
    return folder


def shown(*args, pager=PREFIXED, **more):
    """Return the terminal output of a command whose pager is ``pager``, and its exit status."""
    named = {} if pager is None else {"KDUMP_PAGER": pager}
    env = {name: value for name, value in os.environ.items() if name not in {"KDUMP_PAGER", "PAGER"}}
    done, seen = on_a_terminal(kdump, *args, env=env | named | more)
    return done.returncode, seen.decode()


@pytest.mark.parametrize("command", [["dump", "-o", "table"], ["du"], ["report"], ["producers"]], ids=" ".join)
def test_tables_go_through_the_pager(command, log):
    status, seen = shown(*command, log)
    assert status == 0
    lines = seen.splitlines()
    assert lines
    assert all(line.startswith("paged:") for line in lines)
    plain = shown(*command, log, pager="")[1].splitlines()
    times = {"report"}  # it names the time at which it was made
    assert command[0] in times or [line.removeprefix("paged:") for line in lines] == plain


@pytest.mark.parametrize(
    "args", [["dump"], ["dump", "-o", "jsonl"], ["du", "-o", "jsonl"], ["du", "--no-pager"], ["check"]], ids=" ".join
)
def test_what_is_no_table_or_is_not_to_be_paged_is_not(args, log):
    status, seen = shown(*args, log)
    assert status == 0
    assert "paged:" not in seen


def test_a_pager_with_an_open_quote_is_wrong_usage(log):
    status, seen = shown("du", log, pager='less "')
    assert status == 2
    assert "the environment variable KDUMP_PAGER is not a command" in seen


@pytest.mark.parametrize("pager", ["", "cat", "no-such-pager --at-all"])
def test_without_a_pager_tables_are_shown_at_once(pager, log):
    status, seen = shown("du", log, pager=pager)
    assert status == 0
    assert "orders" in seen


def test_pager_is_the_second_choice(log):
    assert shown("du", log, pager=None, PAGER=PREFIXED)[1].startswith("paged:")
    assert not shown("du", log, pager="", PAGER=PREFIXED)[1].startswith("paged:")


def test_a_pipe_has_no_pager(log):
    assert not kdump("du", log, env=os.environ | {"KDUMP_PAGER": PREFIXED}).stdout.startswith(b"paged:")


def test_errors_stand_among_the_lines(log):
    status, seen = shown("dump", "-o", "table", log, log.parent / "absent", "--head", "1")
    assert status == 1
    assert any(line.startswith("paged:") and "absent" in line for line in seen.splitlines())


def test_a_reader_who_leaves_early_is_a_closed_pipe(log):
    status, seen = shown("dump", "-o", "table", log, pager="head -n 5")
    assert status == 141
    assert len(seen.splitlines()) == 5
