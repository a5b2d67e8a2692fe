"""No output sends control sequences from names and records to a terminal, and suggested commands can be pasted.

``tools.prove.terminals`` runs all command lines of the matrix over any log dir.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from kdump import cli
from kdump.log_dirs.local import LOCAL
from kdump.primitives.terminal import harmless_line, shell_path, shell_pattern, shell_text, shell_word
from testing import terminals
from testing.processes import kdump
from tests.helpers import hostile

STRIDE = 7
"""Of so many command lines of the matrix one is run."""


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory):
    return hostile.write(tmp_path_factory.mktemp("hostile") / "logs")


@pytest.fixture(scope="module")
def lines(log_dir, tmp_path_factory):
    return list(terminals.matrix(log_dir, tmp_path_factory.mktemp("out")))


@pytest.mark.parametrize("part", range(4))
def test_no_command_steers_a_terminal(lines, part):
    assert len(lines) > 400
    for number, words in enumerate(lines[part::4]):
        if number % STRIDE == part % STRIDE or number < 12:
            screen = terminals.show(words, colours=number % 3 == 0)
            assert screen.shown or screen.status == 0, words
            assert not screen.faults, words
            assert b"Traceback" not in screen.shown, words


def test_the_sweep_finds_what_steers():
    steering = [
        "\x1b]52;c;x\x07",
        "\x1b[31m",
        "\x9b31m",
        "\u202e",
        "\u200e",
        "\u200f",
        "\u061c",
        "\u2069",
        "\0",
        "\x7f",
    ]
    assert all(terminals.Screen(text.encode(), 0).faults for text in steering)
    assert not terminals.Screen(b"\x1b[1;31mred\x1b[0m\r\n", 0, colours=True).faults
    assert not terminals.Screen("tab\t, \u20ac \u2215\r\n".encode(), 0).faults


def test_words_after_two_dashes_are_none():
    done = kdump("--")
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False)


def suggested(monkeypatch, capfd, *words):
    monkeypatch.setattr(sys, "argv", ["kdump", *map(str, words)])
    status = cli.main()
    assert status == 2
    return re.search(r"hint: (kdump .*)$", capfd.readouterr().err, re.MULTILINE)[1]


def meant(line):
    """Return the words of a suggested command line after the shell has expanded globs."""
    subprocess.run(["sh", "-n", "-c", line], check=True)
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], check=True, stdout=subprocess.PIPE)
    assert len(shlex.split(line)) == done.stdout.count(b"\0")
    return [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]]


def folders(log_dir):
    return [entry.path for entry in os.scandir(log_dir)]


def test_what_usage_errors_suggest_names_the_path(log_dir, monkeypatch, capfd):
    for path in folders(log_dir):
        assert meant(suggested(monkeypatch, capfd, path, "--json")) == ["kdump", "check", path, "--json"]
        assert meant(suggested(monkeypatch, capfd, "get", "X@0", path)) == ["kdump", "get", "X@0", "--in", path]


def test_what_answers_suggest_names_folders_that_are_there(log_dir, monkeypatch, capfd):
    commands = []
    for words in (["check", "--json", "--remarks"], ["report", "--json"]):
        monkeypatch.setattr(sys, "argv", ["kdump", words[0], str(log_dir), *words[1:]])
        cli.main()
        out = capfd.readouterr().out
        for line in map(json.loads, out.splitlines()):
            answers = line.get("answers", {})
            commands += [answer["command"] for answer in answers.values()]
            commands += re.findall(r"kdump (?:salvage|slice) .*? --out DIR", line.get("advice") or "")
    assert len(commands) > 5
    for command in commands:
        words = meant(command.partition(" | ")[0])
        assert words[0] == "kdump"
        paths = [word for word in words if word.startswith("/")]
        assert paths
        assert all(map(os.path.exists, paths)), command


@pytest.mark.parametrize(
    "name", [*hostile.NAMES, os.fsdecode(hostile.NOT_UTF8), "", "-", "--x", "[a]*?", "~", "a\\xffb"]
)
def test_words_for_a_shell(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where a glob that stands for nothing stays as it is
    if name not in {"", "-"}:
        (tmp_path / name).touch()
    for shown in (shell_path(name), shell_word(name), shell_pattern(name), shell_text(name)):
        assert harmless_line(shown) == shown
        subprocess.run(["sh", "-n", "-c", f"kdump {shown}"], check=True)
        assert len(shlex.split(shown)) == 1
    (_, word) = meant(f"kdump {shell_path(name)}")
    assert os.path.normpath(word) == os.path.normpath(name)
    if name not in {"", "-", "[a]*?"}:
        assert LOCAL.glob(shlex.split(shell_path(name))[0]), "kdump finds it where the shell leaves the word as it is"


def test_a_text_is_exact_in_bash():
    for name in hostile.NAMES:
        assert meant(f"kdump {shell_text(name)}") == ["kdump", name]


def test_format_strings_take_any_name_of_a_topic(log_dir):
    done = kdump("dump", log_dir, "-f", "%t:%o\\n")
    assert done.returncode == 3
    assert hostile.NOT_UTF8.removesuffix(b"-0") + b":0\n" in done.stdout
    assert b"Traceback" not in done.stderr


def test_a_pipe_gets_the_bytes_as_they_are_and_a_terminal_only_if_asked(log_dir):
    log = log_dir / f"{hostile.NAMES[0]}-0" / f"{0:020}.log"
    for words in (["--files", log, "--print-data-log"], ["dump", log], ["dump", log, "-o", "raw"]):
        words = list(map(str, words))
        assert b"\x1b]52;c;" in kdump(*words).stdout
        assert not terminals.show(words).faults
        assert b"\x1b]52;c;" in terminals.show([*words, "--raw-output"]).shown
    jsons = kdump("dump", log_dir, "-o", "jsonl").stdout + kdump("check", log_dir, "--json").stdout
    assert not terminals.STEERS.search(jsons)
