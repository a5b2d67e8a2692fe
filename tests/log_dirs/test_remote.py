"""Retries at a store: with pauses, limited in number, and an error is never taken for an answer."""

import pickle
import re
import sys
from functools import partial

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[spark]'")

from kdump.cli import main
from kdump.errors import StoreError, UsageError
from kdump.log_dirs import remote
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LOCAL
from kdump.primitives.messages import message
from testing import GOLDEN, forge
from testing.stores import Clock, FlakyStore, Outage
from testing.tiered import Store
from tests.log_dirs.test_tiered import local, of

BROKER = GOLDEN / "brokers" / "4.2.2"
AWAY = "When reading: AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 7, Couldn't connect to server"
BUSY = "When reading: AWS Error SLOW_DOWN during GetObject operation: Reduce your request rate"
DENIED = "When reading: AWS Error ACCESS_DENIED during GetObject operation: Access Denied"


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(remote, "time", made)
    monkeypatch.setattr(remote, "notify", lambda _: None)
    monkeypatch.setattr(remote, "_ANSWERED", set())
    monkeypatch.delenv(remote.VARIABLE, raising=False)
    return made


def failing(text, count=None, kind=OSError):
    """Return an operation that fails ``count`` times, and then returns the number of its calls."""
    calls = []

    def operation():
        calls.append(1)
        if count is None or len(calls) <= count:
            raise kind(text)
        return len(calls)

    operation.calls = calls
    return operation


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("s3://AKIA:se/cret@bucket/a", "s3://bucket/a"),
        ("s3://AKIA:se@cret@bucket/a", "s3://bucket/a"),
        ("s3://AKIA:se?cret@bucket/a", "s3://bucket/a"),
        ("s3:/AKIA:secret@bucket/a", "s3:/bucket/a"),
        ("s3://AKIA:secret@bucket/a@b?x=y", "s3://bucket/a@b"),
        ("s3://bucket/a?c/dt=1/*", "s3://bucket/a?c/dt=1/*"),
        ("s3://AKIA:se?cret@bucket/a?c/x?access_key=K", "s3://bucket/a"),
        ("s3://bucket/a?access-key=K", "s3://bucket/a"),
        ("s3://bucket/a?access_key%3DK", "s3://bucket/a"),
        ("hdfs://node:8020/a@b", "hdfs://node:8020/a@b"),
        ("hdfs://user@node:8020/a", "hdfs://node:8020/a"),
        ("/data/a:b@c?d", "/data/a:b@c?d"),
    ],
)
def test_a_uri_is_shown_without_credentials_and_options(uri, shown):
    assert remote.without_secret(uri) == shown


@pytest.mark.parametrize("uri", ["s3://*/x", "s3://AKIA:se?cret@bucket/x", "s3:/*"])
def test_a_glob_in_the_place_of_a_bucket_is_wrong_usage(uri):
    with pytest.raises(UsageError, match="the name of a bucket cannot contain") as error:
        remote.place(uri)
    assert "se?" not in str(error.value)


def test_an_unforeseen_error_of_a_client_is_one_of_the_store(clock):
    from pyarrow import ArrowException

    with pytest.raises(StoreError, match="could not be read: Unknown error: AuthenticationException"):
        remote.Retries().call("abfs://x", failing("Unknown error: AuthenticationException", kind=ArrowException))
    assert clock.pauses == []


def test_an_operation_is_tried_again_with_longer_pauses_until_it_succeeds(clock):
    assert remote.Retries().call("s3://x", failing(AWAY, 6)) == 7
    assert clock.pauses == [0.5, 1, 2, 4, 8, 8]


@pytest.mark.parametrize("text", [AWAY, BUSY, "HTTP status 503", "some words that no one has seen before"])
def test_the_tries_end_after_a_minute_and_the_error_says_so(clock, text):
    with pytest.raises(StoreError) as error:
        remote.Retries().call("s3://x", failing(text))
    assert 50 < clock.now <= remote.SECONDS
    assert str(error.value) == f"s3://x: could not be read: {text} (tried for {clock.now:.0f} s)"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("gone", FileNotFoundError),
        ("AWS Error NO_SUCH_KEY during GetObject operation", OSError),
        ("AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation", OSError),
        ("AWS Error INVALID_OBJECT_STATE during GetObject operation", OSError),
        ("Unable to load libjvm", OSError),
    ],
)
def test_what_no_try_changes_is_raised_at_once(clock, text, kind):
    operation = failing(text, kind=kind)
    with pytest.raises(StoreError):
        remote.Retries().call("s3://x", operation)
    assert (len(operation.calls), clock.pauses) == (1, [])


