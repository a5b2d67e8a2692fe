"""The decoder that --decode, --schemas and --schemas-topic ask for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from kdump.log_reader import registry_topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kdump.commands.session import Session
    from kdump.log_dirs.finder import Wanted
    from kdump.schemas.decoder import PayloadDecoder


def payload_decoder(given: Mapping[str, Any], paths: Sequence[str], run: Session, wanted: Wanted) -> PayloadDecoder:
    """Return the decoder of payloads that the options ask for; ``paths`` and ``wanted`` are those of the records."""
    return registry_topic.payload_decoder(
        given["decode"],
        paths if given["schemas"] is None else [given["schemas"]],
        wanted,
        topic=given["schemas_topic"],
        fail=run.fail,
        lost=lambda item: run.damaged_range(item.file.name, item.damage),
    )


def hint_at_schemas(decoder: PayloadDecoder, run: Session) -> None:
    """On a terminal, note once how to name the registry's topic where payloads carry an id without a schema."""
    if decoder.missing and sys.stderr.isatty():
        run.note("some payloads carry the id of a schema that is not in these paths: --schemas PATH names others")
