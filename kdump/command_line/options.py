"""The options that several commands share (inputs, filters, decoding, privacy, workers), and their results."""

from __future__ import annotations

import os
import re
import sys
import warnings
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from kdump.command_line import option_values
from kdump.command_line.limit_options import ANY_PATH, CACHE, JOBS, MAX_BATCH_BYTES, PATHS, Shared
from kdump.errors import UnreadableError, UsageError
from kdump.formats.record import GREP_PARTS, KEY_AND_VALUE, RECORD_TYPES
from kdump.log_dirs.file_names import folder_name
from kdump.log_dirs.finder import Wanted
from kdump.log_dirs.local import LOCAL
from kdump.output.stdout import PAGERS
from kdump.parallel import costs
from kdump.primitives import timestamps
from kdump.primitives.processes import Processes
from kdump.primitives.terminal import harmless_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kdump.command_line.session import Session
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition
    from kdump.log_dirs.tiered_storage import RemoteStorage
    from kdump.log_reader.filter import Filter
    from kdump.primitives.processes import Workers
    from kdump.rows.redaction import Redactor
    from kdump.schemas.decoder import PayloadDecoder

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def in_list(
    words: Callable[[click.Context], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return the shell completion of the last item in a list with commas. ``words`` returns the candidates."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        before, comma, start = incomplete.rpartition(",")
        return [f"{before}{comma}{word}" for word in words(ctx) if word.startswith(start)]

    return complete


def topics_of_paths(ctx: click.Context) -> list[str]:
    """Return the topics of folders directly in the given paths, for shell completion; no control characters."""
    found: set[str] = set()
    for path in ctx.params.get("paths") or ctx.args:  # if the value is missing, click leaves paths here
        with suppress(OSError):
            found.update(topic for name in os.listdir(path) if (topic := folder_name(name).topic))  # noqa: PTH208  slow
    return sorted(topic for topic in found if harmless_line(topic) == topic)


REDACT_KEY: Final = "KDUMP_REDACT_KEY"
"""The environment variable with the secret of --redact."""
_KEY_BYTES: Final = 8
"""Minimum length of the secret, in bytes."""
PARTITIONS: Final[list[Decorator]] = [
    Shared.option(
        "Which partitions",
        "--topic",
        "topics",
        multiple=True,
        metavar="NAME",
        help="Only these topics: orders, 'orders*', a,b.",
        shell_complete=in_list(topics_of_paths),
    ),
    Shared.option(
        "Which partitions",
        "--partition",
        "partitions",
        multiple=True,
        metavar="N",
        help="Only these partitions: a number, a list 0,2 or a range 0-3.",
    ),
]
"""Options that select partitions of log dirs; :func:`wanted` reads them."""
LEFTOVERS: Final[Decorator] = Shared.option(
    "Which partitions",
    "--leftovers",
    is_flag=True,
    help="Also read .deleted, .swap and .cleaned files, and -delete, -future and -stray folders.",
)
INPUTS: Final[list[Decorator]] = [PATHS, *PARTITIONS, LEFTOVERS]
EVERY_REPLICA: Final[Decorator] = Shared.option(
    "Which partitions",
    "--every-replica",
    is_flag=True,
    help="Read all replicas of a partition, not only the most complete one.",
)


AT: Final[Decorator] = Shared.option(
    "Time",
    "--at",
    type=option_values.MOMENT,
    metavar="TIME",
    help="The time that counts as now: ISO 8601 (UTC), ms since 1970, or -2h. Default: the clock.",
)


def _without_pager(_: click.Context, __: click.Parameter, given: bool) -> None:
    if given:
        os.environ[PAGERS[0]] = ""


NO_PAGER: Final[Decorator] = Shared.option(
    "Output",
    "--no-pager",
    is_flag=True,
    expose_value=False,
    callback=_without_pager,
    help=f"On a terminal, print long tables without a pager ({' or '.join(PAGERS)}).",
)
LAYOUT: Final = "kdump.table_layout"
"""The key in the ``meta`` of a click context for the layout of tables (:data:`answer_terminal.Layout`)."""


def _laid_out(ctx: click.Context, param: click.Parameter, given: bool) -> None:
    if given:
        ctx.meta[LAYOUT] = str(param.name).replace("_", " ")


LAYOUTS: Final[list[Decorator]] = [
    Shared.option(
        "Output",
        "--all-columns",
        is_flag=True,
        expose_value=False,
        callback=_laid_out,
        help="Print all columns of tables, even if the terminal is too narrow.",
    ),
    Shared.option(
        "Output",
        "-x",
        "--expanded",
        is_flag=True,
        expose_value=False,
        callback=_laid_out,
        help="Print a line for each field of a row.",
    ),
]
DECODE_MODES: Final = ("none", "auto", "avro", "protobuf", "json")
DECODE: Final[list[Decorator]] = [
    Shared.option(
        "Decoding",
        "--decode",
        type=click.Choice(DECODE_MODES),
        default="none",
        show_default=True,
        help="Decode records of Kafka's own topics, and payloads with a schema id: all (auto) or those of one format.",
    ),
    Shared.option(
        "Decoding",
        "--schemas",
        type=ANY_PATH,
        metavar="PATH",
        help="The schema registry's topic: a log dir, folder, segment or archive.  [default: PATH...]",
    ),
    Shared.option(
        "Decoding",
        "--schemas-topic",
        default="_schemas",
        show_default=True,
        metavar="NAME",
        help="The name of the schema registry's topic.",
    ),
]
SHOW_SECRETS: Final[Decorator] = Shared.option(
    "Privacy",
    "--show-secrets",
    is_flag=True,
    help="Show passwords and unknown values in configs, and SCRAM credentials.",
)


class Redact(Shared):
    """``--redact`` without a value, or with fields of decoded payloads: ``--redact value.email,key.id``.

    Without ``=`` the next word is the value only if it looks like fields and no file has this name: a PATH stays an
    argument.
    """

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)
        # click has no public function that leaves a word to the arguments
        parser._match_long_opt = partial(_take_fields, parser._match_long_opt, self.opts)


def _take_fields(
    process: Callable[[str, str | None, Any], None], names: Sequence[str], name: str, value: str | None, state: Any
) -> None:
    if name in names and value is None and not (state.rargs and _looks_like_fields(state.rargs[0])):
        value = ""
    process(name, value, state)


def _looks_like_fields(word: str) -> bool:
    is_field = any(part.strip().startswith(("key.", "value.")) for part in word.split(","))
    return is_field and not os.path.lexists(word)


REDACT: Final[Decorator] = Redact.option(
    "Privacy",
    "--redact",
    is_flag=False,
    flag_value="",
    multiple=True,
    metavar="[FIELD,...]",
    help=f"Hash keys, values and header values with the secret in {REDACT_KEY}. With --decode: also the FIELDs of "
    "decoded payloads, such as value.email.",
)
REDACT_FILE: Final[Decorator] = Shared.option(
    "Privacy", "--redact-key", type=ANY_PATH, metavar="FILE", help="Read the secret for --redact from this file."
)
PRIVACY: Final[list[Decorator]] = [
    Shared.option(
        "Privacy",
        "--no-payload",
        is_flag=True,
        help="Leave out keys, values and headers. Text output still shows the names of headers.",
    ),
    REDACT,
    REDACT_FILE,
    SHOW_SECRETS,
]
DECODE_NEEDS_FIELDS: Final = (
    "--redact hashes whole payloads: with --decode name the fields, such as --redact value.email"
)
TYPES_WITHOUT_HASHES: Final = "--redact cannot be combined with --subject: typed columns cannot hold a hash"
KEY_COLUMNS: Final = frozenset({"key", "keyEncoding", "keyDecoded"})
VALUE_COLUMNS: Final = frozenset({"value", "valueEncoding", "headers", "decoded", "valueDecoded", "why"})
REMOTE: Final[list[Decorator]] = [
    Shared.option(
        "Remote storage",
        "--remote",
        multiple=True,
        type=ANY_PATH,
        metavar="PATH",
        help="Remote storage (tiered topics), a folder or URI. Remote and local segments are read as one log.",
    ),
    Shared.option(
        "Remote storage",
        "--remote-key",
        "remote_keys",
        multiple=True,
        metavar="NAME=FILE",
        help="The private key (PEM) of the key pair NAME, for encrypted segments.",
    ),
]
"""Options for the location of remote segments; :func:`remote_storage` reads them."""
LIMITS: Final[list[Decorator]] = [MAX_BATCH_BYTES, CACHE]
FILTERS: Final[dict[str, Decorator]] = {
    "offset": click.option(
        "--offset", metavar="A..B", help="Offsets A to B, both included. Also: A.., ..B, or one offset A."
    ),
    "since": click.option(
        "--since", metavar="TIME", help="Timestamps from TIME on: ISO 8601 (UTC), ms since 1970, or -2h."
    ),
    "until": click.option("--until", metavar="TIME", help="Timestamps before TIME."),
    "keys": click.option(
        "--key",
        "keys",
        multiple=True,
        metavar="TEXT",
        help="Records with this key: text, hex:00ff or base64:AP8=. If repeated, one must match.",
    ),
    "greps": click.option(
        "--grep",
        "greps",
        multiple=True,
        metavar="REGEX",
        help="Key or value matches REGEX; (?i) ignores case. If repeated, one must match.",
    ),
    "headers": click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="K[=V]",
        help="Records with this header. If repeated, all must match.",
    ),
    "types": click.option(
        "--type",
        "types",
        multiple=True,
        metavar="TYPES",
        help=f"Records of these types: {', '.join(RECORD_TYPES)}.",
        shell_complete=in_list(lambda _: RECORD_TYPES),
    ),
    "isolation": click.option(
        "--isolation",
        type=click.Choice(("read_uncommitted", "read_committed")),
        default="read_uncommitted",
        show_default=True,
        help="read_committed ends at the last stable offset, and leaves out aborted and control records.",
    ),
    "tz": click.option(
        "--tz",
        default="UTC",
        show_default=True,
        metavar="ZONE",
        help="The time zone of a TIME without one: UTC, local, Europe/Berlin, +02:00.",
    ),
    "grep_in": click.option(
        "--grep-in",
        multiple=True,
        metavar="PARTS",
        help=f"Parts that --grep searches: {', '.join(GREP_PARTS)} (header values).  [default: key,value]",
        shell_complete=in_list(lambda _: GREP_PARTS),
    ),
    "producer_ids": click.option(
        "--producer-id", "producer_ids", multiple=True, metavar="ID", help="Batches of this producer."
    ),
    "epochs": click.option("--epoch", "epochs", multiple=True, metavar="N", help="Batches of this leader epoch."),
    "transactional": click.option(
        "--transactional/--not-transactional", default=None, help="Batches in transactions, or not in transactions."
    ),
    "out_of_order": click.option(
        "--out-of-order",
        is_flag=True,
        help="With --until TIME: also read segments that begin after TIME. They may have older records.",
    ),
}
"""The options of a filter of records, by the names of their parameters, in the order of the help."""


