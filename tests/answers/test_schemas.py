"""The records of a registry's topic that belong to selected schemas."""

import pytest

from kdump.answers.schemas import SchemaQuery
from tests.schemas.test_store import key, schema, store_of

FIRST, OTHER = schema(), schema("t-value", id=7, schemaType="PROTOBUF", schema='syntax = "proto3";')
CONFIG = (key("CONFIG", subject="s-value", magic=0), b'{"compatibilityLevel":"FULL"}')
DELETE = (key("DELETE_SUBJECT", subject="s-value", magic=0), b'{"subject":"s-value","version":2}')
RECORDS = (
    FIRST,  # 0
    OTHER,
    schema(version=2, id=2, schema='"long"'),  # 2
    CONFIG,
    DELETE,  # 4
    (FIRST[0], None),
    schema(id=9, schema='"bytes"'),  # 6: the version has a new id after the tombstone
    (key("MODE", magic=0), b'{"mode":"READONLY"}'),
    (b"no json", b"{}"),  # 8
    (OTHER[0], None),
)


@pytest.mark.parametrize(
    ("query", "offsets"),
    [
        (SchemaQuery(), list(range(10))),
        (SchemaQuery(deleted=True), list(range(10))),
        (SchemaQuery(subject="s-value"), [0, 2, 3, 4, 5, 6]),
        (SchemaQuery(subject="t-*"), [1, 9]),
        (SchemaQuery(id=1), [0, 4, 5]),
        (SchemaQuery(id=2), [2, 4]),
        (SchemaQuery(id=9), [6]),
        (SchemaQuery(id=7), [1, 9]),
        (SchemaQuery(id=7, subject="s-value"), []),
        (SchemaQuery(id=8), []),
        (SchemaQuery(schema_type="protobuf"), [1, 9]),
        (SchemaQuery(schema_type="avro", id=2), [2, 4]),
        (SchemaQuery(schema_type="json"), []),
    ],
)
def test_the_history_of_selected_schemas(query, offsets):
    assert [line.offset for line in query.history(store_of(*RECORDS))] == offsets


@pytest.mark.parametrize(("number", "offsets"), [(2, [2, 4]), (1, [0, 4, 5]), (9, [6])])
def test_the_history_of_a_guid(number, offsets):
    """A later record of the same version has replaced the id 1: payloads may still have it."""
    store = store_of(*RECORDS)
    (version,) = store.with_id(number)
    assert store.with_guid(version.guid) == [version]
    assert [line.offset for line in SchemaQuery(guid=version.guid).history(store)] == offsets
    query = SchemaQuery(guid=version.guid, schema_type=version.schema_type.lower())
    assert [line.offset for line in query.history(store)] == offsets
