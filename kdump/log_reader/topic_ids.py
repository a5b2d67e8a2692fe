"""Chooses the present topic of a name, if folders of a deleted topic of this name are in the paths too.

Leader epochs and offsets of two topics cannot be compared: a new topic begins at 0 again. So folders with the id of a
deleted topic are left out, with a note, before the best replica is chosen.
"""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from kdump.errors import StoreError, UnreadableError, discard
from kdump.formats.partition_metadata import ZERO_ID, id_text
from kdump.log_dirs.file_names import leftover_state
from kdump.segments.log_end import last_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kdump.log_dirs.partition import Partition


class CurrentId(NamedTuple):
    """The id of the present topic of a name. ``why`` ends the note on a folder with another id."""

    topic_id: bytes
    why: str

    def note(self, partition: Partition, own: bytes | None, what: str = "") -> str:
        """Return the note that a folder is left out ``what`` if its topic id ``own`` is another one, else ""."""
        if own is None or own in {ZERO_ID, self.topic_id}:
            return ""
        return (
            f"{partition.files.shown(partition.folder)}: left out{what}, because its topic id is {id_text(own)}, but "
            f"{partition.topic} has the topic id {id_text(self.topic_id)} {self.why}"
        )


def topic_id_of(partition: Partition) -> bytes | None:
    """Return the topic id of a folder; None without a valid one. Raises StoreError."""
    try:
        found = partition.topic_id(discard)
    except StoreError:
        raise
    except UnreadableError:
        return None
    return None if found == ZERO_ID else found


def newest_ids(partitions: Iterable[Partition]) -> dict[str, CurrentId]:
    """Return topic -> its newest id, for topics whose folders have several ids. Raises StoreError.

    The newest id has the log with the latest record. If timestamps are equal or absent, it has the file that was
    written last. A topic in one log dir has one id: its folders are not read.
    """
    topics: defaultdict[str, list[Partition]] = defaultdict(list)
    for one in partitions:
        if one.topic is not None and one.segments and leftover_state(one.folder) is None:
            topics[one.topic].append(one)
    found: dict[str, CurrentId] = {}
    for topic, folders in topics.items():
        if len({(one.files, one.log_dir) for one in folders}) < 2:
            continue
        ids = [(topic_id, one) for one in folders if (topic_id := topic_id_of(one)) is not None]
        if len({topic_id for topic_id, _ in ids}) > 1:
            ages = [(_age(one), topic_id, one) for topic_id, one in ids]
            age, topic_id, newest = max(ages, key=itemgetter(0))
            others = [other[0] for other, its_id, _ in ages if its_id != topic_id]
            what, folder = "records" if age[0] > max(others) else "files", newest.files.shown(newest.folder)
            found[topic] = CurrentId(topic_id, f"in {folder}, whose {what} are newer")
    return found


def current_ids(ids: Mapping[str, bytes], partitions: Iterable[Partition]) -> dict[str, CurrentId]:
    """Return topic -> the id of the present topic. ``ids`` are those in the metadata log. Raises StoreError."""
    why = "in __cluster_metadata: a start of the broker makes the folder stray"
    known = {topic: CurrentId(topic_id, why) for topic, topic_id in ids.items()}
    return newest_ids(one for one in partitions if one.topic not in known) | known


def _age(partition: Partition) -> tuple[int, int]:
    """Return the largest timestamp of the last batch, and the time of the last write, in ms; -1 if unknown."""
    try:
        last = last_batch(partition.segments)
    except UnreadableError:  # its reader reports it
        last = None
    return -1 if last is None else last.max_timestamp, max(one.modified or -1 for one in partition.segments)


def of_deleted_topics(
    partitions: Iterable[Partition], note: Callable[[str], None], current: Mapping[str, CurrentId], what: str = ""
) -> list[Partition]:
    """Return the folders whose ids are not ``current``. ``note`` gets a sentence on each: see ``CurrentId.note``."""
    found = []
    for one in partitions:
        present = current.get(one.topic or "")
        if present is not None and (text := present.note(one, topic_id_of(one), what)):
            note(text)
            found.append(one)
    return found


def of_present_topics(partitions: Sequence[Partition], note: Callable[[str], None]) -> list[Partition]:
    """Return the partitions without folders of deleted topics. ``note`` gets a sentence on each. Raises StoreError."""
    gone = set(map(id, of_deleted_topics(partitions, note, newest_ids(partitions))))
    return [one for one in partitions if id(one) not in gone]
