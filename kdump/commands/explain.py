"""``kdump explain``: why a consumer receives the record of an offset, or does not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from kdump.answers.explain.explanation import QUESTION, ExplainOptions, OffsetRange
from kdump.command_line import option_values
from kdump.command_line import options as shared
from kdump.command_line.answering import FORM, Answering
from kdump.command_line.limit_options import CACHE, MAX_BATCH_BYTES, in_paths
from kdump.command_line.question_command import CommandAsking
from kdump.errors import SILENT, UnreadableError, UsageError, discard
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.finder import NO_SEGMENT, Finder
from kdump.log_dirs.remote import shown_paths
from kdump.log_reader.unnamed_logs import with_names
from kdump.primitives.terminal import harmless_line, path_text

if TYPE_CHECKING:
    from collections.abc import Collection

    from kdump.log_dirs.partition import Partition

_WHAT: Final = re.compile(r"(?P<topic>.+)-(?P<partition>\d{1,20})@(?P<offsets>\d{1,20}|\d{1,20}\.\.\d{1,20})", re.ASCII)


@click.command("explain")
@click.argument("asked", nargs=-1, required=True, metavar="TOPIC-PARTITION@OFFSET...")
@in_paths("A log dir, partition folder or archive. Repeat the option for more dirs and other brokers' copies.")
@shared.add(shared.REMOTE)
@shared.add([shared.AT, *FORM, MAX_BATCH_BYTES, CACHE])
def command(*, asked: tuple[str, ...], **options: Any) -> int:
    """Explain why a consumer receives a record, or does not.

    \b
    Examples:
      kdump explain orders-0@1234 --in /var/kafka
      kdump explain orders-0@1000..2000 --in /var/kafka -o jsonl
      kdump explain orders-0@1234 --in /var/kafka --remote /var/tiered
      kdump explain orders-0@1234 --in /broker1/kafka --in /broker2/kafka

    OFFSET is one offset, or A..B (both included): offsets with the same reason are
    one line. kdump explains the log of the first broker, and compares it with the
    replicas in log dirs of other brokers (another node.id). Topics, their deletion
    and configs come from __cluster_metadata, if the paths have it.

    \b
    visible                      a consumer gets it
    control-marker               written by the broker, for no consumer
    aborted-transaction          read_committed does not get it
    open-transaction             its transaction has not ended
    behind-open-transaction      an older transaction has not ended
    compacted                    the cleaner removed it for a newer record of its
                                 key, or as an old tombstone
    aborted-transaction-cleaned, control-marker-cleaned
                                 the cleaner removed it
    delete-records, retention-time, retention-size
                                 it lies below the log start offset
    past-end                     the log ends before it
    above-high-watermark         in-sync replicas do not have it yet
    truncated                    a newer leader epoch truncated it, or will
    not-copied                   neither a local segment nor a finished copy in
                                 remote storage has it
    topic-deleted, damaged, unknown

    If the files allow several reasons, the others are listed as alternatives. While
    a broker runs, the checkpoint of the high watermark is older than its logs.
    Retention is computed from topic configs and dynamic broker configs: log dirs
    have no server.properties.

    Exit status: 0 explained; 1 something cannot be read; 2 wrong usage;
    3 damage was found; 4 only derived files are wrong.
    """
    ranges = [_range(text) for text in asked]
    run = Answering(
        {**options, "jobs": 1, "topics": (), "partitions": ()},
        topics=tuple({one.topic for one in ranges}),
        leftovers=True,
    )
    from kdump.printers.answer_tables import explain as tables

    asking = _asking(run, ranges)
    topics = {part.topic for part in asking.found if part.topic is not None}
    named = tuple(one._replace(topic=_of_printed(one.topic, topics)) for one in ranges)
    return run.answer(QUESTION.ask(asking, ExplainOptions(named)), tables.tables)


def _of_printed(name: str, topics: Collection[str]) -> str:
    """Return ``name`` if it is a topic, else the topic that kdump prints as ``name`` (escaped), else ``name``."""
    found = sorted(topic for topic in topics if name in {path_text(topic), harmless_line(topic)})
    return found[0] if found and name not in topics else name


def _range(text: str) -> OffsetRange:
    found = _WHAT.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} names no offset: write it as orders-0@1234 or orders-0@1000..2000")
    first, last = option_values.offsets(found["offsets"])
    return OffsetRange(found["topic"], int(found["partition"]), first or 0, last or 0)


def _loose(run: Answering, ranges: list[OffsetRange]) -> list[Partition]:
    """Return the logs without a topic in PATHs, as the one requested partition; [] if several are requested."""
    names = {Name(one.topic, one.partition) for one in ranges}
    if len(names) > 1 or any(name.topic is not None for name in run.found_names):
        return []
    every = Finder(run.asked._replace(topics=(), leftovers=False, remote=None), SILENT)
    unnamed = (one for one in every.find(run.paths) if one.is_named and one.segments)
    return list(with_names(unnamed, run.session.note, name=names.pop()))


def _asking(run: Answering, ranges: list[OffsetRange]) -> CommandAsking:
    """Find the requested partitions, and Kafka's own topics that the explanation needs."""
    session, report = run.session, run.report._replace(note=discard)
    found = run.partitions() or _loose(run, ranges)
    if not run.found_names and not session.statuses:
        session.fail(UnreadableError(shown_paths(run.paths), NO_SEGMENT))
    run.shortfalls(found, names={Name(one.topic, one.partition) for one in ranges})
    topics = tuple(topic for topic in QUESTION.also if topic not in run.asked.topics)
    also = Finder(run.asked._replace(topics=topics, leftovers=False, remote=None), report).find(run.paths)
    return CommandAsking(run, [*found, *(also if topics else ())])
