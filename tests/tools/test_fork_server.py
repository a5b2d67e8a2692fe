"""A forked run of kdump equals a run in a new process: streams, folder, environment, umask and exit status."""

import os
import subprocess

import pytest

from testing import GOLDEN, fork_server
from testing.processes import kdump, python

LOG = GOLDEN / "brokers/4.2.2/one-0/00000000000000000000.log"


def both(*words, **options):
    """Run kdump in a forked process and in a new one; return both results."""
    assert fork_server.server().suits(options.get("env", os.environ))
    forked, own = kdump(*words, **options), python("-m", "kdump", *words, **options)
    return [(done.returncode, done.stdout, done.stderr) for done in (forked, own)]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--files", LOG, "--print-data-log"],
        ["check", LOG.parent],
        ["nonsense"],
        ["dump", "absent"],
        ["dump", LOG, "-o", "jsonl"],
        ["--version"],
        ["sql", "SELECT topic, count(*) AS n FROM records GROUP BY topic", LOG.parent],
        ["dump", LOG.parent, "-o", "arrow"],
        ["dump", "--help"],
    ],
    ids=lambda words: " ".join(str(word).rpartition("/")[2] for word in words) or "none",
)
def test_output_and_exit_status_are_those_of_a_start_of_its_own(words):
    forked, own = both(*words)
    assert forked == own


def test_standard_input_is_written_whole():
    log = LOG.read_bytes() * 5000
    forked, own = both("dump", "-", "--count", input=log)
    assert forked == own
    assert forked[1]


def test_text_and_names_that_are_no_text(tmp_path):
    name = os.fsdecode(b"\xff.log")
    (tmp_path / name).write_bytes(LOG.read_bytes())
    forked, own = both("dump", name, cwd=tmp_path)
    assert forked == own
    forked, own = both("check", "absent", encoding="utf-8")
    assert forked == own
    assert isinstance(forked[2], str)


def test_streams_may_be_files_or_one_another(tmp_path):
    with (tmp_path / "out").open("w+b") as out:
        done = kdump("dump", "absent", stdout=out, stderr=subprocess.STDOUT)
        out.seek(0)
        assert (done.returncode, done.stdout, done.stderr) == (1, None, None)
        assert b"absent" in out.read()


def test_the_environment_and_the_umask_of_the_caller_count(tmp_path):
    environ = {**os.environ, "COLUMNS": "60"}
    forked, own = both("du", LOG.parent, env=environ)
    assert forked == own
    before = os.umask(0o077)
    try:
        kdump("slice", LOG.parent, "--offset", "0", "--out", tmp_path / "cut.log", check=True)
    finally:
        os.umask(before)
    assert (tmp_path / "cut.log").stat().st_mode & 0o777 == 0o600


def test_an_environment_that_python_reads_at_its_start_gets_a_start_of_its_own():
    assert not fork_server.server().suits({**os.environ, "KDUMP_KERNEL": "off"})
    assert b"turned off" in kdump("--version", env={**os.environ, "KDUMP_KERNEL": "off"}).stdout


def test_a_run_that_takes_too_long_is_killed(tmp_path):
    os.mkfifo(tmp_path / "no end")
    writer = os.open(tmp_path / "no end", os.O_RDWR)
    try:
        with open(tmp_path / "no end", "rb") as stdin, pytest.raises(subprocess.TimeoutExpired):  # noqa: PTH123  a pipe
            kdump("dump", "-", stdin=stdin, timeout=0.1)
    finally:
        os.close(writer)


def test_a_status_may_be_checked():
    with pytest.raises(subprocess.CalledProcessError, match="non-zero exit status 2"):
        kdump("nonsense", check=True)
