"""``kdump sql``: its options and its exit statuses."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

import kdump as package
from kdump.arrow.typed import TypedColumns
from kdump.log_dirs.finder import Wanted
from kdump.log_reader.registry_topic import payload_decoder
from kdump.queries.views import Views
from kdump.schemas.typed import typed_sides
from testing import ROOT, forge
from testing.processes import kdump

BROKER = "golden/brokers/4.2.2"


def sql(*words, status=0):
    done = kdump("sql", *words)
    assert done.returncode == status, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


def rows(*words, status=0):
    return [json.loads(line) for line in sql(*words, "-o", "jsonl", status=status).stdout.splitlines()]


def test_decoded_payloads_are_those_of_dump():
    names = ("topic", "partition", "offset", "decoded")
    found = rows('select topic, partition, "offset", decoded from records', BROKER, "--decode", "auto", "-q")
    dumped = kdump("dump", BROKER, "-o", "jsonl", "--decode", "auto", "-q").stdout.splitlines()
    lines = [{name: line.get(name) for name in names} for line in map(json.loads, dumped) if line["kind"] == "record"]
    assert sorted(map(json.dumps, found)) == sorted(map(json.dumps, lines))
    assert sum(line["decoded"] is not None for line in lines) > 1000


def test_json_lines_are_those_of_dump():
    found = rows("select * from records where topic = 'binary'", BROKER, "-q")
    dumped = map(json.loads, kdump("dump", f"{BROKER}/binary-0", "-o", "jsonl", "-q").stdout.splitlines())
    for row, line in zip(found, dumped, strict=True):
        line["file"] = row["file"]
        assert {name: value for name, value in row.items() if value is not None or name in line} == {
            name: value for name, value in line.items() if name != "kind"
        }


@pytest.mark.parametrize("query", ["-- count\nselect 1 as n", "--\nselect 1 as n", "--x=1\nselect 1 as n"])
@pytest.mark.parametrize("end", [[], ["--"]])
def test_a_query_may_begin_with_a_comment(query, end):
    assert sql("-o", "csv", *end, query, f"{BROKER}/one-0").stdout == b"n\n1\n"


def test_an_option_is_no_query_that_begins_with_a_comment():
    assert sql("select $x as n", f"{BROKER}/one-0", "--param=x=-- a\nb", "-o", "csv").stdout == b'n\n"-- a\nb"\n'
    assert b"No such option" in sql("--nosuch", f"{BROKER}/one-0", status=2).stderr
    assert b"there is no statement" in sql("-- nothing", f"{BROKER}/one-0", status=2).stderr


def test_what_was_read_is_counted():
    done = sql("select key from records where topic = 'c-none' and \"offset\" = 5", BROKER, "--stats", "-q")
    reported = json.loads(done.stderr.decode().split("kdump: stats ", 1)[1])
    assert (reported["segmentsRead"], reported["recordsRead"], reported["rows"]) == (1, 1, 1)
    assert 0 < reported["bytesRead"] < 20_000


def test_formats_of_values():
    query = (
        "select null as n, '' as e, 'a,\"b' as c, '\\xff'::blob as b, 1.5::decimal(5, 2) as d, 'nan'::double as f, "
        "timestamptz '2026-01-02 03:04:05.000006+00' as t, interval 90 minute as i, '101'::bit as x, [1, 2] as l, "
        "{'a': 1} as s, map {'k': null} as m, date '2026-01-02' as day, true as y, 1 as n"
    )
    lines = sql(query, BROKER, "-o", "csv").stdout.decode().splitlines()
    assert lines[0] == "n,e,c,b,d,f,t,i,x,l,s,m,day,y,n"
    assert lines[1] == (
        ',"","a,""b",base64:/w==,1.50,NaN,2026-01-02T03:04:05.000006Z,01:30:00,101,"[1,2]","{""a"":1}","{""k"":null}",'
        "2026-01-02,true,1"
    )
    (row,) = rows(query, BROKER)
    assert row == {
        "n": None,
        "e": "",
        "c": 'a,"b',
        "b": "/w==",
        "bEncoding": "base64",
        "d": 1.5,
        "f": "NaN",
        "t": "2026-01-02T03:04:05.000006Z",
        "i": "01:30:00",
        "x": "101",
        "l": [1, 2],
        "s": {"a": 1},
        "m": {"k": None},
        "day": "2026-01-02",
        "y": True,
        "n_1": 1,
    }


def test_a_plan_is_printed_in_lines():
    plan = sql('explain select topic from records where "offset" = 5', BROKER, "-q").stdout.decode().splitlines()
    assert any("Filters" in line and '"offset" = 5' in line for line in plan)
    assert {len(line) for line in plan} == {len(plan[0])}  # a frame
    done = sql("explain analyze select topic from records", BROKER, "-q").stdout.decode()
    assert "3,814 rows" in done
    assert "x0a" not in done


def test_the_zone_changes_what_is_read_and_not_what_is_printed():
    query = "select timestamptz '2026-01-01 00:00:00' as t"
    assert rows(query, BROKER, "--tz", "Asia/Tokyo") == [{"t": "2025-12-31T15:00:00.000Z"}]
    refused = sql(query, BROKER, "--tz", "Asia/Tokio", status=2).stderr.decode().splitlines()
    assert refused[0] == "error: --tz Asia/Tokio: there is no such time zone"
    assert refused[1].startswith("hint: similar names: Asia/Tokyo")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["select 1"], 2),
        (["select 1", BROKER, "-o", "parquet"], 2),
        (["select 1", BROKER, "--overwrite"], 2),
        (["select 1", BROKER, "--out", f"{BROKER}/x"], 2),
        (["select 1", BROKER, "--timeout", "0"], 2),
        (["select 1", BROKER, "--timeout", "nan"], 2),
        (["select 340282366920938463463374607431768211455::uhugeint", BROKER], 1),
        (["select 1", BROKER, "--timeout", "1e400"], 2),
        *((["select 1", BROKER, "--memory", size], 2) for size in ("much", "0", "0MB")),
        (["select 1", BROKER, "--redact", "--no-payload"], 2),
        (["select * from records", "gone"], 1),
        (["--schema", "nosuch"], 2),
        (["--schema", "--out", "x.txt"], 2),
        ([BROKER], 2),
    ],
)
def test_wrong_usage(words, status):
    assert sql(*words, status=status).stderr


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    out = tmp_path / "rows.csv"
    sql("select error('boom') from range(3)", BROKER, "-o", "csv", "--out", out, status=1)
    assert list(tmp_path.iterdir()) == []
    sql("select 1 as a", BROKER, "-o", "csv", "--out", out)
    assert out.read_text() == "a\n1\n"
    sql("select 2 as a", BROKER, "-o", "csv", "--out", out, status=2)
    sql("select 2 as a", BROKER, "-o", "csv", "--out", out, "--overwrite")
    assert out.read_text() == "a\n2\n"


ENDLESS = {
    "interruptible": "select count(*) from range(1000000000000)",
    "constant": "select list_sort(range(60000000))[1]",
    "holds the interpreter": "select count(*) from records where "
    + " or ".join(f'"offset" = {number} or partition = {number}' for number in range(60_000)),
}
"""What the queries are that do not end: DuckDB stops the first only, and no Python code runs during the last."""


@pytest.mark.parametrize("how", ["signal", "--timeout"])
@pytest.mark.parametrize("query", ENDLESS.values(), ids=ENDLESS)
def test_a_query_without_end_is_ended_and_leaves_nothing(tmp_path, how, query):
    more = ["--timeout", "1"] if how == "--timeout" else []
    words = ["sql", "-", BROKER, "--temp-dir", tmp_path, "-o", "csv", "--out", tmp_path / "rows", *more]
    process = subprocess.Popen(
        [sys.executable, "-m", "kdump", *map(str, words)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(query.encode())
    process.stdin.close()
    process.stdin = None
    if how == "signal":
        while not list(tmp_path.glob("kdump-*")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130 if how == "signal" else 1, b"")
    assert how == "signal" or err == b"error: query: stopped after 1 s (--timeout)\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("topic", ["evolve", "proto-0", "avro-all-0", "top-3", "json-4"])
def test_a_subject_gives_struct_columns(registries, topic):
    logs = str(registries / "confluent" / "logs")
    words = [logs, "--topic", topic, "--subject", f"{topic}-value", "-q"]
    described = {row["column_name"]: row["column_type"] for row in rows("describe records", *words)}
    decoder = payload_decoder("auto", [logs], Wanted())
    view = Views(decoded=True, typed=TypedColumns(typed_sides(decoder, f"{topic}-value"), "duckdb"))["records"]
    assert {line["column"]: line["type"] for line in view.lines()} == described
    found = rows('select "offset", valueDecoded is not null as there, problem from records', *words)
    table = package.open(logs, topic=topic, schema=f"{topic}-value").to_arrow(["offset", "valueDecoded", "problem"])
    want = [(row["offset"], row["valueDecoded"] is not None, row["problem"]) for row in table.read_all().to_pylist()]
    assert sorted((row["offset"], row["there"], row["problem"]) for row in found) == sorted(want)


@pytest.mark.parametrize("view", ["records", "batches"])
@pytest.mark.parametrize("columns", ["*", "topic"])
def test_a_limit_reads_the_beginning_of_a_log(view, columns, tmp_path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    records = [forge.record(None, b"v" * 1000, offset=number) for number in range(4)]
    (folder / f"{0:020}.log").write_bytes(
        b"".join(forge.batch(records, base_offset=4 * number) for number in range(5000))
    )
    done = sql(f"select {columns} from {view} limit 3", folder, "--stats", "-q")
    reported = json.loads(done.stderr.decode().split("kdump: stats ", 1)[1])
    assert reported["rows"] == 3
    assert 0 < reported["bytesRead"] < 6 << 20  # of 20 MB
    assert 0 < reported["batchesRead"] <= 2048 + 64


@pytest.mark.parametrize(("view", "columns"), [("records", "*"), ("records", "topic"), ("batches", "*")])
def test_a_limit_before_damage_does_not_meet_it(view, columns, tmp_path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    batches = [
        forge.batch([forge.record(None, b"v")], base_offset=number, crc=1 if number == 3 else None)
        for number in range(30)
    ]
    (folder / f"{0:020}.log").write_bytes(b"".join(batches))
    assert len(rows(f"select {columns} from {view} limit 3", folder)) == 3
    assert len(rows(f"select {columns} from {view} limit 4", folder, status=3)) == 4
    assert package.open(folder, limit=3).to_arrow(["offset"]).read_all()["offset"].to_pylist() == [0, 1, 2]
    log = package.open(folder)
    assert next(iter(log.to_arrow(["value"]))).num_rows == 3
    assert not log.damage


def test_a_prompt_reads_the_schemas_once(registries):
    script = """
