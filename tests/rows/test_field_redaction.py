"""With --redact FIELD, a secret in a field of a payload is in no output, in any form of the payload."""

import base64
import json
import os
import random
import struct

import pytest

from kdump.rows.redaction import HIDDEN_REASON, FieldRedactor
from testing import forge
from testing.processes import kdump
from tests.helpers import log_dirs
from tests.rows.test_redaction import SECRET, shown
from tests.schemas.test_store import schema

ENV = os.environ | {"KDUMP_REDACT_KEY": "0123456789"}
OF_SECRET = FieldRedactor(b"0123456789", ()).hash(SECRET)
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Person",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "email", "type": ["null", "string"]},
            {"name": "raw", "type": "bytes"},
            {
                "name": "lines",
                "type": {
                    "type": "array",
                    "items": {"type": "record", "name": "Line", "fields": [{"name": "owner", "type": "string"}]},
                },
            },
        ],
    }
)
PROTO = """syntax = "proto3";
message Person { int64 id = 1; string email = 2; Other other = 3; }
message Other { string email = 1; }"""
FIELDS = ",".join(
    f"{side}.{name}" for side in ("key", "value") for name in ("email", "raw", "lines.owner", "other.email")
)


def text(data):
    return forge.varint(len(data)) + data


def avro(email, number=7):
    return b"\0\0\0\0\1" + forge.varint(number) + b"\2" + text(email) + text(email) + b"\2" + text(email) + b"\0"


def proto(email):
    field = bytes([0x12, len(email)]) + email
    return b"\0\0\0\0\2\0" + b"\x08\x07" + field + bytes([0x1A, len(email) + 2, 0x0A, len(email)]) + email


def as_json(email):
    return b"\0\0\0\0\3" + json.dumps({"id": 7, "email": email.decode()}).encode()


VALID = [avro(SECRET), proto(SECRET), as_json(SECRET)]
BROKEN = [
    avro(SECRET)[:-3],
    avro(SECRET) + SECRET,
    b"\0\0\0\0\1" + b"\x0e\x0c" + SECRET,
    proto(SECRET)[:-3],
    b"\0\0\0\0\3{" + SECRET,
    b"\0" + SECRET,
    b"\0\0\0\0\x09" + SECRET,
    b"Obj\1" + SECRET,
    b"Obj\1\2\x16avro.schema" + text(b'"' + SECRET + b'"') + b"\0" + bytes(16),
    SECRET,
]


@pytest.fixture
def logs(tmp_path_factory):
    """A log dir with three schemas, the secret in every kind of payload, in keys and in headers."""
    tmp_path = tmp_path_factory.mktemp("logs")
    registry = [
        schema(f"t-{name}", number, number, what, **({} if kind is None else {"schemaType": kind}))
        for number, (name, what, kind) in enumerate(
            [("value", AVRO, None), ("proto", PROTO, "PROTOBUF"), ("json", "true", "JSON")], 1
        )
    ]
    versions = [forge.record(*pair, offset=offset) for offset, pair in enumerate(registry)]
    log_dirs.write(tmp_path, "_schemas-0", {0: forge.batch(versions, count=len(versions))})
    guid = [(b"__value_schema_id", b"\1" + SECRET.ljust(16, b"!")), (b"h", SECRET)]
    records = [(key, value, ()) for value in [*VALID, *BROKEN] for key in (value, b"k", None)]
    records += [(avro(SECRET), SECRET, guid), (SECRET, None, ())]
    made = [
        forge.record(key, value, offset=offset, headers=headers) for offset, (key, value, headers) in enumerate(records)
    ]
    log_dirs.write(tmp_path, "t-0", {0: forge.batch(made, count=len(made))})
    consumed = struct.pack(">h", len(SECRET)) + SECRET
    key = struct.pack(">h", 1) + consumed + consumed + struct.pack(">i", 0)
    value = struct.pack(">hqi", 3, 42, -1) + consumed + struct.pack(">q", 7)
    body = [forge.record(key, value), forge.record(key, value[:-3], offset=1)]
    log_dirs.write(tmp_path, "__consumer_offsets-0", {0: forge.batch(body, count=2)})
    return tmp_path


