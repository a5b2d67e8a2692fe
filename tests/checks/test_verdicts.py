"""The verdict on log dirs of real brokers with one stated change each, compared with what the started broker did.

``golden/verdict.tar.xz`` has one folder per case, ``golden/healthy.tar.xz`` has undamaged folders.
"""

import json
import re
import shlex
import subprocess
import sys

import pytest

from kdump.broker_start.outcome import BrokerStart, StartCause
from kdump.broker_start.repairs import SOLE_NODE, Repairs
from kdump.checks.repair_commands import aside
from kdump.findings import Code
from kdump.findings.verdict import StartVerdict
from kdump.printers.findings_report import CheckSummary, Shown, TerminalReport
from testing.processes import kdump
from tools.prove import printed_commands
from tools.prove.printed_commands import environment

NO_START, LOSES, MISSING, SAFE = "DO NOT START broker 1: ", "yet: a start loses ", " are missing: ", "safe to start "


CLUSTER, OTHER = "6QeQf_naTECEAdchox7m4Q", "lKJVNLGYRmWDLLzswEP4MA"


def check(place, *paths, options=()):
    """Return the exit status, the lines of text, and the lines of JSON."""
    done = kdump("check", *options, *paths, cwd=place)
    lines = [json.loads(line) for line in kdump("check", "--json", *options, *paths, cwd=place).stdout.splitlines()]
    return done.returncode, done.stdout.decode(), lines


START = "kafka-server-start.sh server.properties"
COPY = "[ -e d1.copy ] || { cp -a d1/. d1.copy.part && mv d1.copy.part d1.copy; }"

LEFT = {"torn-clean": {3}, "zeroepoch": {0, 4}}
"""Exit statuses after the commands, if a start still truncates or rebuilds something."""


@pytest.mark.parametrize(
    ("case", "status", "verdict", "named"),
    [
        ("swap0", 3, f"DO NOT START broker 1 {LOSES}20,000 records", "prices-0/00000000000000000000.log.swap"),
        ("swapclean", 0, SAFE, "a start deletes this file"),
        ("startgtend", 3, f"DO NOT START broker 1 {LOSES}10,000 records", "log-start-offset-checkpoint"),
        ("nopm", 3, f"DO NOT START broker 1 {LOSES}10,000 records", "topic_id: 6QeQf_naTECEAdchox7m4Q"),
        (
            "nopm-after",
            3,
            "yet: a start does not serve 10,000 records of orders-1: the commands below restore them\n",
            "-stray",
        ),
        (
            "mlog-gone",
            3,
            "DO NOT START broker 1 yet: a start does not serve 52,096 records",
            "; restore the metadata log first, and run kdump check again\n",
        ),
        (
            "rmlog",
            3,
            "10,000 records" + MISSING,
            "Only a copy can restore them: merge the log with a backup, or start",
        ),
        ("rmdir", 3, "10,000 records" + MISSING, "orders-0 is assigned to broker 1"),
        (
            "lost-disk",
            3,
            "2,000 records" + MISSING,
            "; a start does not serve 5,000 records of metrics-0: the commands below",
        ),
        (
            "zerometa",
            3,
            "DO NOT START the broker: d1/meta.properties",
            "\nOnly for the sole node of a cluster, if its ",
        ),
        ("jbod-sameid", 3, NO_START, "directory.id"),
        ("baklog", 3, NO_START, "backup.log"),
        ("baksnap", 3, NO_START, "old.snapshot"),
        ("dangling", 3, NO_START, "mv d1/orders-0 d1.aside/"),
        ("zeroepoch", 3, NO_START, "the file cannot be read: all bytes of a line are zero\n"),
        ("zeropm", 3, NO_START, "6QeQf_naTECEAdchox7m4Q"),
        ("dup-topic", 3, NO_START, "it is the last record of the metadata log, so no other record is lost"),
        ("emptyepoch", 4, SAFE, "cannot be truncated by leader epoch"),
        ("torn-clean", 3, "broker 1 " + LOSES, "; 2,000 records are missing already: d1/sales-0\n"),
        ("clean-index-beyond-log", 3, LOSES + "5 records", ".index"),
        (
            "jbod-cluster",
            3,
            f"\nthese are log dirs of 2 brokers: broker 1 of cluster {OTHER} (d1), broker 1 of cluster {CLUSTER} (d2)",
            f"it does not start: Invalid cluster.id in: d2/meta.properties. Expected {OTHER}, but read {CLUSTER}. ",
        ),
        ("jbod-cluster", 3, SAFE + "broker 1 of cluster ", "\n  kdump check d1 d2 --config node.id=1\n"),
        (
            "other-node",
            3,
            "\nthese are log dirs of 2 brokers: broker 1 (d1), broker 3 (d2). Each verdict below is for one broker ",
            "Stored node id 3 doesn't match previous node id 1 in d2/meta.properties. In that case remove d2 from ",
        ),
        (
            "rmlog",
            3,
            "10,000 records" + MISSING,
            "d1/orders-0: the .log of a segment is missing, but its other files exist\n",
        ),
        ("overflow", 3, "offsets are missing", "split"),
        ("epochlost", 4, "can be rebuilt", "another leader epoch for offset"),
        ("zstd-bomb", 0, ": nothing wrong found; 1 of 3 batches not checked\n3 notes", "d1/t-0: nothing wrong found\n"),
    ],
)
def test_the_verdict(cases, case, status, verdict, named):
    place = cases / "verdict" / case
    paths = sorted(path.name for path in place.iterdir() if path.name in {"d1", "d2"}) or ["."]
    code, text, lines = check(place, *paths)
    assert code == status
    assert verdict in text
    assert named in text
    assert [line["status"] for line in lines if line["kind"] == "summary"] == [status]
    found = [line for line in lines if line["kind"] == "finding"]
    assert sum(line["findings"] for line in lines if line["kind"] == "summary") == len(found)
    starts = [line["starts"] for line in lines if line["kind"] == "start"]
    ends = any(line["fatal"] for line in found)
    assert ends == (False in starts)
    assert (NO_START in text or "DO NOT START the broker: " in text) == ends


