"""Windowed keys as Kafka Streams 4.3.1 wrote them (``python -m tools.prove.windowed_keys`` compares many)."""

import json
import struct

import pytest

from kdump.rows.redaction import FieldRedactor
from kdump.schemas.decoder import PayloadDecoder
from kdump.schemas.own_layouts import window_of
from kdump.schemas.store import SchemaStore
from testing import forge
from testing.processes import kdump
from tests.helpers import log_dirs
from tests.schemas.test_store import schema, store_of

CUSTOMER = b"customer-15"
START = 1_790_000_000_000 // 60_000 * 60_000
SUFFIX = struct.pack(">qi", START, 0)
OF_STORE = {"type": "time", "startMs": START, "start": "2026-09-21T14:13:00.000Z", "sequence": 0}
SESSION = {
    "type": "session",
    "startMs": 1790000001351,
    "start": "2026-09-21T14:13:21.351Z",
    "endMs": 1790000001351,
    "end": "2026-09-21T14:13:21.351Z",
}
ROW = {"type": "join", "timeMs": 1789999984164, "time": "2026-09-21T14:13:04.164Z", "side": "right"}
STORE_BYTES = "the last 12 bytes: the start of a window and a sequence number"


@pytest.mark.parametrize(
    ("stored", "key", "window", "taken"),
    [
        ("637573746f6d65722d3135000001a0c4501de000000000", CUSTOMER, OF_STORE, STORE_BYTES),
        ("000001a0c4501de000000000", b"", OF_STORE, STORE_BYTES),
        ("8dd7aee4000001a0c4501de000000000", b"\x8d\xd7\xae\xe4", OF_STORE, STORE_BYTES),
        ("0000000000000106000001a0c4501de000000000", b"\0\0\0\0\0\0\x01\x06", OF_STORE, STORE_BYTES),
        (
            "637573746f6d65722d3133000001a0c4502e2400000002",
            b"customer-13",
            OF_STORE | {"startMs": 1789999984164, "start": "2026-09-21T14:13:04.164Z", "sequence": 2},
            STORE_BYTES,
        ),
        (
            "637573746f6d65722d3135000001a0c4507147000001a0c4507147",
            CUSTOMER,
            SESSION,
            "the last 16 bytes: the end and the start of a session",
        ),
        (
            "637573746f6d65722d3135000001a0c4501de0",
            CUSTOMER,
            {"type": "time", "startMs": START, "start": "2026-09-21T14:13:00.000Z"},
            "the last 8 bytes: the start of a window",
        ),
        (
            "000001a0c4502e2400637573746f6d65722d3133",
            b"customer-13",
            ROW,
            "the first 9 bytes: the time and the side of a row without a partner",
        ),
    ],
)
def test_recorded_keys(stored, key, window, taken):
    assert window_of(bytes.fromhex(stored)) == (key, {**window, "taken": taken})


@pytest.mark.parametrize(
    "key",
    [
        b"",
        CUSTOMER,
        b"a key of many more letters than a window has bytes",
        struct.pack(">q", START),  # no key is left
        CUSTOMER + struct.pack(">qi", START, -1),
        CUSTOMER + struct.pack(">qi", 0, 0),  # 1970
        CUSTOMER + struct.pack(">qi", -1, 0),
        CUSTOMER + struct.pack(">qi", 2**62, 0),
        struct.pack(">qb", START, 2) + CUSTOMER,
    ],
)
def test_other_keys_have_no_window(key):
    assert window_of(key) is None


def test_a_session_that_ends_before_its_start_is_none():
    assert window_of(CUSTOMER + struct.pack(">qq", START, START + 1)).window["type"] == "time"


def test_a_cut_key_gives_a_shorter_key_or_no_window():
    stored = CUSTOMER + SUFFIX
    for end in range(len(stored)):
        found = window_of(stored[:end])
        assert found is None or found.window["taken"].startswith("the last 8 bytes")


def test_of_two_layouts_the_time_at_the_end_counts():
    number = 500  # as an upper half of a time it is the year 2038
    assert window_of(struct.pack(">iq", number, START)) == (
        struct.pack(">i", number),
        {
            "type": "time",
            "startMs": START,
            "start": "2026-09-21T14:13:00.000Z",
            "taken": "the last 8 bytes: the start of a window",
        },
    )


