"""Tables without styles, compared with those of rich."""

import io
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich import box
from rich.console import Console
from rich.table import Table

from kdump import kernel
from kdump.log_dirs.finder import Finder
from kdump.log_reader.batch_selection import Take
from kdump.log_reader.reader import PartitionReader
from kdump.primitives.encodings import ENCODINGS
from kdump.primitives.terminal import harmless
from kdump.printers import table
from kdump.printers.cells import LONGEST
from kdump.printers.output_formats import PrintOptions
from kdump.printers.table import GROUP, Tables, _fit, _shown
from kdump.rows import columns as rows
from testing import GOLDEN, forge

COLUMNS = [column for column in rows.RECORD if column.name in {"offset", "key", "value", "timestamp", "headers"}]


def printed(path, *, styled, take=Take.RECORDS, columns=COLUMNS, encoding="auto", singly=False):
    out = io.StringIO()
    printer = Tables(out, PrintOptions(columns, encoding=encoding))
    printer._plain = not styled
    for partition in Finder().find([str(path)]):
        for item in PartitionReader(take=take, include_damaged=singly).read(partition):
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


@pytest.mark.parametrize("width", [60, 80, 120])
def test_narrow_terminals_shorten_values_and_keep_times_and_offsets_whole(tmp_path, width, monkeypatch):
    monkeypatch.setattr(table, "WIDEST", width)
    path = tmp_path / "00000000000000000000.log"
    made = [forge.record(b"a key", b"v" * 99, offset=at) for at in range(3)]
    path.write_bytes(forge.batch(made, base_offset=123_456_789, base_timestamp=1_700_000_000_000))
    wanted = [one for one in rows.RECORD if one.name in {"topic", "partition", "offset", "timestamp", "key", "value"}]
    text = printed(path, styled=True, columns=wanted)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("2023-11-14T22:13:20.000Z") == 3
    assert [str(123_456_789 + at) in text for at in range(3)] == [True] * 3
    assert "vv" in text


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


KINDS = [
    b"k",
    b"",
    None,
    b"v" * 199,
    b"v" * 200,
    b"v" * 201,
    b"a\nb",
    b"\x1b[0m",
    "é東😀".encode() * 3,
    b"\xff\xfe",
    b'{"a":1}',
]


def forged(path, rng, batches):
    """Write batches of records of all kinds; offsets and timestamps become longer in places."""
    data, base = [], 0
    for _ in range(batches):
        count = rng.randint(1, 40)
        made = [
            forge.record(rng.choice(KINDS), rng.choice(KINDS), offset=at, timestamp=rng.choice([0, 5, 10**6]))
            for at in range(count)
        ]
        attributes = rng.choice([0] * 9 + [8])
        data.append(forge.batch(made, base_offset=base, base_timestamp=rng.choice([-1, 10**12]), attributes=attributes))
        base += count + rng.choice([0] * 20 + [1000, 10**9])
        if rng.random() < 0.02:
            data.append(b"\xff" * 90)
    path.write_bytes(b"".join(data))


@pytest.mark.skipif(not kernel.COMPILED, reason="there is no kernel")
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("singly", [True, False])
@pytest.mark.parametrize(
    "names", ["offset,timestamp,key,value", "partition,keySize,offset,key,attributes", "value,headers"]
)
def test_the_kernel_draws_what_the_general_path_draws(tmp_path, encoding, singly, names):
    path = tmp_path / "00000000000000000000.log"
    columns = [column for column in rows.RECORD if column.name in names.split(",")]
    for seed in range(8):
        forged(path, random.Random(seed), 60)
        general, fast = (
            printed(path, styled=False, take=take, columns=columns, encoding=encoding, singly=singly)
            for take in (Take.RECORDS, Take.RUNS)
        )
        assert fast == general


def test_a_longer_number_widens_its_column_from_its_row_on(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    few = [forge.record(b"k", b"v", offset=at) for at in range(GROUP + 50)]
    path.write_bytes(forge.batch(few) + forge.batch([forge.record(b"k", b"v")] * 3, base_offset=12345678))
    for take in (Take.RECORDS, Take.RUNS):
        lines = printed(path, styled=False, take=take).splitlines()
        first = next(at for at, line in enumerate(lines) if "12345678" in line)
        assert lines[first - 1].strip() == ""
        assert {len(line) for line in lines[first : first + 3]} == {len(lines[first - 3]) + 2}


@pytest.mark.parametrize("head", ["", "a" * 198, "a" * 199, "a" * 200, "\0" * 49 + "\n", "é\t" * 100])
@pytest.mark.parametrize("size", [0, 1, 2, 1 << 20])
def test_only_what_is_shown_of_a_long_cell_is_written(head, size):
    text = head + "\0" * size
    whole = harmless(text).replace("\n", "\\n").replace("\t", "\\t")
    tracemalloc.start()
    try:
        shown = _shown(text)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert shown == (whole if len(whole) <= LONGEST else whole[: LONGEST - 1] + "…")
    assert most < 1 << 18
