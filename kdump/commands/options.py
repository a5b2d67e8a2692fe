"""Options that several commands share: what to read, and which records of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from kdump.commands import words
from kdump.commands.limits import CACHE, MAX_BATCH_BYTES
from kdump.errors import UsageError
from kdump.log_dirs.finder import Wanted
from kdump.log_reader.filter import RECORD_TYPES, Filter

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.rows.redaction import Redactor

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

INPUTS: Final[list[Decorator]] = [
    click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(allow_dash=True)),
    click.option("--topic", "topics", multiple=True, metavar="NAME", help="Only this topic; globs such as 'orders*'."),
    click.option("--partition", "partitions", multiple=True, metavar="N", help="Only these partitions: 0, 0,2, 0-3."),
    click.option("--leftovers", is_flag=True, help="Read .deleted, .swap, .cleaned files, -delete and -stray folders."),
]
PRIVACY: Final[list[Decorator]] = [
    click.option("--no-payload", is_flag=True, help="Leave out keys, values and headers."),
    click.option("--redact", is_flag=True, help="Hash keys and values with the secret of KDUMP_REDACT_KEY."),
    click.option("--redact-key", metavar="FILE", help="The secret for --redact, from a file."),
]
KEY_COLUMNS: Final = frozenset({"key", "keyEncoding"})
VALUE_COLUMNS: Final = frozenset({"value", "valueEncoding", "headers", "decoded"})
"""Columns that hold payloads."""
LIMITS: Final[list[Decorator]] = [MAX_BATCH_BYTES, CACHE]
FILTERS: Final[list[Decorator]] = [
    click.option("--offset", metavar="A..B", help="Offsets A to B, both included; A.., ..B and A alone too."),
    click.option("--since", metavar="TIME", help="Timestamps from TIME on: ISO 8601 (UTC), ms since 1970, or -2h."),
    click.option("--until", metavar="TIME", help="Timestamps before TIME."),
    click.option("--key", metavar="TEXT", help="This key: text, hex:00ff or base64:AP8=."),
    click.option("--grep", metavar="REGEX", help="Key or value holds a match of REGEX; (?i) ignores case."),
    click.option("--header", "headers", multiple=True, metavar="K[=V]", help="Has this header; all that are given."),
    click.option("--producer-id", "producer_ids", multiple=True, metavar="ID", help="Batches of this producer."),
    click.option("--epoch", "epochs", multiple=True, metavar="N", help="Batches of this leader epoch."),
    click.option(
        "--type", "types", multiple=True, metavar="TYPES", help=f"Records of these types: {', '.join(RECORD_TYPES)}."
    ),
    click.option("--transactional/--not-transactional", default=None, help="Batches in transactions, or outside."),
    click.option(
        "--isolation",
        type=click.Choice(("read_uncommitted", "read_committed")),
        default="read_uncommitted",
        show_default=True,
        help="read_committed gives what such a consumer is given.",
    ),
]


def add(options: list[Decorator]) -> Decorator:
    """Return a decorator that adds options in the order of the list."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def wanted(options: dict[str, Any]) -> Wanted:
    """Take the options of INPUTS (but the paths) and LIMITS out of ``options``."""
    return Wanted(
        topics=options.pop("topics"),
        partitions=words.numbers(options.pop("partitions"), "partition"),
        leftovers=options.pop("leftovers"),
        max_batch_bytes=options.pop("max_batch_bytes"),
    )


def filter_of(options: dict[str, Any]) -> Filter:
    """Take the options of FILTERS out of ``options``. Raises UsageError."""
    given = {name: options.pop(name) for name in _NAMES}
    first, last = (None, None) if given["offset"] is None else words.offsets(given["offset"])
    since, until = (None if given[name] is None else words.moment(given[name]) for name in ("since", "until"))
    if since is not None and until is not None and since >= until:
        raise UsageError(f"--since {given['since']} is not before --until {given['until']}")
    try:
        grep = None if given["grep"] is None else re.compile(given["grep"].encode("utf-8", "surrogateescape"))
    except re.error as reason:
        raise UsageError(f"--grep {given['grep']}: {reason}") from None
    types = words.one_of(given["types"], RECORD_TYPES, str, "type of a record") if given["types"] else ()
    return Filter(
        first_offset=first,
        last_offset=last,
        since=since,
        until=until,
        key=None if given["key"] is None else words.payload(given["key"]),
        grep=grep,
        headers=tuple(map(words.header, given["headers"])),
        producer_ids=words.numbers(given["producer_ids"], "producer id"),
        leader_epochs=words.numbers(given["epochs"], "leader epoch"),
        types=frozenset(types),
        transactional=given["transactional"],
        committed=given["isolation"] == "read_committed",
    )


def redactor(options: dict[str, Any]) -> Redactor | None:
    """Return what the options of PRIVACY hash payloads with, None where they do not. Raises UsageError."""
    if not options["redact"]:
        if options["redact_key"] is not None:
            raise UsageError("--redact-key goes with --redact")
        return None
    from kdump.rows.redaction import Redactor, secret

    return Redactor(secret(options["redact_key"]))


_NAMES: Final = (
    "offset",
    "since",
    "until",
    "key",
    "grep",
    "headers",
    "producer_ids",
    "epochs",
    "types",
    "transactional",
    "isolation",
)