@pytest.mark.parametrize(
    "case",
    [
        "swap0",
        "startgtend",
        "nopm",
        "nopm-after",
        "jbod-sameid",
        "baklog",
        "baksnap",
        "zeropm",
        "zeroepoch",
        "zerometa",
        "dup-topic",
        "torn-clean",
        "clean-index-beyond-log",
    ],
)
def test_the_commands_of_the_verdict_mend_it(cases, tmp_path, case):
    subprocess.run(["cp", "-a", cases / "verdict" / case, tmp_path], check=True)
    place = tmp_path / case
    paths = sorted(path.name for path in place.iterdir())
    _, text, _ = check(place, *paths)
    for command in printed_commands.commands(text):
        subprocess.run(["bash", "-c", command], cwd=place, env=environment(), check=True)
    assert check(place, *paths)[0] in LEFT.get(case, {0})


def test_a_folder_marked_for_deletion_gets_its_name_back(cases, tmp_path):
    """At its start the broker deletes ``-delete`` folders, even if a partition has no other folder."""
    subprocess.run(["cp", "-a", cases / "verdict" / "zeropm" / "d1", tmp_path], check=True)
    doomed = tmp_path / f"d1/orders-0.{'0' * 32}-delete"
    (tmp_path / "d1/orders-0").rename(doomed)
    (tmp_path / "d1/orders-1/partition.metadata").write_text("version: 0\ntopic_id: 6QeQf_naTECEAdchox7m4Q")
    code, text, _ = check(tmp_path, "d1")
    assert code == 3
    assert "broker 1 yet: a start does not serve 10,000 records of orders-0: the commands below restore them\n" in text
    assert printed_commands.commands(text) == [COPY, f"mv d1/{doomed.name} d1/orders-0"]
    assert f"kdump salvage d1/{doomed.name} --out salvaged\n" in kdump("d1", cwd=tmp_path).stdout.decode()
    doomed.rename(tmp_path / "d1/orders-0")
    assert check(tmp_path, "d1")[0] == 0


@pytest.mark.parametrize(
    ("case", "commands"),
    [
        (
            "zeroepoch",
            ["mkdir -p d1.aside/files/orders-0/ && mv d1/orders-0/leader-epoch-checkpoint d1.aside/files/orders-0/"],
        ),
        (
            "zeropm",
            [
                "mkdir -p d1.aside/files/orders-1/ && mv d1/orders-1/partition.metadata d1.aside/files/orders-1/ && "
                r"printf 'version: 0\ntopic_id: %s' 6QeQf_naTECEAdchox7m4Q > d1/orders-1/partition.metadata"
            ],
        ),
    ],
)
def test_the_finding_has_the_commands(cases, case, commands):
    _, _, lines = check(cases / "verdict" / case, "d1")
    assert [line["commands"] for line in lines if line["kind"] == "finding" and line["fatal"]] == [commands]


