"""The segments of the benchmark are what their names say, and kdump and the benchmark's own count agree."""

import pytest

from bench import memory, segments
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
