"""The texts of the kernel equal those of the parsers for any bytes, or are left to the parser."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdump import kernel
from kdump.dump_log_segments.decoders import PARSERS, java
from kdump.dump_log_segments.dialects import payload as dialects_payload
from kdump.dump_log_segments.dialects import segments as dialects
from kdump.errors import DamageError
from kdump.formats.record_layout import BATCH_HEADER
from kdump.internal_topics import DECODER_SWITCHES, consumer_offsets, remote_log_metadata
from kdump.internal_topics.decode import kernel_reader
from kdump.internal_topics.interpreter import PayloadError, Reader, read_fields, write
from kdump.internal_topics.schema import parse
from kdump.log_dirs.local import LocalFile
from kdump.records.magic_2 import Batch
from kdump.segments.walk import walk
from testing import GOLDEN, forge
from tests.internal_topics.test_interpreter import LAYOUTS, values_of

if not kernel.COMPILED:
    pytest.skip("these texts are the kernel's", allow_module_level=True)
from kdump.dump_log_segments.decoders import kernel_texts
from kdump.kernel.internal_topics import Payloads
from kdump.kernel.lines import Shape, slots

BETWEEN = b"\n--\n"
LEFT = b"left"
QUICK = settings(
    max_examples=8, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
FRONTS = kernel_texts.Fronts(" key: ", " payload: ", " payload: ")


def lines_of(made, pairs):
    """Return the kernel's text of keys and values, and the number that it leaves to the parser."""
    records = [forge.record(key, value, offset=number) for number, (key, value) in enumerate(pairs)]
    data = forge.batch(records)
    assert made.begin(memoryview(data), BATCH_HEADER.size, BATCH_HEADER.read(data), ())
    lines = made.lines(None, Shape([[b"", slots(())["decoded"], BETWEEN]] * 4), 1 << 62)
    return bytes(lines), made.left


def printed(made, pairs):
    """Return the kernel's texts of keys and values, one text each."""
    lines, left = lines_of(made, pairs)
    assert not left
    texts = lines.split(BETWEEN)
    assert texts.pop() == b""
    assert len(texts) == len(pairs)
    return texts


def alone(struct):
    """Return the function that writes one struct, framed as type 0, version 0."""
    message = kernel_reader(struct), kernel_texts.json(struct)
    return Payloads(lambda *_: LEFT, lambda kind, version: message if (kind, version) == (0, 0) else None, 1)


def expected(struct, value):
    """Return the text of a framed struct, or None if it is broken or bytes follow it."""
    reader = Reader(value)
    try:
        values = read_fields(struct, reader)
    except PayloadError:
        return None
    return None if reader.remaining else java.json(struct, values).encode()


def broken(value, seed):
    """Yield a message truncated at each byte, and with changed bytes."""
    yield from (value[:end] for end in range(len(value)))
    for at in range(len(value)):
        for byte in {0, 1, 0x7F, 0x80, 0xFF, value[at] ^ 1 << seed.randrange(8), seed.randrange(256)} - {value[at]}:
            yield value[:at] + bytes([byte]) + value[at + 1 :]
    yield value + b"\0"


@pytest.mark.parametrize("name", LAYOUTS)
@QUICK
@given(data=st.data())
def test_every_layout_is_written_as_the_interpreter_has_it(name, data):
    struct = LAYOUTS[name]
    value = write(struct, data.draw(values_of(struct)))
    program = alone(struct)
    assert printed(program, [(None, b"\1\0\0" + value)]) == [expected(struct, value)]
    mutants = list(broken(value, random.Random(len(value))))
    for mutant, text in zip(mutants, printed(program, [(None, b"\1\0\0" + mutant) for mutant in mutants]), strict=True):
        assert text in {LEFT, expected(struct, mutant)}, mutant.hex()


def same(release, switch, records):
    """Assert that the kernel and the parser have the same texts; return the number left to the parser."""
    dialect = dialects_payload.find(release)
    parser, left = PARSERS[switch](dialect), []

    def text(offset, key, value):
        try:
            return b"".join(parser(offset, key, value).parts(" ", " "))
        except DamageError as error:
            return f"refused: {error}".encode()

    def general(offset, key, value):
        left.append(offset)
        return text(offset, key, value)

    texts = printed(kernel_texts.payloads(parser, FRONTS, general), records)
    assert texts == [text(offset, key, value) for offset, (key, value) in enumerate(records)]
    return len(left)


def golden_records():
    """Return topic -> different keys and values of golden records."""
    found = {topic: {} for topic in DECODER_SWITCHES}
    for topic, records in found.items():
        for path in sorted(GOLDEN.glob(f"brokers/*/{topic}-*/*.log")):
            with LocalFile(path) as source:
                for region in walk(source):
                    if isinstance(region, Batch) and not region.is_control:
                        records.update(((record.key, record.value), True) for record in region.records())
    return {topic: list(records) for topic, records in found.items()}


GOLDEN_RECORDS = golden_records()


@pytest.mark.parametrize(
    ("release", "topic"),
    [
        (release, topic)
        for release in ("4.4", "4.3", "4.2.2", "4.1", "4.0", "3.9", "3.8", "3.3", "2.8", "1.0")
        for topic, switch in DECODER_SWITCHES.items()
        if switch in dialects.find(release).options
    ],
)
def test_golden_records_are_the_same_in_each_release(release, topic):
    records = GOLDEN_RECORDS[topic]
    assert len(records) > 3
    left = same(release, DECODER_SWITCHES[topic], records)
    if release == "4.3":
        assert left <= len(records) // 50 + 1, f"{left} of {len(records)} were left to the parser"


