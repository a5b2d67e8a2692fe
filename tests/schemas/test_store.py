import json

import pytest

from kdump.schemas.store import SchemaStore, split_context


def key(keytype="SCHEMA", **more):
    return json.dumps({"keytype": keytype, **more}).encode()


def schema(subject="s-value", version=1, id=1, schema='"int"', **more):  # noqa: A002  the registry's name
    value = {"subject": subject, "version": version, "id": id, "schema": schema, **more}
    return key(subject=subject, version=version, magic=1), json.dumps(value).encode()


def store_of(*records):
    store = SchemaStore()
    for offset, (name, value) in enumerate(records):
        store.add(offset, 1000 + offset, name, value)
    return store


def states(store):
    return {(one.subject, one.version): one.state for one in store.versions()}


def test_recorded_versions_are_those_of_the_registry(store, truth):
    names = {
        "id": "id",
        "guid": "guid",
        "schemaType": "schema_type",
        "metadata": "metadata",
        "ruleSet": "rule_set",
        "schema": "text",
        "state": "state",
        "firstOffset": "first_offset",
    }
    wanted = {(line["subject"], line["version"]): line for line in truth if line["kind"] == "schema"}
    found = {(one.subject, one.version): one for one in store.versions()}
    assert found.keys() == wanted.keys()
    for name, line in wanted.items():
        assert {each: getattr(found[name], ours) for each, ours in names.items()} == {
            each: line[each] for each in names
        }


def test_recorded_history_is_that_of_the_log(store, truth):
    found = {record.offset: record for record in store.history}
    lines = [line for line in truth if line["kind"] == "history"]
    assert len(found) == len(lines)
    for line in lines:
        record = found[line["offset"]]
        assert record.tombstone == line["tombstone"]
        if line.get("junk"):
            assert record.keytype is None
            assert record.why
        else:
            assert (record.keytype, record.subject, record.version, record.id, record.schema_deleted) == (
                line["keytype"],
                line["subject"],
                line["version"],
                line["id"],
                line["schemaDeleted"],
            )


def test_a_version_is_soft_deleted_by_its_own_record():
    first, again = schema(), schema(deleted=True)
    assert states(store_of(first, again)) == {("s-value", 1): "soft-deleted"}
    assert states(store_of(first, again, first)) == {("s-value", 1): "current"}


def test_a_deleted_subject_keeps_versions_that_come_later():
    delete = (key("DELETE_SUBJECT", subject="s-value", magic=0), b'{"subject":"s-value","version":2}')
    found = store_of(schema(), schema(version=2, id=2), schema(version=3, id=3), delete, schema(version=4, id=4))
    assert list(states(found).values()) == ["soft-deleted", "soft-deleted", "current", "current"]


@pytest.mark.parametrize("empty", [None, b""])
def test_a_tombstone_deletes_for_good_and_keeps_the_text(empty):
    name, value = schema()
    found = store_of((name, value), (name, empty))
    (version,) = found.versions()
    assert (version.state, version.text, version.first_offset, version.last_offset) == ("hard-deleted", '"int"', 0, 1)
    assert found.with_id(1) == [version]


def test_a_tombstone_of_what_is_compacted_away_is_no_version():
    assert list(store_of((schema()[0], None)).versions()) == []


def test_key_order_does_not_matter():
    name, value = schema()
    shuffled = json.dumps(dict(reversed(json.loads(name).items()))).encode()
    assert len(list(store_of((name, value), (shuffled, value)).versions())) == 1


def test_subjects_have_their_settings():
    config = (key("CONFIG", subject="s-value", magic=0), b'{"compatibilityLevel":"FULL"}')
    mode = (key("MODE", subject="s-value", magic=0), b'{"mode":"READONLY"}')
    (subject,) = store_of(schema(), schema(version=2, id=2), config, mode).subjects()
    assert subject.versions == (1, 2)
    assert subject.config == {"compatibilityLevel": "FULL"}
    assert subject.mode == "READONLY"
    (subject,) = store_of(schema(), config, mode, (config[0], None), (mode[0], None)).subjects()
    assert (subject.config, subject.mode) == (None, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (None, b"{}"),
        (b"no json", b"{}"),
        (b"[]", None),
        (b'{"keytype":"WHAT"}', b"{}"),
        (b'{"keytype":[]}', b"{}"),
        (b'{"keytype":"SCHEMA"}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":"x"}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":7,"version":1}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"subject":"s"'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"id":1}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"schema":"x","id":true}'),
        (b"\xff\xfe", b"\xff"),
        (b"[" * 100_000, b"{}"),
    ],
)
def test_what_no_registry_wrote_is_noted_and_skipped(name, value):
    found = store_of((name, value), schema())
    assert found.history[0].keytype is None
    assert found.history[0].why
    assert len(list(found.versions())) == 1


@pytest.mark.parametrize("fields", [{"references": 5}, {"references": {"a": 1}}, {"md5": "\u00e9"}, {"md5": "AAAA"}])
def test_fields_that_no_registry_wrote_are_ignored(fields):
    (strange,), (plain,) = (store_of(schema(**each)).versions() for each in (fields, {}))
    assert (strange.guid, strange.references) == (plain.guid, plain.references)


def test_records_cut_at_every_byte_raise_nothing():
    name, value = schema(references=[{"name": "a", "subject": "b", "version": 1}], metadata={"tags": {"x": ["y"]}})
    for end in range(len(value) + 1):
        store_of((name, value[:end]))
        store_of((name[:end], value))
        store_of((name, value[:end] + b"\0"))


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("orders-value", (".", "orders-value")),
        (":.site1:orders-value", (".site1", "orders-value")),
        (":.site1", (".", ":.site1")),
        (":.:x", (".", "x")),
        (":x:y", (".", ":x:y")),
    ],
)
def test_contexts(subject, expected):
    assert split_context(subject) == expected


def test_the_newest_version_is_minus_one():
    found = store_of(schema(), schema(version=2, id=2), schema(version=3, id=3, deleted=True))
    assert found.version("s-value", -1).version == 2
    assert found.version("s-value", 3).id == 3
    assert found.version("none", -1) is None
