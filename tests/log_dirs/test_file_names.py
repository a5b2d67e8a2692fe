"""The names of files and folders in a log dir."""

import pytest

from kdump.checks import folder
from kdump.checks.log_dir import LogDirs
from kdump.log_dirs import file_names
from kdump.log_dirs.finder import Finder, Wanted
from testing import forge

STEM = "00000000000000000007"
UUID = "a6e9d498fef558f912c6714098157726"


@pytest.mark.parametrize("name", [file.name.replace("*", STEM) for file in file_names.FILES])
def test_no_file_of_a_broker_is_unknown_in_a_partition(tmp_path, name):
    where = tmp_path / "t-0"
    where.mkdir()
    (where / "00000000000000000000.log").write_bytes(forge.batch([forge.record(b"k", b"v")]))
    (where / name).touch()
    (part,) = Finder(Wanted(leftovers=True, siblings=True)).find([str(where)])
    assert "unknown file" not in {finding.kind for finding in folder.check(part, LogDirs())}


def test_an_offset_in_a_name_fits_into_a_java_long():
    stems = f"{(1 << 63) - 1:020}", f"{1 << 63:020}", "7"
    assert [file_names.is_padded(stem) for stem in stems] == [True, False, False]
    assert [file_names.offset_of(f"{stem}.snapshot") is None for stem in stems] == [False, True, False]


@pytest.mark.parametrize("state", ["", ".deleted", ".swap", ".cleaned"])
def test_a_file_beside_a_segment_keeps_its_state(state):
    path = f"/logs/my.log-0/{STEM}.log{state}"
    assert file_names.SEGMENT_NAME.fullmatch(path.rpartition("/")[2])
    assert file_names.beside_log(path, file_names.INDEX) == f"/logs/my.log-0/{STEM}.index{state}"


@pytest.mark.parametrize("end", [".gz", ".bak", ".bak-1", "~", " (1)", ".tmp", ".swap.old"])
def test_a_broker_ignores_a_copy_of_a_segment_with_another_end(end):
    name = f"{7:020}.log{end}"
    assert (file_names.ignored_base(name), file_names.SEGMENT_NAME.fullmatch(name)) == (7, None)


@pytest.mark.parametrize("name", ["7.x.log", "7.log.deleted", "7.log.bak.deleted", "7.log.gz.swap", "x.log.gz"])
def test_a_broker_lists_renames_or_deletes_these_files(name):
    assert file_names.ignored_base(name) is None


@pytest.mark.parametrize("state", [file_names.DELETE_FOLDER, file_names.FUTURE_FOLDER, file_names.STRAY_FOLDER])
def test_a_folder_that_holds_no_live_replica_names_its_partition(state):
    name = f"orders-eu-3.{'0f' * 16}-{state}"
    assert file_names.folder_name(f"/logs/{name}/") == ("orders-eu", 3)
    assert file_names.leftover_state(f"/logs/{name}/") == state


def test_a_folder_of_another_name_gives_no_partition():
    assert file_names.folder_name("/logs/remote-log-index-cache") == (None, None)


@pytest.mark.parametrize("end", ["", ".log", ".index.log", ".log.index", ".log.tmp", ".snapshot.deleted", ".swap"])
def test_files_beside_a_segment_are_distinguished_from_segments(end):
    for stem in (STEM, "٣", "1.2", "x-checkpoint", ""):
        found = file_names.SIBLING_NAME.fullmatch(stem + end)
        assert file_names.is_sibling(stem + end) == (found is not None)


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("plain-0", ("plain", 0, "")),
        ("plain--1", ("plain-", 1, "")),
        (".Trash-1000", (".Trash", 1000, "")),
        ("idem-0-copy-1", ("idem-0-copy", 1, "")),
        (f"plain-0.{UUID}-delete", ("plain", 0, "delete")),
        ("plain-0.x-future", ("plain", 0, "future")),
        (f"a.b-3.{UUID}-stray", ("a.b", 3, "stray")),
        ("plain-+1", ("plain", 1, "")),
        ("plain-01", ("plain", 1, "")),
        (f"plain-{'0' * 30}1", ("plain", 1, "")),
        ("plain-٣", ("plain", 3, "")),
        ("plain-２", ("plain", 2, "")),
        ("--0", ("-", 0, "")),
        ("pl ain-2147483647", ("pl ain", 2147483647, "")),
        ("plain-+1.x-stray", ("plain", 1, "stray")),
        ("plain-01.x-delete", ("plain", 1, "delete")),
        ("pl\u2003ain-0.x\xa0y-delete", ("pl\u2003ain", 0, "delete")),
    ],
)
def test_partitions(name, parsed):
    """The results of kafka.log.UnifiedLog in 3.9.2 and 4.4.0."""
    assert file_names.parse_folder(name) == file_names.FolderName(*parsed)


@pytest.mark.parametrize(
    "name",
    [
        *("lost+found", "backup", "plain-0.bak", "plain-0-delete", "-0", ".snapshot", "a-", "a-x", "a-2147483648"),
        *("plain", "-", "plain- 1", "plain-1 ", "plain-+", "plain--", "plain-1_0", "plain-1.5", "plain-0x1"),
        *("plain-\U0001d7cf", "plain-0\n", "plain-0.deleted", "plain-0.x-deleted", "plain-0.x-DELETE", "x-stray"),
        *("plain-0.-delete", "plain-0.x.y-stray", "plain- 1.x-delete", "pl ain-0.x-delete", "plain-0.x y-delete"),
        *("-0.x-delete", "plain.x-stray", "plain-" + "9" * 5000),
    ],
)
def test_names_with_which_a_broker_does_not_start(name):
    assert file_names.parse_folder(name) is None
    assert file_names.is_foreign(name)


@pytest.mark.parametrize(
    ("name", "offset"), [("00000000000000000005.log", 5), ("9999.log", 9999), ("7.log.swap", 7), ("+8.index", 8)]
)
def test_offsets(name, offset):
    assert file_names.offset_of(name) == offset


@pytest.mark.parametrize("name", ["copy.log", "0 (copy).log", ".index", "log", "99999999999999999999.log", "1_0.log"])
def test_names_without_an_offset(name):
    assert file_names.offset_of(name) is None


@pytest.mark.parametrize("name", ["plain-+1", "plain-01", "plain-٣", "plain-0.x-stray", "plain--1"])
def test_a_folder_that_a_broker_takes_is_not_foreign(name):
    assert not file_names.is_foreign(name)
    found = file_names.parse_folder(name)
    assert file_names.folder_name(f"/logs/{name}") == (found.topic, found.partition)
