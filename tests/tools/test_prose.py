"""The check of the project's English finds words, long sentences and names, and ignores code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools.dev import prose

if TYPE_CHECKING:
    from pathlib import Path

LONG = " ".join(["word"] * 31)
PARAGRAPH = "A short line.\n" * 6


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("page.md", "One.\nThe\ntold\nfile.\n", [(3, "told")]),
        ("page.md", f"{LONG}.\n", [(1, "word word word word word word ...")]),
        ("page.md", f"{LONG[:60]}.\n\n{LONG[:60]}: `code {LONG}`\n", []),
        ("page.md", "```\ntold\n```\n\n    told\n\n| told |\n", []),
        ("page.md", "Read `told` and\n`is\ntold` and a file-behind.txt.\n", []),
        ("page.md", f"One.\n\n{PARAGRAPH}", [(3, "A short line. ...")]),
        ("page.md", f"{PARAGRAPH[:70]}\n\n{PARAGRAPH[:70]}\n- one\n- two\n", []),
        ("page.md", f"- one\n- {PARAGRAPH}", [(2, "- A short line. ...")]),
        ("module.py", f'"""{PARAGRAPH}"""\n', []),
        ("module.py", '"""None\nwhere."""\n', [(1, "None\nwhere")]),
        ("module.py", "x = 1  # a byte\n# offset\n# behind\n", [(3, "behind")]),
        ("module.py", 'x = f"{y} is not\nthe\ntold"\n'.replace("\n", "\\n", 2), [(1, "told")]),
        ("module.py", 'x = "told"\n', []),
        ("module.py", "# It is no log, there is no log, it is no longer one.\n", [(1, "is no")]),
        ("module.py", f'"""Do.\n\n\\b\nkdump {LONG}\n\nExit status: 0 {LONG[:60]}, 1 {LONG[:90]}.\n"""\n', []),
        ("module.py", f'x = "{LONG}"\n', []),
        ("module.py", 'HELP = """Do.\n\n\\b\nbehind  a word of the table\n\nNobody does it.\n"""\n', [(1, "Nobody")]),
        ("module.py", "def _is_told(): ...\n", [(1, "_is_told")]),
        ("module.py", "class HasTold:\n    behind = 1\n", [(1, "HasTold"), (2, "behind")]),
        ("module.py", "x = file.tell()\nuntold = tells\n", []),
        ("module.py", "class File:\n    def tell(self):\n        pass\n", []),
        ("module.py", "def tell(text):\n    pass\n", [(1, "tell")]),
        (
            "module.pyx",
            'x\n"""One.\n\nNobody.\n"""\ncdef int y  # told\n    # anew\n',
            [(4, "Nobody"), (6, "told"), (7, "anew")],
        ),
        (
            "words.pxd",
            'cdef extern from *:\n    """\n    int told;\n    /* One\n     told */\n    """\n',
            [(5, "told")],
        ),
        ("module.pyx", 'raise E("byte %d is not\\n the told" % x)\nx = "told"\n', [(1, "told")]),
    ],
)
def test_findings_of_a_file(tmp_path: Path, name: str, source: str, found: list[tuple[int, str]]) -> None:
    path = tmp_path / name
    path.write_text(source)
    assert sorted((problem.line, problem.found) for problem in prose.problems(path)) == found


def test_only_files_with_prose_are_read(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    for name in ("b.py", "a.md", "x.log", "__pycache__/c.py"):
        (tmp_path / name).touch()
    assert [path.name for path in prose.files([tmp_path])] == ["a.md", "b.py"]


def test_an_exempt_room_is_left_out_only_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setitem(prose.RULES, "exempt", ["room", "page.md"])
    (tmp_path / "room").mkdir()
    (tmp_path / "rooms.md").touch()
    exempt = [prose.is_exempt(tmp_path / name) for name in ("room/module.py", "page.md", "rooms.md", "room")]
    assert exempt == [True, True, False, True]


def test_the_status_follows_the_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setitem(prose.RULES, "exempt", ["page.md"])
    path = tmp_path / "page.md"
    path.write_text("It is told.\n")
    for arguments, status in (([str(path)], 1), (["--held", str(path)], 0)):
        monkeypatch.setattr("sys.argv", ["prose", *arguments])
        assert prose.main() == status
    assert capsys.readouterr().out == f"{path}:1: 'told': reported, given, printed\n"