def test_a_key_that_never_worked_is_wrong_and_one_that_did_may_work_again(clock):
    tries = remote.Retries()
    with pytest.raises(StoreError, match="ACCESS_DENIED"):
        tries.call("s3://x", failing(DENIED))
    assert clock.pauses == []
    tries = remote.Retries()
    tries.call("s3://x", lambda: 1)
    other = pickle.loads(pickle.dumps(tries))  # in a worker of Spark
    for one in (tries, other):
        assert one.call("s3://x", failing(DENIED, 3)) == 4
    clock.now = 0
    with pytest.raises(StoreError, match="ACCESS_DENIED"):
        tries.call("s3://x", failing(DENIED))
    assert 8 < clock.now <= remote.RIGHTS_SECONDS


@pytest.mark.parametrize(("text", "again"), [(AWAY, True), (DENIED, False)])
def test_other_files_are_not_waited_for_after_the_last_try(clock, text, again):
    tries = remote.Retries()
    tries.call("s3://x", lambda: 1)
    with pytest.raises(StoreError):
        tries.call("s3://x", failing(text))
    before = list(clock.pauses)
    for _ in range(3):
        with pytest.raises(StoreError):
            tries.call("s3://y", failing(text))
    assert clock.pauses == before
    tries.call("s3://z", lambda: 1)
    if again:
        assert tries.call("s3://y", failing(text, 1)) == 2
    else:
        with pytest.raises(StoreError):
            tries.call("s3://y", failing(text, 1))


