"""``kdump metadata``: the KRaft metadata log as image, topics, tree, events, difference, definitions or snapshot."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from kdump.command_line import option_values
from kdump.command_line.answering import FORM, Answering
from kdump.command_line.limit_options import CACHE, MAX_BATCH_BYTES, PATHS, AtLeast
from kdump.command_line.option_values import MOMENT
from kdump.command_line.options import SHOW_SECRETS, add
from kdump.errors import SILENT, ExitStatus, Reporter, UnreadableError, UsageError
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.log_dirs.remote import shown_paths
from kdump.log_reader.unnamed_logs import may_be_of
from kdump.output.stdout import open_output
from kdump.primitives import timestamps
from kdump.primitives.messages import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.events import Event
    from kdump.answers.metadata.image import MetadataLog
    from kdump.answers.metadata.snapshot_writer import Written
    from kdump.log_dirs.partition import Partition
    from kdump.rebuild.nodes import Voter

RANGE: Final = re.compile(r"(\d{1,20})\.\.(\d{0,20})", re.ASCII)
TIMES: Final = re.compile(r"(-?\d[^/]*?)\.\.(-?\d[^/]*)?", re.ASCII)


class MetadataRequest(NamedTuple):
    """Options: the topics (empty for all), the ``offset`` or the time ``at`` (ms) at which to stop, --show-secrets."""

    topics: tuple[str, ...]
    offset: int | None
    at: int | None
    show_secrets: bool


@click.command("metadata")
@click.option("--offset", type=AtLeast(0), metavar="N", help="Use only records below this offset.")
@click.option(
    "--at",
    type=MOMENT,
    metavar="TIME",
    help="Use only records up to this time: ISO 8601 (UTC), ms, or -2h.",
)
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Only these topics: orders, 'orders*', a,b.")
@click.option("--topics", "list_topics", is_flag=True, help="Show topics with partitions, leaders, ISR and configs.")
@click.option(
    "--tree", metavar="NODE", help="Show a path of kafka-metadata-shell: /, /topics/orders, /cluster/brokers."
)
@click.option(
    "--events", is_flag=True, help="Show the events in order. --topic selects the events of all topics of this name."
)
@click.option(
    "--diff",
    metavar="N..M|PATH",
    help="Show the changes from offset or time N to M (N.. means to the end), or from this log to the log in PATH.",
)
@click.option(
    "--definitions",
    type=click.Choice(("sh", "strimzi")),
    is_flag=False,
    flag_value="sh",
    help="Print topics, configs, ACLs, quotas and users as kafka-*.sh lines, or as resources of Strimzi.",
)
@SHOW_SECRETS
@click.option("--write-snapshot", "folder", metavar="DIR", help="Write the image as a .checkpoint into DIR.")
@click.option(
    "--voters",
    metavar="ID@HOST:PORT,...",
    help="With --write-snapshot: the controllers of a new quorum. Add :DIRECTORYID to a controller not in PATHs.",
)
@click.option("--jobs", type=AtLeast(1), default=1, metavar="N", help="No effect: the log is read in one process.")
@add([PATHS, *FORM, MAX_BATCH_BYTES, CACHE])
def command(**options: Any) -> int:
    """Show the contents of the KRaft metadata log.

    \b
    Examples:
      kdump metadata /var/kafka
      kdump metadata /var/kafka --topics --at -2h
      kdump metadata /var/kafka --events --topic orders
      kdump metadata /var/kafka --diff 1000..2000
      kdump metadata /var/kafka --diff -2h..
      kdump metadata /backup --diff /var/kafka
      kdump metadata /var/kafka --tree /topics/orders
      kdump metadata /var/kafka --definitions > /tmp/new.sh
      kdump metadata /var/kafka -o jsonl | jq 'select(.type == "CONFIG_RECORD")'
      kdump metadata /broker1 --write-snapshot /tmp/new --voters 1@c1:9093

    PATH is a log dir of a controller or broker, the folder __cluster_metadata-0, or a snapshot in it. The image is the
    newest valid snapshot up to the requested offset or time, and the records after it. A metadata transaction is
    applied as a whole. -o jsonl prints the image as the records of Kafka's own snapshot.

    The value of a config is hidden unless Kafka knows its name and its type is not PASSWORD. SCRAM salts and keys, and
    URLs with a password, are hidden too. --show-secrets shows all. --write-snapshot always writes all.

    If a record is damaged or missing, or cannot be applied (an absent topic, an unknown type), standard error names the
    offset or the byte, and the reason. The answer leaves the record out. --events has an event ReplayBroken, but not
    for damage after the last readable batch: nothing proves that records were there.

    Several PATHs are copies of one quorum's log: they are merged by offset and leader epoch. If the files do not
    prove that a record is committed, "committed" of an event is null.

    Records do not show which principal made a change. Events older than the log's first record are lost. The log has
    no client defaults and no configs of properties files.

    --definitions prints a script of kafka-topics.sh, kafka-configs.sh and kafka-acls.sh, or KafkaTopic and KafkaUser
    resources, for a new cluster. Hidden configs, and definitions that these cannot set, become comments. SCRAM
    passwords are not in the log: the script asks for new ones, and uses the old mechanism and iterations.

    --write-snapshot is for rescue: stop the node, and put the file into an empty folder __cluster_metadata-0.

    --voters writes another quorum into the snapshot, for a cluster that has lost most controllers but no broker. Give
    as PATHs the metadata log dirs of all remaining controllers and brokers: the snapshot gets a higher end offset than
    each copy, so brokers load it. A voter whose meta.properties is not in PATHs needs its directory id:
    1@controller1:9093:DIRECTORYID. Controllers register again when they start. kdump prints where to put the file.

    Exit status: 0 answered; 1 something cannot be read; 2 wrong usage; 3 damage was found, or replay fails.
    """
    request = MetadataRequest(
        option_values.names(options["topics"]), options.pop("offset"), options["at"], options.pop("show_secrets")
    )
    modes = {name: options.pop(name) for name in ("list_topics", "tree", "events", "diff", "definitions", "folder")}
    voters: str | None = options.pop("voters")
    if voters is not None and not modes["folder"]:
        raise UsageError("--voters works only with --write-snapshot DIR")
    if sum(mode not in {None, False} for mode in modes.values()) > 1:
        raise UsageError("give one of --topics, --tree, --events, --diff, --definitions and --write-snapshot")
    if request.topics and (modes["tree"] is not None or modes["folder"] or modes["definitions"]):
        raise UsageError("--topic cannot be combined with --tree, --definitions or --write-snapshot")
    if request.offset is not None and request.at is not None:
        raise UsageError("--offset cannot be combined with --at")
    run = Answering({**options, "partitions": ()})
    log = _log(run, run.paths)
    if log is None:
        return run.session.status
    if modes["events"]:
        return _events(run, log, request)
    if modes["diff"] is not None:
        return _diff(run, log, modes["diff"], request)
    image = _image(run, log, request.offset, request.at)
    if voters is not None:
        return _write_with_voters(run, image, log, modes["folder"], voters)
    if image.open_transaction is not None:
        run.session.note(
            f"the metadata transaction that begins at offset {image.open_transaction} has not ended: its changes are "
            "left out"
        )
    if modes["folder"] is not None:
        return _write(run, image, log, modes["folder"])
    if modes["definitions"]:
        return _define(run, image, modes["definitions"], show_secrets=request.show_secrets)
    return _show(run, image, request, list_topics=modes["list_topics"], tree=modes["tree"])


def _log(run: Answering, paths: Iterable[str]) -> MetadataLog | None:
    from kdump.answers.metadata.image import NOTHING, Copies, MetadataLog
    from kdump.answers.metadata.records import TOPIC

    session = run.session
    given = list(paths)
    wanted = Wanted(topics=(TOPIC,), siblings=True, log_dirs=True, max_batch_bytes=run.asked.max_batch_bytes)
    of_finder = Reporter(note=run.report.note, fail=session.fail)
    found = list(Finder(wanted, of_finder, brief=True).find(given))
    if not found and not session.statuses and "-" not in given:  # the folder of a copy may have any name
        anywhere = Wanted(siblings=True, log_dirs=True, max_batch_bytes=run.asked.max_batch_bytes)
        unnamed = (each for each in Finder(anywhere, of_finder, brief=True).find(given) if each.topic is None)
        found = [each for each in unnamed if may_be_of(TOPIC, each)]
    _of_one_cluster(found)
    damage, note = map(lru_cache(maxsize=1000), (session.damage, session.note))  # a difference reads the log twice
    copies = Copies(found, Reporter(damage=damage, note=note, fail=session.fail))
    if not copies and not session.statuses:
        session.fail(UnreadableError(shown_paths(given), NOTHING))
    return MetadataLog(copies) if copies else None


def _of_one_cluster(found: Iterable[Partition]) -> None:
    states = LogDirStates(SILENT)
    known = [state.properties for state in map(states.of, found) if state.properties is not None]
    clusters = sorted({properties.cluster_id for properties in known if properties.cluster_id is not None})
    if len(clusters) > 1:
        raise UsageError(f"the logs belong to several clusters ({', '.join(clusters)}): name the paths of one cluster")


def _image(run: Answering, log: MetadataLog, offset: int | None, at: int | None = None) -> ClusterImage:
    image = log.known_image(shown_paths(run.paths), offset=offset, at=at)
    if offset is not None and image.end_offset < offset:
        run.session.note(f"the log ends at offset {image.end_offset}, before the requested offset {offset}")
    return image


def _events(run: Answering, log: MetadataLog, request: MetadataRequest) -> int:
    from kdump.answers.metadata.answer import takes
    from kdump.answers.metadata.events import without_secrets
    from kdump.printers.answer_tables import metadata as tables

    seen: set[str] = set()

    def meant() -> Iterator[Event]:
        for event in log.history(offset=request.offset, at=request.at):
            seen.update([event.topic] if event.topic else ())
            if takes(request.topics, event.topic):
                yield event if request.show_secrets else without_secrets(event)

    status = run.answer(meant(), tables.events)
    _note_absent(run, request.topics, seen, "no event names the topic {!r}")
    return status


def _note_absent(run: Answering, topics: Iterable[str], known: Collection[str], text: str, other: str = "") -> None:
    from kdump.answers.metadata.answer import takes

    for name in topics:
        if not any(takes((name,), topic) for topic in known):
            run.session.note(f"{text.format(name)}{did_you_mean(name, known) or other}")


def _diff(run: Answering, log: MetadataLog, wanted: str, request: MetadataRequest) -> int:
    from kdump.answers.metadata.answer import difference_without_secrets, differences, takes
    from kdump.printers.answer_tables import metadata as tables

    ends = RANGE.fullmatch(wanted)
    times = None if ends or option_values.is_there(wanted) else TIMES.fullmatch(wanted)
    if (ends or times) and (request.offset is not None or request.at is not None):
        raise UsageError("--diff N..M cannot be combined with --offset or --at")
    if times:
        moments = [timestamps.moment(end) if end else None for end in times.groups()]
        earlier, later = (_image(run, log, None, end) for end in moments)
    elif ends:
        earlier, later = (_image(run, log, int(end) if end else None) for end in ends.groups())
    else:
        other = _log(run, [wanted])
        if other is None:
            return run.session.status
        earlier, later = (_image(run, each, request.offset, request.at) for each in (log, other))
    _note_absent(
        run, request.topics, {*earlier.topics.by_name, *later.topics.by_name}, "neither image has a topic {!r}"
    )
    found = (each for each in differences(earlier, later) if takes(request.topics, each.topic))
    return run.answer(found if request.show_secrets else map(difference_without_secrets, found), tables.differences)


def _define(run: Answering, image: ClusterImage, form: str, *, show_secrets: bool) -> int:
    from kdump.printers.definitions import shell_lines, strimzi_lines

    if run.output != "table":
        raise UsageError("--definitions cannot be combined with --output: --definitions takes sh or strimzi")
    write = shell_lines if form == "sh" else strimzi_lines
    with open_output() as out:
        for line in write(image, show_secrets=show_secrets):
            out.write(line.encode("utf-8", "backslashreplace") + b"\n")
    return run.session.status


def _show(run: Answering, image: ClusterImage, request: MetadataRequest, *, list_topics: bool, tree: str | None) -> int:
    from kdump.answers.metadata.answer import image_records, record_line, record_text, topic_lines
    from kdump.printers.answer_lines import write_texts
    from kdump.printers.answer_tables import metadata as tables

    topics, show = request.topics, {"show_secrets": request.show_secrets}
    deleted = "; --events lists topics that were deleted"
    _note_absent(run, topics, image.topics.by_name, "no topic {!r} is in this image", deleted)
    if list_topics:
        return run.answer(topic_lines(image, topics, **show), tables.topics)
    if tree is not None:
        from kdump.answers.metadata.tree import leaves

        return run.answer(leaves(image, tree, **show), tables.nodes)
    if run.output == "jsonl":
        with open_output() as out:
            write_texts((record_text(record, **show) for record in image_records(image, topics)), out)
        return run.session.status
    if run.output == "csv":
        return run.answer((record_line(record, **show) for record in image_records(image, topics)), tables.records)
    return run.answer((), lambda _: tables.image(image, topics, **show))


def _write(run: Answering, image: ClusterImage, log: MetadataLog, folder: str) -> int:
    from kdump.output import files
    from kdump.printers.answer_tables import metadata as tables

    run.session.must_be_whole(folder)
    if run.session.statuses:
        raise UsageError("damage makes this image incomplete: choose an --offset below the damage")
    files.outside(run.paths, folder)
    return run.answer([_written(run, image, log, folder)], tables.written)


def _written(run: Answering, image: ClusterImage, log: MetadataLog, folder: str) -> Written:
    from kdump.answers.metadata import snapshot_writer
    from kdump.output import access, files

    data = snapshot_writer.encode(image)
    who = access.of_files(log.copies.sources())  # it has the secrets of the log
    written = files.write(folder, {snapshot_writer.file_name(image): data}, access=who, note=run.session.note)
    return snapshot_writer.Written(str(written[0]), image.end_offset, image.epoch, len(data))


def _write_with_voters(run: Answering, image: ClusterImage, log: MetadataLog, folder: str, voters: str) -> int:
    """Write an image with other voters. Damage is accepted (other copies may have the records), failed replay not."""
    from kdump.output import files
    from kdump.printers.answer_tables import metadata as tables
    from kdump.rebuild import metadata
    from kdump.rebuild.nodes import parse_voters

    if ExitStatus.UNREADABLE in run.session.statuses:
        raise UsageError("no snapshot was written, because the input named above cannot be read: leave it out")
    if log.breaks:
        raise UsageError("the record named above cannot be replayed: choose an --offset below the first such record")
    files.outside(run.paths, folder)
    copies = log.copies.partitions
    known = _with_directories(run, parse_voters(voters), copies)
    was_static = not image.kraft_version
    metadata.change_voters(image, known, metadata.ends(copies, run.session.note))
    line = _written(run, image, log, folder)
    for text in metadata.what_to_do(line.path, known, image, was_static=was_static):
        run.session.note(text)
    return run.answer([line], tables.written)


def _with_directories(run: Answering, voters: list[Voter], copies: Iterable[Partition]) -> list[Voter]:
    """Add missing directory ids from meta.properties. Raises UsageError if one is unknown or differs from the file."""
    from kdump.rebuild.nodes import address, uuid

    states = LogDirStates(Reporter(run.session.note, fail=run.session.fail))
    there: dict[str, str] = {}
    for copy in copies:
        found = states.of(copy).properties
        if found is not None and found.broker_id is not None and found.directory_id is not None:
            there[found.broker_id.strip()] = found.directory_id.strip()
    known = []
    for voter in voters:
        text = there.get(str(voter.id))
        if voter.directory_id is not None:
            if text is not None and uuid(text) != voter.directory_id:
                raise UsageError(
                    f"voter {voter.id}: its meta.properties has directory.id={text}, but --voters has another id: "
                    "the node would never join the quorum"
                )
            known.append(voter)
        elif text is not None:
            known.append(voter._replace(directory_id=uuid(text)))
        else:
            raise UsageError(
                f"the directory id of node {voter.id} is unknown. Name the node's metadata log dir as a path, or take "
                "directory.id from its meta.properties: "
                f"--voters {voter.id}@{address(voter.host, voter.port)}:DIRECTORYID"
            )
    return known
