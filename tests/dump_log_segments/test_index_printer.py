"""The files beside a log, in the format of each recorded release of DumpLogSegments."""

import io
import os
import re
import struct

import pytest

from kdump.dump_log_segments import Options, index_printer
from kdump.dump_log_segments.dialects import segments as dialects
from kdump.dump_log_segments.dialects import state as dialects_state
from kdump.dump_log_segments.dispatch import dump_files
from kdump.dump_log_segments.java_files import java_split, snapshot_id
from kdump.dump_log_segments.run import DumpRun
from kdump.errors import KdumpError, UnreadableError
from testing import GOLDEN, ROOT, forge, goldens
from testing.processes import kdump

FLAGS = {
    "--verify-index-only": {"verify_index_only": True},
    "--index-sanity-check": {"index_sanity_check": True},
}
NEEDS_THE_LOG_OF_ITS_TIME = re.compile(r"i100t?|i2.*|i_big|iodd.*|xi|xt|multii|multit|i1")
"""Cases on magic 2, or on magic 1, which earlier releases read as garbage."""


def is_of_state(args: list[str]) -> bool:
    """Whether a command line has only the flags above, and no segment among its files."""
    rest = [arg for arg in args if arg not in FLAGS]
    return rest[:1] == ["--files"] and len(rest) == 2 and not re.search(r"\.log|checkpoint$", rest[1])


CASES = {
    name.removeprefix("tiny/"): args
    for name, args in goldens.cases().items()
    if name.startswith("tiny/") and is_of_state(args)
}
RUNS = goldens.load()


def run(release: str, args: list[str]) -> tuple[int, str]:
    """Run the clone in this process; return exit status and standard output."""
    options = Options(**{key: value for flag in args for key, value in FLAGS.get(flag, {}).items()})
    out = io.BytesIO()
    classic = DumpRun(dialects.find(release), options, out, release=release)
    try:
        dump_files(classic, java_split(args[args.index("--files") + 1]))
    except KdumpError:
        return 1, out.getvalue().decode()
    return 0, out.getvalue().decode()


@pytest.mark.parametrize("release", [*RUNS])
def test_tiny_files_in_the_words_of_each_release(release, monkeypatch, capsys):
    monkeypatch.chdir(GOLDEN)
    held = 0
    for name, args in CASES.items():
        want = RUNS[release].get(f"tiny/{name}")
        old = goldens.numbers(release) < (0, 11)
        if want is None or "UnrecognizedOption" in want.stderr or (old and NEEDS_THE_LOG_OF_ITS_TIME.fullmatch(name)):
            continue
        status, stdout = run(release, args)
        said = goldens.sorted_reports(goldens.plain(capsys.readouterr().err, GOLDEN))
        assert (status, stdout) == (want.status, want.stdout), name
        if "Exception in thread" not in want.stderr:
            assert said == want.stderr, name
        held += 1
    assert held > 10


def test_every_dialect_says_what_changed():
    assert all(dialect.why for dialect in dialects_state.DIALECTS)
    assert [d.since for d in dialects_state.DIALECTS] == sorted({d.since for d in dialects_state.DIALECTS})
    assert dialects_state.find("2.0") is dialects_state.find("2.0.1")
    assert dialects_state.find("4.4") is dialects_state.NEWEST


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_a_missing_index_is_not_created(tmp_path, suffix):
    (tmp_path / "00000000000000000000.log").write_bytes(forge.batch([forge.record(None, b"v")]))
    before = names(tmp_path)
    done = kdump("--files", tmp_path / f"00000000000000000000.{suffix}")
    assert done.returncode == 1
    assert done.stdout.decode() == f"Dumping {tmp_path}/00000000000000000000.{suffix}\n"
    assert b"00000000000000000000.index" in done.stderr
    assert names(tmp_path) == before


def test_an_index_without_its_log_creates_nothing(tmp_path):
    (tmp_path / "00000000000000000000.index").write_bytes(bytes(8))
    assert kdump("--files", tmp_path / "00000000000000000000.index").returncode == 1
    assert names(tmp_path) == ["00000000000000000000.index"]


def test_a_txn_index_that_cannot_be_read_is_an_error(tmp_path):
    (tmp_path / "0.txnindex").mkdir()
    with pytest.raises(UnreadableError):
        dump_files(DumpRun(dialects.NEWEST, Options(), io.BytesIO()), [f"{tmp_path}/0.txnindex"])


