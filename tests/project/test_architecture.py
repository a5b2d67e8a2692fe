"""The architecture: the layer of each module, and who may import slow modules."""

import ast
import functools
import re
from itertools import chain, pairwise
from pathlib import Path

import pytest

from testing import ROOT
from testing.processes import kdump, python

PACKAGE = ROOT / "kdump"
LAYERS = """
    errors version
    findings
    primitives
    formats
    kernel
    internal_topics
    log_dirs
    output
    parallel
    records
    segments
    transaction_replay
    schemas
    rows
    recovery
    dump_log_segments
    log_reader
    checks
    log_salvage
    answers
    broker_start
    checking
    rebuild
    printers
    arrow
    report
    api
    questions
    queries
    mcp_server
    spark
    spark_source spark_export
    command_line
    commands
    cli
    __main__
"""
"""The packages in the order of imports: a module imports from earlier lines, and from its own package."""
LAYER = {room: layer for layer, line in enumerate(LAYERS.strip().splitlines()) for room in line.split()}
OWNERS = {
    "click": {"cli", "command_line", "commands"},
    "rich": {"printers.table", "printers.answer_terminal", "report.short"},
    "jinja2": {"report.page"},
    "vl_convert": {"report.drawing"},
    "pyspark": {"spark"},
    "duckdb": {"api", "queries"},
    "mcp": {"mcp_server"},
    "polars": {"arrow.files", "queries"},
    "zstandard": {"primitives.compression", "log_dirs.unpacking"},
    "lz4": {"primitives.compression", "log_dirs.unpacking"},
    "snappy": {"primitives.compression"},
    "isal": {"primitives.compression"},
    "crc32c": {"primitives.crc"},
    "crcmod": {"primitives.crc"},
    "cryptography": {"primitives.encryption"},
}
MODULES = sorted(PACKAGE.rglob("*.py"))
SOURCES = [*MODULES, *sorted(PACKAGE.rglob("*.pyx"))]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


NAMES = {name_of(path) for path in SOURCES}


def imports_of(path: Path) -> str:
    """Return the source of a module; of a Cython module only the import lines."""
    source = path.read_text()
    if path.suffix == ".py":
        return source
    lines = re.findall(r"^ *(?:from \S+ c?import .*|import .*)$", source, re.MULTILINE)
    return "\n".join(line.strip().replace(" cimport ", " import ") for line in lines)


@functools.cache
def syntax(source: str) -> ast.Module:
    """The syntax tree of a source; each is parsed once."""
    return ast.parse(source)


@functools.cache
def imports(source: str) -> set[str]:
    """Return every module that a source imports: at the top, late, or only for types."""
    found = set()
    for node in ast.walk(syntax(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def ours(source: str) -> set[str]:
    """Return the modules of kdump among them, by their names within the package."""
    found = set()
    for target in imports(source):
        package, _, rest = target.partition(".")
        while package == "kdump" and rest and rest not in NAMES:
            rest = rest.rpartition(".")[0]
        if package == "kdump" and rest:
            found.add(rest)
    return found


@functools.cache
def import_graph() -> dict[str, set[str]]:
    """The modules of kdump, each with those that it imports."""
    return {name_of(path): ours(imports_of(path)) for path in SOURCES if name_of(path) != "__init__"}


def upward(graph: dict[str, set[str]]) -> list[str]:
    """Return each import of a module from a layer that is not strictly lower than its own."""
    return [
        f"{name} imports {target}"
        for name, targets in sorted(graph.items())
        for target in sorted(targets)
        if (room := name.split(".")[0]) != (below := target.split(".")[0]) and not LAYER[below] < LAYER[room]
    ]


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the sets of modules with circular imports (strongly connected components)."""
    reached = {name: reachable(graph, name) for name in graph}
    found = {
        tuple(sorted(other for other in others if name in reached.get(other, ())))
        for name, others in reached.items()
        if name in others
    }
    return sorted(map(list, found))


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return every module that ``start`` imports, directly or indirectly."""
    reached, ways = set(), list(graph[start])
    while ways:
        way = ways.pop()
        if way not in reached:
            reached.add(way)
            ways += graph.get(way, ())
    return reached


def test_a_module_imports_from_lower_layers_or_its_own_package():
    assert upward(import_graph()) == []


def test_no_circle_of_imports():
    assert circles(import_graph()) == []


def test_every_room_has_a_layer():
    assert {name.split(".")[0] for name in import_graph()} <= set(LAYER)


@pytest.mark.parametrize(
    "source",
    [
        "from kdump.rows import columns",
        "from kdump.rows.columns import RECORD",
        "def late():\n    from kdump.rows import columns",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from kdump.rows.columns import Column",
    ],
)
def test_an_import_from_above_is_found_wherever_it_stands(source):
    assert upward({"segments.walk": ours(source)}) == ["segments.walk imports rows.columns"]
    assert upward({"segments.walk": ours("from kdump.formats import record_layout")}) == []


def test_an_import_of_the_same_layer_is_found():
    assert upward({"spark_source": ours("from kdump import spark_export")}) == ["spark_source imports spark_export"]


def test_a_circle_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_heavy_and_foreign_packages_have_one_owner(path):
    name = name_of(path)
    for target in imports(path.read_text()):
        allowed = OWNERS.get(target.split(".")[0])
        assert allowed is None or any(name == owner or name.startswith(owner + ".") for owner in allowed), target


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_asserts_on_input(path):
    assert not [node.lineno for node in ast.walk(syntax(path.read_text())) if isinstance(node, ast.Assert)]


def loose_texts(source):
    """Return the lines of texts that are statements inside functions, except those that describe an attribute."""
    functions = [node for node in ast.walk(syntax(source)) if isinstance(node, ast.FunctionDef)]
    blocks = [
        node.body
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.stmt) and hasattr(node, "body")
    ]
    return {
        after.lineno
        for before, after in chain.from_iterable(map(pairwise, blocks))
        if isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant | ast.JoinedStr)
        and not ast.unparse(before).startswith("self.")
    }


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_each_text_is_whole(path):
    assert loose_texts(path.read_text()) == set()