def test_a_dangling_link_is_moved_away_once_its_disk_is_lost(cases, tmp_path):
    """Nothing is removed; the missing files are reported."""
    subprocess.run(["cp", "-a", cases / "verdict" / "dangling", tmp_path], check=True)
    place = tmp_path / "dangling"
    for command in printed_commands.commands(check(place, "d1")[1]):
        subprocess.run(["bash", "-c", command], cwd=place, env=environment(), check=True)
    assert (place / "d1.aside" / "orders-0").is_symlink()
    code, text, _ = check(place, "d1")
    assert code == 3
    assert "10,000 records are missing" in text


@pytest.mark.parametrize("case", ["client-without-producer", "follower-of-compacted", "three-clean-stops"])
def test_no_false_alarm(cases, case):
    code, text, _ = check(cases / "healthy" / case, ".")
    assert (code, "what to do" in text) == (0, False)


def test_no_other_replica_is_named_where_there_is_none(cases, tmp_path):
    """The high watermark, a gap and a file of a partition with one replica."""
    subprocess.run(["cp", "-a", cases / "verdict" / "baklog", tmp_path], check=True)
    folder = tmp_path / "baklog" / "d1" / "orders-0"
    log = folder / f"{0:020}.log"
    data = log.read_bytes()
    log.write_bytes(data[: len(data) // 3] + bytes(100) + data[len(data) // 2 : -len(data) // 4])
    for name in ("00000000000000000000.index", "00000000000000000000.timeindex", "leader-epoch-checkpoint"):
        (folder / name).write_bytes(b"\0" * 7)
    _, text, _ = check(tmp_path / "baklog", "d1", options=("--notes",))
    assert "nother replica" not in text
    assert "has one replica" in text


SWAPS = ("00000000000000000000.index.swap", "00000000000000000000.timeindex.swap")


def without_log_swap(cases, tmp_path):
    """The folder of a partition whose only ``.swap`` files belong to indexes."""
    subprocess.run(["cp", "-a", cases / "verdict" / "swap0", tmp_path], check=True)
    folder = tmp_path / "swap0" / "d1" / "prices-0"
    (folder / f"{0:020}.log.swap").unlink()
    return folder


def test_the_command_moves_every_swap_file_of_the_base_offset(cases, tmp_path):
    """A start would replace the log's indexes with the empty ones."""
    subprocess.run(["cp", "-a", cases / "verdict" / "swap0", tmp_path], check=True)
    place = tmp_path / "swap0"
    for command in printed_commands.commands(check(place, "d1")[1]):
        subprocess.run(["bash", "-c", command], cwd=place, check=True)
    assert not list((place / "d1" / "prices-0").glob("*.swap"))
    assert len(list((place / "d1.aside" / "files" / "prices-0").glob("*.swap"))) == 3


def test_empty_index_swap_files_alone_take_the_place_of_indexes(cases, tmp_path):
    folder = without_log_swap(cases, tmp_path)
    code, text, lines = check(folder.parents[1], "d1")
    found = [line for line in lines if line["kind"] == "finding"]
    assert (code, [line["code"] for line in found]) == (4, ["index-swapped"] * 2)
    assert "no record is lost; 2 files can be rebuilt" in text
    for line in found:
        subprocess.run(["bash", "-c", line["commands"][0]], cwd=folder.parents[1], check=True)
    assert check(folder.parents[1], "d1")[0] == 0


def test_index_swap_files_alone_are_checked_as_the_indexes_of_a_start(cases, tmp_path):
    """A crash between two renames leaves valid swap files beside a broken index: nothing is wrong."""
    folder = without_log_swap(cases, tmp_path)
    index, swap = folder / f"{0:020}.index", folder / SWAPS[0]
    (folder / SWAPS[1]).unlink()
    swap.write_bytes(index.read_bytes())
    index.write_bytes(b"\xff" * 16)
    code, text, _ = check(folder.parents[1], "d1", options=("--notes",))
    assert code == 0
    assert f"{SWAPS[0]}: when a broker starts, it renames this file to {index.name}, so kdump has checked it" in text
    swap.write_bytes(b"\xff" * 16)
    code, text, _ = check(folder.parents[1], "d1")
    assert code in {3, 4}
    assert SWAPS[0] in text


def test_a_cleaned_file_discards_index_swap_files_too(cases, tmp_path):
    folder = without_log_swap(cases, tmp_path)
    (folder / f"{0:020}.log.cleaned").touch()
    code, text, _ = check(folder.parents[1], "d1", options=("--notes",))
    assert code == 0
    assert f"{SWAPS[0]}: a file of an interrupted swap. A broker removes it" in text


def test_no_salvage_is_advised_where_no_valid_batch_is_left(cases):
    _, text, _ = check(cases / "verdict" / "torn-clean", "d1")
    assert "\nNo valid batch is left for kdump salvage.\n" in text


def test_the_advice_with_a_command_comes_first(cases):
    _, text, _ = check(cases / "verdict" / "torn-clean", "d1")
    advice = [line for line in text.splitlines() if "what to do: " in line]
    assert advice[0].startswith("  what to do: Copy the log, and move .kafka_cleanshutdown away before a broker ")
    assert advice[1].startswith("  what to do: The log itself is damaged: copy the log before a broker starts ")


def test_indexes_of_a_log_swap_file_are_no_segments(cases):
    _, text, _ = check(cases / "verdict" / "swap0", "d1", options=("--notes",))
    assert (
        f"{SWAPS[0]}: when a broker starts, it renames this file to {0:020}.index, and also renames its segment" in text
    )


@pytest.mark.parametrize(
    "case", ["swap0", "nopm-after", "zerometa", "dup-topic", "torn-clean", "lost-disk", "dangling"]
)
def test_a_shell_runs_each_printed_command(cases, tmp_path, case):
    subprocess.run(["cp", "-a", cases / "verdict" / case, tmp_path], check=True)
    paths = sorted(path.name for path in (tmp_path / case).iterdir() if path.name in {"d1", "d2"}) or ["."]
    assert printed_commands.printed(tmp_path / case, paths)
    assert list(printed_commands.wrong(tmp_path / case, paths)) == []


def test_a_command_that_cannot_run_is_wrong(tmp_path, monkeypatch):
    texts = ["mv nowhere there", "echo 'open", "true", "kdump check nowhere"]
    monkeypatch.setattr(printed_commands, "printed", lambda *_: texts)
    assert [command for command, _ in printed_commands.wrong(tmp_path, ["."])] == [texts[0], texts[1], texts[3]]


def test_commands_are_the_indented_lines_at_the_end():
    text = "  not this\n1 segment, 2 batches, 9 bytes of log: 1 finding\nDO NOT START\n  mv a b\n  ... and 2 more\n"
    assert printed_commands.commands(text) == ["mv a b"]
    assert printed_commands.commands(f"{text}Only if it is lost:\n  rm b\nAfter the commands, run `x`.\n")[1:] == [
        "rm b"
    ]
    assert printed_commands.commands("safe to start\n") == []


def pasted(place, command):
    """Run a printed command in a shell, and return its output."""
    done = subprocess.run(
        ["bash", "-c", command], cwd=place, env=environment(), capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.parametrize(
    ("case", "why"), [("jbod-cluster", "Invalid cluster.id in: d2"), ("other-node", "Stored node id 3")]
)
def test_one_broker_does_not_start_with_log_dirs_of_two(cases, case, why):
    """The printed commands lead to the log dir to remove, and to a check without it."""
    place = cases / "verdict" / case
    (as_one,) = printed_commands.printed(place, ["d1", "d2"])
    text = pasted(place, as_one)
    assert f"\nDO NOT START broker 1: d2/meta.properties: {why}" in text
    (alone,) = printed_commands.commands(text)
    assert (alone, "After the removal of d2 from log.dirs:\n" in text) == ("kdump check d1 --config node.id=1", True)
    assert "d2" not in pasted(place, alone)


def test_log_dirs_of_two_brokers_of_one_cluster_are_no_finding(cases):
    """The sentence on one broker with both changes no exit status."""
    _, _, lines = check(cases / "verdict" / "other-node", "d1", "d2")
    assert {line["code"] for line in lines if line["kind"] == "finding"} == {"log-dir-missing", "metadata-elsewhere"}


@pytest.mark.parametrize("case", ["torn-clean", "lost-disk", "zerometa", "dup-topic", "swap0", "dangling"])
def test_commands_that_change_files_begin_with_a_copy_of_the_log_dir(cases, tmp_path, case):
    subprocess.run(["cp", "-a", cases / "verdict" / case, tmp_path], check=True)
    place = tmp_path / case
    dirs = sorted(path.name for path in place.iterdir())
    first = next(command for command in printed_commands.printed(place, dirs) if command.startswith("[ -e "))
    changed = first.split()[2].removesuffix(".copy")
    assert first == COPY.replace("d1", changed)
    (place / f"{changed}.copy.part").mkdir()  # an interrupted copy
    (place / f"{changed}.copy.part" / "meta.properties").touch()
    for _ in range(2):  # a second run must not replace the copy by the changed log dir
        subprocess.run(["sh", "-c", first], cwd=place, check=True)
        words = ["diff", "-r", "--no-dereference", f"{changed}.copy", cases / "verdict" / case / changed]
        subprocess.run(words, cwd=place, check=True)
        (place / changed / "meta.properties").write_text("changed")


def test_commands_leave_alone_a_log_dir_that_is_named_like_a_copy(cases, tmp_path):
    """An empty folder is not a copy."""
    subprocess.run(["cp", "-a", cases / "verdict" / "swap0" / "d1", tmp_path], check=True)
    for name in ("d1.copy", "d1.aside"):
        (tmp_path / name).mkdir()
    text = (tmp_path / "d1" / "meta.properties").read_text()
    (tmp_path / "d1.aside" / "meta.properties").write_text(re.sub("directory.id=.*", f"directory.id={OTHER}", text))
    for command in printed_commands.printed(tmp_path, ["d1"]):
        subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    left = {path.name: len(list(path.iterdir())) for path in tmp_path.iterdir() if path.suffix in {".copy", ".aside"}}
    assert left == {"d1.copy": 0, "d1.aside": 1, "d1.2.copy": len(list((tmp_path / "d1").iterdir())), "d1.2.aside": 1}
    done = kdump("check", ".", cwd=tmp_path)
    assert b"./d1.2.copy is left out: it holds a copy of ./d1 " in done.stderr
    assert b"./d1.2.aside is left out: it holds what was moved out of ./d1 " in done.stderr


def test_a_check_of_selected_partitions_does_not_name_a_start_safe(cases):
    code, text, lines = check(cases / "verdict" / "rmdir", "d1", options=("--topic", "prices"))
    assert (code, "safe" in text) == (0, False)
    assert "\nbroker 1: a start loses no record of the selected partitions\nOnly the selected partitions were " in text
    assert [line["verdictOutcomes"] for line in lines if line["kind"] == "summary"] == [["unknown"]]


def test_labels_keep_quotes_in_paths(cases, tmp_path):
    place = tmp_path / "a' && 'b"
    place.mkdir()
    subprocess.run(["cp", "-a", cases / "verdict" / "swap0" / "d1", place], check=True)
    text = check(tmp_path, f"{place.name}/d1")[1]
    assert "\nFirst copy a' && 'b/d1 (1 MiB of log):\n" in text
    for command in printed_commands.commands(text):
        subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    assert check(tmp_path, f"{place.name}/d1")[0] == 0


def test_a_copy_that_exists_is_named(cases, tmp_path):
    """It may be older than the last start of the broker."""
    subprocess.run(["cp", "-a", cases / "verdict" / "swap0" / "d1", tmp_path], check=True)
    subprocess.run(["cp", "-a", "d1", "d1.copy"], cwd=tmp_path, check=True)
    kept = "d1.copy exists and is kept: if a broker has started since that copy, move it away first"
    assert f"\nFirst copy d1 (1 MiB of log); {kept}:\n  {COPY}\n" in check(tmp_path, "d1")[1]
    (tmp_path / "d1" / "meta.properties").write_bytes(bytes(20))  # its command has a condition
    assert f"; {kept}:\n  {COPY}\n" in check(tmp_path, "d1")[1]


@pytest.mark.parametrize(
    ("case", "lost", "others"),
    [
        ("torn-clean", "2,000 records of sales-0", False),
        ("lost-disk", "2,000 records of sales-2", False),
        ("rmdir", "10,000 records of orders-0", False),
    ],
)
def test_a_start_without_the_missing_records_is_described(cases, tmp_path, case, lost, others):
    """Also after the commands: they cannot restore these records."""
    subprocess.run(["cp", "-a", cases / "verdict" / case, tmp_path], check=True)
    place = tmp_path / case
    dirs = sorted(path.name for path in place.iterdir())
    for _ in range(2):
        code, text, _ = check(place, *dirs)
        before, _, end = text.partition("For records that are missing")
        assert (code, end.startswith(" after the commands:\n")) == (3, bool(printed_commands.commands(before)))
        name = lost.split()[-1]
        copy = f"\n- If a backup or a lost disk has them: copy {name} from there into d1, and run "
        merge = f"kdump salvage d1/{name} COPY --out merged (COPY is the path of that copy)"
        is_left = (place / "d1" / name).exists()
        assert (copy in end, merge in end) == (not is_left, is_left)
        assert ("\n- If another broker has them: start that broker first. When it is the leader" in end) == others
        nothing = (
            f"\n- If nothing has them: keep a copy of the log dirs, and start the broker ({START}). {lost} are then "
        )
        assert f"{nothing}lost for good, and new records can get their offsets. " in end
        assert "kdump check prints DO NOT START until they are back: a start without them is your decision.\n" in end
        for command in printed_commands.commands(text):
            subprocess.run(["bash", "-c", command], cwd=place, env=environment(), check=True)


def test_a_cluster_without_metadata_log_is_rebuilt_by_the_printed_command(cases, tmp_path):
    subprocess.run(["cp", "-a", cases / "verdict" / "mlog-gone", tmp_path], check=True)
    place = tmp_path / "mlog-gone"
    _, text, _ = check(place, "d1")
    assert "\nOnly if no backup and no controller has the metadata log. Name the log dirs of all brokers:\n" in text
    assert "Topic configs, ACLs, SCRAM users, quotas and client metrics are then lost. Release 4.2 is that of " in text
    rebuild, again = printed_commands.commands(text)
    assert rebuild == "kdump rebuild-cluster d1 --out d1.rebuilt --release 4.2"
    pasted(place, rebuild)
    assert pasted(place, again).endswith("safe to start broker 1: nothing is lost\n")


def test_the_commands_for_a_broken_metadata_record_have_a_condition(cases):
    _, text, _ = check(cases / "verdict" / "dup-topic", "d1")
    label = "Start on a snapshot that has all records below offset 85, and not record 85:"
    assert f"\n{label}\n  {COPY}\n  kdump metadata d1 --offset 85 " in text
    assert "Or restore the metadata log from a backup without this record: all changes after the backup are " in text
    assert "No other controller has the metadata log. Start the node on a snapshot" in text


@pytest.mark.parametrize("is_sole", [True, False])
def test_a_snapshot_is_no_way_out_if_another_controller_has_the_metadata_log(is_sole):
    """One broker can have three controllers of their own."""
    cause = StartCause(Code.METADATA_REPLAY_BROKEN, "d1/__cluster_metadata-0", "", offset=85)
    start = BrokerStart("4.3.1", 1, "c", ("d1",), starts=False, fatal=(cause,), is_sole_controller=is_sole)
    repairs = Repairs(start, {}, {1: ()}, {}, {})
    assert ("No other controller" in repairs.advice(cause)) is is_sole
    assert (list(repairs.commands(cause)) == ["kdump metadata d1"]) is not is_sole


@pytest.mark.parametrize(
    ("clusters", "starts"),
    [
        ({}, [f": '{SOLE_NODE}' && printf '%s\\n' version=1 node.id=1 \"cluster.id=$(head "]),
        ({"d1": CLUSTER, "d2": OTHER}, [f"printf '%s\\n' version=1 node.id=1 cluster.id={CLUSTER} > d1/"]),
        (
            {"d2": CLUSTER},
            [f": 'only if this log dir belongs to cluster {CLUSTER}, as the other log dirs do' && printf "],
        ),
        ({"d2": CLUSTER, "d3": OTHER}, []),
    ],
)
def test_a_new_cluster_id_is_written_only_if_no_log_dir_has_one(clusters, starts):
    cause = StartCause(Code.META_PROPERTIES_MISSING, "d1/meta.properties", "")
    start = BrokerStart("4.3.1", None, None, ("d1",), starts=False, fatal=(cause,))
    commands = list(Repairs(start, {}, {1: ()}, {}, clusters).commands(cause))
    assert [command[: len(begin)] for command, begin in zip(commands, starts, strict=True)] == starts


def test_a_batch_above_the_limit_names_the_limit_that_suffices(cases):
    place = cases / "verdict" / "zstd-bomb"
    _, text, _ = check(place, "d1")
    assert "give --max-batch-bytes 300007672 or more.\n" in text
    assert "were not checked" not in check(place, "d1", options=("--max-batch-bytes", "300007672"))[1]
    assert "were not checked" in check(place, "d1", options=("--max-batch-bytes", "300007671"))[1]
    assert text.endswith(
        "\nThere is no verdict on the start of a broker: no meta.properties is in these paths. For a verdict, give all "
        "log dirs of the broker.\n"
    )


def test_a_terminal_folds_sentences_but_no_commands(cases, capsys, monkeypatch):
    """A folded command cannot be pasted. Its indent is larger than that of folded sentences."""
    monkeypatch.setenv("COLUMNS", "60")
    text, command = "DO NOT START broker 1: " + "word " * 30, f"mkdir -p {'d1' * 40} && mv {'d1' * 40} d2"
    summary = CheckSummary()
    summary.verdicts = [StartVerdict(text.strip(), "no-start", (command,))]
    TerminalReport(sys.stdout, Shown()).end(summary, 3)
    lines = capsys.readouterr().out.splitlines()
    assert f"    {command}" in lines
    assert all(len(line) <= 60 for line in lines if command not in line)


def test_a_partition_folder_can_be_moved_away_after_a_file_of_it(tmp_path):
    folder = tmp_path / "d1" / "a-0"
    folder.mkdir(parents=True)
    (folder / "x.index").touch()
    for path in ("d1/a-0/x.index", "d1/a-0"):
        subprocess.run(["sh", "-c", aside(path)], cwd=tmp_path, check=True)
    assert [path.is_dir() for path in ((tmp_path / "d1.aside/a-0"), folder)] == [True, False]
    assert (tmp_path / "d1.aside/files/a-0/x.index").exists()


def test_the_option_for_notes_is_named_and_prints_them(cases):
    place = cases / "verdict" / "torn-clean"
    _, text, _ = check(place, "d1", "d2", options=("--topic", "sales"))
    assert "notes (add --notes to print them)\n" in text
    _, whole, _ = check(place, "d1", "d2", options=("--topic", "sales", "--notes"))
    assert len(whole.splitlines()) > len(text.splitlines())
    assert "add --notes" not in whole


def test_a_broker_that_does_not_start_has_no_note_on_its_leaders(cases):
    assert "without a leader" not in check(cases / "verdict" / "zeroepoch", "d1", options=("--notes",))[1]


def test_a_folder_marked_for_deletion_needs_no_leader_epochs(cases, tmp_path):
    """A broker that marks a folder empties its leader-epoch-checkpoint; the next start removes the folder."""
    subprocess.run(["cp", "-a", cases / "healthy" / "three-clean-stops", tmp_path], check=True)
    place = tmp_path / "three-clean-stops"
    folder = next(path for path in sorted(place.rglob("*-0")) if path.is_dir() and not path.name.startswith("__"))
    doomed = folder.with_name(f"gone-0.{'0' * 32}-delete")
    subprocess.run(["cp", "-a", folder, doomed], check=True)
    (doomed / "leader-epoch-checkpoint").write_text("0\n0\n")
    code, text, _ = check(place, ".")
    assert (code, "leader-epoch-checkpoint" in text) == (0, False), text
    assert check(place, ".", "--notes")[1].count("the file has no epoch") == 1


def test_what_the_verdict_leaves_open_is_said(cases):
    """A folder without meta.properties, selected partitions, log dirs of two clusters, a lost disk, a replica count."""
    verdict = cases / "verdict"
    text = check(verdict / "clean-index-beyond-log", ".")[1]
    assert "\nAfter the commands, run `kdump check .`.\nThis is not a verdict on a whole broker" in text
    text = check(verdict / "torn-clean", "d1", "d2", options=("--topic", "sales"))[1]
    assert "\nAfter the commands, run `kdump check d1 d2`.\nFor records that are missing " in text
    assert text.endswith("\nOnly the selected partitions were checked: before a start, run `kdump check d1 d2`.\n")
    text = check(verdict / "jbod-cluster", "d1", "d2")[1]
    assert f"\nsafe to start broker 1 of cluster {OTHER} with only d1 in its log.dirs: nothing is lost\n" in text
    assert f"\nRun kdump check again with all log dirs of broker 1 of cluster {CLUSTER}: those of log.dirs " in text
    text = check(verdict / "other-node", "d1", "d2")[1]
    assert "metrics-0, orders-1, sales-1. No other broker has a replica of them\n" in text
    assert "\nOnly if __cluster_metadata-0 is lost: keep the broker stopped, restore the folder from a backup" in text
    assert "\nd2\n  WRONG   these log dirs have no __cluster_metadata-0: " in text
    text = check(verdict / "dangling", "d1")[1]
    assert "In that case 10,000 records are missing (high watermark: 10000, recovery point: 10000). The " in text
    assert f"\nOnly if the disk is lost:\n  {COPY}\n  mkdir -p d1.aside/ && mv d1/orders-0 d1.aside/\nAfter" in text
    text = check(verdict / "nopm", "d1")[1]
    assert f"\nFirst copy d1 (1 MiB of log):\n  {COPY}\nThen:\n  printf" in text
    assert text.endswith("\nAfter the commands, run `kdump check d1`. Start the broker when it says safe to start.\n")
    text = check(verdict / "rmlog", "d1")[1]
    assert "\n- If the .log of a segment was moved or renamed: put it back, and run kdump check again.\n- If a " in text
    assert (
        "\nThere is no verdict on the start of a broker: no meta.properties is " in check(verdict / "overflow", "d1")[1]
    )


@pytest.mark.parametrize("given", [".", "d*", "../{}"])
@pytest.mark.parametrize("case", ["torn-clean", "zerometa", "zeropm", "swap0"])
def test_the_second_check_leaves_out_what_the_commands_made(cases, tmp_path, case, given):
    """The commands copy log dirs, and move files, to folders that the first check did not find."""
    subprocess.run(["cp", "-a", cases / "verdict" / case, tmp_path], check=True)
    place, path = tmp_path / case, given.format(case)
    dirs = sorted(each.name for each in place.iterdir())
    text = check(place, path)[1]
    assert f"\nAfter the commands, run `kdump check {shlex.quote(path)}`." in text
    for command in printed_commands.commands(text):
        subprocess.run(["bash", "-c", command], cwd=place, env=environment(), check=True)
    done = kdump("check", path, cwd=place)
    assert b"d1.copy is left out: it holds a copy of " in done.stderr
    named = kdump("check", *(each if given == "d*" else f"{path}/{each}" for each in dirs), cwd=place)
    assert (done.returncode, done.stdout) == (named.returncode, named.stdout)


def test_the_step_after_salvage_is_said(cases, tmp_path):
    subprocess.run(["cp", "-a", cases / "verdict" / "nopm" / "d1", tmp_path], check=True)
    metadata = (tmp_path / "d1" / "orders-0" / "partition.metadata").read_bytes()
    (tmp_path / "d1" / "orders-1" / "partition.metadata").write_bytes(metadata)
    log = tmp_path / "d1" / "orders-0" / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    (tmp_path / "d1" / ".kafka_cleanshutdown").unlink(missing_ok=True)
    (tmp_path / "d1" / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    _, text, _ = check(tmp_path, "d1")
    assert (
        "\n  kdump salvage d1/orders-0 --out salvaged\nThen put what salvage wrote in the place of the damaged log:\n"
        "  [ -d salvaged/logs/orders-0 ] && mkdir -p d1.aside/ && mv d1/orders-0 d1.aside/ && "
        "cp -a salvaged/logs/orders-0 d1/orders-0\n"
    ) in text
    assert "yet: a start loses 4,666 records: " in text  # which salvage recovers
    inside = check(tmp_path / "d1", ".")[1]  # a broker does not start with a folder of another name in a log dir
    assert "\n  kdump salvage ./orders-0 --out ../salvaged\n" in inside
    assert " && cp -a ../salvaged/logs/orders-0 ./orders-0\n" in inside
    inside = check(tmp_path / "d1" / "orders-0", ".")[1]
    assert "\n  kdump salvage . --out ../../salvaged\n" in inside
    (tmp_path / "salvaged").mkdir()  # of an earlier salvage
    assert "\n  kdump salvage d1/orders-0 --out salvaged-2\n" in check(tmp_path, "d1")[1]
    (tmp_path / "salvaged").rmdir()
    assert " 333 records of the partition are then lost for good" in inside
    assert "(the checksum is wrong); 333 records are missing already: d1/orders-0\n" in text
    for command in printed_commands.commands(text):
        subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment(), check="salvage" not in command)
    after = check(tmp_path, "d1")[1]
    assert "broker 1 starts, but offsets are missing in 1 log file: d1/orders-0/" in after
    assert "- If a backup or a lost disk has a copy of orders-0, merge both with the broker stopped: kdump " in after
    assert after.endswith("later, too. kdump check gives exit status 3 as long as they are missing.\n")
