"""The restricted DuckDB: the check of the Dataset way, the stream as its replacement, and refused queries."""

import random
import subprocess
import sys
from collections import Counter

import pytest

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")

from kdump.errors import SILENT
from kdump.log_dirs.finder import Wanted
from kdump.primitives import compression, timestamps
from kdump.queries import engine
from kdump.queries.engine import Engine, QueryError, QueryLimits, Running, WrongQueryError, message, pushes_down
from kdump.queries.reading import QueryReading, SqlInputs
from kdump.queries.views import SECOND_NAMES, Views
from testing import GOLDEN, ROOT, forge

BROKER = str(GOLDEN / "brokers" / "4.2.2")
QUERIES = [
    "select topic, count(*) as n from records group by 1 order by 1",
    'select "offset", key from records where topic = \'c-none\' and "offset" in (3, 5) order by 1',
    "select count(*) as n from batches where codec = 'gzip'",
    "select topic, latest from offsets order by 1, 2",
    'select a.topic, b."offset" from records a join records b using (topic, partition, "offset") '
    "where a.topic = 'txn' and b.value is not null order by 2",
]


@pytest.fixture
def ask(tmp_path):
    """Run a query over a golden broker; return its rows, and the input that was read."""

    def asked(text, params=(), *, timeout=None):
        inputs = SqlInputs((BROKER,), Wanted(siblings=True), timestamps.now())
        reading = QueryReading(inputs, SILENT)
        limits = QueryLimits(128 << 20, 2, tmp_path, timeout)
        running = Running(Engine(Views(), limits), text, dict(params), reading)
        try:
            running.wait()
            rows = [tuple(row.values()) for batch in running.batches() for row in batch.to_pylist()]
        finally:
            running.close()
        assert not running.is_stuck
        return rows, reading

    return asked


def test_duckdb_hands_columns_and_conditions_to_a_dataset_in_python():
    assert pushes_down(duckdb.connect())


@pytest.mark.parametrize("query", QUERIES)
def test_a_stream_in_place_of_the_dataset_gives_the_same_rows(ask, monkeypatch, query):
    pushed, reading = ask(query)
    assert any(scan.columns != list(Views()[scan.view].schema.names) for scan in reading.scans)
    monkeypatch.setattr(engine, "pushes_down", lambda _: False)
    streamed, reading = ask(query)
    assert all(scan.columns == list(Views()[scan.view].schema.names) for scan in reading.scans)
    assert streamed == pushed
    assert pushed


def test_a_condition_chooses_what_is_read(ask):
    rows, reading = ask("select value from records where topic = 'c-none' and \"offset\" = 5")
    assert len(rows) == 1
    assert reading.scans[0].pushed == {"topic": ["c-none"], "offset": [5, 5]}
    assert reading.records_read == 1


@pytest.mark.parametrize("column", ["timestampMs", '"offset"', "producerId"])
def test_no_number_is_above_the_largest_or_below_the_smallest(ask, column):
    largest = (1 << 63) - 1
    for condition in (f"> {largest}", f"between {largest} and {largest}", f"< {-largest} - 1"):
        rows, reading = ask(f"select count(*) from records where {column} {condition}")
        assert rows == [(0,)]
        assert reading.batches_read == 0 or "between" in condition


def refuses(*_, **__):
    raise AssertionError("decompressed")


def test_headers_alone_answer_what_is_of_batches(ask, monkeypatch):
    monkeypatch.setattr(compression, "decompress", refuses)
    with pytest.raises(AssertionError, match="decompressed"):
        ask("select count(*) from records where codec = 'zstd' and \"offset\" % 2 = 0")
    rows, reading = ask("select topic, count(*) from records where codec = 'zstd' group by 1 order by 1")
    assert dict(rows)["c-zstd"] == 224
    assert reading.batches_read


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from glob('/etc/*')",
        "select * from read_csv('/dev/stdin')",
        "select * from nosuch",
        "select nosuch from records",
        "selec 1",
        "select length(value) from records",
    ],
)
def test_a_wrong_query_is_refused(ask, query):
    with pytest.raises(WrongQueryError):
        ask(query)


def test_the_message_of_length_names_octet_length(ask):
    with pytest.raises(WrongQueryError, match="octet_length"):
        ask("select length(value) from records")


@pytest.mark.parametrize("query", ["select 'a'::int", "select error('boom')", "select topic::int from records"])
def test_a_query_that_fails_while_it_runs_is_no_wrong_usage(ask, query):
    with pytest.raises(QueryError):
        ask(query)


ROWS_WITHOUT_END = "with recursive r as (select 1 as a union all select a + 1 from r) select a from r"


@pytest.mark.parametrize("query", ["select count(*) from range(1000000000000)", ROWS_WITHOUT_END])
def test_a_time_limit_stops_a_query(ask, query):
    with pytest.raises(QueryError, match=r"stopped after 0\.3 s"):
        ask(query, timeout=0.3)