AVRO = json.dumps({"type": "record", "name": "K", "fields": [{"name": "id", "type": "long"}]})
AT_END = json.dumps(
    {
        "type": "record",
        "name": "K",
        "fields": [{"name": "id", "type": "long"}, {"name": "at", "type": {"type": "fixed", "name": "T", "size": 12}}],
    }
)
TOPIC = "app-orders-changelog"


def side(decoder, key, topic=TOPIC, headers=()):
    return decoder.side(topic, "key", key, headers)


def test_a_key_with_a_schema_is_decoded_without_its_window():
    decoder = PayloadDecoder(store_of(schema(f"{TOPIC}-key", 1, 7, AVRO), schema("at-end-key", 1, 8, AT_END)))
    framed = b"\0\0\0\0\7\x54"
    found = side(decoder, framed + SUFFIX)
    assert found["data"] == {"id": 42}
    assert "problem" not in found
    assert found["window"] == {**OF_STORE, "taken": STORE_BYTES}
    assert side(decoder, framed + SUFFIX, topic="orders")["problem"] == "trailing-bytes"
    assert "window" not in side(decoder, framed)
    whole = side(decoder, b"\0\0\0\0\x08\x54" + SUFFIX)  # its schema takes the bytes of the time
    assert whole["data"]["id"] == 42
    assert "window" not in whole
    missing = side(decoder, b"\0\0\0\0\x09\x54" + SUFFIX)
    assert (missing["problem"], missing["window"]["startMs"]) == ("schema-missing", START)
    assert PayloadDecoder(SchemaStore(), ("avro",)).side(TOPIC, "key", CUSTOMER + SUFFIX) is None


def test_keys_without_a_schema_are_text_or_base64():
    decoder = PayloadDecoder(SchemaStore())
    assert side(decoder, CUSTOMER + SUFFIX)["data"] == "customer-15"
    found = side(decoder, b"\xff\xfe\0\1" + SUFFIX)
    assert (found["data"], found["encoding"]) == ("//4AAQ==", "base64")
    assert side(decoder, CUSTOMER + SUFFIX, topic="orders") is None
    assert decoder.side(TOPIC, "value", CUSTOMER + SUFFIX) is None
    assert side(decoder, None) is None


def test_the_commands_show_windows(tmp_path):
    records = [(CUSTOMER + SUFFIX, b"1"), (b"\0\0\0\0\7\x54" + SUFFIX, b"2"), (b"plain", b"3")]
    made = [forge.record(*pair, offset=offset) for offset, pair in enumerate(records)]
    log_dirs.write(tmp_path, f"{TOPIC}-0", {0: forge.batch(made, count=3)})
    log_dirs.write(tmp_path, "_schemas-0", {0: forge.batch([forge.record(*schema(f"{TOPIC}-key", 1, 7, AVRO))])})
    done = kdump("dump", tmp_path, "--topic", TOPIC, "-o", "jsonl", "--decode", "auto")
    assert (done.returncode, done.stderr) == (0, b"")
    sides = [(json.loads(line).get("decoded") or {}).get("key") for line in done.stdout.splitlines()]
    assert [each and each["data"] for each in sides] == ["customer-15", {"id": 42}, None]
    assert sides[0]["window"] == sides[1]["window"] == {**OF_STORE, "taken": STORE_BYTES}
    got = kdump("get", f"{TOPIC}-0@0", "--in", tmp_path, "--decode", "auto")
    assert OF_STORE["start"].encode() in got.stdout
    found = kdump("dump", tmp_path, "--topic", TOPIC, "-o", "jsonl", "--decode", "auto", "--key", "customer-15")
    assert [json.loads(line)["offset"] for line in found.stdout.splitlines()] == [0]


def test_redaction_of_fields_hides_the_application_s_key():
    redactor = FieldRedactor(b"secret", ("value.email",))
    part = PayloadDecoder(SchemaStore()).side(TOPIC, "key", CUSTOMER + SUFFIX)
    assert redactor._side("key", part)["data"] == redactor.hash(CUSTOMER)
