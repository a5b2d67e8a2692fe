"""What paths may name: files, globs, folders, log dirs, archives, standard input."""

import gzip
import io
import os
import subprocess
import tarfile

import pytest
import zstandard

from kdump.errors import Reporter, UnreadableError
from kdump.log_dirs.file_names import Name, folder_name
from kdump.log_dirs.files import Entry
from kdump.log_dirs.finder import Finder, Wanted
from testing.processes import kdump, python

BATCH = bytes.fromhex("00000000000000070000000e") + bytes(14)
UUID = "knnxbs3FSRyKdPcSAOQC-w"


def put(folder, *names, data=BATCH):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(data)


def found(*paths, **wanted):
    notes, fails = [], []
    finder = Finder(Wanted(**wanted), Reporter(note=notes.append, fail=fails.append))
    partitions = list(finder.find(map(str, paths)))
    return partitions, notes, fails


def names(partition):
    return [segment.path.rpartition("/")[2] for segment in partition.segments]


@pytest.mark.parametrize(
    ("path", "topic", "partition"),
    [
        ("logs/orders-0", "orders", 0),
        ("/a/my-topic-with-dashes-17", "my-topic-with-dashes", 17),
        ("orders-3.0123456789abcdef0123456789abcdef-delete", "orders", 3),
        ("orders-3.0123456789abcdef0123456789abcdef-future", "orders", 3),
        (f"remote/orders-{UUID}/5", "orders", 5),
        ("orders", None, None),
        ("-0", None, None),
        ("5", None, None),
    ],
)
def test_folder_names(path, topic, partition):
    assert folder_name(path) == Name(topic, partition)


BINARY = bytes(range(3, 103))
JPEG = bytes.fromhex("ffd8ffe000104a46494600010d01012c0000ffdb0043000503040404")


@pytest.mark.parametrize(("name", "is_like_a_log_dir"), [("d2", True), ("notes.txt", False)])
def test_a_file_in_the_place_of_a_log_dir_is_named_so(tmp_path, name, is_like_a_log_dir):
    put(tmp_path, name, data=b"a file, no folder")
    (error,) = found(tmp_path / name)[2]
    assert ("if log.dirs has this path, a broker starts without it" in error.hint) == is_like_a_log_dir


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
@pytest.mark.parametrize(
    ("data", "reported"),
    [
        (b"some text that is no segment", "it is text, not a file of Kafka's: byte 16 holds 115"),
        (b"short text", "it is text, not a file of Kafka's: it has only 10 bytes"),
        (BINARY, "it is not a file of Kafka's: byte 16 holds 19, where the magic 0, 1 or 2 is expected"),
        (JPEG, "it is not a file of Kafka's: the offset at byte 0 is -10977661529601466"),
        (bytes(11) + b"\x0d" + bytes(20) + b"x", "the size at byte 8 is 13, where 14 or more is expected"),
        (BATCH, None),
        (BATCH[:9], None),
        (bytes(100), None),
        (b"", None),
    ],
)
def test_a_file_that_is_no_segment_is_refused_and_one_of_a_segments_name_is_not(tmp_path, pack, data, reported):
    put(tmp_path, "any.name", "00000000000000000000.log", "any.log", data=pack(data))
    partitions, notes, fails = found(tmp_path / "any.name")
    if reported is None:
        assert [len(one.segments) for one in partitions] == [1]
        assert (notes, fails) == ([], [])
    elif pack is bytes or "it is text" in reported:
        assert partitions == []
        assert [reported in str(error) for error in fails] == [True]
    else:  # a compressed file without a name for its content
        assert (len(partitions), fails) == (1, [])
        assert ["does not begin like a segment" in note for note in notes] == [True]
    if pack is bytes:
        partitions, notes, fails = found(tmp_path / "00000000000000000000.log")
        assert ([len(one.segments) for one in partitions], notes, fails) == ([1], [], [])
        partitions, notes, fails = found(tmp_path / "any.log")
        is_text = reported is not None and "it is text" in reported
        assert ([len(one.segments) for one in partitions], len(fails)) == (([], 1) if is_text else ([1], 0))
        is_doubted = reported is not None and not is_text
        assert ["does not begin like a segment" in note for note in notes] == [True] * is_doubted


