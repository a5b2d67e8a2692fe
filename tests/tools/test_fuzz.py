"""A short run of the fuzzer, inputs that it found earlier, and hypothesis over the same targets."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdump.primitives import compression
from kdump.records import magic_2
from testing import forge
from tools.fuzz import attempts
from tools.fuzz.attempts import FOUND, attempt
from tools.fuzz.inputs import inputs
from tools.fuzz.mutations import make
from tools.fuzz.targets import TARGETS

KEPT = sorted(FOUND.glob("*-*"))
OFTEN = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
SHORT = {"segment": 60, "codec": 200, "state": 150, "payload": 60, "archive": 60, "partition": 40, "kernel": 40}

values = st.none() | st.binary(max_size=40)
records = st.builds(
    forge.record,
    values,
    values,
    offset=st.integers(-(1 << 31), (1 << 31) - 1),
    timestamp=st.integers(-(1 << 63), (1 << 63) - 1),
    headers=st.lists(st.tuples(st.binary(max_size=9), values), max_size=3),
    attributes=st.integers(-128, 127),
)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)


@st.composite
def batches(draw):
    """Valid records in any codec, in a batch whose header fields are arbitrary; the CRC is right."""
    body = b"".join(draw(st.lists(records, max_size=5)))
    codec = draw(st.integers(0, 4))
    packed = compression.compress(codec, body)
    return forge.batch(
        [],
        payload=packed,
        attributes=codec | draw(st.integers(0, 15)) << 3,
        count=draw(st.integers(0, 6) | int32),
        last_offset_delta=draw(int32),
        base_offset=draw(int64),
        base_timestamp=draw(int64),
        max_timestamp=draw(int64),
        producer_id=draw(int64),
        base_sequence=draw(int32),
    )


@pytest.mark.parametrize("target", TARGETS)
def test_a_short_run_finds_nothing(target):
    for data in inputs(target, seed=20, count=SHORT.get(target, 40)):
        assert attempt(target, data) == ""


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_what_was_found_once_is_found_no_more(path):
    assert attempt(path.name.rpartition("-")[0], path.read_bytes()) == ""


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "kernel-alone"])
def test_any_bytes(target):
    @given(st.binary(max_size=200))
    @OFTEN
    def run(data):
        assert attempt(target, data) == ""

    run()


@given(st.lists(batches(), max_size=3), st.binary(max_size=20))
@OFTEN
def test_any_batches_are_read_and_printed_alike_by_all_builds(entries, after):
    data = b"".join(entries) + after
    assert attempt("segment", data) == ""
    assert attempt("kernel", data) == ""


@given(st.lists(records, max_size=5), st.integers(0, 4))
@OFTEN
def test_sound_records_come_back_as_they_were_written(written, codec):
    data = forge.batch(written, attributes=codec, payload=compression.compress(codec, b"".join(written)))
    read = list(magic_2.Batch(memoryview(data), 0, len(data)).records())
    assert [record.size for record in read] == [len(record) for record in written]


def test_a_mutation_is_the_same_each_time():
    assert [make(3, number) for number in range(20)] == [make(3, number) for number in range(20)]


def test_the_fuzzer_notices(monkeypatch, tmp_path):
    monkeypatch.setattr(attempts, "FOUND", tmp_path)
    monkeypatch.setitem(TARGETS, "state", lambda _: 1 // 0)
    assert "ZeroDivisionError" in attempt("state", b"")
    tally = attempts.work(("state", 1, 0, 3))
    assert (tally["inputs"], tally["crashes"]) == (3, 3)
    assert len(list(tmp_path.iterdir())) == 3
