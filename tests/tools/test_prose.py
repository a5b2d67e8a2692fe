"""The check of the project's English finds words, long sentences and names, and leaves code alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools.dev import prose

if TYPE_CHECKING:
    from pathlib import Path

LONG = " ".join(["word"] * 31)


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("page.md", "One.\nThe\ntold\nfile.\n", [(3, "told")]),
        ("page.md", f"{LONG}.\n", [(1, "word word word word word word ...")]),
        ("page.md", f"{LONG[:60]}.\n\n{LONG[:60]}: `code {LONG}`\n", []),
        ("page.md", "```\ntold\n```\n\n    told\n\n| told |\n", []),
        ("page.md", "Read `told` and\n`is\ntold` and a file-behind.txt.\n", []),
        ("module.py", '"""None\nwhere."""\n', [(1, "None\nwhere")]),
        ("module.py", "x = 1  # a byte\n# offset\n# behind\n", [(3, "behind")]),
        ("module.py", 'x = f"{y} is not\nthe\ntold"\n'.replace("\n", "\\n", 2), [(1, "told")]),
        ("module.py", 'x = "told"\n', []),
        ("module.py", f'x = "{LONG}"\n', []),
        ("module.py", "def _is_told(): ...\n", [(1, "_is_told")]),
        ("module.pyx", 'x\n"""One.\n\nNobody.\n"""\ncdef int y  # told\n    # anew\n', [(4, "Nobody"), (7, "anew")]),
    ],
)
def test_findings_of_a_file(tmp_path: Path, name: str, source: str, found: list[tuple[int, str]]) -> None:
    path = tmp_path / name
    path.write_text(source)
    assert [(problem.line, problem.found) for problem in prose.problems(path)] == found


def test_only_files_with_prose_are_read(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    for name in ("b.py", "a.md", "x.log", "__pycache__/c.py"):
        (tmp_path / name).touch()
    assert [path.name for path in prose.files([tmp_path])] == ["a.md", "b.py"]
