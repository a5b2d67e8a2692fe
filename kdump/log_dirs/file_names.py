"""The names of files and folders in a log dir, and what each says."""

from __future__ import annotations

import posixpath
import re
from typing import Final, NamedTuple

from kdump.formats import clean_shutdown, meta_properties, partition_metadata, quorum_state

SEGMENT_NAME: Final = re.compile(r"(?P<stem>(?P<offset>\d{1,20})(?:-[\w-]{22})?)\.log(?P<state>\.\w+)?", re.ASCII)
SIBLING_NAME: Final = re.compile(
    r".*\.(?:index|timeindex|txnindex|snapshot)(?:\.\w+)?|.*-checkpoint|.*\.checkpoint\.(?:part|deleted)|.*\.tmp|"
    + "|".join(map(re.escape, (partition_metadata.NAME, quorum_state.NAME, meta_properties.NAME, clean_shutdown.NAME))),
    re.ASCII,
)
LOG_DIR_FILE: Final = re.compile(
    r".*-offset-checkpoint|.*\.checkpoint|" + "|".join(map(re.escape, (meta_properties.NAME, clean_shutdown.NAME)))
)
FOLDER_NAME: Final = re.compile(r"(?P<topic>.+)-(?P<partition>\d{1,10})", re.ASCII)
LEFTOVER_FOLDER: Final = re.compile(r"(?P<folder>.+-\d{1,10})\.[0-9a-f]{32}-(?P<state>delete|future|stray)", re.ASCII)
TIERED_FOLDER: Final = re.compile(r"(?P<topic>.+)-[\w-]{22}", re.ASCII)
SIBLINGS: Final = ("index", "timeindex", "txnindex", "snapshot")


class Name(NamedTuple):
    """Topic and partition of a folder, None where its name tells none."""

    topic: str | None
    partition: int | None


def folder_name(path: str) -> Name:
    """Return what the folder at ``path`` says it is: a log dir's, a leftover, or tiered storage's topic/partition."""
    above, name = posixpath.split(path.rstrip("/"))
    if leftover := LEFTOVER_FOLDER.fullmatch(name):
        name = leftover["folder"]
    if found := FOLDER_NAME.fullmatch(name):
        return Name(found["topic"], int(found["partition"]))
    if name.isdecimal() and (tiered := TIERED_FOLDER.fullmatch(posixpath.basename(above))):
        return Name(tiered["topic"], int(name))
    return Name(None, None)
