"""The examples in the pages on Spark run as printed."""

import contextlib
import io
import re
import sys

import pytest

from kdump.cli import main
from testing import GOLDEN, ROOT
from testing.processes import kdump
from tools.docs import shown

PAGES = ROOT / "docs" / "spark"
BROKER = GOLDEN / "brokers" / "4.2.2"


def example(page, language):
    """Return the first block of a page in a language."""
    return re.search(rf"^```{language}\n(.*?)^```", (PAGES / page).read_text(), re.DOTALL | re.MULTILINE)[1]


def test_the_answers_are_those_of_the_example(spark, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "examples")])
    forensics = pytest.importorskip("forensics")
    printed = io.StringIO()
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        answers = forensics.ask(spark, str(BROKER), "2023-11-14 22:17")
        with contextlib.redirect_stdout(printed):
            for title, answer in answers.items():
                print(title)
                answer.show(truncate=28)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    page = (PAGES / "read.md").read_text()
    in_page = re.match(r"```\n(.*?)```", page.partition("<!-- forensics -->\n")[2], re.DOTALL)[1]
    assert printed.getvalue().strip() == in_page.strip()


def test_the_stream_writes_each_record_once(spark, tmp_path):
    folder = BROKER / "headers-0"
    code = example("stream.md", "python").replace("lake/", f"{tmp_path}/lake/").replace("/var/kafka", str(folder))
    for _ in range(2):
        exec(code, {"spark": spark})
    rows = spark.read.parquet(f"{tmp_path}/lake/kafka").select("offset").collect()
    count = kdump("dump", folder, "--count").stdout
    assert sorted(row.offset for row in rows) == list(range(int(count)))


def test_an_answer_is_the_same_with_spark(spark, monkeypatch, capfd):
    text = (PAGES / "cluster.md").read_text()
    (line,) = [line for line in shown.command_lines(text) if "local[2]" in line]
    words = shown.parse(line).words
    printed = []
    monkeypatch.chdir(ROOT)
    for words_of_run in (words, words[: words.index("--master")]):
        monkeypatch.setattr(sys, "argv", words_of_run)
        status = main()
        printed.append((status, *capfd.readouterr()))
    assert printed[0] == printed[1]
    assert "c-zstd-0" in printed[0][1]
