import json
import struct
import subprocess
import sys

import pytest

import kdump
from kdump.schemas.avro_schema import fingerprint, parse
from kdump.schemas.decoder import PayloadDecoder
from kdump.schemas.framing import frame_of
from kdump.schemas.store import SchemaStore
from tests.schemas.test_store import schema, store_of

COMPARED = ("format", "framing", "schemaId", "guid", "subject", "version", "schemaState", "problem")


def single(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def same(found, wanted):
    """Whether two values of JSON are equal: 1 is not true, and a float of 32 bits has several texts."""
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict) and found.keys() == wanted.keys() and all(same(found[k], wanted[k]) for k in found)
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, float) and isinstance(found, int | float):
        return found == wanted or (abs(wanted) < 3.5e38 and single(found) == single(wanted) == wanted)
    return type(found) is type(wanted) and found == wanted


def check_side(found, wanted):
    if wanted is None:
        assert found is None
        return
    assert {name: found.get(name) for name in COMPARED} == {name: wanted.get(name) for name in COMPARED}
    assert ("data" in found) == ("data" in wanted)
    assert ("why" in found) == ("problem" in wanted)
    if "data" in wanted:
        assert found["name"] == wanted["name"]
        assert same(found["data"], wanted["data"])


def test_recorded_payloads_are_those_of_the_deserializers(cluster, store, truth):
    decoder = PayloadDecoder(store)
    records = {(one.topic, one.partition, one.offset): one for one in kdump.open(str(cluster / "logs"))}
    lines = [line for line in truth if line["kind"] in ("record", "mm2")]
    assert len(lines) > 1900
    for line in lines:
        record = records[line["topic"], line["partition"], line["offset"]]
        decoded = decoder.decode(record.topic, record.key, record.value, record.headers) or {"key": None, "value": None}
        json.dumps(decoded, allow_nan=False)
        for side in ("key", "value"):
            if line["kind"] == "mm2":
                assert decoded[side]["data"] == line[side]
            else:
                check_side(decoded[side], line[side])


def test_recorded_payloads_cut_short_raise_nothing(cluster, store):
    decoder = PayloadDecoder(store)
    seen = set()
    for record in kdump.open(str(cluster / "logs")):
        if record.value is None or record.value[:5] in seen or len(record.value) > 500:
            continue
        seen.add(record.value[:5])
        for end in range(len(record.value)):
            json.dumps(decoder.side(record.topic, "value", record.value[:end]), allow_nan=False)
        json.dumps(decoder.side(record.topic, "value", record.value + b"\x80\xff"), allow_nan=False)


def side(decoder, payload, topic="s", which="value"):
    return decoder.side(topic, which, payload)


def test_payloads_without_a_frame_stay_as_they_are():
    decoder = PayloadDecoder(store_of(schema()))
    for payload in (
        b"",
        b"text",
        b"\0",
        b"\0\0\0\1",
        b"\0\0\0\0\0rest",
        b"\xc3\x01" + bytes(8),
        b"\x03\x00" + bytes(16),
    ):
        assert side(decoder, payload) is None
    assert decoder.decode("s", None, b"text") is None


def test_an_id_without_a_schema_is_named():
    for store in (SchemaStore(), store_of(schema())):
        found = side(PayloadDecoder(store), b"\0\0\0\0\x09x")
        assert (found["problem"], found["schemaId"], "data" in found) == ("schema-missing", 9, False)
        assert "9" in found["why"]


def test_only_the_formats_that_are_asked_for():
    store = store_of(schema(), schema("p-value", id=2, schema="true", schemaType="JSON"))
    decoder = PayloadDecoder(store, ("json",))
    assert side(decoder, b"\0\0\0\0\1\x02") is None
    assert side(decoder, b"\0\0\0\0\2[1]")["data"] == [1]
    assert side(decoder, b"\0\0\0\0\x09x") is None


