"""Columns for lines of several kinds."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[arrow]'")

from kdump.arrow.answer_lines import LineColumns, ddl


@dataclass(frozen=True)
class Part:
    first_offset: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class One:
    kind: ClassVar[str] = "one"
    topic: str | None
    partition: int
    size: int
    state: Literal["open", "hanging"]
    part: Part | None
    by_name: dict[str, Part]


@dataclass(frozen=True)
class Other:
    kind: ClassVar[str] = "other"
    topic: str
    size: float
    from_: tuple[Part, ...] | None


def test_each_field_is_a_column_and_other_types_have_their_own():
    columns = LineColumns([One, Other])
    part = "struct<`firstOffset`: bigint, `names`: array<string>>"
    assert ddl(columns.schema) == (
        f"`kind` string, `topic` string, `partition` int, `size` bigint, `state` string, `part` {part}, "
        f"`byName` map<string, {part}>, `otherSize` double, `from` array<{part}>"
    )
    lines = [
        One("a\udcff", 1, 1 << 60, "open", None, {"x\udcfe": Part(3, ("n",))}),
        Other("b", 0.5, (Part(4, ()),)),
    ]
    one, other = columns.batch([columns.row(line) for line in lines]).to_pylist()
    assert {name: value for name, value in one.items() if value is not None} == {
        "kind": "one",
        "topic": "a\\xff",
        "partition": 1,
        "size": 1 << 60,
        "state": "open",
        "byName": [("x\\xfe", {"firstOffset": 3, "names": ["n"]})],
    }
    assert {name: value for name, value in other.items() if value is not None} == {
        "kind": "other",
        "topic": "b",
        "otherSize": 0.5,
        "from": [{"firstOffset": 4, "names": []}],
    }
