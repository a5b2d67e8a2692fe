# The commands that a contributor types. `just` alone lists them.
python := ".venv/bin/python"

_list:
    @just --list

# make .venv with all that tests need
setup:
    python3 -m venv .venv
    .venv/bin/pip install -q -U pip
    .venv/bin/pip install -q -e . --group dev --group docs

# run all tests, or those that are named
test *names:
    {{python}} -m pytest -n auto {{names}}

# style and types
check:
    .venv/bin/ruff check .
    .venv/bin/ruff format --check .
    .venv/bin/mypy

# format the code
format:
    .venv/bin/ruff format .

# compile the kernel after an edit
kernel:
    {{python}} -m tools.dev.build_kernel

# build the docs into build/site
docs:
    {{python}} -m mkdocs build --strict

# show the docs while they are edited
serve:
    {{python}} -m mkdocs serve

# write the outputs that the docs show anew
outputs:
    {{python}} -m tools.docs.shown
    {{python}} -m tools.docs.pictures

# feed broken input to every reader
fuzz count="10000":
    {{python}} -m tools.fuzz --count {{count}}

# measure kdump beside the original
bench:
    {{python}} -m bench

# what must hold for every change
ci:
    bash .ci/run
