"""Output of the decoder switches that no recorded run covers: rare values, rare damage."""

import contextlib
import struct

import pytest

from kdump.dump_log_segments.decoders import PARSERS, java
from kdump.dump_log_segments.decoders.texts import control_text
from kdump.dump_log_segments.dialects import payload as dialects_payload
from kdump.errors import DamageError
from kdump.internal_topics import consumer_offsets, remote_log_metadata, share_group_state, transaction_state
from kdump.internal_topics.interpreter import write
from kdump.internal_topics.schema import defaults, parse
from testing import forge
from testing.processes import kdump, python


def parser(release, switch):
    return PARSERS[switch](dialects_payload.find(release))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-123.456, "-123.456"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (0.1, "0.1"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (1e23, "1.0E23"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_a_double_is_written_as_java_does(value, text):
    assert java.double(value) == text


def test_a_string_has_the_escapes_of_jackson():
    assert java.string('a"\\/\b\t\n\f\r\x00\x1f\x7fé€😀') == '"a\\"\\\\/\\b\\t\\n\\f\\r\\u0000\\u001F\x7fé€😀"'


def test_bytes_are_one_hexadecimal_number():
    assert [java.hex_number(bytes.fromhex(data)) for data in ("", "00", "000aff", "0000")] == ["", "0", "AFF", "0"]


ALL = parse("""
    All; versions 0; flexible 0+
        tagged    int32  tag 0  = 5
        number    uint32
        yes       bool
        share     float64
        id        uuid
        raw       bytes  null
        names     []string  null
        place     Place  null
            where string
""")["All"].struct(0)


def test_json_of_every_type():
    values = {
        **defaults(ALL),
        "number": 0xFFFFFFFF,
        "yes": True,
        "share": float("nan"),
        "id": bytes(range(16)),
        "raw": b"\xff",
        "names": ["a", "b"],
        "place": {"where": "x"},
    }
    assert java.json(ALL, values) == (
        '{"number":4294967295,"yes":true,"share":"NaN","id":"AAECAwQFBgcICQoLDA0ODw","raw":"/w==","names":["a","b"],'
        '"place":{"where":"x"}}'
    )
    values |= {"tagged": 6, "share": 1e7, "raw": None, "names": None, "place": None}
    assert java.json(ALL, values) == (
        '{"tagged":6,"number":4294967295,"yes":true,"share":1.0E7,"id":"AAECAwQFBgcICQoLDA0ODw","raw":null,"names":null,'
        '"place":null}'
    )


def framed(name, **values):
    message = remote_log_metadata.MESSAGES[name]
    schema = message.struct(0)
    return bytes([1, *message.types.at((4, 3)), 0]) + write(schema, {**defaults(schema), **values})


EPOCHS = {"segmentLeaderEpochs": [{"leaderEpoch": 3, "offset": 9}, {"leaderEpoch": 0, "offset": 0}]}
ZERO = "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            framed("RemotePartitionDeleteMetadataRecord", remotePartitionDeleteState=2, brokerId=1),
            f"RemotePartitionDeleteMetadata{{topicPartition={ZERO}:-0, state=DELETE_PARTITION_FINISHED, "
            "eventTimestampMs=0, brokerId=1}",
        ),
        (framed("RemotePartitionDeleteMetadataRecord", remotePartitionDeleteState=3), "null"),
        (
            framed("RemoteLogSegmentMetadataSnapshotRecord", **EPOCHS, customMetadata=b"12345", txnIndexEmpty=True),
            f"RemoteLogSegmentMetadataSnapshot{{segmentId={ZERO}, startOffset=0, endOffset=0, maxTimestampMs=0, "
            "segmentLeaderEpochs={0=0, 3=9}, segmentSizeInBytes=0, customMetadata=Optional[CustomMetadata{5 bytes}], "
            "state=COPY_SEGMENT_STARTED, txnIdxEmpty=true}",
        ),
        (framed("RemoteLogSegmentMetadataSnapshotRecord"), "segmentLeaderEpochs can not be null or empty"),
        (framed("RemoteLogSegmentMetadataSnapshotRecord", remoteLogSegmentState=4), "state can not be null"),
        (
            framed("RemoteLogSegmentMetadataRecord", remoteLogSegmentState=4),
            "segmentLeaderEpochs can not be null or empty",
        ),
        (
            framed("RemoteLogSegmentMetadataRecord", **EPOCHS, startOffset=-1),
            "Unexpected start offset = -1. StartOffset for a remote segment cannot be negative",
        ),
        (
            framed("RemoteLogSegmentMetadataRecord", **EPOCHS, startOffset=5, endOffset=4),
            "Unexpected end offset = 4. EndOffset for a remote segment cannot be less than startOffset = 5",
        ),
        (framed("RemoteLogSegmentMetadataUpdateRecord", remoteLogSegmentState=9), "state can not be null"),
    ],
)
def test_remote_log_metadata(value, text):
    want = text if text.startswith("Remote") else f"Error at offset 7, skipping. {text}"
    assert parser("4.3", "remote-log-metadata-decoder")(7, None, value) == (None, want)


