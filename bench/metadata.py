"""How long ``kdump metadata`` takes to replay a large metadata log.

    python -m bench.metadata [--records 1000000] [--times 3] [--profile]

The log is that of a busy cluster of 5 brokers, 2,000 topics and 12,000 partitions. Of 100 records about 70 are
PartitionChangeRecord (ISR and leaders, in batches as brokers come and go), and 20 NoOpRecord (one batch each).
5 are PartitionRecord, 3 ConfigRecord, the rest TopicRecord, RemoveTopicRecord and BrokerRegistrationChangeRecord. It
prints this mix, processor seconds (on an idle machine also wall seconds), and records a second.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kdump.__main__ import MANY
from kdump.answers.metadata.image import image_of
from kdump.errors import Reporter
from kdump.formats.record_layout import MAGIC_2, BatchHeader
from kdump.internal_topics import cluster_metadata, interpreter
from kdump.internal_topics.schema import by_type
from kdump.log_dirs.finder import Finder, Wanted
from kdump.primitives.wire import write_unsigned_varint
from kdump.records.magic_2 import write_batch, write_record

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPICS: Final = 2000
PARTITIONS: Final = 6
BROKERS: Final = (1, 2, 3, 4, 5)
NAMES: Final = {number: message.name for number, message in by_type(cluster_metadata.MESSAGES, "Record").items()}


def value(name: str, version: int, /, **fields: object) -> bytes:
    """Return a framed message."""
    message = cluster_metadata.MESSAGES[name]
    head = b"".join(map(write_unsigned_varint, (interpreter.FRAME, message.types.items[-1][0], version)))
    return head + interpreter.write(message.struct(version), fields)  # type: ignore[arg-type]  # fields of the schema


def batches(seed: int = 1) -> Iterator[list[bytes]]:
    """Yield what a controller appends at a time, endlessly."""
    chance = random.Random(seed)
    ids: list[bytes] = []
    yield [value("FeatureLevelRecord", 0, name="metadata.version", featureLevel=29)]
    yield [value("RegisterBrokerRecord", 3, brokerId=number, brokerEpoch=number) for number in BROKERS]
    while len(ids) < TOPICS:
        ids.append(chance.randbytes(16))
        yield list(_created(ids[-1], chance))
    while True:
        (kind,) = chance.choices(("idle", "broker", "partitions", "config", "topic"), (54, 1, 30, 9, 2))
        if kind == "idle":
            yield [value("NoOpRecord", 0)]
        elif kind == "broker":
            number = chance.choice(BROKERS)
            fields = {"brokerId": number, "brokerEpoch": number, "fenced": chance.choice((-1, 1))}
            yield [value("BrokerRegistrationChangeRecord", 1, **fields)]
            yield [_changed(chance.choice(ids), chance) for _ in range(100)]
        elif kind == "partitions":
            yield [_changed(chance.choice(ids), chance) for _ in range(chance.randrange(1, 6))]
        elif kind == "config":
            name = f"topic-{chance.choice(ids).hex()}"
            fields = {"resourceType": 2, "resourceName": name, "name": "retention.ms"}
            yield [value("ConfigRecord", 0, **fields, value=str(chance.randrange(10**9)))]
        else:
            yield [value("RemoveTopicRecord", 0, topicId=ids.pop(chance.randrange(len(ids))))]
            ids.append(chance.randbytes(16))
            yield list(_created(ids[-1], chance))


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


def write(folder: Path, records: int) -> Counter[str]:
    """Write a log of about ``records`` records; return the number of records of each message."""
    offset, mix, made = 0, Counter[str](), batches()
    with (folder / f"{0:020}.log").open("xb") as out:
        while offset < records:
            values = next(made)
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
            mix.update(NAMES[each[1]] for each in values)
    return mix


def main() -> None:
    """Write the log, replay it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=3, help="replays; the fastest one counts")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "__cluster_metadata-0"
        folder.mkdir()
        mix = write(folder, options.records)
        partitions = list(Finder(Wanted(siblings=True)).find([str(folder)]))
        said: list[str] = []
        gc.set_threshold(MANY)  # as the command does
        profile = _profile() if options.profile else None
        times = []
        for _ in range(options.times):
            begun = time.process_time()
            image = image_of(partitions, Reporter(damage=said.append))
            times.append(time.process_time() - begun)
        if profile is not None:
            profile.disable()
            profile.print_stats("tottime")
        if image is None or said:
            raise SystemExit(f"the log does not replay: {said[:3]}")
        count, took = image.end_offset, min(times)
        print(", ".join(f"{each / count:.1%} {name}" for name, each in mix.most_common()))
        print(f"{count} records, {len(image.topics.by_name)} topics: {took:.2f} s, at worst {max(times):.2f} s")
        print(f"{count / took:.0f} records a second; 1,000,000 take {took * 1e6 / count:.1f} s")


def _profile() -> cProfile.Profile:
    profile = cProfile.Profile()
    profile.enable()
    return profile


if __name__ == "__main__":
    main()
