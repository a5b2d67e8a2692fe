"""What topics are made of: the sums of ``kdump dump`` over real files, and what real packing gives."""

import json
from collections import Counter

import pytest

from kdump.answers import what_if
from kdump.answers.statistics import Spread, spread
from kdump.answers.what_if import Sample, Target, WhatIf, target
from kdump.errors import UsageError
from kdump.log_dirs.finder import Finder
from kdump.primitives import compression
from kdump.segments import read
from testing import GOLDEN, forge
from testing.processes import kdump

LOGS = sorted(path for path in GOLDEN.rglob("*.log") if 200 < path.stat().st_size < 300_000)


def rows(*args, status=0):
    done = kdump(*args)
    assert done.returncode == status, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """A log dir of sound golden segments of every codec and magic."""
    folder = tmp_path_factory.mktemp("logs")
    chosen: dict[object, bytes] = {}
    for path in LOGS:
        (partition,) = Finder().find([str(path)])
        with partition.segments[0].open() as source:
            regions = list(read.read(source, on_error="resync"))
        if regions and all(hasattr(region, "magic") for region in regions):
            kinds = frozenset((region.magic, region.codec, region.is_control) for region in regions)
            chosen.setdefault(kinds, path.read_bytes())
    for number, content in enumerate(list(chosen.values())[:12]):
        (folder / f"t-{number}").mkdir()
        (folder / f"t-{number}" / f"{0:020}.log").write_bytes(content)
    assert len(chosen) >= 5
    return folder


def test_sums_are_those_of_the_records(golden):
    lines = rows("stats", golden, "--records", "-o", "jsonl")
    stats = {line["partition"]: line for line in lines if line["kind"] == "stats"}
    for number, line in stats.items():
        log = golden / f"t-{number}" / f"{0:020}.log"
        records = rows("dump", log, "-o", "jsonl", "--encoding", "hex")
        batches = rows("dump", log, "--batches", "-o", "jsonl")
        assert (line["records"], line["batches"]) == (len(records), len(batches))
        assert line["logBytes"] == log.stat().st_size == sum(codec["bytes"] for codec in line["codecs"].values())
        data = [record for record in records if not record["isControl"]]
        assert line["keyBytes"] == sum(len(record["key"] or "") // 2 for record in data)
        assert line["valueBytes"] == sum(len(record["value"] or "") // 2 for record in data)
        assert line["tombstones"] == sum(record["value"] is None for record in data)
        codecs = Counter(batch["codec"] for batch in batches)
        assert {name: codec["batches"] for name, codec in line["codecs"].items()} == codecs
        times = [batch["maxTimestampMs"] for batch in batches if batch["maxTimestampMs"] >= 0]
        assert line["lastTimestampMs"] == max(times, default=None)
        assert line["controlBatches"] == sum(batch["isControl"] for batch in batches)


def test_producers_and_hours_add_up_and_processes_agree(golden):
    options = ("stats", golden, "-o", "jsonl", "--hours", "--what-if", "zstd,none")
    lines = rows(*options)
    whole = sum(line["batches"] for line in lines if line["kind"] == "stats")
    for kind in ("producer", "hour"):
        assert sum(line["batches"] for line in lines if line["kind"] == kind) == whole
    assert rows(*options, "--jobs", "2") == lines
    assert kdump("stats", golden, "--records", "--hours", "--what-if", "lz4").returncode == 0


def test_percentiles_are_numbers_that_occur():
    assert spread(Counter()) is None
    assert spread(Counter([5])) == Spread(5, 5, 5)
    assert spread(Counter(range(1, 101))) == Spread(50.5, 50, 99)
    assert spread(Counter([1] * 99 + [1000])) == Spread(10.99, 1, 1)


def written(folder, count=400):
    """A log of batches whose values pack better and better."""
    folder.mkdir()
    bodies = []
    content = b""
    for number in range(count):
        words = b"".join(b"%d " % (n * 7919 % (3 + number)) for n in range(300))
        body = forge.record(b"key", words)
        bodies.append(body)
        content += forge.batch([body], base_offset=number)
    (folder / f"{0:020}.log").write_bytes(content)
    return bodies


@pytest.mark.parametrize("name", ["none", "gzip", "gzip:1", "snappy", "lz4", "zstd", "zstd:19"])
def test_what_if_is_what_packing_gives(tmp_path, name):
    bodies = written(tmp_path / "t-0", 50)
    (line,) = (one for one in rows("stats", tmp_path, "--what-if", name, "-o", "jsonl") if one["kind"] == "whatIf")
    wanted = target(name)
    packed = [compression.compress(wanted.codec, body, level=wanted.level) if wanted.codec else body for body in bodies]
    assert line["bytes"] == sum(61 + len(one) for one in packed)
    assert (line["sampled"], line["errorBytes"], line["codec"]) == (50, 0, name)


def test_a_sample_is_within_its_error(tmp_path, monkeypatch):
    written(tmp_path / "t-0")

    def answer(sample):
        monkeypatch.setattr(what_if, "SAMPLE", sample)
        (partition,) = Finder().find([str(tmp_path)])
        collector = WhatIf([Target(compression.ZSTD)])
        collector.begin(Place(partition))
        with partition.segments[0].open() as source:
            for batch in read.read(source):
                collector.add(batch)
        collector.end()
        (line,) = collector.answer()
        return line

    exact, sampled = answer(1 << 30), answer(100_000)
    assert (exact.sampled, exact.error_bytes) == (400, 0)
    assert 20 < sampled.sampled < 300
    assert 0 < sampled.error_bytes < exact.bytes / 5
    assert abs(sampled.bytes - exact.bytes) < 2 * sampled.error_bytes


class Place:
    """A partition as a collector meets it."""

    def __init__(self, partition):
        self.partition, self.key = partition, (partition.topic, partition.partition)


def test_a_sample_of_one_batch_knows_nothing():
    sample = Sample(batches=10, size=1000)
    assert (sample.estimate, sample.variance) == (1000, 1000.0**2)
    sample.take(100, 50)
    assert sample.estimate == 500


@pytest.mark.parametrize("text", ["brotli", "gzip:x", "gzip:0", "zstd:23", "snappy:1", "none:1", ""])
def test_codecs_and_levels_that_are_none_are_refused(text):
    with pytest.raises(UsageError):
        target(text)


def test_a_folder_that_names_no_partition_is_left_out_and_said(tmp_path):
    written(tmp_path / "backup", 1)
    done = kdump("stats", tmp_path, "-o", "jsonl")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"backup is left out: the name of its folder gives no topic and partition" in done.stderr
    assert kdump("stats", "-q", tmp_path, "-o", "jsonl").stderr == b""