def test_an_id_of_several_subjects_is_that_of_the_topic_then_of_the_record_then_the_first():
    record = '{"type":"record","name":"a.R","fields":[]}'
    subjects = ("x-value", "a.R", "s-a.R", ":.ctx:s-value", "s-value")
    for count in range(len(subjects), 0, -1):
        store = store_of(*(schema(name, schema=record) for name in subjects[:count]))
        assert side(PayloadDecoder(store), b"\0\0\0\0\1")["subject"] == subjects[count - 1]


def test_of_a_subject_the_highest_version_that_is_least_deleted():
    store = store_of(schema(), schema(version=2), schema(version=3, deleted=True))
    assert side(PayloadDecoder(store), b"\0\0\0\0\1\x02")["version"] == 2


def test_a_list_of_candidates_at_the_address_of_an_earlier_list_is_another_list():
    store = store_of(*(schema(f"{name}-value", number) for name in "ab" for number in (1, 2)))
    decoder, payload = PayloadDecoder(store), b"\0\0\0\0\1\2"
    frame = frame_of("value", payload, ())
    for subject in ("a-value", "b-value"):
        candidates = [each for each in store.with_id(1) if each.subject == subject]
        assert decoder.written("t", "value", payload, frame, candidates).schema.version.subject == subject
        del candidates


def test_what_a_schema_refers_to_is_read_through_several_levels():
    one = '{"type":"record","name":"n.A","fields":[{"name":"x","type":"int"}]}'
    two = '{"type":"record","name":"n.B","fields":[{"name":"a","type":"n.A"}]}'
    three = '{"type":"record","name":"n.C","fields":[{"name":"b","type":"B"}]}'
    refers = [{"name": "n.B", "subject": "b", "version": 1}]
    store = store_of(
        schema("a", id=1, schema=one),
        schema("b", id=2, schema=two, references=[{"name": "n.A", "subject": "a", "version": 1}]),
        schema("s-value", id=3, schema=three, references=refers),
    )
    assert side(PayloadDecoder(store), b"\0\0\0\0\3\x02")["data"] == {"b": {"a": {"x": 1}}}


RECORD = '{"type":"record","name":"n.%s","fields":[%s]}'


def test_a_subject_that_a_schema_refers_to_is_first_one_of_its_own_context():
    refers = [{"name": "n.A", "subject": "a", "version": 1}]
    user = RECORD % ("B", '{"name":"a","type":"A"}')
    own = schema(":.c:a", id=1, schema=RECORD % ("A", '{"name":"x","type":"int"}'))
    other = schema("a", id=1, schema=RECORD % ("A", '{"name":"y","type":"string"}'))
    using = [schema(f"{context}s-value", id=2, schema=user, references=refers) for context in ("", ":.c:", ":.d:")]
    frame = b"\0\0\0\0\2"
    assert side(PayloadDecoder(store_of(own, other, using[1])), frame + b"\2")["data"] == {"a": {"x": 1}}
    assert side(PayloadDecoder(store_of(own, other, using[2])), frame + b"\4hi")["data"] == {"a": {"y": "hi"}}
    assert side(PayloadDecoder(store_of(own, using[0])), frame + b"\2")["problem"] == "reference-missing"


@pytest.mark.parametrize(("first", "data"), [("a", {"c": {"a": {"x": 1}}}), ("c", {"c": {"a": {"y": "A"}}})])
def test_of_two_versions_under_one_name_the_first_that_is_referred_to_is_meant(first, data):
    refers = {"a": {"name": "n.A", "subject": "a", "version": 1}, "c": {"name": "n.C", "subject": "c", "version": 1}}
    store = store_of(
        schema("a", id=1, schema=RECORD % ("A", '{"name":"x","type":"int"}')),
        schema("a", version=2, id=2, schema=RECORD % ("A", '{"name":"y","type":"string"}')),
        schema("c", id=3, schema=RECORD % ("C", '{"name":"a","type":"A"}'), references=[refers["a"] | {"version": 2}]),
        schema(
            id=4,
            schema=RECORD % ("D", '{"name":"c","type":"C"}'),
            references=[refers[first], refers["c" if first == "a" else "a"]],
        ),
    )
    assert side(PayloadDecoder(store), b"\0\0\0\0\4" + {"a": b"\2", "c": b"\2A"}[first])["data"] == data


