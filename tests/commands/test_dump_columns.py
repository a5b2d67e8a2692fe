"""kdump dump -o parquet and -o arrow: the Arrow stream of kdump.open, as a file."""

import os
import pty
import subprocess
import sys

import pyarrow as pa
import pytest
from pyarrow import parquet

import kdump as package
from kdump.arrow import files
from testing import GOLDEN, forge
from testing.processes import kdump
from tests.helpers import log_dirs

BROKER = GOLDEN / "brokers/4.2.2"


def table(form, tmp_path, *words, status=0):
    """Dump columns to a file and return them as a table."""
    out = tmp_path / f"rows.{form}"
    done = kdump("dump", *words, "-o", form, "--out", out, "--overwrite", "-q")
    assert done.returncode == status, done.stderr
    assert done.stdout == b""
    return parquet.read_table(out) if form == "parquet" else pa.ipc.open_stream(out.read_bytes()).read_all()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_the_rows_are_those_of_the_arrow_stream(form, tmp_path):
    found = table(form, tmp_path, BROKER, "--show-secrets")
    assert found.equals(package.open(BROKER).to_arrow().read_all())
    assert found.num_rows > 3000


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("words", "filters"),
    [
        (["--topic", "multi", "--partition", "1"], {"topic": "multi", "partition": 1}),
        (["--topic", "c-*", "--offset", "3..5"], {"topic": "c-*", "offset": (3, 5)}),
        (["--topic", "txn", "--isolation", "read_committed"], {"topic": "txn", "isolation": "read_committed"}),
    ],
)
def test_filters_are_those_of_a_dump(form, words, filters, tmp_path):
    assert table(form, tmp_path, BROKER, *words).equals(package.open(BROKER, **filters).to_arrow().read_all())


def test_some_columns_in_their_order(tmp_path):
    found = table("parquet", tmp_path, BROKER, "--topic", "multi", "--fields", "value,offset")
    assert found.equals(package.open(BROKER, topic="multi").to_arrow(["value", "offset"]).read_all())
    names = package.open(BROKER).to_arrow().schema.names
    bare = table("parquet", tmp_path, BROKER, "--topic", "multi", "--no-payload")
    assert bare.schema.names == [name for name in names if name not in {"key", "value", "headers"}]
    done = kdump("dump", BROKER, "-o", "arrow", "--fields", "keyEncoding")
    assert done.returncode == 2
    assert b"'keyEncoding' is not a column" in done.stderr


@pytest.mark.parametrize(
    ("words", "offsets"),
    [
        (["--limit", "5"], [0, 1, 2, 3, 4]),
        (["--head", "2"], [0, 1, 0, 1]),
        (["--tail", "2"], [8, 9, 8, 9]),
        (["--tail", "2", "--limit", "3"], [8, 9, 8]),
        (["--limit", "0"], []),
    ],
)
def test_limit_head_and_tail(words, offsets, tmp_path):
    for number in (0, 1):
        batches = (forge.batch([forge.record(b"k", b"v")] * 1, base_offset=offset) for offset in range(10))
        log_dirs.write(tmp_path / "logs", f"t-{number}", {0: b"".join(batches)})
    assert table("parquet", tmp_path, tmp_path / "logs", *words)["offset"].to_pylist() == offsets


def test_secrets_are_hidden(tmp_path):
    words = (BROKER, "--topic", "__cluster_metadata")
    shown = table("parquet", tmp_path, *words, "--show-secrets")["value"].to_pylist()
    hidden = table("parquet", tmp_path, *words)["value"].to_pylist()
    assert len(shown) == len(hidden)
    assert shown != hidden


def test_damage_and_what_cannot_be_read_end_as_in_every_dump(tmp_path):
    sound = [forge.batch([forge.record(b"k", b"v")], base_offset=n) for n in range(3)]
    bad = bytearray(sound[1])
    bad[-2] ^= 1
    folder = log_dirs.write(tmp_path / "logs", "t-0", {0: sound[0] + bytes(bad) + sound[2]})
    assert table("parquet", tmp_path, folder, status=3)["offset"].to_pylist() == [0, 2]
    (folder.parent / "u-0").mkdir()
    (folder.parent / "u-0" / f"{0:020}.log").symlink_to("nowhere")
    out = tmp_path / "rows.arrow"
    done = kdump("dump", folder.parent, "-o", "arrow", "--out", out)
    assert (done.returncode, out.exists()) == (1, False)
    assert kdump("dump", tmp_path / "absent", "-o", "arrow").returncode == 1


