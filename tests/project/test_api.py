"""``kdump.open``."""

import copy
import dataclasses
import json
from datetime import UTC, datetime

import pytest

import kdump
from kdump.commands import root
from kdump.errors import UnreadableError, UsageError
from kdump.primitives import compression
from kdump.rows import columns
from testing import ROOT, forge
from testing.processes import kdump as run_kdump
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
    with pytest.raises(UsageError, match="is not a time: write it as"):
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


BROKER = ROOT / "golden" / "brokers" / "4.2.2"


def test_a_limit_ends_the_reading():
    for limit in (0, 1, 100):
        log = kdump.open(BROKER, limit=limit)
        assert len(list(log)) == limit
        assert sum(len(batch.records) for batch in log.batches()) == limit
        assert log.to_arrow(["offset"]).read_all().num_rows == limit
    with pytest.raises(UsageError, match="limit=-1: expected a whole number"):
        kdump.open(BROKER, limit=-1)


def test_several_paths_are_words_of_their_own():
    one, other = BROKER / "one-0", BROKER / "txn-0"
    both = [(record.topic, record.offset) for record in kdump.open(one, str(other))]
    assert both == [(record.topic, record.offset) for record in kdump.open([one, other])]
    with pytest.raises(UsageError, match="no path was given"):
        kdump.open()


def test_a_log_says_what_it_is_and_shows_its_first_records():
    with kdump.open(BROKER / "one-0", topic="one", limit=5) as log:
        assert repr(log) == f"<Log {str(BROKER / 'one-0')!r}, topic=('one',), limit=5>"
        assert "<td>b&#x27;one&#x27;</td>" in log._repr_html_()


def test_batches_without_filters_read_headers_alone(monkeypatch):
    """Records are read when asked for; those of a damaged batch end at the damage, which is kept."""
    log = kdump.open(BROKER, topic="c-*")
    wanted = [(batch.base_offset, [one.offset for one in batch.records]) for batch in log._of_records()]
    found = list(log.batches())
    assert [(batch.base_offset, [one.offset for one in batch.records]) for batch in found] == wanted
    monkeypatch.setattr(compression, "decompress", None)
    assert [batch.count for batch in log.batches()] == [len(offsets) for _, offsets in wanted]


def test_damage_among_records_that_are_read_late_is_kept(tmp_path):
    broken = forge.batch([forge.record(b"k", b"v"), b"\x02broken"], base_offset=0)
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(broken)
    log = kdump.open(folder)
    (batch,) = log.batches()
    assert not log.damage
    assert len(batch.records) == 1
    assert len(log.damage) == 1
    assert [damage.kind for _, damage in log.damage] == [damage.kind for _, damage in damage_of(kdump.open(folder))]


def damage_of(log):
    list(log)
    return log.damage


def test_a_record_is_a_dict_of_plain_values():
    record = next(iter(kdump.open(BROKER, topic="headers")))
    found = dataclasses.asdict(record)
    assert list(found) == [
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestamp_type",
        "key",
        "value",
        "headers",
    ]
    assert (found["offset"], found["value"]) == (record.offset, record.value)
    batch = next(kdump.open(BROKER, topic="one").batches())
    assert dataclasses.asdict(batch)["count"] == 1


FIELDS = ("offset", "timestamp", "key", "value", "headers")