def add(options: list[Decorator]) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def wanted(options: dict[str, Any], **more: Any) -> Wanted:
    """Remove inputs (not PATHS) and the batch limit from ``options``; return them with ``more``. Raises KdumpError."""
    return Wanted(
        topics=option_values.names(options.pop("topics")),
        partitions=option_values.numbers(options.pop("partitions"), "partition"),
        max_batch_bytes=options.pop("max_batch_bytes"),
        remote=remote_storage(options),
        **{"leftovers": options.pop("leftovers", False), **more},
    )


def remote_storage(options: dict[str, Any]) -> RemoteStorage | None:
    """Remove REMOTE from ``options``; return the remote storage, or None. Raises UsageError and UnreadableError."""
    paths, given = options.pop("remote", ()), options.pop("remote_keys", ())
    if not paths and not given:
        return None
    from kdump.log_dirs.tiered_storage import RemoteStorage

    files = {name: file for name, _, file in (word.partition("=") for word in given) if name and file}
    if len(files) != len(given):
        raise UsageError(f"--remote-key {' '.join(given)!r} is not NAME=FILE, or repeats a NAME")
    if not paths:
        raise UsageError("--remote-key needs --remote")
    return RemoteStorage.of(paths, files)


def filter_of(options: dict[str, Any]) -> Filter:
    """Remove FILTERS from ``options``; return the filter. Raises UsageError."""
    given = {name: options.pop(name) for name in FILTERS}
    first, last = (None, None) if given["offset"] is None else option_values.offsets(given["offset"])
    tz = option_values.zone(given["tz"])
    since, until = (
        None if given[name] is None else timestamps.moment(given[name], tz=tz) for name in ("since", "until")
    )
    if since is not None and until is not None and since >= until:
        raise UsageError(f"--since {given['since']} is not before --until {given['until']}")
    if given["out_of_order"] and until is None:
        raise UsageError("--out-of-order needs --until")
    types = option_values.one_of(given["types"], RECORD_TYPES, str, "type of a record") if given["types"] else ()
    parts = option_values.one_of(given["grep_in"], GREP_PARTS, str, "part of a record") if given["grep_in"] else ()
    if parts and not given["greps"]:
        raise UsageError("--grep-in needs --grep")
    from kdump.log_reader.filter import Filter

    return Filter(
        first_offset=first,
        last_offset=last,
        since=since,
        until=until,
        keys=frozenset(map(option_values.payload, given["keys"])),
        greps=tuple(map(_pattern, given["greps"])),
        headers=tuple(map(option_values.header, given["headers"])),
        producer_ids=option_values.numbers(given["producer_ids"], "producer id"),
        leader_epochs=option_values.numbers(given["epochs"], "leader epoch"),
        types=frozenset(types),
        transactional=given["transactional"],
        committed=given["isolation"] == "read_committed",
        out_of_order=given["out_of_order"],
        grep_in=frozenset(parts) or KEY_AND_VALUE,
    )


