"""Who goes through partitions, each of which one reads: this process, several, or the executors of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from kdump.commands import option_values, parallel
from kdump.commands.limit_options import JOBS, Shared
from kdump.errors import UsageError
from kdump.log_dirs.local import LOCAL, LocalFile
from kdump.log_dirs.remote import RemoteFiles
from kdump.primitives.processes import Processes
from kdump.segments import parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.commands.session import Session
    from kdump.log_dirs.partition import Partition
    from kdump.primitives.processes import Workers

MANY_PACKED: Final = 16 << 20
"""Without --jobs, several processes read records from so many bytes on, if most bytes are compressed."""
MANY_RECORDS: Final = 64 << 20
"""The same if most are not compressed."""
MANY_HEADERS: Final = 256 << 20
"""Without --jobs, several processes read headers of batches from so many bytes on."""


def _checked(_: click.Context, __: click.Parameter, master: str | None) -> str | None:
    """Refuse what no master of Spark is called, before anything is read."""
    if master is not None:
        from kdump.spark import session  # few runs want Spark

        session.check()
        session.check_master(master)
    return master


def _settings(_: click.Context, __: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    return option_values.pairs("--conf", pairs, "NAME=VALUE", "spark.executor.memory=4g")


def with_packages(conf: dict[str, str], packages: Sequence[str]) -> dict[str, str]:
    """Return settings of Spark with packages (``GROUP:NAME:VERSION``) that it fetches from Maven repositories."""
    if not packages:
        return conf
    before = conf.get(_PACKAGES)
    return {**conf, _PACKAGES: ",".join([*([before] if before else []), *packages])}


_PACKAGES: Final = "spark.jars.packages"
CONF: Final = click.option(
    "--conf",
    cls=Shared,
    title="Who reads",
    multiple=True,
    metavar="K=V",
    callback=_settings,
    help="A setting of Spark.",
)
PACKAGES: Final = click.option(
    "--packages",
    cls=Shared,
    title="Who reads",
    multiple=True,
    metavar="GROUP:NAME:VERSION",
    help="A package that Spark fetches from Maven, such as org.apache.hadoop:hadoop-aws:3.4.1.",
)
WORKERS: Final[list[Callable[[Callable[..., Any]], Callable[..., Any]]]] = [
    JOBS,
    click.option(
        "--master",
        cls=Shared,
        title="Who reads",
        metavar="URL",
        callback=_checked,
        help="Let Spark read there, in place of --jobs: local[N], spark://HOST:PORT, yarn, k8s://URL.",
    ),
    CONF,
    PACKAGES,
]
"""The options for who reads; :meth:`WhoReads.taken` takes them."""


class WhoReads(NamedTuple):
    """Who is to read, as the options of WORKERS say: ``jobs`` processes, or Spark on ``master`` with settings."""

    jobs: int | None
    master: str | None = None
    conf: dict[str, str] = {}  # noqa: RUF012  nobody changes it

    @classmethod
    def taken(cls, options: dict[str, Any]) -> WhoReads:
        """Take the options of WORKERS out of ``options``, or --jobs alone. Raises UsageError."""
        conf = with_packages(options.pop("conf", {}), options.pop("packages", ()))
        who = cls(options.pop("jobs"), options.pop("master", None), conf)
        if who.master is None and who.conf:
            raise UsageError("--conf and --packages are for the Spark that --master names")
        if who.master is not None and who.jobs is not None:
            raise UsageError("--jobs is for processes of this machine: leave it out, or --master")
        if who.master is not None and LocalFile.watch is not None:
            raise UsageError("--cache drop watches over the page cache of this machine: leave it out, or --master")
        if who.master is not None:
            from kdump.spark import session

            session.use_stores(who.conf)
        return who

    def workers(self, partitions: Sequence[Partition], much: int, run: Session) -> Workers | None:
        """Return who goes through partitions, None for this process.

        Without --jobs several processes do for ``much`` bytes or more. Raises UsageError for what only this machine
        can read, KdumpError where Spark does not start.
        """
        if self.master is None:
            jobs = each_in_one(partitions, much) if self.jobs is None else self.jobs
            far = any(isinstance(part.files, RemoteFiles) for part in partitions)  # connections do not live in forks
            return Processes(jobs) if jobs > 1 and len(partitions) > 1 and not far else None
        for path, files in ((one.name, one.files) for part in partitions for one in part.segments):
            if files is not LOCAL and not isinstance(files, RemoteFiles):
                raise UsageError(f"--master: only this process reads {path}, of an archive or of remote storage")
        if not partitions:
            return None
        from kdump.spark.workers import SparkWorkers

        return SparkWorkers.start(self.master, self.conf, lambda *done: _show(run, *done))


def _show(run: Session, what: str, done: int, total: int) -> None:
    run.progress.show(f"{what}: {done} of {total} tasks" if total else what)


def many_records(partitions: Sequence[Partition]) -> int:
    """Return the size (bytes) from which on several processes are worth it for the records of ``partitions``."""
    size = sum(partition.size for partition in partitions)
    compression_decides = MANY_PACKED <= size < MANY_RECORDS
    return MANY_PACKED if compression_decides and not parallel.are_plain(partitions) else MANY_RECORDS


def within(partitions: Sequence[Partition], much: int, jobs: int | None) -> int:
    """Return how many processes share the large segments of partitions, which are read one after the other then.

    That is one unless the largest partition has so much of all bytes that this is sooner done than reading each in one
    process. ``jobs`` of None stands for as many as are worth it: one for less than ``much``, one and its thread for a
    single partition without compression.
    """
    sizes = [partition.size for partition in partitions]
    largest, total = max(sizes, default=0), sum(sizes)
    count = min(parts.free_processors(), parts.MOST) if jobs is None else jobs
    if largest * (2 * count - 1) <= count * total:  # largest / count + total - largest is no less than largest
        return 1
    if jobs is None and total < much:
        return 1
    if jobs is None and not parallel.is_packed(partitions[sizes.index(largest)]):
        return min(count, parts.AS_THREADS) if len(partitions) == 1 else 1
    return count


def each_in_one(partitions: Sequence[Partition], much: int) -> int:
    """Return how many processes go through partitions, each of which one reads, where nobody says how many.

    One does for less than ``much`` bytes, in an archive and while the page cache is watched.
    """
    is_local = all(segment.files is LOCAL for partition in partitions for segment in partition.segments)
    if LocalFile.watch is not None or not is_local:
        return 1
    size = sum(partition.size for partition in partitions)
    return 1 if size < much else min(parts.free_processors(), parts.MOST, len(partitions))