def test_remote_log_metadata_of_3_9_says_nothing_of_transaction_indexes():
    value = framed("RemoteLogSegmentMetadataSnapshotRecord", **EPOCHS)
    assert parser("3.9", "remote-log-metadata-decoder")(0, None, value).payload.endswith("state=COPY_SEGMENT_STARTED}")


def test_a_version_of_share_group_state_is_called_type_in_4_0():
    schema = share_group_state.MESSAGES["ShareUpdateValue"]
    key = b"\0\1" + write(share_group_state.MESSAGES["ShareUpdateKey"].struct(0), {"groupId": "g"})
    for release, word in (("4.0", "type"), ("4.1", "version")):
        at = dialects_payload.find(release).definitions
        value = b"\0\0" + write(schema.struct(0, at), {})
        assert parser(release, "share-group-state-decoder")(0, key, value).payload.startswith(f'{{"{word}":"0","data":')


def test_too_many_tagged_fields_have_words_of_their_own_in_4_2_2_and_from_4_4_on():
    key = b"\0\1" + write(share_group_state.MESSAGES["ShareUpdateKey"].struct(0), {"groupId": "g"})
    value = b"\0\0" + write(share_group_state.MESSAGES["ShareUpdateValue"].struct(0, (4, 2)), {})[:-1] + b"\x08"
    said = {
        release: parser(release, "share-group-state-decoder")(0, key, value).key.rpartition("due to: ")[2]
        for release in ("4.2.0", "4.2.2", "4.3", "4.4")
    }
    counted = "Tried to read 8 tagged fields, but there are only 0 bytes remaining.."
    assert said == {"4.2.0": "null.", "4.2.2": counted, "4.3": "null.", "4.4": counted}


@pytest.mark.parametrize("release", ["4.2.2", "4.3", "4.4"])
def test_more_than_a_million_elements_are_refused_where_there_is_a_limit(release):
    """Recorded: 4.2.2 and 4.4.0 refuse them, 4.3.1 reads them."""
    key = b"\0\0" + write(transaction_state.MESSAGES["TransactionLogKey"].struct(0), {"transactionalId": "tid"})
    schema = transaction_state.MESSAGES["TransactionLogValue"].struct(0)
    said = []
    for count in (1_000_000, 1_000_001):
        topics = [{"topic": "t", "partitionIds": [7] * count}]
        value = b"\0\0" + write(schema, {"producerId": 1, "transactionPartitions": topics})
        said.append(parser(release, "transaction-log-decoder")(0, key, value).key)
    assert said[0] == '{"type":"0","data":{"transactionalId":"tid"}}'
    if release == "4.3":
        assert said[1] == said[0]
    else:
        assert said[1].endswith(
            "due to: Tried to read a collection of size 1000001, which exceeds the maximum allowed size of 1000000.."
        )


