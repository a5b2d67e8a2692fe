"""``kdump dump`` as a user runs it."""

import csv
import gzip
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from kdump.command_line import option_values, usage_hints
from kdump.commands.root import root
from kdump.errors import UsageError
from kdump.primitives import timestamps
from kdump.rows import columns
from testing import GOLDEN, ROOT, forge
from testing.processes import FIRST_LINE, kdump, on_a_terminal, patched, python
from tests.helpers import rebuild
from tests.helpers.log_dirs import replica
from tests.helpers.segments import data
from tests.log_reader.test_reader import write
from tests.printers.test_record_rows import KINDS

GOLDEN_TXN = GOLDEN / "brokers" / "4.2.2" / "txn-0"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "t-0"
    write(folder, 0, 3)
    write(folder, 48, 3)
    return folder


@pytest.fixture
def dump(capfdbinary):
    """Run kdump in this process; assert exit status 0 and an empty standard error."""

    def run(*args) -> bytes:
        status = root.main([str(arg) for arg in args], standalone_mode=False)
        out, errors = capfdbinary.readouterr()
        assert (status, errors) == (0, b"")
        return out

    return run


@pytest.fixture
def offsets(dump):
    return lambda *args: [int(line) for line in dump("dump", *args, "-f", "%o\\n").split()]


@pytest.mark.parametrize("name", ["c-zstd-0", "headers-0", "nulls-0", "txn-0", "compact-txn-0"])
def test_text_is_that_of_the_original(name):
    """The text for one segment equals that of the newest DumpLogSegments."""
    path = min((GOLDEN / "brokers" / "4.2.2" / name).glob("*0.log"))
    classic = kdump("--files", path, "--print-data-log").stdout
    assert kdump("dump", path).stdout == classic
    assert kdump("dump", path, "--batches").stdout == kdump("--files", path).stdout


def test_options_choose_records(folder, offsets, dump):
    assert offsets(folder) == list(range(96))
    assert offsets(folder, "--offset", "40..50") == list(range(40, 51))
    assert offsets(folder, "--offset", "93..") == [93, 94, 95]
    assert offsets(folder, "--offset", "..1") == [0, 1]
    assert offsets(folder, "--offset", "7") == [7]
    assert offsets(folder, "--since", "2023-11-14T22:14:20", "--until", "1700000062000") == [60, 61]
    assert offsets(folder, "--key", "k5") == offsets(folder, "--key", "hex:6b35") == [5]
    assert offsets(folder, "--grep", "k1.$", "--header", "n=11") == [11]
    assert offsets(folder, "--limit", "3") == offsets(folder, "--head", "3") == [0, 1, 2]
    assert offsets(folder, "--tail", "3") == [93, 94, 95]
    assert offsets(folder, "--tail", "50", "--limit", "2") == [46, 47]
    assert offsets(folder, "--limit", "0", "-q") == []
    assert dump("dump", folder, "--count") == b"96\n"
    assert dump("dump", folder, "--count", "--grep", "k1") == b"11\n"
    assert dump("dump", folder, "--count", "--batches") == b"6\n"
    assert dump("dump", folder, "--count", "--limit", "20") == b"20\n"


def test_counts_are_of_records_that_are_there(tmp_path):
    records = [forge.record(b"k", b"v", offset=n) for n in range(3)]
    path = tmp_path / "0.log"
    for batch, count, status in [
        (forge.batch(records), b"3", 0),
        (forge.batch(records, attributes=1, payload=gzip.compress(b"".join(records))), b"3", 0),
        (forge.batch([], last_offset_delta=5), b"0", 0),
        (forge.batch(records, count=1_000_000, last_offset_delta=1_000_000), b"3", 3),
        (forge.batch([b"\x7f"], count=7), b"0", 3),
        (forge.batch(records, attributes=1), b"0", 3),
        (forge.wrapper(1, 1, [(0, forge.message(1, None, b"a")), (1, forge.message(1, None, b"b"))]), b"2", 0),
    ]:
        path.write_bytes(batch)
        done = kdump("dump", path, "--count")
        assert (done.stdout, done.returncode) == (count + b"\n", status), done.stderr
        assert kdump("dump", path, "--count", "--limit", "5").stdout == done.stdout


