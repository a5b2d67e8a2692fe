"""Views are derived: their names, columns and types are those of the commands' lines."""

import json
from pathlib import Path

import pytest

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")

from kdump.answers import QUESTIONS, question_named, schemas, table_names
from kdump.queries.views import REGISTRY, Views, type_name
from kdump.rows import columns
from testing import ROOT
from tools.docs import shown

BROKER = "golden/brokers/4.2.2"
AT = "2026-11-22"
VIEWS = Views()
LINES = [view for view in VIEWS.values() if view.command not in {"dump", "dump --batches", "diff"}]


def lines_of(view, monkeypatch):
    monkeypatch.chdir(ROOT)
    at = [] if view.command.startswith("dump") else ["--at", AT]
    printed = shown.run(" ".join(["kdump", *view.command.split(), BROKER, "-q -o jsonl", *at]))
    return [json.loads(line) for line in printed.output.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("view", LINES, ids=lambda view: view.name)
def test_a_view_has_the_lines_of_its_command(view, monkeypatch):
    wanted = [line for line in lines_of(view, monkeypatch) if line["kind"] == view.kind]
    done = shown.run(f"kdump sql 'select * from {view.name}' {BROKER} -q -o jsonl --at {AT}")
    rows = [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]
    names = view.schema.names
    texts = {"expected", "found"} if view.command == "check" else set()

    def row(line):
        found = {name: line.get(name) for name in names}
        return {name: str(found[name]) if name in texts and found[name] is not None else found[name] for name in found}

    assert sorted(map(json.dumps, rows)) == sorted(json.dumps(row(line)) for line in wanted)


@pytest.mark.parametrize("name", ["schemas", "subjects", "schema_history"])
def test_a_view_of_a_registry_has_the_lines_of_its_command(name, registries):
    view, logs = VIEWS[name], registries / "confluent" / "logs"
    printed = shown.run(f"kdump {view.command} {logs} -q -o jsonl").output.splitlines()
    wanted = [{key: value for key, value in json.loads(line).items() if key != "kind"} for line in printed]
    found = shown.run(f"kdump sql 'select * from {name}' {logs} -q -o jsonl").output.splitlines()
    assert [json.loads(line) for line in found] == wanted
    assert len(wanted) > 5


def test_a_registry_elsewhere_is_read(registries):
    where = f"{BROKER}/one-0 --schemas {registries / 'confluent' / 'logs'}"
    assert shown.run(f"kdump sql 'select count(*) > 5 as n from subjects' {where} -q -o csv").output == "n\ntrue\n"


def test_paths_without_a_registry_are_an_error(monkeypatch):
    monkeypatch.chdir(ROOT)
    for command in ("kdump sql 'from subjects'", "kdump schemas"):
        done = shown.run(f"{command} {BROKER}/one-0 -q -o jsonl")
        assert done.status == 1
        hint = "no record of _schemas was found: if the topic has another name, give it with --schemas-topic"
        assert done.output == f"error: {BROKER}/one-0: {hint}\n"


@pytest.mark.parametrize("name", ["record", "batch", "damage"])
def test_rows_have_the_columns_of_json_lines(name):
    view = next(one for one in VIEWS.values() if one.kind == name)
    text_only = {"kind", "keyEncoding", "valueEncoding"}
    assert view.schema.names == [one.name for one in columns.KINDS[name] if one.name not in text_only]


def test_columns_that_scripts_rely_on_stay():
    """A new field of a line is listed in ``omits`` of its table; a table ``..._details`` has all fields."""
    kept = json.loads((Path(__file__).parent / "columns.json").read_text())
    found = {name: [[one["column"], one["type"]] for one in view.lines()] for name, view in VIEWS.items()}
    assert {name: found.get(name) for name in kept} == kept


def test_every_question_with_lines_has_a_view():
    reported = {table.name for name in QUESTIONS for table in question_named(name).tables}
    assert reported <= VIEWS.keys()
    assert {name: table_names(name) for name in QUESTIONS} == {
        name: tuple(table.name for table in question_named(name).tables) for name in QUESTIONS
    }
    assert tuple(table.name for table in schemas.TABLES) == REGISTRY
    assert {name for name in QUESTIONS if not question_named(name).tables} == {"explain"}


@pytest.mark.parametrize("view", VIEWS.values(), ids=lambda view: view.name)
def test_types_are_those_of_duckdb(view):
    connection = duckdb.connect()
    connection.register("v", pa.table({field.name: pa.nulls(0, field.type) for field in view.schema}))
    found = [(row[0], row[1]) for row in connection.sql("describe v").fetchall()]
    assert found == [(field.name, type_name(field.type)) for field in view.schema]


@pytest.mark.parametrize("view", VIEWS.values(), ids=lambda view: view.name)
def test_every_column_has_a_sentence(view):
    assert view.doc.endswith(".")
    assert all(line["doc"].endswith(".") for line in view.lines())
