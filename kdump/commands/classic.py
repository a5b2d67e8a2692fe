"""Runs the DumpLogSegments clone for a command line. Simple ones take a fast path. :mod:`.root` has the options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kdump.dump_log_segments import Options
from kdump.errors import KdumpError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

COMPAT: Final = "4.4"
"""The release of Kafka whose output is printed by default."""
OWN_OPTIONS: Final = frozenset({"compat", "max_batch_bytes", "jobs", "raw_output"})
"""Options of kdump in ``given`` of :func:`classic`: each release allows them."""
FLAGS: Final = {
    f"--{name.replace('_', '-')}": name for name, default in Options._field_defaults.items() if default is False
}
"""Kafka's options without a value, except decoder switches -> the fields of ``Options`` that they set."""


def plain(words: Sequence[str]) -> tuple[str, Options, list[str]] | None:
    """Return the arguments of :func:`classic` without click; None unless ``words`` are one ``--files X`` and FLAGS."""
    files: list[str] = []
    flags: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if word in FLAGS:
            flags[FLAGS[word]] = True
        elif word == "--files":
            files.append(next(rest, "-"))
        else:
            return None
    is_plain = len(files) == 1 and not files[0].startswith("-")
    return (files[0], Options(**flags), ["files", *flags]) if is_plain else None


def classic(
    files: str, options: Options, given: Collection[str], compat: str = COMPAT, jobs: int | None = None
) -> None:
    """Dump ``files``, a list separated by commas. ``given`` has the names of the options on the command line.

    If one is ``raw_output``, a terminal gets control characters. Raises KdumpError, as for options of other releases.
    """
    from kdump import kernel
    from kdump.dump_log_segments.dialects import segments as dialects
    from kdump.dump_log_segments.dispatch import dump_files
    from kdump.dump_log_segments.java_files import java_split
    from kdump.dump_log_segments.run import DumpRun
    from kdump.output.stdout import open_output

    dialect = dialects.find(compat)
    for name in given:
        if name not in OWN_OPTIONS and (option := name.replace("_", "-")) not in dialect.options:
            raise KdumpError(f"DumpLogSegments of Kafka {compat} has no option --{option}")
    decoders = (options.key_decoder_class, options.value_decoder_class, options.decoder_switch)
    if dialect.decoders_imply_print and any(name is not None for name in decoders):
        options = options._replace(print_data_log=True)
    kernel.keep_freed_memory()
    with open_output(escape="raw_output" not in given) as out:
        dump_files(DumpRun(dialect, options, out, release=compat, jobs=jobs), java_split(files))
