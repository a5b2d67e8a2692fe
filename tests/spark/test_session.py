"""What Spark needs to start, and what must not run in its workers."""

import os
import site
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kdump.command_line.options import with_packages
from kdump.errors import KdumpError, UsageError
from kdump.log_dirs import stores
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
    """Run kdump with all installed packages except pyspark; the folders of ``more`` come first."""
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
    assert done.stderr == "error: pyspark not installed: pip install 'kdump[spark]'\n"


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
    assert done.stderr == f"error: {says}\n"


def test_the_release_that_is_installed_is_new_enough():
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
    session.check_version()


def test_a_program_that_registers_the_source_gets_the_error_too(monkeypatch, tmp_path):
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


def test_the_environment_of_aws_reaches_hadoops_client(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    name = "spark.hadoop.fs.s3a."
    assert session._of_s3({}) == {}
    own = {f"{name}endpoint": "http://minio:9000"}
    assert session._of_s3(own) == {**own, f"{name}endpoint.region": "us-east-1"}
    assert session._of_s3({f"{name}endpoint": "s3.eu-west-1.amazonaws.com"}) == {
        f"{name}endpoint": "s3.eu-west-1.amazonaws.com"
    }
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://other:9000")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert session._of_s3({}) == {
        f"{name}endpoint": "http://other:9000",
        f"{name}endpoint.region": "eu-north-1",
        f"{name}path.style.access": "true",
    }


def test_settings_of_stores_are_known_before_spark_starts(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv(stores.VARIABLE, raising=False)
    session.use_stores(session.configured({"spark.executor.memory": "4g"}))
    assert stores.VARIABLE not in os.environ
    (tmp_path / "spark-defaults.conf").write_text(
        "# spark.hadoop.fs.s3a.endpoint no\nspark.hadoop.fs.s3a.endpoint  http://a:9000 \n"
        "spark.hadoop.fs.s3a.access.key=key\nspark.executor.memory 4g\n\n"
    )
    monkeypatch.setenv(stores.VARIABLE, "")  # so that it is restored
    monkeypatch.delenv(stores.VARIABLE)
    session.use_stores(session.configured({"spark.hadoop.fs.s3a.access.key": "given"}))
    assert stores.settings() == {"fs.s3a.endpoint": "http://a:9000", "fs.s3a.access.key": "given"}


def test_a_store_without_a_client_is_refused_before_spark_starts(monkeypatch, tmp_path):
    (tmp_path / "jars").mkdir()
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    (tmp_path / "jars" / "hadoop-client-api-3.4.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr(session, "find_spec", lambda _: SimpleNamespace(origin=str(tmp_path / "pyspark/__init__.py")))
    for path in ("/out", "out", "hdfs://node/out", "file:///out"):
        session.check_store(path, {})
    with pytest.raises(KdumpError, match=r"--packages org\.apache\.hadoop:hadoop-aws:3\.4\.1$"):
        session.check_store("s3a://logs/out", {"spark.executor.memory": "4g"})
    with pytest.raises(KdumpError, match=r"--packages org\.apache\.hadoop:hadoop-azure:3\.4\.1$"):
        session.check_store("abfss://x@y/out", {})
    session.check_store("s3a://logs/out", {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.4.1"})
    (tmp_path / "jars" / "hadoop-aws-3.4.1.jar").touch()
    session.check_store("s3a://logs/out", {})


def test_packages_are_added_to_those_of_the_settings():
    assert with_packages({"a": "b"}, ()) == {"a": "b"}
    assert with_packages({}, ("x:y:1", "x:z:1")) == {"spark.jars.packages": "x:y:1,x:z:1"}
    assert with_packages({"spark.jars.packages": "q"}, ("x:y:1",)) == {"spark.jars.packages": "q,x:y:1"}


def test_a_writer_that_nothing_brings_is_refused_before_spark_starts(monkeypatch, tmp_path):
    (tmp_path / "jars").mkdir()
    (tmp_path / "conf").mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    with pytest.raises(UsageError, match=r"^--format delta: Spark itself has no writer of this name; add a package"):
        session.check_writer("delta", {"spark.executor.memory": "4g"})
    session.check_writer("delta", {"spark.jars.packages": "io.delta:delta-spark_2.13:4.0.0"})
    session.check_writer("com.example.Writer", {})
    (tmp_path / "jars" / "delta-spark_2.13-4.0.0.jar").touch()
    session.check_writer("delta", {})
    (tmp_path / "jars" / "avro-1.12.1.jar").touch()
    with pytest.raises(UsageError, match=r"^--format avro: Spark itself has no writer of this name; add a package"):
        session.check_writer("avro", {})
    (tmp_path / "jars" / "spark-avro_2.13-4.1.0.jar").touch()
    session.check_writer("avro", {})
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.jars /opt/iceberg.jar\n")
    session.check_writer("iceberg", session.configured({}))


def test_an_error_of_java_at_the_start_is_an_error_of_kdump(monkeypatch):
    from py4j.protocol import Py4JError
    from pyspark.sql import SparkSession

    def fails(_):
        raise Py4JError("java.net.BindException: cannot bind")

    monkeypatch.setenv("PYSPARK_PYTHON", "")
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "")
    monkeypatch.setattr(session, "_keep_code_out", lambda: None)  # it changes the environment for good
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", fails)
    with pytest.raises(KdumpError, match=r"does not start on local\[1\]: java.net.BindException"):
        session.start("local[1]", {"spark.pyspark.driver.python": "/opt/python"})
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == "/opt/python"
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
