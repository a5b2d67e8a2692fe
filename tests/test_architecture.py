"""The house: which layer a module stands in, and who may import what is heavy."""

import ast
from pathlib import Path

import pytest

from tests.support import ROOT, kdump, python

PACKAGE = ROOT / "kdump"
LAYERS = {
    0: ["errors"],
    1: ["wire", "crc", "codecs", "pieces", "text", "lines", "cache", "findings", "hash_order"],
    2: ["formats", "kernel"],
    3: ["files", "ahead", "archives", "inputs", "runs", "segment", "salvage", "outputs", "stdout"],
    4: [
        "checks",
        "transactions",
        "anatomy",
        "decoded",
        "outcomes",
        "select",
        "recovery",
        "overflow",
        "merge",
        "salvaged",
        "rows",
        "found",
        "unread",
        "seek",
        "dialects",
        "rebuild",
    ],
    5: ["redact", "follow", "printers", "api", "spark_source"],
    6: ["spark_export"],
    7: ["commands"],
    8: ["cli", "__main__"],
}
LAYER = {room: layer for layer, rooms in LAYERS.items() for room in rooms}
OWNERS = {
    "click": {"cli", "commands"},
    "rich": {"printers.table", "printers.findings_table"},
    "pyspark": {"spark_source", "spark_export"},
    "zstandard": {"codecs", "archives"},
    "lz4": {"codecs"},
    "snappy": {"codecs"},
    "crc32c": {"crc"},
    "crcmod": {"crc"},
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> set[str]:
    """Every module that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_from_lower_layers_or_its_own_package(path):
    name = name_of(path)
    room = name.split(".")[0]
    if name == "__init__":
        return
    assert room in LAYER, f"{name} has no place in the table of layers"
    for target in imports(path):
        parts = target.split(".")
        if parts[0] != "kdump" or len(parts) == 1 or parts[1] not in LAYER or parts[1] == room:
            continue
        same_layer = LAYER[parts[1]] == LAYER[room]
        assert LAYER[parts[1]] < LAYER[room] or same_layer, f"{name} imports {target} from a higher layer"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_heavy_and_foreign_packages_have_one_owner(path):
    name = name_of(path)
    for target in imports(path):
        allowed = OWNERS.get(target.split(".")[0])
        assert allowed is None or any(name == owner or name.startswith(owner + ".") for owner in allowed), target


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_asserts_on_input(path):
    assert not [node.lineno for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)]


def test_help_imports_nothing_heavy():
    heavy = {"rich", "pyarrow", "pyspark", "zstandard", "lz4", "snappy", "cramjam"}
    code = (
        "import sys; sys.argv = ['kdump', '--help']\nfrom kdump.cli import main\nmain()\n"
        f"print(sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )
    done = python("-c", code, check=True)
    assert done.stderr.decode().split("\n")[-2] == "[]"


def test_both_entries_start_it():
    assert b"Usage:" in kdump("--help").stdout


def test_contributing_names_every_room():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text.partition("| Room | Holds |")[2].partition("\n\n")[0]
    rooms = set(LAYER) - {"__main__"}
    assert [room for room in sorted(rooms) if f"`{room}.py`" not in table and f"`{room}/`" not in table] == []
