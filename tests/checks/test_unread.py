"""What a store did not return is reported as not readable, never as absent, missing, damaged or unlisted."""

import json
import sys

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[spark]'")

from kdump.cli import main
from kdump.log_dirs import remote
from testing.stores import Clock, FlakyStore, Outage
from testing.tiered import COPIED, TIME, Store, write_metadata
from tests.log_dirs.test_tiered import local, of

AWAY = "When reading: AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 7, Couldn't connect to server"
METADATA = "__remote_log_metadata-0"


@pytest.fixture
def check(monkeypatch, capfd, tmp_path):
    """Run ``check --remote`` with all files in a store; return status, findings and standard error."""
    monkeypatch.setattr(remote, "time", Clock())
    monkeypatch.setattr(remote, "notify", lambda _: None)
    store = Store(tmp_path / "tiered", compress=True)
    held = [of(first, first + 10, number) for number, first in enumerate(range(0, 40, 10), 1)]
    for one in held:
        store.write(one)
    local(tmp_path / "logs", 40, end=45)
    write_metadata(tmp_path / "logs", [value for one in held for value in (one.added(), one.changed(COPIED))])

    def do(fault):
        class FileSystem:
            @staticmethod
            def from_uri(uri):
                return FlakyStore(tmp_path, fault), uri.partition("bucket/")[2]

        monkeypatch.setattr("pyarrow.fs.FileSystem", FileSystem)
        words = ["check", "s3://bucket/logs", "--remote", "s3://bucket/tiered", "--at", TIME + 10_000, "-o", "jsonl"]
        monkeypatch.setattr(sys, "argv", ["kdump", *map(str, words)])
        status, (out, said) = main(), capfd.readouterr()
        assert "Traceback" not in said
        lines = [json.loads(line) for line in out.splitlines()]
        return status, [line for line in lines if "check" in line and line["level"] != "remark"], said

    return do


def outage(part, names="look list open read"):
    return Outage(lambda: OSError(AWAY), names=names, count=None, part=part)


@pytest.mark.parametrize("names", ["list", "open read", "look list open read"])
@pytest.mark.parametrize(
    "part",
    [
        f"{10:020}",
        f"{30:020}",
        "rsm-manifest",
        ".indexes",
        "tiered",
        "t-AAAA",
        METADATA,
        "logs",
        "partition.metadata",
        "",
    ],
)
def test_what_cannot_be_read_is_not_called_anything_else(check, part, names):
    assert check(outage("no such part"))[:2] == (0, [])
    fault = outage(part, names)
    status, findings, said = check(fault)
    assert findings == []
    assert status == (1 if fault.failed else 0)
    assert "could not be read: " in said or not fault.failed


def test_each_operation_in_turn(check):
    counted = Outage(lambda: OSError(AWAY), count=0)
    check(counted)
    assert counted.met > 20
    for first in range(counted.met):
        one = Outage(lambda: OSError("AWS Error NO_SUCH_UPLOAD"), first=first, count=1)  # no other try changes it
        status, findings, _ = check(one)
        assert (status, findings) == (1, []), first


def test_what_is_absent_is_still_called_so(check, tmp_path):
    for path in (tmp_path / "tiered").rglob(f"{10:020}*"):
        path.unlink()
    status, findings, _ = check(outage("no such part"))
    assert (status, [line["code"] for line in findings]) == (3, ["remote-absent"])
    status, findings, _ = check(outage(f"{20:020}"))
    assert (status, [line["code"] for line in findings]) == (1, ["remote-absent"])
