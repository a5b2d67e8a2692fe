"""The flat row: its names, and the existence of each column's source."""

import pytest

from kdump.formats.record import Record
from kdump.records.record_batch import RecordBatch
from kdump.rows import columns as rows
from kdump.segments.regions import Damage

PROMISED = (
    "topic partition offset timestampMs timestamp timestampType key value headers file position batchSize baseOffset "
    "magic codec crc crcValid leaderEpoch producerId producerEpoch sequence isTransactional isControl "
    "transactionState deleteHorizonMs batchAttributes recordAttributes"
)


def test_a_record_has_the_promised_names_in_order():
    columns = [column for column in rows.RECORD if not column.optional]
    assert [column.name for column in columns] == ["kind", *PROMISED.split()]


def test_optional_names():
    assert [column.name for column in rows.RECORD if column.optional] == [
        "keyEncoding",
        "valueEncoding",
        "controlType",
        "coordinatorEpoch",
        "aboveHighWatermark",
        "belowLogStart",
    ]


@pytest.mark.parametrize("kind", rows.KINDS)
def test_columns_are_sound(kind):
    columns = rows.KINDS[kind]
    names = [column.name for column in columns]
    assert len(set(names)) == len(names)
    assert names[0] == "kind"
    owners = {"batch": RecordBatch, "record": Record, "damage": Damage}
    for column in columns:
        assert column.doc.endswith("."), column.name
        assert column.scope in {"file", "batch", "record", "damage", "state"}
        owner = owners.get(column.scope)
        if owner is not None:
            assert hasattr(owner, column.attribute) or column.attribute in owner.__annotations__, column.source


def test_the_same_name_means_the_same_type_everywhere():
    types = {}
    for columns in rows.KINDS.values():
        for column in columns:
            assert types.setdefault(column.name, column.type) == column.type


def test_sparks_first_columns_are_columns_of_a_record():
    assert set(rows.SPARK_FIRST) <= {column.name for column in rows.RECORD}
