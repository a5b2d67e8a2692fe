"""Tables without styles against those that rich draws."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich import box
from rich.console import Console
from rich.table import Table

from kdump.log_dirs.finder import Finder
from kdump.log_reader.reader import PartitionReader
from kdump.printers.table import GROUP, Tables, _fit
from kdump.rows import columns as rows
from testing import GOLDEN, forge

COLUMNS = [column for column in rows.RECORD if column.name in {"offset", "key", "value", "timestamp", "headers"}]


def printed(path, *, styled):
    out = io.StringIO()
    printer = Tables(out, COLUMNS)
    printer._plain = not styled
    for partition in Finder().find([str(path)]):
        for item in PartitionReader().read(partition):
            if hasattr(item, "damage"):
                printer.lost(item)
            else:
                printer.found(item)
    printer.end()
    return out.getvalue()


@pytest.mark.parametrize("path", sorted(GOLDEN.rglob("*.log"))[::40], ids=str)
def test_golden_tables_are_those_of_rich(path):
    assert printed(path, styled=False) == printed(path, styled=True)


def test_groups_of_rows_are_drawn_alike(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    made = [forge.record(b"k" * (at % 9), b"v" * (at % 300), offset=at) for at in range(GROUP + 30)]
    path.write_bytes(forge.batch(made) + b"\xff" * 90 + forge.batch(made[:3], base_offset=900))
    assert printed(path, styled=False) == printed(path, styled=True)


@pytest.mark.parametrize("styled", [False, True])
def test_numbers_are_never_cut(tmp_path, styled):
    path = tmp_path / "00000000000000000000.log"
    few = [forge.record(b"k", b"v", offset=at) for at in range(GROUP)]
    path.write_bytes(forge.batch(few) + forge.batch([forge.record(b"k", b"v" * 150)], base_offset=1 << 60))
    assert str(1 << 60) in printed(path, styled=styled)


@settings(max_examples=1000, deadline=None)
@given(text=st.text(alphabet="ab  é東😀\u0301…", max_size=12), width=st.integers(1, 9), right=st.booleans())
def test_cells_are_as_wide_as_their_column(text, width, right):
    out = io.StringIO()
    table = Table(box=box.SIMPLE_HEAD, show_header=False, pad_edge=False, padding=(0, 1))
    justify = "right" if right else "left"
    table.add_column("c", justify=justify, width=width, no_wrap=True, overflow="ellipsis")
    table.add_row(text)
    Console(file=out, width=100, highlight=False).print(table)
    assert out.getvalue().split("\n")[1] == f" {_fit(width, right=right)(text)} "
