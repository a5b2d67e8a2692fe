"""The Spark source in a session: what users see of it."""

import inspect

import pytest

from kdump.arrow import batches
from kdump.arrow import schema as arrow_schema
from kdump.rows import columns
from kdump.spark.source import schema
from testing import GOLDEN
from tests.helpers.kafka_columns import KAFKA_COLUMNS

BROKER = GOLDEN / "brokers" / "4.2.2"


def load(spark, path, **options):
    return spark.read.format("kdump").options(**options).load(str(path))


def test_the_source_is_found_by_itself_and_has_the_columns_of_sparks_kafka_source_first(spark):
    frame = load(spark, BROKER / "c-zstd-0")
    assert frame.dtypes[:8] == KAFKA_COLUMNS
    assert set(frame.columns) == {column.name for column in columns.RECORD} - {"kind", "keyEncoding", "valueEncoding"}
    assert frame.count() == 224


def test_the_arrow_schema_is_the_one_spark_expects(spark):
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    zone = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}  # Spark 4.2 on
    for fields in (arrow_schema.RECORDS, batches.FIELDS, schema.DAMAGED, schema.ACCOUNT, schema.FINDINGS):
        assert to_arrow_schema(StructType.fromDDL(schema.ddl(fields)), **zone).equals(arrow_schema.arrow(fields))


def test_decoded_is_a_column_of_text_behind_the_others(spark):
    from pyspark.sql import functions as spark_sql

    assert "decoded" not in load(spark, BROKER / "__consumer_offsets-0").columns
    frame = load(spark, BROKER / "__consumer_offsets-0", decode="auto")
    assert frame.dtypes[-1] == ("decoded", "string")
    kinds = frame.select(spark_sql.get_json_object("decoded", "$.key.name").alias("name")).distinct().collect()
    assert {row.name for row in kinds} >= {"OffsetCommitKey", "GroupMetadataKey"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"startingOfset": "1"}, "did you mean 'startingOffset'?"),
        ({"mode": "LENIENT"}, "option mode: expected PERMISSIVE, DROPMALFORMED or FAILFAST, found 'LENIENT'"),
        ({"columns": "ofset"}, "option columns: there is no column 'ofset'; did you mean 'offset'?"),
        ({"columns": "offset,decoded"}, "option columns: decoded goes with decode=auto"),
        ({"output": "batches", "dedupe": "true"}, "the output batches gives those of every replica"),
        ({"output": "batches", "columns": "offset"}, "the output batches has columns of its own"),
        ({"output": "findings", "startingOffset": "1"}, "option startingOffset: the output findings is of whole"),
        ({"decode": "yes"}, "option decode: expected none or auto, found 'yes'"),
        ({"startingOffset": "5", "endingOffset": "4"}, "option endingOffset: 4 is below startingOffset 5"),
    ],
)
def test_wrong_options_are_told_on_the_driver(spark, options, told):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as error:
        load(spark, BROKER / "c-zstd-0", **options)
    assert told in str(error.value)
