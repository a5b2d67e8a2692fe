"""``kdump check --remote`` where the private key of encrypted segments is not given."""

import shutil

import pytest

from testing import GOLDEN
from testing.processes import kdump

TIERED = GOLDEN / "tiered"
KEY = ("--remote-key", f"key1={TIERED / 'private.pem'}")


@pytest.fixture
def store(tmp_path):
    return shutil.copytree(TIERED / "store", tmp_path / "store")


def check(store, *more):
    done = kdump("check", TIERED / "logs", "--remote", store, *more)
    damaged = [line.strip() for line in done.stdout.decode().splitlines() if line.strip().startswith("DAMAGED")]
    return done.returncode, damaged, done.stderr.decode()


def test_encrypted_segments_without_the_key_are_unreadable(store):
    code, damaged, said = check(store)
    assert (code, damaged) == (1, [])
    assert (
        "The records of 6 segments in remote storage were not checked: kdump checked only that the objects exist"
        in said
    )
    assert "--remote-key key1=PRIVATE.pem" in said
    assert check(store, *KEY) == (0, [], "")


def test_an_object_that_is_absent_is_found_with_the_key_and_without(store):
    lost = min(store.glob("*/0/*.log"))
    lost.unlink()
    missing = ["DAMAGED the segment is listed as copied (offsets 0 to 20), but is not in remote storage"]
    assert check(store)[:2] == check(store, *KEY)[:2] == (1, missing)


def test_an_object_of_another_size_is_found_without_the_key(store):
    lost = min(store.glob("*/0/*.log"))
    lost.write_bytes(lost.read_bytes()[:-5])
    assert "according to its manifest" in check(store)[2]
