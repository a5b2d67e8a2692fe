"""``kdump.open``."""

from datetime import UTC, datetime

import pytest

import kdump
from kdump.commands import root
from kdump.errors import UnreadableError, UsageError
from kdump.rows import columns
from testing import forge
from testing.processes import python
from tests.log_reader.test_reader import TIME, write


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "t-3"
    write(folder, 0, 3)
    return folder


def offsets(*args, **filters):
    return [record.offset for record in kdump.open(*args, **filters)]


def test_filters(folder):
    assert offsets(folder) == list(range(48))
    assert offsets([str(folder)], offset=(5, None), until=TIME + 8000) == [5, 6, 7]
    when = datetime.fromtimestamp(TIME / 1000, UTC)
    assert offsets(folder, since=when.replace(microsecond=1), until=when.replace(second=when.second + 3)) == [1, 2]
    assert offsets(folder, key=b"k7") == offsets(folder, grep="^k7$") == offsets(folder, header={"n": b"7"}) == [7]
    assert offsets(folder, offset=7) == offsets(folder, offset=(7, 7)) == [7]
    assert offsets(folder, header={"n": None}, grep=b"k1.") == list(range(10, 20))
    assert offsets(folder, topic="t", partition=3, type=["data"], transactional=False, producer_id=-1)[:1] == [0]
    assert offsets(folder, topic="other") == offsets(folder, partition=[1, 2]) == []
    assert offsets(folder, epoch=1) == offsets(folder, isolation="read_committed", type="tombstone") == []


def test_fields_of_a_record(folder):
    record = next(iter(kdump.open(folder)))
    assert (record.topic, record.partition, record.offset, record.timestamp) == ("t", 3, 0, TIME)
    assert (record.key, record.value, record.headers) == (b"k0", b"v", ((b"n", b"0"),))
    assert record.datetime == datetime.fromtimestamp(TIME / 1000, UTC)
    assert (record.timestamp_type, record.transaction_state, record.is_control) == ("CreateTime", "none", False)
    row = record.row()
    assert [*row] == [column.name for column in columns.RECORD if not column.name.endswith("Encoding")]
    assert (row["kind"], row["key"], row["codec"], row["headers"]) == ("record", b"k0", 0, record.headers)


def test_batches(folder):
    log = kdump.open(folder)
    batches = list(log.batches())
    assert [(batch.base_offset, batch.last_offset) for batch in batches] == [(0, 15), (16, 31), (32, 47)]
    assert b"".join(batch.raw for batch in batches) == next(folder.iterdir()).read_bytes()
    assert [record.offset for record in batches[1].records] == list(range(16, 32))
    assert batches[1].row()["position"] == batches[1].position == batches[0].size
    assert batches[0].file.endswith(".log")
    assert len(list(log)) == len(list(log)) == 48


def test_damage_and_notes_are_kept(folder):
    path = next(folder.iterdir())
    path.write_bytes(path.read_bytes() + forge.batch([], crc=1))
    log = kdump.open(folder)
    assert len(list(log)) == 48
    ((name, damage),) = log.damage
    assert (name, damage.kind) == (str(path), "crc")
    (folder / "0.log.deleted").write_bytes(b"")
    list(log)
    assert "left out" in log.notes[0]


def test_errors(tmp_path):
    log = kdump.open(tmp_path / "gone")
    with pytest.raises(UnreadableError):
        list(log)
    for wrong in ({"grep": "("}, {"isolation": "serializable"}, {"since": datetime(2026, 1, 1)}):
        with pytest.raises(UsageError):
            kdump.open(tmp_path, **wrong)
    with pytest.raises(AttributeError):
        kdump.nothing  # noqa: B018  looking it up is what fails


def test_the_command_line_starts_without_it():
    code = "import sys, kdump; sys.exit('kdump.api' in sys.modules)"
    assert python("-c", code).returncode == 0


@pytest.mark.parametrize("name", ["dump", "get", "completion"])
def test_help_opens_with_examples(name):
    import click

    text = root.root.get_command(click.Context(root.root), name).get_help(click.Context(root.root))
    assert "Examples:" in text.split("Options:")[0]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, capsys):
    root.root.main(["completion", shell], standalone_mode=False)
    assert "_KDUMP_COMPLETE" in capsys.readouterr().out


def test_times_as_text_and_several_keys(folder):
    everything = offsets(folder)
    assert offsets(folder, since="1970-01-01") == everything
    assert offsets(folder, until="1970-01-01T00:00:00Z") == []
    assert offsets(folder, key=[b"k7", b"k9"]) == [7, 9]
    with pytest.raises(UsageError, match="is no time in ISO 8601"):
        kdump.open(folder, since="yesterday")


def test_what_a_record_and_a_batch_say_of_themselves(tmp_path):
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(forge.batch([forge.record(b"k", b"x" * 5000), forge.record(None, b"v", offset=1)]))
    log = kdump.open(path.parent)
    first, second = log
    assert repr(second) == "<LogRecord t-0@1 key=None value=b'v'>"
    assert repr(first).endswith("... (5000 bytes)>")
    assert len(repr(first)) < 100
    (batch,) = log.batches()
    assert batch.count == 2
    assert repr(batch) == f"<LogBatch {path} byte 0: offsets 0 to 1>"


def test_dir_names_what_users_call():
    assert {"open", "Log", "LogBatch", "LogRecord"} <= set(dir(kdump))
