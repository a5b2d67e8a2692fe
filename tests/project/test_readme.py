import re

from testing import ROOT
from tools.dev import word_tables

README = (ROOT / "README.md").read_text()


def command(mark: str) -> str:
    """Return the shell command after a mark of the README."""
    found = re.search(rf"<!-- {mark} -->\n```sh\n(.+?)\n```", README, re.DOTALL)
    assert found, mark
    return found[1]


def test_the_segment_that_a_new_user_dumps_is_there():
    file = re.search(r"--files (\S+)", command("install"))[1]
    assert (ROOT / file).is_file()


def test_ci_runs_the_readmes_own_command():
    script = (ROOT / ".ci" / "run").read_text()
    assert "<!-- tests -->" in script
    assert "pytest" in command("tests")


def test_it_is_read_in_two_minutes():
    assert len(README.splitlines()) <= 150


def test_it_names_the_first_commands():
    assert all(text in README for text in ("--print-data-log", "kdump verify-index", "kdump spark-export"))


def test_the_page_of_words_has_every_option_and_json_field():
    assert word_tables.PAGE.read_text() == word_tables.page(), "python -m tools.dev.word_tables writes docs/words.md"
