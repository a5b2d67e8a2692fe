"""The command line: what runs it, and what each ending says and returns."""

from __future__ import annotations

import sys

from kdump.errors import KdumpError, UsageError


def main() -> int:  # noqa: PLR0911  each ending has its status
    """Run kdump; return the exit status."""
    from kdump.output.stdout import CLOSED_PIPE, OutputError, give_up, open_standard_streams

    try:
        open_standard_streams()
        result = _run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        give_up()
        return CLOSED_PIPE
    except FileNotFoundError as reason:
        if reason.filename is not None:
            raise
        return _failed("the current folder does not exist any more: change to another one, and back")
    except OSError as reason:
        if reason.filename is not None:  # readers and writers of files tell of them themselves
            raise
        give_up()
        return _failed(OutputError(reason))
    except OutputError as error:
        give_up()
        return _failed(error)
    except MemoryError:
        return _failed("there is not enough memory (--max-batch-bytes bounds what a batch takes)")
    except KeyboardInterrupt:
        print(file=sys.stderr)  # it ends the line of ^C
        return 130
    except UsageError as error:
        return _failed(error, status=2)
    except KdumpError as error:
        return _failed(error)
    return result if isinstance(result, int) else 0


def _run(words: list[str]) -> object:
    if not words:
        from kdump.commands.welcome import WELCOME

        print(WELCOME, end="", file=sys.stderr)
        return 2
    from kdump.commands import classic

    arguments = classic.plain(words)
    if arguments is not None:
        classic.classic(*arguments)
        return None
    from kdump.commands import root

    return root.main()


def _failed(reason: object, status: int = 1) -> int:
    from kdump.primitives.terminal import say

    say(reason)
    return status