def test_the_rest_of_a_text_without_brackets_is_found():
    source = "def f(self):\n    self.a = 1\n    'its meaning'\n    if self:\n        b = 'one '\n        'two'\n"
    assert loose_texts(source) == {6}


def test_a_class_name_has_one_meaning():
    classes = [
        node.name
        for path in [*MODULES, *PACKAGE.rglob("*.pyi")]
        for node in ast.walk(syntax(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    assert {name for name in classes if classes.count(name) > 1} == set()


def test_help_imports_nothing_heavy():
    heavy = {
        "rich",
        "jinja2",
        "vl_convert",
        "pyarrow",
        "duckdb",
        "pyspark",
        "zstandard",
        "lz4",
        "snappy",
        "cramjam",
        "isal",
    }
    heavy |= {"cryptography"}
    code = (
        "import sys; sys.argv = ['kdump', '--help']\nfrom kdump.cli import main\nmain()\n"
        f"print(sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )
    done = python("-c", code, check=True)
    assert done.stderr.decode().split("\n")[-2] == "[]"


LOG = ROOT / "golden" / "brokers" / "4.2.2" / "c-none-0" / "00000000000000000000.log"
SLOW = {
    "base64",
    "pathlib",
    "urllib.parse",
    "json",
    "string",
    "heapq",
    "dataclasses",
    "tarfile",
    "subprocess",
    "multiprocessing",
}
"""Python modules that few runs need. Each takes as long to import as several of kdump's."""


@pytest.mark.parametrize(
    ("words", "needed", "most"),
    [
        (["--files", LOG], set(), 60),
        (["--help"], set(), 18),
        (["dump", LOG], set(), 99),
        (["dump", LOG, "-o", "jsonl"], {"json", "heapq"}, 94),  # click looks for options that are called like -o
        (["check", LOG], {"heapq"}, 95),
        (["verify-index", LOG], {"dataclasses", "heapq"}, 83),
        (["offsets", LOG], {"json", "dataclasses", "heapq"}, 96),
        (["report", "--help"], {"dataclasses", "pathlib"}, 66),
    ],
    ids=lambda value: " ".join(map(str, value[:1])) if isinstance(value, list) else None,
)
def test_a_start_imports_little(words, needed, most):
    words = list(map(str, ["kdump", *words]))
    code = (
        f"import sys; before = set(sys.modules); sys.argv = {words}\nfrom kdump.cli import main\nmain()\n"
        "print(*sorted({*sys.modules} - before), file=sys.stderr)"
    )
    imported = python("-c", code, check=True).stderr.decode().split("\n")[-2].split()
    assert {*imported} & SLOW <= needed
    assert len([name for name in imported if name.startswith("kdump")]) <= most
    if words[1] == "--help":
        commands = {name for name in imported if name.startswith(("kdump.commands.", "kdump.command_line."))}
        assert commands == {"kdump.commands.root", "kdump.commands.classic", "kdump.command_line.limit_options"}


def test_both_entries_start_it():
    assert b"Usage:" in kdump("--help").stdout


def test_contributing_names_every_room():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text.partition("| Room | Holds |")[2].partition("\n\n")[0]
    rooms = {name.split(".")[0] for name in import_graph()} - {"__main__"}
    assert [room for room in sorted(rooms) if f"`{room}.py`" not in table and f"`{room}/`" not in table] == []


@pytest.mark.parametrize("folder", ["kdump", "testing", "tools", "bench", "examples"])
def test_only_tests_import_tests(folder):
    found = [
        path
        for path in (ROOT / folder).rglob("*.py")
        if any(name.split(".")[0] == "tests" for name in imports(path.read_text()))
    ]
    assert found == []