def _pattern(text: str) -> re.Pattern[bytes]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(text.encode("utf-8", "surrogateescape"))
    except (re.error, OverflowError, RecursionError) as reason:
        raise UsageError(f"--grep {text}: {reason}") from None


def redacted_fields(redact: Sequence[str], decode: str) -> tuple[str, ...]:
    """Return the fields of --redact (empty: none, or whole payloads). Raises UsageError: wrong names, no --decode."""
    from kdump.rows.columns import decoded_field

    fields = tuple(part.strip() for word in redact for part in word.split(",") if part.strip())
    for name in fields:
        if decoded_field(name) is None:
            raise UsageError(f"--redact {name}: a field is value.NAME or key.NAME, such as value.customer.email")
    if fields and decode == "none":
        raise UsageError(f"--redact {fields[0]} is a field of a decoded payload: add --decode auto")
    return () if "" in redact else fields


def redactor(*, redact: bool, file: str | None, fields: Sequence[str] = ()) -> Redactor | None:
    """Return the hasher of payloads; None without ``redact`` and ``file``.

    Its secret comes from ``file`` or the environment. ``fields`` are the fields of decoded payloads to hash. Raises
    UsageError and UnreadableError.
    """
    if not redact:
        if file is not None:
            raise UsageError("--redact-key needs --redact")
        return None
    if fields:
        from kdump.rows.redaction import FieldRedactor

        return FieldRedactor(_secret(file), fields)
    from kdump.rows.redaction import Redactor

    return Redactor(_secret(file))


