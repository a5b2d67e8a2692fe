"""What becomes of an output where an export fails, without Spark."""

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
from pyspark.errors import PySparkException

from kdump.errors import KdumpError, UsageError
from kdump.spark.export.output import MANIFEST, NEW, Output

OLD = {"a.parquet": "1", MANIFEST: "of a"}


class Memory(Output):
    """A folder in memory; it is there when ``texts`` is no None."""

    def __init__(self, texts, mode="append"):
        self.path, self._mode, self._is_empty, self._has_begun = "/out", mode, False, True
        self.texts = None if texts is None else dict(texts)

    def exists(self, name):
        return self.texts is not None and (not name or name in self.texts)

    def files(self, folder, *, deep=True):
        assert (folder, deep) == ("", True)
        return sorted(self.texts or {})

    def delete(self, name):
        if name:
            del self.texts[name]
        else:
            self.texts = None

    def _written(self):
        name = self._manifest_name()
        return None if name is None else (name, 0, len(self.texts[name]))


class Refused:
    """Rows, and their writer, that find the folder which another export has made."""

    def __init__(self, output):
        self.write, self.output = self, output

    def format(self, _):
        return self

    def options(self, **_):
        return self

    def mode(self, _):
        return self

    def save(self, path):
        self.output.texts = {"of-another.parquet": "1"}
        raise PySparkException(f'[PATH_ALREADY_EXISTS] Path file:{path} already exists. Set mode as "overwrite" to ...')


def failed(output, error, **written):
    """What is noted where the block writes some files and fails."""
    notes = []

    def fail():
        with output.whole(notes.append):
            output.texts = (output.texts or {}) | written
            raise error

    with pytest.raises(type(error)):
        fail()
    return notes


@pytest.mark.parametrize(
    "before", [None, OLD, {**OLD, MANIFEST + NEW: "of a an"}, {"a.parquet": "1", MANIFEST + NEW: "of a"}]
)
def test_what_was_written_is_taken_back(before):
    """Also where a run that was killed left its manifest half-written, or without its name."""
    output = Memory(before)
    assert failed(output, KdumpError("full"), **{"b.parquet": "2"}) == []
    assert output.texts == before


def test_an_interrupted_export_is_taken_back():
    output = Memory(OLD)
    assert failed(output, KeyboardInterrupt(), **{"b.parquet": "2", MANIFEST + NEW: "of a a"}) == []
    assert output.texts == OLD


@pytest.mark.parametrize("before", [None, OLD])
@pytest.mark.parametrize("name", [MANIFEST, MANIFEST + NEW])
def test_what_another_export_has_finished_meanwhile_stands(before, name):
    output = Memory(before)
    if name != MANIFEST:  # it has the place of the old one
        output = Memory(before and {"a.parquet": "1"})
    left = {**(output.texts or {}), "b.parquet": "2", name: "of a and b"}
    notes = failed(output, KdumpError("rows are missing"), **{"b.parquet": "2", name: "of a and b"})
    assert notes == [f"/out/{MANIFEST} has been written meanwhile: nothing is deleted"]
    assert output.texts == left


def test_an_export_that_has_written_nothing_deletes_nothing():
    output = Memory(None)
    output._has_begun = False
    failed(output, KdumpError("no room for temporary files"), **{"of-another.parquet": "1"})
    assert output.texts == {"of-another.parquet": "1"}


def test_what_another_export_has_begun_meanwhile_stands():
    output = Memory(None, "error")

    def write():
        with output.whole(pytest.fail):
            output._save(Refused(output), output.path, "parquet", ())

    with pytest.raises(UsageError, match="/out is there now, and was not before: another export writes to it"):
        write()
    assert output.texts == {"of-another.parquet": "1"}