CONSUMED = ["key.group", "key.topic", "value.metadata"]
TEXTS = [
    *(["-o", form] for form in ("jsonl", "json", "csv", "table", "text")),
    *(["-o", form, "--fields", "offset,value.email,value.lines,key,value"] for form in ("jsonl", "csv", "table")),
    *(["-o", form, "--encoding", way] for form in ("jsonl", "csv") for way in ("hex", "base64", "json")),
    ["-o", "arrow"],
    ["-o", "arrow", "--fields", "value.email,key.email,decoded,headers"],
    ["-o", "jsonl", "--head", "5"],
    ["-o", "jsonl", "--color", "always", "--grep", "S"],
    *([*form, "--grep", "."] for form in (["-o", "text"], ["-o", "raw"], ["-f", "%k %s %h\\n"])),
]


@pytest.mark.parametrize(
    ("form", "env"),
    [*((form, ENV) for form in TEXTS), *((form, ENV | {"KDUMP_KERNEL": "off"}) for form in TEXTS[:4])],
    ids=lambda given: " ".join(given) if isinstance(given, list) else given.get("KDUMP_KERNEL", ""),
)
def test_no_form_of_a_dump_shows_a_redacted_field(logs, form, env):
    if "arrow" not in form:
        assert shown(kdump("dump", logs, "--topic", "t", "--decode", "auto", *form, env=env).stdout)
    done = kdump("dump", logs, "--topic", "t", "--decode", "auto", "--redact", FIELDS, *form, env=env)
    assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr
    assert not shown(done.stdout + done.stderr)
    assert b"hmac-sha256:" in done.stdout