def test_a_dump_without_a_switch_parses_no_schema():
    code = "import sys, kdump.dump_log_segments.dispatch; print(*sys.modules)"
    modules = python("-c", code, check=True).stdout.decode()
    assert "kdump.dump_log_segments.log_printer" in modules
    assert "kdump.internal_topics" not in modules


@pytest.mark.parametrize(
    ("release", "kind", "value", "text"),
    [
        ("0.11", 0, "0000 00000003", " endTxnMarker: ABORT coordinatorEpoch: 3"),
        ("4.3", 1, "0000 00000003", " endTxnMarker: COMMIT coordinatorEpoch: 3"),
        ("2.6", 2, "", " controlType: UNKNOWN(2)"),
        ("2.8", 2, "", " controlType: QUORUM_REASSIGNMENT(2)"),
        ("2.8", 3, "", " controlType: LEADER_CHANGE(3)"),
        ("3.2", 4, "", " controlType: SNAPSHOT_FOOTER(4)"),
        ("3.3", 4, "0000 00", ' SnapshotFooter {"version":0}'),
        ("3.3", 3, "0000 000000000000000a 00", ' SnapshotHeader {"version":0,"lastContainedLogTimestamp":10}'),
        ("3.7", 5, "", " controlType: UNKNOWN(5)"),
        ("3.8", 5, "0000 0001 00", ' KRaftVersion {"version":0,"kRaftVersion":1}'),
        ("4.0", 2, "", " controlType: LEADER_CHANGE(2)"),
        (
            "4.1",
            2,
            "0000 00000001 02 00000001 00 01 00",
            ' LeaderChange: {"version":0,"leaderId":1,"voters":[{"voterId":1}],"grantingVoters":[]}',
        ),
        ("4.3", 99, "", " controlType: UNKNOWN(99)"),
        ("4.3", -1, "", " controlType: UNKNOWN(-1)"),
    ],
)
def test_a_control_record(release, kind, value, text):
    key = struct.pack(">hh", 0, kind)
    assert control_text(key, bytes.fromhex(value), dialects_payload.find(release)) == text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\0\0\0", b""),
        (b"\xff\xff\0\1", b"\0\0\0\0\0\1"),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0\0\0\0\0"),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\1"),
        (b"\0\0\0\3", None),
        (b"\0\0\0\3", b"\0\0\0"),
        (b"\0\0\0\2", bytes.fromhex("0001 00000001 02 00000001 000102030405060708090a0b0c0d0e0f 00 01 00")),
    ],
)
def test_a_broken_control_record_ends_the_run(key, value):
    with pytest.raises(DamageError):
        control_text(key, value, dialects_payload.NEWEST)


def group(*members, version=3, protocol="range", **values):
    """Return key and value of a consumer group whose members have only the given fields."""
    schema = consumer_offsets.MESSAGES["GroupMetadataValue"].struct(version)
    reported = {
        "protocolType": "consumer",
        "protocol": protocol,
        "members": [member(each) for each in members],
        **values,
    }
    return b"\0\2\0\1g", bytes([0, version]) + write(schema, reported)


def member(values):
    """Return a member that is assigned partition 1 of topic t."""
    assignment = bytes.fromhex("0001 00000001 0001 74 00000001 00000001 ffffffff")
    return {"memberId": "m", "subscription": SUBSCRIPTION, "assignment": assignment, **values}


SUBSCRIPTION = bytes.fromhex("0000 00000000 ffffffff")
TWICE = group({"memberId": "a"}, {"memberId": "a"}, {"memberId": "b"})
LAST_TWICE = group({"memberId": "a"}, {"memberId": "b"}, {"memberId": "a"})
STATIC_TWICE = group({"memberId": "a", "groupInstanceId": "i"}, {"memberId": "b", "groupInstanceId": "i"})
BROKEN_SUBSCRIPTION = group({"subscription": bytes.fromhex("0000 00000001 ffff 00000000")})
CUT_SUBSCRIPTION = group({"subscription": b"\0"})
NEWER_ASSIGNMENT = group({"assignment": bytes.fromhex("0009 00000001 0001 74 00000001 00000001 ffffffff")})
NEGATIVE_ASSIGNMENT = group({"assignment": bytes.fromhex("ffff 00000000 ffffffff")})


