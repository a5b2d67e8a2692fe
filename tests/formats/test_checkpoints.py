"""The text files of a log directory: checkpoints, leader epochs, partition.metadata."""

import pytest

from kdump.errors import DamageError
from kdump.formats import checkpoints, clean_shutdown, leader_epoch, partition_metadata
from kdump.formats.checkpoint_text import NumberDamageError
from kdump.formats.checkpoints import PartitionOffset
from kdump.formats.leader_epoch import EpochEntry
from kdump.formats.partition_metadata import PartitionMetadata

OFFSETS = (PartitionOffset("delrec", 0, 47), PartitionOffset("__consumer_offsets", 49, 9223372036854775807))
OFFSET_TEXT = b"0\n2\ndelrec 0 47\n__consumer_offsets 49 9223372036854775807\n"
EPOCHS = (EpochEntry(0, 0), EpochEntry(7, 1234567890123))
EPOCH_TEXT = b"0\n2\n0 0\n7 1234567890123\n"
TOPIC = PartitionMetadata(0, bytes.fromhex("c006c666e83874e1 9ee6678d451 07c83".replace(" ", "")))


def damage(read, data: bytes) -> DamageError:
    with pytest.raises(DamageError) as caught:
        read(data)
    return caught.value


def test_whole():
    assert checkpoints.read(OFFSET_TEXT) == OFFSETS
    assert checkpoints.encode(OFFSETS) == OFFSET_TEXT
    assert leader_epoch.read(EPOCH_TEXT) == EPOCHS
    assert leader_epoch.encode(EPOCHS) == EPOCH_TEXT
    assert leader_epoch.encode([]) == b"0\n0\n"


@pytest.mark.parametrize(("read", "text"), [(checkpoints.read, OFFSET_TEXT), (leader_epoch.read, EPOCH_TEXT)])
def test_cut_at_every_byte_is_empty_or_damage_but_inside_the_last_number(read, text):
    whole = read(text)
    last = text.rindex(b" ") + 1
    for end in range(len(text)):
        if end <= 2:  # no line with the number of entries: a broker reads no entries
            assert read(text[:end]) == ()
        elif end <= last:
            assert damage(read, text[:end]).kind in ("line", "count")
        else:
            assert read(text[:end])[:-1] == whole[:-1]


@pytest.mark.parametrize("read", [checkpoints.read, leader_epoch.read])
@pytest.mark.parametrize(
    ("text", "kind", "position"),
    [
        (b"1\n0\n", "version", 0),
        (b"x\n0\n", "line", 0),
        (b"0\n2147483648\n", "line", 2),
        (b"0\n1\n", "count", 2),
        (b"0\n0\n\n", "line", 4),
        (b"0\n1\na b c d\n", "line", 4),
        (b"0\n1\nt 0 99999999999999999999\n", "line", 4),
        (b"0\n1\n\xff\xfe 0 1\n", "text", 4),
    ],
)
def test_what_is_wrong_is_reported_with_its_byte(read, text, kind, position):
    fault = damage(read, text)
    assert (fault.kind, fault.position) == (kind, position)


@pytest.mark.parametrize("line", [b"-1 -1", b"-1 0", b"3 -5"])
def test_a_negative_epoch_or_start_offset_ends_a_broker(line):
    """The constructor of a LeaderEpochFileCache of 4.3.1: "Received invalid partition leader epoch entry"."""
    fault = damage(leader_epoch.read, b"0\n2\n0 0\n" + line + b"\n")
    assert (type(fault), fault.position, fault.found) == (NumberDamageError, 8, repr(line.decode()))
    assert type(damage(leader_epoch.read, b"0\n3\n" + line + b"\n")) is DamageError  # the file is read first


def test_garbage_after():
    assert damage(checkpoints.read, OFFSET_TEXT + b"garbage").kind == "line"
    assert damage(leader_epoch.read, EPOCH_TEXT + b"8 9\n").kind == "count"


