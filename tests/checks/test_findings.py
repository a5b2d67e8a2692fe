import copy
import pickle

import pytest

from kdump.errors import DamageError, brief, quoted
from kdump.findings import Finding, Level, status
from kdump.findings.codes import CODES, Code
from kdump.findings.verdict import verdict


def of(level, **fields):
    return Finding(level=level, file="a.log", kind="gap", text="t", **fields)


def test_the_worst_level_decides_the_exit_status():
    note, derived, log = map(of, Level)
    assert status([]) == status([note]) == 0
    assert status([note, derived]) == 4
    assert status([derived, log, note]) == 3


def test_a_start_that_fails_or_loses_is_no_matter_of_rebuilding():
    for grave in ({"fatal": True}, {"missing": 0}, {"loses": 5}):
        assert status([of(Level.DERIVED), of(Level.DERIVED, **grave)]) == 3


def test_a_remark_is_nothing_wrong():
    assert [Finding(level=level, file="a.log", kind="k", text="t").is_remark for level in Level] == [True, False, False]


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        (None, None),
        (7, 7),
        ("", ""),
        ("x" * 100, "x" * 100),
        ("x" * 101, "x" * 60 + "... (101 characters)"),
        (10**200, "1" + "0" * 59 + "... (201 characters)"),
        (["a" * 200], "['" + "a" * 58 + "... (204 characters)"),
        ("\0" * 1358, "1358 zero bytes"),
        ("\0", "1 zero byte"),
    ],
)
def test_values_are_reported_in_a_readable_length(value, reported):
    damage = DamageError("kind", "it is wrong", expected=value, found=value)
    assert brief(value) == damage.found == damage.expected == reported
    for same in (damage.at(7), copy.copy(damage), pickle.loads(pickle.dumps(damage))):
        assert same.found == reported
    if isinstance(value, str):
        finding = Finding(level=Level.LOG, file="a.log", kind="k", text="t", expected=value, found=value)
        assert finding.found == finding.expected == reported


def test_texts_stand_between_quotes():
    assert [quoted(value) for value in ("a b", "", None, "\0\0")] == ["'a b'", "''", "None", "2 zero bytes"]
    assert quoted("\x01" * 40) == "'" + "\\x01" * 14 + "\\x0... (40 characters)"


def test_a_copy_of_a_code_is_the_code():
    for code in (Code.GAP, Code.PROMOTED):
        assert pickle.loads(pickle.dumps(code)) is code
        assert copy.deepcopy(code) is code
    assert len(set(CODES)) == len(CODES)


def test_the_verdict_names_damage_before_gaps():
    gap = Finding(level=Level.LOG, file="a/1.log", kind=Code.GAP, text="offset 5 is missing")
    crc = Finding(level=Level.LOG, file="a/2.log", kind="crc", text="the checksum is wrong")
    assert verdict([gap, crc]).text == (
        "DO NOT START the broker yet: 1 log file is damaged: a/2.log: the checksum is wrong"
    )
    assert verdict([gap]).text.startswith("the broker starts, but offsets are missing")
