"""Of several replicas one is read: none is left out because it could not be read."""

import json

from kdump.cli import main
from kdump.errors import UnreadableError
from kdump.log_dirs.local import LocalFile
from tests.log_dirs.test_tiered import local


def test_a_replica_that_cannot_be_read_is_not_left_out_for_a_shorter_one(monkeypatch, capfd, tmp_path):
    local(tmp_path / "broker1", 0, 10, end=20)
    local(tmp_path / "broker2", 0, end=10)
    closed = tmp_path / "broker1" / "t-0" / f"{10:020}.log"
    plain = LocalFile.read

    def read(source, position, size):
        if source.name == str(closed):
            raise UnreadableError(source.name, f"byte {position}: Input/output error")
        return plain(source, position, size)

    monkeypatch.setattr(LocalFile, "read", read)
    paths = [str(tmp_path / name) for name in ("broker2", "broker1")]
    monkeypatch.setattr("sys.argv", ["kdump", "dump", *paths, "-o", "jsonl", "--jobs", "1"])
    status, (out, said) = main(), capfd.readouterr()
    assert status == 1
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["file"].split("/")[-3], line["offset"]) for line in lines if line["kind"] == "record"] == [
        ("broker1", offset) for offset in range(10)
    ]
    assert f"{closed}: byte 0: Input/output error" in said
    assert "1 folder is left out, as another replica of the partition has the newest leader epoch" in said
