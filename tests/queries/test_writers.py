"""All values that DuckDB returns have a text, at any depth and beyond the range of Python's own types."""

import io
import json

import pytest

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq

from kdump.queries import writers

TIMES = {
    "timestamp_ns '2020-01-01 00:00:00.123456789'": "2020-01-01T00:00:00.123456789",
    "timestamptz '2020-01-01 01:00:00+01'": "2020-01-01T00:00:00.000Z",
    "timestamp '20000-01-01'": "568971820800000000 us",
    "timestamptz '-infinity'": "-infinity",
    "'infinity'::timestamp_ns": "infinity",
    "date '2020-02-29'": "2020-02-29",
    "date '12000-01-01'": "3663382 days",
    "date '0044-03-15 (BC)'": "-735160 days",
    "date 'infinity'": "infinity",
    "time '10:00:00.1'": "10:00:00.100",
}


def written(form, query):
    rows = duckdb.connect().execute("set timezone = 'UTC'").sql(query)
    types = [str(kind) for kind in rows.types]
    reader = rows.to_arrow_reader(10)
    out = io.BytesIO()
    if form == "table":
        writers.TextTable(types, reader.schema, None).write(reader, out)
    else:
        writers.write(form, types, reader.schema, reader, out)
    return out.getvalue().decode()


@pytest.mark.parametrize(("value", "text"), TIMES.items())
@pytest.mark.parametrize("form", ["jsonl", "csv", "table"])
def test_times_and_dates_have_a_text_at_any_depth(value, text, form):
    query = f"select {value} a, [{value}, null] b, {{'x': {value}}} c, map{{'x': {value}}} d, [{value}]::{{}}[1] e"
    kind = duckdb.sql(f"select {value}").types[0]
    found = written(form, query.replace("{}", str(kind)))
    if form == "jsonl":
        assert json.loads(found) == {"a": text, "b": [text, None], "c": {"x": text}, "d": {"x": text}, "e": [text]}
    else:
        assert found.count(text) == 5


def test_a_union_is_written_by_its_value():
    query = "select union_value(n := date '2020-01-01') a, union_value(n := {'x': 1}) b, [union_value(n := 'ä')] c"
    assert json.loads(written("jsonl", query)) == {"a": "2020-01-01", "b": {"x": 1}, "c": ["ä"]}
    assert written("csv", query).splitlines()[1] == '"""2020-01-01""","{""x"": 1}","[""ä""]"'


def test_large_rows_are_written_in_small_pieces():
    batch = pa.record_batch({"a": ["x" * 300_000] * 40})
    out = Sizes()
    assert writers.write("jsonl", ["VARCHAR"], batch.schema, [batch], out) == 40
    assert (len(out.sizes), max(out.sizes) < 2 << 20) == (14, True)
    table = Sizes()
    assert writers.TextTable(["VARCHAR"], batch.schema, 80).write([batch], table) == 40
    assert sum(table.sizes) < 40 * 80


def test_columns_of_any_width_are_shortened_at_once():
    table = writers.TextTable(["VARCHAR", "VARCHAR"], pa.schema({"a": pa.string(), "name": pa.string()}), 30)
    assert table._shrunk([1 << 62, 4]) == [24, 4]
    assert table._shrunk([1 << 62, 1 << 62]) == [12, 16]


class Sizes(list):
    """A file that keeps the sizes of its writes."""

    @property
    def sizes(self):
        return self

    def write(self, data):
        self.append(len(data))

    def writelines(self, pieces):
        self.extend(map(len, pieces))


@pytest.mark.parametrize("value", ["a" * 40, "é" * 21 + "\udcff  ", "\x1b[31m\n" * 8])
def test_a_large_cell_of_a_table_is_escaped_and_written_in_pieces(value, monkeypatch):
    schema = pa.schema({"a": pa.string(), "n": pa.int64(), "last": pa.string()})

    def lines():
        table = writers.TextTable(["VARCHAR", "BIGINT", "VARCHAR"], schema, None)
        row = [table._cell(value), "1", table._cell(value)]
        return [*table._line(row, [45, 3, 45])]

    whole = lines()
    monkeypatch.setattr(writers, "_PIECE", 7)
    pieces = lines()
    assert len(whole) == 1
    assert b"".join(pieces).split() == whole[0].split()
    assert max(map(len, pieces)) <= 7 * len("\\udcff")


def test_a_large_cell_does_not_widen_the_other_rows():
    batch = pa.record_batch({"a": ["x", "\0" * (3 << 20), "y"], "b": [1, 2, 3]})
    out = io.BytesIO()
    assert writers.TextTable(["VARCHAR", "BIGINT"], batch.schema, None).write([batch], out) == 3
    names, line, short, large, last = out.getvalue().decode().splitlines()
    width = len(line) - len("  -")
    assert names == f"a{' ' * (width - 1)}  b"
    assert (short, large, last) == (f"x{' ' * (width - 1)}  1", "\\x00" * (3 << 20) + "  2", f"y{' ' * (width - 1)}  3")
    assert width < 5000


def test_a_large_cell_is_cut_on_a_terminal():
    batch = pa.record_batch({"a": ["\x1b" * (3 << 20)]})
    out = io.BytesIO()
    writers.TextTable(["VARCHAR"], batch.schema, 30).write([batch], out)
    assert out.getvalue().decode().splitlines()[2] == ("\\x1b" * 8)[:29] + "…"


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize("value", [b'a"\0\n\xc2\x9b,' * 20, b"\xff" * 20], ids=["text", "bytes"])
def test_a_large_value_is_written_in_pieces(form, value, monkeypatch):
    batch = pa.record_batch({"n": [1, 2], "v": [value, b"s"], "w": [None, value]})

    def pieces():
        out = Sizes()
        whole = io.BytesIO()
        for file in (whole, out):
            writers.write(form, ["BIGINT", "BLOB", "BLOB"], batch.schema, [batch], file)
        return whole.getvalue(), out

    whole, _ = pieces()
    monkeypatch.setattr(writers, "_PIECE", 8)
    monkeypatch.setattr("kdump.rows.pieces.PIECE", 9)
    in_pieces, sizes = pieces()
    assert in_pieces == whole
    assert max(sizes) <= 8 * len("\\u009b")


@pytest.mark.parametrize("form", ["jsonl", "csv", "table"])
def test_lists_of_many_items_are_written_in_groups(form, monkeypatch):
    query = (
        "select unnest([range(20), null, [], range(3)]) as n,"
        " [{'key': 'h', 'value': 'v\"'::blob}, null, {'key': null, 'value': '\\xff'::blob}] as s,"
        " [[1, 2], null, [], [1, 2, 3]] as l"
    )
    whole = written(form, query)
    objects = []
    groups = writers.LargeList.groups
    monkeypatch.setattr(writers, "_MANY", 2)
    monkeypatch.setattr(writers.LargeList, "groups", lambda self: (objects.append(g) or g for g in groups(self)))
    assert written(form, query) == whole
    assert max(map(len, objects)) == 2
    assert len(objects) > 10


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_columns_of_one_name_get_numbers_in_files(form):
    rows = duckdb.sql("select 1 as n, 2 as n, 3 as m")
    out = io.BytesIO()
    reader = rows.to_arrow_reader(10)
    writers.write(form, ["INTEGER"] * 3, reader.schema, reader, out)
    out.seek(0)
    found = pq.read_table(out) if form == "parquet" else pa.ipc.open_stream(out).read_all()
    assert found.to_pylist() == [{"n": 1, "n_1": 2, "m": 3}]