def test_a_file_of_columns_has_hashes(logs, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "out.parquet"
    done = kdump(
        *("dump", logs, "--topic", "t", "--decode", "auto", "--redact", FIELDS, "-o", "parquet", "--out", out), env=ENV
    )
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(out).to_pylist()
    assert not shown(repr(rows).encode())
    assert json.loads(rows[0]["decoded"])["value"]["data"]["email"] == OF_SECRET
    assert rows[0]["value"].startswith(b"hmac-sha256:")


@pytest.mark.parametrize("form", ["text", "jsonl", "table"])
def test_get_shows_none_of_it(logs, form):
    for offset in range(0, 41, 3):
        place = ("get", f"t-0@{offset}", "--in", logs, "-o", form, "--decode", "auto")
        done = kdump(*place, "--redact", FIELDS, env=ENV)
        assert done.returncode == 0
        assert not shown(done.stdout + done.stderr)
        assert b"hmac-sha256:" in done.stdout
        if offset == 0:
            assert OF_SECRET[:20].encode() in done.stdout


def test_sql_shows_none_of_it(logs):
    pytest.importorskip("duckdb")
    query = "select decoded, key, value, headers from records where topic = 't'"
    for form in ("jsonl", "arrow"):
        redact = f"{FIELDS},value.emial"
        done = kdump("sql", query, logs, "--decode", "auto", "-o", form, "--redact", redact, env=ENV)
        assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr
        assert not shown(done.stdout + done.stderr)
        assert OF_SECRET.encode() in done.stdout
        assert b"no record has the field value.emial of --redact" in done.stderr


def test_words_of_kafkas_own_topics_are_redacted(logs):
    redact = ("--decode", "auto", "--redact", ",".join(CONSUMED), "-o", "jsonl")
    done = kdump("dump", logs, "--topic", "__consumer_offsets", *redact, env=ENV)
    assert not shown(done.stdout + done.stderr)
    first, second = (json.loads(line)["decoded"] for line in done.stdout.splitlines())
    assert first["value"]["data"] == {"offset": 42, "leaderEpoch": -1, "metadata": OF_SECRET, "commitTimestamp": 7}
    assert second["value"]["reason"] == HIDDEN_REASON


def test_other_fields_are_shown_and_the_stored_bytes_hashed_whole(logs):
    done = kdump(
        *("dump", logs, "--topic", "t", "--decode", "auto", "--redact", "value.email", "--limit", "1", "-o", "jsonl"),
        env=ENV,
    )
    line = json.loads(done.stdout)
    assert line["decoded"]["value"]["data"] == {
        "id": -4,
        "email": OF_SECRET,
        "raw": base64.b64encode(SECRET).decode(),
        "lines": [{"owner": SECRET.decode()}],
    } | {"id": line["decoded"]["value"]["data"]["id"]}
    assert line["key"] == line["value"] == FieldRedactor(b"0123456789", ()).hash(VALID[0])


def test_a_field_that_no_record_had_is_reported_also_in_quiet(logs):
    def said(*fields):
        words = ("--redact", ",".join(fields), "-q", "-o", "csv")
        return kdump("dump", logs, "--topic", "t", "--decode", "auto", *words, env=ENV).stderr.decode()

    assert said("value.email", "key.email") == ""
    assert said("value.emial", "value.email") == (
        "warning: no record has the field value.emial of --redact: if the name is misspelled, values are not hashed\n"
    )


@pytest.mark.parametrize("payload", VALID, ids=["avro", "protobuf", "json"])
def test_payloads_that_are_cut_or_changed_show_nothing(logs, payload):
    """A changed byte may turn a field into another one, so the text of named fields is hidden then, too."""
    random.seed(53)
    payloads = [payload[:end] for end in range(len(payload))]
    for _ in range(60):
        wrong = bytearray(payload)
        wrong[random.randrange(5)] = random.randrange(4)
        payloads.append(bytes(wrong) + b"\0" * random.randrange(2))
    records = [forge.record(one, one, offset=offset) for offset, one in enumerate(payloads)]
    log_dirs.write(logs, "cut-0", {0: forge.batch(records, count=len(records))})
    for form in ("jsonl", "table"):
        done = kdump(
            *("dump", logs, "--topic", "cut", "--decode", "auto", "--redact", FIELDS, "-o", form),
            env=ENV | {"COLUMNS": "400"},
        )
        assert done.returncode == 0
        assert not shown(done.stdout + done.stderr)


def within(value, path):
    """Return a value with X instead of each hash at a path, and whether the path exists."""
    made, is_there = FieldRedactor(b"0123456789", ())._within(value, tuple(path.split(".")))  # the walk alone
    return json.loads(json.dumps(made), object_hook=None), is_there


def marked(value):
    if isinstance(value, dict):
        return {name: marked(one) for name, one in value.items()}
    if isinstance(value, list):
        return [marked(one) for one in value]
    return "X" if isinstance(value, str) and value.startswith("hmac-sha256:") else value


@pytest.mark.parametrize(
    ("path", "value", "wanted", "is_there"),
    [
        ("a", {"a": "s", "b": 1}, {"a": "X", "b": 1}, True),
        ("a", {"a": {"b": ["s"]}}, {"a": "X"}, True),
        ("a", {"a": None}, {"a": None}, True),
        ("a", {"a": ""}, {"a": "X"}, True),
        ("a", {"a": 0}, {"a": "X"}, True),
        ("a", {"b": 1}, {"b": 1}, False),
        ("a", None, None, False),
        ("a.b", {"a": None}, {"a": None}, False),
        ("a.b", {"a": {"b": "s", "c": 1}, "b": 2}, {"a": {"b": "X", "c": 1}, "b": 2}, True),
        ("a.b", {"a": "s"}, {"a": "X"}, False),
        ("a.b", {"a.b": "s", "a": {"b": "s"}}, {"a.b": "X", "a": {"b": "X"}}, True),
        ("a.b", {"a": [{"b": "s"}, {"b": "s", "c": 1}]}, {"a": [{"b": "X"}, {"b": "X", "c": 1}]}, True),
        ("a.0", {"a": ["s", "t"]}, {"a": ["X", "t"]}, True),
        ("a.1.b", {"a": [{"b": 1}, {"b": "s"}]}, {"a": [{"b": 1}, {"b": "X"}]}, True),
        ("a.1", {"a": ["s"]}, {"a": ["s"]}, False),
        ("a.0", {"a": [{"0": "s", "b": 1}, {"0": "s", "b": 1}]}, {"a": ["X", {"0": "X", "b": 1}]}, True),
        ("a.*.b", {"a": {"x": {"b": "s"}, "y": {"c": 1}}}, {"a": {"x": {"b": "X"}, "y": {"c": 1}}}, True),
        ("a.*", {"a": ["s", {"b": 1}, None]}, {"a": ["X", "X", None]}, True),
        ("a.b", {"a": {"@type": "T", "value": "s"}}, {"a": {"@type": "T", "value": "X"}}, False),
        ("a.b", [{"a": {"b": "s"}}, {"a": {"c": 1}}], [{"a": {"b": "X"}}, {"a": {"c": 1}}], True),
        ("a", "s", "X", False),
        ("a.b", {"a": ["s", 1]}, {"a": ["X", "X"]}, False),
    ],
)
def test_paths(path, value, wanted, is_there):
    before = json.dumps(value)
    made, found = within(value, path)
    assert (marked(made), found) == (wanted, is_there)
    assert json.dumps(value) == before


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--redact", "value.email"], b"--redact value.email is a field of a decoded payload: add --decode auto"),
        (["--redact", "value.email,name", "--decode", "auto"], b"--redact name: a field is value.NAME or key.NAME"),
        (["--redact=email"], b"--redact email: a field is value.NAME or key.NAME"),
        (["--redact=email", "--decode", "auto"], b"--redact email: a field is value.NAME or key.NAME"),
        (["--redact", "--decode", "auto"], b"with --decode name the fields, such as --redact value.email"),
        (["--redact", "value.email", "--redact", "--decode", "auto"], b"--redact hashes whole payloads"),
        (["--redact", "value.email", "--decode", "auto", "--jobs", "2"], b"cannot be combined with --jobs above 1"),
        (["--redact", "value.email", "--decode", "auto", "-o", "arrow", "--subject", "t-value"], b"cannot hold a hash"),
        (["-o", "arrow", "--redact"], b"--redact cannot be combined with -o arrow"),
    ],
)
def test_what_does_not_go_together(logs, more, says):
    done = kdump("dump", "-o", "jsonl", *more, logs, "--topic", "t", env=ENV)
    assert (done.returncode, done.stdout) == (2, b"")
    assert says in done.stderr


def test_redact_alone_does_not_take_the_path(logs):
    """A word after it is a field only if it looks like one, and no such file exists."""
    for words in (["--redact", logs], [logs, "--redact"], ["--redact", "--", logs]):
        done = kdump("dump", "-o", "jsonl", *words[:1], *words[1:], env=ENV)
        assert done.returncode == 0, done.stderr
        assert b"hmac-sha256:" in done.stdout
    (logs / "value.log").write_bytes((logs / "t-0" / "00000000000000000000.log").read_bytes())
    done = kdump("dump", "--redact", "value.log", "-o", "jsonl", env=ENV, cwd=logs)
    assert (done.returncode, b"hmac-sha256:" in done.stdout) == (0, True)
    assert not shown(done.stdout)
    done = kdump("dump", logs, "--topic", "t", "--redact=value.email", "--decode", "auto", "-o", "jsonl", env=ENV)
    assert OF_SECRET.encode() in done.stdout
