"""The segments of the benchmark match their names, and kdump counts as many records as the benchmark."""

import pytest

from bench import endings, memory, segments
from kdump.log_dirs.local import LocalFile
from kdump.primitives import compression
from kdump.records.record_batch import RecordBatch
from kdump.segments.resync import read

RECORDS = 2000


@pytest.mark.parametrize("shape", segments.SHAPES.values(), ids=list(segments.SHAPES))
def test_a_segment_holds_what_its_shape_says(shape, tmp_path):
    path = segments.make(tmp_path, shape, RECORDS)
    with LocalFile(path) as source:
        batches = list(read(source))
    assert all(isinstance(batch, RecordBatch) for batch in batches)
    assert {(batch.magic, batch.codec) for batch in batches} == {(shape.magic, shape.codec)}
    offsets = [record.offset for batch in batches for record in batch.records()]
    assert offsets == list(range(max(1, int(RECORDS * shape.share))))


def test_the_sparse_segment_is_sound(tmp_path):
    path = tmp_path / f"{0:020}.log"
    memory.make(path, 3 << 20)
    with LocalFile(path) as source:
        batches = list(read(source))
    assert [(batch.size, batch.base_offset, batch.codec) for batch in batches] == [
        (1 << 20, number, compression.NONE) for number in range(3)
    ]
    assert [batch.count for batch in batches] == [1, 1, 1]


def test_the_history_names_what_changed_by_more_than_a_tenth():
    history = (
        "# Title\n\n| Commit | Records | text | csv | raw |\n|---|---|---|---|---|\n"
        "| a | 5, none | 1.00 | 2.00 | |\n| b | 5, zstd | 9.00 | 9.00 | |\n| c | 5, none | 2.00 | 1.00 | |\n"
    )
    ratios = {"text": 2.3, "csv": 1.09, "raw": 3.0, "new": 1.0}
    assert endings.changes(history, ratios, "5, none") == ["text: 2.30, +15 % against 2.00 of c"]
    assert endings.changes(history, ratios | {"text": 1.0}, "5, none") == ["text: 1.00, -50 % against 2.00 of c"]
    assert endings.changes(history, ratios, "5, lz4") == []
