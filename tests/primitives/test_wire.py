from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import pytest

from kdump.errors import DamageError
from kdump.primitives import wire

if TYPE_CHECKING:
    from kdump.primitives.wire import Int16, Int64

VARINTS = [
    (0, "00"), (-1, "01"), (1, "02"), (-2, "03"), (63, "7e"), (-64, "7f"), (64, "8001"), (8191, "fe7f"),
    (8192, "808001"), (1048575, "feff7f"), (2**31 - 1, "feffffff0f"), (-(2**31), "ffffffff0f"),
]  # fmt: skip


class Pair(NamedTuple):
    first: Int64
    second: Int16


def test_a_layout_knows_its_size_and_offsets():
    layout = wire.Layout(Pair)
    assert layout.size == 10
    assert layout.offsets == {"first": 0, "second": 8}
    assert layout.read(layout.write(Pair(-5, 7))) == Pair(-5, 7)
    assert layout.write(Pair(-5, 7)) == struct.pack(">qh", -5, 7)
    assert layout.write_all([-5, 1, 2], [7, 8, 9]) == b"".join(map(layout.write, map(Pair, [-5, 1, 2], [7, 8, 9])))
    assert layout.write_all([], []) == b""


@pytest.mark.parametrize("cut", range(10))
def test_a_layout_cut_off_is_damage(cut):
    with pytest.raises(DamageError) as caught:
        wire.Layout(Pair).read(bytes(3 + cut), 3)
    assert (caught.value.position, caught.value.expected, caught.value.found) == (3, 10, cut)


@pytest.mark.parametrize(("value", "text"), VARINTS)
def test_varints(value, text):
    data = bytes.fromhex(text)
    assert wire.write_varint(value) == data
    assert wire.read_varint(b"\xff" + data + b"\xff", 1) == (value, 1 + len(data))


def test_extremes_of_64_bits_take_ten_bytes():
    for value in (2**63 - 1, -(2**63)):
        data = wire.write_varint(value)
        assert len(data) == 10
        assert wire.read_varint(data, 0, 64) == (value, 10)


@pytest.mark.parametrize(("bits", "most"), [(32, 5), (64, 10)])
def test_a_varint_that_does_not_end_is_damage(bits, most):
    with pytest.raises(DamageError, match="does not end"):
        wire.read_varint(b"\x80" * 20, 0, bits)
    with pytest.raises(DamageError, match="truncated"):
        wire.read_varint(b"\x80" * (most - 1), 0, bits)


def test_arithmetic_wraps_as_in_java():
    assert wire.to_int32(2**31) == -(2**31)
    assert wire.to_int32(-(2**31) - 1) == 2**31 - 1
    assert wire.to_int64(2**63 + 1) == -(2**63) + 1