def test_copies_of_a_segment_in_one_folder_are_logs_of_their_own(tmp_path):
    put(tmp_path, "a.bin", "b.bin", "c.bin")
    put(tmp_path / "t-0", f"{0:020}.log", f"{0:020}.log.deleted", f"{5:020}.log")
    partitions, _, _ = found(*(tmp_path / f"{name}.bin" for name in "abc"))
    assert [names(one) for one in partitions] == [["a.bin"], ["b.bin"], ["c.bin"]]
    partitions, _, _ = found(*sorted((tmp_path / "t-0").iterdir()))
    assert [len(one.segments) for one in partitions] == [3]


def test_a_glob_goes_on_after_a_file_that_cannot_be_read(tmp_path):
    put(tmp_path / "t-0", f"{0:020}.log", f"{2:020}.log")
    os.mkfifo(tmp_path / "t-0" / f"{1:020}.log")
    partitions, _, fails = found(tmp_path / "t-0" / "*.log")
    assert [name for partition in partitions for name in names(partition)] == [f"{0:020}.log", f"{2:020}.log"]
    assert [error.reason for error in fails] == ["is a pipe or a device, not a file"]


def test_a_partition_folder_is_read_in_offset_order_with_its_siblings(tmp_path):
    folder = tmp_path / "t-1"
    put(folder, "00000000000000000100.log", "00000000000000000020.log", "00000000000000000100.index")
    put(folder, "00000000000000000100.timeindex", "00000000000000000100.snapshot", "partition.metadata")
    ((partition,), notes, fails) = found(folder)
    assert (partition.topic, partition.partition, partition.name) == ("t", 1, "t-1")
    assert [segment.base_offset for segment in partition.segments] == [20, 100]
    assert sorted(partition.segments[1].siblings) == ["index", "snapshot", "timeindex"]
    assert partition.segments[1].sibling("index") == BATCH
    assert partition.segments[0].sibling("index") is None
    assert [entry.name for entry in partition.others if entry.name == "partition.metadata"]
    assert (notes, fails) == ([], [])


def test_offsets_are_ordered_as_numbers(tmp_path):
    put(tmp_path / "t-0", "9.log", "10.log")
    ((partition,), _, _) = found(tmp_path / "t-0")
    assert names(partition) == ["9.log", "10.log"]


def test_leftovers_are_said_and_read_when_asked_for(tmp_path):
    deleted = "00000000000000000000.log.deleted"
    put(tmp_path / "t-0", "00000000000000000005.log", deleted, "00000000000000000000.index.deleted")
    put(tmp_path / f"t-1.{'0' * 32}-delete", "00000000000000000000.log")
    ((partition,), notes, _) = found(tmp_path)
    assert names(partition) == ["00000000000000000005.log"]
    assert len(notes) == 2
    assert all("--leftovers" in note for note in notes)
    partitions, notes, _ = found(tmp_path, leftovers=True)
    assert [names(partition) for partition in partitions] == [
        [deleted, "00000000000000000005.log"],
        ["00000000000000000000.log"],
    ]
    assert list(partitions[0].segments[0].siblings) == ["index"]
    assert notes == []


IDS = "version=1\nnode.id={}\ncluster.id=a\ndirectory.id={}\n"


