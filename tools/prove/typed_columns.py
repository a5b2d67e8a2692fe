"""Compare the typed columns of the Spark source and of an export with Spark's own ``from_avro``.

    python -m tools.prove.typed_columns [--records 1000000] [--spark-avro 4.2.0] [--seed N]

Writes seeded Avro records of two versions of a subject: all primitive and logical types that both readers have, nested
records, arrays, maps, enums and unions with null. The rows of ``option("schema", "orders-value")``, those of the table
that ``spark-export --partition-by subject`` writes, and those of ``from_avro`` (for the older version with the newer
one as reader's schema) must be the same: ``exceptAll`` both ways is empty. Needs Java 17, and Maven 3 for spark-avro.
The exit status is 1 if a row differs.
"""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.decoding import schema as schema_record
from kdump.spark.export import job
from kdump.spark_source import register
from testing import ROOT, forge
from tools import arguments
from tools.prove.broker import jar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH: Final = 500
COMMON: Final[list[dict[str, Any]]] = [
    {"name": "id", "type": "long"},
    {"name": "flag", "type": "boolean"},
    {"name": "small", "type": "int"},
    {"name": "real", "type": "float"},
    {"name": "ratio", "type": "double"},
    {"name": "text", "type": "string"},
    {"name": "raw", "type": "bytes"},
    {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B", "C"]}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}},
    {
        "name": "weight",
        "type": {"type": "fixed", "name": "Weight", "size": 9, "logicalType": "decimal", "precision": 20, "scale": 2},
    },
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "exact", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "noon", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "tea", "type": {"type": "long", "logicalType": "time-micros"}},
    {"name": "note", "type": ["null", "string"]},
    {"name": "code", "type": {"type": "string", "logicalType": "uuid"}},
    {
        "name": "customer",
        "type": [
            "null",
            {
                "type": "record",
                "name": "Customer",
                "fields": [{"name": "name", "type": "string"}, {"name": "email", "type": ["null", "string"]}],
            },
        ],
    },
    {"name": "lines", "type": {"type": "array", "items": ["null", "Customer"]}},
    {"name": "counts", "type": {"type": "map", "values": "long"}},
]
OLD: Final = {"type": "record", "name": "shop.Order", "fields": [*COMMON, {"name": "gone", "type": "string"}]}
NEW: Final = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        *({**field, "type": "long"} if field["name"] == "small" else field for field in COMMON),
        {"name": "origin", "type": "string", "default": "web"},
        {"name": "extra", "type": ["null", "int"], "default": None},
    ],
}


