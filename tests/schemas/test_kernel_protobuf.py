import random

import pytest

from kdump import kernel
from kdump.printers.json_text import quote, scalar
from kdump.rows.columns import DECODED
from kdump.schemas import UndecodableError
from kdump.schemas.protobuf import ProtobufReader
from tests.schemas.test_protobuf import NULL_PAYLOADS, NULLS, PROTO2, SCHEMA, fill, messages

pytestmark = pytest.mark.skipif(not kernel.COMPILED, reason="the kernel is not compiled")

PLAIN = """
syntax = "proto3";
package plain;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
enum Level { LEVEL_NONE = 0; LEVEL_HIGH = 1; LEVEL_LOW = -3; }
message All {
  int32 a = 1; int64 b = 2; uint32 c = 3; uint64 d = 4; sint32 e = 5; sint64 f = 6;
  fixed32 g = 7; fixed64 h = 8; sfixed32 i = 9; sfixed64 j = 10;
  float k = 11; double l = 12; bool m = 13; string n = 14; bytes o = 15; Level level = 16;
  repeated int32 many = 17; repeated string texts = 18; repeated All all = 19; repeated Level levels = 20;
  repeated double doubles = 21 [packed = false];
  map<string, int64> by = 22; map<int32, All> of = 23; map<bool, Level> flags = 24; map<uint64, bytes> wide = 25;
  All one = 26; oneof pick { int32 first = 27; string second = 28; All third = 29; }
  optional int32 maybe = 30; google.protobuf.Timestamp at = 31; google.protobuf.Duration took = 32;
  google.protobuf.Int64Value wrapped = 33; google.protobuf.BytesValue blob = 34; google.protobuf.FloatValue real = 35;
  optional string far = 300000;
}
"""
CASES = [(PLAIN, "plain.All"), (SCHEMA, "shop.Order"), (PROTO2, "old.A")]


class Both:
    """Reads a message with the kernel and with the general path."""

    def __init__(self, text, name):
        from kdump.schemas.kernel_tables import protobuf_text  # needs the kernel

        self.reader = ProtobufReader(text)
        self.writer = protobuf_text(self.reader.find(name), b"\2\0", quote)

    def general(self, payload):
        """Return the general path's JSON, or None if something is wrong or unknown."""
        try:
            found = self.reader.read(payload, 0, [0])
        except UndecodableError:
            return None
        return None if found.unknown_fields else scalar(DECODED, found.value).encode()

    def compare(self, payload):
        """Assert that the kernel writes the same as the general path, or nothing; return whether it wrote."""
        made = self.writer.text(b"frame\2\0" + payload, 5)
        assert made is None or made == self.general(payload), payload.hex()
        return made is not None


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case[1])
def case(request):
    text, name = request.param
    rng = random.Random(name)
    kind = messages(text, name)[0]
    made = []
    for _ in range(150):
        message = kind()
        fill(rng, message)
        made.append(message.SerializePartialToString())
    return Both(text, name), made, rng


def test_random_messages(case):
    both, payloads, _ = case
    written = sum(map(both.compare, payloads))
    assert written or b"1" not in payloads


def test_most_messages_of_common_fields_are_written():
    kind = messages(PLAIN, "plain.All")[0]
    both, rng = Both(PLAIN, "plain.All"), random.Random(4)
    written = 0
    for _ in range(100):
        message = kind()
        fill(rng, message)
        for field in ("k", "l", "doubles"):  # infinities are left to the general path
            message.ClearField(field)
        for inner in (message.one, message.third, *message.all, *message.of.values()):
            inner.Clear()
        message.at.FromMilliseconds(rng.randrange(10**12))
        message.took.FromNanoseconds(rng.randrange(10**15))
        written += both.compare(message.SerializeToString())
    assert written >= 60