def _secret(file: str | None) -> bytes:
    if file is not None:
        from pathlib import Path

        try:
            found = Path(file).read_bytes().strip()
        except OSError as reason:
            raise UnreadableError.of(file, reason) from reason
    else:
        found = os.environ.get(REDACT_KEY, "").encode("utf-8", "surrogateescape")
    if len(found) < _KEY_BYTES:
        where = file or f"the environment variable {REDACT_KEY}"
        raise UsageError(
            f"--redact needs a secret of {_KEY_BYTES} bytes or more, but {where} has {len(found)}: "
            f"make one with openssl rand -hex 32 > FILE, and add --redact-key FILE"
        )
    return found


def _release(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    if name is not None:
        from kdump.dump_log_segments.dialects import known_release

        known_release(name)
    return name


def _configs(_: click.Context, __: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    given = option_values.pairs("--config", pairs, "KEY=VALUE", "node.id=1")
    found = {name.strip(): value.strip() for name, value in given.items()}
    from kdump.checking import node_id

    node_id(found)
    return found


START: Final[list[Decorator]] = [
    click.option(
        "--release",
        metavar="R",
        callback=_release,
        help="The Kafka release of the broker, such as 3.9.2 or 4.3. Default: the newest known.",
    ),
    click.option(
        "--config",
        "configs",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_configs,
        help="A line of the broker's server.properties. With node.id=N, the PATHs are the log.dirs of broker N.",
    ),
]


def payload_decoder(given: Mapping[str, Any], paths: Sequence[str], run: Session, wanted: Wanted) -> PayloadDecoder:
    """Return the decoder. Without --schemas, schemas come from ``paths``; ``wanted``: batch limit, remote storage."""
    from kdump.log_reader import registry_topic

    return registry_topic.payload_decoder(
        given["decode"],
        paths if given["schemas"] is None else [given["schemas"]],
        wanted,
        topic=given["schemas_topic"],
        report=run.report,
        lost=lambda item: run.damaged_range(item.file.name, item.damage),
    )


def hint_at_schemas(decoder: PayloadDecoder, run: Session) -> None:
    """If a schema was missing, print a note on --schemas, on a terminal only."""
    if decoder.missing and sys.stderr.isatty():
        run.note("these paths lack the schemas of some payloads: name the registry's topic with --schemas PATH")


def warn_of_absent_fields(redactor: Redactor | None, run: Session) -> None:
    """Warn of fields of --redact that no decoded record has: a field with a misspelled name is not hashed."""
    if redactor is None:
        return
    from kdump.rows.redaction import FieldRedactor

    if isinstance(redactor, FieldRedactor):
        for name in redactor.absent:
            run.insist(f"no record has the field {name} of --redact: if the name is misspelled, values are not hashed")


def _checked(_: click.Context, __: click.Parameter, master: str | None) -> str | None:
    """Reject an invalid Spark master URL, or missing PySpark or Java, before anything is read."""
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
    "Workers",
    "--conf",
    multiple=True,
    metavar="K=V",
    callback=_settings,
    help="A setting of Spark.",
)
PACKAGES: Final = Shared.option(
    "Workers",
    "--packages",
    multiple=True,
    metavar="GROUP:NAME:VERSION",
    help="A package that Spark fetches from Maven, such as org.apache.hadoop:hadoop-aws:3.4.1.",
)
WORKERS: Final[list[Callable[[Callable[..., Any]], Callable[..., Any]]]] = [
    JOBS,
    Shared.option(
        "Workers",
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

        Without --master, this process reads a single partition, files in a store, and all files with --jobs 1. If
        --jobs is not given, :func:`costs.processes_beside` decides: below ``much`` bytes this process reads. With
        --master, raises UsageError for files in archives or remote storage, and KdumpError if Spark does not start.
        """
        if self.master is None:
            jobs = costs.processes_beside(partitions, much) if self.jobs is None else self.jobs
            if jobs < 2 or len(partitions) < 2:
                return None
            return None if _in_store(partitions) else Processes(jobs)
        for path, files in ((one.name, one.files) for part in partitions for one in part.segments):
            if files is not LOCAL and not _is_far(files):
                raise UsageError(f"--master: Spark cannot read {path}: it is in an archive or in remote storage")
        if not partitions:
            return None
        from kdump.spark.session import SparkWorkers

        return SparkWorkers.start(self.master, self.conf, lambda *done: _show(run, *done))


def _in_store(partitions: Sequence[Partition]) -> bool:
    if all(files is LOCAL for part in partitions for files in (part.files, *(each.files for each in part.segments))):
        return False
    from kdump.log_dirs.tiered_storage import in_store

    return in_store(partitions)


def _is_far(files: Files) -> bool:
    if files is LOCAL:
        return False
    from kdump.log_dirs.remote import RemoteFiles

    return isinstance(files, RemoteFiles)


def _show(run: Session, what: str, done: int, total: int) -> None:
    run.progress.show(f"{what}: {done} of {total} tasks" if total else what)