def test_head_and_tail_count_in_each_partition(folder, offsets):
    write(folder.parent / "t-1", 0, 1)
    assert offsets(folder.parent, "--head", "1") == [0, 0]
    assert offsets(folder.parent, "--tail", "1") == [95, 15]
    assert offsets(folder.parent, "--limit", "1") == [0]
    assert offsets(folder.parent, "--partition", "1", "--tail", "1") == [15]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--offset", "9..5"], "ends before it begins"),
        (["--offset", ".."], "is not a range of offsets"),
        (["--since", "yesterday"], "is not a time"),
        (["--since", "2026-01-02", "--until", "2026-01-01"], "is not before"),
        (["--grep", "("], "--grep"),
        (["--grep", "a{99999999999999999999}"], "the repetition number is too large"),
        (["--grep", "(" * 3000], "maximum recursion depth"),
        (["--key", "hex:xyz"], "utf8:hex:xyz"),
        (["--type", "datum"], "did you mean 'data'?"),
        (["--fields", "ofset", "-o", "jsonl"], "did you mean 'offset'?"),
        (["--fields", "offset"], "add -o jsonl, json, csv or table"),
        (["--format", "%q"], "%q"),
        (["--format", "\\q"], "not an escape"),
        (["-f", "%o", "-o", "csv"], "--format"),
        (["-o", "raw", "--batches"], "-o raw cannot be combined with --batches"),
        (["--head", "1", "--tail", "1"], "--head cannot be combined with --tail"),
        (["--begin", "x.log@0", "--tail", "1"], "--begin cannot be combined with --tail or --follow"),
        (["--redact"], "KDUMP_REDACT_KEY"),
        (["--redact-key", "x"], "--redact"),
        (["--partition", "3-1"], "'3-1' is not a partition: write 1-3"),
        (["--topic", ""], "holds an empty topic name"),
        (["--topic", "a,,b"], "holds an empty topic name"),
        (["--partition", "a"], "is not a partition"),
        (["--jobs", "2", "-o", "json"], "--jobs"),
        (["--follow", "--count"], "--follow"),
        (["--follow", "--include-damaged"], "--follow cannot be combined with --include-damaged"),
        (["--follow", "--head", "2"], "--follow never ends: it cannot be combined with --count, --head, "),
        (["--count", "-o", "jsonl"], "--count prints one number"),
        (["--count", "-f", "%o"], "--count prints one number"),
        (["-o", "csv", "--delimiter", ";"], "--delimiter works only with -o raw"),
        (["--ofset", "1"], "'--offset'"),
        (["-o", "jsonlines"], "jsonl"),
    ],
)
def test_wrong_usage_is_reported(folder, args, says):
    done = kdump("dump", folder, *args, env={**os.environ, "KDUMP_REDACT_KEY": ""})
    assert (done.returncode, done.stdout) == (2, b"")
    assert says in done.stderr.decode()


def test_a_command_with_a_typo():
    assert b"Did you mean 'dump'?" in kdump("dmp").stderr


def test_exit_status_and_what_stands_on_stderr(folder):
    assert kdump("dump", folder).stderr == b""
    gone = kdump("dump", folder, folder / "gone.log", "--count")
    assert (gone.returncode, gone.stdout) == (1, b"96\n")
    assert b"gone.log: No such file" in gone.stderr
    path = folder / "00000000000000000048.log"
    data = path.read_bytes()
    path.write_bytes(data + b"cut off")
    cut = kdump("dump", folder, "--count")
    assert (cut.returncode, cut.stdout) == (3, b"96\n")
    assert f"{path}: byte {len(data)}: 7 bytes".encode() in cut.stderr
    assert kdump("dump", folder, folder / "gone.log", "--count").returncode == 1
    write(folder, 0, 300, value=bytes(1000), interval=4096)
    index = folder / "00000000000000000000.index"
    index.write_bytes(index.read_bytes() + b"x")
    wrong = kdump("dump", folder / "00000000000000000000.log", "--offset", "100..101", "-f", "%o ")
    assert (wrong.returncode, wrong.stdout) == (4, b"100 101 ")
    assert b".index" in wrong.stderr


def test_damage_stands_in_the_output_of_formats_that_have_a_place_for_it(folder):
    path = folder / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    lines = rebuild.lines(kdump("dump", folder, "-o", "jsonl").stdout)
    assert [line["kind"] for line in lines] == ["damage"] + ["record"] * 80
    assert b"damage: position: 0 size:" in kdump("dump", folder).stdout
    assert b"bytes cannot be read: " in kdump("dump", folder, "-o", "table").stdout
    assert kdump("dump", folder, "-o", "csv").stdout.count(b"\n") == 82
    stopped = rebuild.lines(kdump("dump", folder, "-o", "jsonl", "--on-error", "stop").stdout)
    assert [line["kind"] for line in stopped] == ["damage"] + ["record"] * 48


def test_nothing_found_is_said(folder):
    done = kdump("dump", folder, "--key", "nobody")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"nothing matches the options" in done.stderr
    assert kdump("dump", folder, "--key", "nobody", "-q").stderr == b""
    (folder / "empty").touch()
    assert kdump("dump", folder / "empty").stderr == b"note: there is no record\n"


