"""All parts of the kernel are used or none, and kdump gives the same answers without it."""

import os
import shutil
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES

import pytest

from kdump import kernel
from testing import GOLDEN, ROOT
from testing.processes import kdump, python

ALONE = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "KDUMP_KERNEL"}}
OFF = {**os.environ, "KDUMP_KERNEL": "off"}
BUILD = "from kdump import kernel; print(kernel.COMPILED, kernel.build())"


@pytest.fixture(scope="module")
def zipped(tmp_path_factory):
    """kdump in a zip archive, as byte code, which cannot contain compiled modules."""
    path = tmp_path_factory.mktemp("zipped") / "kdump.zip"
    with zipfile.PyZipFile(path, "w") as archive:
        archive.writepy(str(ROOT / "kdump"))
        archive.write(ROOT / "kdump" / "rows" / "schema.json", "kdump/rows/schema.json")
    return {**os.environ, "PYTHONPATH": str(path)}


def test_only_what_says_so_in_its_name_needs_the_kernel(zipped, tmp_path):
    code = """if True:
    import importlib, pkgutil, kdump
    for module in pkgutil.walk_packages(kdump.__path__, "kdump."):
        try:
            module.name.endswith("__main__") or importlib.import_module(module.name)
        except ImportError as error:
            print(module.name, error.name)
    """
    lines = python("-c", code, cwd=tmp_path, env=zipped, check=True).stdout.decode().splitlines()
    needing = {module for module, missing in map(str.split, lines) if missing.startswith("kdump.")}
    assert needing == {
        "kdump.dump_log_segments.decoders.kernel_texts",
        "kdump.dump_log_segments.kernel_lines",
        "kdump.printers.kernel_rows",
        "kdump.printers.kernel_tables",
        "kdump.schemas.kernel_tables",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["dump", "--count"],
        ["dump", "-o", "jsonl"],
        ["check"],
        ["verify-index"],
        ["diff", GOLDEN / "brokers" / "4.2.2" / "txn-0"],
        ["--print-data-log", "--files"],
    ],
    ids=lambda arguments: " ".join(map(str, arguments[:2])),
)
def test_kdump_answers_the_same_without_the_kernel(arguments, zipped, tmp_path):
    folder = GOLDEN / "brokers" / "4.2.2" / "txn-0"
    path = next(folder.glob("*.log")) if arguments[-1] == "--files" else folder
    done, want = kdump(*arguments, path, cwd=tmp_path, env=zipped), kdump(*arguments, path)
    assert (done.returncode, done.stdout) == (want.returncode, want.stdout), done.stderr.decode()


def copy_of_sources(folder):
    shutil.copytree(ROOT / "kdump", folder / "kdump", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    return folder / "kdump" / "kernel"


def built(folder):
    return python("-c", BUILD, cwd=folder, env=ALONE, check=True).stdout.decode().strip()


def test_version_says_whether_there_is_a_kernel():
    assert f"kernel: {kernel.build()})".encode() in kdump("--version").stdout
    assert b"kernel: none, turned off by KDUMP_KERNEL)" in kdump("--version", env=OFF).stdout


def test_a_part_of_the_kernel_is_none(tmp_path):
    package = copy_of_sources(tmp_path)
    for name in (kernel.SHARED, *kernel.MODULES[1:]):
        (package / f"{name}{EXTENSION_SUFFIXES[0]}").write_bytes(b"no library")
    assert built(tmp_path) == "False none, records not compiled"


def test_a_kernel_that_cannot_be_loaded_is_none(tmp_path):
    package = copy_of_sources(tmp_path)
    for name in (kernel.SHARED, *kernel.MODULES):
        (package / f"{name}{EXTENSION_SUFFIXES[0]}").write_bytes(b"no library")
    assert built(tmp_path).startswith("False none, cannot be loaded (")


def test_modules_that_another_python_compiled_are_none(tmp_path):
    package = copy_of_sources(tmp_path)
    for name in (kernel.SHARED, *kernel.MODULES):
        other = f"{name}.cpython-399-x86_64-linux-gnu{EXTENSION_SUFFIXES[-1]}"
        (package / other).write_bytes(b"no library")
    assert built(tmp_path) == "False none, not compiled"


@pytest.mark.skipif(not kernel.COMPILED, reason="there is no kernel")
def test_a_kernel_of_other_sources_is_none(tmp_path):
    shutil.copytree(ROOT / "kdump", tmp_path / "kdump", ignore=shutil.ignore_patterns("__pycache__"))
    assert built(tmp_path) == "True compiled"
    start = tmp_path / "kdump" / "kernel" / "__init__.py"
    line = f"VERSION: Final = {kernel.VERSION}\n"
    assert start.read_text().count(line) == 1
    start.write_text(start.read_text().replace(line, f"VERSION: Final = {kernel.VERSION + 1}\n"))
    assert built(tmp_path) == "False none, compiled from other sources, install kdump again"


def test_the_modules_are_the_sources_of_the_folder():
    folder = ROOT / "kdump" / "kernel"
    assert {path.stem for path in folder.glob("*.pyx")} == set(kernel.MODULES)
    assert {path.stem for path in folder.glob("*.pyi")} == set(kernel.MODULES)
