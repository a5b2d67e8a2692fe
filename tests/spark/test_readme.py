"""What the README says of Spark, held against the code."""

import contextlib
import io
import re
import sys

import pytest

from testing import GOLDEN, ROOT

README = (ROOT / "README.md").read_text()


def behind(mark: str) -> str:
    """The block behind a mark of the README, up to an empty line that no more of it follows."""
    return README.split(f"<!-- {mark} -->\n", 1)[1]


def test_the_options_are_those_of_the_source():
    from kdump.spark.source.options import OPTIONS

    table = behind("spark options").split("\n\n", 1)[0].splitlines()[2:]
    assert table == [f"| {option.name} | {option.shape} | {option.doc} |" for option in OPTIONS]


def test_the_answers_are_those_of_the_example(spark, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "examples")])
    forensics = pytest.importorskip("forensics")
    shown = io.StringIO()
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        answers = forensics.ask(spark, str(GOLDEN / "brokers" / "4.2.2"), "2023-11-14 22:17")
        with contextlib.redirect_stdout(shown):
            for title, answer in answers.items():
                print(title)
                answer.show(truncate=28)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    told = re.match(r"```\n(.*?)```", behind("forensics"), re.DOTALL)[1]
    assert shown.getvalue().strip() == told.strip()