def test_csv_reads_back(tmp_path, dump):
    path = tmp_path / "0.log"
    texts = [None, b"", b"plain", b'q"uote', b"com,ma", b"new\nline", b" space", "√".encode(), b"\xff"]
    path.write_bytes(forge.batch([forge.record(text, text, offset=n) for n, text in enumerate(texts)]))
    out = dump("dump", path, "-o", "csv").decode()
    table = list(csv.DictReader(io.StringIO(out)))
    assert list(table[0]) == [column.name for column in columns.RECORD]
    assert [row["key"] for row in table[2:8]] == [text.decode() for text in texts[2:8]]
    assert (table[8]["key"], table[8]["keyEncoding"]) == ("/w==", "base64")
    bare = dump("dump", path, "-o", "csv", "--fields", "offset,key,value").split(b"\n")
    assert bare[:3] == [b"offset,key,value", b"0,,", b'1,"",""']


def test_raw_values_and_format_strings(tmp_path, dump):
    folder = tmp_path / "topic-3"
    folder.mkdir()
    headers = [(b"a", b"1"), (b"b", None)]
    data = forge.batch([forge.record(b"k", b"v\xff", headers=headers, timestamp=5), forge.record(None, None, offset=1)])
    (folder / "0.log").write_bytes(data)
    assert dump("dump", folder, "-o", "raw") == b"v\xff\n\n"
    assert dump("dump", folder, "-o", "raw", "--delimiter", "\\0\\x2c") == b"v\xff\0,\0,"
    assert dump("dump", folder, "-f", "%t %p %o %T %k %s %h %K %S %%\\t\\n") == (
        b"topic 3 0 5 k v\xff a=1,b=NULL 1 2 %\t\ntopic 3 1 0    -1 -1 %\t\n"
    )
    assert dump("dump", folder, "-f", "%R") == b"\0\0\0\2\xff\xff\xff\xff"


def test_a_table(folder, dump):
    out = dump("dump", folder, "-o", "table").decode()
    assert out.split()[:6] == ["topic", "partition", "offset", "timestamp", "key", "value"]
    assert re.search(r"t\s+0\s+95\s+2023-11-14T22:14:55.000Z\s+k95\s+v", out)
    batches = dump("dump", folder, "-o", "table", "--batches").decode()
    assert batches.split()[2] == "baseOffset"


def test_columns(folder, dump):
    (line,) = rebuild.lines(dump("dump", folder, "-o", "jsonl", "--offset", "5", "--fields", "value,offset"))
    assert list(line) == ["value", "offset"]
    (line,) = rebuild.lines(dump("dump", folder, "-o", "jsonl", "--offset", "5", "--keys-only"))
    assert line["key"] == "k5"
    assert not {"value", "headers"} & set(line)
    (line,) = rebuild.lines(dump("dump", folder, "-o", "jsonl", "--offset", "5", "--no-payload"))
    assert not {"key", "value", "headers"} & set(line)
    assert b"payload" not in dump("dump", folder, "--keys-only")
    assert b"key: " not in dump("dump", folder, "--no-payload")


@pytest.mark.parametrize("option", ["--keys-only", "--no-payload"])
@pytest.mark.parametrize("topic", ["__cluster_metadata", "txn"])
def test_control_records_without_their_values_are_not_called_invalid(dump, option, topic):
    lines = dump("dump", GOLDEN / "brokers" / "4.2.2" / f"{topic}-0", "--type", "control", option).splitlines()
    records = [line for line in lines if line.startswith(b"|")]
    assert records
    assert all(line.endswith(b" headerKeys: []") for line in records)


def test_kafkas_own_topics_in_words(dump):
    folder = GOLDEN / "brokers" / "4.2.2" / "__consumer_offsets-0"
    lines = rebuild.lines(dump("dump", folder, "-o", "jsonl", "--decode", "auto"))
    commit = next(line["decoded"] for line in lines if line["decoded"]["type"] == 1)
    assert commit["key"]["data"] == {"group": "classic-1", "topic": "multi", "partition": 0}
    assert commit["value"]["data"]["commitTimestamp"] == 1795254614925
    assert "decoded" not in dump("dump", folder, "-o", "jsonl").decode()
    table = dump("dump", folder, "-o", "table", "--decode", "auto").decode()
    assert '{"group":' in table
    assert "decoded key (OffsetCommitKey version" in dump("dump", folder, "--decode", "auto").decode()
    for line in lines:
        KINDS["record"].validate(line)
    (fields,) = {
        *map(tuple, rebuild.lines(dump("dump", folder, "-o", "jsonl", "--decode", "auto", "--fields", "decoded")))
    }
    assert fields == ("decoded",)


def test_redacted_payloads(folder, tmp_path, dump):
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef\n")
    env = {**os.environ, "KDUMP_REDACT_KEY": "0123456789abcdef"}
    done = kdump("dump", folder, "-o", "jsonl", "--offset", "5..6", "--redact", env=env)
    first, second = rebuild.lines(done.stdout)
    for text in (first["key"], first["value"], first["headers"][0]["value"]):
        assert re.fullmatch("hmac-sha256:[0-9a-f]{64}", text)
    assert first["key"] != second["key"]
    assert first["value"] == second["value"]
    assert first["headers"][0]["key"] == "n"
    again = dump("dump", folder, "-o", "jsonl", "--offset", "5..6", "--redact", "--redact-key", secret)
    assert again == done.stdout
    for output in ("text", "csv", "raw", "json", "table"):
        out = kdump("dump", folder, "-o", output, "--offset", "5", "--redact", env=env).stdout
        assert b"k5" not in out
    assert kdump("dump", folder, "--redact", "--redact-key", tmp_path / "gone").returncode == 1


