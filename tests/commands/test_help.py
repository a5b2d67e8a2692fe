"""``kdump help``: every command and every topic, without a network."""

import collections
import functools
import re

import click
import pytest
from rich.cells import cell_len

from kdump.cli import WELCOME
from kdump.command_line import command_help
from kdump.command_line.limit_options import Shared
from kdump.commands import help as help_command
from kdump.commands import root
from testing import ROOT, terminals
from tools.docs import shown


def command(name):
    found = root.root.get_command(click.Context(root.root), name)
    assert found is not None
    return found


@functools.cache
def screen(name):
    """Return the help of a command in 80 columns."""
    context = click.Context(root.root, info_name="kdump", terminal_width=80)
    return command(name).get_help(click.Context(command(name), context, info_name=name, terminal_width=80))


@pytest.mark.parametrize("name", root.COMMANDS)
def test_the_help_of_a_command_fits_on_a_screen(name):
    lines = screen(name).splitlines()
    assert len(lines) <= command_help.SCREEN
    assert max(map(len, lines)) <= 80
    assert lines[-1] == f"Full help: kdump help {name}"


@pytest.mark.parametrize("name", root.COMMANDS)
def test_a_screen_names_every_option_and_every_word_explains_it(name):
    done = shown.run(f"kdump help {name}")
    assert done.status == 0
    for option in command(name).params:
        if isinstance(option, click.Option) and not option.hidden:
            assert any(re.search(rf"(?<![\w-]){word}(?![\w-])", screen(name)) for word in option.opts), option.name
            assert " ".join((option.help or "").split()) in " ".join(done.output.split()), option.name


def test_options_that_are_shared_are_explained_once():
    page = " ".join(shown.run("kdump help options").output.split())
    for name in root.COMMANDS:
        for option in command(name).params:
            if isinstance(option, Shared):
                assert " ".join((option.help or "").split()) in page
                assert option.opts[-1] in page


def test_an_option_of_many_commands_is_shared():
    """The page of options then describes it."""
    having = collections.Counter(
        (*option.opts, option.help)
        for name in root.COMMANDS
        for option in command(name).params
        if isinstance(option, click.Option) and not isinstance(option, Shared)
    )
    assert [option for option, count in having.items() if count > 3] == []


def test_options_of_the_original_have_a_page_of_their_own():
    page = shown.run("kdump help files").output
    assert page == shown.run("kdump --files --help").output == shown.run("kdump -h --files x.log").output
    for option in root.root.params:
        if option.name != "version":
            assert option.opts[0] in page
            assert option.name == "files" or f"  {option.opts[0]}" not in shown.run("kdump --help").output


def test_the_first_screen():
    lines = WELCOME.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    commands = re.findall(r"^  kdump (\S+)", WELCOME, re.MULTILINE)
    assert len([name for name in commands if name in root.COMMANDS and name != "help"]) == 5
    assert "kdump help " in WELCOME


@pytest.mark.parametrize("name", help_command.topics())
def test_a_topic_fits_a_terminal(name):
    for width in (60, 80):
        done = terminals.show(["help", name], width=width)
        text = re.sub(rb"\x1b\[[\d;]*m", b"", done.shown).decode()
        assert done.status == 0
        assert max(map(cell_len, text.splitlines())) <= width
        assert "](" not in text


def test_every_guide_is_a_topic():
    pages = {path.resolve() for path in help_command.TOPICS.glob("*.md")}
    assert [path.name for path in (ROOT / "docs" / "guides").glob("*.md") if path.resolve() not in pages] == []


@pytest.mark.parametrize("line", help_command.INCIDENTS.values())
def test_the_command_for_an_incident_is_one(line):
    assert line.split()[1] in root.COMMANDS


@pytest.mark.parametrize("name", help_command.topics())
def test_a_topic_is_a_page_of_the_docs(name):
    done = shown.run(f"kdump help {name}")
    assert done.status == 0
    assert done.output.startswith(f"# {help_command.topics()[name]}\n")
    assert "](" not in done.output
    assert "```" not in done.output
    assert (help_command.TOPICS / f"{name}.md").resolve().is_relative_to(ROOT / "docs")


def test_the_topics_are_listed():
    done = shown.run("kdump help")
    assert done.status == 0
    assert "what-happened    What happened?" in done.output
    assert not set(help_command.topics()) & set(root.COMMANDS)


def test_help_on_help_promises_what_it_lists():
    assert "without a name, list incidents and topics." in " ".join(screen("help").split())
    listed = shown.run("kdump help").output
    assert all(line in listed for line in help_command.INCIDENTS.values())
    assert all(re.search(rf"^  {name} ", listed, re.MULTILINE) for name in help_command.topics())
    assert "Commands: kdump --help lists them" in listed


def test_a_near_name_is_proposed():
    done = shown.run("kdump help exit-code")
    assert done.status == 2
    assert "Did you mean 'exit-codes'?" in done.output
