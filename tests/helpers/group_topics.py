"""Keys and values of ``__consumer_offsets`` and ``__share_group_state``, written by hand, and logs of them."""

from __future__ import annotations

import struct

from kdump.answers.collector import as_json
from kdump.answers.groups.collector import TOPICS, ConsumerGroups, GroupsWanted, LogEnds
from kdump.answers.log_dir_pass import LogDirPass
from kdump.errors import Reporter
from kdump.log_dirs.finder import Finder, Wanted
from testing import forge
from tests.helpers.segments import TRANSACTIONAL

TOPIC_ID = bytes(range(16))
DAY = 86_400_000


def text(value: str | None) -> bytes:
    if value is None:
        return struct.pack(">h", -1)
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def commit_key(group: str, topic: str = "orders", partition: int = 0) -> bytes:
    return struct.pack(">h", 1) + text(group) + text(topic) + struct.pack(">i", partition)


def commit_value(
    offset: int, *, at: int = 1000, metadata: str = "", expire: int | None = None, epoch: int = 4
) -> bytes:
    """Version 3, or 1 with an expireTimestamp."""
    if expire is not None:
        return struct.pack(">hq", 1, offset) + text(metadata) + struct.pack(">qq", at, expire)
    return struct.pack(">hqi", 3, offset, epoch) + text(metadata) + struct.pack(">q", at)


def commit_value_4(offset: int, topic_id: bytes) -> bytes:
    tagged = b"\1\0\x10" + topic_id
    return struct.pack(">hqi", 4, offset, 0) + b"\1" + struct.pack(">q", 1000) + tagged


def group_key(group: str) -> bytes:
    return struct.pack(">h", 2) + text(group)


def group_value(
    *members: tuple[str, bytes, bytes], kind: str = "consumer", protocol: str | None = "range", since: int = 1000
) -> bytes:
    """GroupMetadata version 3; members are (member id, subscription, assignment)."""
    out = struct.pack(">h", 3) + text(kind) + struct.pack(">i", 1) + text(protocol) + text(None)
    out += struct.pack(">qi", since, len(members))
    for member_id, subscription, assignment in members:
        out += text(member_id) + text(None) + text("client") + text("/127.0.0.1") + struct.pack(">ii", 1000, 1000)
        for data in (subscription, assignment):
            out += struct.pack(">i", len(data)) + data
    return out


def subscription(*topics: str) -> bytes:
    return struct.pack(">hi", 0, len(topics)) + b"".join(map(text, topics)) + struct.pack(">i", -1)


def assignment(**topics: list[int]) -> bytes:
    out = struct.pack(">hi", 0, len(topics))
    for topic, partitions in topics.items():
        out += text(topic) + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return out + struct.pack(">i", -1)


def share_key(kind: int, group: str, partition: int = 0) -> bytes:
    return struct.pack(">h", kind) + text(group) + TOPIC_ID + struct.pack(">i", partition)


def snapshot_value(start: int, done: int = -1) -> bytes:
    tagged = b"\1\0\4" + struct.pack(">i", done) if done >= 0 else b"\0"
    return struct.pack(">hiiiqqq", 0, 0, 1, 2, start, 5, 5) + b"\1" + tagged


def update_value(start: int, done: int = -1) -> bytes:
    tagged = b"\1\0\4" + struct.pack(">i", done) if done >= 0 else b"\0"
    return struct.pack(">hiiq", 0, 0, 3, start) + b"\1" + tagged


def batches(*records: tuple[bytes, bytes | None], first: int = 0, producer: int = -1) -> bytes:
    """Return one batch for each record; transactional if ``producer`` is given."""
    return b"".join(
        forge.batch(
            [forge.record(key, value)],
            base_offset=first + number,
            base_timestamp=1000 + first + number,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            attributes=TRANSACTIONAL if producer >= 0 else 0,
        )
        for number, (key, value) in enumerate(records)
    )


def write(folder, content: bytes, *, topic: str = "__consumer_offsets", partition: int = 0):
    """Write a partition of one segment; return the log dir."""
    held = folder / f"{topic}-{partition}"
    held.mkdir(parents=True, exist_ok=True)
    (held / f"{0:020}.log").write_bytes(content)
    return folder


def feed(collector, folder, *, coordinators: bool = True) -> None:
    """Feed a collector with the partitions of the coordinators' topics, or with all."""
    found = Finder(Wanted(siblings=True)).find([str(folder)])
    said: list[object] = []
    run = LogDirPass([collector], Reporter(damage=said.append, fail=said.append))
    run.run([one for one in found if one.topic in TOPICS or not coordinators])


def answer(folder, wanted: GroupsWanted | None = None, at: int = 2000) -> list[dict]:
    """Return the lines of the answer about a log dir, as JSON objects."""
    groups = ConsumerGroups(wanted or GroupsWanted())
    feed(groups, folder)
    groups.ends = LogEnds(groups.partitions())
    feed(groups.ends, folder, coordinators=False)
    return [as_json(line) for line in groups.answer(at)]


def offsets(folder, **rest) -> dict[tuple[str, str, int], dict]:
    """Return the offset lines by group, topic and partition."""
    return {
        (line["groupId"], line["topic"], line["partition"]): line
        for line in answer(folder, **rest)
        if line["kind"] == "offset"
    }
