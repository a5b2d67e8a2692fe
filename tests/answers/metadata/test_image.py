"""The image of the metadata log equals Kafka's own snapshots of golden logs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import kdump
from kdump.answers.metadata.image import Copies, MetadataLog, image_of, load
from kdump.errors import Reporter, UnreadableError, UsageError
from kdump.log_dirs.finder import Finder, Wanted
from testing import GOLDEN

FOLDERS = [GOLDEN / "brokers" / release / "__cluster_metadata-0" for release in ("3.3.2", "4.2.2", "4.4.0")]
ENDS = {"3.3.2": [56, 117], "4.2.2": [77, 147, 223, 295, 361, 417, 486, 581], "4.4.0": [58, 124]}
"""Release -> the end offsets of the snapshots that its controller wrote."""


def no_damage(text):
    raise AssertionError(text)


def partitions(folder):
    return list(Finder(Wanted(siblings=True, log_dirs=True)).find([str(folder)]))


def copies(found):
    return Copies(found, Reporter(damage=no_damage, note=no_damage))


def records(image):
    """Return the records of an image without their order, which in Kafka is hash order."""
    return Counter(json.dumps(_sorted(record.plain), sort_keys=True) for record in image.records())


def _sorted(record):
    lists = {name: sorted(value, key=json.dumps) for name, value in record["data"].items() if name in LISTS}
    return {**record, "data": record["data"] | lists}


LISTS = ("endPoints", "features")


@pytest.mark.parametrize(("release", "end"), [(release, end) for release in ENDS for end in ENDS[release]])
def test_image_is_what_a_controller_wrote_into_its_snapshot(release, end):
    found = partitions(GOLDEN / "brokers" / release / "__cluster_metadata-0")
    snapshot = next(each for each in copies(found).snapshots if each.end_offset == end)
    log_alone = [partition._replace(others=()) for partition in found]
    image = image_of(log_alone, Reporter(damage=no_damage), offset=end)
    assert image.end_offset == end
    assert records(image) == records(load(snapshot, no_damage))


def test_a_copy_of_a_snapshot_is_checked_and_read_like_it(tmp_path):
    snapshot = copies(partitions(FOLDERS[1])).snapshots[-1]
    copy = tmp_path / f"{snapshot.end_offset:020}-{snapshot.epoch:010} (1).checkpoint"
    copy.write_bytes(Path(snapshot.path).read_bytes())
    found = copies(Finder(Wanted()).find([str(copy)]))
    assert [(one.end_offset, one.epoch, found.sound(one)) for one in found.snapshots] == [(*snapshot[:2], True)]
    copy.write_bytes(copy.read_bytes()[:-1])
    damage = []
    found = Copies(Finder(Wanted()).find([str(copy)]), Reporter(damage=damage.append))
    assert [found.sound(one) for one in found.snapshots] == [False]
    assert len(damage) == 1
    assert "kdump does not use this snapshot" in damage[0]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_image_from_a_snapshot_on_is_the_image_from_the_log_alone(folder):
    found = partitions(folder)
    log_alone = [partition._replace(others=()) for partition in found]
    whole, alone = image_of(found, Reporter(damage=no_damage)), image_of(log_alone, Reporter(damage=no_damage))
    assert (whole.end_offset, whole.epoch, whole.timestamp) == (alone.end_offset, alone.epoch, alone.timestamp)
    assert records(whole) == records(alone)


def test_image_has_topics_by_name_and_id_with_partitions_and_configs():
    image = image_of(partitions(FOLDERS[1]), Reporter(damage=no_damage))
    topic = image.topics.by_name["compact"]
    assert image.topics.by_id[topic.id] is topic
    assert len(topic.id_text) == 22
    state = topic.partitions[0]
    assert (state.leader, state.leader_epoch, state.replicas, state.isr) == (-1, 1, [1], [])
    assert image.configs.topic("compact")["cleanup.policy"] == "compact"
    assert image.configs.topic("no-such-topic") == {}
    assert image.configs.broker("") == {"min.insync.replicas": "1"}


def test_image_at_a_time_is_the_image_at_the_offset_that_was_reached_then():
    found = partitions(FOLDERS[1])
    at = image_of(found, Reporter(damage=no_damage), offset=300)
    again = image_of(found, Reporter(damage=no_damage), at=at.timestamp)
    assert again.end_offset >= 300
    assert again.timestamp == at.timestamp


def test_in_python_too_a_time_before_the_log_is_not_an_image_without_topics(tmp_path):
    with pytest.raises(UsageError, match=r"^the log begins at 20.*: there is no image at 2001-01-01T00:00:00.000Z$"):
        kdump.metadata(FOLDERS[1], at="2001-01-01")
    torn = tmp_path / FOLDERS[1].name / f"{147:020}-{1:010}.checkpoint"
    torn.parent.mkdir()
    torn.write_bytes((FOLDERS[1] / torn.name).read_bytes()[:-9])
    with pytest.raises(UnreadableError, match="no record of the metadata log can be read"):
        kdump.metadata(tmp_path)
    assert kdump.metadata(FOLDERS[1], offset=0).lines == ()


def test_no_metadata_log_is_no_image():
    assert image_of(partitions(GOLDEN / "brokers" / "4.2.2" / "one-0"), Reporter(damage=no_damage)) is None


def test_log_without_its_beginning_is_a_named_break():
    found = [partition._replace(segments=partition.segments[1:], others=()) for partition in partitions(FOLDERS[1])]
    said = []
    image = image_of(found, Reporter(damage=said.append))
    assert "the records from offset 0 up to this offset are missing" in said[0]
    assert image.end_offset == 582


def test_log_goes_on_from_the_newest_sound_snapshot(tmp_path):
    for file in FOLDERS[1].iterdir():
        data = bytearray(file.read_bytes())
        if file.name.startswith(f"{581:020}"):
            data[200] ^= 1
        folder = tmp_path / "__cluster_metadata-0"
        folder.mkdir(exist_ok=True)
        (folder / file.name).write_bytes(data)
    said = []
    image = image_of(partitions(tmp_path), Reporter(damage=said.append))
    assert len(said) == 1
    assert "kdump does not use this snapshot" in said[0]
    assert records(image) == records(image_of(partitions(FOLDERS[1]), Reporter(damage=no_damage)))


def test_the_oldest_possible_image_is_that_of_the_oldest_valid_snapshot(tmp_path):
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    for file in FOLDERS[1].iterdir():
        data = bytearray(file.read_bytes())
        if file.name.startswith(f"{77:020}"):
            data[200] ^= 1
        if not file.name.startswith(f"{0:020}"):
            (folder / file.name).write_bytes(data)
    said = []
    log = MetadataLog(Copies(partitions(folder), Reporter(damage=said.append)))
    with pytest.raises(UsageError, match="the log no longer has this state: the oldest image is at offset 147, "):
        log.image(offset=100)
    assert len(said) == 1
    assert "kdump does not use this snapshot" in said[0]


def test_log_dirs_without_topics_have_no_image():
    assert copies([]).first_offset() is None
    assert not MetadataLog(copies([])).image().topics.by_name


def test_a_controller_that_was_unregistered_is_forgotten():
    folder = partitions(GOLDEN / "brokers" / "4.4.0" / "__cluster_metadata-0")
    before, after = (image_of(folder, Reporter(damage=no_damage), offset=end) for end in (54, 55))
    assert {"RegisterControllerRecord": 2}.items() <= Counter(record.name for record in before.records()).items()
    assert {"RegisterControllerRecord": 1}.items() <= Counter(record.name for record in after.records()).items()
