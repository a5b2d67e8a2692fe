"""Snapshots that kdump writes have the image's records, and pass the check of snapshots."""

from __future__ import annotations

import pytest

from kdump.answers.metadata import snapshot_writer
from kdump.answers.metadata.image import SnapshotFile, image_of, load
from kdump.checks import kraft_snapshot
from kdump.errors import Reporter, UsageError
from kdump.log_dirs.local import LOCAL
from tests.answers.metadata.test_image import ENDS, GOLDEN, no_damage, partitions, records
from tests.answers.metadata.test_replay import BEGIN, PARTITION, TOPIC, replayed


def written(image, folder):
    path = folder / snapshot_writer.file_name(image)
    path.write_bytes(snapshot_writer.encode(image))
    return SnapshotFile(image.end_offset, image.epoch, LOCAL, str(path), 1 << 20)


@pytest.mark.parametrize("release", ENDS)
def test_a_written_snapshot_is_sound_and_gives_the_image_back(release, tmp_path):
    found = partitions(GOLDEN / "brokers" / release / "__cluster_metadata-0")
    image = image_of(found, Reporter(damage=no_damage))
    snapshot = written(image, tmp_path)
    assert kraft_snapshot.check(LOCAL, snapshot.path).sound
    again = load(snapshot, no_damage)
    assert records(again) == records(image)
    assert (again.end_offset, again.epoch, again.timestamp) == (image.end_offset, image.epoch, image.timestamp)
    assert (again.voters, again.kraft_version) == (image.voters, image.kraft_version)


def test_a_large_image_takes_several_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot_writer, "BATCH", 100)
    image = image_of(partitions(GOLDEN / "brokers" / "4.2.2" / "__cluster_metadata-0"), Reporter(damage=no_damage))
    snapshot = written(image, tmp_path)
    assert kraft_snapshot.check(LOCAL, snapshot.path).batches > 100
    assert records(load(snapshot, no_damage)) == records(image)


def test_no_snapshot_inside_a_batch_or_transaction():
    with pytest.raises(UsageError, match="at offset 1, where the transaction begins"):
        snapshot_writer.encode(replayed(TOPIC, BEGIN, PARTITION)[0])
    image = replayed(TOPIC)[0]
    image.cut_batch = 0
    with pytest.raises(UsageError, match="lies inside a batch"):
        snapshot_writer.encode(image)
