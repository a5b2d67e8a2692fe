"""Partitions without a segment: a broker may delete the last one, and folders may hold indexes alone."""

from __future__ import annotations

import sys

import pytest

from kdump import cli
from kdump.log_salvage import slice_segment
from testing import terminals
from tests.helpers import log_dirs

CHECKPOINT = "0\n2\norders 0 5\nempty 1 7\n"


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory):
    logs = tmp_path_factory.mktemp("logs")
    for name in ("orders-0", "__consumer_offsets-0", "__transaction_state-0", "__cluster_metadata-0"):
        log_dirs.write(logs, name, {f"{0:020}.index": b""})
    log_dirs.write(logs, "zero-0", {0: b"", f"{0:020}.timeindex": b"", f"{0:020}.snapshot": b""})
    log_dirs.write(logs, "empty-1", {})
    log_dirs.node(logs, 1)
    for name in ("cleaner-offset-checkpoint", "replication-offset-checkpoint"):
        (logs / name).write_text(CHECKPOINT)
    return logs


FOLDERS = ("orders-0", "zero-0", "empty-1", ".")
LINES = [
    *(["dump", "{path}", *more] for more in terminals.DUMPS),
    *([words[0], "{path}", *words[1:]] for words in (*terminals.ANSWERS, *terminals.CHECKS, *terminals.REPORTS)),
    ["slice", "{path}", "--offset", "0..", "--out", "{out}/cut.log"],
    ["salvage", "{path}", "--out", "{out}/salvaged"],
    ["rebuild-index", "{path}", "--out", "{out}/index"],
    ["get", "@0", "--in", "{path}"],
    ["explain", "orders-0@0..5", "--in", "{path}"],
    ["diff", "{path}", "{path}"],
]


@pytest.mark.parametrize("words", LINES, ids=lambda words: " ".join(words).replace("/", ":"))
def test_every_command_ends_with_a_word_and_a_status(log_dir, tmp_path, monkeypatch, capfd, words):
    for folder in FOLDERS:
        out = tmp_path / folder.strip(".")
        out.mkdir(exist_ok=True)
        line = [word.format(path=log_dir / folder, out=out) for word in words]
        monkeypatch.setattr(sys, "argv", ["kdump", *line])
        status = cli.main()
        seen = capfd.readouterr()
        assert status in {0, 1, 2, 3, 4, 5}
        assert seen.out or seen.err or status == 0
        assert "Traceback" not in seen.err


def test_a_slice_of_a_partition_without_a_segment_is_none(log_dir, tmp_path, monkeypatch, capfd):
    cut = tmp_path / "cut.log"
    assert slice_segment.write((), slice_segment.SliceRange(0, None), str(cut), lambda *_: None) is None
    monkeypatch.setattr(
        sys, "argv", ["kdump", "slice", str(log_dir / "orders-0"), "--offset", "0..", "--out", str(cut)]
    )
    assert cli.main() == 2
    assert "holds no batch that covers --offset 0.." in capfd.readouterr().err
    assert not cut.exists()
