"""The checkpoint of an incremental export: the cost of a step, without Spark."""

import json

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")

from kdump.spark.export import account
from kdump.spark.export.following import CHECKPOINT, Checkpoint
from kdump.spark.export.output import MANIFEST, Output


class Memory(Output):
    """A folder in memory; ``moved`` counts the characters that were read and written."""

    def __init__(self):
        self.path, self.texts, self.moved, self._hidden = "/out", {}, 0, {}

    def hidden(self, name):
        return self._hidden.setdefault(name, Memory())

    def hidden_names(self):
        return [name for name, folder in self._hidden.items() if folder.texts]

    def flush(self, names):
        """Do nothing: a folder in memory needs no flush."""

    def exists(self, name=""):
        return any(path == name or path.startswith(f"{name}/") or not name for path in self.texts)

    renames_whole = True

    def files(self, folder="", *, deep=True):
        before = f"{folder}/" if folder else ""
        inside = [path.removeprefix(before) for path in self.texts if path.startswith(before)]
        return sorted(name for name in inside if deep or "/" not in name)

    def read_text(self, name):
        self.moved += len(self.texts[name])
        return self.texts[name]

    def write_text(self, name, text):
        self.moved += len(text)
        self.texts[name] = text

    def make_parents(self, names):
        """Do nothing: a folder in memory has no parents."""

    def take(self, source, name):
        if name in source.texts:
            self.texts[name] = source.texts.pop(name)

    def delete(self, name=""):
        for path in [path for path in self.texts if not name or path == name or path.startswith(f"{name}/")]:
            del self.texts[path]


def step(number):
    """Return the account of a step that continues one file and adds another."""
    part = account._counts(account.SplitAccount(1, 3, 100), 0)
    files = [
        {"file": "a.log", "size": 100, **part, "damaged": [], "start": number * 100, "end": number * 100 + 100},
        {"file": f"{number}.log", "size": 100, **part, "damaged": [], "start": 0, "end": 100},
    ]
    return {"rowsWritten": 6, "output": [], "lost": [], "totals": account.totals(files), "files": files}


def steps(output, count, *, first=0):
    checkpoint = Checkpoint(output, {})
    state = checkpoint.open()
    for number in range(first, first + count):
        staging = output.hidden(f"{number:012x}")
        staging.texts[f"{number}.parquet"] = ""
        staged = (f"{number:012x}", staging)
        state = checkpoint.commit(state, {"t-0": {"offset": number}}, step(number), staged, is_first=number == first)
    return checkpoint


def manifest(output):
    return json.loads(output.texts[MANIFEST])


def test_a_step_costs_what_is_new_however_many_there_were():
    few, output = Memory(), Memory()
    steps(few, 100).write_manifest()
    steps(output, 400).write_manifest()
    assert output.moved < 5 * few.moved
    (run,) = manifest(output)["runs"]
    assert (run["rowsWritten"], run["totals"]["files"], len(run["files"])) == (2400, 401, 401)
    assert (run["files"][0]["start"], run["files"][0]["end"], run["files"][0]["rows"]) == (0, 40_000, 1200)
    assert sorted(output.files(CHECKPOINT)) == ["399.json", "400.json"]
    assert len([name for name in output.texts if name.endswith(".parquet")]) == 400


@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_the_next_run_gives_what_a_killed_one_had_committed(count):
    output = Memory()
    steps(output, count)
    checkpoint = Checkpoint(output, {})
    assert checkpoint.open() == (count, {"t-0": {"offset": count - 1}})
    assert manifest(output)["steps"] == count
    assert [run["rowsWritten"] for run in manifest(output)["runs"]] == [6 * count]
    steps(output, 3, first=count).write_manifest()
    assert [run["rowsWritten"] for run in manifest(output)["runs"]] == [6 * count, 18]
    assert manifest(output)["totals"]["rows"] == 6 * count + 18
