"""Files that break a dump: the output equals the original's up to the break, without a crash or a hang."""

from __future__ import annotations

from testing import forge
from testing.processes import kdump

LOG = "00000000000000000000.log"


def write(folder, data, name=LOG):
    path = folder / name
    path.write_bytes(data)
    return path


def test_a_value_that_cannot_be_read_hides_its_key(tmp_path):
    message = bytearray(forge.entry(0, forge.message(1, b"key", b"value")))
    message[-9:-5] = (99).to_bytes(4, "big")
    done = kdump("--compat", "4.2", "--files", write(tmp_path, message), "--print-data-log")
    assert done.returncode == 1
    assert b"valueSize: 99 isValid: false" in done.stdout
    assert b"key: " not in done.stdout
    assert b"the value does not fit" in done.stderr


def test_one_aborted_transaction_of_an_unknown_version_hides_all(tmp_path):
    row = bytes(34)
    path = write(tmp_path, row + b"\1" + row[1:], "00000000000000000000.txnindex")
    done = kdump("--files", path)
    assert (done.returncode, done.stdout.count(b"\n")) == (1, 1)
    assert b"byte 34" in done.stderr
