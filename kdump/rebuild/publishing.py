"""Write a rebuilt cluster: a folder that appears complete or not at all."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from kdump.answers.metadata.image import Copies
from kdump.errors import SILENT
from kdump.log_dirs import file_names
from kdump.output import access, files
from kdump.rebuild import account, copying, metadata
from kdump.rebuild.copying import Journal, PlacedPartition
from kdump.rebuild.nodes import folder_of, meta_properties_file
from kdump.rebuild.properties import properties

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kdump.rebuild.cluster import RebuiltCluster
    from kdump.rebuild.volumes import Volumes

METADATA_FOLDER: Final = "__cluster_metadata-0"


def publish(
    rebuilt: RebuiltCluster,
    volumes: Volumes,
    out: Path,
    *,
    jobs: int,
    resume: bool,
    note: Callable[[str], None],
    progress: Callable[[int], None],
) -> None:
    """Write the log dirs of all nodes, their properties and the account as the folder ``out``.

    ``resume`` takes over verified segments of a killed run, and keeps them if this run ends early too. Raises
    UsageError if ``out`` is not empty, UnreadableError if the disk refuses.
    """
    who = access.of_sources(folder.partition for folder in volumes.folders)
    placed = [
        PlacedPartition(each, tuple(folder_of(number) for number in rebuilt.replicas(each))) for each in rebuilt.plans
    ]
    copying.make_sure_of_room(str(out), copying.room(placed) - (copying.copied_before(str(out)) if resume else 0))
    resumes = partial(Journal.is_of, out=str(out)) if resume else None
    with files.new_folder(out, last=account.FILE, access=who, note=note, resumes=resumes) as folder:
        with Journal(folder, str(out), who) as journal:
            copying.write(folder, placed, who, jobs=jobs, journal=journal, done=progress)
            copying.write_lost(folder, rebuilt.plans, rebuilt.unknown, who)
            copies = Copies(volumes.metadata_copies, SILENT)
            secret = who.without(access.of_files(copies.sources()))  # the snapshot has their credentials
            name, data = metadata.snapshot(rebuilt.image)
            for node in rebuilt.to.nodes:
                log_dir = files.make_folders(folder, node.folder, access=who)
                ids = meta_properties_file(node, rebuilt.account.metadata.cluster_id)
                files.fill(log_dir / file_names.META_PROPERTIES, ids, who)
                files.fill(files.make_folders(log_dir, METADATA_FOLDER, access=who) / name, data, secret)
                text = properties(
                    node,
                    rebuilt.to,
                    rebuilt.lost,
                    str(out.absolute() / node.folder),
                    rebuilt.retention_minutes,
                    delays=rebuilt.delays_retention,
                )
                files.fill(folder / f"{node.folder}.properties", text.encode(), who)
            journal.end()
        files.fill(folder / account.FILE, rebuilt.account.encode(), who)


def _nothing(_: object) -> None:
    """Report nothing: the metadata log was read before."""