def test_lazy_fields_are_those_of_the_record(tmp_path):
    """They stay readable after the iteration, and a used record does not change them."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    headers = [(b"n%d" % number, None if number % 2 else b"v") for number in range(300)]
    parts = [forge.record(b"k", None, headers=headers), forge.record(None, b"", offset=1, headers=headers[:2])]
    parts += parts[1:] * 1200
    for codec in range(len(compression.NAMES)):
        payload = compression.compress(codec, b"".join(parts))
        made = forge.batch(parts, base_offset=2 * codec, base_sequence=7, attributes=codec, payload=payload)
        (folder / f"{2 * codec:020}.log").write_bytes(made)
    for log in (kdump.open(folder), kdump.open(BROKER, topic=["headers", "txn", "c-*", "one"])):
        found = list(log)
        wanted = [record for batch in log.batches() for record in batch.found.batch.records()]
        assert not log.damage
        for _ in range(2):
            assert [[getattr(one, name) for name in FIELDS] for one in found] == [
                [getattr(record, name) for name in FIELDS] for record in wanted
            ]
            assert [one.record for one in found] == wanted
        made = [kdump.LogRecord(one.batch, record) for one, record in zip(found, wanted, strict=True)]
        assert [[getattr(one, name) for name in FIELDS] for one in made] == [
            [getattr(record, name) for name in FIELDS] for record in wanted
        ]
        assert found == made == [copy.copy(one) for one in found]
        assert found[0] != found[1]
        first = next(log.batches()).records[0]
        assert hash(first) == hash(copy.copy(first))


def test_a_record_without_a_batch_has_no_fields():
    empty = kdump.LogRecord.__new__(kdump.LogRecord)
    for name in ("key", "value", "record"):
        with pytest.raises(AttributeError):
            getattr(empty, name)


def test_marks_mean_the_same_in_rows_and_in_arrow():
    """True or false if a checkpoint gives it, otherwise null; JSON lines leave out what is not true."""
    pytest.importorskip("pyarrow")
    names = ["aboveHighWatermark", "belowLogStart"]
    for broker in ("4.2.2", "4.2.2-live"):
        log = kdump.open(BROKER.parent / broker, topic="c-*")
        rows = [{name: record.row()[name] for name in names} for record in log]
        assert log.to_arrow(names).read_all().to_pylist() == rows
        assert rows


def test_a_check_from_python_is_that_of_the_command():
    for paths in ([BROKER], [BROKER / "one-0"]):
        done = run_kdump("check", *paths, "-o", "jsonl", "--at", "2026-11-22")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        report = kdump.check(*paths, at="2026-11-22")
        assert json.loads(json.dumps(report.rows())) == [line for line in lines if line["kind"] == "finding"]
        assert report.status == done.returncode
        done = run_kdump("verify-index", *paths, "-o", "jsonl")
        report = kdump.verify_index(*paths)
        findings = [json.loads(line) for line in done.stdout.splitlines() if b'"kind":"finding"' in line]
        assert json.loads(json.dumps(report.rows())) == findings


def test_a_check_of_nothing_is_unreadable(tmp_path):
    report = kdump.check(tmp_path / "gone")
    assert report.status == 1
    assert isinstance(report.unreadable[0], kdump.errors.UnreadableError)


def test_the_forms_of_a_table():
    pa = pytest.importorskip("pyarrow")
    log = kdump.open(BROKER, topic="c-none")
    table = log.to_arrow().read_all()
    assert pa.schema(log).equals(table.schema)
    assert log.to_arrow([]).read_all().num_rows == table.num_rows == 223
    assert pa.table(log).equals(table)


@pytest.mark.parametrize("form", ["pandas", "polars", "duckdb"])
def test_the_forms_of_other_libraries(form):
    pytest.importorskip(form)
    log = kdump.open(BROKER, topic="c-none")
    if form == "duckdb":
        import duckdb

        with duckdb.connect() as connection:
            assert log.to_duckdb(connection, "c").aggregate("count(*)").fetchall() == [(223,)]
        return
    frame = getattr(log, f"to_{form}")(["offset", "value"])
    assert list(frame["offset"]) == list(range(223))


def test_a_parquet_file_appears_whole_or_not_at_all(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    log = kdump.open(BROKER, topic="c-none")
    out = tmp_path / "rows.parquet"
    assert log.to_parquet(out, ["offset"]) == 223
    assert parquet.read_table(out)["offset"].to_pylist() == list(range(223))
    with pytest.raises(UsageError):
        log.to_parquet(out)
    assert log.to_parquet(out, overwrite=True) == 223
    with pytest.raises(UsageError):
        log.to_parquet(BROKER / "rows.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


def test_small_segments_are_joined_to_blocks(tmp_path):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "t-0"
    folder.mkdir()
    for base in range(0, 2000, 2):
        batch = forge.batch([forge.record(b"k", b"v", offset=one) for one in range(2)], base_offset=base)
        (folder / f"{base:020}.log").write_bytes(batch)
    blocks = list(kdump.open(folder).to_arrow(["offset"]))
    assert len(blocks) < 8
    assert [one for block in blocks for one in block["offset"].to_pylist()] == list(range(2000))


def test_an_answer_as_a_table():
    pa = pytest.importorskip("pyarrow")
    answer = kdump.transactions(BROKER, at="2026-11-22")
    table = answer.table("transaction")
    assert table.to_pylist() == [
        {name: value for name, value in row.items() if name != "kind"}
        for row in answer.rows()
        if row["kind"] == "transaction"
    ]
    assert answer.to_arrow()["kind"].to_pylist() == [row["kind"] for row in answer.rows()]
    assert answer.table("difference").num_rows == 0
    assert kdump.offsets(BROKER, topic="nosuch").to_arrow().schema.names[:2] == ["topic", "partition"]
    assert pa.types.is_string(kdump.events(BROKER).to_arrow().schema.field("details").type)
    with pytest.raises(UsageError, match="there are no lines of kind"):
        answer.table("offsets")


def test_names_are_those_of_commands():
    assert kdump.du is kdump.disk_usage
    assert kdump.stats is kdump.statistics
    assert {"check", "verify_index", "scan", "errors", "du", "stats"} <= set(dir(kdump))
