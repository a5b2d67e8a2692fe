"""``kdump PATH`` and ``kdump ls``: what the path contains, and which command to run next."""

import itertools
import json
import re
import shlex
import shutil
import tarfile

import pytest

from kdump.commands import overview
from testing import GOLDEN, forge, terminals
from testing.processes import kdump
from tests.helpers import log_dirs

BROKER = GOLDEN / "brokers" / "4.2.2"


def batch(first, timestamp):
    record = forge.record(b"k", b"v", offset=0, timestamp=0)
    return forge.batch([record], base_offset=first, base_timestamp=timestamp, max_timestamp=timestamp)


@pytest.fixture
def broker(tmp_path):
    tmp_path /= "kafka"
    log_dirs.write(tmp_path, "orders-0", {0: batch(0, 1000) + batch(1, 2000), 2: batch(2, 3000)})
    log_dirs.write(tmp_path, "empty-0", {7: b""})
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=nub61tcETP6KClWv92MVHg\nnode.id=3\n")
    return tmp_path


def listed(*words):
    return [json.loads(line) for line in kdump("ls", *words, "-o", "jsonl", check=True).stdout.splitlines()]


def next_commands(text):
    return re.findall(r"^  (kdump \S.*?)(?=  |$)", text.partition("Next:")[2], re.MULTILINE)


def test_a_log_dir_is_summed_up(broker):
    done = kdump(broker)
    text = done.stdout.decode()
    assert f"{broker}: broker 3, cluster nub61tcETP6KClWv92MVHg\n  2 partitions of 2 topics, 3 segments, " in text
    assert "records from 1970-01-01T00:00:01Z to 1970-01-01T00:00:03Z\n" in text
    assert done.returncode == kdump("check", broker, "--headers-only").returncode


def test_the_verdict_is_that_of_the_check(broker):
    log = broker / "orders-0" / f"{0:020}.log"
    log.write_bytes(b"garbage" + log.read_bytes())
    done = kdump(broker)
    assert done.returncode == 3
    shown = done.stdout.decode()
    conclusion = kdump("check", "--headers-only", broker).stdout.decode().partition("of log: ")[2].splitlines()
    assert any(line.startswith("Damaged: 1 partition: ") for line in conclusion)
    assert [line for line in conclusion if "--notes" not in line and line not in shown] == []
    assert f"\nDAMAGED: {log}: byte 0: " in shown


def test_the_command_after_the_repairs_is_a_check(broker):
    (broker / ".kafka_cleanshutdown").touch()
    log = broker / "orders-0" / f"{2:020}.log"
    log.write_bytes(log.read_bytes()[:-1])
    shown = kdump(broker).stdout.decode()
    assert f"\nAfter the commands, run `kdump check {broker}`." in shown


def test_findings_that_a_verdict_has_are_not_repeated(broker):
    (broker / "lost+found").mkdir()
    shown = kdump(broker).stdout.decode()
    assert shown.count("a broker does not start if a log dir has a folder of this name") == 1
    assert f"\nDO NOT START broker 3: {broker}/lost+found: " in shown


def test_a_broker_with_tiered_storage_names_its_guide():
    commands = next_commands(kdump(GOLDEN / "tiered/logs").stdout.decode())
    assert "kdump help tiered-storage" in commands


def test_many_findings_are_counted(broker):
    for number in range(5):
        log_dirs.write(broker, f"torn-{number}", {0: batch(0, 1000)[:-1]})
    shown = kdump(broker).stdout.decode()
    assert shown.count("\nDAMAGED: ") == 2  # the verdict has the third
    assert re.search(r"\nand \d+ other findings: kdump check prints them\n", shown)


