"""Check the English of docs, docstrings, comments and messages: `python -m tools.dev.prose [--held] [PATH...]`.

Each finding is one line, `file:line: text: problem`. The exit status is 1 if there are findings. The words, the limits
and the paths that `--held` leaves out are in `prose.yml`. Code in backquotes, code blocks and tables are not checked.

The project checks its prose itself: Vale reads no string literals, so it would miss every message, and its wheel
downloads the program at the first run.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
RULES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("prose.yml").read_text())
FOLDERS = ("kdump", "tests", "tools", "bench", "docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
SUFFIXES = {".py", ".pyi", ".pyx", ".pxd", ".md"}

_CODE = re.compile(r"``.+?``|`[^`]*`", re.DOTALL)
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_SENTENCE_END = re.compile(r"(?<=[.!?;:])[\"')*]*\s+|,\s+(?=\d )|\n\s*\n|\n\s*(?=[-*] |\d+\. |>>> |#)")
_BLOCK = re.compile(r"^( *)(```|~~~).*?^\1\2", re.DOTALL | re.MULTILINE)
_WORDS = {
    re.compile(rf"(?<![\w.%/-])(?:{word.replace(' ', chr(92) + 's+')})(?![\w/-])", re.IGNORECASE): use
    for word, use in RULES["words"].items()
}
_NAMES = {*RULES["names"]}
_AS_TYPED = re.compile(r"^ *\x08\n.*?(?=\n\s*\n|\Z)", re.DOTALL | re.MULTILINE)
"""A paragraph of a command's help that click prints unchanged: examples and tables."""
_CYTHON = re.compile(
    r'"""(?P<docstring>.*?)"""|(?:^ *#[^\n]*\n)+|#[^\n]*|"(?P<message>(?:[^"\\\n]|\\.)*)"', re.DOTALL | re.MULTILINE
)


class Text(NamedTuple):
    """A piece of prose and the line it starts on (from 1)."""

    line: int
    prose: str
    is_paragraph: bool
    """Whether the length of its sentences counts: docs, docstrings and comments, but not messages."""
    longest_paragraph: int | None = None
    """The largest number of lines of a paragraph or of a list item. None: no limit."""


class Problem(NamedTuple):
    """A finding: the text in a line of a file, and what to write instead."""

    path: Path
    line: int
    found: str
    use: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found!r}: {self.use}"


def files(paths: list[Path]) -> Iterator[Path]:
    """Yield the files with prose among and below the paths, in order."""
    for path in paths:
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in found if file.suffix in SUFFIXES and "__pycache__" not in file.parts)


def is_exempt(path: Path) -> bool:
    """Return whether `exempt` of `prose.yml` names the file or a folder of it."""
    return any(path.resolve().is_relative_to(ROOT / exempt) for exempt in RULES["exempt"])


def problems(path: Path) -> Iterator[Problem]:
    """Yield the findings of one file."""
    source = path.read_text()
    texts = {".md": _of_markdown, ".py": _of_python, ".pyi": _of_python}.get(path.suffix, _of_cython)(source)
    for text in texts:
        yield from _of_words(path, text)
        if text.is_paragraph:
            yield from _of_sentences(path, text)
        if text.longest_paragraph is not None:
            yield from _of_paragraphs(path, text, text.longest_paragraph)
    if path.suffix == ".py":
        yield from _of_names(path, ast.parse(source))


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _of_words(path: Path, text: Text) -> Iterator[Problem]:
    prose = _CODE.sub(lambda code: "`" + "\n" * code[0].count("\n") + "`", text.prose)
    for pattern, use in _WORDS.items():
        for found in pattern.finditer(prose):
            lines = prose.count("\n", 0, found.start()) if text.is_paragraph else 0
            yield Problem(path, text.line + lines, found[0], use)


