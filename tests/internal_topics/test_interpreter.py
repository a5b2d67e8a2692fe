"""Reading and writing messages: every schema in every version, written and read again, and truncated everywhere."""

import struct as packing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdump.internal_topics.interpreter import UNKNOWN_TAGS, PayloadError, Reader, read, read_fields, write
from kdump.internal_topics.schema import defaults, parse
from tests.internal_topics.test_schema import MESSAGES

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def layouts():
    """Return each different layout of each message: (name and version, struct)."""
    seen = set()
    for message in MESSAGES.values():
        for release in message.releases():
            versions = message.versions(release)
            if versions is None:
                continue
            for version in range(versions.lowest, versions.highest + 1):
                schema = message.struct(version, release)
                if (message.name, repr_of(schema)) not in seen:
                    seen.add((message.name, repr_of(schema)))
                    yield f"{message.name} v{version} {'.'.join(map(str, release))}", schema


def repr_of(schema):
    return schema.flexible, tuple(
        (slot.name, slot.type, slot.array, slot.compact, slot.nullable, slot.tag, slot.struct and repr_of(slot.struct))
        for slot in schema.slots
    )


LAYOUTS = dict(layouts())


def values_of(schema):
    return st.fixed_dictionaries({slot.name: value_of(slot) for slot in schema.slots})


def value_of(slot):
    one = values_of(slot.struct) if slot.struct else scalar(slot.type)
    some = st.lists(one, max_size=2) if slot.array else one
    return st.none() | some if slot.nullable else some


def scalar(kind):
    if kind in BITS:
        half = 1 << BITS[kind] - 1
        return st.integers(-half, half - 1)
    return {
        "uint16": st.integers(0, 0xFFFF),
        "uint32": st.integers(0, 0xFFFFFFFF),
        "float64": st.floats(allow_nan=False),
        "bool": st.booleans(),
        "uuid": st.binary(min_size=16, max_size=16),
        "string": st.text(max_size=5),
        "bytes": st.binary(max_size=5),
        "records": st.binary(max_size=5),
    }[kind]


def read_all(schema, data):
    reader = Reader(data)
    values = read(schema, reader)
    assert not reader.remaining
    return values


def test_every_message_has_a_layout_here():
    assert {name.split()[0] for name in LAYOUTS} == set(MESSAGES)


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=6, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_written_is_read_again_and_no_cut_goes_unnoticed(name, data):
    schema = LAYOUTS[name]
    values = data.draw(values_of(schema))
    written = write(schema, values)
    assert read_all(schema, written) == values
    for end in range(len(written)):
        with pytest.raises(PayloadError) as caught:
            read(schema, Reader(written[:end]))
        assert caught.value.position <= end
        assert str(caught.value.within(name)).startswith(name)


@pytest.mark.parametrize("name", LAYOUTS)
def test_defaults_are_written_and_read(name):
    schema = LAYOUTS[name]
    assert read_all(schema, write(schema, {})) == defaults(schema)


SAMPLE = parse("""
    Sample; versions 0-4; flexible 4+
        offset    int64
        epoch     int32   3+
        name      string
        note      string  null
        raw       bytes
        items     []Item
            key   string
            ids   []int32
        extra     []int32  4+  null 4+  tag 1  = null
        place     Place    4+  null 4+  tag 2  = null
            where  int16
        end       Place   2+  null 2+
""")["Sample"]


