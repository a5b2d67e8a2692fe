import pytest

from kdump.errors import DamageError, UnreadableError
from kdump.log_dirs import local
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync as segments_read
from kdump.segments import walk
from kdump.segments.regions import Damage, Padding, Trailing
from testing import forge
from tests.helpers import segments
from tests.helpers.segments import regions

GOOD = forge.batch([forge.record(b"k", b"v")])
NEXT = forge.batch([forge.record(b"k", b"w")], base_offset=1)


class Memory(segments.Memory):
    """A source in memory that remembers its largest read."""

    most = 0

    def read(self, position, size):
        self.most = max(self.most, size)
        return super().read(position, size)


def kinds(data: bytes, reader=segments_read.read) -> list:
    return [RecordBatch if isinstance(region, RecordBatch) else type(region) for region in regions(data, reader)]


def test_a_sound_segment():
    old = forge.entry(2, forge.message(0, b"k", b"v")) + forge.entry(3, forge.message(1, b"k", b"v", timestamp=1))
    assert kinds(GOOD + NEXT + old) == [RecordBatch] * 4
    assert [region.magic for region in regions(GOOD + NEXT + old)] == [2, 2, 0, 1]
    assert kinds(b"") == []


def test_cut_at_every_byte():
    last = forge.batch([forge.record(b"k", b"w")], base_offset=1 << 60)  # its first byte is not zero
    for cut in range(1, len(last)):
        assert kinds(GOOD + last[:cut]) == [RecordBatch, Trailing]
        assert kinds(GOOD + last[:cut], walk.walk) == [RecordBatch, Trailing]


@pytest.mark.parametrize("zeros", [1, 17, 18, 61, 5000])
def test_zeros_at_the_end_are_padding_not_damage(zeros):
    assert kinds(GOOD + bytes(zeros)) == [RecordBatch, Padding]
    assert kinds(GOOD + bytes(zeros), walk.walk) == [RecordBatch, Trailing if zeros <= 17 else Damage]


@pytest.mark.parametrize(
    ("kind", "at", "bad"),
    [
        ("magic", 16, forge.batch([forge.record(b"k", b"v")], magic=3)),
        ("magic", 16, forge.batch([forge.record(b"k", b"v")], magic=-1)),
        ("crc", 17, forge.batch([forge.record(b"k", b"v")], crc=1)),
        ("crc", 12, forge.entry(0, forge.message(0, b"k", b"v", crc=1))),
        ("record size", 8, forge.batch([forge.record(b"k", b"v")], size=13)),
        ("record size", 8, forge.batch([forge.record(b"k", b"v")], size=-1)),
        ("batch size", 8, forge.batch([], size=48)),
        ("batch size", 8, forge.entry(0, forge.message(1, None, None, timestamp=0)[:21])),
        ("codec", 21, forge.batch([], attributes=7)),
    ],
)
def test_damage_names_the_field(kind, at, bad):
    found = regions(GOOD + bad + NEXT)
    assert isinstance(found[1], Damage)
    assert (found[1].kind, found[1].at) == (kind, len(GOOD) + at)
    assert len(found) == 2


def test_the_walk_believes_what_the_original_believes():
    """It continues after a wrong CRC and a magic of 9, which it treats as 2."""
    data = forge.batch([], magic=9, count=0) + forge.batch([], crc=1) + NEXT
    assert kinds(data, walk.walk) == [RecordBatch] * 3


def test_a_length_beyond_the_file_is_never_read():
    source = Memory(GOOD + forge.batch([forge.record(b"k", b"v")], size=0x7FFFFFFF) + bytes(100))
    assert isinstance(list(walk.walk(source))[-1], Trailing)
    assert source.most <= walk.BLOCK


def test_batches_across_the_blocks_that_are_read():
    big = forge.batch([forge.record(None, bytes(300_000))])
    data = (big + GOOD) * 8
    assert kinds(data) == [RecordBatch] * 16
    assert [bytes(region.raw) for region in regions(data)] == [big, GOOD] * 8


def test_an_end_before_the_end():
    source = Memory(GOOD + NEXT)
    assert [type(region) for region in walk.walk(source, end=len(GOOD) + 5)][1:] == [Trailing]
    assert list(walk.walk(source, end=0)) == []


def test_a_file_that_shrinks_while_it_is_read():
    source = Memory(GOOD + NEXT)
    source.data = GOOD
    assert [type(region).__name__ for region in walk.walk(source)] == ["Batch", "Trailing"]


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UnreadableError, match="No such file"):
        local.LocalFile(tmp_path / "missing.log")
    with pytest.raises(UnreadableError, match="is a folder, not a file"):
        local.LocalFile(tmp_path)


def test_damage_inside_a_batch_keeps_its_place():
    damage = walk.as_region(DamageError("crc", "wrong", position=17, expected=1, found=2), 100, 50)
    assert damage == Damage(100, 50, "crc", "wrong", 117, 1, 2)