def test_what_commands_of_kdump_made_next_to_a_log_dir_is_left_out(tmp_path):
    """A copy of a broken log dir may have no ids."""
    for name in ("d1", "d1.copy", "d1.copy.part", "d1.aside", "x", "x.copy"):
        put(tmp_path / name / "t-0", f"{0:020}.log")
    put(tmp_path / "d1.rebuilt" / "node-1" / "t-0", f"{0:020}.log")
    put(tmp_path / "salvaged" / "logs" / "t-0", f"{0:020}.log")
    (tmp_path / "salvaged" / "lost+found").mkdir()
    (tmp_path / "d1" / "meta.properties").write_text(IDS.format(1, UUID))
    (tmp_path / "d1.copy" / "meta.properties").write_bytes(bytes(20))
    made = {
        "d1.aside": f"what was moved out of {tmp_path}/d1",
        "d1.copy": f"a copy of {tmp_path}/d1",
        "d1.copy.part": f"an incomplete copy of {tmp_path}/d1",
        "d1.rebuilt": f"log dirs that kdump rebuild-cluster made from {tmp_path}/d1",
        "salvaged": "the output of kdump salvage",
    }
    for path in (tmp_path, tmp_path / "*"):
        partitions, notes, fails = found(path)
        left = {part.folder.split("/")[-2] for part in partitions}
        assert (left, fails) == ({"d1", "x", "x.copy"}, [])
        assert sorted(notes) == [
            f"{tmp_path}/{name} is left out: it holds {what} (name the folder to read it)"
            for name, what in made.items()
        ]
    named = [tmp_path / name for name in ("d1", *made)]
    assert [len(found(*named)[0]), found(*named)[1:]] == [6, ([], [])]


@pytest.mark.parametrize(
    ("d1", "copy", "folders", "is_copy"),
    [
        (IDS.format(1, "a"), IDS.format(1, "a"), ("t-0", "u-0"), True),
        (IDS.format(1, "b"), IDS.format(1, "not-an-id"), ("t-0", "t-0"), True),  # a command has changed the id of d1
        ("version=1\n", IDS.format(1, "a"), ("t-0", "t-0"), True),
        (IDS.format(1, "a"), IDS.format(1, "b"), ("t-0", "u-0"), False),
        (IDS.format(1, "a"), IDS.format(2, "b"), ("t-0", "t-0"), False),
        (None, None, ("t-0", "t-0"), False),
    ],
)
def test_a_log_dir_that_is_named_like_a_copy_is_read(tmp_path, d1, copy, folders, is_copy):
    """Two log dirs of one broker have no common partition, and log dirs of two brokers have other ids."""
    for name, text, folder in zip(("d1", "d1.copy"), (d1, copy), folders, strict=True):
        put(tmp_path / name / folder, f"{0:020}.log")
        if text is not None:
            (tmp_path / name / "meta.properties").write_text(text)
    assert len(found(tmp_path)[0]) == (1 if is_copy else 2)


def test_a_copy_is_left_out_if_every_file_of_its_log_dir_was_moved_away(tmp_path):
    for name in ("d1", "d1.copy"):
        put(tmp_path / name / "t-0", f"{0:020}.log")
    for name in ("d1.copy", "d1.aside"):
        put(tmp_path / name, ".kafka_cleanshutdown")
    assert [part.folder for part in found(tmp_path, log_dirs=True)[0]] == [f"{tmp_path}/d1/t-0"]


def test_salvaged_logs_are_read_if_they_are_a_log_dir_or_the_only_folder(tmp_path):
    put(tmp_path / "salvaged" / "logs" / "t-0", f"{0:020}.log")
    (tmp_path / "salvaged" / "lost+found").mkdir()
    assert len(found(tmp_path)[0]) == 1
    put(tmp_path / "d1" / "t-0", f"{0:020}.log")
    assert len(found(tmp_path)[0]) == 1
    (tmp_path / "salvaged" / "logs" / "meta.properties").write_text(IDS.format(1, "a"))
    assert len(found(tmp_path)[0]) == 2


def test_a_log_dir_in_order_of_topic_and_partition(tmp_path):
    for name in ("b-0", "a-10", "a-2", "a-1"):
        put(tmp_path / name, "00000000000000000000.log")
    (tmp_path / "replication-offset-checkpoint").write_bytes(b"0\n0\n")
    partitions, notes, fails = found(tmp_path)
    assert [partition.name for partition in partitions] == ["a-1", "a-2", "a-10", "b-0"]
    assert partitions[0].beside("replication-offset-checkpoint") == b"0\n0\n"
    assert partitions[0].beside("log-start-offset-checkpoint") is None
    assert (notes, fails) == ([], [])


