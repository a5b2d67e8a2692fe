"""The options that several commands share."""

import os

import click
import pytest

from kdump.command_line import options
from testing.processes import kdump


def test_topics_are_completed_although_a_folder_is_closed_to_the_user(tmp_path, monkeypatch):
    for name in ("open/orders-0", "closed/hidden-0"):
        (tmp_path / name).mkdir(parents=True)
    listed = os.listdir

    def listdir(path):
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "listdir", listdir)
    ctx = click.Context(click.Command("dump"))
    ctx.params["paths"] = tuple(str(tmp_path / name) for name in ("closed", "missing", "open"))
    assert options.topics_of_paths(ctx) == ["orders"]


@pytest.mark.parametrize(
    "words",
    [
        ["dump", ""],
        ["diff", "b1", ""],
        ["dump", "orders-0", "--schemas", ""],
        ["dump", "orders-0", "--redact", "--redact-key", ""],
        ["dump", "orders-0", "--remote", ""],
        ["get", "orders-0@0", "--in", ""],
        ["slice", "", "--out", "x"],
        ["rebuild-cluster", "", "--plan"],
        ["sql", "select 1", "--temp-dir", ""],
        ["mcp", ""],
    ],
)
def test_an_empty_path_is_wrong_usage(words):
    done = kdump(*words)
    assert done.returncode == 2
    assert b"it is empty; a shell variable in the command may be unset" in done.stderr


def test_an_empty_file_of_a_remote_key_is_wrong_usage():
    done = kdump("dump", "orders-0", "--remote", "r", "--remote-key", "pair=")
    assert done.returncode == 2
    assert b"--remote-key 'pair=' is not NAME=FILE" in done.stderr