@pytest.mark.parametrize(
    "value", [0.1, 80836.61, 3.4028235e38, 1e-45, -0.0, 16777216.0, 1.17549435e-38, 123456.789, 5e-324, 1e22]
)
def test_floating_point_numbers(value):
    kind = messages(PLAIN, "plain.All")[0]
    assert Both(PLAIN, "plain.All").compare(kind(k=value, l=value).SerializeToString())


@pytest.mark.parametrize(
    ("seconds", "nanos"),
    [
        (0, 1),
        (-1, 0),
        (-62135596800, 0),
        (253402300799, 999_999_999),
        (253402300800, 0),
        (5, 1_000_000_000),
        (7, 5_000),
    ],
)
def test_times_at_their_ends(seconds, nanos):
    kind = messages(PLAIN, "plain.All")[0]
    message = kind()
    message.at.seconds, message.at.nanos = seconds, nanos
    message.took.seconds, message.took.nanos = seconds, nanos
    both = Both(PLAIN, "plain.All")
    both.compare(message.SerializeToString())
    message.ClearField("at")
    assert both.compare(message.SerializeToString()) == (nanos < 1_000_000_000 and abs(seconds) <= 315_576_000_000)


def test_other_indexes_are_left_to_the_general_path():
    both = Both(PLAIN, "plain.All")
    assert both.writer.text(b"frame\2\2\x08\1", 5) is None
    assert both.writer.text(b"frame\2", 5) is None
    assert both.writer.text(b"frame\2\0\x08\1", 5) is not None


@pytest.mark.parametrize(
    "payload",
    [
        bytes([8, 1, 8, 2]),  # twice
        bytes([0xD8, 1, 1, 0xE2, 1, 0]),  # two of a oneof
        bytes([0xB2, 1, 4, 10, 0, 16, 1, 0xB2, 1, 4, 10, 0, 16, 2]),  # a key of a map twice
        bytes([0x80, 0x80, 0, 1]),  # no field
        bytes([0x90, 3, 1]),  # an unknown field
        bytes([8]) + bytes([0x80]) * 10,
        bytes([8]) + bytes([0xFF]) * 9 + b"\x7f",  # more than 64 bits..
        bytes([0x8A, 1, 3, 1, 2, 0x80]),  # a packed number that ends early..
        bytes([0x8A, 1, 2, 1, 2, 0x88, 1, 3]),  # packed and not
        bytes([0x82, 1, 5]),  # a wrong wire type..
        bytes([0x80, 1, 0xFD, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]),  # an enum of -3
        bytes([0x80, 1, 9]),  # an enum's unknown number
        bytes([114, 2, 0xC3, 0x28]),  # no UTF-8
        bytes([0xC2, 1, 2, 8, 1]),  # an entry without a value
        bytes([0xBA, 1, 0]),  # an entry without anything
    ],
    ids=bytes.hex,
)
def test_what_is_odd(payload):
    Both(PLAIN, "plain.All").compare(payload)


def test_messages_cut_and_mutated(case):
    both, payloads, rng = case
    short = sorted(payloads, key=len)[:60]
    for payload in short[40:43]:
        for end in range(len(payload)):
            both.compare(payload[:end])
            both.compare(payload + payload[:end])
    for _ in range(1500):
        changed = bytearray(rng.choice(short) or b"\0")
        for _ in range(rng.randrange(1, 3)):
            changed[rng.randrange(len(changed))] = rng.choice((0, 1, 8, 10, 127, 128, 255, rng.randrange(256)))
        both.compare(bytes(changed))


def test_messages_that_are_nested_deep():
    payload = b""
    for _ in range(45):
        payload = b"\xd2\1" + bytes([len(payload) & 127 | 128, len(payload) >> 7]) + payload
    both = Both(PLAIN, "plain.All")
    assert both.compare(payload)
    for _ in range(80):
        payload = b"\xd2\1" + bytes([len(payload) & 127 | 128, len(payload) >> 7]) + payload
        both.compare(payload)


def test_null_values_of_any_number():
    both = Both(NULLS, "m.M")
    for payload in NULL_PAYLOADS:
        both.compare(bytes.fromhex(payload))