def test_the_position_of_an_index_entry_must_hold_a_batch_of_the_message_size(tmp_path):
    log = b"".join(forge.batch([forge.record(None, b"v" * 100)], base_offset=n) for n in range(2))
    (tmp_path / "0.log").write_bytes(log)
    (tmp_path / "0.index").write_bytes(b"\0\0\0\1" + (len(log) // 2).to_bytes(4, "big"))
    fits, small = (
        kdump("--files", tmp_path / "0.index", "--max-message-size", len(log) // 2 + less) for less in (0, -1)
    )
    assert (fits.returncode, fits.stdout.splitlines()[1:]) == (0, [b"offset: 1 position: %d" % (len(log) // 2)])
    assert (small.returncode, small.stdout.splitlines()[1:]) == (1, [])


@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex", "snapshot"])
def test_a_file_of_gigabytes_is_not_taken_into_memory(tmp_path, suffix):
    (tmp_path / "0.log").write_bytes(b"")
    (tmp_path / "0.index").write_bytes(b"")
    with (tmp_path / f"0.{suffix}").open("wb") as file:
        file.truncate(1 << 40)
    done = kdump("--files", tmp_path / f"0.{suffix}")
    assert done.returncode == 1
    assert f"0.{suffix}: has 1099511627776 bytes" in done.stderr.decode()


def test_names_of_snapshots_of_the_metadata_log():
    assert snapshot_id("a/00000000000000000123-0000000007-delete.checkpoint") == (123, 7)
    for name in ("abc.checkpoint", "00000000000000000123.checkpoint", "0000000000000000000x-0000000007.checkpoint"):
        with pytest.raises(KdumpError, match="where an offset or an epoch is expected"):
            snapshot_id(name)


@pytest.mark.parametrize(
    ("release", "order"), [("4.2", ["3:7", "9:6", "3:5"]), ("4.3", ["9:6", "3:7"])], ids=["4.2", "4.3"]
)
def test_mismatches_of_an_offset_index_come_in_the_order_of_the_release(tmp_path, release, order):
    """4.3.1 sorts them by offset, highest first, and keeps only the last one of equal offsets."""
    batches = [forge.batch([forge.record(None, b"v")], base_offset=offset) for offset in (5, 6, 7)]
    (tmp_path / "0.log").write_bytes(b"".join(batches))
    entries = [(3, 0), (9, len(batches[0])), (3, 2 * len(batches[0]))]
    (tmp_path / "0.index").write_bytes(b"".join(struct.pack(">ii", *entry) for entry in entries))
    done = kdump("--compat", release, "--files", tmp_path / "0.index")
    found = re.findall(r"Index offset: (\d+), log offset: (\d+)", done.stderr.decode())
    assert [":".join(pair) for pair in found] == order


@pytest.mark.parametrize("most", [10, 80, 1 << 20])
@pytest.mark.parametrize("release", ["4.3", "2.0", "0.10.1"])
def test_compiled_code_finds_the_same_in_an_offset_index_as_plain_python(tmp_path, monkeypatch, capsys, release, most):
    whole = b"".join(forge.batch([forge.record(None, b"v")], base_offset=offset) for offset in (5, 1 << 62, 7))
    body = forge.message(1, b"k", b"v")
    second = len(whole) // 3
    logs = [whole[:cut] for cut in range(len(whole) + 1)]
    logs += [whole[:16] + bytes([magic]) + whole[17:] for magic in (0, 1, 3, 0xFF)]
    logs += [whole[:8] + struct.pack(">i", size) + whole[12:] for size in (-1, 13, 14, 48, 49, 1 << 30)]
    logs += [whole[:23] + b"\x7f" + whole[24:], forge.entry(5, body) + whole]
    (tmp_path / "0.index").write_bytes(
        b"".join(struct.pack(">ii", *entry) for entry in [(5, 0), (6, second), (7, 2 * second), (9, 1), (9, -1)])
    )

    def reported() -> list[object]:
        out = io.BytesIO()
        options = Options(max_message_size=most)
        classic = DumpRun(dialects.find(release), options, out, release=release)
        damage = None
        try:
            dump_files(classic, [f"{tmp_path}/0.index"])
        except KdumpError as error:
            damage = repr(error)
        return [damage, out.getvalue(), classic.reports.mismatches, *capsys.readouterr()]

    for log in logs:
        (tmp_path / "0.log").write_bytes(log)
        quick = reported()
        with monkeypatch.context() as patch:
            patch.setattr(index_printer, "by_offset", lambda _run, _log, index: bytearray(b"\1") * index.count)
            assert quick == reported(), log


@pytest.mark.parametrize("release", ["0.11", "1.1.1", "4.3"])
def test_an_index_is_held_against_messages_whose_key_lies(tmp_path, release):
    """Only offset and timestamp are read: the other fields of such a message do not matter."""
    lying = bytearray(forge.message(1, b"k", b"v", timestamp=77))
    lying[18:22] = struct.pack(">i", 718)
    (tmp_path / "0.log").write_bytes(forge.entry(5, bytes(lying)) + forge.wrapper(1, 7, [(0, lying), (1, lying)]))
    (tmp_path / "0.index").write_bytes(struct.pack(">ii", 5, 0))
    (tmp_path / "0.timeindex").write_bytes(struct.pack(">qi", 77, 5))
    done = kdump(
        "--compat", release, "--files", "0.index,0.timeindex", cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.stdout == (b"Dumping 0.index\noffset: 5 position: 0\nDumping 0.timeindex\ntimestamp: 77 offset: 5\n")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("release", "ends"), [("4.2", None), ("4.3", "record size of 0")])
def test_a_time_index_beside_a_log_that_ends_in_zeros(tmp_path, release, ends):
    """Since 4.3 all valid batches are read before the first entry is checked."""
    log = forge.batch([forge.record(b"k", b"v")], base_timestamp=5) + bytes(100)
    (tmp_path / "00000000000000000000.log").write_bytes(log)
    (tmp_path / "00000000000000000000.index").write_bytes(struct.pack(">ii", 0, 0))
    (tmp_path / "00000000000000000000.timeindex").write_bytes(struct.pack(">qi", 5, 0))
    done = kdump("--compat", release, "--files", tmp_path / "00000000000000000000.timeindex")
    assert (b"timestamp: 5 offset: 0" in done.stdout) == (ends is None)
    assert (done.returncode, (ends or "") in done.stderr.decode()) == (0 if ends is None else 1, True)


@pytest.mark.parametrize(("release", "refused"), [("4.2.1", False), ("4.2.2", True), ("4.3", False), ("4.4", True)])
def test_a_snapshot_of_more_than_a_million_producers(tmp_path, release, refused):
    """4.2.2 and 4.4.0 refuse it before they read the first producer."""
    path = tmp_path / f"{0:020}.snapshot"
    path.write_bytes(b"\0\1" + bytes(4) + (1_000_001).to_bytes(4, "big") + bytes(1_000_001))
    said = kdump("--compat", release, "--files", path).stderr.decode()
    limit = "Tried to read a collection of size 1000001, which exceeds the maximum allowed size of 1000000."
    assert said == f"Snapshot failed schema validation: {limit if refused else 'null'}\n"


@pytest.mark.parametrize(
    ("release", "second", "fault"),
    [
        ("4.4.0", forge.batch([], base_offset=1, attributes=1, count=1, payload=b"x"), "the gzip stream is broken"),
        ("2.2.0", forge.batch([], base_offset=1, attributes=1, count=1, payload=b"x"), "the gzip stream is broken"),
        ("0.10.2.2", forge.entry(1, forge.message(1, b"k", b"x", attributes=1)), "the gzip stream is broken"),
        ("0.10.2.2", struct.pack(">qi", 1, 5) + bytes(40), "a record size of 5"),
    ],
)
def test_damage_of_the_log_has_its_path_and_the_position_in_it(tmp_path, release, second, fault):
    log = tmp_path / f"{0:020}.log"
    first = forge.entry(0, forge.message(1, b"k", b"v"))
    log.write_bytes(first + second)
    log.with_suffix(".index").write_bytes(struct.pack(">ii", 1, len(first)))
    log.with_suffix(".timeindex").write_bytes(struct.pack(">qi", 0, 1))
    done = kdump("--files", log.with_suffix(".timeindex"), "--compat", release)
    found = re.match(rf"error: byte (\d+): {re.escape(str(log))}: {fault}", done.stderr.decode())
    assert int(found[1]) in (len(first), len(first) + 8)
