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
