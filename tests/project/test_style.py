"""Every exception from ruff and mypy has a reason beside it."""

import re

import pytest

from testing import ROOT

FOLDERS = ("kdump", "pyspark_kdump", "tools", "testing", "tests", "bench", "examples")
EXCEPTION = re.compile(r"#\s*(?:noqa\b:? ?[A-Z0-9, ]*|type: ignore(?:\[[\w, -]+\])?)")


def without_reason(source: str) -> list[str]:
    return [
        line
        for line in source.splitlines()
        if (found := list(EXCEPTION.finditer(line))) and not line[found[-1].end() :].strip("# ")
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_exception_has_its_reason(folder):
    assert {path: lines for path in (ROOT / folder).rglob("*.py") if (lines := without_reason(path.read_text()))} == {}


@pytest.mark.parametrize("mark", ["noqa: E501", "noqa: ARG002, N802", "type: ignore[arg-type]", "noqa"])
def test_one_without_is_found(mark):
    assert without_reason(f"pass  # {mark}") == [f"pass  # {mark}"]
    assert without_reason(f"pass  # {mark}  as it is") == []