def test_parameters_are_values_not_text(ask):
    text = "'; drop view records; --"
    assert ask("select $x as x", {"x": text})[0] == [(text,)]


def test_a_message_has_few_lines_and_no_hint_that_does_not_work():
    error = duckdb.OutOfMemoryException("Out of Memory: failed\n\nPossible solutions:\n* SET memory_limit='1GB'")
    assert message(error) == "Out of Memory: failed\nhint: --memory gives the query more"
    assert len(message(duckdb.Error("x\n" * 1000)).split("\n")) == engine.MOST_LINES
    assert message(duckdb.Error("SET x")) == "SET x"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (f"select {'(' * 1100}1{')' * 1100}", "Parser Error: Max expression depth limit of 1000 exceeded."),
        ("select st_point(1, 2)", "is not in the catalog, but it exists in the spatial extension."),
        ("select x set threads", 'syntax error at or near "threads"\nLINE 1: select x set threads\n'),
    ],
    ids=["depth", "extension", "own text"],
)
def test_the_reason_stays_when_a_hint_is_left_out(ask, query, text):
    with pytest.raises(WrongQueryError) as refused:
        ask(query)
    assert text in str(refused.value)
    assert not {"Please", "Use", "INSTALL", "Alternatively,"} & set(str(refused.value).split())


def test_an_error_of_a_scan_is_reported_as_it_is(ask, monkeypatch):
    from kdump.errors import UnreadableError

    def fails(*_):
        raise UnreadableError("file", "is gone")

    monkeypatch.setattr(QueryReading, "_records", fails)
    with pytest.raises(UnreadableError, match="is gone"):
        ask("select key from records")


@pytest.mark.parametrize(
    "query",
    [
        "from query_table('off' || 'sets')",
        "from query('from off' || 'sets')",
        'from "OFFSETS"',
        "with a as (from Offsets) from a",
    ],
)
def test_a_view_is_found_however_a_query_names_it(ask, query):
    assert ask(query)[0] == ask("from offsets")[0]


@pytest.mark.parametrize("query", ["show tables", "select table_name from information_schema.tables order by 1"])
def test_a_query_lists_all_views(ask, query):
    assert {name for (name,) in ask(query)[0]} == {*Views(), *SECOND_NAMES}


def test_a_query_binds_again_in_the_same_connection(ask, monkeypatch):
    """A name that is in no view needs all views, and no second DuckDB, which takes 20 ms of CPU."""
    made, connect = [], duckdb.connect

    def kept(*given, **more):
        made.append(connect(*given, **more))
        return made[-1]

    monkeypatch.setattr(duckdb, "connect", kept)
    with pytest.raises(WrongQueryError, match="group_offsets"):
        ask("select * from group_offset")
    assert len(made) == 1


def test_similar_names_of_macros_are_proposed(ask):
    with pytest.raises(WrongQueryError, match="as_text"):
        ask("select as_texts(key) from records")


def test_similar_names_of_views_are_proposed(ask):
    with pytest.raises(WrongQueryError, match='Did you mean "group_offsets"'):
        ask("from grop_offsets")


