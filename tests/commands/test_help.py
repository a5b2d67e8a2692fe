"""``kdump help``: every command and every topic, without a network."""

import pytest

from kdump.commands import help as help_command
from kdump.commands import root
from testing import ROOT
from tools.docs import shown


@pytest.mark.parametrize("name", root.COMMANDS)
def test_a_command_is_explained_as_by_its_own_option(name):
    done = shown.run(f"kdump help {name}")
    assert (done.status, done.output.rstrip()) == (0, shown.run(f"kdump {name} --help").output.rstrip())


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


def test_a_near_name_is_proposed():
    done = shown.run("kdump help exit-code")
    assert done.status == 2
    assert "Did you mean 'exit-codes'?" in done.output
