"""The outputs of the Spark source beside records: damaged ranges, accounts, findings; schemas as DDL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.arrow.schema import ArrowField

if TYPE_CHECKING:
    from collections.abc import Iterable

_WHERE: Final = (ArrowField("topic", "string"), ArrowField("partition", "int"), ArrowField("file", "string"))
DAMAGED: Final = (
    *_WHERE,
    ArrowField("position", "bigint"),
    ArrowField("length", "bigint"),
    ArrowField("damage", "string"),
    ArrowField("reason", "string"),
    ArrowField("at", "bigint"),
    ArrowField("missingFrom", "bigint"),
    ArrowField("missingUntil", "bigint"),
    ArrowField("bytes", "binary"),
)
"""A range of bytes without a readable batch; a very long one is several rows, one after the other. An unreadable
range is one row without ``bytes``, whose ``damage`` is ``unreadable``. Offsets from ``missingFrom`` up to
``missingUntil`` may be lost with it; null if they are unknown."""

ACCOUNT: Final = (
    *_WHERE,
    ArrowField("start", "bigint"),
    ArrowField("end", "bigint"),
    ArrowField("batches", "bigint"),
    ArrowField("rows", "bigint"),
    ArrowField("batchBytes", "bigint"),
    ArrowField("damagedRanges", "bigint"),
    ArrowField("damagedBytes", "bigint"),
    ArrowField("paddingBytes", "bigint"),
    ArrowField("trailingBytes", "bigint"),
    ArrowField("unreadableBytes", "bigint"),
)
"""What the bytes from ``start`` to ``end`` of a file are; ``rows`` is what the output records gives of them."""

FINDINGS: Final = (
    ArrowField("kind", "string"),
    ArrowField("level", "string"),
    ArrowField("check", "string"),
    ArrowField("file", "string"),
    ArrowField("text", "string"),
    ArrowField("entry", "bigint"),
    ArrowField("position", "bigint"),
    ArrowField("offset", "bigint"),
    ArrowField("expected", "string"),
    ArrowField("found", "string"),
    ArrowField("advice", "string"),
    ArrowField("fatal", "boolean"),
)
"""What a check says: the fields of ``kdump/findings.schema.json``, numbers in ``expected`` and ``found`` as text.

``kind`` is ``finding``, ``remark``, or ``unreadable`` for a file that cannot be read: then ``text`` says why, and no
other column has a value but ``file``."""


def ddl(fields: Iterable[ArrowField]) -> str:
    """Return the fields as Spark's DDL text."""
    return ", ".join(f"`{field.name}` {field.type}" for field in fields)
