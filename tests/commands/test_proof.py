"""The proof that a value is gone: where --grep searches, what --stats counts, and the status without a match."""

import json

import pytest

from kdump.primitives import compression
from testing import forge
from testing.processes import kdump
from tests.helpers import log_dirs

SECRET = b"jane@example.com"


def batch(offset, *, key=b"k", value=b"v", headers=(), codec=0):
    made = forge.record(key, value, headers=list(headers))
    body = compression.compress(codec, made) if codec else made
    return forge.batch([body], base_offset=offset, attributes=codec, count=1)


@pytest.fixture
def log_dir(tmp_path):
    """Two replicas of a partition, a deleted segment, a leftover folder."""
    one, two = tmp_path / "b1", tmp_path / "b2"
    plain = batch(0) + batch(1, codec=4) + batch(2)
    log_dirs.write(one, "orders-0", {0: plain, "00000000000000000000.log.deleted": batch(0)})
    log_dirs.write(one, f"gone-0.{'a' * 32}-delete", {0: batch(0)})
    log_dirs.write(two, "orders-0", {0: batch(0) + batch(1, codec=4)})
    return tmp_path


def search(*words, status):
    done = kdump("dump", *words, "--stats")
    assert done.returncode == status, done.stderr
    (line,) = [line for line in done.stderr.decode().splitlines() if line.startswith("kdump: stats ")]
    return json.loads(line.removeprefix("kdump: stats ")), done


PROOF = ("--grep", SECRET.decode(), "--grep-in", "key,value,headers", "--leftovers", "--every-replica")


def test_a_value_that_is_nowhere_is_proved_to_be_gone(log_dir):
    stats, done = search(log_dir / "b1", log_dir / "b2", *PROOF, "--fail-without-match", status=1)
    size = sum(path.stat().st_size for path in log_dir.rglob("*.log*"))
    assert stats == {
        "kind": "dumpStats", "segments": 4, "bytes": size, "segmentsRead": 4, "bytesRead": size, "batchesRead": 7,
        "recordsRead": 7, "found": 0, "damagedRanges": 0, "damagedBytes": 0, "unreadable": 0, "complete": True,
    }  # fmt: skip
    assert done.stdout == b""
    assert search(log_dir / "b1", *PROOF, status=0)[0]["found"] == 0  # the status is asked for


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
@pytest.mark.parametrize(
    ("where", "parts"),
    [
        ({"key": SECRET}, {"key", "value,key", None}),
        ({"value": b"<" + SECRET + b">"}, {"value", "value,key", None}),
        ({"headers": [(b"a", b"1"), (b"from", SECRET)]}, {"headers"}),
    ],
    ids=["key", "value", "header"],
)
def test_it_is_found_where_grep_looks(log_dir, where, parts, codec):
    log_dirs.write(log_dir / "b2", "orders-1", {0: batch(0) + batch(1, codec=codec, **where) + batch(2)})
    for part in ("key", "value", "headers", "value,key", None):
        words = () if part is None else ("--grep-in", part)
        stats, _ = search(
            log_dir, "--grep", SECRET.decode(), *words, "--fail-without-match", status=0 if part in parts else 1
        )
        assert stats["found"] == (part in parts), part


@pytest.mark.parametrize("name", ["orders-0/00000000000000000000.log.deleted", f"gone-0.{'a' * 32}-delete"])
def test_it_is_found_in_what_is_left_over_and_in_replicas(log_dir, name):
    place = log_dir / "b1" / name
    place = place / f"{0:020}.log" if place.is_dir() else place
    place.write_bytes(batch(0, headers=[(b"from", SECRET)]))
    assert search(log_dir, *PROOF, "--fail-without-match", status=0)[0]["found"] == 1
    assert search(log_dir, *PROOF[:4], "--fail-without-match", status=1)[0]["found"] == 0


def test_a_replica_is_searched_where_all_are_asked_for(log_dir):
    log_dirs.write(log_dir / "b2", "orders-0", {0: batch(0) + batch(1, value=SECRET)})
    assert search(log_dir, *PROOF, "--fail-without-match", status=0)[0]["found"] == 1


def test_what_cannot_be_read_is_no_proof(log_dir):
    bad = bytearray(batch(1, value=SECRET))
    bad[-3] ^= 1
    log_dirs.write(log_dir / "b1", "orders-0", {0: batch(0) + bytes(bad) + batch(2)})
    stats, done = search(log_dir, *PROOF, "--fail-without-match", status=3)
    assert (stats["complete"], stats["damagedRanges"], stats["damagedBytes"]) == (False, 1, len(bad))
    assert f"byte {len(batch(0))}: ".encode() in done.stderr
    path = log_dir / "b2" / "orders-0" / f"{0:020}.log"
    path.unlink()
    path.symlink_to("nowhere")
    stats, _ = search(log_dir, *PROOF, "--fail-without-match", status=1)
    assert (stats["complete"], stats["unreadable"]) == (False, 1)


def test_old_messages_and_a_limit(tmp_path):
    messages = b"".join(forge.entry(magic, forge.message(magic, b"k", b"v")) for magic in (0, 1))
    log_dirs.write(tmp_path, "old-0", {0: messages})
    assert search(tmp_path, "--count", status=0)[0]["recordsRead"] == 2
    stats, _ = search(tmp_path, "--limit", "1", status=0)
    assert (stats["complete"], stats["found"]) == (False, 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--grep-in", "headers"], "--grep-in needs --grep"),
        (["--grep", "x", "--grep-in", "header"], "did you mean 'headers'"),
        (["--stats", "--follow"], "--stats cannot be combined"),
        (["--stats", "--jobs", "2"], "--stats cannot be combined"),
        (["--fail-without-match", "--follow"], "cannot be combined with --follow"),
    ],
)
def test_wrong_usage(log_dir, words, said):
    done = kdump("dump", log_dir, *words)
    assert done.returncode == 2
    assert said in done.stderr.decode()
