"""The Spark source in a session, as users see it."""

import datetime as dt
import glob
import inspect

import pytest

import kdump as package
from kdump.arrow import header_rows
from kdump.arrow import schema as arrow_schema
from kdump.errors import UnreadableError, UsageError
from kdump.rows import columns
from kdump.spark.source import options as words
from kdump.spark.source import schema
from kdump.spark.source.data_source import KdumpDataSource, KdumpStreamReader
from testing import GOLDEN, terminals
from tests.helpers import hostile
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
    for fields in (arrow_schema.RECORDS, header_rows.HEADER_FIELDS, schema.DAMAGED, schema.ACCOUNT, schema.FINDINGS):
        assert to_arrow_schema(StructType.fromDDL(schema.ddl(fields)), **zone).equals(arrow_schema.arrow(fields))


def test_decoded_is_the_last_column_and_text(spark):
    from pyspark.sql import functions as spark_sql

    assert "decoded" not in load(spark, BROKER / "__consumer_offsets-0").columns
    frame = load(spark, BROKER / "__consumer_offsets-0", decode="auto")
    assert frame.dtypes[-1] == ("decoded", "string")
    kinds = frame.select(spark_sql.get_json_object("decoded", "$.key.name").alias("name")).distinct().collect()
    assert {row.name for row in kinds} >= {"OffsetCommitKey", "GroupMetadataKey"}


def test_one_subject_gives_struct_columns(spark, registries):
    logs = registries / "confluent" / "logs"
    frame = load(spark, logs, topic="evolve", schema="evolve-value")
    table = package.open(logs, topic="evolve", schema="evolve-value").to_arrow(["offset", "valueDecoded"]).read_all()
    assert frame.columns[-4:] == ["valueDecoded", "schemaId", "problem", "why"]
    assert frame.where("problem is not null").count() == 0
    rows = {row.offset: row.valueDecoded for row in frame.select("offset", "valueDecoded").collect()}
    assert len(rows) == table.num_rows == 100
    for offset, value in zip(*table.to_pydict().values(), strict=True):
        if value is None:  # a tombstone
            assert rows[offset] is None
            continue
        found = rows[offset].asDict(recursive=True)
        assert found.keys() == value.keys()
        for name, want in value.items():
            if isinstance(want, list):  # a map
                want = dict(want)
            if isinstance(want, dt.time):  # the stored number
                continue
            assert found[name] == want


def test_decode_reads_the_schemas_of_the_log(spark, registries):
    logs = registries / "confluent" / "logs"
    frame = load(spark, logs, topic="top-0", decode="avro", columns="decoded")
    assert frame.where("get_json_object(decoded, '$.value.subject') = 'top-0-value'").count() == 12
    elsewhere = load(spark, logs / "top-0-0", decode="auto", schemas=str(logs), columns="decoded")
    assert elsewhere.where("decoded is null").count() == 0


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ({"startingOfset": "1"}, "did you mean 'startingOffset'?"),
        ({"mode": "LENIENT"}, "option mode: expected PERMISSIVE, DROPMALFORMED or FAILFAST, found 'LENIENT'"),
        ({"columns": "ofset"}, "option columns: there is no column 'ofset'; did you mean 'offset'?"),
        ({"columns": "offset,decoded"}, "option columns: decoded needs decode=auto"),
        ({"output": "batches", "dedupe": "true"}, "output=batches always has the batches of all replicas"),
        ({"output": "batches", "columns": "offset"}, "output=batches has columns of its own"),
        ({"output": "findings", "startingOffset": "1"}, "startingOffset: output=findings always covers whole"),
        ({"columns": "valueDecoded"}, "need the option schema"),
        ({"schema": "t-value"}, "schema 't-value': no record of the topic _schemas is in the given paths"),
        ({"partition": "0-3000000"}, "of at most 1000000, separated by commas, found '0-3000000'"),
        ({"decode": "yes"}, "option decode: expected none, auto, avro, protobuf or json, found 'yes'"),
        ({"startingOffset": "5", "endingOffset": "4"}, "option endingOffset: 4 is below startingOffset 5"),
    ],
)
def test_wrong_options_are_reported_on_the_driver(spark, options, reported):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as error:
        load(spark, BROKER / "c-zstd-0", **options)
    assert reported in str(error.value)


@pytest.mark.parametrize("output", ["records", "batches", "damaged", "findings", "stats", "offsets"])
def test_what_the_source_says_and_raises_steers_no_terminal(tmp_path, capsys, output):
    """Folders may have any name, and both Spark and terminals print errors unchanged."""
    logs = hostile.write(tmp_path / "logs")
    mode = {"mode": "PERMISSIVE"} if output == "records" else {}
    reported = []
    for path in (logs, *sorted(logs.iterdir()), *(logs / f"{name}-gone" for name in hostile.NAMES)):
        source = KdumpDataSource({"path": str(path), "output": output, **mode})
        try:
            reader = source.reader(None)
            for partition in reader.partitions():
                reported += [batch.num_rows for batch in reader.read(partition)]
        except (UnreadableError, UsageError) as error:
            reported.append(str(error))
        shown = f"{reported.pop() if reported else ''}\n{capsys.readouterr().err}".encode("utf-8", "backslashreplace")
        assert not terminals.Screen(shown, 0).faults, path


def test_what_a_stream_says_steers_no_terminal(tmp_path, capsys):
    logs = hostile.write(tmp_path / "logs")
    gone = logs / f"{hostile.NAMES[0]}-gone"
    with pytest.raises(UnreadableError) as error:
        KdumpStreamReader(words.parse({"path": str(gone)})).latestOffset({}, None)
    assert not terminals.Screen(str(error.value).encode(), 0).faults
    reader = KdumpStreamReader(words.parse({"path": str(logs), "mode": "PERMISSIVE", "failOnDataLoss": "false"}))
    end = reader.latestOffset({}, None)
    planned = reader.partitions({}, end)
    for file in logs.glob(f"{glob.escape(hostile.NAMES[0])}*/*.log"):
        file.unlink()
    for partition in planned:
        list(reader.read(partition))
    reader.commit(end)
    said = capsys.readouterr().err
    assert "gone; continuing with the remaining records" in said
    assert not terminals.Screen(said.encode("utf-8", "backslashreplace"), 0).faults


@pytest.mark.parametrize(("mode", "lines"), [("FAILFAST", 0), ("PERMISSIVE", 1), ("DROPMALFORMED", 1)])
def test_the_driver_says_that_a_read_goes_on_after_damage(capsys, mode, lines):
    for output in ("records", "damaged"):
        KdumpDataSource({"path": str(BROKER / "c-zstd-0"), "mode": mode, "output": output}).reader(None).partitions()
        said = [
            line
            for line in capsys.readouterr().err.splitlines()
            if line.startswith(f"kdump: mode {mode} leaves out damaged ranges")
        ]
        assert len(said) == (lines if output == "records" else 0)
        assert all('.option("output", "damaged") with mode PERMISSIVE lists all' in line for line in said)
