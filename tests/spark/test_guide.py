"""What the Spark guide shows, held against the code."""

import contextlib
import io
import re
import sys

import pytest

from testing import GOLDEN, ROOT

GUIDE = (ROOT / "docs" / "spark.md").read_text()


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
    told = re.match(r"```\n(.*?)```", GUIDE.partition("<!-- forensics -->\n")[2], re.DOTALL)[1]
    assert shown.getvalue().strip() == told.strip()
