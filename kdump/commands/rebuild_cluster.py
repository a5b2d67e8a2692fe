"""``kdump rebuild-cluster``: writes log dirs for new nodes from the remaining volumes of a lost cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kdump.command_line import option_values, session
from kdump.command_line.answering import write_answer
from kdump.command_line.limit_options import ANY_PATH, CACHE, JOBS, AtLeast
from kdump.errors import Reporter, UnreadableError, UsageError, many, offsets_are
from kdump.output import files
from kdump.parallel import costs
from kdump.primitives import timestamps

if TYPE_CHECKING:
    from kdump.rebuild.cluster import RebuildWish, RebuiltCluster
    from kdump.rebuild.publishing import Publishing
    from kdump.rebuild.volumes import Volumes

AT_A_TIME: Final = 4
"""Default number of processes that copy segments after the plan. Those that plan and copy can be more."""
STATES: Final = ("whole", "merged", "partial", "lost")


@click.command("rebuild-cluster")
@click.argument("paths", nargs=-1, required=True, metavar="VOLUME...", type=ANY_PATH)
@click.option("--out", metavar="DIR", help="The output folder, new or empty.")
@click.option(
    "--node",
    "nodes",
    multiple=True,
    metavar="ID@HOST:PORT[/CONTROLLERPORT]",
    help="A new node. With CONTROLLERPORT it is also a controller.  [default: 1@localhost:9092/9093]",
)
@click.option("--cluster-id", metavar="ID", help="The id of the new cluster.  [default: the id of the volumes]")
@click.option(
    "--release",
    metavar="RELEASE",
    help="The Kafka release of the new nodes.  [default: the oldest that supports the metadata]",
)
@click.option(
    "--listener", default="PLAINTEXT", show_default=True, metavar="NAME", help="The inter.broker.listener.name."
)
@click.option(
    "--controller-listener",
    default="CONTROLLER",
    show_default=True,
    metavar="NAME",
    help="The first of controller.listener.names.",
)
@click.option(
    "--replication",
    type=AtLeast(1),
    metavar="N",
    help="Number of replicas of each partition.  [default: as before, but at most the number of nodes]",
)
@click.option("--committed-only", is_flag=True, help="Leave out records above the high watermark.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME",
    help="Only these topics: orders, 'orders*', a,b. Kafka's own topics are always included.",
)
@click.option("--plan", "plans", is_flag=True, help="Print the plan, and write nothing.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(("table", "jsonl")),
    default="table",
    show_default=True,
    help="The format: tables for people, JSON lines.",
)
@click.option("--resume", is_flag=True, help="Continue after a kill, with the files that are already in DIR.")
@click.option("--yes", is_flag=True, help="Do not ask before data is left out.")
@JOBS
@CACHE
@click.option("-q", "--quiet", is_flag=True, help="Print errors, damage and warnings only.")
def command(paths: tuple[str, ...], **options: Any) -> int:
    """Rebuild a cluster from its volumes: complete log dirs that new nodes start on.

    \b
    Examples:
      kdump rebuild-cluster /backup/broker-1 /backup/broker-2 --plan
      kdump rebuild-cluster /backup/broker-1 --out /mnt/new --node 1@k1:9092/9093
      kdump rebuild-cluster VOLUME... --out D --node 1@a:9092/9093 --node 2@b:9092
      kdump rebuild-cluster VOLUME... --out DIR --release 4.3.1 --topic 'orders*'

    VOLUME is a log dir of a broker or controller, or a folder of log dirs. Give all remaining volumes of the cluster,
    also damaged ones. They must be on local disks and are opened read-only: extract archives first. Volumes of a
    ZooKeeper cluster are accepted; the new cluster uses KRaft.

    DIR gets a log dir node-ID for each node, with all remaining topics, configs, ACLs, SCRAM users, quotas, offsets and
    transactions. It also gets node-ID.properties with lines for server.properties, account.json with the copied,
    merged, omitted and lost offsets, and lost+found with the omitted bytes.

    Each partition is taken from the copy with the newest leader epoch, then the highest end offset. Every batch is
    verified; a damaged batch is taken from another copy. Folders of an earlier topic of the same name are recognized by
    the topic id. A partition without a copy is empty, and begins at the highest committed or checkpointed offset.

    Without a metadata log topics come from folders, and --release is needed. Configs, ACLs and users are lost.

    Read the warnings before the first start: brokers delete offsets and records past their retention within seconds.

    Exit status: 0 no record is lost; 1 something cannot be read; 2 wrong usage; 3 records are lost or damaged.
    """
    from kdump.printers.answer_tables import rebuild as tables

    out: str | None = options["out"]
    run = session.Session(quiet=options["quiet"])
    if out is None and not options["plans"]:
        raise UsageError("give --out DIR, or --plan to see the plan")
    wish = _wish(options)
    if out is not None:
        files.outside(paths, out)
        files.folder_must_be_free(Path(out))
    volumes = _survey(run, paths)
    if volumes is None:
        return run.status
    if out is not None:
        files.outside(paths, out, [folder.partition for folder in volumes.folders])
    if out is None or options["plans"]:
        rebuilt = _prepare(run, volumes, wish, options)
    else:
        rebuilt = _publish(run, volumes, wish, out, options)
    write_answer(rebuilt.account.lines(), options["output"], tables.tables)
    return run.status


def _wish(options: dict[str, Any]) -> RebuildWish:
    from kdump.broker_start import release
    from kdump.rebuild.cluster import RebuildWish
    from kdump.rebuild.nodes import Listeners, parse_nodes

    named: str | None = options["release"]
    return RebuildWish(
        nodes=parse_nodes(options["nodes"]),
        listeners=Listeners(options["listener"], options["controller_listener"]).checked(),
        cluster_id=options["cluster_id"],
        release=None if named is None else release.of(named),
        replication=options["replication"],
        committed_only=options["committed_only"],
        topics=option_values.names(options["topics"]),
        at=timestamps.now(),
    )


def _survey(run: session.Session, paths: tuple[str, ...]) -> Volumes | None:
    """Return the log dirs, or None if there is none or a path is unreadable. I/O errors of a disk are only reported."""
    from kdump.rebuild.volumes import survey

    errors: list[UnreadableError] = []
    volumes: Volumes | None = None
    try:
        volumes = survey(paths, Reporter(run.damage, note=run.note, fail=errors.append))
    except UnreadableError as reason:  # no log dir was found
        if reason not in errors:
            errors.append(reason)
    for error in errors:
        run.fail(error)
    if volumes is None or not all(error.is_of_disk for error in errors):
        run.insist(
            "nothing was written, because the volume named above cannot be read: make it readable, or leave it out"
        )
        return None
    return volumes


def _prepare(
    run: session.Session,
    volumes: Volumes,
    wish: RebuildWish,
    options: dict[str, Any],
    writer: Publishing | None = None,
) -> RebuiltCluster:
    from kdump.rebuild.cluster import prepare

    parts = [folder.partition for folder in volumes.folders]
    jobs: int | None = options["jobs"]
    if jobs is None:
        jobs = costs.processes_beside(parts, costs.READING_HEADERS, least=1 if writer is None else AT_A_TIME)
    run.watch(sum(part.size for part in parts))
    rebuilt = prepare(
        volumes,
        wish,
        Reporter(damage=run.damage, note=run.note, fail=run.fail),
        jobs=jobs,
        writer=writer,
        done=lambda each: run.progress(each.size),
    )
    run.progress.clear()
    for each in rebuilt.plans:
        for text in each.notes:
            run.note(text)
        for text in each.unreadable:
            run.fail(UnreadableError(each.name, text))
        for lost in each.lost:
            run.damage(f"{each.name}: {offsets_are(lost.from_offset, lost.until_offset - 1)} lost: {lost.why}")
        if each.state == "lost" and not each.lost:
            remote = f"remote storage has offsets {each.log_start} to {each.end - 1}. "
            run.damage(
                f"{each.name} is lost: no volume has its log. {remote if each.log_start < each.end else ''}"
                f"The new partition begins at offset {each.end}"
            )
        if each.repaired:
            run.damages()
    for folder in rebuilt.at_risk:
        run.damage(
            f"{folder.path} is not in the new cluster: the metadata has no partition with its name and topic id. Its "
            "batches go to lost+found/unknown-topics"
        )
    for warning in rebuilt.account.warnings if options["output"] != "table" else ():
        run.insist(warning)
    return rebuilt


def _confirmed(rebuilt: RebuiltCluster) -> bool:
    """Ask before data is left out. Without a terminal, or if nothing is left out, return True without asking."""
    dropped = rebuilt.account.dropped
    if not dropped or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    click.echo(f"The new cluster will lack or change {many(len(dropped), 'thing')}:", err=True)
    for one in dropped[:20]:
        click.echo(f"  {one.what} {one.name}: {one.why}", err=True)
    if len(dropped) > 20:
        click.echo(f"  and {len(dropped) - 20} more: --plan lists them", err=True)
    return click.confirm("Write the new cluster?", err=True)


def _publish(
    run: session.Session, volumes: Volumes, wish: RebuildWish, out: str, options: dict[str, Any]
) -> RebuiltCluster:
    from kdump.rebuild.publishing import Publishing

    with Publishing(volumes, Path(out), resume=options["resume"], note=run.note) as publishing:
        rebuilt = _prepare(run, volumes, wish, options, publishing)
        if not options["yes"] and not _confirmed(rebuilt):
            raise UsageError("nothing was written")
        run.watch(sum(node.bytes for node in rebuilt.account.nodes))
        publishing.finish(rebuilt, jobs=options["jobs"] or AT_A_TIME, progress=run.progress)
    run.progress.clear()
    states = [each.state for each in rebuilt.account.partitions]
    kinds = ", ".join(f"{states.count(state)} {state}" for state in STATES if state in states)
    run.note(
        f"{many(rebuilt.account.metadata.topics, 'topic')}, {many(len(states), 'partition')} ({kinds}) are in {out}. "
        f"What to do next: read {out}/account.json, and the first lines of {out}/node-*.properties"
    )
    return rebuilt