import sys
from kdump import cli
from kdump.commands import sql
from kdump.log_reader import registry_topic

def read_store(*given, read=registry_topic.read_store, **more):
    print("the schemas are read")
    return read(*given, **more)

registry_topic.read_store = read_store
sql._asks_at_prompt = lambda *_: True
sys.argv = ["kdump", "sql", sys.argv[1], "--decode", "auto", "-q", "-o", "csv"]
cli.main()
"""
    folder = registries / "confluent" / "logs"
    query = b"select count(decoded->'value') > 5 as n from records;\n"
    done = subprocess.run(
        [sys.executable, "-c", script, folder], cwd=ROOT, input=3 * query, capture_output=True, check=True
    )
    assert (done.stdout.count(b"the schemas are read"), done.stdout.count(b"true")) == (1, 3), done.stderr


@pytest.mark.parametrize("value", ["interval '1 day'", "union_value(a:=1)", "{'a': interval '1 day'}"])
def test_a_type_that_parquet_lacks_is_wrong_usage(tmp_path, value):
    query = f"select 1 as fine, {value} as wrong"
    done = sql(query, BROKER, "-o", "parquet", "--out", tmp_path / "x.parquet", status=2)
    assert re.search(r"error: Parquet has no type for .* \(columns: wrong\): convert them", done.stderr.decode())
    assert list(tmp_path.iterdir()) == []


def test_a_query_that_fails_in_the_middle_leaves_no_parquet_and_no_traceback(tmp_path):
    query = "select case when i = 3000000 then error('boom') else i end as x from range(4000000) t(i)"
    done = sql(query, BROKER, "-o", "parquet", "--out", tmp_path / "x.parquet", status=1)
    assert b"boom" in done.stderr
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("where", ["", "where key is null", "where valueSize > 5 and keySize >= 0"])
def test_hidden_payloads_keep_their_sizes(where):
    names = 'topic, "offset", key, keySize, value, valueSize'
    order = 'order by topic, partition, "offset", position'
    hidden = rows(f"select {names} from records {where} {order}", BROKER, "-q", "--no-payload")
    plain = """
        with records as (
            select topic, partition, "offset", position, null::blob as key, coalesce(octet_length(key), -1) as keySize,
            null::blob as value, coalesce(octet_length(value), -1) as valueSize from records
        )
    """
    assert hidden == rows(f"{plain} select {names} from records {where} {order}", BROKER, "-q")
    assert {row["key"] for row in hidden} == {row["value"] for row in hidden} == {None}
    assert len({row["valueSize"] for row in hidden}) > 3
    sizes = rows("select keySize, max(valueSize) as v from records group by 1", BROKER, "-q", "--no-payload")
    assert {row["keySize"] for row in hidden} <= {row["keySize"] for row in sizes}


def test_a_subject_lists_the_decoded_columns():
    def listed(*options):
        return sql("--schema", "records", "-o", "jsonl", *options).stdout

    assert listed("--subject", "orders-value") == listed("--decode", "auto") != listed()


def test_only_hidden_payloads_have_columns_of_sizes():
    sql("select keySize from records", BROKER, status=2)
    listed = [
        row["column"]
        for row in map(json.loads, sql("--schema", "records", "-o", "jsonl", "--no-payload").stdout.splitlines())
    ]
    usual = [row["column"] for row in map(json.loads, sql("--schema", "records", "-o", "jsonl").stdout.splitlines())]
    assert listed == [*usual, "keySize", "valueSize"]
    (row,) = rows("from records limit 1", BROKER, "-q", "--no-payload")
    assert [name for name in row if not name.endswith("Encoding")] == listed