def test_a_fingerprint_of_several_schemas_is_that_of_the_topic_then_of_the_first():
    plain, timed = ("long", '{"type":"long","logicalType":"timestamp-millis"}')
    texts = [RECORD % ("R", f'{{"name":"t","type":{kind}}}') for kind in (json.dumps(plain), timed)]
    others = [schema(":.c:x-value", id=2, schema='"int"'), schema("y-value", id=1, schema=texts[0])]
    payload = b"\xc3\x01" + fingerprint(parse(texts[0])) + b"\2"
    found = side(PayloadDecoder(store_of(*others, schema(id=2, schema=texts[1]))), payload)
    assert (found["subject"], found["data"]) == ("s-value", {"t": "1970-01-01T00:00:00.001Z"})
    found = side(PayloadDecoder(store_of(*others, schema("z-value", id=2, schema=texts[1]))), payload)
    assert (found["subject"], found["data"]) == ("y-value", {"t": 1})


def test_schemas_that_refer_to_each_other_end():
    store = store_of(
        schema("a", id=1, schema='"int"', references=[{"name": "b", "subject": "b", "version": 1}]),
        schema("b", id=2, schema='"int"', references=[{"name": "a", "subject": "a", "version": 1}]),
    )
    assert side(PayloadDecoder(store), b"\0\0\0\0\1\x02")["data"] == 1


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        (schema(schema="{"), "schema-invalid"),
        (schema(schemaType="XML"), "schema-invalid"),
        (schema(schema="message {", schemaType="PROTOBUF"), "schema-invalid"),
        (schema(references=[{"name": "a", "subject": "none", "version": 1}]), "reference-missing"),
        (schema(schema='import "a.proto";', schemaType="PROTOBUF"), "reference-missing"),
    ],
)
def test_a_schema_that_cannot_be_used_has_a_reason(version, problem):
    found = side(PayloadDecoder(store_of(version)), b"\0\0\0\0\1\0")
    assert (found["problem"], "data" in found) == (problem, False)
    assert found["why"]


def test_header_ids_come_before_the_prefix():
    store = store_of(schema(), schema("other-value", id=2, schema='"string"'))
    guid = bytes.fromhex(store.with_id(2)[0].guid.replace("-", ""))
    decoder = PayloadDecoder(store)
    found = decoder.side("s", "value", b"\x04hi", [(b"__value_schema_id", b"\1" + guid)])
    assert (found["framing"], found["guid"], found["schemaId"], found["data"]) == (
        "header",
        store.with_id(2)[0].guid,
        2,
        "hi",
    )
    assert decoder.side("s", "key", b"\x04hi", [(b"__value_schema_id", b"\1" + guid)]) is None
    assert decoder.side("s", "value", b"\x02", [(b"__value_schema_id", b"\0\0\0\0\1")])["data"] == 1
    for odd in (b"", b"\1", b"\2" + guid, None):
        assert decoder.side("s", "value", b"\0\0\0\0\1\x02", [(b"__value_schema_id", odd)])["data"] == 1
    missing = decoder.side("s", "value", b"x", [(b"__value_schema_id", b"\1" + bytes(16))])
    assert missing["problem"] == "schema-missing"


def test_nothing_but_kdump_is_needed(registries):
    """The extra ``decode`` is therefore empty."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['fastavro', 'google.protobuf', 'jsonschema'])); import kdump; "
        "values = [one.decoded['value'] for topic in ('avro-all-0', 'proto-0', 'json-4') "
        "for one in kdump.open(sys.argv[1], topic=topic, decode='auto', limit=5)]; "
        "print(*sorted({value['format'] for value in values if value and 'data' in value}))"
    )
    logs = registries / "confluent" / "logs"
    done = subprocess.run([sys.executable, "-c", code, logs], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "avro json protobuf\n"), done.stderr
