"""``Log.to_arrow``: the rows of ``kdump dump -o jsonl``, in a stream."""

import os
import shutil
import subprocess
import sys

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[arrow]'")

import kdump
from kdump import kernel
from kdump.arrow import columns
from kdump.arrow.stream import NAMES
from kdump.errors import UnreadableError, UsageError
from testing import GOLDEN, ROOT, forge
from testing.processes import kdump as run
from tests.commands.test_limits import peak_of
from tests.commands.test_limits import write as written
from tests.log_reader.test_reader import TIME, write
from tools.prove.spark import differences

BROKER = GOLDEN / "brokers" / "4.2.2"


def rows(*args, columns=None, **filters):
    return kdump.open(*args, **filters).to_arrow(columns).read_all()


def offsets(*args, **filters):
    return rows(*args, **filters).column("offset").to_pylist()


@pytest.mark.parametrize(
    "path", [BROKER, GOLDEN / "brokers" / "0.10.2.2", GOLDEN / "damaged"], ids=lambda path: path.name
)
def test_it_is_the_json_lines(path):
    folders = [path] if path.name != "damaged" else sorted(path.glob("none-*"))
    lines = run("dump", *folders, "-o", "jsonl", "-q", "--show-secrets").stdout.splitlines()
    log = kdump.open(folders)
    found = log.to_arrow().read_all().to_pylist()
    assert list(differences([line for line in lines if line.startswith(b'{"kind":"record"')], found)) == []
    assert len(log.damage) == sum(line.startswith(b'{"kind":"damage"') for line in lines)


@pytest.mark.parametrize(
    "filters",
    [
        {"offset": (5, 130)},
        {"since": TIME + 8000, "until": TIME + 90_000},
        {"isolation": "read_committed"},
        {"type": ["data", "tombstone"]},
        {"type": "control"},
        {"key": b"key-18"},
        {"producer_id": 11},
        {"transactional": True, "epoch": [0, 1]},
    ],
    ids=str,
)
def test_filters_take_the_same_records(filters):
    log = kdump.open(BROKER, **filters)
    taken = [(record.topic, record.offset) for record in log]
    found = log.to_arrow(["topic", "offset"]).read_all()
    assert list(zip(*found.to_pydict().values(), strict=True)) == taken
    assert taken


def test_columns_are_those_that_are_named():
    assert rows(BROKER / "one-0").column_names == list(NAMES)
    found = rows(BROKER / "__transaction_state-0", columns=["decoded", "offset"], decode="auto")
    assert found.column_names == ["decoded", "offset"]
    assert '"transactionalId":"tx-' in found.column(0)[0].as_py()
    needs_decode = [([name], f"the column '{name}' needs decode='auto'") for name in ("decoded", "value.id")]
    needs_decode += [([name], f"the column '{name}' needs schema='SUBJECT'") for name in ("problem", "valueDecoded")]
    for wrong, words in ((["ofset"], "did you mean 'offset'"), (["xyzzy"], "is not a column"), *needs_decode):
        with pytest.raises(UsageError, match=words):
            kdump.open(BROKER).to_arrow(wrong)


def test_record_batches_are_small(tmp_path, monkeypatch):
    folder = tmp_path / "t-0"
    for base in (0, 160):
        write(folder, base, 10)
    monkeypatch.setattr(columns, "ROWS", 64)
    stream = kdump.open(folder).to_arrow(["offset"])
    sizes = [len(batch) for batch in stream]
    assert max(sizes) < 64 + 16
    assert sum(sizes) == 320


def test_it_is_read_as_it_is_asked_for(tmp_path, monkeypatch):
    folder = tmp_path / "t-0"
    for base in (0, 160):
        write(folder, base, 10)
    monkeypatch.setattr(columns, "ROWS", 64)
    stream = kdump.open(folder).to_arrow(["offset"])
    assert stream.read_next_batch().column(0)[0].as_py() == 0
    shutil.rmtree(folder)
    with pytest.raises(UnreadableError):
        stream.read_all()


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(UnreadableError):
        rows(tmp_path / "gone")
    folder = tmp_path / "t-0"
    write(folder, 0, 3)
    path = next(folder.iterdir())
    path.write_bytes(path.read_bytes() + forge.batch([], crc=1))
    log = kdump.open(folder)
    for _ in range(2):
        assert log.to_arrow(["offset"]).read_all().num_rows == 48
        assert [damage.kind for _, damage in log.damage] == ["crc"]


@pytest.mark.skipif(not kernel.COMPILED, reason="without the kernel each record is an object")
def test_the_kernel_reads_what_a_filter_of_bounds_takes(monkeypatch):
    monkeypatch.setattr(columns.Rows, "add", None)
    assert offsets(BROKER / "c-zstd-0", offset=(5, 12), columns=["offset"]) == list(range(5, 13))


def test_other_libraries_take_a_log():
    duckdb = pytest.importorskip("duckdb")
    log = kdump.open(BROKER / "c-none-0")
    assert duckdb.sql('SELECT count(*), max("offset") FROM log').fetchall() == [(223, 222)]
    assert pa.table(log).num_rows == 223


def test_a_command_imports_arrow_without_pandas_and_numpy():
    pytest.importorskip("pandas")
    pytest.importorskip("duckdb")
    script = """
import sys
from kdump.arrow.files import small_arrow
small_arrow()
import duckdb, pyarrow.dataset
connection = duckdb.connect()
connection.register("rows", pyarrow.table({"a": [1, None], "b": [b"x", b""]}))
assert connection.sql("select * from rows").to_arrow_reader(10).read_all().to_pylist()[1] == {"a": None, "b": b""}
assert not {"pandas", "numpy"} & sys.modules.keys() and pyarrow.default_memory_pool().backend_name == "system"
"""
    env = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    subprocess.run([sys.executable, "-c", script], check=True, env=env, cwd=ROOT)


@pytest.mark.parametrize("filters", [{}, {"header": {"h": None}}], ids=["kernel", "objects"])
def test_a_record_of_many_headers_takes_no_object_for_each(tmp_path, filters):
    """A header of 3 bytes takes 8 bytes of offsets and its own bytes in Arrow; an object would take 100 or more."""
    headers = [(b"h", None), (b"", b"x"), (b"h", b"")] * 30_000
    path = written(tmp_path, forge.batch([forge.record(b"k", b"v", headers=headers)]))
    rows(path, **filters)  # imports what it needs
    found, peak = peak_of(lambda: kdump.open(path, **filters).to_arrow(["headers"]).read_all())
    assert peak < 8 * path.stat().st_size
    [[*stored]] = found.column("headers").to_pylist()
    assert [(one["key"].encode(), one["value"]) for one in stored] == headers


@pytest.mark.parametrize("magic", [1, 2])
def test_a_large_value_is_held_twice_at_most(tmp_path, magic):
    small, large = b"s", bytes(8 << 20)
    if magic == 1:
        entries = [forge.entry(number, forge.message(1, None, value)) for number, value in enumerate((small, large))]
        path, filters = written(tmp_path, b"".join(entries)), {}
    else:
        records = [forge.record(None, value, offset=number) for number, value in enumerate((small, large))]
        path, filters = written(tmp_path, forge.batch(records)), {"grep": b"^"}
    rows(path, **filters)
    found, peak = peak_of(lambda: list(kdump.open(path, **filters).to_arrow(["value"])))
    assert b"".join(value for batch in found for value in batch.column(0).to_pylist()) == small + large
    assert peak < 2.2 * len(large)