@pytest.mark.parametrize(
    ("record", "ending"),
    [
        (TWICE, {"2.4.1", "2.8", "3.0"}),
        (LAST_TWICE, set()),
        (STATIC_TWICE, {"3.0"}),
        (BROKEN_SUBSCRIPTION, {"2.8", "3.0"}),
        (CUT_SUBSCRIPTION, set()),
        (NEWER_ASSIGNMENT, set()),
        (NEGATIVE_ASSIGNMENT, {"2.4.1", "2.8", "3.0"}),
    ],
)
@pytest.mark.parametrize("release", ["2.4.1", "2.8", "3.0"])
def test_what_makes_no_group_ends_the_run_in_the_releases_that_look(record, ending, release):
    parse_record = parser(release, "offsets-decoder")
    if release in ending:
        with pytest.raises(DamageError):
            parse_record(0, *record)
    else:
        said = parse_record(0, *record)
        assert said.key == "group_metadata::group=g"
        assert "t-1" in said.payload


@pytest.mark.parametrize("release", ["3.9", "4.0", "4.1"])
def test_a_transaction_version_of_the_future_ends_the_run_of_4_0_alone(release):
    schema = transaction_state.MESSAGES["TransactionLogValue"].struct(1)
    value = b"\0\1" + write(schema, {"clientTransactionVersion": 3})
    parse_record = parser(release, "transaction-log-decoder")
    if release == "4.0":
        with pytest.raises(DamageError, match="transaction version"):
            parse_record(0, b"\0\0\0\1t", value)
    else:
        assert parse_record(0, b"\0\0\0\1t", value).payload


@pytest.mark.parametrize("release", ["0.9.0.1", "1.0.0", "2.3", "3.7", "3.8", "4.3"])
@pytest.mark.parametrize("switch", ["offsets-decoder", "transaction-log-decoder"])
def test_a_record_without_a_key_ends_the_run_wherever_it_has_a_value(release, switch):
    with pytest.raises(DamageError, match="offset 5 has no key"):
        parser(release, switch)(5, None, b"v")


@pytest.mark.parametrize("release", ["0.9.0.1", "0.10.1.1", "1.0.0", "2.4.1", "3.7", "3.8", "4.0", "4.3"])
@pytest.mark.parametrize("switch", PARSERS)
def test_no_bytes_raise_another_exception(release, switch):
    parse_record = parser(release, switch)
    for number in range(-1, 25):
        for size in range(10):
            for fill in (b"\0", b"\1", b"\x7f", b"\xff"):
                with contextlib.suppress(DamageError):
                    said = parse_record(0, struct.pack(">h", number) + fill * size, b"\0\1" + fill * size)
                    assert (said.key or "") + (said.payload or "")


@pytest.mark.parametrize("version", [1, 3, 127, -1])
def test_a_leader_change_that_claims_a_newer_version_has_ids_of_zero(version):
    """It is read as version 0; the fields that only the claimed version has get their defaults."""
    value = struct.pack(">hi", version, 1) + b"\2" + struct.pack(">i", 7) + b"\0" + b"\1" + b"\0"
    text = control_text(struct.pack(">hh", 0, 2), value, dialects_payload.NEWEST)
    voter = '{"voterId":7,"voterDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA"}' if version > 0 else '{"voterId":7}'
    assert text == (f' LeaderChange: {{"version":{version},"leaderId":1,"voters":[{voter}],"grantingVoters":[]}}')


def test_a_tag_of_another_version_is_refused_as_kafka_refuses_it(tmp_path):
    change = bytes.fromhex("01 11 00 0000007f 08b3dda753725fa1 01 01 01 a2")  # v0, with a tag of v1
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(forge.batch([forge.record(None, change)]))
    done = kdump("--cluster-metadata-decoder", "--files", path)
    assert done.stdout.endswith(b" payload: Error at 0, skipping. Failed to deserialize record with type 17\n")
