import pytest

from kdump.primitives.encodings import java_text, java_utf8

R = "\ufffd"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        ("zażółć 中文 🙂".encode(), "zażółć 中文 🙂"),
        (b"a\x00b\n", "a\x00b\n"),
        (b"\xff", R),
        (b"\xe2\x82", R),
        (b"\xe2\x28\xa1", R + "(" + R),
        (b"\xf0\x9f\x99", R),
        (b"\xc0\x80", R + R),
        (b"\xed\xa0\x80", R),  # a surrogate: one mark where Python has three
        (b"\xed\xa0", R),
        (b"\xed\xa0x", R + "x"),
        (b"\xed\xb0\xbf\xed\xa0\x80", R + R),
        (b"\xed\x9f\xbf", "\ud7ff"),
    ],
)
def test_malformed_input_reads_as_in_java_17(data, text):
    assert java_utf8(data) == text
    assert java_text(data) == text.encode()