@pytest.mark.parametrize(
    ("version", "data", "reason", "said"),
    [
        (3, "0000000000000001 0001", "Sample v3, epoch: 2 bytes short at 8", None),
        (0, "00", "Sample v0, offset: 7 bytes short at 0", None),
        (
            0,
            "0000000000000001 0005 6162",
            "Sample v0, name: 3 of 5 bytes short at 10",
            "Error reading byte array of 5 byte(s): only 2 byte(s) available",
        ),
        (
            0,
            "0000000000000001 ffff",
            "Sample v0, name: null in a non-nullable field at 8",
            "non-nullable field name was serialized as null",
        ),
        (
            0,
            "0000000000000001 0000 ffff 00000000 7fffffff 00",
            "Sample v0, items: 2147483647 elements do not fit into 1 bytes at 16",
            "Tried to allocate a collection of size 2147483647, but there are only 1 bytes remaining.",
        ),
        (
            0,
            "0000000000000001 0000 ffff 00000000 00000001 0001 61 00000001 0000",
            "Sample v0, items[0].ids[0]: 2 bytes short at 27",
            None,
        ),
        (
            0,
            "0000000000000001 0000 ffff 00000000 00000002 0000 00000000 ffff",
            "Sample v0, items[1].key: null in a non-nullable field at 26",
            "non-nullable field key was serialized as null",
        ),
        (
            4,
            "0000000000000001 00000000 ffff0f",
            "Sample v4, name: a string of 262142 bytes is too long at 12",
            "string field name had invalid length 262142",
        ),
        (
            4,
            "0000000000000001 00000000 ffffffffff",
            "Sample v4, name: a variable-length integer does not end at 12",
            "Varint is too long, the most significant bit in the 5th byte is set, converted value: ffffffff",
        ),
        (4, "0000000000000001 00000000 80", "Sample v4, name: a variable-length integer is truncated at 12", None),
        (
            4,
            "0000000000000001 00000000 01 00 01 01 ff 01 07 05 0102",
            "Sample v4, tag 7: 3 of 5 bytes short at 20",
            "Error reading byte array of 5 byte(s): only 2 byte(s) available",
        ),
        (
            4,
            "0000000000000001 00000000 01 00 01 01 ff 01 07 ffffffff0f 01",
            "Sample v4, tag 7: a length of -1 bytes at 24",
            "-1",
        ),
    ],
)
def test_an_error_names_the_field_the_position_and_what_kafka_says(version, data, reason, said):
    with pytest.raises(PayloadError) as caught:
        read(SAMPLE.struct(version), Reader(bytes.fromhex(data)))
    assert (str(caught.value.within(f"Sample v{version}")), caught.value.java_message) == (reason, said)


def test_nulls_of_all_kinds():
    data = write(SAMPLE.struct(4), {"place": None, "end": None, "note": None, "extra": None})
    values = read_all(SAMPLE.struct(4), data)
    assert values == {**defaults(SAMPLE.struct(4)), "note": None, "end": None}
    there = {"place": {"where": 3}, "end": {"where": 4}, "extra": []}
    assert read_all(SAMPLE.struct(4), write(SAMPLE.struct(4), there)) == {
        **defaults(SAMPLE.struct(4)),
        **there,
    }


def test_an_unknown_tag_is_kept_and_written_again():
    values = {**defaults(SAMPLE.struct(4)), UNKNOWN_TAGS: [{"tag": 9, "data": b"new"}]}
    data = write(SAMPLE.struct(4), values)
    assert data.endswith(b"\x09\x03new")
    assert read_all(SAMPLE.struct(4), data) == values


def test_a_tag_that_only_another_version_has_is_refused():
    message = parse("Shape; versions 0-1; flexible 0+\n    late  int8  1+  tag 3  from 3.7")["Shape"]
    data = bytes.fromhex("01 03 01 07")
    assert read_all(message.struct(1), data) == {"late": 7}
    assert read_all(message.struct(0, (3, 6)), data) == {UNKNOWN_TAGS: [{"tag": 3, "data": b"\x07"}]}
    with pytest.raises(PayloadError) as caught:
        read_all(message.struct(0), data)
    assert caught.value.java_message == "Tag 3 is not valid for version 0"
    assert str(caught.value.within("Shape v0")) == "Shape v0: tag 3 does not exist in version 0 at 1"


def test_a_tag_of_a_version_that_the_release_does_not_know_is_one_that_nothing_has():
    message = parse("Shape; versions 0 before 3.7, 0-1; flexible 0+\n    late  int8  1+  tag 3")["Shape"]
    data = bytes.fromhex("01 03 01 07")
    assert read_all(message.struct(0, (3, 6)), data) == {UNKNOWN_TAGS: [{"tag": 3, "data": b"\x07"}]}
    with pytest.raises(PayloadError):
        read_all(message.struct(0), data)


def test_the_outermost_struct_of_a_newer_version_is_read_as_the_newest_the_others_are_refused():
    schema = SAMPLE.struct(9)
    assert read_fields(schema, Reader(write(SAMPLE.struct(4), {"end": None})))["offset"] == 0
    with pytest.raises(PayloadError) as caught:
        read_fields(schema, Reader(write(SAMPLE.struct(4), {"items": [{"key": "", "ids": []}]})))
    assert caught.value.java_message == "Can't read version 9 of Item"
    assert caught.value.field == "items[0]"


def test_a_claim_of_two_thousand_million_elements_takes_no_memory():
    huge = packing.pack(">qhhii", 0, 0, -1, 0, 0x7FFFFFFF)
    with pytest.raises(PayloadError) as caught:
        read(SAMPLE.struct(0), Reader(huge))
    assert caught.value.what == "2147483647 elements do not fit into 0 bytes"
