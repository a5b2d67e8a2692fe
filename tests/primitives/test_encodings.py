import pytest

from kdump.primitives.encodings import is_json, java_integer, java_text, java_trim, java_utf8

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


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3", 3),
        ("٣", 3),
        ("３", 3),
        ("٣1", 31),
        ("+3", 3),
        ("-3", -3),
        ("0" * 5000 + "3", 3),
        ("-" + "0" * 30, 0),
        ("2147483647", 2147483647),
        ("-2147483648", -2147483648),
        ("2147483648", None),
        ("9" * 5000, None),
        ("𝟑", None),  # two chars in Java
        ("²", None),
        ("1_0", None),
        (" 3", None),
        ("3 ", None),
        ("3\n", None),
        ("+", None),
        ("--3", None),
        ("", None),
    ],
    ids=lambda one: repr(one)[:12],
)
def test_numbers_are_those_of_parse_int_in_java_17(text, number):
    assert java_integer(text, 32) == number


def test_only_characters_up_to_a_space_are_trimmed():
    assert java_trim("\0\x1c 3\u00a0\u2003\t ") == "3\u00a0\u2003"


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        (r'{"path":"C:\\ud83d"}', True),  # an escaped backslash before letters
        (r'"\ud83d"', False),
        (r'"\\\ud83d"', False),  # an escaped backslash before a lone surrogate
        (r'"\ud83d\ude00"', True),
        (r'"\ud83d\\\ude00"', False),
        (r'"\ude00\ud83d"', False),
    ],
)
def test_lone_surrogates_are_no_json(text, is_valid):
    assert is_json(text) is is_valid
