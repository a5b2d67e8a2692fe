"""Exports that go on: what is new is written once, and every byte taken so far is accounted for."""

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")

from kdump.errors import UsageError
from tests.test_spark_stream import Log, patiently


def test_ten_incremental_exports_are_one_full_export(spark, tmp_path):
    from kdump.spark_export import following, job

    listener = job.Listener(lambda _: None, lambda *_: None)
    source, out = tmp_path / "in", tmp_path / "out"
    logs = [Log(source / "t-0"), Log(source / "t-1")]

    def export(place, **given):
        return job.Export(paths=(str(source),), out=str(place), options={}, conf={}, **given)

    added = []
    for number in range(10):
        logs[number % 2].append(number % 3)
        if number % 4 == 3:
            logs[0].roll()
        if number == 6:
            broken = bytearray(logs[1].batch())
            broken[-1] ^= 1
            with logs[1].file.open("ab") as file:
                file.write(broken)
        added.append(patiently(lambda: following.run(export(out), listener, forever=False)))
    job.run(export(tmp_path / "full"), listener)

    def rows(place):
        frame = spark.read.parquet(str(place)).drop("topic_name", "date")
        return sorted((row.partition, row.offset, row.value, row.position) for row in frame.collect())

    assert rows(out) == rows(tmp_path / "full")
    assert 20 < len(rows(out)) >= sum(one.rows for one in added)
    assert sum(one.damaged_rows for one in added) == 1
    assert spark.read.parquet(str(out / "_damaged")).count() == 1
    with pytest.raises(UsageError, match="holds no _checkpoint"):
        following.run(export(tmp_path / "full"), listener, forever=False)
