"""The options of the clone of kafka-dump-log.sh (``DumpLogSegments``). It has the output of each release since 0.8.0.

:mod:`.dispatch` dumps files, :mod:`.run` has the state of a run, :mod:`.dialects` the differences between releases.
"""

from typing import Final, NamedTuple

from kdump.primitives import compression
from kdump.primitives.wire import INT32_MAX

DEFAULT_MAX_MESSAGE_SIZE: Final = 5 << 20


class Options(NamedTuple):
    print_data_log: bool = False
    deep_iteration: bool = False
    verify_index_only: bool = False
    index_sanity_check: bool = False
    skip_record_metadata: bool = False
    max_message_size: int = DEFAULT_MAX_MESSAGE_SIZE
    max_bytes: int = INT32_MAX
    """Maximum number of bytes of a segment that are read."""
    max_batch_bytes: int = compression.DEFAULT_LIMIT
    """Largest batch accepted, in bytes, compressed or decompressed. Only kdump has this option."""
    key_decoder_class: str | None = None
    """The class name on the command line; "" for the default class."""
    value_decoder_class: str | None = None
    decoder_switch: str | None = None
    """A decoder switch such as ``offsets-decoder``, which overrides the decoder classes."""
