"""The errors of kdump: numbers of the system's errors survive prefixes, other paths and other processes."""

import errno
import os
import pickle

import pytest

from kdump.errors import FailingDiskError, UnreadableError, first_of
from kdump.log_dirs.local import LOCAL, LocalFile


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ENOENT])
def test_the_number_of_an_error_decides_not_its_text(number):
    error = UnreadableError.of("f", OSError(number, os.strerror(number)), "byte 7: ")
    for one in (error, error.on("g"), pickle.loads(pickle.dumps(error))):
        assert one.reason == f"byte 7: {os.strerror(number)}"
        assert (one.errno, one.is_denied, one.is_of_disk) == (number, number == errno.EACCES, number == errno.EIO)
    assert str(error.on("g")) == f"g: byte 7: {os.strerror(number)}"


def test_a_text_without_a_number_is_not_of_the_system():
    error = UnreadableError("f", "Permission denied", "do this")
    assert (error.errno, error.is_denied, str(error)) == (None, False, "f: Permission denied (do this)")
    assert UnreadableError.of("f", ValueError("embedded null byte")).reason == "embedded null byte"


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.EACCES, UnreadableError), (errno.EIO, FailingDiskError), (errno.EBADMSG, FailingDiskError)],
)
def test_a_read_that_the_system_refuses_has_its_number(tmp_path, monkeypatch, number, kind):
    """NFS opens a file for root and refuses to read it."""
    (tmp_path / "f").write_bytes(b"abc")

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    with LocalFile(tmp_path / "f") as source:
        monkeypatch.setattr(os, "pread", refuse)
        with pytest.raises(UnreadableError) as found:
            source.read(0, 3)
    assert (type(found.value), found.value.errno) == (kind, number)
    assert found.value.is_denied == (number == errno.EACCES)


def test_the_names_after_the_first_ones_are_counted():
    names = ["a", "b", "c", "d"]
    assert [first_of(names, most) for most in (1, 3, 4, 9)] == [
        "a and 3 more",
        "a, b, c and 1 more",
        *["a, b, c, d"] * 2,
    ]


def test_a_path_that_no_system_takes_is_unreadable():
    with pytest.raises(UnreadableError, match="null byte"):
        LOCAL.look("a\0b")