def test_ctrl_c_ends_a_pause(clock, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(clock, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        remote.Retries().call("s3://x", failing(AWAY))


@pytest.mark.parametrize(("text", "seconds"), [("2", 2), ("0", 0), ("-1", 0), ("soon", remote.SECONDS)])
def test_the_environment_may_say_how_long(clock, monkeypatch, text, seconds):
    monkeypatch.setenv(remote.VARIABLE, text)
    assert remote.seconds() == seconds


def test_it_is_reported_once_that_there_will_be_other_tries(clock, monkeypatch, capsys):
    monkeypatch.setattr(remote, "notify", partial(message, "note"))
    remote.Retries().call("s3://x", failing(f"{AWAY}\n\x1b]", 5))
    said = capsys.readouterr().err
    assert said == f"note: s3://x: {AWAY}\\x0a\\x1b]; retrying for up to 60 s\n"


def segments(root, fault=lambda *_: None, **given):
    files = remote.RemoteFiles(FlakyStore(root, fault, **given), "s3://")
    (partition,) = Finder().find(["txn-0"], files)
    return files, partition


@pytest.mark.parametrize("names", ["look", "list", "open", "read"])
def test_each_operation_is_tried_again(clock, names):
    outage = Outage(lambda: OSError(AWAY), names=names, count=3)
    files, partition = segments(BROKER, outage)
    for segment in partition.segments:
        with files.open(segment.path) as source:
            assert source.read(0, source.size) == (BROKER / segment.path).read_bytes()
    assert (outage.failed, len(clock.pauses)) == (3, 3)


def test_an_answer_that_is_cut_off_is_not_the_end_of_the_file(clock):
    cuts = iter([10, 0])
    files, partition = segments(BROKER, short=lambda _, size: next(cuts, size))
    path = partition.segments[0].path
    with files.open(path) as source:
        assert source.read(0, 100) == (BROKER / path).read_bytes()[:100]
        assert source.read(source.size, 100) == source.read(source.size + 5, 100) == b""
    assert len(clock.pauses) == 2


def test_a_file_that_another_one_replaced_meanwhile_is_not_read_on(clock, tmp_path):
    (tmp_path / "x").write_bytes(bytes(100))
    store = FlakyStore(tmp_path)
    source = remote.RemoteFiles(store, "s3://").open("x")
    store.fault = Outage(lambda: OSError(AWAY), names="read")
    (tmp_path / "x").write_bytes(bytes(99))
    with pytest.raises(StoreError, match="its size changed from 100 to 99 bytes while kdump read it"):
        source.read(0, 10)
    (tmp_path / "x").unlink()
    store.fault = Outage(lambda: OSError(AWAY), names="read")
    with pytest.raises(StoreError, match="s3://x: No such file or directory"):
        source.read(0, 10)


@pytest.fixture
def kdump(clock, monkeypatch, capfd, tmp_path):
    """Run a command on ``s3://bucket/...``, which is ``tmp_path``, during an outage."""

    def do(fault, *words):
        class FileSystem:
            @staticmethod
            def from_uri(uri):
                return FlakyStore(tmp_path, fault), uri.partition("bucket/")[2]

        monkeypatch.setattr("pyarrow.fs.FileSystem", FileSystem)
        monkeypatch.setattr(sys, "argv", ["kdump", *map(str, words)])
        status, (out, said) = main(), capfd.readouterr()
        assert "Traceback" not in said
        return status, out, said

    folder = tmp_path / "broker" / "t-0"
    folder.mkdir(parents=True)
    for first in range(0, 40, 10):
        batches = [forge.batch([forge.record(b"k", b"v")], base_offset=first + at) for at in range(10)]
        (folder / f"{first:020}.log").write_bytes(b"".join(batches))
    store = Store(tmp_path / "tiered", compress=True)
    for number, (first, end) in enumerate(((0, 20), (20, 40))):
        store.write(of(first, end, number))
    local(tmp_path / "logs", 40, end=45)
    monkeypatch.chdir(tmp_path)
    return do


TIERED = ["logs", "--remote", "s3://bucket/tiered", "--jobs", "1"]
COMMANDS = {
    "check": ["check", "s3://bucket/broker", "-o", "jsonl"],
    "stats": ["stats", "s3://bucket/broker", "-o", "jsonl", "--jobs", "1"],
    "offsets": ["offsets", "s3://bucket/broker", "-o", "jsonl", "--jobs", "1"],
    "check tiered": ["check", *TIERED, "-o", "jsonl"],
    "stats tiered": ["stats", *TIERED, "-o", "jsonl"],
    "dump": ["dump", *TIERED, "-o", "jsonl"],
    "count": ["dump", *TIERED, "--count"],
    "grep": ["dump", *TIERED, "--grep", "v"],
    "tail": ["dump", *TIERED, "--tail", "35"],
    "committed": ["dump", *TIERED, "-o", "jsonl", "--isolation", "read_committed"],
    "get": ["get", "t-0@23", "--in", *TIERED[:3]],
    "explain": ["explain", "t-0@23", "--in", *TIERED[:3]],
    "salvage": ["salvage", *TIERED, "--out"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_the_whole_answer_or_says_that_it_could_not_read(kdump, command, tmp_path):
    """An outage begins at each operation in turn: it is permanent, or ends at the fourth try."""
    words = COMMANDS[command]
    numbers = iter(range(1000))

    def run(fault):
        out = [tmp_path / "out" / str(next(numbers))] if command == "salvage" else []
        status, shown, said = kdump(fault, *words, *out)
        files = {path.relative_to(out[0]): path.read_bytes() for path in out[0].rglob("*.log")} if out else {}
        assert not out or list(out[0].parent.glob(".*")) == []
        return status, shown, files, said

    (tmp_path / "out").mkdir()
    sound = run(counted := Outage(lambda: OSError(AWAY), count=0))
    assert sound[0] == 0
    assert counted.met > 5
    for first in range(counted.met):
        assert run(Outage(lambda: OSError(AWAY), first=first, count=3))[:3] == sound[:3]
        for text in (AWAY, DENIED):
            status, shown, files, said = run(Outage(lambda text=text: OSError(text), first=first, count=None))
            assert status == 1, (first, text)
            assert "could not be read: " in said
            assert "damage" not in said
            assert "missing" not in said
            assert not files
            if command in {"dump", "committed"}:
                assert set(shown.splitlines()) < set(sound[1].splitlines())


def test_denials_before_the_first_answer_are_not_retried(kdump, clock):
    status, _, said = kdump(Outage(lambda: OSError(DENIED), count=None), *COMMANDS["check"])
    assert (status, clock.pauses) == (1, [])
    assert "ACCESS_DENIED" in said
    for first in (1, 0):  # a store that has answered a command may deny the first request of the next trigger
        clock.pauses.clear()
        assert kdump(Outage(lambda: OSError(DENIED), first=first, count=2), *COMMANDS["check"])[0] == 0
        assert clock.pauses == [0.5, 1]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_gone_is_no_damage(kdump, command, tmp_path):
    (tmp_path / "out").mkdir()
    out = [tmp_path / "out" / "a"] if command == "salvage" else []
    gone = Outage(lambda: FileNotFoundError("gone"), names="open read", count=None, part=f"{20:020}")
    status, _, said = kdump(gone, *COMMANDS[command], *out)
    assert gone.failed
    assert status == 1
    assert re.search(rf"error: s3://\S+/{20:020}\S*: No such file or directory\n", said)
    assert "damage" not in said
    assert "missing" not in said
    assert list((tmp_path / "out").rglob("*")) == []


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///var/orders-?", "/var/orders-?"),
        ("file:/var/a#b", "/var/a#b"),
        ("file://localhost/var/a%20b", "/var/a b"),
    ],
)
def test_a_uri_of_a_file_is_a_path_or_glob(uri, path):
    assert remote.place(uri) == (LOCAL, path)
