"""The topic id of a folder, and the exception of a broker at a broken file."""

import pytest

from kdump.errors import DamageError
from kdump.formats import partition_metadata
from kdump.formats.checkpoint_text import NumberDamageError
from kdump.formats.partition_metadata import PartitionMetadata, id_of

ID = "AAAAAAAAAAAAAAAAAAAAAg"
WHOLE = f"version: 0\ntopic_id: {ID}".encode()


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\nmore: 1", b"=="], ids=repr)
def test_a_topic_id(version, end):
    data = WHOLE.replace(b"0", str(version).encode(), 1) + end
    assert partition_metadata.read(data) == PartitionMetadata(version, bytes(15) + b"\x02")


def test_an_id_is_in_the_alphabet_of_urls():
    assert len(id_of("-_AAAAAAAAAAAAAAAAAAAA")) == 16
    assert id_of("+AAAAAAAAAAAAAAAAAAAAA") == id_of("/AAAAAAAAAAAAAAAAAAAAA") == b""


def test_any_word_may_stand_before_the_colon():
    assert partition_metadata.read(WHOLE.replace(b"topic_id", b"a topic")).topic_id_text == ID


@pytest.mark.parametrize(
    "data",
    [
        bytes(43),
        b"\xff\n",
        b"version: x\n",
        b"version: -1\n",
        b"version 0\ntopic_id " + ID.encode(),
        b"version:0\ntopic_id: " + ID.encode(),
        b"version: 0\nx\n",
        b"version: 0\ntopic_id: " + b"A" * 22,
    ],
    ids=repr,
)
def test_a_broken_topic_id_costs_the_log_dir(data):
    with pytest.raises(DamageError) as caught:
        partition_metadata.read(data)
    assert type(caught.value) is DamageError


@pytest.mark.parametrize(
    "data", [b"", b"version: 0", WHOLE[:-1], b"version: 0\ntopic_id: " + b"A" * 25, WHOLE + b"="], ids=repr
)
def test_a_topic_id_that_ends_the_broker(data):
    with pytest.raises(NumberDamageError):
        partition_metadata.read(data)


@pytest.mark.parametrize("size", range(len(WHOLE)))
def test_a_file_that_is_cut_is_damage(size):
    with pytest.raises(DamageError):
        partition_metadata.read(WHOLE[:size])


@pytest.mark.parametrize("value", ["\t0", "\v٠", " +0"], ids=repr)
def test_white_space_and_digits_are_those_of_java(value):
    data = f"version:{value}\ntopic_id: {ID}".encode()
    assert partition_metadata.read(data).topic_id_text == ID


@pytest.mark.parametrize("value", ["\u00a00", "\u20030", "\x1c0", " 0 "], ids=repr)
def test_other_white_space_is_damage(value):
    with pytest.raises(DamageError):
        partition_metadata.read(f"version:{value}\ntopic_id: {ID}".encode())
