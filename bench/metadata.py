"""A metadata log of many records, and how long ``kdump metadata`` takes to replay it.

    python -m bench.metadata [--records 1000000] [--times 3] [--profile]

The log is that of a busy cluster: topics are created, configured and deleted, leaders and ISRs change. Printed are
seconds of processor time, of which an idle machine takes no more of the clock, and records a second.
"""

from __future__ import annotations

import argparse
import cProfile
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kdump.answers.metadata.image import image_of
from kdump.formats.record_layout import MAGIC_2, BatchHeader
from kdump.internal_topics import cluster_metadata, frame, interpreter
from kdump.log_dirs.finder import Finder, Wanted
from kdump.primitives.wire import write_unsigned_varint
from kdump.records.magic_2 import write_batch, write_record

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPICS: Final = 2000
PARTITIONS: Final = 6
BROKERS: Final = (1, 2, 3, 4, 5)


def value(name: str, version: int, /, **fields: object) -> bytes:
    """Return a framed message."""
    message = cluster_metadata.MESSAGES[name]
    head = b"".join(map(write_unsigned_varint, (frame.CURRENT, message.types.items[-1][0], version)))
    return head + interpreter.write(message.struct(version), fields)  # type: ignore[arg-type]  # fields of the schema


def batches(seed: int = 1) -> Iterator[list[bytes]]:
    """Yield what a controller appends at a time, without end."""
    chance = random.Random(seed)
    ids: list[bytes] = []
    yield [value("FeatureLevelRecord", 0, name="metadata.version", featureLevel=29)]
    while True:
        if len(ids) < TOPICS or chance.random() < 0.01:
            if len(ids) >= TOPICS:
                yield [value("RemoveTopicRecord", 0, topicId=ids.pop(chance.randrange(len(ids))))]
            ids.append(chance.randbytes(16))
            yield list(_created(ids[-1], chance))
        elif chance.random() < 0.1:
            name = f"topic-{chance.choice(ids).hex()}"
            fields = {"resourceType": 2, "resourceName": name, "name": "retention.ms"}
            yield [value("ConfigRecord", 0, **fields, value=str(chance.randrange(10**9)))]
        else:
            yield [_changed(chance.choice(ids), chance) for _ in range(chance.randrange(1, 40))]


def _created(number: bytes, chance: random.Random) -> Iterator[bytes]:
    yield value("TopicRecord", 0, name=f"topic-{number.hex()}", topicId=number)
    for partition in range(PARTITIONS):
        replicas = chance.sample(BROKERS, 3)
        yield value(
            "PartitionRecord",
            2,
            partitionId=partition,
            topicId=number,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leaderEpoch=0,
            partitionEpoch=0,
            directories=[chance.randbytes(16) for _ in replicas],
        )


def _changed(number: bytes, chance: random.Random) -> bytes:
    fields: dict[str, object] = {"partitionId": chance.randrange(PARTITIONS), "topicId": number}
    fields["isr"] = chance.sample(BROKERS, 2)
    if chance.random() < 0.5:
        fields["leader"] = chance.choice(BROKERS)
    return value("PartitionChangeRecord", 2, **fields)


def write(folder: Path, records: int) -> None:
    """Write a log of about so many records."""
    offset = 0
    with (folder / f"{0:020}.log").open("xb") as out:
        for values in batches():
            data = b"".join(
                write_record(timestamp_delta=0, offset_delta=number, key=None, value=each)
                for number, each in enumerate(values)
            )
            now = 1_790_000_000_000 + offset
            last = len(values) - 1
            out.write(
                write_batch(BatchHeader(offset, 0, 1, MAGIC_2, 0, 0, last, now, now, -1, -1, -1, len(values)), data)
            )
            offset += len(values)
            if offset >= records:
                return


def main() -> None:
    """Write the log, replay it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=3, help="replays, the fastest of which counts")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "__cluster_metadata-0"
        folder.mkdir()
        write(folder, options.records)
        partitions = list(Finder(Wanted(siblings=True)).find([str(folder)]))
        said: list[str] = []
        profile = _profile() if options.profile else None
        times = []
        for _ in range(options.times):
            begun = time.process_time()
            image = image_of(partitions, damage=said.append)
            times.append(time.process_time() - begun)
        if profile is not None:
            profile.disable()
            profile.print_stats("tottime")
        if image is None or said:
            raise SystemExit(f"the log does not replay: {said[:3]}")
        count, took = image.end_offset, min(times)
        print(f"{count} records, {len(image.topics.by_name)} topics: {took:.2f} s, at worst {max(times):.2f} s")
        print(f"{count / took:.0f} records a second; 1,000,000 take {took * 1e6 / count:.1f} s")


def _profile() -> cProfile.Profile:
    profile = cProfile.Profile()
    profile.enable()
    return profile


if __name__ == "__main__":
    main()
