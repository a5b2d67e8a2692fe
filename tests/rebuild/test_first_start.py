"""Warnings before the first start: expired records, configs, facts that no volume has."""

from __future__ import annotations

import os
import re

import pytest

from kdump.broker_start import release
from kdump.rebuild import first_start, metadata
from kdump.rebuild.cluster import choose
from kdump.rebuild.coordinators import OpenProducer
from kdump.rebuild.metadata import ClusterChange
from kdump.rebuild.nodes import parse_nodes
from kdump.rebuild.volumes import survey
from testing import forge
from tests.rebuild.test_metadata import ID, Heard, found, log_dir, rebuilt

NOW = 1_790_000_000_000
DAY = 86_400_000


def batch(first, timestamp, producer=None, transactional=False):
    records = [forge.record(b"k", b"v", offset=0, timestamp=0)]
    more = {} if producer is None else {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
    if transactional:
        more["attributes"] = 0x10
    return forge.batch(records, base_offset=first, base_timestamp=timestamp, max_timestamp=timestamp, **more)


def volume(tmp_path, **segments):
    """A log dir without a metadata log, with the batches of each partition as a segment each, by ``topic_0``."""
    path = log_dir(tmp_path / "a", log=False)
    for name, batches in segments.items():
        folder = tmp_path / "a" / name.replace("_", "-")
        folder.mkdir()
        for number, data in enumerate(batches):
            (folder / f"{number:020}.log").write_bytes(data)
            os.utime(folder / f"{number:020}.log", (NOW / 1000, NOW / 1000))
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID[:-4]}{ord(name[0]):04}\n")
    return path


def at_start(path, **configs):
    """Return what a broker does with the logs at NOW, with the configs of topics."""
    lost = found(path, to="4.3.1")
    for topic, values in configs.items():
        lost.image.configs.resources[2, topic] = values
    volumes = survey([path])
    heard = Heard()
    return first_start.look(volumes, choose(volumes, lost.image), lost.image, (4, 3, 1), NOW, heard.failed.append)


def test_a_transaction_without_its_marker_in_the_new_log_is_open(tmp_path):
    marker = forge.batch(
        [forge.record(b"\0\0\0\1", bytes(6))],
        base_offset=1,
        base_timestamp=NOW,
        producer_id=7,
        producer_epoch=0,
        base_sequence=-1,
        attributes=0x30,
    )
    path = volume(tmp_path, orders_0=[batch(0, NOW, 7, transactional=True) + marker])
    for mark, still_open in ((1, (OpenProducer(7, "orders", 0),)), (2, ())):
        (tmp_path / "a" / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {mark}\n")
        image, volumes = found(path, to="4.3.1").image, survey([path])
        plans = choose(volumes, image, committed_only=True)
        assert [plan.end for plan in plans] == [mark]
        assert first_start.look(volumes, plans, image, (4, 3, 1), NOW, Heard().failed.append).open == still_open


def test_segments_whose_retention_is_over_are_counted_by_topic(tmp_path):
    old, new = batch(0, NOW - 8 * DAY), batch(1, NOW - DAY)
    path = volume(tmp_path, orders_0=[old, new], kept_0=[old, new], compacted_0=[old, new])
    deleted = at_start(path, orders={"retention.ms": str(7 * DAY)}, compacted={"cleanup.policy": "compact"}).deleted
    assert deleted == {"orders": len(old)}
    (text,) = first_start.of_retention(deleted, can_wait=True)
    assert f"orders: {len(old)} bytes" in text
    assert first_start.DELAY in text
    (text,) = first_start.of_retention(deleted, can_wait=False)
    assert "rebuild for a later release (--release)" in text
    assert first_start.DELAY not in text
    assert not list(first_start.of_retention({}, can_wait=True))


def test_transactions_that_are_open_in_the_logs_are_found(tmp_path):
    path = volume(tmp_path, orders_0=[batch(0, NOW, 7, transactional=True)], plain_0=[batch(0, NOW, 8)])
    assert at_start(path).open == ((7, "orders", 0),)


def of_metadata(lost, *specs, changes=()):
    cluster = metadata.NewCluster(release.of("4.3.1"), parse_nodes(specs), {}, {}, -1)
    return "\n".join(first_start.of_metadata(lost, cluster, changes))


def test_facts_that_no_volume_holds_are_reported_as_missing(tmp_path):
    lost = found(log_dir(tmp_path / "a", log=False, folders=["orders-0", "__consumer_offsets-3"]), to="4.3.1")
    text = of_metadata(lost)
    assert "no volume has a metadata log" in text
    assert "__consumer_offsets 4" in text
    assert "offsets.topic.num.partitions" in text


def test_damage_tiers_and_an_even_quorum_are_said(tmp_path):
    lost = found(log_dir(tmp_path / "a"))
    assert "tiered topics (tiered" in of_metadata(lost)
    assert "damaged at 2 places" in of_metadata(lost._replace(breaks=("a", "b")))
    assert "add a third" in of_metadata(lost, "1@h:1/2", "2@i:1/2")
    assert "add a third" not in of_metadata(lost, "1@h:1/2")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (ClusterChange("topic config", "t", "segment.bytes", "4000", "why"), "topic config t segment.bytes=4000: why"),
        (ClusterChange("broker config", "", "a", "b", "why"), "broker config <default> a=b: why"),
        (ClusterChange("feature", "metadata.version", None, "7", "why"), "metadata.version was 7: why"),
    ],
)
def test_what_was_changed_is_said(tmp_path, change, text):
    assert text in of_metadata(found(log_dir(tmp_path / "a")), changes=[change])


def test_a_changed_config_reaches_the_warnings(tmp_path):
    lost = found(log_dir(tmp_path / "a"))
    lost.image.configs.resources[2, "multi"] = {"segment.bytes": "4000"}
    lost.image.features.levels["metadata.version"] = 21
    (_, changes), _ = rebuilt(lost, to="4.3.1")
    assert re.search(r"topic config multi segment.bytes=4000: .* 1048576", of_metadata(lost, changes=changes))