def _of_sentences(path: Path, text: Text) -> Iterator[Problem]:
    prose = _LINK.sub(r"\1", _CODE.sub(lambda code: "code" + "\n" * code[0].count("\n"), text.prose))
    start = 0
    for end in [*(found.end() for found in _SENTENCE_END.finditer(prose)), len(prose)]:
        words = re.findall(r"[\w'-]+", prose[start:end])
        if len(words) > RULES["longest_sentence"]:
            line = text.line + prose.count("\n", 0, start)
            yield Problem(path, line, " ".join(words[:6]) + " ...", f"a sentence of {len(words)} words")
        start = end


def _of_paragraphs(path: Path, text: Text, longest: int) -> Iterator[Problem]:
    line = text.line
    for block in re.split(r"(\n(?:\s*\n|(?= *(?:[-*]|\d+\.) )))", text.prose):
        lines = block.strip().splitlines()
        if len(lines) > longest:
            yield Problem(path, line, " ".join(lines[0].split()[:6]) + " ...", f"a paragraph of {len(lines)} lines")
        line += block.count("\n")


def _of_names(path: Path, tree: ast.Module) -> Iterator[Problem]:
    """Yield the findings in names at their definition. Uses of names of other libraries do not count."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name="tell", args=ast.arguments(args=[ast.arg(arg="self")])):
                continue  # the position of a file
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                pass
            case _:
                continue
        words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
        for word in sorted(_NAMES.intersection(map(str.lower, words))):
            yield Problem(path, node.lineno, name, f"a name without {word!r}")


def _of_markdown(source: str) -> Iterator[Text]:
    prose = _BLOCK.sub(_blank, source)
    prose = re.sub(r"^\s*[|<].*$", "", prose, flags=re.MULTILINE)  # rows of tables, HTML
    prose = re.sub(r"^ {4,}(?![-*] |\d+\. )\S.*$", "", prose, flags=re.MULTILINE)
    yield Text(1, prose, is_paragraph=True, longest_paragraph=RULES["longest_paragraph"])


def _of_python(source: str) -> Iterator[Text]:
    docstrings = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as prose) as constant):
                docstrings.add(id(constant))
                yield Text(node.lineno, _AS_TYPED.sub(_blank, prose), is_paragraph=True)
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as prose) if id(node) not in docstrings and prose.count(" ") >= 2:
                yield Text(node.lineno, _AS_TYPED.sub(_blank, prose), is_paragraph=False)
    yield from _of_comments(source)


def _of_comments(source: str) -> Iterator[Text]:
    start, lines, last = 0, list[str](), 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if lines and token.start[0] != last + 1:
                yield Text(start, "\n".join(lines), is_paragraph=True)
                lines = []
            start = start if lines else token.start[0]
            lines.append(re.sub(r"(noqa|type: ignore)\S*", "", token.string.lstrip("#: ")))
            last = token.start[0]
    if lines:
        yield Text(start, "\n".join(lines), is_paragraph=True)


def _of_cython(source: str) -> Iterator[Text]:
    for found in _CYTHON.finditer(source):
        line = source.count("\n", 0, found.start()) + 1
        message = found["message"]
        if found["docstring"] is not None and source[: found.start()].rstrip().endswith("cdef extern from *:"):
            for comment in re.finditer(r"/\*(.*?)\*/", found[0], re.DOTALL):  # the rest is C
                yield Text(line + found[0].count("\n", 0, comment.start()), comment[1], is_paragraph=True)
        elif message is None:
            prose = re.sub(r"^ *#:? ?", "", found["docstring"] or found[0], flags=re.MULTILINE)
            yield Text(line, prose, is_paragraph=True)
        elif message.count(" ") >= 2:
            yield Text(line, message, is_paragraph=False)


def main() -> int:
    """Print the findings of the paths given, or of the whole project."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held", action="store_true", help="leave out the paths that prose.yml exempts")
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT / name for name in FOLDERS])
    given = parser.parse_args()
    found = [
        problem for path in files(given.paths) if not (given.held and is_exempt(path)) for problem in problems(path)
    ]
    for problem in found:
        print(problem)
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