def test_a_broken_epoch_checkpoint_has_a_command(broker, tmp_path):
    (broker / "orders-0" / "leader-epoch-checkpoint").write_text("0\n0\n")
    shown = kdump(broker).stdout.decode()
    command = re.search(r"The batches have the right epochs: (kdump .*) writes the partition", shown)[1]
    done = kdump(*shlex.split(command)[1:-1], tmp_path / "salvaged")
    assert done.returncode == 0
    assert (tmp_path / "salvaged/logs/orders-0/leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"


def test_each_command_that_it_names_runs(broker, tmp_path):
    lines = next_commands(kdump(broker).stdout.decode())
    assert {line.split()[1] for line in lines} >= {"check", "ls", "report", "dump", "explain", "du", "help"}
    for line in lines:
        done = kdump(*shlex.split(line.replace("report.html", str(tmp_path / "report.html")))[1:])
        assert done.returncode in (0, 3, 4), line
        assert done.stdout or "--out" in line


def test_the_printed_explain_reads_all_paths_also_with_a_space(broker, tmp_path):
    (tmp_path / "a b").mkdir()
    line = next(each for each in next_commands(kdump(tmp_path / "a b", broker).stdout.decode()) if " explain " in each)
    done = kdump(*shlex.split(line)[1:])
    assert (done.returncode, b"consumers get the record" in done.stdout) == (0, True), line


def test_replicas_are_to_be_compared(broker, tmp_path):
    shutil.copytree(broker, tmp_path / "other")
    lines = next_commands(kdump(broker, tmp_path / "other").stdout.decode())
    assert f"kdump diff {broker} {tmp_path / 'other'}" in lines
    assert f"kdump rebuild-cluster {broker} {tmp_path / 'other'} --plan" in lines
    assert not [line for line in next_commands(kdump(broker).stdout.decode()) if line.split()[1] == "diff"]
    within = next_commands(kdump(tmp_path).stdout.decode())
    orders = itertools.permutations(map(str, (broker, tmp_path / "other")))
    assert {f"kdump diff {' '.join(order)}" for order in orders} & set(within)


def test_the_log_dirs_of_one_broker_are_one_side(broker, tmp_path):
    other = shutil.copytree(broker, tmp_path / "other")
    (other / "meta.properties").write_text("version=1\ncluster.id=nub61tcETP6KClWv92MVHg\nnode.id=4\n")
    second = shutil.copytree(broker, tmp_path / "second")
    shutil.rmtree(second / "orders-0")
    shutil.rmtree(broker / "empty-0")
    lines = next_commands(kdump(broker, second, other).stdout.decode())
    assert f"kdump diff {broker},{second} {other}" in lines


def test_what_is_much_is_not_checked(broker, monkeypatch, capsys):
    monkeypatch.setattr(overview, "CHECKED", 10)
    assert overview.overview((str(broker),)) == 0
    assert "Not checked: " in capsys.readouterr().out


def test_a_segment_shows_its_first_batches(broker):
    done = kdump(broker / "orders-0" / f"{0:020}.log")
    text = done.stdout.decode()
    assert done.returncode == 0
    assert "a segment of orders-0" in text
    assert "baseOffset" in text
    assert [line.split()[1] for line in next_commands(text)] == ["dump", "check", "ls", "--files"]


def test_an_archive_its_folders_and_its_segments(broker, tmp_path):
    archive = tmp_path / "a:b.tar"
    with tarfile.open(archive, "w") as packed:
        packed.add(broker, "d1")
    for inside, expected in (
        ("", "dump"),
        (":d1", "dump"),
        (":d1/orders-0", "dump"),
        (f":d1/orders-0/{2:020}.log", "ls"),
    ):
        done = kdump(f"{archive}{inside}")
        text = done.stdout.decode()
        commands = next_commands(text)
        assert done.returncode in (0, 3), done.stderr
        assert expected in [line.split()[1] for line in commands]
        assert ("a segment of orders-0" in text) == inside.endswith(".log")
        for line in commands:
            words = shlex.split(line)
            if "--out" not in words and words[1] != "help":
                assert kdump(*words[1:]).returncode in (0, 3, 4, 5), line


def test_nothing_there(tmp_path):
    done = kdump(tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b": no segment is in this folder or below it\n" in done.stderr


def test_the_log_dirs_of_a_broker_may_be_one_word_as_in_its_properties(broker, tmp_path):
    shutil.copytree(broker, tmp_path / "2")
    whole = kdump(broker, tmp_path / "2")
    assert kdump(f"{broker},{tmp_path / '2'}").stdout == whole.stdout
    assert whole.stdout


def test_options_need_a_command(broker):
    done = kdump(broker, "-o", "jsonl")
    assert done.returncode == 2
    assert f"hint: kdump check {broker} -o jsonl\n" in done.stderr.decode()


def test_a_command_after_its_path_is_suggested_before_it(broker):
    done = kdump(broker, "check", "-q")
    assert done.returncode == 2
    assert f"hint: kdump check {broker} -q\n" in done.stderr.decode()


def test_a_path_that_is_not_there_does_not_hide_another(broker, tmp_path):
    done = kdump(broker, tmp_path / "gone")
    assert done.returncode == 1
    assert f"error: {tmp_path / 'gone'}: No such file or directory\n" in done.stderr.decode()
    assert f"{broker}: broker 3, " in done.stdout.decode()


def test_partitions_are_listed(broker):
    lines = listed(broker)
    assert [(line["topic"], line["segments"], line["earliest"], line["latest"]) for line in lines] == [
        ("empty", 1, 7, 7),
        ("orders", 2, 0, 3),
    ]


def test_segments_of_a_folder_are_listed(broker):
    lines = listed(broker / "orders-0")
    keys = ("kind", "baseOffset", "endOffset", "oldestMs", "newestMs", "state")
    assert [tuple(line[key] for key in keys) for line in lines] == [
        ("segmentSpan", 0, 2, 1000, 2000, "log"),
        ("segmentSpan", 2, 3, 3000, 3000, "log"),
    ]
    assert lines == listed(broker, "--segments", "--topic", "orders")


def test_the_end_of_a_damaged_segment_is_not_known(broker):
    log = broker / "orders-0" / f"{2:020}.log"
    log.write_bytes(log.read_bytes()[:-1] + b"x")
    done = kdump("ls", broker / "orders-0", "-o", "jsonl")
    assert done.returncode == 3
    assert json.loads(done.stdout.splitlines()[1])["endOffset"] is None
    assert b"byte 0: " in done.stderr


def test_a_truncated_batch_at_the_end_of_a_segment_is_damage(broker):
    for base in (0, 2):
        log = broker / "orders-0" / f"{base:020}.log"
        log.write_bytes(log.read_bytes() + batch(base + 2, 4000)[:30])
    (broker / "orders-0" / f"{2:020}.log.cleaned").write_bytes(batch(2, 4000)[:30])
    done = kdump("ls", broker / "orders-0", "-o", "jsonl")
    assert (done.returncode, done.stderr.count(b"the file ends inside a batch")) == (3, 2)
    assert [json.loads(line)["endOffset"] for line in done.stdout.splitlines()] == [2, 3, 2]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_it_fits_a_terminal(width):
    shown = terminals.show([str(BROKER)], width=width).shown.decode()
    lines = [line for line in shown.splitlines() if str(BROKER) not in line]  # a long path is not broken
    long = [line for line in lines if len(line) > width and not line.startswith("  kdump")]
    assert long == []
