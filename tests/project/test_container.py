"""The recipes of docs/container.md. A script replaces ``kubectl`` and works on a local folder instead of a pod."""

import os
import re
import shutil
import sys

import pytest

from testing import GOLDEN, ROOT
from testing.processes import python

RECIPES = re.findall(r"```sh\n(kubectl .*?)```", (ROOT / "docs/container.md").read_text(), re.DOTALL)
KUBECTL = """
import argparse, os, subprocess, sys

pod = os.environ["POD"]
line, _, command = "\\0".join(sys.argv[1:]).partition("\\0--\\0")
options = argparse.ArgumentParser(prog="kubectl", allow_abbrev=False)  # those of kubectl 1.32 that the recipes use
options.add_argument("verb", choices=("cp", "debug", "delete", "exec"))
options.add_argument("rest", nargs="+")
options.add_argument("-c", "--container")
options.add_argument("-i", action="store_true")
options.add_argument("-t", action="store_true")
options.add_argument("--same-node", action="store_true")
for name in ("profile", "image", "target", "copy-to", "keep-init-containers"):
    options.add_argument(f"--{name}")
given = options.parse_intermixed_args(line.split("\\0"))
if given.verb == "cp":
    name, _, path = given.rest[0].partition(":")
    os.makedirs(given.rest[1])
    depth = f"--strip-components={path.count('/')}"
    words = ["tar", "cf", "-", "-C", pod, path.lstrip("/")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as tar:
        subprocess.run(["tar", "xf", "-", "-C", given.rest[1], depth], stdin=tar.stdout, check=True)
elif command:
    words = [word.removeprefix("/proc/1/root") for word in command.split("\\0")]
    sys.exit(subprocess.run([pod + word if word.startswith("/") else word for word in words]).returncode)
"""
KDUMP = """
import sys
from kdump.__main__ import run

sys.exit(run())
"""


@pytest.fixture
def run(tmp_path):
    """Run a recipe in a new folder; ``kafka-0`` is a pod with a golden log dir."""
    shutil.copytree(GOLDEN / "brokers/4.2.2-live", tmp_path / "pod/var/lib/kafka/data")
    (tmp_path / "bin").mkdir()
    for name, body in {"kubectl": KUBECTL, "kdump": KDUMP}.items():
        (tmp_path / "bin" / name).write_text(f"#!{sys.executable}\n{body}")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "cwd").mkdir()
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "POD": str(tmp_path / "pod"), "PYTHONPATH": str(ROOT)}
    return lambda recipe: python(shell=f"set -e -o pipefail\n{recipe}", cwd=tmp_path / "cwd", env=env)


def test_the_page_has_recipes():
    assert [recipe.split()[1] for recipe in RECIPES] == ["exec", "cp", "debug", "debug"]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.splitlines()[0])
def test_a_recipe_runs(run, recipe):
    done = run(recipe)
    assert done.returncode == 0, done.stderr
    assert b"3 segments, 38 batches, 27.5 KiB (28,165 bytes) of log: nothing is wrong\n" in done.stdout
