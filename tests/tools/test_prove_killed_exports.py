"""The readers of killed exports find lost, duplicate and misleading files."""

import json

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
pytest.importorskip("duckdb", reason="duckdb is not installed")
import pyarrow as pa
import pyarrow.parquet as parquet

from tools.prove.killed_exports import Faults, Seen, judge, look

A, B, C = ("t", 0, 0), ("t", 0, 1), ("t", 0, 2)


def lake(out, files, named, moves=None):
    for name, rows in files.items():
        path = out / "topic_name=t" / "date=d" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = dict(zip(("topic", "partition", "offset"), map(list, zip(*rows, strict=True)), strict=True))
        parquet.write_table(pa.table(columns), path)
    if named is not None:
        output = [{"file": f"topic_name=t/date=d/{name}", "rows": rows} for name, rows in named.items()]
        (out / "_manifest.json").write_text(json.dumps({"runs": [{"output": output}]}))
    if moves is not None:
        names = [f"topic_name=t/date=d/{name}" for name in moves]
        (out / "_commit.json").write_text(json.dumps({"moves": names}))


def test_an_output_is_read_by_glob_and_by_its_manifest(tmp_path):
    lake(tmp_path, {"1.parquet": [A, B], "2.parquet": [C], "3.parquet": [C]}, {"1.parquet": 2}, ["2.parquet"])
    stray = "topic_name=t/date=d/3.parquet"
    assert look(tmp_path) == Seen([A, B, C, C], [A, B], [stray], is_moving=True)
    assert look(tmp_path / "nowhere") == Seen([], None, [], is_moving=False)


@pytest.mark.parametrize(
    ("named", "reported"),
    [
        ({"2.parquet": 1}, "names topic_name=t/date=d/2.parquet, which is not"),
        ({"1.parquet": 3}, "the manifest says 3"),
    ],
)
def test_a_manifest_of_other_files_is_reported(tmp_path, named, reported):
    lake(tmp_path, {"1.parquet": [A, B]}, named)
    with pytest.raises(ValueError, match=reported):
        look(tmp_path)


def test_a_file_that_is_half_there_is_reported(tmp_path):
    lake(tmp_path, {"1.parquet": [A, B]}, None)
    path = tmp_path / "topic_name=t" / "date=d" / "1.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="a file cannot be read"):
        look(tmp_path)


@pytest.mark.parametrize(
    ("rows", "reported", "is_moving", "adds", "faults"),
    [
        ([A], [A], False, True, Faults()),
        ([A, B, C], [A, B, C], False, True, Faults()),
        ([A, B], [A], True, True, Faults()),
        ([A, B], [A], False, True, Faults(misleading=1)),
        ([A, B], [A, B], True, True, Faults(misleading=1)),
        ([B], None, True, True, Faults(lost=1)),
        ([A, A], [A], True, True, Faults(doubled=1)),
        ([("u", 0, 0), A], [A], True, True, Faults(misleading=1)),
        ([], None, True, False, Faults()),
        ([A, B], None, True, False, Faults(misleading=1)),
    ],
)
def test_what_is_wrong_is_counted(rows, reported, is_moving, adds, faults):
    """The export goes from A to A, B and C if it adds, otherwise to B and C."""
    new = {A, B, C} if adds else {B, C}
    assert judge(Seen(sorted(rows), reported, [], is_moving), {A}, new, adds=adds, moves=False) == faults


def test_steps_may_have_come_but_nothing_without_a_journal():
    assert judge(Seen([A, B], [A], [], is_moving=True), {A}, {A, B, C}, adds=True, moves=True) == Faults()
    found = judge(Seen([B, B], [A], ["x"], is_moving=True), {A}, {A, B, C}, adds=True, moves=True)
    assert found == Faults(lost=1, doubled=1, misleading=2)