@pytest.mark.parametrize("option", ["--redact", "--no-payload"])
def test_damage_reveals_nothing_of_payloads(tmp_path, option):
    path = tmp_path / "0.log"
    path.write_bytes(forge.batch([forge.record(b"k", b"v")], attributes=3, payload=b"SECRET SECRET"))
    env = {**os.environ, "KDUMP_REDACT_KEY": "0123456789abcdef"}
    (line,) = rebuild.lines(kdump("dump", path, "-o", "jsonl").stdout)
    assert b"SECR".hex() in line["reason"]
    done = kdump("dump", path, "-o", "jsonl", option, env=env)
    assert b"SECR".hex().encode() not in done.stdout + done.stderr
    (line,) = rebuild.lines(done.stdout)
    assert line["reason"] == f"its {line['damage']} is wrong"


def test_encodings(folder, dump):
    def key(encoding):
        return rebuild.lines(dump("dump", folder, "-o", "jsonl", "--offset", "5", "--encoding", encoding))[0]["key"]

    assert [key(encoding) for encoding in ("auto", "utf8", "hex", "base64", "json")] == [
        "k5",
        "k5",
        "6b35",
        "azU=",
        "k5",
    ]
    assert b"key: 6b35 payload: 76" in dump("dump", folder, "--offset", "5", "--encoding", "hex")


@pytest.mark.parametrize("output", ["-otext", "-ojsonl", "-ocsv", "-oraw", "--count", "-f%o %k\\n"])
def test_several_processes_print_the_same_in_order(tmp_path, output):
    for number in range(3):
        for base in range(0, 64, 16):
            write(tmp_path / f"t-{number}", base, 1)
    (tmp_path / "t-1" / "00000000000000000016.log").write_bytes(b"damaged damaged damaged damaged")
    one = kdump("dump", tmp_path, output)
    many = patched("import kdump.parallel.costs as p; p.CHUNK = 2000", "dump", tmp_path, output, "--jobs", "3")
    assert (many.returncode, many.stdout) == (one.returncode, one.stdout) == (3, one.stdout)
    assert many.stderr == one.stderr


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_several_processes_agree_on_transactions(tmp_path, isolation):
    for number in range(2):
        shutil.copytree(GOLDEN_TXN, tmp_path / f"txn-{number}")
    line = ("dump", tmp_path, "-o", "jsonl", "--isolation", isolation)
    one = kdump(*line, check=True)
    for shared in (0, 100_000_000):
        patch = f"import kdump.parallel.costs as p; p.CHUNK = p.PACKED_CHUNK = 500; p.TRANSACTIONS = {shared}"
        many = patched(patch, *line, "--jobs", "3", check=True)
        assert (many.stdout, many.stderr) == (one.stdout, one.stderr)


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_a_closed_pipe_is_quiet(tmp_path, jobs):
    for base in range(0, 16000, 1600):
        write(tmp_path / "t-0", base, 100)
    done = kdump("dump", tmp_path, "-o", "jsonl", "--jobs", jobs, shell=FIRST_LINE)
    assert done.stdout.split()[-1] == b"141"
    assert done.stderr == b""


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_ctrl_c_ends_at_once(tmp_path, jobs):
    write(tmp_path / "t-0", 0, 20_000)
    write(tmp_path / "t-0", 320_000, 20_000)
    command = [sys.executable, "-m", "kdump", "dump", str(tmp_path), "-o", "jsonl", "--jobs", jobs]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    process.stdout.read(1)  # it has begun, and does not end before the rest is read
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in errors


def test_a_worker_that_dies_is_an_error(folder):
    patch = "import kdump.log_reader.reader as s, os; s.PartitionReader.read = lambda *a: os.kill(os.getpid(), 9)"
    done = patched(patch, "dump", folder, "--jobs", "3")
    assert done.returncode == 1
    assert b"a worker process was killed" in done.stderr


def test_the_error_that_ends_a_worker_is_reported_in_its_own_words(folder):
    patch = (
        "import kdump.log_reader.reader as s\nfrom kdump.errors import KdumpError\n"
        "def read(*a): raise KdumpError('the disk\\x1b sings')\n"
        "s.PartitionReader.read = read"
    )
    done = patched(patch, "dump", folder, "--jobs", "3")
    assert done.returncode == 1
    assert b"error: the disk" in done.stderr
    assert b"\x1b" not in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("when", ["os.fork = forked", "p._receive = kill"])
