"""The options that several commands share."""

import os

import click

from kdump.command_line import options


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
