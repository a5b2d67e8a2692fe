"""Streams planned from headers and indexes have the same ends as streams planned from all bytes."""

from dataclasses import replace
from random import Random
from types import SimpleNamespace

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[spark]'")

from kdump.formats import offset_index
from kdump.log_dirs.local import LocalFile
from kdump.log_reader import header_scan
from kdump.spark.source import options as words
from kdump.spark.source import reading, streaming
from kdump.spark.source.streaming import TriggerLimits
from testing import GOLDEN, forge
from tests.helpers.growing import NONE, Log

LIMITS = [NONE, TriggerLimits(records=7), TriggerLimits(bytes=1000), TriggerLimits(bytes=5000, records=90)]


class Indexed(Log):
    """A log with an index entry for every third batch."""

    def append(self, batches=1, **given):
        index = self.file.with_suffix(".index")
        base = int(self.file.stem)
        for _ in range(batches):
            first, position = self.next, self.file.stat().st_size
            super().append(1, **given)
            if first % 9 == 0 and position:
                with index.open("ab") as file:
                    file.write(offset_index.encode([(self.next - 1, position)], base))


def triggers(folder, limits, *, checked):
    """Return the end offsets of triggers, each with its records."""
    options, at, found = words.SourceOptions(paths=(str(folder),), mode=words.DROPMALFORMED), {}, []
    offsets = replace(options, columns=("offset",))
    for _ in range(500):
        made = streaming.advance(options, at, limits, checked={str(folder)} if checked else ())
        if made.offsets == at:
            return found
        splits = streaming.between(options, at, made.offsets, pytest.fail)
        at = made.offsets
        batches = [batch for split in splits for batch in reading.read(split, offsets)]
        rows = [offset for batch in batches for offset in batch.column(0).to_pylist()]
        found.append((at[str(folder)], rows))
    raise AssertionError("it goes on")


@pytest.fixture
def log(tmp_path):
    made = Indexed(tmp_path / "in" / "t-0")
    for batches in (40, 1, 200):
        made.append(batches)
        made.roll()
    made.append(60)
    return made


@pytest.mark.parametrize("limits", LIMITS)
def test_a_log_with_indexes_is_taken_as_by_a_look_at_all_bytes(log, limits):
    assert triggers(log.folder, limits, checked=False) == triggers(log.folder, limits, checked=True)


@pytest.mark.parametrize("cut", range(1, 180, 7))
def test_a_truncated_or_damaged_tail_waits(log, cut):
    data = log.file.read_bytes()
    for left in (data[:-cut], data[:-cut] + bytes(cut), data[:-cut] + b"\xff" * cut, data + bytes(cut)):
        log.file.write_bytes(left)
        for limits in (NONE, TriggerLimits(bytes=5000)):
            assert triggers(log.folder, limits, checked=False) == triggers(log.folder, limits, checked=True)


LIES = {
    "positions of other batches": lambda one: one._replace(position=one.position - 88),
    "positions inside of batches": lambda one: one._replace(position=one.position + 1),
    "positions past the end": lambda one: one._replace(position=one.position + 1_000_000),
    "offsets too low": lambda one: one._replace(relative_offset=one.relative_offset // 2),
    "offsets too high": lambda one: one._replace(relative_offset=one.relative_offset + 10_000),
    "zeros": lambda one: one._replace(relative_offset=0, position=0),
    "negative": lambda one: one._replace(relative_offset=-5, position=-7),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("limits", LIMITS)
def test_an_index_that_lies_changes_nothing(log, lie, limits):
    right = triggers(log.folder, limits, checked=True)
    layout = offset_index.OffsetIndex.layout
    for path in log.folder.glob("*.index"):
        entries = [layout.read(path.read_bytes(), at) for at in range(0, path.stat().st_size, layout.size)]
        path.write_bytes(b"".join(layout.write(LIES[lie](one)) for one in entries) + b"\1\2\3")
    found = triggers(log.folder, limits, checked=False)
    assert [offset for _, rows in found for offset in rows] == [offset for _, rows in right for offset in rows]
    assert found[-1][0]["offset"] == right[-1][0]["offset"]


def test_damage_anywhere_takes_and_loses_the_same_records(log):
    path = sorted(log.folder.glob("*.log"))[2]
    data, random = path.read_bytes(), Random(5)
    for _ in range(12):
        broken = bytearray(data)
        at = random.randrange(len(data))
        size = random.choice([1, 1, 90, 3000])
        broken[at : at + size] = random.randbytes(len(broken[at : at + size]))
        path.write_bytes(broken)
        for limits in (NONE, TriggerLimits(bytes=1000), TriggerLimits(records=30)):
            found = [triggers(log.folder, limits, checked=checked) for checked in (False, True)]
            offsets, right = ([offset for _, rows in one for offset in rows] for one in found)
            assert offsets == right
            assert found[0][-1][0]["offset"] == found[1][-1][0]["offset"]


@pytest.mark.parametrize("name", ["0.8.2.1", "0.9.0.1", "0.10.2.2", "0.11.0.3"])
def test_logs_of_old_formats(name):
    for folder in sorted(GOLDEN.glob(f"brokers/{name}/*-[0-9]")):
        for limits in (NONE, TriggerLimits(bytes=500), TriggerLimits(records=3)):
            found = [triggers(folder, limits, checked=checked) for checked in (False, True)]
            offsets, right = ([offset for _, rows in one for offset in rows] for one in found)
            assert offsets == right


def test_few_bytes_are_read_to_plan(tmp_path, monkeypatch):
    log = Indexed(tmp_path / "in" / "t-0")
    value = bytes(4000)
    for _ in range(6):
        for _ in range(200):
            with log.file.open("ab") as file:
                position = file.tell()
                file.write(forge.batch([forge.record(b"k", value)], base_offset=log.next))
            with log.file.with_suffix(".index").open("ab") as file:
                entry = [(log.next, position)] if position else []
                file.write(offset_index.encode(entry, int(log.file.stem)))
            log.next += 1
        log.roll()
    size, taken = sum(path.stat().st_size for path in log.folder.glob("*.log")), []
    meter = SimpleNamespace(add=lambda _, position, count: taken.append(count))  # noqa: ARG005  the meter's signature
    monkeypatch.setattr(LocalFile, "meter", meter)
    options = words.SourceOptions(paths=(str(log.folder.parent),))
    for limits in (NONE, TriggerLimits(bytes=size // 2), TriggerLimits(records=700)):
        taken.clear()
        target = streaming.ends(options)
        end = streaming.advance(options, {}, limits, target).offsets
        streaming.between(options, {}, end, pytest.fail)
        assert target == {str(log.folder): 1200}
        assert 590 < end[str(log.folder)]["offset"] <= 1200
        assert sum(taken) < size // 10, "a small log; bench.first_trigger has a large one"


def test_regions_by_headers_are_those_of_a_reader(tmp_path):
    log = Log(tmp_path / "t-0")
    log.append(5)
    data = log.file.read_bytes()
    for cut in range(len(data) + 1):
        log.file.write_bytes(data[:cut] + b"\xfe" * 9)
        with LocalFile(str(log.file)) as source:
            found = [
                (type(one).__name__, one.position, one.size) for one in header_scan.regions(source, 0, source.size)
            ]
            right = [
                (type(one).__name__, one.position, one.size)
                for one in header_scan.resync.read(source, 0, source.size, on_error="resync")
            ]
        assert found == right
