"""Statistics of topics: they equal sums over ``kdump dump`` of real files, and sizes after real compression."""

import json
import os
import random
import zlib
from collections import Counter, defaultdict
from math import sqrt

import lz4.block
import pytest
import snappy
import zstandard

from kdump.answers import recompression
from kdump.answers.recompression import Sample, WhatIf, target
from kdump.answers.statistics import Spread, spread
from kdump.errors import UsageError
from kdump.formats.record_layout import BATCH_HEADER
from kdump.log_dirs.finder import Finder
from kdump.primitives import compression
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync
from testing import GOLDEN, forge
from testing.processes import kdump

HOUR = 3_600_000


def rows(*args, status=0, **options):
    done = kdump(*args, **options)
    assert done.returncode == status, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def write(folder, *contents, topic="t"):
    """Write a log dir of one partition for each content."""
    for number, content in enumerate(contents):
        (folder / f"{topic}-{number}").mkdir()
        (folder / f"{topic}-{number}" / f"{0:020}.log").write_bytes(content)
    return folder


def kinds(path):
    """Return the kinds of the regions of a log."""
    (partition,) = Finder().find([str(path)])
    with partition.segments[0].open() as source:
        regions = list(resync.read(source, on_error="resync"))
    if not all(isinstance(region, RecordBatch) for region in regions):
        return None
    return frozenset((region.magic, region.codec, region.is_control, region.is_transactional) for region in regions)


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """A log dir of valid golden segments: some for each mixture of magic, codec and kind."""
    found = defaultdict(list)
    for path in sorted((GOLDEN / "brokers").rglob("*.log")):
        if mixture := kinds(path):
            found[mixture].append(path.read_bytes())
    assert len(found) >= 25
    contents = [content for paths in found.values() for content in sorted(paths, key=len)[-2:]]
    return write(tmp_path_factory.mktemp("logs"), *contents)


