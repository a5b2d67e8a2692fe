import crcmod.predefined
import pytest

from kdump.primitives import crc

INDEPENDENT = {
    crc.crc32c: crcmod.predefined.mkPredefinedCrcFun("crc-32c"),
    crc.crc32: crcmod.predefined.mkPredefinedCrcFun("crc-32"),
}


@pytest.mark.parametrize("function", INDEPENDENT)
@pytest.mark.parametrize("data", [b"", b"123456789", bytes(range(256)) * 9])
def test_both_checksums_agree_with_crcmod(function, data):
    assert function(data) == INDEPENDENT[function](data)
    assert function(memoryview(data)) == INDEPENDENT[function](data)


def test_check_values_of_the_catalogue():
    assert crc.crc32c(b"123456789") == 0xE3069283
    assert crc.crc32(b"123456789") == 0xCBF43926


@pytest.mark.parametrize("kind", [crc.CRC32, crc.CRC32C])
@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000, 1 << 21])
def test_checksums_of_two_ranges_are_combined(kind, size):
    first, second = b"first", bytes(size)
    assert crc.combine(kind, kind.of(first), kind.of(second), size) == kind.of(first + second)


@pytest.mark.parametrize("kind", [crc.CRC32, crc.CRC32C])
def test_ranges_of_any_size_are_combined_without_deep_recursion(kind):
    """A batch may have 2 GiB, and no smaller power is known when it is the first one."""
    crc._power.cache_clear()
    sizes = (2**30, 2**40)
    left = crc.combine(kind, crc.combine(kind, 1, 2, sizes[0]), 3, sizes[1])
    assert left == crc.combine(kind, 1, crc.combine(kind, 2, 3, sizes[1]), sum(sizes))
