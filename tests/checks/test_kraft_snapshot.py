"""Snapshots of the metadata log: everything that prevents a node from starting with one is reported."""

import json
import shutil
import struct

import pytest

from testing import GOLDEN, forge
from testing.processes import kdump

SOURCE = GOLDEN / "brokers" / "4.2.2" / "__cluster_metadata-0"
NAME = f"{77:020}-{1:010}.checkpoint"


def control(offset, kind, value, *, epoch=1):
    record = forge.record(struct.pack(">hh", 0, kind), value)
    return forge.batch([record], base_offset=offset, attributes=0x20, leader_epoch=epoch)


def feature(offset, value=b"\1\x0c\0\x02f\0\x05\0"):
    return forge.batch([forge.record(None, value)], base_offset=offset, leader_epoch=1)


HEADER, FOOTER = control(0, 3, b"\0\0" + bytes(8) + b"\0"), control(2, 4, b"\0\0\0")
SOUND = HEADER + feature(1) + FOOTER


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    return folder


def findings(path, *options, status=3):
    done = kdump("check", "--json", *options, path)
    assert done.returncode == status, (done.stdout, done.stderr)
    return [line for line in map(json.loads, done.stdout.splitlines()) if line["kind"] == "finding"]


def test_a_sound_one_is_silent_alone_and_in_its_folder(place):
    (place / NAME).write_bytes(SOUND)
    for path in (place, place.parent, place / NAME):
        done = kdump("check", "-q", path)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert b"1 segment, 3 batches" in kdump("check", place).stdout


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        (b"", {"snapshot header"}),
        (HEADER, {"snapshot footer"}),
        (HEADER + feature(1), {"snapshot footer"}),
        (SOUND[:-1], {"end of log", "snapshot footer"}),
        (feature(0) + feature(1) + FOOTER, {"snapshot header"}),
        (SOUND + bytes(99), {"snapshot footer"}),
        (SOUND + feature(3), {"snapshot footer"}),
        (HEADER + feature(1)[:-1] + b"\1" + FOOTER, {"crc"}),
        (HEADER + FOOTER, {"gap"}),
        (HEADER + feature(0) + FOOTER, {"offset order", "gap"}),
        (HEADER + feature(1, b"\1\x0c\0\x7ff\0\x05\0") + FOOTER, {"payload"}),
        (HEADER + control(1, 9, b"") + FOOTER, {"control record"}),
        (HEADER + feature(1) + control(2, 4, b"\0\0\0", epoch=2), {"leader epoch"}),
    ],
)
def test_what_is_wrong_is_named(place, data, kinds):
    (place / NAME).write_bytes(data)
    for path in (place, place / NAME):
        found = findings(path)
        assert {finding["check"] for finding in found} == kinds
        assert all("controller" in finding["advice"] for finding in found)


@pytest.mark.parametrize("name", ["foo-bar.checkpoint", f"{77:020}.checkpoint", f"{77:020}-1.checkpoint"])
def test_a_name_that_keeps_a_node_from_starting(place, name):
    (place / name).write_bytes(SOUND)
    assert [finding["check"] for finding in findings(place)] == ["name"]


def test_a_record_of_a_newer_release_is_a_remark(place):
    (place / NAME).write_bytes(HEADER + feature(1, b"\1\x7e\0\1") + FOOTER)
    assert findings(place, status=0) == []
    assert b"a record comes from a newer release" in kdump("check", "--notes", place).stdout


def test_headers_alone(place):
    (place / NAME).write_bytes(HEADER + feature(1, b"\1\x0c\0\x7ff\0\x05\0") + FOOTER)
    assert findings(place, "--headers-only", status=0) == []


def test_the_log_must_be_reached_by_a_sound_snapshot(tmp_path):
    place = tmp_path / "__cluster_metadata-0"
    shutil.copytree(SOURCE, place)
    assert findings(place, status=0) == []
    for path in place.glob(f"{0:020}.*"):
        path.unlink()
    assert findings(place, status=0) == []
    for path in [*place.glob("*.checkpoint")]:
        if int(path.name[:20]) > 390:
            path.unlink()
    (finding,) = [each for each in findings(place) if each["check"] == "snapshot"]
    assert (finding["offset"], finding["found"]) == (390, 361)
    for path in [*place.glob("*.checkpoint")]:
        path.unlink()
    (place / f"{500:020}-{1:010}.checkpoint").write_bytes(SOUND[:-1])
    assert "snapshot" in {each["check"] for each in findings(place)}


def test_a_snapshot_beyond_the_log_is_what_a_node_goes_on_from(tmp_path):
    place = tmp_path / "__cluster_metadata-0"
    shutil.copytree(SOURCE, place)
    (place / f"{9000:020}-{1:010}.checkpoint").write_bytes(SOUND)
    done = kdump("check", "--notes", place)
    assert done.returncode == 0
    assert b"a node deletes the log when it starts, and continues from the snapshot" in done.stdout


def test_bootstrap_checkpoints_have_no_end_offset(tmp_path):
    source = GOLDEN / "brokers" / "4.2.2" / "_logdir"
    place = tmp_path / "log"
    shutil.copytree(source, place)
    assert findings(place, status=0) == []
    path = place / "bootstrap.checkpoint"
    assert findings(path, status=0) == []
    path.write_bytes(path.read_bytes()[:-1])
    assert {each["check"] for each in findings(place, status=4)} == {"end of log", "snapshot footer"}
    assert {each["check"] for each in findings(path)} == {"end of log", "snapshot footer"}


def test_no_salvage_of_a_snapshot_is_advised():
    done = kdump("check", GOLDEN / "damaged" / "ckpt-cut")
    assert (done.returncode, b"kdump salvage" in done.stdout) == (3, False)
