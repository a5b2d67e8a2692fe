"""The verdict on log dirs of real brokers with one stated change each; the truth was seen by starting the broker.

``golden/verdict.tar.xz`` has one folder per case, ``golden/healthy.tar.xz`` folders with which nothing is wrong.
"""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from testing import GOLDEN
from testing.processes import kdump

NO_START, LOSES, MISSING, SAFE = "DO NOT START broker 1: ", "starts, but loses ", " are missing: ", "safe to start "


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """The folders of both archives."""
    place = tmp_path_factory.mktemp("cases")
    for name in ("verdict", "healthy"):
        with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
            archive.extractall(place, filter="tar")
    return place


def check(place, *paths, options=()):
    """The exit status, the lines of text, and the lines of JSON."""
    done = kdump("check", *options, *paths, cwd=place)
    lines = [json.loads(line) for line in kdump("check", "--json", *options, *paths, cwd=place).stdout.splitlines()]
    return done.returncode, done.stdout.decode(), lines


LEFT = {"torn-clean": {3}, "clean-index-beyond-log": {4}, "zeroepoch": {0, 4}}
"""Exit statuses after the commands, where something is left that a start truncates or rebuilds."""


def commands(text):
    """The commands of the verdict: the indented lines at the end."""
    lines = text.splitlines()
    ending = [at for at, line in enumerate(lines) if not line.startswith("  ")][-1]
    return [line.strip() for line in lines[ending + 1 :] if not line.startswith("  ...")]


def with_kdump():
    """The environment of a shell that finds this kdump."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("case", "status", "verdict", "named"),
    [
        ("swap0", 3, f"broker 1 {LOSES}20,000 records", "prices-0/00000000000000000000.log.swap"),
        ("swapclean", 0, SAFE, "it is deleted"),
        ("startgtend", 3, f"broker 1 {LOSES}10,000 records", "log-start-offset-checkpoint"),
        ("nopm", 3, f"broker 1 {LOSES}10,000 records", "topic_id: 6QeQf_naTECEAdchox7m4Q"),
        ("nopm-after", 3, "10,000 records" + MISSING, "-stray"),
        ("mlog-gone", 3, NO_START, "metadata log is missing or empty"),
        ("rmlog", 3, "10,000 records" + MISSING, "has one replica"),
        ("rmdir", 3, "10,000 records" + MISSING, "orders-0 is assigned to broker 1"),
        ("lost-disk", 3, "7,000 records" + MISSING, "directory.id not77NV0DWtv5eyQma6LCA"),
        ("zerometa", 3, "DO NOT START the broker: d1/meta.properties", "node.id=1"),
        ("jbod-sameid", 3, NO_START, "directory.id"),
        ("baklog", 3, NO_START, "backup.log"),
        ("baksnap", 3, NO_START, "old.snapshot"),
        ("dangling", 3, NO_START, "mv d1/orders-0 d1.aside/"),
        ("zeroepoch", 3, NO_START, "leader-epoch-checkpoint"),
        ("zeropm", 3, NO_START, "6QeQf_naTECEAdchox7m4Q"),
        ("dup-topic", 3, NO_START, "topic orders is there already"),
        ("emptyepoch", 4, SAFE, "fencing by epochs"),
        ("torn-clean", 3, "broker 1 " + LOSES, "mv d1/.kafka_cleanshutdown"),
        ("clean-index-beyond-log", 3, LOSES + "5 records", ".index"),
        ("jbod-cluster", 0, "log dirs of 2 brokers (broker 1 of cluster ", "--config node.id=N"),
        ("overflow", 3, "offsets are missing", "split"),
        ("epochlost", 4, "can be rebuilt", "another leader epoch"),
        ("zstd-bomb", 0, "nothing is wrong", "3 notes"),
    ],
)
def test_the_verdict(cases, case, status, verdict, named):
    place = cases / "verdict" / case
    paths = sorted(path.name for path in place.iterdir() if path.name in {"d1", "d2"}) or ["."]
    code, text, lines = check(place, *paths)
    assert code == status
    assert verdict in text
    assert named in text
    assert [line["status"] for line in lines if line["kind"] == "summary"] == [status]
    found = [line for line in lines if line["kind"] == "finding"]
    assert sum(line["findings"] for line in lines if line["kind"] == "summary") == len(found)


@pytest.mark.parametrize(
    "case",
    [
        "swap0",
        "startgtend",
        "nopm",
        "nopm-after",
        "jbod-sameid",
        "baklog",
        "baksnap",
        "zeropm",
        "zeroepoch",
        "zerometa",
        "dup-topic",
        "torn-clean",
        "clean-index-beyond-log",
    ],
)
def test_the_commands_of_the_verdict_mend_it(cases, tmp_path, case):
    subprocess.run(["cp", "-a", cases / "verdict" / case, tmp_path], check=True)
    place = tmp_path / case
    paths = sorted(path.name for path in place.iterdir())
    _, text, _ = check(place, *paths)
    for command in commands(text):
        subprocess.run(["bash", "-c", command], cwd=place, env=with_kdump(), check=True)
    assert check(place, *paths)[0] in LEFT.get(case, {0})


@pytest.mark.parametrize(
    ("case", "commands"),
    [
        (
            "zeroepoch",
            ["mkdir -p d1.aside/orders-0/ && mv d1/orders-0/leader-epoch-checkpoint d1.aside/orders-0/"],
        ),
        (
            "zeropm",
            [r"printf 'version: 0\ntopic_id: %s' 6QeQf_naTECEAdchox7m4Q > d1/orders-1/partition.metadata"],
        ),
    ],
)
def test_the_finding_has_the_commands(cases, case, commands):
    _, _, lines = check(cases / "verdict" / case, "d1")
    assert [line["commands"] for line in lines if line["kind"] == "finding" and line["fatal"]] == [commands]


def test_a_dangling_link_is_moved_away_once_its_disk_is_lost(cases, tmp_path):
    """Nothing is removed; what is missing then is said."""
    subprocess.run(["cp", "-a", cases / "verdict" / "dangling", tmp_path], check=True)
    place = tmp_path / "dangling"
    for command in commands(check(place, "d1")[1]):
        subprocess.run(["bash", "-c", command], cwd=place, env=with_kdump(), check=True)
    assert (place / "d1.aside" / "orders-0").is_symlink()
    code, text, _ = check(place, "d1")
    assert code == 3
    assert "10,000 records are missing" in text


@pytest.mark.parametrize("case", ["client-without-producer", "follower-of-compacted", "three-clean-stops"])
def test_no_false_alarm(cases, case):
    code, text, _ = check(cases / "healthy" / case, ".")
    assert (code, "what to do" in text) == (0, False)


def test_no_other_replica_is_named_where_there_is_none(cases, tmp_path):
    """The high watermark, a gap and a file of a partition with one replica."""
    subprocess.run(["cp", "-a", cases / "verdict" / "baklog", tmp_path], check=True)
    folder = tmp_path / "baklog" / "d1" / "orders-0"
    log = folder / f"{0:020}.log"
    data = log.read_bytes()
    log.write_bytes(data[: len(data) // 3] + bytes(100) + data[len(data) // 2 : -len(data) // 4])
    for name in ("00000000000000000000.index", "00000000000000000000.timeindex", "leader-epoch-checkpoint"):
        (folder / name).write_bytes(b"\0" * 7)
    _, text, _ = check(tmp_path / "baklog", "d1", options=("--notes",))
    assert "nother replica" not in text
    assert "has one replica" in text
