"""Compile kdump/kernel beside its sources, as it is installed or so that errors of memory cannot hide.

    python -m tools.dev.build_kernel             the compiled kernel, optimised; what reads a batch checks bounds
    python -m tools.dev.build_kernel --bounds    with every check of bounds that single functions do without
    python -m tools.dev.build_kernel --address   with AddressSanitizer; prints what to put in front of a command
    python -m tools.dev.build_kernel --remove    back to plain Python
    python -m tools.dev.build_kernel --stamp     after an edit: the new stamps into the sources

Needs Cython and gcc. A kernel with AddressSanitizer runs under

    env LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc python ...
"""

import importlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

from kdump import kernel
from testing import ROOT
from tools import arguments

FOLDER = ROOT / "kdump" / "kernel"
FAST = ["-O3"]
ADDRESS = ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address"]


def target(name: str) -> Path:
    """Return where a module goes when it is compiled."""
    return FOLDER / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"


def remove() -> None:
    """Remove what is compiled."""
    for name in kernel.MODULES:
        target(name).unlink(missing_ok=True)


def build(flags: list[str], *, bounds: bool = False) -> None:
    """Compile the kernel with these flags of gcc. Raises subprocess.CalledProcessError; then nothing is compiled.

    ``bounds`` turns on the checks of Cython that the sources turn off, for the whole of them or for one function.
    """
    include = sysconfig.get_paths()["include"]
    remove()
    with tempfile.TemporaryDirectory() as temporary:
        root, built = Path(temporary, "sources"), []
        shutil.copytree(FOLDER, root / "kdump" / "kernel", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        (root / "kdump" / "__init__.py").touch()
        for source in (root / "kdump" / "kernel").glob("*.py") if bounds else ():
            source.write_text(_with_checks(source.read_text("utf-8")), "utf-8")
        for name in kernel.MODULES:
            code, library = Path(temporary, f"{name}.c"), Path(temporary, target(name).name)
            cython = [sys.executable, "-m", "cython", "-3", "-I", str(root), "-o", str(code)]
            subprocess.run([*cython, f"kdump/kernel/{name}.py"], check=True, cwd=root)
            subprocess.run(
                ["gcc", "-shared", "-fPIC", *flags, f"-I{include}", str(code), "-o", str(library)], check=True
            )
            built.append(library)
        for library in built:
            (FOLDER / library.name).write_bytes(library.read_bytes())


def _with_checks(source: str) -> str:
    """Return a source with every check of Cython on."""
    source = source.replace("wraparound=False", "wraparound=True").replace(
        "initializedcheck=False", "initializedcheck=True"
    )
    return source.replace("boundscheck(False)", "boundscheck(True)")


def write_stamps() -> None:
    """Write into each source the stamp that it should bear."""
    for name, stamp in kernel.stamps().items():
        path = FOLDER / f"{name}.py"
        text = path.read_text("utf-8")
        path.write_text(
            re.sub(r'^STAMP: Final = "\w*"', f'STAMP: Final = "{stamp}"', text, flags=re.MULTILINE), "utf-8"
        )


def in_python() -> SimpleNamespace:
    """Return the modules of the kernel as plain Python, whatever else is loaded."""
    names = {f"kdump.kernel.{name}": name for name in kernel.MODULES}
    kept: dict[str, ModuleType] = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    attributes = {name: getattr(kernel, name) for name in kernel.MODULES if hasattr(kernel, name)}
    finder = sys.path_importer_cache.get(str(FOLDER))
    try:
        kernel.only_sources()
        return SimpleNamespace(**{short: importlib.import_module(name) for name, short in names.items()})
    finally:
        for name, short in names.items():
            sys.modules.pop(name, None)
            vars(kernel).pop(short, None)
        sys.modules.update(kept)
        vars(kernel).update(attributes)
        sys.path_importer_cache[str(FOLDER)] = finder


def main() -> int:
    """Do what the command line asks for."""
    parser = arguments.parser(__doc__)
    parser.add_argument("--address", action="store_true", help="with AddressSanitizer")
    parser.add_argument("--bounds", action="store_true", help="with every check of bounds, in all functions")
    parser.add_argument("--remove", action="store_true", help="remove the compiled kernel")
    parser.add_argument("--stamp", action="store_true", help="write the stamps of the sources")
    options = parser.parse_args()
    if options.stamp:
        write_stamps()
        return 0
    if options.remove:
        remove()
        return 0
    build(ADDRESS if options.address else FAST, bounds=options.bounds)
    if options.address:
        command = ["gcc", "-print-file-name=libasan.so"]
        library = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        print(f"env LD_PRELOAD={library} ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc")
    else:
        print(*(target(name) for name in kernel.MODULES), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
