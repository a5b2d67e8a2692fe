"""The registry of questions: every interface has all questions with all options, also newly added ones."""

import inspect
import json

import click
import pytest

import kdump
from kdump.answers import QUESTIONS, question_named
from kdump.errors import UsageError
from testing import GOLDEN
from testing.processes import python

BROKER = str(GOLDEN / "brokers" / "4.2.2")
REGISTER = "from kdump.answers import QUESTIONS\nQUESTIONS['toy'] = 'tests.helpers.toy_question'\n"
LINES = [{"kind": "segments", "topic": "one", "segments": 1}]
NAMES = {"du": "disk_usage", "stats": "statistics"}
"""The functions whose names differ from those of their commands."""
OWN_COMMANDS = {"metadata", "events", "diff", "explain"}
"""Questions whose commands do more than ask them."""
OF_FUNCTIONS = {"explain": {"ranges"}, "metadata": {"until"}, "events": {"until"}}
"""Options that have another form in a function."""


def toy(code):
    """Run code after the question ``toy`` is registered; return the lines that it prints."""
    return python("-c", REGISTER + code, check=True).stdout.decode().splitlines()


def command(*words):
    return f"import sys\nsys.argv = {['kdump', *words]}\nfrom kdump.cli import main\nmain()\n"


def test_a_new_question_is_a_command():
    printed = toy(command("toy", BROKER, "--topic", "one", "--least-segments", "1", "-o", "jsonl"))
    assert [json.loads(line) for line in printed] == LINES
    assert toy(command("toy", BROKER, "--least-segments", "99", "-o", "jsonl")) == []
    table = toy(command("toy", BROKER, "--topic", "one"))
    assert [line.split() for line in table if "one" in line] == [["one", "1"]]
    assert any("--least-segments N" in line and "so many segments" in line for line in toy(command("toy", "--help")))
    assert any(line.split()[:2] == ["toy", "Count"] for line in toy(command("--help")))


def test_a_new_question_is_a_function():
    code = "import kdump, json\nfor one in kdump.toy(PATH, topic='one', least=1).rows(): print(json.dumps(one))\n"
    assert [json.loads(line) for line in toy(code.replace("PATH", repr(BROKER)))] == LINES


def test_a_new_question_is_a_view_of_sql():
    pytest.importorskip("duckdb")
    printed = toy(command("sql", "select * from topic_segments where topic = 'one'", BROKER, "-o", "jsonl"))
    assert [json.loads(line) for line in printed] == [{"topic": "one", "segments": 1}]


def test_a_new_question_is_a_tool():
    pytest.importorskip("mcp")
    printed = toy("from kdump.commands.mcp import specs\nfor one in specs(): print(one.name, *one.options)\n")
    assert [line.split()[-1] for line in printed if line.startswith("toy ")] == ["least_segments"]


def test_a_new_question_is_an_output_of_spark():
    pytest.importorskip("pyarrow")
    code = (
        "import json\nfrom kdump.spark.source import answers, options\n"
        "asked = options.parse({'path': PATH, 'output': 'toy', 'topic': 'one', 'leastSegments': '1'})\n"
        "for task in answers.plan(asked, print):\n"
        "    for batch in answers.read(task, asked):\n"
        "        for row in batch.to_pylist():\n"
        "            print(json.dumps({name: value for name, value in row.items() if value is not None}))\n"
    )
    assert [json.loads(line) for line in toy(code.replace("PATH", repr(BROKER)))] == LINES


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_function_takes_every_option(name):
    taken = set(inspect.signature(getattr(kdump, NAMES.get(name, name))).parameters)
    assert {one.name for one in question_named(name).parts()} - OF_FUNCTIONS.get(name, set()) <= taken


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name not in OWN_COMMANDS])
def test_a_command_takes_every_option(name):
    from kdump.commands.root import root

    command = root.get_command(click.Context(root), name)
    taken = {flag for one in command.params for flag in one.opts}
    assert {one.words.flag for one in question_named(name).parts()} <= taken


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name not in OWN_COMMANDS])
def test_spark_takes_every_option(name):
    pytest.importorskip("pyarrow")
    from kdump.spark.source.options import OPTIONS

    taken = {part.name for option in OPTIONS for output, part in option.parts.items() if output == name}
    assert {one.name for one in question_named(name).parts()} == taken


def test_a_start_reads_the_names_of_questions_alone():
    code = "import sys\nsys.argv = ['kdump', '--help']\nfrom kdump.cli import main\nmain()\n"
    code += "print([name for name in sys.modules if name.startswith('kdump.answers')], file=sys.stderr)\n"
    assert python("-c", code, check=True).stderr.decode().split() == ["['kdump.answers']"]


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("statistics", {"records": "no"}, "records: expected True or False, found 'no'"),
        ("statistics", {"records": True, "top": 0}, "top: expected a number, 1 or more, found 0"),
        ("compaction", {"max_keys": 0}, "max_keys: expected a number, 1 or more, found 0"),
        ("compaction", {"top": True}, "top: expected a number, 0 or more, found True"),
        ("transactions", {"max_timeout": -1}, "max_timeout: expected milliseconds, 0 or more, found -1"),
        ("transactions", {"bootstrap_server": None}, "bootstrap_server: expected text, found None"),
        ("groups", {"retention_ms": "5"}, "retention_ms: expected milliseconds, 0 or more, found '5'"),
        ("groups", {"group": 5}, "5 is not a group id: group ids are text"),
        ("retention", {"config": 5}, "5 is not a config: configs are text"),
        ("offsets", {"times": ["x"]}, "'x' is not a time"),
        ("groups", {"top": "x"}, "top: expected 'bytes' or 'commits', found 'x'"),
        ("retention", {"release": "x"}, r"release: expected numbers such as \(3, 9\), found 'x'"),
    ],
)
def test_wrong_options_of_functions_are_wrong_usage(name, given, text):
    with pytest.raises(UsageError, match=text):
        getattr(kdump, name)(BROKER, **given)


@pytest.mark.parametrize(
    ("offset", "text"),
    [
        (None, "offset=None: expected a number, or a pair"),
        ((1,), r"offset=\(1,\): expected a number, or a pair"),
        ((5, 3), "offsets 5 to 3: expected 0 or more"),
        ((None, 3), "offsets None to 3: expected 0 or more"),
    ],
)
def test_offsets_to_explain(offset, text):
    with pytest.raises(UsageError, match=text):
        kdump.explain(BROKER, "txn", 0, offset)
    with pytest.raises(UsageError, match="is not a topic"):
        kdump.explain(BROKER, ["txn"], 0, 1)


def test_one_value_needs_no_list():
    one, two = (kdump.offsets(BROKER, topic="txn", times=times) for times in (0, [0]))
    assert (one.lines, len(one.lines)) == (two.lines, 1)
    config = "c-none:retention.ms=1"
    one, two = (kdump.retention(BROKER, topic="c-none", at=0, config=given) for given in (config, [config]))
    assert one.lines == two.lines
    assert one.lines != kdump.retention(BROKER, topic="c-none", at=0).lines


def test_codecs_to_try_may_be_one_text():
    one, two = (kdump.statistics(BROKER, topic="c-none", what_if=codecs) for codecs in ("zstd,none", ["zstd", "none"]))
    assert one.lines == two.lines
