"""Which exception a broker meets in a small text file."""

import pytest

from kdump.broker_start import checkpoint_files
from kdump.broker_start.checkpoint_files import BadFileError, BadNumberError

ID = "AAAAAAAAAAAAAAAAAAAAAg"
LINES = b"version: 0\ntopic_id: "


@pytest.mark.parametrize("data", [b"", b"0\n", b"0\n0\n"])
def test_a_file_without_entries_is_read(data):
    assert checkpoint_files.entries(data, checkpoint_files.OFFSETS) == []


@pytest.mark.parametrize(
    "data",
    [bytes(20), b"\xff\xfe\n", b"1\n0\n", b"x\n", b"0\nx\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na 0 1 2\n"],
    ids=repr,
)
def test_a_broken_file_is_an_io_exception(data):
    with pytest.raises(BadFileError):
        checkpoint_files.entries(data, checkpoint_files.OFFSETS)


@pytest.mark.parametrize("data", [b"0\n1\na x 1\n", b"0\n1\na 0 99999999999999999999\n"], ids=repr)
def test_a_number_that_is_none_is_another_exception(data):
    with pytest.raises(BadNumberError):
        checkpoint_files.entries(data, checkpoint_files.OFFSETS)


def test_entries_of_each_shape():
    assert checkpoint_files.entries(b"0\n1\nplain 3 -3\n", checkpoint_files.OFFSETS) == [("plain", 3, -3)]
    assert checkpoint_files.entries(b"0\n2\n1 0\n2 7", checkpoint_files.EPOCHS) == [(1, 0), (2, 7)]


@pytest.mark.parametrize("version", ["0", "1"])
def test_a_topic_id(version):
    assert checkpoint_files.topic_id(f"version: {version}\ntopic_id: {ID}".encode()) == bytes(15) + b"\x02"


@pytest.mark.parametrize(
    "data",
    [
        bytes(43),
        b"\xff\n",
        b"version: x\n",
        b"version: -1\n",
        b"version: 0\nx\n",
        b"version: 0\ntopic_id: " + b"A" * 22,
    ],
    ids=repr,
)
def test_a_broken_topic_id_costs_the_log_dir(data):
    with pytest.raises(BadFileError):
        checkpoint_files.topic_id(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"version: 0", b"version: 0\ntopic_id: " + ID[:-1].encode(), b"version: 0\ntopic_id: " + b"A" * 25],
    ids=repr,
)
def test_a_topic_id_that_ends_the_broker(data):
    with pytest.raises(BadNumberError):
        checkpoint_files.topic_id(data)
