"""Reads the topic of a schema registry (``_schemas``) from the user's paths, into a store or for a payload decoder."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from kdump.errors import RAISING, SILENT, Reporter, UnreadableError
from kdump.log_dirs import file_names
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.remote import shown_paths
from kdump.log_reader.reader import PartitionReader
from kdump.log_reader.topic_ids import of_present_topics
from kdump.schemas import TOPIC
from kdump.schemas.decoder import FORMATS, PayloadDecoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.log_dirs.partition import Partition
    from kdump.log_dirs.tiered_storage import RemoteStorage
    from kdump.rows.selection import DamagedRange
    from kdump.schemas.store import SchemaStore


def payload_decoder(
    decode: str,
    paths: Sequence[str],
    wanted: Wanted,
    *,
    topic: str = TOPIC,
    report: Reporter = RAISING,
    lost: Callable[[DamagedRange], None] = lambda _: None,
) -> PayloadDecoder:
    """Return a decoder of payloads with a schema of the format ``decode``; ``auto``: all formats, and known layouts.

    The decoder reads the schemas of ``topic`` in ``paths`` (except ``-``) at the first payload that may have a schema.
    ``wanted`` has the batch size limit and the remote storage. ``report`` and ``lost`` are those of :func:`read_store`.
    """

    def read() -> SchemaStore:
        return read_store(
            [path for path in paths if path != "-"],
            topic=topic,
            max_batch_bytes=wanted.max_batch_bytes,
            remote=wanted.remote,
            report=report,
            lost=lost,
        )

    return PayloadDecoder(read, FORMATS if decode == "auto" else (decode,), wanted.max_batch_bytes)


def read_store(
    paths: Sequence[str],
    *,
    topic: str = TOPIC,
    max_batch_bytes: int | None = None,
    remote: RemoteStorage | None = None,
    report: Reporter = RAISING,
    lost: Callable[[DamagedRange], None] = lambda _: None,
) -> SchemaStore:
    """Return the schemas of a registry's topic in ``paths``: log dirs, partition folders, segments or archives.

    If several replicas have an offset, it is replayed once. ``report`` receives the errors of unreadable files and
    notes on folders of deleted topics, ``lost`` the damaged ranges. If no partition of the topic is found, ``.log``
    files named in ``paths`` are read. Their folders must name no topic, and their first record must have a key of a
    registry.
    """
    from kdump.schemas.store import SchemaStore

    wanted = Wanted(topics=(topic,), remote=remote)
    if max_batch_bytes is not None:
        wanted = wanted._replace(max_batch_bytes=max_batch_bytes)
    reader = PartitionReader(outcomes=False, report=Reporter(fail=report.fail))
    partitions = list(Finder(wanted, Reporter(note=report.note, fail=report.fail), brief=True).find(paths))
    if not partitions:
        logs = [path for path in paths if path.endswith(f".{file_names.LOG}")]
        every = Finder(wanted._replace(topics=(), remote=None), SILENT).find(logs) if logs else ()
        partitions = [one for one in every if one.topic is None and _is_of_registry(one)]
    found: dict[int, tuple[int, bytes | None, bytes | None]] = {}
    for record in reader.records(of_present_topics(partitions, report.note), lost):
        found.setdefault(record.offset, (record.timestamp, record.key, record.value))
    store = SchemaStore(topic)
    for offset in sorted(found):
        store.add(offset, *found[offset])
    return store


def _is_of_registry(unnamed: Partition) -> bool:
    from kdump.log_reader.unnamed_logs import first_records
    from kdump.schemas.store import has_registry_key

    return any(has_registry_key(record.key) for record in islice(first_records(unnamed), 1))


def no_record(topic: str, paths: Sequence[str]) -> UnreadableError:
    """Return the error for paths that hold no record of a registry's topic."""
    reason = f"no record of {topic} was found: if the topic has another name, give it with --schemas-topic"
    return UnreadableError(shown_paths(paths), reason)