def test_a_file_appears_whole_and_replaces_nothing_unasked(tmp_path):
    out = tmp_path / "rows.parquet"
    out.write_text("mine")
    done = kdump("dump", BROKER, "-o", "parquet", "--out", out)
    assert (done.returncode, out.read_text()) == (2, "mine")
    folder = log_dirs.write(tmp_path / "logs", "t-0", {0: forge.batch([forge.record(b"k", b"v")])})
    done = kdump("dump", folder, "-o", "parquet", "--out", folder / "rows.parquet")
    assert done.returncode == 2
    assert sorted(path.name for path in folder.iterdir()) == [f"{0:020}.log"]


def test_a_stream_through_a_pipe(tmp_path):
    done = kdump("dump", BROKER, "--topic", "multi", "-o", "arrow")
    assert done.returncode == 0
    found = pa.ipc.open_stream(done.stdout).read_all()
    assert found.equals(table("arrow", tmp_path, BROKER, "--topic", "multi"))


def test_a_terminal_gets_no_binary():
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "kdump", "dump", str(BROKER), "-o", "arrow"]
    done = subprocess.run(line, stdout=theirs, stderr=subprocess.PIPE, check=False)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert b"-o arrow is binary: name a file with --out FILE" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-o", "parquet"], "name it with --out FILE"),
        (["-o", "arrow", "--overwrite"], "--overwrite needs --out"),
        (["-o", "jsonl", "--out", "x"], "--out and --overwrite work only with -o parquet and arrow"),
        (["-o", "arrow", "--batches"], "--batches cannot be combined with -o"),
        (["-o", "arrow", "--redact"], "--redact cannot be combined with -o"),
        (["-o", "arrow", "--follow"], "--follow cannot be combined with -o"),
        (["-o", "arrow", "--jobs", "2"], "--jobs above 1 cannot be combined with -o"),
        (["-o", "arrow", "--count"], "--count prints one number"),
    ],
)
def test_wrong_usage(words, said):
    done = kdump("dump", BROKER, *words)
    assert done.returncode == 2
    assert said in done.stderr.decode()


def test_row_groups_are_bounded_by_rows_and_bytes(tmp_path, monkeypatch):
    """The memory of a writer does not grow with the number of rows."""
    monkeypatch.setattr(files, "ROW_GROUP", 100)
    schema = pa.schema([("a", pa.binary())])
    small = pa.RecordBatch.from_pydict({"a": [b"v"] * 70}, schema)
    large = pa.RecordBatch.from_pydict({"a": [b"v" * (1 << 20)] * 9}, schema)
    with (tmp_path / "x").open("wb") as file:
        assert files.write_parquet(schema, [small, small, small, large, small], file) == 289
    found = parquet.ParquetFile(tmp_path / "x")
    groups = [found.metadata.row_group(number).num_rows for number in range(found.num_row_groups)]
    assert sum(groups) == 289
    assert max(groups) <= 100
    assert groups[0] == 100


def test_one_subject_gives_columns_of_its_types(registries, tmp_path):
    logs, file = registries / "confluent" / "logs", tmp_path / "rows.parquet"
    where = ["dump", logs, "--topic", "evolve"]
    kdump(*where, "-o", "parquet", "--out", file, "--subject", "evolve-value", check=True)
    table = parquet.read_table(file)
    assert table.column_names[-5:] == ["decoded", "valueDecoded", "schemaId", "problem", "why"]
    assert table["problem"].null_count == table.num_rows == 100
    done = kdump(*where, "-o", "arrow", "--schema", "evolve-value:1", "--fields", "offset,valueDecoded", check=True)
    assert pa.ipc.open_stream(done.stdout).schema.names == ["offset", "valueDecoded"]
    done = kdump(*where, "-o", "arrow", "--subject", "evolve-value", "--no-payload", check=True)
    names = pa.ipc.open_stream(done.stdout).schema.names
    assert names[-2:] == ["schemaId", "problem"]  # the sentence in why may show bytes of the payload


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-o", "jsonl", "--subject", "evolve-value"], b"--subject works only with -o parquet and arrow"),
        (["-o", "arrow", "--subject", "evolv-value"], b"did you mean 'evolve-value'?"),
        (["-o", "arrow", "--subject", "evolve-value", "--fields", "keyDecoded"], b"'keyDecoded' is not a column"),
        (["-o", "arrow", "--subject", "evolve-value", "--no-payload", "--fields", "valueDecoded"], b"omit this column"),
    ],
)
def test_a_subject_that_cannot_be_columns_is_wrong_usage(registries, words, why):
    done = kdump("dump", registries / "confluent" / "logs", "--topic", "evolve", *words)
    assert done.returncode == 2
    assert why in done.stderr