def main() -> int:
    """Run the proof; return the exit status."""
    parser = arguments.parser(__doc__, records=1_000_000, seed=1)
    parser.add_argument("--spark-avro", default="4.2.0", help="the release of spark-avro (%(default)s)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder, "logs")
        write(logs, given.records, random.Random(given.seed))
        return compared(logs, Path(folder), given.records, jar(f"org.apache.spark:spark-avro_2.13:{given.spark_avro}"))


def value(number: int, chance: random.Random) -> dict[str, Any]:
    """Return a record of both versions."""
    day = dt.date(1950, 1, 1) + dt.timedelta(days=chance.randrange(60_000))
    at = dt.datetime(1975, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=chance.randrange(2**51))
    customer = {"name": f"name {number} \u00fc", "email": chance.choice([None, "a@example.org"])}
    return {
        "id": number,
        "flag": number % 2 == 0,
        "small": chance.randrange(-(2**31), 2**31),
        "real": chance.choice([0.5, -1.25, 3e38]),
        "ratio": chance.uniform(-1e9, 1e9),
        "text": chance.choice(["", "text", "\u6570\u636e"]),
        "raw": chance.randbytes(chance.randrange(4)),
        "hash": chance.randbytes(4),
        "kind": chance.choice("ABC"),
        "price": decimal.Decimal(chance.randrange(-(10**11), 10**11)).scaleb(-3),
        "weight": decimal.Decimal(chance.randrange(-(10**19), 10**19)).scaleb(-2),
        "day": day,
        "at": at,
        "exact": chance.choice([None, at]),
        "local": at.replace(tzinfo=None),
        "noon": dt.time(12, number % 60, 0, number % 1000 * 1000),
        "tea": dt.time(17, number % 60, 1, number % 10**6),
        "note": chance.choice([None, f"note {number}"]),
        "code": f"{number:032x}",
        "customer": chance.choice([None, customer]),
        "lines": [chance.choice([None, customer]) for _ in range(chance.randrange(3))],
        "counts": dict.fromkeys(chance.sample("abc", chance.randrange(3)), number),
        "gone": "old",
        "origin": "shop",
        "extra": chance.choice([None, number % 1000]),
    }


def write(logs: Path, records: int, chance: random.Random) -> None:
    """Write the registry's topic, and a topic of records: a third is of the older version."""
    import fastavro

    parsed = {number: fastavro.parse_schema(each) for number, each in ((1, OLD), (2, NEW))}
    texts = [(1, "orders-value", json.dumps(OLD), "AVRO"), (2, "orders-value", json.dumps(NEW), "AVRO")]
    made = [schema_record(*each) for each in texts]
    made[1] = tuple(part.replace(b'"version": 1', b'"version": 2') for part in made[1])  # type: ignore[assignment]  # two parts
    for topic in ("_schemas", "orders"):
        (logs / f"{topic}-0").mkdir(parents=True)
    body = [forge.record(*pair, offset=offset) for offset, pair in enumerate(made)]
    (logs / "_schemas-0" / f"{0:020}.log").write_bytes(forge.batch(body))
    with (logs / "orders-0" / f"{0:020}.log").open("wb") as out:
        for base in range(0, records, BATCH):
            made_records = []
            for delta in range(min(BATCH, records - base)):
                number = 1 if chance.randrange(3) == 0 else 2
                payload = io.BytesIO()
                fastavro.schemaless_writer(payload, parsed[number], value(base + delta, chance))
                data = b"\0" + number.to_bytes(4, "big") + payload.getvalue()
                made_records.append(forge.record(b"k", data, offset=delta))
            out.write(forge.batch(made_records, base_offset=base))


def for_spark(schema: dict[str, Any]) -> str:
    """Return a schema without times of day: spark-avro 4.2 reads them as TIME, which Spark 4.3 refuses."""
    return re.sub(r', "logicalType": "time-\w+"', "", json.dumps(schema))


def compared(logs: Path, folder: Path, records: int, spark_avro: Path) -> int:
    """Compare both readers in Spark; return the exit status."""
    from pyspark.sql import SparkSession, functions
    from pyspark.sql.avro.functions import from_avro

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}  # of the workers
    settings = {"spark.jars": str(spark_avro), "spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"}
    settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.driver.memory": "2g"}
    settings |= {"spark.sql.shuffle.partitions": "4", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    begun = time.monotonic()
    typed = spark.read.format("kdump").options(schema="orders-value", schemas=str(logs)).load(f"{logs}/orders-0")
    own = typed.select("offset", "schemaId", "valueDecoded.*")
    stored = (
        spark.read.format("kdump")
        .load(f"{logs}/orders-0")
        .selectExpr(
            "offset",
            "cast(conv(hex(substring(value, 2, 4)), 16, 10) as int) as schemaId",
            "substring(value, 6) as payload",
        )
    )
    newest = {"avroSchema": for_spark(NEW)}
    parts = [
        stored.where(f"schemaId = {number}").select(
            "offset", "schemaId", from_avro("payload", for_spark(schema), newest).alias("decoded")
        )
        for number, schema in ((1, OLD), (2, NEW))
    ]
    sparks = parts[0].unionAll(parts[1]).select("offset", "schemaId", "decoded.*")
    table = exported(spark, logs, f"{folder}/lake")
    sides = {}
    for name, frame in (("the source", own), ("the export", table), ("from_avro", sparks)):
        as_list = functions.array_sort(functions.map_entries("counts"))  # maps cannot be compared
        path = f"{folder}/{name.replace(' ', '-')}"
        frame.withColumn("counts", as_list).write.parquet(path)
        sides[name] = spark.read.parquet(path)
    wanted = sides.pop("from_avro")
    wrong = wanted.count() != records
    for name, frame in sides.items():
        wrong |= differ(name, frame, wanted)
    print(f"{len(wanted.columns)} columns, {time.monotonic() - begun:.0f} s")
    spark.stop()
    return int(wrong)


def exported(spark: SparkSession, logs: Path, out: str) -> DataFrame:
    """Export the log by subject, and return the table of the subject."""
    asked = job.Export(paths=(str(logs),), out=out, options={"topic": "orders"}, partition_by=("subject",), conf={})
    job.run(asked, job.Listener(print, lambda *_: None))
    return spark.read.parquet(f"{out}/subject=orders-value").select("offset", "schemaId", "valueDecoded.*")


def differ(name: str, frame: DataFrame, wanted: DataFrame) -> bool:
    """Return whether the types or rows of a frame differ from those of ``from_avro``, and print how."""
    types = [{field.name: field.dataType for field in one.schema} for one in (frame, wanted)]
    other = {column: (types[0].get(column), kind) for column, kind in types[1].items() if types[0].get(column) != kind}
    if other:
        print(f"types that differ: {other}")
    found = frame.select(wanted.columns)
    more, less = found.exceptAll(wanted), wanted.exceptAll(found)
    differing = more.count(), less.count()
    if any(differing):
        more.show(3, truncate=False)
        less.show(3, truncate=False)
    print(f"{name}: {found.count():,} rows, {wanted.count():,} of from_avro, exceptAll both ways: {differing}")
    return any(differing)


if __name__ == "__main__":
    sys.exit(main())