def spread_of(numbers):
    """Return mean and percentiles of a list: the numbers that 50 and 99 of 100 do not exceed."""
    ordered = sorted(numbers)
    if not ordered:
        return None
    fifty, most = (ordered[-(-len(ordered) * share // 100) - 1] for share in (50, 99))
    return {"mean": round(sum(ordered) / len(ordered), 3), "p50": fifty, "p99": most}


def largest(records, field):
    found = sorted(((len(one[field]) // 2, -one["offset"]) for one in records if one[field] is not None), reverse=True)
    return [{"offset": -offset, "bytes": size} for size, offset in found[:5]]


def sums_of(batches, records, log_dir):
    """Return the expected line of a partition, from the batches and records that ``dump`` prints."""
    in_batch = Counter(record["position"] for record in records)
    counts = [in_batch[batch["position"]] for batch in batches]
    data = [record for record in records if not record["isControl"]]
    first_of = {record["position"]: record["timestampMs"] for record in reversed(records)}
    codecs = defaultdict(lambda: {"batches": 0, "bytes": 0})
    for batch in batches:
        codecs[batch["codec"]]["batches"] += 1
        codecs[batch["codec"]]["bytes"] += batch["batchSize"]
    keys, values = ([len(one[name]) // 2 for one in data if one[name] is not None] for name in ("key", "value"))
    times = [batch["maxTimestampMs"] for batch in batches if batch["maxTimestampMs"] >= 0]
    size = sum(batch["batchSize"] for batch in batches)
    body = sum(unpacked_sizes(batches))
    return {
        "kind": "stats",
        "topic": batches[0]["topic"],
        "partition": batches[0]["partition"],
        "batches": len(batches),
        "records": len(records),
        "logBytes": size,
        "codecs": codecs,
        "recordsPerBatch": spread_of(counts),
        "bytesPerBatch": spread_of([batch["batchSize"] for batch in batches]),
        "firstTimestampMs": min((time for time in first_of.values() if time >= 0), default=None),
        "lastTimestampMs": max(times, default=None),
        "transactionalBatches": sum(batch["isTransactional"] for batch in batches),
        "controlBatches": sum(batch["isControl"] for batch in batches),
        "tombstones": len(data) - len(values),
        "uncompressedBytes": body,
        "ratio": round(body / size, 4),
        "keyBytes": sum(keys),
        "valueBytes": sum(values),
        "keySizes": spread_of(keys),
        "valueSizes": spread_of(values),
        "largestKeys": largest(data, "key"),
        "largestValues": largest(data, "value"),
        "logDir": str(log_dir),
    }


def unpacked_sizes(batches):
    """Yield the sizes of batches without compression: the only number that ``dump`` does not print."""
    (partition,) = Finder().find([batches[0]["file"]])
    with partition.segments[0].open() as source:
        for batch in resync.read(source):
            yield sum(record.size for record in batch.records()) + (BATCH_HEADER.size if batch.magic == 2 else 0)


def test_every_number_is_that_of_dump(golden):
    batches, records = defaultdict(list), defaultdict(list)
    for found, options in ((batches, ["--batches"]), (records, ["--encoding", "hex"])):
        for row in rows("dump", golden, "-o", "jsonl", *options):
            found[row["partition"]].append(row)
    lines = rows("stats", golden, "--records", "--hours", "-o", "jsonl")
    stats = {line["partition"]: line for line in lines if line["kind"] == "stats"}
    assert set(stats) == set(batches)
    for number, line in stats.items():
        assert line == sums_of(batches[number], records[number], golden)
    count = Counter((record["partition"], record["position"]) for found in records.values() for record in found)
    for kind, name, key_of in (
        ("producer", "producerId", lambda batch: -1 if batch["producerId"] is None else batch["producerId"]),
        ("hour", "hourMs", lambda batch: None if (time := batch["maxTimestampMs"]) < 0 else time // HOUR * HOUR),
    ):
        sums = defaultdict(lambda: [0, 0, 0])
        for batch in (batch for found in batches.values() for batch in found):
            one = sums[key_of(batch)]
            one[0] += 1
            one[1] += count[batch["partition"], batch["position"]]
            one[2] += batch["batchSize"]
        shown = {
            line[name]: [line["batches"], line["records"], line["bytes"]] for line in lines if line["kind"] == kind
        }
        assert shown == sums


def mixture():
    """A log with series of batches of every kind. One series ends in a batch with a broken record."""
    content, offset = b"", 0
    for attributes, body in (
        *((attributes, None) for attributes in (0, 0x10, 0x08, 0x40, 0x20)),
        *((codec, codec) for codec in (1, 2, 3, 4)),
    ):
        for number in range(5):
            records = [
                forge.record(b"k" * number, None if n % 3 else b"v" * n * n, offset=n) for n in range(number + 1)
            ]
            plain = b"".join(records)
            content += forge.batch(
                records,
                base_offset=offset,
                base_timestamp=HOUR * number,
                max_timestamp=HOUR * number + 7,
                attributes=attributes,
                producer_id=number % 2,
                payload=compression.compress(body, plain) if body else None,
            )
            offset += number + 1
    broken = forge.batch([forge.record(b"k", b"v")], base_offset=offset, count=2)
    garbage = forge.batch([], base_offset=offset + 1, attributes=4, count=1, payload=b"no frame")
    return content + broken + garbage + forge.batch([forge.record(b"k", b"v")], base_offset=offset + 2)


@pytest.mark.parametrize("options", [(), ("--records",), ("--what-if", "none,zstd"), ("--records", "--what-if", "lz4")])
def test_batches_taken_together_are_those_taken_one_by_one(tmp_path, options):
    write(tmp_path, mixture())
    command = ("stats", tmp_path, "--hours", "-o", "jsonl", *options)
    together, alone = (kdump(*command, env=os.environ | {"KDUMP_KERNEL": kernel}) for kernel in ("", "off"))
    assert (together.stdout, together.stderr) == (alone.stdout, alone.stderr)
    assert together.returncode == alone.returncode == (3 if options else 0)
    whole = sum(line["batches"] for line in map(json.loads, together.stdout.splitlines()) if line["kind"] == "stats")
    assert whole == 48 - (2 if "--records" in options else 1 if options else 0)


def test_markers_in_a_row_are_counted_as_one_by_one(tmp_path):
    marker = forge.record(b"\0\0\0\1", b"\0\0\0\0\0\7")
    fields = {"attributes": 0x30, "producer_epoch": 0}
    markers = [forge.batch([marker], base_offset=n, producer_id=n % 3, **fields) for n in range(9)]
    broken = forge.batch([b"\x7f"], base_offset=9, count=1, producer_id=0, **fields)
    write(tmp_path, b"".join([*markers, broken, *(forge.batch([], base_offset=n, **fields) for n in (10, 11))]))
    command = ("stats", tmp_path, "--records", "--what-if", "zstd", "-o", "jsonl")
    together, alone = (kdump(*command, env=os.environ | {"KDUMP_KERNEL": kernel}) for kernel in ("", "off"))
    assert (together.stdout, together.stderr, together.returncode) == (alone.stdout, alone.stderr, alone.returncode)
    line = next(line for line in map(json.loads, together.stdout.splitlines()) if line["kind"] == "stats")
    assert (line["batches"], together.returncode) == (11, 3)


def test_producers_and_hours_add_up_and_processes_agree(golden):
    options = ("stats", golden, "-o", "jsonl", "--hours", "--what-if", "zstd,none")
    lines = rows(*options)
    whole = sum(line["batches"] for line in lines if line["kind"] == "stats")
    for kind in ("producer", "hour"):
        assert sum(line["batches"] for line in lines if line["kind"] == kind) == whole
    assert rows(*options, "--jobs", "2") == lines
    assert kdump("stats", golden, "--records", "--hours", "--what-if", "lz4").returncode == 0


def test_sums_of_topics_count_each_partition_once(tmp_path):
    """Two replicas, the second one longer: each has a line, but only the longer one is in the sums."""
    data = (GOLDEN / "brokers" / "4.2.2" / "c-none-0" / f"{0:020}.log").read_bytes()
    first = end_of_first(data)
    for name, content in (("b1", data[:first]), ("b2", data)):
        (tmp_path / name).mkdir()
        write(tmp_path / name, content)
    paths, words = [tmp_path / "b1", tmp_path / "b2"], ("--hours", "--what-if", "lz4", "-o", "jsonl")
    alone = rows("stats", paths[1], *words)
    for given in (paths, paths[::-1], [f"{paths[0]},{paths[1]}"], [*paths, "--jobs", "2"]):
        found = rows("stats", *given, *words)
        assert [line["logBytes"] for line in found if line["kind"] == "stats"] == [len(data), first]
        assert [line for line in found if line["kind"] != "stats"] == alone[1:]
    done = kdump("stats", *paths)
    assert (
        b"note: 1 folder is left out of the sums of topics, because another replica of the partition has" in done.stderr
    )
    assert done.stdout.startswith(b"1 partition in 2 folders, ")
    assert kdump("stats", paths[1]).stderr == b""


def end_of_first(data: bytes) -> int:
    """Return the end of the first batch of a log."""
    return 12 + int.from_bytes(data[8:12])


def test_percentiles_are_numbers_that_occur():
    assert spread(Counter()) is None
    assert spread(Counter([5])) == Spread(5, 5, 5)
    assert spread(Counter(range(1, 101))) == Spread(50.5, 50, 99)
    assert spread(Counter([1] * 99 + [1000])) == Spread(10.99, 1, 1)


def written(folder, count=400):
    """A log of batches whose values compress better and better."""
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


@pytest.mark.parametrize("name", ["none", "gzip", "gzip:1", "snappy", "lz4", "lz4:12", "zstd", "zstd:19"])
def test_what_if_is_what_packing_gives(tmp_path, name):
    bodies = written(tmp_path / "t-0", 50)
    (line,) = (one for one in rows("stats", tmp_path, "--what-if", name, "-o", "jsonl") if one["kind"] == "whatIf")
    wanted = target(name)
    packed = [compression.compress(wanted.codec, body, level=wanted.level) if wanted.codec else body for body in bodies]
    assert line["bytes"] == sum(61 + len(one) for one in packed)
    assert (line["sampled"], line["errorBytes"], line["codec"]) == (50, 0, name)


def packed_size(name, body):
    """Compress records with the codec's own library, framed as by Kafka's Java client; return the number of bytes."""
    codec, _, level = name.partition(":")
    if codec == "gzip":
        packer = zlib.compressobj(int(level or -1), wbits=31)
        return len(packer.compress(body)) + len(packer.flush())
    if codec == "zstd":
        return len(zstandard.ZstdCompressor(int(level or 3), write_content_size=False).compress(body))
    if codec == "snappy":
        return 16 + sum(4 + len(snappy.compress(body[at : at + 32768])) for at in range(0, len(body), 32768))
    blocks = (body[at : at + 65536] for at in range(0, len(body), 65536))
    how = {} if level in {"", "9"} else {"mode": "high_compression", "compression": int(level)}
    return 11 + sum(4 + min(len(block), len(lz4.block.compress(block, store_size=False, **how))) for block in blocks)


CODECS = ["gzip", "gzip:1", "snappy", "lz4", "lz4:12", "zstd", "zstd:9"]
WORDS = [b"order", b"customer", b"price", b"shipped", b"cancelled", b"2026-11-22", b"EUR"]


def forged(kind, draw):
    """Return records for a batch of this size and compressibility."""
    size = {"heavy": int(min(60_000, draw.paretovariate(1.3) * 300))}.get(kind, draw.randint(300, 6000))
    if kind == "random" or (kind == "rare" and draw.random() < 0.03) or (kind == "mixed" and draw.random() < 0.4):
        return forge.record(b"k", draw.randbytes(size))
    return forge.record(b"k", b" ".join(draw.choices(WORDS, k=size // 6)))


def written_by(kind, count, seed):
    draw = random.Random(seed)
    return b"".join(forge.batch([forged(kind, draw)], base_offset=number) for number in range(count))


def answers(folder, monkeypatch, sample):
    """Return the estimated sizes of a log dir, from a sample of about ``sample`` bytes of each partition."""
    monkeypatch.setattr(recompression, "SAMPLE", sample)
    collector = WhatIf(list(map(target, CODECS)))
    truth, fixed = Counter(), 0
    for partition in Finder().find([str(folder)]):
        collector.begin(Place(partition))
        with partition.segments[0].open() as source:
            for batch in resync.read(source):
                collector.add(batch, 1)
                if batch.magic < 2 or batch.is_control:
                    fixed += batch.size
                    continue
                data, start = batch.payload()
                truth.update({name: 61 + packed_size(name, bytes(data[start:])) for name in CODECS})
        collector.end()
    return {line.codec: (line, truth[line.codec] + fixed) for line in collector.answer()}


@pytest.mark.parametrize("kind", ["text", "random", "mixed", "rare", "heavy"])
def test_the_truth_lies_within_the_error_of_a_sample(tmp_path, monkeypatch, kind):
    write(tmp_path, *(written_by(kind, 150, seed) for seed in range(3)))
    for line, truth in answers(tmp_path, monkeypatch, 75_000).values():
        assert 30 < line.sampled < 300
        assert abs(line.bytes - truth) <= line.error_bytes, line
        assert line.error_bytes < line.current_bytes / 3
    for line, truth in answers(tmp_path, monkeypatch, 1 << 30).values():
        assert (line.bytes, line.error_bytes, line.sampled) == (truth, 0, 450)


def test_the_truth_of_golden_logs_lies_within_the_error(golden, monkeypatch):
    exact = answers(golden, monkeypatch, 1 << 30)
    for line, truth in exact.values():
        assert (line.bytes, line.error_bytes) == (truth, 0)
    for line, truth in answers(golden, monkeypatch, 2_000).values():
        assert line.sampled < exact[line.codec][0].sampled / 2
        assert abs(line.bytes - truth) <= line.error_bytes


def test_of_many_samples_nineteen_of_twenty_hold_the_truth():
    for kind in ("even", "rare", "heavy"):
        held = 0
        for seed in range(200):
            draw = random.Random(seed)
            sample, truth = Sample(), 0
            for _ in range(400):
                x = int(draw.paretovariate(1.3) * 300) if kind == "heavy" else draw.randint(300, 6000)
                y = x if kind == "rare" and draw.random() < 0.03 else int(x * draw.uniform(0.2, 0.8))
                truth += y
                sample.meet([x])
                if draw.random() < 0.1:
                    sample.take(x, y)
            held += abs(sample.estimate - truth) <= 1.96 * sqrt(sample.variance) + sample.unseen
        assert held >= 190, kind


class Place:
    """A partition as a collector receives it."""

    def __init__(self, partition):
        self.partition, self.key = partition, (partition.topic, partition.partition)


def test_a_sample_of_one_batch_knows_nothing():
    sample = Sample(batches=10, size=1000)
    assert (sample.estimate, sample.variance) == (1000, 1000.0**2)
    sample.take(100, 50)
    assert sample.estimate == 500


@pytest.mark.parametrize("text", ["brotli", "gzip:x", "gzip:0", "zstd:23", "lz4:0", "lz4:18", "snappy:1", "none:1", ""])
def test_codecs_and_levels_that_are_none_are_refused(text):
    with pytest.raises(UsageError):
        target(text)


def test_a_folder_that_names_no_partition_is_left_out_and_said(tmp_path):
    written(tmp_path / "backup", 1)
    done = kdump("stats", tmp_path, "-o", "jsonl")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"backup is left out: its folder is not named TOPIC-PARTITION" in done.stderr
    assert kdump("stats", "-q", tmp_path, "-o", "jsonl").stderr == b""