class Nested:
    """Folders inside each other, as a place. The innermost contains a segment."""

    def look(self, path):
        return Entry("top", path, True, 0, path)

    def entries(self, folder):
        if folder.count("/") < 3000:
            return [Entry("a-0", f"{folder}/a-0", True, 0, f"{folder}/a-0")]
        return [Entry("00000000000000000000.log", f"{folder}/00000000000000000000.log", False, 0, 1)]

    def shown(self, path):
        return path


def test_folders_are_found_however_deep():
    (partition,) = Finder().find(["top"], Nested())
    assert partition.folder.count("/") == 3000


def test_topics_and_partitions_choose(tmp_path):
    for name in ("b-0", "a-10", "a-2", "ab-2"):
        put(tmp_path / name, "00000000000000000000.log")

    def chosen(**wanted):
        return [partition.name for partition in found(tmp_path, **wanted)[0]]

    assert chosen(topics=("a",)) == ["a-2", "a-10"]
    assert chosen(topics=("a*",)) == ["a-2", "a-10", "ab-2"]
    assert chosen(topics=("a",), partitions=frozenset({2})) == ["a-2"]
    assert chosen(partitions=frozenset({0, 10})) == ["a-10", "b-0"]


def test_any_name_that_holds_a_segment(tmp_path):
    put(tmp_path / "t-0", "broken.bin", f"00000000000000000003-{UUID}.log", "00000000000000000001.log.swap")
    ((partition,), notes, _) = found(*sorted((tmp_path / "t-0").iterdir()))
    assert names(partition) == ["00000000000000000001.log.swap", f"00000000000000000003-{UUID}.log", "broken.bin"]
    assert [segment.base_offset for segment in partition.segments] == [1, 3, 7]
    assert notes == []


def test_files_that_hold_no_records_are_said(tmp_path):
    put(tmp_path / "t-0", *(f"0000000000000000000{n}.index" for n in range(6)), "00000000000000000000.log")
    ((partition,), notes, _) = found(*sorted((tmp_path / "t-0").iterdir()))
    assert names(partition) == ["00000000000000000000.log"]
    assert len(notes) == 4
    assert notes[-1].startswith("3 more files")
    ((partition,), notes, _) = found(*sorted((tmp_path / "t-0").iterdir()), siblings=True)
    assert len(partition.others) == 6
    assert notes == []


def test_the_same_file_is_read_once(tmp_path):
    put(tmp_path / "t-0", "00000000000000000000.log")
    path = tmp_path / "t-0" / "00000000000000000000.log"
    ((partition,), notes, _) = found(path, path)
    assert len(partition.segments) == 1
    assert "read once" in notes[0]
    (tmp_path / "again").symlink_to(tmp_path)
    partitions, notes, _ = found(tmp_path)
    assert len(partitions) == 1
    assert "read once" in notes[0]


def test_globs(tmp_path):
    for name in ("t-0", "t-1", "u-0"):
        put(tmp_path / name, "00000000000000000000.log")
    assert [partition.name for partition in found(f"{tmp_path}/t-*")[0]] == ["t-0", "t-1"]
    assert [partition.name for partition in found(f"{tmp_path}/*/*.log")[0]] == ["t-0", "t-1", "u-0"]
    _, _, (fail,) = found(f"{tmp_path}/x*")
    assert "matches nothing" in str(fail)


@pytest.mark.parametrize("pattern", ["t-0", "t-0/*.log", "t-*/*", "*/*5.log", "t-0/{:020}.log"])
def test_a_segment_that_is_a_broken_link_is_reported_however_it_is_named(tmp_path, pattern):
    put(tmp_path / "t-0", "00000000000000000009.log")
    (tmp_path / "t-0" / f"{5:020}.log").symlink_to(tmp_path / "gone")
    paths = str(tmp_path / pattern.format(5))
    assert kdump("dump", paths, "--count").returncode == 1