def test_ctrl_c_leaves_no_worker(folder, when):
    """If it is interrupted while a process starts or works, a dump ends together with its processes."""
    patch = (
        "import kdump.parallel.turns as p, kdump.parallel.costs as s, os, signal\n"
        "s.CHUNK = s.PACKED_CHUNK = 500\n"
        "def kill(*a): os.kill(os.getpid(), signal.SIGINT)\n"
        "fork = os.fork\n"
        "def forked():\n    process = fork()\n    if process: kill()\n    return process\n"
        f"{when}"
    )
    done = patched(patch, "dump", folder, "--jobs", "3", timeout=30)
    assert (done.returncode, done.stdout) == (130, b"")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_a_control_record_that_says_nothing_ends_nothing(tmp_path, jobs):
    control = [
        forge.record(b"\xa1\x19\0\1", b"v"),  # a key of a negative version
        forge.record(b"\0\0\0\1", b"\xff\xff\0\0\0\1", offset=1),  # a marker of one
        forge.record(b"\0\0\0\1", b"\0\0\0\0\0\7", offset=2),
    ]
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.parent.mkdir()
    sound = [forge.batch([forge.record(b"k", b"v")], base_offset=offset) for offset in (0, 4)]
    path.write_bytes(sound[0] + forge.batch(control, base_offset=1, attributes=0x30) + sound[1])
    done = kdump("dump", path.parent, "-o", "jsonl", "--jobs", jobs)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["offset"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row.get("controlType") for row in rows] == [None, None, "COMMIT", "COMMIT", None]
    assert [row.get("coordinatorEpoch") for row in rows] == [None, None, None, 7, None]


def test_a_log_dir_of_ten_thousand_segments(tmp_path):
    """2,000 partitions, 10,000 segments, 128 files, 150 MiB."""
    data = {base: forge.batch([forge.record(b"k", b"v")], base_offset=base) for base in range(5)}
    for number in range(2000):
        folder = tmp_path / f"topic-{number}"
        folder.mkdir()
        for base, batch in data.items():
            (folder / f"{base:020}.log").write_bytes(batch)
    checkpoint = "".join(f"topic {number} 4\n" for number in range(2000))
    (tmp_path / "replication-offset-checkpoint").write_text(f"0\n2000\n{checkpoint}")

    script = (
        "import re, resource, sys\nfrom kdump.cli import main\nstatus = main()\n"
        "own = int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"  # ru_maxrss has pytest's too
        "print(max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss), file=sys.stderr)\nsys.exit(status)"
    )
    outs = []
    for jobs in ("1", "2"):
        done = python("-c", script, "dump", tmp_path, "-o", "jsonl", "--jobs", jobs, shell='ulimit -n 128; exec "$@"')
        assert done.returncode == 0, done.stderr
        assert int(done.stderr.split()[-1]) < 150 << 10, "KiB at most"
        outs.append(done.stdout)
    assert outs[0] == outs[1]
    lines = outs[0].decode().splitlines()
    assert len(lines) == 10_000
    last = json.loads(lines[-1])
    assert (last["partition"], last["offset"], last["aboveHighWatermark"]) == (1999, 4, True)


class Followed:
    """A running ``kdump dump --follow``."""

    def __init__(self, *args):
        command = [sys.executable, "-m", "kdump", "dump", *map(str, args), "--follow", "-f", "%o\\n"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def lines(self, count):
        return [int(self.process.stdout.readline()) for _ in range(count)]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        rest, errors = self.process.communicate(timeout=60)
        assert rest == b""
        return self.process.returncode, errors.decode()


def test_following_a_log_that_grows_and_rolls(folder):
    followed = Followed(folder, "--tail", "2")
    assert followed.lines(2) == [94, 95]
    path = folder / "00000000000000000048.log"
    new = forge.batch([forge.record(b"k", b"v")], base_offset=96)
    with path.open("ab", buffering=0) as file:
        file.write(new[:50])
        time.sleep(0.5)
        file.write(new[50:])
    assert followed.lines(1) == [96]
    (folder / "00000000000000000097.log").write_bytes(forge.batch([forge.record(b"k", b"v")], base_offset=97))
    assert followed.lines(1) == [97]
    path.unlink()
    with (folder / "00000000000000000097.log").open("ab") as file:
        file.write(forge.batch([forge.record(b"k", b"v")], base_offset=98))
    assert followed.lines(1) == [98]
    assert followed.stop() == (130, "\n")


def test_following_a_log_dir_meets_partitions_that_appear(folder):
    followed = Followed(folder.parent, "--tail", "1")
    assert followed.lines(1) == [95]
    write(folder.parent / "new-0", 0, 1)
    assert followed.lines(16) == list(range(16))
    assert followed.stop() == (130, "\n")


def test_following_files_of_one_folder_reads_each_of_them(tmp_path):
    files = [tmp_path / name for name in ("0.bin.log", "copy.log", "0.bin.log.old.log")]
    for base, path in zip((0, 0, 7), files, strict=True):
        path.write_bytes(forge.batch([forge.record(None, b"v")], base_offset=base))
    followed = Followed(*files)
    assert sorted(followed.lines(3)) == [0, 0, 7]
    assert followed.stop() == (130, "\n")


def test_a_limit_of_no_records_ends_at_once(folder):
    words = [folder.parent, "--limit", "0", "--topic", "absent", "-o", "jsonl"]
    followed = kdump("dump", *words, "--follow", timeout=20)
    done = kdump("dump", *words)
    assert (followed.returncode, followed.stdout, followed.stderr) == (done.returncode, done.stdout, done.stderr)


def test_following_says_each_damaged_range(tmp_path):
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"xyz".join(forge.batch([forge.record(b"k", b"v")], base_offset=n) for n in range(13)))
    followed = Followed(path)
    assert followed.lines(13) == list(range(13))
    status, errors = followed.stop()
    assert (status, errors.count("3 bytes cannot be read")) == (130, 12)


