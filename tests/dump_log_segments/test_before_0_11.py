"""Wrappers as releases before 0.11 print them (recorded from 0.10.0.1, 0.9.0.1 and 0.10.2.2)."""

import gzip

import pytest

from testing import forge
from testing.processes import kdump


def plain(magic, offset):
    return forge.entry(offset, forge.message(magic, b"k", b"v%d" % offset))


def wrapper(magic, offset, inner):
    value = gzip.compress(inner, mtime=0)
    return forge.entry(offset, forge.message(magic, None, value, attributes=1))


def printed(tmp_path, release, data):
    """Return the exit status of a deep dump, and the number of messages it prints."""
    (tmp_path / f"{0:020}.log").write_bytes(data)
    done = kdump("--files", tmp_path / f"{0:020}.log", "--deep-iteration", "--compat", release)
    return done.returncode, done.stdout.count(b"\noffset: ")


@pytest.mark.parametrize(("release", "expected"), [("0.9.0.1", (0, 3)), ("0.10.0.1", (1, 0)), ("0.10.2.2", (0, 3))])
def test_only_0_10_0_refuses_a_message_of_another_magic_and_prints_none_of_its_wrapper(tmp_path, release, expected):
    data = wrapper(0, 1, plain(0, 0) + plain(1, 1)) + plain(0, 2)
    assert printed(tmp_path, release, data) == expected


@pytest.mark.parametrize("release", ["0.9.0.1", "0.10.0.1", "0.10.2.2"])
def test_a_wrapper_without_messages_is_passed_over(tmp_path, release):
    assert printed(tmp_path, release, wrapper(0, 0, b"") + plain(0, 1)) == (0, 1)


def test_0_10_2_leaves_a_message_of_a_magic_below_0_its_own_time(tmp_path):
    inner = [(0, forge.message(1, b"k", b"v", timestamp=7)), (1, forge.message(-1, b"k", b"v", timestamp=9))]
    (tmp_path / f"{0:020}.log").write_bytes(forge.wrapper(1, 1, inner, timestamp=500, attributes=1 | 8))
    done = kdump("--files", tmp_path / f"{0:020}.log", "--deep-iteration", "--compat", "0.10.2.2")
    times = [line.split(" isvalid")[0].split(" position: 0 ")[1] for line in done.stdout.decode().splitlines()[2:]]
    assert times == ["LogAppendTime: 500", "CreateTime: 9"]


@pytest.mark.parametrize(("release", "offsets"), [("0.10.1.1", [-6, -5]), ("0.10.2.2", [0, 1])])
def test_0_10_2_takes_inner_offsets_as_they_are_where_the_wrapper_has_a_lower_one(tmp_path, release, offsets):
    inner = [(number, forge.message(1, b"k", b"v")) for number in range(2)]
    (tmp_path / f"{0:020}.log").write_bytes(forge.wrapper(1, -5, inner))
    done = kdump("--files", tmp_path / f"{0:020}.log", "--deep-iteration", "--compat", release)
    assert [int(line.split()[1]) for line in done.stdout.decode().splitlines()[2:]] == offsets


def test_an_error_has_the_position_in_the_file(tmp_path):
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(plain(1, 0) + forge.entry(1, forge.message(1, b"k", b"v", attributes=6)))
    done = kdump("--files", log, "--deep-iteration", "--compat", "0.10.2.2")
    place = f"byte {len(plain(1, 0))}: {log}"
    assert done.stderr.decode() == f"error: {place}: this release has no compression codec 6 (found 6)\n"
