"""Parquet that the Python workers write: folders, files and errors, without Spark."""

import re
import shutil
import types
from itertools import chain
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
import pyarrow as pa
import pyarrow.parquet

from kdump.arrow import files
from kdump.arrow import schema as arrow_schema
from kdump.errors import StoreError, UnreadableError, UsageError
from kdump.log_dirs import remote
from kdump.spark.export import parquet
from kdump.spark.export.output import Output
from kdump.spark.source import options as words
from kdump.spark.source import planning
from testing import GOLDEN, forge
from testing.stores import Clock, FlakyStore, Outage

FOLDERS = {"topic": "topic_name", "partition": "partition_number", "date": "date", "hour": "hour"}
HOUR = 3_600_000_000
SOME = ("topic", "offset", "timestamp")


def layout(*names, columns=("offset",)):
    return parquet.FolderLayout({name: FOLDERS[name] for name in names}, columns)


def batch(times, topic="t"):
    """Return rows of one segment with these times in microseconds."""
    schema = arrow_schema.arrow(arrow_schema.chosen((*SOME, "partition")))
    columns = [[topic] * len(times), list(range(len(times))), times, [3] * len(times)]
    arrays = [pa.array(values).cast(field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def parted(made, rows):
    return [(folder, some.column("offset").to_pylist()) for folder, some in made.parted(rows)]


@pytest.mark.parametrize(
    ("times", "found"),
    [
        ([0, 1], {"date=1970-01-01/hour=0/": [0, 1]}),
        ([-1, 0], {"date=1969-12-31/hour=23/": [0], "date=1970-01-01/hour=0/": [1]}),
        ([25 * HOUR, None, 25 * HOUR], {"date=1970-01-02/hour=1/": [0, 2], "date=NULL/hour=NULL/": [1]}),
        ([5 * HOUR, 0, 5 * HOUR, 0], {"date=1970-01-01/hour=0/": [1, 3], "date=1970-01-01/hour=5/": [0, 2]}),
        ([-62_135_596_800_000_000], {"date=0001-01-01/hour=0/": [0]}),
        ([253_402_300_799_999_999], {"date=9999-12-31/hour=23/": [0]}),
        ([None, None], {"date=NULL/hour=NULL/": [0, 1]}),
    ],
)
def test_rows_go_into_the_folder_of_their_utc_hour_in_order(times, found):
    named = {folder.replace("NULL", parquet.NULL_FOLDER): rows for folder, rows in found.items()}
    assert dict(parted(layout("date", "hour"), batch(times))) == named


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("a.b-c_d", "a.b-c_d"),
        ("a b", "a b"),
        ('x"#%y', "x%22%23%25y"),
        ("é=/:", "é%3D%2F%3A"),
        (None, parquet.NULL_FOLDER),
    ],
)
def test_names_of_folders_are_escaped_as_spark_does(topic, name):
    (only,) = parted(layout("topic", "partition"), batch([0, HOUR * 50], topic))
    assert only == (f"topic_name={name}/partition_number=3/", [0, 1])


def task(path, place, made, parts=None):
    options = words.parse({"path": str(path), "mode": "PERMISSIVE"})
    splits = [split for planned in planning.plan(options) for split in planned.splits]
    place.mkdir()
    return parquet.PartsTask(options, made, parts or parquet.LocalParts(str(place), "lake")), splits


def store(root, fault=lambda *_: None, *, renames=False):
    place = remote.RemoteFiles(FlakyStore(root, fault), "s3://")
    return parquet.StoreParts(place, "lake", "s3://lake", renames)


def test_a_task_writes_all_rows_with_the_columns_of_the_layout(tmp_path):
    work, splits = task(GOLDEN / "brokers" / "4.2.2" / "headers-0", tmp_path / "out", layout("topic", columns=SOME))
    done = work((7, splits))
    ((name, part),) = done.files.items()
    assert name.startswith("topic_name=headers/part-00007-")
    table = pa.parquet.read_table(tmp_path / "out" / part, partitioning=None)
    assert table.column_names == list(SOME)
    assert table.num_rows == sum(one.rows for one in done.counted.values()) == 41
    assert not done.files.keys() & work((7, splits)).files.keys(), "no two attempts write one file"