def test_following_a_preallocated_file_and_damage(folder):
    path = folder / "00000000000000000048.log"
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(bytes(5000))
    followed = Followed(folder, "--offset", "95..")
    assert followed.lines(1) == [95]
    with path.open("r+b") as file:
        file.seek(size)
        file.write(forge.batch([forge.record(b"k", b"v")], base_offset=96))
    assert followed.lines(1) == [96]
    with path.open("r+b") as file:
        file.seek(size + len(forge.batch([forge.record(b"k", b"v")], base_offset=96)))
        file.write(forge.batch([forge.record(b"k", b"v")], base_offset=97, crc=1))
        file.write(forge.batch([forge.record(b"k", b"v")], base_offset=98))
    assert followed.lines(1) == [98]
    status, errors = followed.stop()
    assert status == 130
    assert "cannot be read" in errors


def test_control_characters_do_not_reach_a_terminal(tmp_path):
    path = tmp_path / "\x1b[2J.log"
    awkward = "√\x9b1m\x07 tab\t".encode()
    path.write_bytes(forge.batch([forge.record(b"\x1b[31mred", awkward, headers=[(b"\x1b[0m", b"\x07")])]))
    for args in (["-otext"], ["-oraw"], ["-f%k %s %h\\n"], ["-otable"], ["-ojsonl"], ["-ocsv"]):
        env = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}
        done, shown = on_a_terminal(kdump, "dump", path, *args, streams=["stdout"], env=env)
        assert done.returncode == 0
        assert "√".encode() in shown, args
        assert not re.search(rb"\x1b|\x07|\xc2\x9b", shown), args


def test_progress_is_for_terminals_only(folder, dump):
    patch = "import kdump.command_line.session as s; s.EVERY = 0"
    done, shown = on_a_terminal(patched, patch, "dump", folder, streams=["stderr"])
    assert b"100%" in shown
    assert b"left" in shown
    assert shown.endswith(b"\r")
    assert done.stdout == dump("dump", folder)


def test_inputs_stay_as_they_are(folder):
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    folder.chmod(0o500)
    assert kdump("dump", folder, "-o", "jsonl", "--jobs", "3").returncode == 0
    folder.chmod(0o700)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1700000000000", 1700000000000),
        ("0", 0),
        ("2023-11-14T22:13:20Z", 1700000000000),
        ("2023-11-14T22:13:20", 1700000000000),
        ("2023-11-14 23:13:20+01:00", 1700000000000),
        ("2023-11-14T22:13:20.0001", 1700000000001),
        ("2023-11-14", 1699920000000),
        ("1969-12-31T23:59:59.9999Z", 0),
        ("-2h", 1_000_000 - 7_200_000),
        ("-1h30m", 1_000_000 - 5_400_000),
        ("-5ms", 1_000_000 - 5),
        ("-1w", 1_000_000 - 604_800_000),
    ],
)
def test_times(text, value):
    assert timestamps.moment(text, now=lambda: 1000.0) == value


@pytest.mark.parametrize("text", ["1727000776", "1", "99999999999"])
def test_seconds_are_not_taken_for_milliseconds(text):
    with pytest.raises(UsageError, match=rf"^{text} means 19.* in ms since 1970, or .* in seconds. Write {text}000 "):
        timestamps.moment(text)
    assert timestamps.moment(text, least_ms=0) == int(text)


@pytest.mark.parametrize(
    ("zone", "text", "value"),
    [
        ("UTC", "2023-11-14T22:13:20", 1700000000000),
        ("+02:00", "2023-11-15T00:13:20", 1700000000000),
        ("Europe/Berlin", "2023-11-14T23:13:20", 1700000000000),
        ("Europe/Berlin", "2023-11-14T22:13:20Z", 1700000000000),
    ],
)
def test_a_time_without_an_offset_lies_in_the_zone_asked_for(zone, text, value):
    assert timestamps.moment(text, tz=option_values.zone(zone)) == value


