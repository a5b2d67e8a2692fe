import pytest

from kdump.schemas import UndecodableError
from kdump.schemas.readers import read_json


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        (b'{"a":[1,2.5,"x",null,true]}', {"a": [1, 2.5, "x", None, True]}),
        (b"9007199254740993", 9007199254740993),
        (b"1e999", "Infinity"),
        (b"\xef\xbb\xbf[1]", [1]),
        ('{"ä":1}'.encode("utf-16"), {"ä": 1}),
        ('{"ä":1}'.encode("utf-16-be"), {"ä": 1}),
        ('{"ä":1}'.encode("utf-32-le"), {"ä": 1}),
    ],
)
def test_values(payload, value):
    assert read_json(b"frame" + payload, 5) == value


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"NaN",
        b"-Infinity",
        b'"\xff"',
        b"\xff\xfe1",
        b"\xef\xbb\xbf",
        b"1 2",
        b"[" * 201 + b"]" * 201,
        b"[" * 100_000,
        b"9" * 5000,
    ],
)
def test_what_is_no_json_has_a_reason(payload):
    with pytest.raises(UndecodableError):
        read_json(payload, 0)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [(b"NaN", "NaN is not JSON"), (b"[" * 201 + b"]" * 201, "the JSON is nested too deep")],
)
def test_a_deep_value_is_not_called_malformed(payload, reason):
    with pytest.raises(UndecodableError, match=f"^{reason}$"):
        read_json(payload, 0)


def test_brackets_in_texts_are_no_levels():
    text = b'["' + b"[" * 300 + b'\\"{"]'
    assert read_json(text, 0) == ["[" * 300 + '"{']
    assert read_json(b"[" * 64 + b"]" * 64, 0)