@pytest.mark.parametrize(("named", "folder"), [("", None), ("gone", None), ("scratch,other", "scratch")])
def test_a_worker_holds_a_file_of_a_store_on_a_disk_of_spark_or_with_other_temporary_files(
    tmp_path, monkeypatch, named, folder
):
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", named)
    given = []
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **options: given.append(options))
    store(tmp_path).create("part")
    assert given == [{"dir": folder}]


@pytest.mark.parametrize(("number", "count"), [(0, 1), (1, 0)])
def test_an_output_without_rows_and_folders_has_one_file_that_names_the_columns(tmp_path, number, count):
    work, _ = task(GOLDEN / "brokers" / "4.2.2" / "headers-0", tmp_path / "out", layout(columns=SOME))
    done = work((number, []))
    assert len(done.files) == count
    for part in done.files.values():
        table = pa.parquet.read_table(tmp_path / "out" / part, partitioning=None)
        assert (table.num_rows, table.column_names) == (0, list(SOME))


def test_many_folders_keep_few_files_open_and_lose_no_row(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "WRITERS", 2)
    monkeypatch.setattr(parquet, "HELD_BYTES", 1000)
    folder = tmp_path / "t-0"
    folder.mkdir()
    times = [number % 5 * 86_400_000 for number in range(200)]
    data = [forge.batch([forge.record(b"k", b"v")], base_offset=n, base_timestamp=at) for n, at in enumerate(times)]
    (folder / f"{0:020}.log").write_bytes(b"".join(data))
    work, splits = task(folder, tmp_path / "out", layout("date"))
    done = work((0, splits))
    found = {}
    for name, part in done.files.items():
        table = pa.parquet.read_table(tmp_path / "out" / part, partitioning=None)
        found.setdefault(name.partition("/")[0], []).extend(table["offset"].to_pylist())
    assert found == {f"date=1970-01-0{day + 1}": [*range(day, 200, 5)] for day in range(5)}


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(remote, "time", found := Clock())
    return found


@pytest.mark.parametrize("renames", [False, True])
@pytest.mark.parametrize("names", ["create", "write"])
def test_a_file_of_a_store_is_written_again_after_an_error_and_is_whole(tmp_path, clock, names, renames):
    outage = Outage(lambda: OSError("no answer"), first=1, count=3, names=names)
    parts = store(tmp_path, outage, renames=renames)
    work, splits = task(GOLDEN / "brokers" / "4.2.2" / "headers-0", tmp_path / "lake", layout("topic"), parts)
    done = [work((number, splits)) for number in range(2)]
    assert outage.failed == 3
    assert len(clock.pauses) == 3
    for name, part in [pair for one in done for pair in one.files.items()]:
        assert part.startswith(f"{parquet.PARTS}/") if renames else part == name
        assert not renames or part.count("/") == 1, "a store creates no folder for a late attempt"
        assert pa.parquet.read_table(tmp_path / "lake" / part, partitioning=None).num_rows == 41


def test_a_file_that_is_not_written_whole_is_deleted(tmp_path):
    """PyArrow's streams complete a file at the end of a block, also after an error of the source."""
    opened = remote.RemoteFiles(FlakyStore(tmp_path), "s3://")

    blocks = [b"half", KeyboardInterrupt]

    def read(_):
        block = blocks.pop(0)
        if block is KeyboardInterrupt:
            raise KeyboardInterrupt
        return block

    source = types.SimpleNamespace(seek=lambda _: None, read=read)
    with pytest.raises(KeyboardInterrupt):
        opened.put(source, "lake/x.parquet")
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_store_that_does_not_come_back_ends_the_task(tmp_path, clock):
    parts = store(tmp_path, Outage(lambda: OSError("no answer"), count=None, names="create"))
    work, splits = task(GOLDEN / "brokers" / "4.2.2" / "headers-0", tmp_path / "lake", layout("topic"), parts)
    with pytest.raises(
        StoreError, match=r"^s3://lake/topic_name=headers/.*parquet: could not be written: no answer \(tried for 5\d s"
    ):
        work((0, splits))


def test_a_task_that_fails_copies_no_started_file_into_a_store(tmp_path, monkeypatch):
    parts = store(tmp_path)
    work, splits = task(GOLDEN / "brokers" / "4.2.2" / "headers-0", tmp_path / "lake", layout("topic"), parts)

    def fail(*_):
        raise UnreadableError("x.log", "gone")
        yield

    counted = parquet.reading.counted
    monkeypatch.setattr(parquet.reading, "counted", lambda *given: chain(counted(*given), fail()))
    with pytest.raises(UnreadableError, match=r"^x\.log: gone$"):
        work((0, splits))
    assert not list((tmp_path / "lake").rglob("*"))