def test_the_local_zone_has_the_offset_of_each_season():
    code = (
        "from kdump.command_line.option_values import zone\nfrom kdump.primitives.timestamps import iso, moment\n"
        "print(*(iso(moment(f'2026-{month}-01T00:00', tz=zone('local')))[:16] for month in ('01', '07')))"
    )
    env = {**os.environ, "TZ": "Europe/Berlin"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert done.stdout.split() == [b"2025-12-31T23:00", b"2026-06-30T22:00"]


@pytest.mark.parametrize(
    ("zone", "found"), [("Asia/Tokyo", -62135630339000), ("America/New_York", 253402318799000)], ids=["first", "last"]
)
def test_the_local_zone_takes_the_first_and_the_last_year(zone, found):
    text = "0001-01-01" if found < 0 else "9999-12-31T23:59:59"
    code = (
        "from kdump.command_line.option_values import zone\nfrom kdump.primitives.timestamps import moment\n"
        f"print(moment('{text}', tz=zone('local')))"
    )
    env = {**os.environ, "TZ": zone}
    assert int(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout) == found


@pytest.mark.parametrize("name", ["Nowhere/Land", "", "+2", "+25:00", "-24:00", "+01:60", "../etc"])
def test_a_zone_that_is_none(name):
    with pytest.raises(UsageError, match="is not a time zone"):
        option_values.zone(name)


def test_any_of_several_keys_patterns_and_topics(tmp_path):
    for topic in ("a", "b", "c"):
        path = tmp_path / f"{topic}-0" / "00000000000000000000.log"
        path.parent.mkdir()
        path.write_bytes(forge.batch([forge.record(b"k%d" % n, b"v%d" % n, offset=n) for n in range(4)]))

    def offsets(*args):
        done = kdump("dump", tmp_path, "-o", "jsonl", "-q", *args, check=True)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return [(row["topic"], row["offset"]) for row in rows]

    assert offsets("--topic", "a", "--key", "k0", "--key", "k2") == [("a", 0), ("a", 2)]
    assert offsets("--topic", "a", "--grep", "k1", "--grep", "^v3$") == [("a", 1), ("a", 3)]
    assert offsets("--topic", "a,c", "--offset", "0") == [("a", 0), ("c", 0)]


def test_log_dirs_in_one_word_as_a_broker_has_them(tmp_path):
    for number in range(2):
        replica(tmp_path / f"d{number}", {0: data(0)}, name=f"one-{number}")
    both = f"{tmp_path}/d0, {tmp_path}/d1,"
    for command in (["check"], ["dump", "--count"], ["du"], ["stats"], ["report"], ["offsets"], ["verify-index"]):
        done, apart = kdump(*command, both), kdump(*command, tmp_path / "d0", tmp_path / "d1")
        assert done.returncode == apart.returncode == 0, done.stderr
        assert done.stdout.count(b"\n") == apart.stdout.count(b"\n")
    assert kdump("get", "one-1@0", "--in", both).returncode == 0
    assert kdump("explain", "one-1@0", "--in", both).returncode == 0
    assert kdump("salvage", both, "--out", tmp_path / "out").returncode == 0
    assert {folder.name for folder in (tmp_path / "out/logs").iterdir()} == {"one-0", "one-1"}
    done = kdump("check", f"{tmp_path}/d0,{tmp_path}/typo")
    assert done.returncode == 1
    assert f"{tmp_path}/typo: No such file or directory".encode() in done.stderr
    assert kdump("check", f"{tmp_path}/typo,{tmp_path}/other").returncode == 1
    (tmp_path / "d0").rename(tmp_path / "d0,d1")
    assert kdump("dump", "--count", tmp_path / "d0,d1").stdout == b"1\n"
    assert kdump("dump", "--count", f"{tmp_path}/d0,d[1]").stdout == b"1\n"


@pytest.mark.parametrize("name", [*usage_hints.OTHER_NAMES, "grep", "search"])
def test_commands_of_other_tools_lead_to_one_that_runs(name, tmp_path):
    """``topics`` of a cluster with ZooKeeper leads to du, because there is no metadata log."""
    folder = replica(tmp_path / "log dir", {0: data(0)}, name="one-0").parent
    if name in {"rebuild", "restore", "rebuild-quorum"}:  # of a cluster, which has a metadata log
        shutil.copytree(GOLDEN / "brokers" / "4.2.2" / "__cluster_metadata-0", folder / "__cluster_metadata-0")
        shutil.copy(GOLDEN / "brokers" / "4.2.2" / "_logdir" / "meta.properties", folder)
    value = ["v.*"] if name in {"grep", "search"} else []
    said = kdump(name, *value, folder).stderr.decode()
    assert f"No such command '{name}'.\nhint: kdump " in said
    words = shlex.split(said.rpartition("hint: kdump ")[2])
    assert str(folder) in words
    done = kdump(*words, cwd=tmp_path)
    no_metadata = {"configs", "acls", "users", "quorum", "features"}
    lost = {"rebuild", "restore", "rebuild-quorum"}  # the volume lacks the cluster's other partitions
    assert done.returncode == (1 if name in no_metadata else 3 if name in lost else 0), done.stderr
    said = kdump(name).stderr.decode()
    assert kdump(*shlex.split(said.rpartition("hint: kdump ")[2])).returncode == 0


def test_a_folder_in_place_of_a_record_leads_to_a_command_that_runs(tmp_path):
    folder = replica(tmp_path, {0: data(0)}, name="one-0")
    for command in ("get", "explain"):
        said = kdump(command, folder).stderr.decode()
        words = shlex.split(said.rpartition("hint: kdump ")[2])
        assert words == [command, "one-0@0", "--in", str(folder)]
        assert kdump(*words).returncode == 0


def test_numbers():
    assert option_values.numbers(["0,2-4", "9"], "n") == {0, 2, 3, 4, 9}
    assert option_values.numbers(["-1"], "n") == {-1}
    with pytest.raises(UsageError):
        option_values.numbers(["0-99999999"], "n")


def test_payload_words():
    assert option_values.payload("hex:00ff") == b"\0\xff"
    assert option_values.payload("base64:AP8=") == b"\0\xff"
    assert option_values.payload("utf8:hex:00") == b"hex:00"
    assert option_values.payload("a:b") == b"a:b"
    assert option_values.header("k=v=w") == (b"k", b"v=w")
    assert option_values.header("k") == (b"k", None)
    assert option_values.header("k=") == (b"k", b"")


@pytest.mark.parametrize("form", ["jsonl", "csv", "arrow"])
def test_fields_of_decoded_payloads_are_columns(registries, form):
    where = ["dump", registries / "confluent" / "logs", "--topic", "evolve", "--decode", "auto", "-q"]
    lines = [json.loads(line) for line in kdump(*where, "-o", "jsonl", check=True).stdout.splitlines()]
    values = [((line.get("decoded") or {}).get("value") or {}).get("data") or {} for line in lines]
    want = [[value.get("tax"), value.get("owner_at")] for value in values]
    assert any(tax is not None for tax, _ in want)
    out = kdump(*where, "-o", form, "--fields", "value.tax,value.owner_at", check=True).stdout
    if form == "jsonl":
        found = [[line["value.tax"], line["value.owner_at"]] for line in map(json.loads, out.splitlines())]
    else:
        plain = [[None if cell is None else as_cell(cell) for cell in row] for row in want]
        if form == "csv":
            found = list(csv.reader(io.StringIO(out.decode())))[1:]
            plain = [["" if cell is None else cell for cell in row] for row in plain]
        else:
            found = [list(row.values()) for row in pa.ipc.open_stream(out).read_all().to_pylist()]
        want = plain
    assert found == want


def as_cell(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--fields", "offset,decoded"], b"--fields decoded: add --decode auto"),
        (["--fields", "value.tax"], b"--fields value.tax is a field of a decoded payload: add --decode auto"),
        (
            ["--fields", "value.tax", "--decode", "auto", "--keys-only"],
            b"--keys-only and --no-payload omit this column",
        ),
        (["--fields", "valu.tax", "--decode", "auto"], b"'valu.tax' is not a column"),
        (["--fields", "value.\x1b[m", "--decode", "auto"], rb"--fields 'value.\x1b[m': the name has a character"),
        (["--fields", "value.\udcff", "--decode", "auto"], rb"--fields 'value.\udcff': the name has a character"),
    ],
)
def test_a_field_that_cannot_be_shown_is_wrong_usage(registries, words, why):
    done = kdump("dump", registries / "confluent" / "logs", "--topic", "evolve", "-o", "jsonl", *words)
    assert done.returncode == 2
    assert why in done.stderr


def test_names_of_fields_are_json_strings_and_stand_once(registries):
    where = ["dump", registries / "confluent" / "logs", "--topic", "evolve", "--decode", "auto", "--limit", "1", "-q"]
    name = 'value.a"b\\c'
    out = kdump(*where, "-o", "jsonl", "--fields", f"{name},offset,{name}", "--fields", "offset", check=True).stdout
    assert json.loads(out, object_pairs_hook=list) == [(name, None), ("offset", 0)]


@pytest.mark.parametrize("options", [(), ("--batches",), ("--no-payload",), ("--redact", "--redact-key", __file__)])
def test_segments_of_all_kinds_print_as_each_alone(dump, options):
    """One printer prints them all: nothing of a segment changes the lines of the next one."""
    names = ("0.10.2.2", "0.8.2.1", "2.0.1", "4.2.2")
    logs = [
        log for name in names for log in sorted((GOLDEN / "brokers" / name).glob("c-*-0/*.log")) if log.stat().st_size
    ]
    logs += sorted((GOLDEN / "brokers" / "4.2.2" / "txn-0").glob("*.log"))
    assert len(logs) > 8
    alone = b"".join(dump("dump", log, *options) for log in logs)
    assert dump("dump", *logs, "--every-replica", *options) == alone