def test_what_cannot_be_read_is_named(tmp_path):
    _, _, (fail,) = found(tmp_path / "gone.log")
    assert str(fail) == f"{tmp_path}/gone.log: No such file or directory"
    _, _, (fail,) = found(tmp_path)
    assert "no segment" in str(fail)
    with pytest.raises(UnreadableError):
        list(Finder().find([str(tmp_path / "gone.log")]))
    put(tmp_path / "t-0", "00000000000000000000.log")
    partitions, _, fails = found(tmp_path / "gone.log", tmp_path)
    assert len(partitions) == len(fails) == 1


def test_a_log_with_a_name_of_no_offset_is_said(tmp_path):
    put(tmp_path, "server.log")
    put(tmp_path / "t-0", "00000000000000000000.log", "x.log")
    ((partition,), notes, _) = found(tmp_path)
    assert names(partition) == ["00000000000000000000.log"]
    assert "x.log is left out" in notes[0]


def bundle(members):
    """Return a tar of (path, bytes), or of unchanged TarInfo objects."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            path, data = member
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


MEMBERS = [
    ("./logs/t-0/00000000000000000009.log", b"second"),
    ("./logs/t-0/00000000000000000000.log", b"first"),
    ("./logs/t-0/00000000000000000000.index", b"index"),
    ("./logs/replication-offset-checkpoint", b"0\n1\nt 0 5\n"),
]


def zstd(data):
    return zstandard.ZstdCompressor().compress(data)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd], ids=["tar", "gz", "zst"])
def test_archives(tmp_path, pack):
    path = tmp_path / "bundle"
    path.write_bytes(pack(bundle(MEMBERS)))
    ((partition,), notes, fails) = found(path)
    assert partition.name == "t-0"
    assert [segment.name for segment in partition.segments] == [
        f"{path}:logs/t-0/00000000000000000000.log",
        f"{path}:logs/t-0/00000000000000000009.log",
    ]
    with partition.segments[1].open() as source:
        assert (source.size, source.read(0, 100), source.read(2, 2)) == (6, b"second", b"co")
    assert partition.segments[0].sibling("index") == b"index"
    assert partition.beside("replication-offset-checkpoint") == b"0\n1\nt 0 5\n"
    assert (notes, fails) == ([], [])
    assert [file.name for file in tmp_path.iterdir()] == ["bundle"]


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gz", "zst"])
def test_one_compressed_segment(tmp_path, pack):
    path = tmp_path / "00000000000000000000.log.x"
    path.write_bytes(pack(BATCH))
    ((partition,), _, _) = found(path)
    with partition.segments[0].open() as source:
        assert source.read(0, 100) == BATCH


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gz", "zst"])
def test_cut_off_compressed_files_are_unreadable(tmp_path, pack):
    path = tmp_path / "bundle"
    path.write_bytes(pack(os.urandom(3000))[:-9])
    _, _, (fail,) = found(path)
    assert "is truncated" in str(fail)


def test_several_members_of_gzip_and_zeros_after_them(tmp_path):
    path = tmp_path / "x.log"
    path.write_bytes(gzip.compress(BATCH[:7]) + gzip.compress(BATCH[7:]) + bytes(600))
    ((partition,), _, _) = found(path)
    with partition.segments[0].open() as source:
        assert source.read(0, 100) == BATCH


def test_links_stay_in_the_archive(tmp_path):
    def link(path, target, kind):
        info = tarfile.TarInfo(path)
        info.linkname, info.type = target, kind
        return info

    secret = tmp_path / "secret.log"
    secret.write_bytes(b"secret")
    path = tmp_path / "b.tar"
    path.write_bytes(
        bundle(
            [
                ("t-0/0.log", b"first"),
                link("t-0/1.log", "t-0/0.log", tarfile.LNKTYPE),
                link("t-0/2.log", "1.log", tarfile.SYMTYPE),
                link("t-0/3.log", str(secret), tarfile.SYMTYPE),
                link("t-0/4.log", "../../../../../" + str(secret), tarfile.SYMTYPE),
                ("../../t-9/5.log", b"climbs"),
                link("t-0/dev.log", "", tarfile.CHRTYPE),
            ]
        )
    )
    partitions, notes, _ = found(path)
    assert [partition.name for partition in partitions] == ["t-0", "t-9"]
    contents = []
    for segment in partitions[0].segments:
        with segment.open() as source:
            contents.append(source.read(0, 10))
    assert contents == [b"first"] * 3
    assert sorted(note.split(" ")[0] for note in notes) == [f"{path}:t-0/{name}.log" for name in ("3", "4", "dev")]


def test_a_sparse_member(tmp_path):
    big = tmp_path / "00000000000000000000.log"
    with big.open("wb") as file:
        file.write(b"start")
        file.seek(1 << 20)
        file.write(b"end")
    subprocess.run(["tar", "-S", "-cf", tmp_path / "s.tar", "-C", tmp_path, big.name], check=True)
    ((partition,), _, _) = found(tmp_path / "s.tar")
    with partition.segments[0].open() as source:
        assert source.size == (1 << 20) + 3
        assert source.read(0, source.size) == big.read_bytes()
        assert source.read((1 << 20) - 2, 4) == b"\0\0en"


def test_a_broken_archive_gives_what_it_has_and_fails(tmp_path):
    path = tmp_path / "b.tar"
    whole = bundle(MEMBERS)
    broken = bytearray(whole)
    broken[1024 + 3] ^= 0xFF  # the second member's header
    path.write_bytes(broken)
    ((partition,), _, (fail,)) = found(path)
    assert names(partition) == ["00000000000000000009.log"]
    assert "broken" in str(fail)
    path.write_bytes(whole[:1300])
    ((partition,), _, (fail,)) = found(path)
    assert "broken" in str(fail)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd], ids=["plain", "gz", "zst"])
@pytest.mark.parametrize("piped", [True, False])
def test_standard_input(tmp_path, pack, piped):
    script = (
        "from kdump.log_dirs.finder import Finder\n"
        "for partition in Finder().find(['-']):\n"
        "    for segment in partition.segments:\n"
        "        with segment.open() as source: print(segment.name, source.read(0, 100).hex())"
    )
    for data, expected in [
        (BATCH, [f"stdin {BATCH.hex()}"]),
        (
            bundle(MEMBERS),
            [
                f"stdin:logs/t-0/00000000000000000000.log {b'first'.hex()}",
                f"stdin:logs/t-0/00000000000000000009.log {b'second'.hex()}",
            ],
        ),
    ]:
        if piped:
            run = python("-c", script, input=pack(data), check=True)
        else:
            (tmp_path / "in").write_bytes(pack(data))
            with (tmp_path / "in").open("rb") as stdin:
                run = python("-c", script, stdin=stdin, check=True)
        assert run.stdout.decode().splitlines() == expected


@pytest.mark.parametrize("state", ["", ".deleted", ".swap"])
def test_a_name_without_zeros_beside_the_name_that_a_broker_opens_is_left_out_with_a_note(tmp_path, state):
    put(tmp_path / "t-0", f"{8:020}.log{state}", f"8.log{state}")
    (partition,), notes, fails = found(tmp_path / "t-0", leftovers=True)
    assert names(partition) == [f"{8:020}.log{state}"]
    assert notes == [
        f"{tmp_path}/t-0/8.log{state} is left out: a broker opens no file of this name (give its path to read it)"
    ]
    assert not fails


def test_few_files_are_open_at_a_time(tmp_path):
    for number in range(300):
        put(tmp_path / f"t-{number}", "00000000000000000000.log", "00000000000000000007.log")
    script = (
        "import sys\n"
        "from kdump.log_dirs.finder import Finder\n"
        "print(sum(len(partition.segments) for partition in Finder().find([sys.argv[1]])))"
    )
    run = python("-c", script, tmp_path, shell='ulimit -n 64; exec "$@"', check=True)
    assert run.stdout == b"600\n"


def test_what_holds_no_records_says_what_reads_it(tmp_path):
    put(tmp_path / "t-0", "0.snapshot", "leader-epoch-checkpoint", "x.log")
    _, notes, _ = found(tmp_path / "t-0" / "0.snapshot", tmp_path / "t-0" / "leader-epoch-checkpoint")
    assert [note.partition(" is left out: ")[2] for note in notes] == [
        "it holds no records (kdump --files prints it)",
        "it holds no records (kdump check compares it with the log)",
    ]


@pytest.mark.parametrize("wanted", [{}, {"topics": ("orders",)}, {"partitions": frozenset({0})}])
def test_a_log_dir_that_is_called_as_a_partition_is_none(tmp_path, wanted):
    for number in (1, 2):
        folder = tmp_path / f"broker-{number}" / "orders-0"
        folder.mkdir(parents=True)
        (folder.parent / "meta.properties").write_bytes(b"version=1\n")
        put(folder, f"{0:020}.log")
    for places in ([tmp_path], [tmp_path / "broker-1", tmp_path / "broker-2"]):
        found = list(Finder(Wanted(log_dirs=True, siblings=True, **wanted)).find(list(map(str, places))))
        assert {one.topic for one in found} <= {"orders", None}
        assert [one.name for one in found if one.segments] == ["orders-0", "orders-0"]
    assert not list(Finder(Wanted(log_dirs=True, topics=("broker",))).find([str(tmp_path)]))


def test_folders_below_a_log_dir_are_foreign_at_any_depth(tmp_path):
    """A broker reads the partition folders in a log dir, and no folder inside them or inside other folders."""
    log_dir = tmp_path / "disk"
    put(log_dir, "meta.properties", data=b"version=1\nnode.id=1\ncluster.id=x\n")
    own = ["orders-0", "orders-1.0123456789abcdef0123456789abcdef-delete"]
    below = ["backup", "backup/pay-0", "backup/more/pay-1", "orders-0/sales-0", "orders-0/sales-0/pay-2"]
    for name in own + below:
        put(log_dir / name, f"{0:020}.log")
    put(log_dir / "backup" / "second", "meta.properties", data=b"version=1\nnode.id=2\ncluster.id=x\n")
    put(log_dir / "backup" / "second" / "pay-3", f"{0:020}.log")  # a log dir of its own
    put(log_dir / "backup" / "second" / "pay-3" / "pay-4", f"{0:020}.log")
    below.append("backup/second/pay-3/pay-4")
    partitions, notes, fails = found(log_dir, leftovers=True)
    foreign = {os.path.relpath(one.folder, log_dir): one.foreign for one in partitions}
    assert foreign == dict.fromkeys([*own, "backup/second/pay-3"], False) | dict.fromkeys(below, True)
    assert (notes, fails) == ([], [])
    (log_dir / "meta.properties").unlink()
    partitions, _, _ = found(log_dir, leftovers=True)
    assert {os.path.relpath(one.folder, log_dir) for one in partitions if one.foreign} == {"backup/second/pay-3/pay-4"}


def test_a_log_dir_whose_folders_were_read_through_links_holds_segments(tmp_path):
    real, linked = tmp_path / "real", tmp_path / "linked"
    put(real / "orders-5", "00000000000000000000.log")
    linked.mkdir()
    (linked / "orders-5").symlink_to(real / "orders-5")
    partitions, notes, fails = found(linked, real)
    assert [part.folder for part in partitions] == [str(linked / "orders-5")]
    assert (notes, fails) == ([f"{real}/orders-5 is in several of the paths, and read once"], [])


def test_a_folder_with_leftovers_only_names_one_of_them(tmp_path):
    name = f"t-0.{'3c' * 16}-delete"
    put(tmp_path / "empty", "notes")
    put(tmp_path / "x" / name, "00000000000000000000.log")
    (tmp_path / "x" / f"t-1.{'3c' * 16}-delete").mkdir()  # a broker deletes the files first
    put(tmp_path / "y" / name, "partition.metadata")
    _, _, fails = found(tmp_path / "x", tmp_path / "empty", tmp_path / "y")
    text = "no segment is in this folder or below it"
    assert [(error.reason, error.hint) for error in fails] == [
        (f"{text}, except in leftover folders", f"name the folder: {tmp_path / 'x' / name}"),
        (text, ""),
        (text, ""),
    ]
