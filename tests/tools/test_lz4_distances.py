"""Finding the blocks that the liblz4 of a release decompresses to made-up bytes."""

import lz4.block
import lz4.frame

from tools.fuzz.lz4_distances import HEADER, MAGIC, has_distance_0


def frame(block, *, size=None):
    return MAGIC + bytes(HEADER - 4) + (len(block) if size is None else size).to_bytes(4, "little") + block + bytes(4)


def test_a_distance_of_0_is_found_after_literals_of_any_length():
    text = bytes(range(100)) * 40
    sound = lz4.block.compress(text, store_size=False)
    assert not has_distance_0(b"before" + frame(sound))
    distance = sound.index((100).to_bytes(2, "little"), 100)
    broken = sound[:distance] + bytes(2) + sound[distance + 2 :]
    assert has_distance_0(b"before" + frame(sound) + frame(broken))


def test_what_is_cut_or_not_compressed_has_none():
    assert not has_distance_0(frame(b"\x10"))
    assert not has_distance_0(frame(b"\x10a\0\0", size=1 << 31 | 4))
    assert not has_distance_0(frame(b"\xf0\xff\xff"))
    assert not has_distance_0(lz4.frame.compress(b"abc" * 99)[:-9])
