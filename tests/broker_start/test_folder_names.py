"""Names of folders and files as LogManager and LogLoader read them."""

import pytest

from kdump.broker_start.folder_names import Parsed, offset_of, parse

UUID = "a6e9d498fef558f912c6714098157726"


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
    ],
)
def test_partitions(name, parsed):
    assert parse(name) == Parsed(*parsed)


@pytest.mark.parametrize(
    "name", ["lost+found", "backup", "plain-0.bak", "plain-0-delete", "-0", ".snapshot", "a-", "a-x", "a-2147483648"]
)
def test_names_with_which_a_broker_does_not_start(name):
    assert parse(name) is None


@pytest.mark.parametrize(("name", "offset"), [("00000000000000000005.log", 5), ("9999.log", 9999), ("7.log.swap", 7)])
def test_offsets(name, offset):
    assert offset_of(name) == offset


@pytest.mark.parametrize("name", ["copy.log", "0 (copy).log", ".index", "log", "99999999999999999999.log"])
def test_names_without_an_offset(name):
    assert offset_of(name) is None
