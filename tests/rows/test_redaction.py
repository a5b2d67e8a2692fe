"""A secret, planted wherever a log can contain one, is in no output with hidden payloads."""

from __future__ import annotations

import base64
import os
import struct
import sys

import pytest

from kdump import cli
from kdump.primitives import compression
from testing import forge
from testing.processes import kdump

SECRET = b"SeCrEt-7f3a9"
LOG = "00000000000000000000.log"
FORMS = [["-o", form] for form in ("text", "jsonl", "json", "csv", "table")]
HIDDEN = {"--no-payload": FORMS, "--redact": [*FORMS, ["-o", "raw"], ["-f", "%k %s %h\\n"]]}


def planted(folder):
    """A partition with the secret in valid batches, and in every kind of damage."""
    record = forge.record(SECRET, SECRET * 3, headers=[(b"h", SECRET)])
    body = bytes(forge.batch([record]))
    wrong_crc = bytearray(forge.batch([record], base_offset=1))
    wrong_crc[17] ^= 1
    broken = forge.record(SECRET, SECRET)[:-4] + b"\x7f\xff\xff\xff"
    entries = [
        body,
        bytes(wrong_crc),
        forge.batch([record], base_offset=2, attributes=compression.GZIP, payload=SECRET),
        forge.batch([], base_offset=3, count=1, payload=broken),
        forge.batch([], base_offset=4, count=2, last_offset_delta=1, payload=record),
        SECRET * 9,
        forge.batch([record], base_offset=6),
        forge.batch([record], base_offset=7)[:-5],
    ]
    folder.mkdir()
    (folder / LOG).write_bytes(b"".join(entries))
    return folder


def shown(data):
    """Return whether an output contains the secret, in any form in which kdump writes bytes."""
    as_base64 = {base64.b64encode(b"x" * lead + SECRET)[4:-4] for lead in range(3)}
    return any(form in data for form in {SECRET, SECRET.hex().encode(), SECRET.hex(" ").encode(), *as_base64})


@pytest.mark.parametrize("option", HIDDEN)
@pytest.mark.parametrize("damaged", [[], ["--include-damaged"]], ids=["sound", "damaged"])
def test_no_form_of_a_dump_shows_it(tmp_path, monkeypatch, option, damaged):
    monkeypatch.setitem(os.environ, "KDUMP_REDACT_KEY", "0123456789")
    folder = planted(tmp_path / "t-0")
    for form in FORMS if damaged else HIDDEN[option]:
        assert shown(kdump("dump", folder, *damaged, *form).stdout), form
        done = kdump("dump", folder, option, *damaged, *form)
        assert done.stdout, form
        assert done.returncode == 3
        assert not shown(done.stdout + done.stderr), form


@pytest.mark.parametrize("more", [["-o", "raw"], ["-f", "%k"], ["-o", "csv", "--fields", "offset,key"]])
def test_forms_that_choose_payloads_themselves_do_not_go_with_no_payload(tmp_path, more):
    done = kdump("dump", planted(tmp_path / "t-0"), "--no-payload", *more)
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("form", [["--hexdump"], ["-o", "text", "--batch"], ["-o", "jsonl"]], ids=lambda form: form[-1])
def test_get_shows_none_of_it(tmp_path, monkeypatch, form):
    monkeypatch.setitem(os.environ, "KDUMP_REDACT_KEY", "0123456789")
    planted(tmp_path / "t-0")
    place = ("t-0@1", "--in", tmp_path, *form)
    assert shown(kdump("get", *place).stdout)
    for option in HIDDEN:
        done = kdump("get", *place, option)
        assert (b"hmac-sha256:" in done.stdout) == (option == "--redact")
        assert not shown(done.stdout + done.stderr)


GET = [[*form, *more] for form in (["--hexdump"], ["-o", "text"], ["-o", "jsonl"]) for more in ([], ["--batch"])]


@pytest.mark.parametrize("form", GET, ids=" ".join)
@pytest.mark.parametrize("option", HIDDEN)
def test_get_shows_none_of_it_at_any_offset(tmp_path, monkeypatch, capfdbinary, form, option):
    monkeypatch.setitem(os.environ, "KDUMP_REDACT_KEY", "0123456789")
    planted(tmp_path / "t-0")
    statuses = set()
    for offset in range(8):
        monkeypatch.setattr(sys, "argv", ["kdump", "get", f"t-0@{offset}", "--in", str(tmp_path), *form, option])
        statuses.add(cli.main())
        seen = capfdbinary.readouterr()
        assert seen.out or seen.err
        assert not shown(seen.out + seen.err), offset
    assert statuses == {3}


@pytest.mark.parametrize("form", FORMS[1:], ids=lambda form: form[-1])
def test_what_kafka_itself_writes_is_decoded_to_none_of_it(tmp_path, monkeypatch, capfdbinary, form):
    """A group, its topic, and the metadata of an offset also count as payload."""
    monkeypatch.setitem(os.environ, "KDUMP_REDACT_KEY", "0123456789")
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    text = struct.pack(">h", len(SECRET)) + SECRET
    key = struct.pack(">h", 1) + text + text + struct.pack(">i", 0)
    value = struct.pack(">hqi", 3, 42, -1) + text + struct.pack(">q", 7)
    (folder / LOG).write_bytes(forge.batch([forge.record(key, value), forge.record(key, value[:-3], offset=1)]))
    for more, status in ([], 0), (["--no-payload"], 0), (["--redact"], 2):
        monkeypatch.setattr(sys, "argv", ["kdump", "dump", str(folder), "--decode", "auto", *form, *more])
        assert cli.main() == status
        seen = capfdbinary.readouterr()
        assert bool(seen.out) == (status == 0)
        assert shown(seen.out + seen.err) == (not more)


def test_a_hexdump_of_old_messages_shows_none_of_it(tmp_path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    message = forge.message(1, SECRET, SECRET)
    (folder / LOG).write_bytes(forge.entry(0, message) + forge.wrapper(1, 1, [(0, message)]))
    for offset, place in {0: b" 0000001e", 1: b"+0000001e"}.items():
        assert shown(kdump("get", f"t-0@{offset}", "--in", folder, "--hexdump").stdout)
        done = kdump("get", f"t-0@{offset}", "--in", folder, "--hexdump", "--no-payload")
        assert place + b" " in done.stdout
        assert not shown(done.stdout + done.stderr)


COMMANDS = [["check"], ["check", "--json", "--remarks"], ["verify-index"], ["dump", "--batches"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_that_print_no_records_show_none_of_it(tmp_path, command):
    done = kdump(*command, planted(tmp_path / "t-0"))
    assert done.stdout
    assert not shown(done.stdout + done.stderr)


@pytest.mark.parametrize("command", ["salvage", "slice", "rebuild-index"])
def test_what_writing_commands_say_shows_none_of_it(tmp_path, command):
    folder, out = planted(tmp_path / "t-0"), tmp_path / "out"
    more = {"slice": ["--offset", "0.."]}.get(command, [])
    done = kdump(command, folder / LOG, "--out", out, *more)
    assert done.returncode == 3
    account = out / "lost+found" / "t-0" / "account.json"
    assert command != "salvage" or b"missingOffsets" in account.read_bytes()
    assert not shown(done.stdout + done.stderr + (account.read_bytes() if account.exists() else b""))
