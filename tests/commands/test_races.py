"""Files that a broker deletes after a command lists them and before it reads them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdump.log_dirs.local import LocalFiles
from testing import forge
from tests.commands.test_faults import FIRST, READERS, SECOND, WRITERS, run
from tests.helpers import log_dirs
from tests.helpers.asking import subject

VICTIMS = {
    "the first segment": FIRST,
    "the last segment": SECOND,
    "all segments": "*.log",
    "an index": f"{0:020}.timeindex",
    "the folder": "",
}
MAY_BE_UNREAD = {"the first segment", "an index"}
"""Files that some commands need not read: those below the wanted offset, and indexes."""
NEVER_OPENED = {"files", "rebuild-index"}
"""Commands that list nothing, because they get names of files."""


@pytest.fixture
def log_dir(tmp_path, request):
    """A log dir with a partition that suits the command, and another one."""
    partition, record = subject(request)
    segments = {
        base: b"".join(forge.batch([record], base_offset=base + number) for number in range(10)) for base in (0, 10)
    }
    logs = tmp_path / "logs"
    folder = log_dirs.write(logs, partition, {**segments, f"{0:020}.timeindex": b"", f"{0:020}.index": b""})
    log_dirs.write(logs, "other-0", {0: forge.batch([forge.record(b"k", b"v")], base_offset=0)})
    log_dirs.node(logs, 1)
    return logs, folder


def strike(monkeypatch, folder, victim, at):
    """Delete ``victim`` after the listing number ``at`` of its folder; return the counter of listings."""
    plain = LocalFiles.entries
    counted = []

    def entries(self, path):
        found = plain(self, path)
        if Path(path).resolve() == folder.resolve():
            counted.append(1)
            if len(counted) == at:
                if victim:
                    for one in folder.glob(victim):
                        one.unlink()
                else:
                    shutil.rmtree(folder)
        return found

    monkeypatch.setattr(LocalFiles, "entries", entries)
    return counted


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("name", sorted({*READERS, *WRITERS} - NEVER_OPENED))
def test_what_is_deleted_after_it_was_listed_is_named_and_is_no_damage(
    log_dir, tmp_path, monkeypatch, capfd, name, victim
):
    logs, folder = log_dir
    kept = tmp_path / "kept"
    shutil.copytree(logs, kept)
    for at in range(1, 20):
        out = tmp_path / f"out{at}"
        line = [
            word.format(folder=folder if name == "slice" else logs, out=out) for word in {**READERS, **WRITERS}[name]
        ]
        line += ["--jobs", "1"] if name in {"stats --records"} else []
        with monkeypatch.context() as patch:
            counted = strike(patch, folder, VICTIMS[victim], at)
            status, _, said = run(patch, capfd, line)
        assert "Traceback" not in said
        assert "damage" not in said.replace("damaged ranges", ""), said
        if len(counted) < at:  # nothing was deleted
            assert status == 0
            break
        assert status == 1 or (at > 1 or victim in MAY_BE_UNREAD or (name, victim) == ("diff", "the folder"))
        assert status in {0, 1}, said
        assert status == 0 or f"error: {folder}" in said
        shutil.rmtree(logs)
        shutil.copytree(kept, logs)
