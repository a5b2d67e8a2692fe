import pytest

from kdump.dump_log_segments.lines import Field, line


def test_fields_are_written_by_their_type():
    parsed = line("a: {a} b: {b:bool} c: {c:optional} d: {d:optional} e: {e}}}")
    assert parsed.parts[1] == Field("a", "")
    values = {"a": 1, "b": 1, "c": None, "d": 7, "e": None}
    assert parsed.render(values.__getitem__) == "a: 1 b: true c: OptionalLong.empty d: OptionalLong[7] e: null}"


def test_an_unknown_type_is_refused():
    with pytest.raises(ValueError, match="unknown type"):
        line("{a:boolean}")