@pytest.mark.parametrize("topic", DECODER_SWITCHES)
def test_golden_records_that_are_broken_are_the_same(topic):
    seed = random.Random(topic)
    records = GOLDEN_RECORDS[topic]
    for key, value in seed.sample(records, min(12, len(records))):
        mutants = [(key, mutant) for mutant in broken(value or b"", seed)]
        mutants += [(mutant, value) for mutant in broken(key or b"", seed)]
        same("4.3", DECODER_SWITCHES[topic], mutants)


def test_null_keys_and_values_are_the_same():
    key = GOLDEN_RECORDS["__consumer_offsets"][0][0]
    for switch in DECODER_SWITCHES.values():
        same(
            "4.3",
            switch,
            [(None, None), (b"", b""), (key, None), (None, b"\1\2\0"), (b"\0", b"\0"), (b"\x7f\xff", b"")],
        )


GROUP = consumer_offsets.MESSAGES["GroupMetadataValue"]


@QUICK
@given(data=st.data())
def test_groups_of_the_consumer_protocol_are_the_same(data):
    key = b"\0\2" + write(consumer_offsets.MESSAGES["GroupMetadataKey"].struct(0), {"group": "g"})
    records = []
    for version in range(5):
        values = {**data.draw(values_of(GROUP.struct(version))), "protocolType": "consumer"}
        for member in values["members"]:
            for name, message in consumer_offsets.MEMBER_MESSAGES.items():
                inner = data.draw(st.integers(0, 3))
                bytes_of = write(message.struct(inner), data.draw(values_of(message.struct(inner))))
                member[name.removeprefix("ConsumerProtocol").lower()] = inner.to_bytes(2, "big") + bytes_of
        records.append((key, version.to_bytes(2, "big") + write(GROUP.struct(version), values)))
    assert same("4.3", "offsets-decoder", records) == 0
    for _, value in records:
        same("4.3", "offsets-decoder", [(key, mutant) for mutant in broken(value, random.Random(1))])


@QUICK
@pytest.mark.parametrize("name", remote_log_metadata.MESSAGES)
@given(data=st.data())
def test_remote_log_metadata_is_the_same(name, data):
    message = remote_log_metadata.MESSAGES[name]
    kind = message.types.at((4, 3))[0]
    values = data.draw(values_of(message.struct(0)))
    if "startOffset" in values and data.draw(st.booleans()):
        values["startOffset"], values["endOffset"] = sorted((abs(values["startOffset"]), abs(values["endOffset"])))
    for state in {"remoteLogSegmentState", "remotePartitionDeleteState"} & set(values):
        values[state] = data.draw(st.integers(0, 4))
    value = bytes([1, kind, 0]) + write(message.struct(0), values)
    for release in ("4.3", "3.9"):
        records = [(None, mutant) for mutant in [value, *broken(value, random.Random(1))]]
        same(release, "remote-log-metadata-decoder", records)


ODD = parse("""
    Odd; versions 0; flexible 0+
        first     int32    tag 0  = 5
        numbers   []uint16
        text      string   null  tag 1  = null
        all       []bytes  null
        place     Place    null
            where int8
        last      Place    null  tag 2  = null
        given     Place    null  tag 3
        ids       []uuid   tag 4
        flags     []bool   null  tag 5
""")["Odd"].struct(0)


def test_tagged_fields_wherever_they_stand():
    base = {"numbers": [0, 65535], "all": [b"", b"a", b"ab", b"abc", b"abcd"], "place": None}
    some = [
        {},
        {"first": 6, "numbers": [], "all": None, "place": {"where": -128}},
        {"text": "", "last": {"where": 1}, "given": {"where": 0}},
        {"text": '"\\\b\t\n\f\r\0\x1f\x7f é€😀', "last": {"where": 0}, "given": None, "ids": [bytes(16), b"\xff" * 16]},
        {"flags": [True, False]},
        {"flags": None},
        {"given": {"where": 5}},
    ]
    written = [write(ODD, {**base, **values}) for values in some]
    # tags that come twice, or say their default
    plain = written[0][:-1]
    written += [plain + b"\2\0\4\0\0\0\5\0\4\0\0\0\7", plain + b"\1\0\4\0\0\0\5"]
    written += [plain + b"\1\3\2\1\0\0", plain + b"\1\3\x81\0\0", plain + b"\x80\0"]
    texts = printed(alone(ODD), [(None, b"\1\0\0" + value) for value in written])
    assert texts == [expected(ODD, value) for value in written]
    assert texts[0].startswith(b'{"numbers":[0,65535],"all":[')
    assert b"given" not in texts[0]
    unknown = plain + b"\1\x09\3abc"
    assert printed(alone(ODD), [(None, b"\1\0\0" + unknown)]) == [LEFT]
    assert expected(ODD, unknown) == texts[0]


def test_a_string_of_any_size_and_escape_fits():
    struct = consumer_offsets.MESSAGES["OffsetCommitValue"].struct(3)
    values = [write(struct, {"metadata": text * size}) for text in ["\0", "a", "é"] for size in (0, 1, 7, 8, 9, 0x3FFF)]
    records = [(None, b"\1\0\0" + value) for value in values]
    assert printed(alone(struct), records) == [expected(struct, value) for value in values]
    bad = write(struct, {"metadata": "abcdefghi"}).replace(b"i", b"\xff")
    assert printed(alone(struct), [(None, b"\1\0\0" + bad)]) == [LEFT]


def test_what_the_parser_refuses_ends_the_lines_in_front_of_it():
    def refuse(offset, *_):
        if offset == 2:
            raise DamageError("payload", "no")
        return LEFT

    assert lines_of(Payloads(refuse, lambda *_: None), [(None, b"x")] * 4) == ((LEFT + BETWEEN) * 2, 2)
