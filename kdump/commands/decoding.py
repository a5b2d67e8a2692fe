"""The decoder that --decode, --schemas and --schemas-topic ask for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from kdump.log_reader.registry_topic import read_store
from kdump.schemas.decoder import FORMATS, PayloadDecoder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kdump.commands.session import Session
    from kdump.log_dirs.finder import Wanted


def payload_decoder(given: Mapping[str, Any], paths: Sequence[str], run: Session, wanted: Wanted) -> PayloadDecoder:
    """Return the decoder of payloads that the options ask for; ``paths`` and ``wanted`` are those of the records."""
    where = paths if given["schemas"] is None else [given["schemas"]]
    store = read_store(
        [path for path in where if path != "-"],
        topic=given["schemas_topic"],
        max_batch_bytes=wanted.max_batch_bytes,
        remote=wanted.remote,
        fail=run.fail,
        lost=lambda item: run.damaged_range(item.file.name, item.damage),
    )
    formats = FORMATS if given["decode"] == "auto" else (given["decode"],)
    return PayloadDecoder(store, formats, wanted.max_batch_bytes)


def hint_at_schemas(decoder: PayloadDecoder, run: Session) -> None:
    """On a terminal, note once how to name the registry's topic where payloads carry an id without a schema."""
    if decoder.missing and sys.stderr.isatty():
        run.note("some payloads carry the id of a schema that is not in these paths: --schemas PATH names others")
