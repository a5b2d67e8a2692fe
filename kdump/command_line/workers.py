"""Selects the workers that read partitions by --jobs and --master: this process, processes, or executors of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.command_line import option_values
from kdump.command_line.limit_options import JOBS, Shared
from kdump.errors import UsageError
from kdump.log_dirs.local import LOCAL
from kdump.parallel import costs
from kdump.primitives.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import click

    from kdump.command_line.session import Session
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition
    from kdump.primitives.processes import Workers


def _checked(_: click.Context, __: click.Parameter, master: str | None) -> str | None:
    """Reject an invalid Spark master URL before anything is read."""
    if master is not None:
        from kdump.spark import session

        session.check()
        session.check_master(master)
    return master


def _settings(_: click.Context, __: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    return option_values.pairs("--conf", pairs, "NAME=VALUE", "spark.executor.memory=4g")


def with_packages(conf: dict[str, str], packages: Sequence[str]) -> dict[str, str]:
    """Return settings of Spark with packages added (``GROUP:NAME:VERSION``), which Spark fetches from Maven."""
    if not packages:
        return conf
    before = conf.get(_PACKAGES)
    return {**conf, _PACKAGES: ",".join([*([before] if before else []), *packages])}


_PACKAGES: Final = "spark.jars.packages"
CONF: Final = Shared.option(
    "Who reads",
    "--conf",
    multiple=True,
    metavar="K=V",
    callback=_settings,
    help="A setting of Spark.",
)
PACKAGES: Final = Shared.option(
    "Who reads",
    "--packages",
    multiple=True,
    metavar="GROUP:NAME:VERSION",
    help="A package that Spark fetches from Maven, such as org.apache.hadoop:hadoop-aws:3.4.1.",
)
WORKERS: Final[list[Callable[[Callable[..., Any]], Callable[..., Any]]]] = [
    JOBS,
    Shared.option(
        "Who reads",
        "--master",
        metavar="URL",
        callback=_checked,
        help="Read with Spark at this URL instead of --jobs: local[N], spark://HOST:PORT, yarn, k8s://URL.",
    ),
    CONF,
    PACKAGES,
]
"""The options that choose the workers; :meth:`WhoReads.taken` reads them."""


class WhoReads(NamedTuple):
    """The values of the WORKERS options: ``jobs`` processes, or Spark on ``master`` with the settings ``conf``."""

    jobs: int | None
    master: str | None = None
    conf: dict[str, str] = {}  # noqa: RUF012  it is never changed

    @classmethod
    def taken(cls, options: dict[str, Any]) -> WhoReads:
        """Remove the options of WORKERS from ``options``; some commands have only --jobs. Raises UsageError."""
        conf = with_packages(options.pop("conf", {}), options.pop("packages", ()))
        who = cls(options.pop("jobs"), options.pop("master", None), conf)
        if who.master is None and who.conf:
            raise UsageError("--conf and --packages need --master")
        if who.master is not None and who.jobs is not None:
            raise UsageError("--jobs cannot be combined with --master")
        if who.master is not None and costs.is_watched():
            raise UsageError("--cache drop cannot be combined with --master: it works only on this machine")
        if who.master is not None:
            from kdump.spark import session

            session.use_stores(session.configured(who.conf))
        return who

    def workers(self, partitions: Sequence[Partition], much: int, run: Session) -> Workers | None:
        """Return the workers that read partitions, or None if this process reads them.

        Without --master, this process reads the partitions if there is only one, or if one is in a store. Without
        --jobs, this process also reads partitions that together have fewer than ``much`` bytes. Raises UsageError for
        inputs that only this machine can read, and KdumpError if Spark does not start.
        """
        if self.master is None:
            jobs = costs.processes_beside(partitions, much) if self.jobs is None else self.jobs
            if jobs < 2 or len(partitions) < 2:
                return None
            # forked processes cannot use the connections of a store
            return None if any(_is_far(part.files) for part in partitions) else Processes(jobs)
        for path, files in ((one.name, one.files) for part in partitions for one in part.segments):
            if files is not LOCAL and not _is_far(files):
                raise UsageError(f"--master: {path} is in an archive or in remote storage, which Spark cannot read")
        if not partitions:
            return None
        from kdump.spark.workers import SparkWorkers

        return SparkWorkers.start(self.master, self.conf, lambda *done: _show(run, *done))


def _is_far(files: Files) -> bool:
    if files is LOCAL:
        return False
    from kdump.log_dirs.remote import RemoteFiles

    return isinstance(files, RemoteFiles)


def _show(run: Session, what: str, done: int, total: int) -> None:
    run.progress.show(f"{what}: {done} of {total} tasks" if total else what)
