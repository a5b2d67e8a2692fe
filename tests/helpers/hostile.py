"""A log dir whose names, keys, values, groups and topics contain terminal, shell and HTML code."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from testing import GOLDEN, forge
from tests.helpers import group_topics
from tests.helpers.metadata_records import metadata_value

if TYPE_CHECKING:
    from pathlib import Path

NAMES = (
    "\x1b]52;c;cm0gLXJm\x07\x1b[31mRED\x1b[0m\x1b]8;;http:evil\x1b\\link",
    "\x9b31m\x9d52;c;AAAA\x9c",
    "\u202egnp.exe\u2066\u200f\u200e\u061c\u2028",
    "a\nb; rm -rf ~\nerror: fake line",
    "a b'c\"d;$(touch pwned)`id`",
    "<img src=x onerror=alert(1)>",
    "=cmd|' C calc'!A0,\"x\"",
    "-o",
)
NOT_UTF8 = b"\xff\xfe\xc0\x9bbad-0"


def write(folder: Path) -> Path:
    """Write the log dir; return it."""
    topics = []
    for number, name in enumerate(NAMES):
        text = name.encode()
        partition = folder / f"{name}-{number}"
        partition.mkdir(parents=True)
        record = forge.record(text, text * 2, headers=[(text, text)])
        sound = forge.batch([record], leader_epoch=1)
        wrong = bytearray(forge.batch([record], base_offset=1, producer_id=5, attributes=0x10))
        wrong[17] ^= 1
        (partition / f"{0:020}.log").write_bytes(sound + bytes(wrong) + text)
        (partition / f"{0:020}.index").write_bytes(b"\0\0\0\7\0\0\0\7")
        (partition / "leader-epoch-checkpoint").write_text(f"0\n1\n{name}\n")
        (partition / f"{name}.txt").write_text(name)
        fields = {"topicId": bytes(15) + bytes([number + 1])}
        topics.append(metadata_value("TopicRecord", name=name, **fields))
        topics.append(metadata_value("ConfigRecord", resourceType=2, resourceName=name, name=name, value=name))
        topics.append(metadata_value("UserScramCredentialRecord", name=name, mechanism=1, iterations=1))
    odd = folder / os.fsdecode(NOT_UTF8)
    odd.mkdir()
    shutil.copy(folder / f"{NAMES[0]}-0" / f"{0:020}.log", odd)
    records = [forge.record(None, value, offset=at) for at, value in enumerate(topics)]
    metadata = folder / "__cluster_metadata-0"
    metadata.mkdir()
    (metadata / f"{0:020}.log").write_bytes(forge.batch(records))
    commits = [(group_topics.commit_key(name, name), group_topics.commit_value(1, metadata=name)) for name in NAMES]
    group_topics.write(folder, group_topics.batches(*commits))
    shutil.copytree(GOLDEN / "brokers" / "4.2.2" / "__transaction_state-0", folder / "__transaction_state-0")
    return folder
