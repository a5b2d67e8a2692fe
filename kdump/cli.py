"""The entry of the command line: runs kdump, prints errors that kdump reports, and returns the exit status."""

from __future__ import annotations

import os
import sys
from typing import Final

from kdump import __version__
from kdump.errors import ExitStatus, KdumpError, UsageError

WELCOME: Final = f"""\
kdump {__version__} reads Apache Kafka's files on disk, with no broker and no JVM.
It never changes what it reads.

  kdump /var/kafka           what is in these log dirs, and what to run next

The broker does not start, or a disk is in doubt:
  kdump check /var/kafka
Records are missing, or a consumer stops:
  kdump explain orders-0@1234 --in /var/kafka
What was in a topic:
  kdump dump /var/kafka --topic orders --since -2h
The disk is full:
  kdump du /var/kafka
The cluster is lost, only volumes are left:
  kdump rebuild-cluster /backup/broker-1 /backup/broker-2 --plan

  kdump help                 every incident, with the command for it
  kdump --help               all commands
  kdump help files           as kafka-dump-log.sh: kdump --files FILE,FILE,...
"""
"""The output of ``kdump`` without arguments: at most 24 lines of 80 columns."""

COMPLETE: Final = "_KDUMP_COMPLETE"
"""The environment variable with which a shell requests completions. The shell then passes no arguments."""


def main() -> int:  # noqa: PLR0911  one return for each exit status
    from kdump.output.stdout import OutputError, give_up, open_standard_streams
    from kdump.primitives import signals

    try:
        open_standard_streams()
        with signals.unwrapped():
            result = _run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        give_up()
        return ExitStatus.CLOSED_PIPE
    except FileNotFoundError as reason:
        if reason.filename is not None:
            raise
        return _failed("the current folder was deleted: change to another folder, and run kdump again")
    except OSError as reason:
        if reason.filename is not None:  # readers and writers of files report their own errors
            raise
        give_up()
        return _failed(OutputError(reason))
    except OutputError as error:
        give_up()
        return _failed(error)
    except MemoryError:
        return _failed("there is not enough memory: use a lower --max-batch-bytes, or a machine with more memory")
    except KeyboardInterrupt:
        print(file=sys.stderr)  # this ends the line of ^C
        return ExitStatus.INTERRUPTED
    except UsageError as error:
        return _failed(error, status=ExitStatus.USAGE)
    except KdumpError as error:
        return _failed(error)
    return result if isinstance(result, int) else 0


def _run(words: list[str]) -> object:
    if not words and COMPLETE not in os.environ:
        print(WELCOME, end="", file=sys.stderr)
        return ExitStatus.USAGE
    if words == ["--version"]:  # importing click takes most of the time
        from kdump import kernel

        print(kernel.version())
        return None
    from kdump.commands import classic

    arguments = classic.plain(words)
    if arguments is not None:
        classic.classic(*arguments)
        return None
    from kdump.commands import root

    return root.main()


def _failed(reason: object, status: int = ExitStatus.UNREADABLE) -> int:
    from kdump.primitives.messages import message

    message("error", reason, getattr(reason, "hint", ""))
    return status