def test_a_worker_without_the_disk_of_the_driver_is_named(tmp_path):
    work, splits = task(GOLDEN / "brokers" / "4.2.2" / "headers-0", tmp_path / "out", layout("topic"))
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(
        UnreadableError, match=f"lake: cannot be written: there is no {tmp_path}/out on .*: workers and"
    ):
        work((0, splits))


def test_a_full_disk_is_an_error_of_the_output(tmp_path, monkeypatch):
    work, splits = task(GOLDEN / "brokers" / "4.2.2" / "headers-0", tmp_path / "out", layout("topic"))

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.ParquetFile, "_write", refuse)
    with pytest.raises(UnreadableError, match=r"^lake: cannot be written: No space left on device \(free some room"):
        work((0, splits))
    assert not list(Path(tmp_path / "out").glob("*.parquet"))


class Prepared:
    """An output in a store: a local folder, used by the client of the tasks and by that of Spark."""

    shown, renames_whole, local = "s3a://lake", False, None
    keep = Output.keep
    _kept = None

    def __init__(self, folder):
        self.folder, self.uri = folder, f"s3a://{folder}"

    def make(self):
        self.folder.mkdir()

    def exists(self, name):
        return (self.folder / name).exists()

    def rename(self, old, name):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / old).rename(self.folder / name)

    def delete(self, name=""):
        shutil.rmtree(self.folder / name)


def test_a_store_that_both_clients_reach_gets_its_files_from_the_workers(tmp_path, monkeypatch):
    opened = remote.RemoteFiles(FlakyStore(tmp_path), "s3://")
    monkeypatch.setattr(parquet, "place", lambda uri: (opened, uri.rpartition("/")[2]))
    output = Prepared(tmp_path / "lake")
    notes = []
    assert parquet.parts_of(output, notes.append) == parquet.StoreParts(opened, "lake", "s3a://lake", renames=False)
    assert notes == []
    assert [path.name for path in output.folder.iterdir()] == ["_SUCCESS"]


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("refused", "AWS Error ACCESS_DENIED"),
        ("unknown", "s3a://.*: unknown scheme"),
        ("another store", "PyArrow and Spark reach different stores"),
    ],
)
def test_spark_writes_into_a_store_that_the_workers_do_not_reach(tmp_path, monkeypatch, reason, text):
    output = Prepared(tmp_path / "lake")
    elsewhere = tmp_path / "elsewhere" if reason == "another store" else tmp_path
    outage = Outage(lambda: OSError("AWS Error ACCESS_DENIED"), count=None if reason == "refused" else 0)
    opened = remote.RemoteFiles(FlakyStore(elsewhere, outage), "s3://")

    def place(uri):
        if reason == "unknown":
            raise UsageError(f"{uri}: unknown scheme")
        elsewhere.mkdir(exist_ok=True)
        return opened, "lake"

    monkeypatch.setattr(parquet, "place", place)
    if reason == "unknown":
        output.make()
    notes = []
    assert parquet.parts_of(output, notes.append) is None
    (note,) = notes
    assert re.fullmatch(f"s3a://lake: Spark's own writer writes the files, because the workers cannot: {text}", note)
    assert not output.folder.exists(), "Spark's writer wants no folder"
    assert not list(elsewhere.rglob("_SUCCESS"))


@pytest.mark.parametrize("renames", [False, True])
def test_files_of_late_attempts_are_left_out_of_a_store(tmp_path, renames):
    parts = store(tmp_path, renames=renames)
    work, splits = task(GOLDEN / "brokers" / "4.2.2" / "headers-0", tmp_path / "lake", layout("topic"), parts)
    done, late = work((0, splits)), work((0, splits))
    output = Prepared(tmp_path / "lake")
    parts.settle(output, done.files)
    (name,) = done.files
    found = [str(path.relative_to(output.folder)) for path in output.folder.rglob("*.parquet")]
    if renames:
        assert found == [name]
        assert not (output.folder / parquet.PARTS).exists()
    else:
        assert set(found) == {name, *late.files}
        assert output._kept == {name}
