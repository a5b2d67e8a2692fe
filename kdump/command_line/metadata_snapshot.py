"""``kdump metadata --write-snapshot``: the image as a file that a controller begins with, and its ``--voters``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.answers.metadata import snapshot_writer
from kdump.errors import ExitStatus, Reporter, UsageError
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.output import access, files
from kdump.printers.answer_tables import metadata as tables
from kdump.rebuild import metadata
from kdump.rebuild.nodes import address, parse_voters, uuid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.image import MetadataLog
    from kdump.answers.metadata.snapshot_writer import Written
    from kdump.command_line.answering import Answering
    from kdump.log_dirs.partition import Partition
    from kdump.rebuild.nodes import Voter


def write(run: Answering, image: ClusterImage, log: MetadataLog, folder: str) -> int:
    """Write the snapshot of an image into a folder. Raises UsageError where something is damaged."""
    if run.session.met:
        raise UsageError("no snapshot is written of an image that has breaks or damage: choose an --offset below")
    files.outside(run.paths, folder)
    return run.answer([_written(run, image, log, folder)], tables.written)


def _written(run: Answering, image: ClusterImage, log: MetadataLog, folder: str) -> Written:
    data = snapshot_writer.encode(image)
    who = access.of_files(log.copies.sources())  # it holds the secrets that they hold
    written = files.write(folder, {snapshot_writer.file_name(image): data}, access=who, note=run.session.note)
    return snapshot_writer.Written(str(written[0]), image.end_offset, image.epoch, len(data))


def write_quorum(run: Answering, image: ClusterImage, log: MetadataLog, folder: str, voters: str) -> int:
    """Write the snapshot of an image with other voters, and print its path.

    Damage that another copy repairs is accepted. A record that cannot be replayed is an error, as without voters.
    """
    if ExitStatus.UNREADABLE in run.session.met:
        raise UsageError("no snapshot is written where something cannot be read: leave that path out, or repair it")
    if log.breaks:
        raise UsageError("no snapshot is written of an image that has breaks: choose an --offset below the first one")
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
    """Return voters with the directory ids that the metadata log dirs in the paths have. Raises UsageError."""
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
                    f"voter {voter.id}: its meta.properties has directory.id={text}, not the id of --voters: "
                    "with another one it never takes part in the quorum"
                )
            known.append(voter)
        elif text is not None:
            known.append(voter._replace(directory_id=uuid(text)))
        else:
            raise UsageError(
                f"no meta.properties of node {voter.id} is in the paths: name its metadata log dir, or give the "
                f"directory.id of that file: --voters {voter.id}@{address(voter.host, voter.port)}:DIRECTORYID"
            )
    return known
