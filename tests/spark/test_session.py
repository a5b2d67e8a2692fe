"""What must be there for Spark, and what must not run in its workers."""

import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

from kdump.errors import KdumpError
from kdump.spark import session
from testing import GOLDEN, ROOT, forge
from tests.conftest import java_is_missing

COMMANDS = {
    "spark-export": ["spark-export", "in", "--out", "out"],
    "check": ["check", "in", "--master", "local[1]"],
    "stats": ["stats", "in", "--master", "local[1]"],
}


@pytest.fixture
def without_spark(tmp_path):
    """Run kdump where all that is installed is there but pyspark; the folders of ``more`` come first."""
    installed = tmp_path / "installed"
    installed.mkdir()
    folders = [path for path in map(Path, site.getsitepackages()) if path.is_dir()]
    folders += [Path(line) for folder in folders for pth in folder.glob("*.pth") for line in lines(pth)]
    for folder in folders:
        for path in folder.iterdir() if folder.is_dir() else ():
            if not path.name.startswith(("pyspark", "py4j")) and not (installed / path.name).exists():
                (installed / path.name).symlink_to(path)
    (tmp_path / "in" / "t-0").mkdir(parents=True)
    (tmp_path / "in" / "t-0" / f"{0:020}.log").write_bytes(forge.batch([forge.record(b"k", b"v")]))

    def run(*words, more=()):
        path = os.pathsep.join(map(str, [*more, ROOT, installed]))
        env = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
        command = [sys.executable, "-S", "-m", "kdump", *words]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    return run


def lines(file):
    return [line for line in file.read_text().splitlines() if line and not line.startswith(("import", "#"))]


@pytest.mark.parametrize("command", COMMANDS)
def test_one_line_says_that_spark_is_not_installed(without_spark, command):
    done = without_spark(*COMMANDS[command])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "kdump: pyspark not installed; to get it: pip install 'kdump[spark]'\n"


@pytest.mark.parametrize("release", ["3.5.5", "3.4.0.dev0"])
@pytest.mark.parametrize("command", COMMANDS)
def test_one_line_says_that_spark_is_too_old(without_spark, command, release, tmp_path):
    old = tmp_path / "old" / "pyspark"
    old.mkdir(parents=True)
    (old / "__init__.py").write_text("raise ImportError('it does not import with this Python')\n")
    (old / "version.py").write_text(f'# License\n\n__version__: str = "{release}"\n')
    done = without_spark(*COMMANDS[command], more=[old.parent])
    assert (done.returncode, done.stdout) == (1, "")
    says = f"PySpark {release} is installed, and kdump needs 4.0 or later; to get it: pip install 'kdump[spark]'"
    assert done.stderr == f"kdump: {says}\n"


def test_the_release_that_is_installed_is_new_enough():
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
    session.check_version()


def test_a_program_that_registers_the_source_is_told_too(monkeypatch, tmp_path):
    from kdump import spark_source

    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    (tmp_path / "pyspark" / "version.py").write_text("__version__ = '3.5.0'\n")
    real = session.find_spec
    spec = type("Spec", (), {"origin": str(tmp_path / "pyspark" / "__init__.py")})
    monkeypatch.setattr(session, "find_spec", lambda name: spec if name == "pyspark" else real(name))
    with pytest.raises(KdumpError, match=r"PySpark 3\.5\.0 is installed"):
        spark_source.register(None)


@pytest.mark.xdist_group("spark-processes")
@pytest.mark.parametrize("words", [["check", "in", "--master", "local[1]"], ["spark-export", "in", "--out", "out"]])
def test_no_code_of_the_current_folder_or_the_one_above_runs(tmp_path, words):
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
    if reason := java_is_missing():
        pytest.skip(reason)
    here = tmp_path / "a" / "b"
    here.mkdir(parents=True)
    mark = tmp_path / "it ran"
    code = f"open({str(mark)!r}, 'a').write(__name__)\n"
    for name in ("pyspark", "kdump", "socket", "json", "pyarrow", "click", "sitecustomize"):
        (here / f"{name}.py").write_text(code)
    (here.parent / "jars").mkdir()
    (here.parent / "bin").mkdir()
    script = here.parent / "bin" / "spark-submit"
    script.write_text(f"#!/bin/sh\necho spark-submit >> '{mark}'\nexit 1\n")
    script.chmod(0o755)
    (here / "in").symlink_to(GOLDEN / "brokers" / "4.2.2" / "one-0")
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONSAFEPATH", "SPARK_HOME"}}
    env["PYTHONPATH"] = str(ROOT)
    start = "import sys; sys.path[:] = [one for one in sys.path if one]; from kdump.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", start, *words], cwd=here, env=env, capture_output=True, text=True, check=False
    )
    assert not mark.exists(), mark.read_text()
    assert done.returncode == 0, done.stderr
