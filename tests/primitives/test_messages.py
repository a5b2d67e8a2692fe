"""Messages on standard error: one line each in a pipe; on a terminal with its width, colours and links."""

import os
import re
import sys

import pytest

from kdump.primitives import messages, terminal
from kdump.primitives.messages import folded, has_links, linked, message

SENTENCE = (
    "/var/kafka/orders-0/00000000000000000000.log: byte 4: the crc is wrong; kdump salvage /var/kafka gets the rest"
)


class Terminal:
    """Standard error on a terminal of 40 columns, as text."""

    def __init__(self, monkeypatch, **environment):
        self.text = ""
        for name in (*messages._LINKING, "TERM_PROGRAM", "VTE_VERSION", "FORCE_HYPERLINK", "NO_COLOR"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {"COLUMNS": "40", "TERM": "xterm", **environment}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "stderr", self)

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.mark.parametrize("level", messages.STYLES)
def test_a_pipe_gets_one_line(level, capsys):
    message(level, f"{SENTENCE}\nand\x1b[31m")
    assert capsys.readouterr().err == f"{level}: {SENTENCE}\\x0aand\\x1b[31m\n"


def test_keys_of_a_store_are_not_printed(capsys):
    message("error", "s3://key:se+cret==@bucket/logs?region=x: gone", "kdump check hdfs://user:secret@host:80/a")
    shown = capsys.readouterr().err
    assert shown == "error: s3://bucket/logs?region=x: gone\nhint: kdump check hdfs://host:80/a\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:p@host/x?X-Amz-Date=1&X-Amz-Signature=2: gone", "https://host/x: gone"),
        ("kdump check 's3://key:se cret/@bucket/a?secret_key=x&y=z'", "kdump check 's3://bucket/a'"),
        ("s3:/key:se/cr@et@bucket/x", "s3:/bucket/x"),
        ("s3://AKIA:12/abcdef@bucket/x", "s3://bucket/x"),
        ("S3://KEY:SECRET@b: gone", "S3://b: gone"),
        ("copy /a:/b:rw@me to /data/a:/x:y@z", "copy /a:/b:rw@me to /data/a:/x:y@z"),
        ("see hdfs://node:8020/a@b?region=x", "see hdfs://node:8020/a@b?region=x"),
        ("s3://bucket/x: AWS Error 7: ask a@b", "s3://bucket/x: AWS Error 7: ask a@b"),
    ],
)
def test_no_secret_of_a_uri_is_printed(text, shown, capsys):
    message("error", text)
    assert capsys.readouterr().err == f"error: {shown}\n"


def test_hints_have_lines_of_their_own(capsys):
    message("error", "no such option", "kdump check --help")
    assert capsys.readouterr().err == "error: no such option\nhint: kdump check --help\n"


def test_a_terminal_gets_its_width_and_colours(monkeypatch):
    screen = Terminal(monkeypatch)
    message("warning", "a " * 60)
    lines = screen.text.splitlines()
    assert lines[0].startswith("\x1b[1;33mwarning\x1b[m: a a")
    assert all(len(re.sub(r"\x1b\[[\d;]*m", "", line)) <= 40 for line in lines)
    assert all(line.startswith("  a") for line in lines[1:])


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_off(monkeypatch, environment):
    screen = Terminal(monkeypatch, **environment)
    message("error", "x")
    assert screen.text == "error: x\n"


def test_a_command_is_in_one_piece():
    line = f"hint: kdump salvage {'/var/kafka/orders-0 ' * 5}--out salvaged"
    assert folded(line, 40) == [line]
    for width in range(10, 100):
        lines = folded(f"error: {SENTENCE}", width)
        assert " ".join(line.strip() for line in lines) == f"error: {SENTENCE}"
        assert any("kdump salvage" in line for line in lines)
        assert all(
            len(line) <= width or " " not in line.strip().removeprefix("error: ") or "kdump salvage" in line
            for line in lines
        )


def test_a_path_is_a_link_where_the_terminal_has_links(monkeypatch, tmp_path):
    path = "./a.log"
    (tmp_path / path).touch()
    monkeypatch.chdir(tmp_path)
    for environment, links in (({"VTE_VERSION": "6003"}, 1), ({"FORCE_HYPERLINK": "0", "WT_SESSION": "x"}, 0), ({}, 0)):
        screen = Terminal(monkeypatch, COLUMNS="400", NO_COLOR="1", **environment)
        message("error", f"{path}: it is damaged")
        assert screen.text.count("\x1b]8;;file://") == links
        assert screen.text.count(f"{path}: " if not links else f"{path}\x1b]8;;\x1b\\: ") == 1


@pytest.mark.parametrize("name", ["a\x1b]8;;x", "a b", "a\\x1b", "a;b", "\u202e/a", "a\nb"])
def test_hostile_names_get_no_link(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / name.replace("/", "_")).touch()
    assert linked(f"d/{name}") == f"d/{name}"


def test_a_link_leads_into_a_folder_whose_name_is_not_utf_8(tmp_path, monkeypatch):
    folder = tmp_path / os.fsdecode(b"a\xffb")
    (folder / "t-0").mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert "/a%FFb/t-0\x1b\\./t-0\x1b]8;;" in linked("./t-0")


def test_a_file_that_is_not_there_gets_no_link(tmp_path):
    assert linked(f"{tmp_path}/gone") == f"{tmp_path}/gone"


def test_a_pipe_has_no_links(monkeypatch):
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    monkeypatch.setenv("VTE_VERSION", "6003")
    assert not has_links()


def test_the_terminal_after_a_pager_is_one(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "PAGED", {2})
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "dumb")
    message("note", "a " * 30)
    assert max(map(len, capsys.readouterr().err.splitlines())) <= 30
