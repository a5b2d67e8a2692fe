"""Records of Kafka's own topics, as brokers wrote them, decoded to typed values."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdump import kernel
from kdump.internal_topics import cluster_metadata, consumer_offsets
from kdump.internal_topics.decode import TOPICS, decode, read_well_formed
from kdump.internal_topics.interpreter import PayloadError, Reader, read, write
from kdump.internal_topics.schema import parse
from kdump.log_dirs import local
from kdump.records.magic_0_1 import Message
from kdump.records.record_batch import RecordBatch
from kdump.segments import walk
from testing import GOLDEN
from tests.internal_topics.test_interpreter import LAYOUTS, values_of

OFFSETS = "__consumer_offsets"


def payloads(path):
    """Key and value of each record of a segment that is not a control record."""
    with local.LocalFile(str(path)) as source:
        for region in walk.walk(source, end=source.size):
            if isinstance(region, RecordBatch) and not region.is_control:
                for entry in region.messages() if isinstance(region, Message) else region.records():
                    yield (
                        bytes(entry.key) if entry.key_size >= 0 else None,
                        bytes(entry.value) if entry.value_size >= 0 else None,
                    )


def folders():
    return sorted(path for path in (GOLDEN / "brokers").glob("*/__*") if path.is_dir())


def segments(folder):
    return sorted([*folder.glob("*.log"), *folder.glob("*.checkpoint")])


def topic_of(folder):
    return re.sub(r"-\d+$", "", folder.name)


@pytest.mark.parametrize("folder", folders(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_record_of_every_broker_is_decoded_whole_and_cut_everywhere_without_surprise(folder):
    topic = topic_of(folder)
    records = {record for path in segments(folder) for record in payloads(path)}
    for key, value in records:
        record = decode(topic, key, value)
        for part in (record.key, record.value):
            assert part is None or (part.values is not None and not part.reason), part
        for end in range(len(value or b"")):
            cut = decode(topic, key, value[:end]).value
            assert cut.reason or cut.values is not None
            assert cut.raw == value[:end]
        if value is not None:
            assert decode(topic, key, value + b"\xff").value.reason, "a byte too many goes unnoticed"


def test_an_offset_commit():
    key = bytes.fromhex("0001 0001 67 0001 74 00000002")
    value = bytes.fromhex("0003 000000000000002a 00000007 0000 000000000000006f")
    record = decode(OFFSETS, key, value)
    assert record.type == 1
    assert record.key.name == "OffsetCommitKey"
    assert record.key.values == {"group": "g", "topic": "t", "partition": 2}
    assert (record.value.name, record.value.version) == ("OffsetCommitValue", 3)
    assert record.value.values == {"offset": 42, "leaderEpoch": 7, "metadata": "", "commitTimestamp": 111}


def test_a_tombstone_has_no_value():
    assert decode(OFFSETS, bytes.fromhex("0002 0001 67"), None).value is None


@pytest.mark.parametrize(
    ("key", "value", "key_reason", "value_reason"),
    [
        (None, "00", None, "the record has no key to name its type"),
        ("00", "0001", "the type of the record: 1 byte short at 0", "the type of the record: 1 byte short at 0"),
        ("0063", "0001", "record type 99 is unknown", "record type 99 is unknown"),
        ("0002 0001 67", "00", "", "GroupMetadataValue, version: 1 byte short at 0"),
        ("0002 0001 67", "0009", "", "version 9 of GroupMetadataValue is unknown"),
        ("0002 0001 67", "0001", "", "GroupMetadataValue v1, protocolType: 2 bytes short at 2"),
        ("0002 0005 67", None, "GroupMetadataKey v0, group: 4 of 5 bytes short at 4", None),
    ],
)
def test_what_cannot_be_decoded_keeps_its_bytes_and_the_reason(key, value, key_reason, value_reason):
    raw_key, raw_value = (None if data is None else bytes.fromhex(data) for data in (key, value))
    record = decode(OFFSETS, raw_key, raw_value)
    assert (record.key and (record.key.raw, record.key.reason)) == (key and (raw_key, key_reason))
    assert (record.value and (record.value.raw, record.value.reason)) == (value and (raw_value, value_reason))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "frame: frame version: a variable-length integer is truncated at 0"),
        ("07", "frame version 7 is unknown"),
        ("01 63 00", "record type 99 is unknown"),
        ("01 0c 09", "version 9 of FeatureLevelRecord is unknown"),
        ("01 09 00 00", "RemoveTopicRecord v0, topicId: 15 bytes short at 3"),
        ("01 14 00 00 05", "bytes are left over after NoOpRecord v0: 1"),
        ("01 ffff07", "frame: type: 131071 is too large at 1"),
    ],
)
def test_a_framed_record_that_cannot_be_decoded(value, reason):
    record = decode("__cluster_metadata", None, bytes.fromhex(value))
    assert record.value.reason == reason
    assert record.value.raw == bytes.fromhex(value)


def test_a_record_of_the_kraft_preview_is_read_as_2_8_wrote_it():
    struct = cluster_metadata.MESSAGES["FeatureLevelRecord"].struct(0, (2, 8))
    values = {"name": "f", "minFeatureLevel": 1, "maxFeatureLevel": 2}
    record = decode("__cluster_metadata", None, b"\0\x0c\0" + write(struct, values))
    assert record.value.values == values


def test_a_layout_that_changed_without_a_version_is_reported_by_its_length():
    message = cluster_metadata.MESSAGES["FeatureLevelRecord"]
    old = {"name": "f", "minFeatureLevel": 1, "maxFeatureLevel": 2}
    new = {"name": "f", "featureLevel": 7}
    for values, at in ((old, (3, 2)), (new, (3, 3))):
        data = b"\1\x0c\0" + write(message.struct(0, at), values)
        assert decode("__cluster_metadata", None, data).value.values == values


def test_offsets_of_0_8_2_have_keys_of_type_0():
    key = bytes.fromhex("0000 0001 67 0001 74 00000002")
    values = {"offset": 4, "metadata": "m", "commitTimestamp": 1, "expireTimestamp": 2}
    for version in (0, 1):
        struct = consumer_offsets.MESSAGES["OffsetCommitValue"].struct(version)
        kept = {slot.name: values[slot.name] for slot in struct.slots}
        assert decode(OFFSETS, key, bytes([0, version]) + write(struct, kept)).value.values == kept


def test_other_topics_are_not_decoded():
    assert decode("orders", b"k", b"v") is None


@pytest.mark.parametrize("topic", TOPICS)
def test_no_bytes_raise_an_exception(topic):
    for size in range(12):
        for fill in (b"\0", b"\1", b"\xff", b"\x7f", b"\x80"):
            for key in (None, fill * size):
                assert decode(topic, key, fill * size) is not None


if not kernel.COMPILED:
    pytest.skip("there is no kernel", allow_module_level=True)


def interpreted(schema, data):
    """Return the interpreter's result, or None if it refuses the bytes or does not read all of them."""
    reader = Reader(data)
    try:
        values = read(schema, reader)
    except PayloadError:
        return None
    return None if reader.remaining else values


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=6, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_reads_as_the_interpreter_does(name, data):
    schema = LAYOUTS[name]
    values = data.draw(values_of(schema))
    written = write(schema, values)
    fast = read_well_formed(schema, written, 0)
    assert fast == values
    assert list(fast) == list(interpreted(schema, written))
    for end in range(len(written)):
        assert read_well_formed(schema, written[:end], 0) is None
    assert read_well_formed(schema, written + b"\0", 0) is None
    for _ in range(10):
        at, byte = data.draw(st.integers(0, max(0, len(written) - 1))), data.draw(st.integers(0, 255))
        changed = written[:at] + bytes([byte]) + written[at + 1 :]
        found = read_well_formed(schema, changed, 0)
        assert found is None or repr(found) == repr(interpreted(schema, changed))


TEXTS = parse("""
    Sample; versions 0; flexible 0+
        names     []string
        late      int32   tag 0
        list      []int8  tag 1
        place     Place   null  tag 2  = null
            where  int8
""")["Sample"].struct(0)


@pytest.mark.parametrize(
    "data",
    [
        *("0202ff 00", "028040 00", "00 00", "01 8100", "01 01 0501 00", "01 01 80000400000001"),
        *("01 01 00840000000009", "01 01 0203 01 05 00", "01 01 0201 00", "01 01 0203 81 00 00"),
    ],
)
def test_leaves_what_is_seldom_to_the_interpreter(data):
    raw = bytes.fromhex(data)
    found = read_well_formed(TEXTS, raw, 0)
    assert found is None or found == interpreted(TEXTS, raw)


def test_a_long_string_is_read():
    values = {"names": ["n" * 300, "é"], "late": 7, "list": [1, -1], "place": None}
    assert read_well_formed(TEXTS, write(TEXTS, values), 0) == values


def test_each_message_has_lists_of_its_own():
    one, other = (read_well_formed(TEXTS, b"\1\0", 0) for _ in range(2))
    assert one["list"] == []
    assert one["list"] is not other["list"]
