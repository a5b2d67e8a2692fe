"""Compile kdump/kernel in place, optimised or with checks of memory accesses.

    python -m tools.dev.build_kernel             the kernel, optimised.
    python -m tools.dev.build_kernel --bounds    with the checks of bounds that single functions do without, but for the
                                                 reading of numbers, which --address watches.
    python -m tools.dev.build_kernel --address   with AddressSanitizer and UndefinedBehaviorSanitizer; prints the
                                                 words to put before a command.
    python -m tools.dev.build_kernel --remove    without a kernel

Needs Cython and gcc. A kernel with the sanitizers runs under the following, and ends the process at the first fault.

    env LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc python ...
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kdump import kernel
from testing import ROOT
from tools import arguments

FOLDER = ROOT / "kdump" / "kernel"
FAST = ["-O3"]
ADDRESS = ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


def target(name: str) -> Path:
    """Return the path of a compiled module."""
    return FOLDER / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"


def remove() -> None:
    """Remove the compiled modules."""
    for name in (kernel.SHARED, *kernel.MODULES):
        target(name).unlink(missing_ok=True)


def build(flags: list[str], *, bounds: bool = False) -> None:
    """Compile the kernel with these flags of gcc. Raises subprocess.CalledProcessError; then nothing is compiled.

    ``bounds`` turns on the checks of Cython that the sources turn off, for the whole of them or for one function.
    """
    remove()
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(os.cpu_count()) as compilers:
        root = Path(temporary)
        package = root / "kdump" / "kernel"
        shutil.copytree(FOLDER, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        (root / "kdump" / "__init__.py").touch()
        for source in package.glob("*.pyx") if bounds else ():
            source.write_text(_with_checks(source.read_text("utf-8")), "utf-8")
        _translate(root)
        names = (kernel.SHARED, *kernel.MODULES)
        for library in list(compilers.map(lambda name: _compile(root, name, flags), names)):
            (FOLDER / library.name).write_bytes(library.read_bytes())


def _translate(root: Path) -> None:
    """Translate the package under ``root`` to C, all modules in one process, because importing Cython is slow."""
    cython = [sys.executable, "-m", "cython", "-3"]
    options = ["-X", "show_performance_hints=False", f"--shared=kdump.kernel.{kernel.SHARED}", "-I", str(root)]
    sources = [f"kdump/kernel/{name}.pyx" for name in kernel.MODULES]
    subprocess.run([*cython, *options, *sources], check=True, cwd=root)
    subprocess.run([*cython, f"--generate-shared=kdump/kernel/{kernel.SHARED}.c"], check=True, cwd=root)


def _compile(root: Path, name: str, flags: list[str]) -> Path:
    """Compile the C source of one module of the package under ``root``; return the library."""
    code, library = root / "kdump" / "kernel" / f"{name}.c", root / target(name).name
    include = f"-I{sysconfig.get_paths()['include']}"
    subprocess.run(["gcc", "-shared", "-fPIC", *flags, include, str(code), "-o", str(library)], check=True)
    return library


def _with_checks(source: str) -> str:
    source = source.replace("wraparound=False", "wraparound=True").replace(
        "initializedcheck=False", "initializedcheck=True"
    )
    return source.replace("boundscheck(False)", "boundscheck(True)")


def main() -> int:
    """Run the command line."""
    parser = arguments.parser(__doc__)
    parser.add_argument("--address", action="store_true", help="with AddressSanitizer and UndefinedBehaviorSanitizer")
    parser.add_argument("--bounds", action="store_true", help="with every check of bounds, in all functions")
    parser.add_argument("--remove", action="store_true", help="remove the compiled kernel")
    options = parser.parse_args()
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
