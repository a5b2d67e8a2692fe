"""``kdump explain`` over tiered topics."""

import json
import shutil

from testing import GOLDEN
from testing.processes import kdump

TIERED = GOLDEN / "tiered"


def explained(paths, *more):
    done = kdump("explain", "orders-0@0..80", *more, "--in", str(paths), "-o", "jsonl")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {(line["offset"], line["lastOffset"]): (line["reason"], line["where"]) for line in lines}


def test_offsets_in_remote_storage_are_not_said_to_be_deleted_where_it_is_not_named():
    found = explained(TIERED / "logs")
    assert found[0, 62] == ("visible", "remote")
    assert found[63, 68] == ("visible", "log")


def test_offsets_of_an_unfinished_copy_are_not_given_to_consumers(tmp_path):
    """The last record of __remote_log_metadata is truncated. It said that offsets 42 to 62 were copied."""
    logs = shutil.copytree(TIERED / "logs", tmp_path / "logs")
    (log,) = (logs / "__remote_log_metadata-0").glob("*.log")
    log.write_bytes(log.read_bytes()[:1919])
    store = ("--remote", str(TIERED / "store"), "--remote-key", f"key1={TIERED / 'private.pem'}")
    assert explained(logs)[42, 62] == ("not-copied", "nowhere")
    assert explained(logs, *store)[42, 62] == ("not-copied", "remote")


def test_du_and_offsets_know_the_log_start_of_a_tiered_topic():
    starts = []
    for command in ("du", "offsets"):
        done = kdump(command, str(TIERED / "logs"), "--topic", "orders", "--partition", "0", "-o", "jsonl")
        starts += [json.loads(line)["earliest"] for line in done.stdout.splitlines() if b'"earliest"' in line]
    assert starts == [0, 0]
