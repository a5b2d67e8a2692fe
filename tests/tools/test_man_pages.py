"""Man pages and completions: one of each per command, in roff that prints every word."""

import re
import subprocess
import tomllib

import kdump
from kdump.commands.root import COMMANDS
from testing import ROOT
from tools import man_pages

FILES = dict(man_pages.files())


def test_every_command_has_a_page():
    pages = {name for name in FILES if name.startswith("man/")}
    assert pages == {"man/man1/kdump.1", *(f"man/man1/kdump-{name}.1" for name in COMMANDS)}


def test_a_page_has_its_sections_and_options():
    page = FILES["man/man1/kdump-get.1"]
    assert re.findall(r"^\.SH (.*)", page, re.MULTILINE) == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"]
    assert "\\fB\\-\\-hexdump\\fR" in page
    assert "  kdump get orders\\-0@1234 \\-\\-in /var/kafka \\-\\-hexdump\n" in page


def test_no_line_of_text_is_a_request():
    requests = {".TH", ".SH", ".TP", ".PP", ".B", ".BR", ".nf", ".fi"}
    for name, page in FILES.items():
        if name.startswith("man/"):
            assert {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))} <= requests, name
            assert "\b" not in page, name


def test_completions_are_those_of_kdump_completion(tmp_path):
    written = man_pages.write(tmp_path)
    assert len(written) == len(FILES)
    script = tmp_path / man_pages.COMPLETIONS["bash"]
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    assert all("_KDUMP_COMPLETE" in FILES[path] for path in man_pages.COMPLETIONS.values())


def test_the_version_stands_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "kdump.__version__"}
    assert f'"kdump {kdump.__version__}"' in FILES["man/man1/kdump.1"]
