"""The option that bounds what a batch may take: one for every command that reads batches, ``--files`` included."""

from __future__ import annotations

from typing import Final

import click

from kdump import codecs

MAX_BATCH_BYTES: Final = click.option(
    "--max-batch-bytes",
    type=click.IntRange(1),
    default=codecs.DEFAULT_LIMIT,
    show_default=True,
    metavar="BYTES",
    help="The most that a batch may take, as it is and unpacked; more is damage.",
)
