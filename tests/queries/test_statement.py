"""The check of statements: one SELECT or EXPLAIN; parameters by name; the column offset without quotes."""

import time

import pytest

duckdb = pytest.importorskip("duckdb")

from kdump.errors import UsageError
from kdump.queries import statement
from kdump.queries.statement import quoted_offset

REFUSED = [
    "attach ':memory:' as m",
    "copy (select 1) to 'a.csv'",
    "create table t as select 1",
    "drop view records",
    "set threads = 1",
    "pragma database_list",
    "call pragma_version()",
    "use memory",
    "begin",
    "prepare p as select 1",
    "insert into records values (1)",
    "explain analyze create table t as select 1",
    "explain drop view records",
    "select 1; select 2",
    "select 1; drop view records",
    "",
    ";",
    "-- nothing",
]
TAKEN = [
    "select 1",
    "from range(3)",
    "values (1)",
    "with a as (select 1) select * from a",
    "describe select 1",
    "summarize select 1",
    "show tables",
    "explain select 1",
    "explain analyze select 1",
    "explain (format json) select 1",
    "pivot (select 1 as a, 'x' as b) on b using count(*)",
    "-- a comment\nselect 1; -- another",
]


def parse(text, params):
    return statement.parse(text, params, duckdb.extract_statements)


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_question_is_refused(text):
    with pytest.raises((UsageError, duckdb.Error)):
        parse(text, {})


def test_a_refusal_names_the_statements_that_run():
    with pytest.raises(UsageError, match="PRAGMA is refused: only SELECT, DESCRIBE, SHOW, SUMMARIZE and EXPLAIN run"):
        parse("pragma version", {})


def test_a_query_is_utf_8():
    with pytest.raises(UsageError, match="query: it is not valid UTF-8"):
        parse("select '\udcff'", {})


@pytest.mark.parametrize("text", TAKEN)
def test_a_question_is_taken(text):
    assert parse(text, {}).text == text


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("select offset from r limit 5 offset 2", 'select "offset" from r limit 5 offset 2'),
        ("select max(OFFSET) from r", 'select max("offset") from r'),
        ("select 1 limit 1 offset $n", "select 1 limit 1 offset $n"),
        ("select 1 limit 1 offset /* c */ (2)", "select 1 limit 1 offset /* c */ (2)"),
        ("select 'offset', \"offset\" -- offset", "select 'offset', \"offset\" -- offset"),
        ("select offset = $offset", 'select "offset" = $offset'),
        ("select $$offset$$, r.offset", 'select $$offset$$, r."offset"'),
        ("select offsets from offset_", "select offsets from offset_"),
    ],
)
def test_the_bare_word_offset_is_quoted_where_it_is_a_column(text, quoted):
    assert quoted_offset(text) == quoted


def test_a_query_that_is_sql_already_stays_as_it_is():
    assert parse("select 1 as offset", {}).text == "select 1 as offset"
    assert parse('select offset from (select 1 as "offset")', {}).text == 'select "offset" from (select 1 as "offset")'


@pytest.mark.parametrize("params", [{}, {"a": "1", "b": "2"}])
def test_parameters_are_given_and_used(params):
    with pytest.raises(UsageError, match="--param"):
        parse("select $a", params)


def test_a_parameter_without_a_name_is_refused():
    with pytest.raises(UsageError, match="parameters have names"):
        parse("select ?", {})


@pytest.mark.parametrize(
    "text",
    [
        "select " + "/*" * 300_000,
        "select " + " ".join(f"$a{number}$" for number in range(60_000)),
        "select offset " + "/**/" * 10_000 + "x y z",
        "select " + "offset /*" * 100_000,
        "select '" + "''" * 300_000,
        'select "' + '""' * 300_000,
    ],
    ids=["comments", "dollars", "comments after offset", "offsets", "quotes", "double quotes"],
)
def test_a_wrong_query_of_a_megabyte_is_refused_at_once(text):
    began = time.process_time()
    with pytest.raises(duckdb.ParserException):
        parse(text, {})
    assert time.process_time() - began < 5
