"""A partition folder that grows, and a stream over it without Spark."""

from __future__ import annotations

import json

from kdump.spark.source import options as words
from kdump.spark.source import reading, streaming
from kdump.spark.source.listings import Listings
from kdump.spark.source.marks import DataLossError
from kdump.spark.source.streaming import TriggerLimits
from testing import forge
from tests.helpers.segments import marker

NONE = TriggerLimits()
ID = "AbCdEfGhIjKlMnOpQrStUw"
"""A topic id."""


class Log:
    """A partition folder that grows."""

    def __init__(self, folder):
        self.folder = folder
        self.next = 0
        self.roll()

    def roll(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / f"{self.next:020}.log"
        self.file.touch()

    def batch(self, count=3, **given):
        records = [forge.record(b"k", b"%d" % (self.next + n), offset=n) for n in range(count)]
        made = forge.batch(records, base_offset=self.next, **given)
        self.next += count
        return made

    def append(self, batches=1, **given):
        for _ in range(batches):
            with self.file.open("ab") as file:
                file.write(self.batch(**given))

    def marker(self, producer, kind, **given):
        """The marker of an aborted (0) or committed (1) transaction."""
        self.next += 1
        return marker(self.next - 1, producer, kind, **given)

    def end(self, producer, kind, **given):
        with self.file.open("ab") as file:
            file.write(self.marker(producer, kind, **given))


class Stream:
    """Does what Spark does with a stream reader; offsets go through JSON, as in Spark's checkpoint."""

    def __init__(self, path, **given):
        self.options = words.SourceOptions(paths=(str(path),), **given)
        self.at = {}
        self.listings = Listings()
        self.reported = []

    def trigger(self, limits=NONE, output="records"):
        """Return the offsets of the records of one trigger."""
        end = json.loads(json.dumps(streaming.advance(self.options, self.at, limits, listings=self.listings).offsets))
        start, self.at = self.at, end
        return self.replay(start, end, output)

    def replay(self, start, end, output="records"):
        splits = streaming.between(self.options, start, end, self.lost, listings=self.listings)
        kind = output if output == "damaged" else "records"
        columns = ("partition", "offset") if kind == "records" else ()
        given = {"paths": self.options.paths, "isolation": self.options.isolation}
        options = words.SourceOptions(**given, output=kind, columns=columns)
        rows = [row for split in splits for batch in reading.read(split, options) for row in batch.to_pylist()]
        if output == "where":
            return [(row["partition"], row["offset"]) for row in rows if row["offset"] % 3 == 0]
        return [row["offset"] for row in rows] if output == "records" else rows

    def lost(self, text):
        if self.options.fail_on_data_loss:
            raise DataLossError(text)
        self.reported.append(text)