def test_a_query_of_records_imports_no_question():
    script = (
        "import sys; from kdump import cli; sys.argv = ['kdump', 'sql', sys.argv[1], sys.argv[2]]; cli.main(); "
        "print(*(name for name in sys.modules if name.startswith('kdump.answers.')), file=sys.stderr)"
    )

    def imported(query):
        done = subprocess.run(
            [sys.executable, "-c", script, query, f"{BROKER}/one-0"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        )
        return set(done.stderr.split())

    assert imported("select count(*), max(octet_length(value)) from records") == set()
    assert "kdump.answers.offsets" in imported("from offsets")


def test_large_values_come_in_small_blocks_with_one_thread_too(tmp_path):
    folder = tmp_path / "large-0"
    folder.mkdir()
    batches = (forge.batch([forge.record(b"k", bytes(1 << 20))], base_offset=number) for number in range(40))
    (folder / "00000000000000000000.log").write_bytes(b"".join(batches))
    reading = QueryReading(SqlInputs((str(folder),), Wanted(siblings=True), timestamps.now()), SILENT)
    running = Running(Engine(Views(), QueryLimits(128 << 20, 1, tmp_path)), "from records", {}, reading)
    try:
        running.wait()
        sizes = [block.num_rows for block in running.batches()]
    finally:
        running.close()
    assert (sum(sizes), max(sizes) <= 10) == (40, True)


def test_an_error_of_an_arrow_stream_is_one_of_the_query(tmp_path):
    running = Running(Engine(Views(), QueryLimits(128 << 20, 1, tmp_path)), "", {}, QueryReading(None, SILENT))
    error = running._as_kdump_error(OSError("Out of Memory Error: failed\n\nPossible solutions:\n* SET threads=1"))
    assert isinstance(error, QueryError)
    assert str(error) == "query: Out of Memory Error: failed\nhint: --memory gives the query more"


@pytest.mark.parametrize(
    "query",
    [
        "from duckdb_extensions()",
        "select value from duckdb_settings() where value is not null",
        "from read_text('~/x')",
        "select current_setting('secret_directory') || current_setting('extension_directory')",
    ],
)
def test_no_row_and_no_error_names_the_home_of_the_user(ask, monkeypatch, query):
    monkeypatch.setenv("HOME", "/home/of-the-user")
    try:
        shown = str(ask(query)[0])
    except WrongQueryError as error:
        shown = str(error)
    assert shown
    assert "of-the-user" not in shown


def test_duckdb_writes_no_progress_to_standard_output():
    """It does so where Python runs no file, as in a notebook or the commands of the MCP server."""
    code = (
        "from kdump.queries.engine import Engine, QueryLimits; from kdump.queries.views import Views\n"
        "connection = Engine(Views(), QueryLimits(128 << 20, 2, '.', None)).connect()\n"
        "print(connection.execute(\"select current_setting('enable_progress_bar')\").fetchall())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[(False,)]\n"


def test_a_query_runs_in_a_notebook_without_widgets():
    """There DuckDB refuses each change of its progress bar."""
    code = (
        "import sys, types\n"
        "sys.modules['ipywidgets'] = None\n"
        "notebook = sys.modules['IPython'] = types.ModuleType('IPython')\n"
        "notebook.get_ipython = lambda: types.SimpleNamespace(config={'IPKernelApp': {}})\n"
        "import duckdb, kdump\n"
        "try:\n"
        "    duckdb.connect().execute('set enable_progress_bar = false')\n"
        "except duckdb.InvalidInputException as error:\n"
        "    print('ipywidgets' in str(error))\n"
        f"print(kdump.sql('select 1 as n', {BROKER!r}).rows())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n[{'n': 1}]\n"


def _atoms(column, values):
    """Return conditions on a column, with its own values as literals; those on nulls without values."""
    null = [f"{column} is null", f"{column} is not null", f"{column} is distinct from null"]
    if not values:
        return null
    one, other = values[0], values[-1]
    signs = ("=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from")
    return [
        *null,
        *(f"{column} {sign} {one}" for sign in signs),
        *(f"{column} {word} ({one}, {end})" for word in ("in", "not in") for end in (other, "null")),
        *(f"{column} {word} {one} and {other}" for word in ("between", "not between")),
    ]


def test_conditions_over_nulls_give_the_rows_of_a_full_table(tmp_path):
    """For every view: DuckDB's own filter over a copy of all rows is the reference."""
    chosen, views, plain = random.Random(54), Views(), duckdb.connect()
    plain.execute("set timezone = 'UTC'")
    reading = QueryReading(SqlInputs((BROKER,), Wanted(siblings=True), timestamps.now()), SILENT)
    one_engine = Engine(views, QueryLimits(256 << 20, 2, tmp_path))
    asked = one_engine.connect()
    one_engine.add(asked, reading, views)
    for name in views:
        plain.register("rows", asked.sql(f"from {name}").to_arrow_table())
        plain.execute(f'create table "{name}" as from rows')
        atoms = []
        for field in views[name].schema:
            column = f'"{field.name}"'
            cast = "blob" if pa.types.is_binary(field.type) else "varchar"
            found = plain.sql(
                f'select distinct {column}::{cast}::varchar from "{name}" where {column} is not null limit 9'
            )
            of_type = (
                "" if pa.types.is_nested(field.type) else f"::{plain.sql(f'select {column} from {name}').types[0]}"
            )
            values = [f"'{value.replace(chr(39), chr(39) * 2)}'{of_type}" for (value,) in sorted(found.fetchall())]
            atoms += _atoms(column, values if of_type else [])
        for _ in range(12):
            one, other, third = chosen.choices(atoms, k=3)
            where = chosen.choice(
                [one, f"not ({one})", f"{one} and not ({other})", f"not ({one} or {other}) or {third}"]
            )
            query = f'select * from "{name}" where {where}'
            rows = [Counter(map(repr, one.execute(query).fetchall())) for one in (asked, plain)]
            assert rows[0] == rows[1], query
    assert sum(scan.condition is not None for scan in reading.scans) > len(views) * 6


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1::bignum", "BIGNUM"),
        ("'a'::variant", "VARIANT"),
        ("'01:02:03+02'::timetz", "TIME WITH TIME ZONE"),
        ("['101'::bit]", "BIT"),
        ("map {'a': [{'b': 340282366920938463463374607431768211455::uhugeint}]}", "UHUGEINT"),
    ],
)
def test_a_type_that_would_lose_its_value_is_refused(ask, value, kind):
    with pytest.raises(WrongQueryError, match=f"column x has values of the type {kind}, which Arrow does not have"):
        ask(f"select 1 as n, {value} as x")


def test_nested_types_that_keep_their_values_are_taken(ask):
    rows, _ = ask("select {'bit': ['a'::enum('a')]} as a, [[1, 2]::int[2]] as b, '101'::bit as c, [1.5] as d")
    assert rows[0][:2] == ({"bit": ["a"]}, [[1, 2]])
