"""Compile kdump/kernel.py beside its source, as it is installed or so that errors of memory cannot hide.

    python -m tools.build_kernel                   the compiled kernel, optimised; bounds are checked in every build
    python -m tools.build_kernel --address         with AddressSanitizer; prints what to put in front of a command
    python -m tools.build_kernel --remove          back to plain Python

Needs Cython and gcc. A kernel with AddressSanitizer runs under

    env LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc python ...
"""

import argparse
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "kdump" / "kernel.py"
TARGET = SOURCE.with_name(f"kernel{sysconfig.get_config_var('EXT_SUFFIX')}")
FAST = ["-O2"]
ADDRESS = ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address"]


def build(flags: list[str]) -> None:
    """Compile the kernel with these flags of gcc. Raises subprocess.CalledProcessError."""
    with tempfile.TemporaryDirectory() as temporary:
        code = Path(temporary, "kernel.c")
        cython = [sys.executable, "-m", "cython", "-3", "--module-name", "kdump.kernel", "-o", str(code), str(SOURCE)]
        subprocess.run(cython, check=True)
        include = sysconfig.get_paths()["include"]
        subprocess.run(["gcc", "-shared", "-fPIC", *flags, f"-I{include}", str(code), "-o", str(TARGET)], check=True)


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", action="store_true", help="with AddressSanitizer")
    parser.add_argument("--remove", action="store_true", help="remove the compiled kernel")
    options = parser.parse_args()
    if options.remove:
        TARGET.unlink(missing_ok=True)
        return 0
    build(ADDRESS if options.address else FAST)
    if options.address:
        command = ["gcc", "-print-file-name=libasan.so"]
        library = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        print(f"env LD_PRELOAD={library} ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc")
    else:
        print(TARGET)
    return 0


if __name__ == "__main__":
    sys.exit(main())
