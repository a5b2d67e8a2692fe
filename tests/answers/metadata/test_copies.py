"""Several copies of the metadata log: they are merged by offset and epoch, and disagreement is reported."""

from __future__ import annotations

import os

from kdump.answers.metadata.image import Copies, MetadataLog
from kdump.errors import Reporter
from tests.answers.metadata.test_image import partitions
from tests.answers.metadata.test_replay import batch, value


def topic(name):
    return value("TopicRecord", name=name, topicId=name.encode().rjust(16, b"\0"))


def merged(tmp_path, *logs):
    """Return the batches of copies as (base offset, epoch), the damage reports and the notes."""
    for number, log in enumerate(logs):
        folder = tmp_path / str(number) / "__cluster_metadata-0"
        folder.mkdir(parents=True)
        (folder / f"{log[0].base_offset:020}.log").write_bytes(b"".join(bytes(each.raw) for each in log))
    damage, notes = [], []
    copies = Copies(partitions(tmp_path), Reporter(damage=damage.append, note=notes.append))
    found = [(each.base_offset, each.partition_leader_epoch) for each in copies.batches(0)]
    return found, damage, notes


A, B, C = batch(0, topic("a")), batch(1, topic("b")), batch(2, topic("c"))


def test_what_one_copy_lacks_the_other_has(tmp_path):
    assert merged(tmp_path, [A, B], [B, C]) == ([(0, 1), (1, 1), (2, 1)], [], [])


def test_records_that_only_kdump_cannot_read_have_no_effect_on_a_node(tmp_path):
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    for each in (A, C):
        (folder / f"{each.base_offset:020}.log").write_bytes(bytes(each.raw))
    os.mkfifo(folder / f"{1:020}.log")
    damage, failed = [], []
    MetadataLog(Copies(partitions(tmp_path), Reporter(damage.append, fail=failed.append))).image()
    assert damage == ["offset 2: the records from offset 1 up to this offset are missing"]
    assert [each.path for each in failed] == [f"{folder}/{1:020}.log"]


def test_a_tail_of_an_older_epoch_was_not_committed(tmp_path):
    newer = batch(2, topic("d"), epoch=2)
    found, damage, notes = merged(tmp_path, [A, B, C, batch(3, topic("e"))], [A, B, newer])
    assert found == [(0, 1), (1, 1), (2, 2)]
    assert damage == []
    assert [note[:8] for note in notes] == ["offset 2", "offset 3"]


def test_copies_that_differ_within_an_epoch_are_named(tmp_path):
    found, damage, _ = merged(tmp_path, [A, B], [A, batch(1, topic("x"))])
    assert found == [(0, 1), (1, 1)]
    assert damage == [
        "offset 1: copies of the metadata log have different batches of epoch 1: one copy is damaged, or the copies "
        "belong to different clusters"
    ]
