"""Coloured lines: without the colours they equal the plain lines."""

import re

import pytest

from kdump.printers import colours
from testing.processes import kdump, on_a_terminal

SEGMENT = "golden/brokers/4.2.2/c-zstd-0"
SEQUENCE = re.compile(rb"\x1b\[[0-9;]*m")


def painted(ending, line, *patterns):
    paint = colours.painter(ending, [re.compile(pattern) for pattern in patterns])
    return paint(line)


def test_json_has_names_texts_and_words_in_colours_of_their_own():
    line = rb'{"offset":12,"key":"a\"b","valid":true,"at":null}'
    assert painted("jsonl", line) == (
        b'{\x1b[34;1m"offset"\x1b[m:12,\x1b[34;1m"key"\x1b[m:\x1b[32m"a\\"b"\x1b[m,'
        b'\x1b[34;1m"valid"\x1b[m:\x1b[90mtrue\x1b[m,\x1b[34;1m"at"\x1b[m:\x1b[90mnull\x1b[m}'
    )


def test_damage_is_one_red_line():
    line = b'{"kind":"damage","position":5}'
    assert painted("jsonl", line) == b"\x1b[31;1m" + line + b"\x1b[m"


def test_matches_are_marked_in_keys_and_values_alone():
    line = b'{"topic":"foo","value":"foo bar"}'
    assert painted("jsonl", line, b"foo|b", b"(?i)OO").count(b"\x1b[31;1m") == 2
    text = b"| offset: 7 CreateTime: 7 key: 7 payload: 177"
    assert painted("text", text, b"7") == (
        b"| offset: 7 CreateTime: 7 key: \x1b[31;1m7\x1b[m payload: 1\x1b[31;1m7\x1b[m\x1b[31;1m7\x1b[m"
    )
    assert painted("text", b"baseOffset: 7", b"7") == b"baseOffset: 7"
    assert painted("text", text, b"x*") == text


@pytest.mark.parametrize(("ending", "patterns"), [("text", []), ("csv", [b"7"]), ("raw", [b"7"]), ("format", [b"7"])])
def test_what_has_no_colours(ending, patterns):
    assert colours.painter(ending, [re.compile(pattern) for pattern in patterns]) is None


@pytest.mark.parametrize(
    "args", [["-o", "jsonl"], ["-o", "jsonl", "--grep", "gam+a"], ["--grep", "gam+a"]], ids=" ".join
)
def test_without_its_colours_the_output_is_that_of_a_pipe(args, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain = kdump("dump", SEGMENT, *args).stdout
    assert b"\x1b" not in plain
    coloured = kdump("dump", SEGMENT, *args, "--color", "always").stdout
    assert coloured != plain
    assert SEQUENCE.sub(b"", coloured) == plain
    _, shown = on_a_terminal(kdump, "dump", SEGMENT, *args)
    assert shown == coloured
    assert on_a_terminal(kdump, "dump", SEGMENT, *args, "--color", "never")[1] == plain


def test_no_color_in_the_environment_is_heeded(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert colours.are_wanted("auto", terminal=True)
    assert not colours.are_wanted("auto", terminal=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colours.are_wanted("auto", terminal=True)
    assert colours.are_wanted("always", terminal=False)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not colours.are_wanted("auto", terminal=True)


def test_hashes_of_redacted_payloads_are_not_marked(monkeypatch):
    monkeypatch.setenv("KDUMP_REDACT_KEY", "secret secret")
    shown = kdump("dump", SEGMENT, "--grep", "[0-9a-f]", "--redact", "-o", "jsonl", "--color", "always").stdout
    assert b"\x1b[34;1m" in shown
    assert b"\x1b[31;1m" not in shown