def test_lines_and_blanks_as_java_reads_them():
    assert checkpoints.read(b"0\r\n1\r\nt\t+1  -2  ") == (PartitionOffset("t", 1, -2),)
    assert damage(leader_epoch.read, b"0\n1\n 1 2\n").kind == "line"


def test_partition_metadata_whole():
    text = b"version: 0\ntopic_id: wAbGZug4dOGe5meNRRB8gw"
    assert partition_metadata.read(text) == TOPIC
    assert partition_metadata.read(text + b"\ngarbage") == TOPIC
    assert partition_metadata.encode(TOPIC) == text
    assert TOPIC.topic_id_text == "wAbGZug4dOGe5meNRRB8gw"


def test_partition_metadata_cut_at_every_byte():
    text = partition_metadata.encode(TOPIC)
    for end in range(len(text)):
        assert damage(partition_metadata.read, text[:end]).kind == "line"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"version: -1\ntopic_id: wAbGZug4dOGe5meNRRB8gw", "version"),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "line"),
        (b"version: 0\ntopic_id: wAbGZug4dOGe5meNRRB8g!", "line"),
        (b"version: 0\ntopic_id: wAbGZug4dOGe5meNRRB8gwAA", "line"),
    ],
)
def test_partition_metadata_odd(text, kind):
    assert damage(partition_metadata.read, text).kind == kind


def test_numbers_of_thousands_of_digits_and_deep_nesting_are_damage():
    with pytest.raises(DamageError, match="malformed"):
        leader_epoch.read(b"0\n1\n" + b"1" * 5000 + b" 0\n")
    with pytest.raises(DamageError, match="not JSON"):
        clean_shutdown.read(b"[" * 100_000)
    with pytest.raises(DamageError, match="not JSON"):
        clean_shutdown.read(b'{"version":' + b"1" * 5000 + b"}")


@pytest.mark.parametrize(
    "data",
    [
        bytes(20),
        b"\xff\xfe\n",
        b"1\n0\n",
        b"x\n",
        b"0\nx\n",
        b"0\n2\na 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 1 2\n",
        b"0\n1\na x 1\n\xff",
    ],
    ids=repr,
)
def test_a_file_at_which_a_broker_meets_an_io_exception(data):
    with pytest.raises(DamageError) as caught:
        checkpoints.read(data)
    assert type(caught.value) is DamageError


@pytest.mark.parametrize(
    "data", [b"0\n1\na x 1\n", b"0\n1\na 0 99999999999999999999\n", b"0\n-1\n", b"0\n3\na x 1\n"], ids=repr
)
def test_a_file_at_which_a_broker_meets_another_exception(data):
    with pytest.raises(NumberDamageError):
        checkpoints.read(data)


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("t ٣ ٣", PartitionOffset("t", 3, 3)),
        ("t\v0\f5", PartitionOffset("t", 0, 5)),
        ("t 0 5 \t", PartitionOffset("t", 0, 5)),
        ("a\u2003 0 5", PartitionOffset("a\u2003", 0, 5)),
        ("t\u00a00 5", "line"),
        ("t\u20030 5", "line"),
        ("t\x1c0 5", "line"),
        ("t\x850 5", "line"),
        ("t 0 5 \u00a0", "line"),
        (" t 0 5", "line"),
        ("t 0 1_0", "number"),
    ],
    ids=repr,
)
def test_a_line_is_read_as_by_kafkas_class_offset_checkpoint_file(line, entry):
    text = f"0\n1\n{line}\n".encode()
    if isinstance(entry, PartitionOffset):
        assert checkpoints.read(text) == (entry,)
    else:
        assert isinstance(damage(checkpoints.read, text), NumberDamageError) is (entry == "number")


@pytest.mark.parametrize("version", ["٠", "+0", "-0", "00"])
def test_a_version_is_any_number_zero(version):
    assert checkpoints.read(f"{version}\n1\nt 0 5\n".encode()) == (PartitionOffset("t", 0, 5),)
    assert damage(checkpoints.read, b"0 \n1\nt 0 5\n").kind == "line"
