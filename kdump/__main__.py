"""``python -m kdump`` and the script ``kdump``: Ctrl-C and SIGTERM end both quietly, from the first import on."""

import sys

CTRL_C = 130
"""The exit status after Ctrl-C (128 + SIGINT, as in shells)."""
MANY = 50_000
"""New objects after which Python collects garbage. Imports make fewer, and their objects stay."""

MONITORS = 6
"""Maximum number of tools that may watch a Python."""


def main() -> int:
    """Run kdump; return the exit status."""
    try:
        # The module signal imports enum, in which Ctrl-C would show a traceback.
        import _signal as signal  # type: ignore[import-not-found]  # it has no stub
        import gc
        import os

        gc.set_threshold(MANY)
        # A KeyboardInterrupt in the midst of an import may be swallowed there, or come out as another error.
        ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        heeded = [one for one in ending if signal.getsignal(one) in (signal.default_int_handler, signal.SIG_DFL)]
        for one in heeded:
            signal.signal(one, lambda number, _: os._exit(128 + number))
        from kdump import cli
        from kdump.primitives import signals

        signals.heed(heeded)
        try:
            status = cli.main()
        except signals.EndedBySignal as ended:
            signals.clean_up()
            os._exit(ended.status)  # buffered output may be for a closed terminal
        finally:
            signals.clean_up()
        gc.freeze()  # the process ends: a last garbage collection would only take time
        return status
    except KeyboardInterrupt:
        return CTRL_C


def _is_watched() -> bool:
    """Return whether a profiler, a debugger or a handler of atexit waits for the end of this process."""
    monitoring = getattr(sys, "monitoring", None)  # of Python 3.12 and later
    if monitoring is not None and any(map(monitoring.get_tool, range(MONITORS))):
        return True
    return "atexit" in sys.modules or sys.getprofile() is not None or sys.gettrace() is not None


def run() -> None:
    """Run kdump and exit. The exit skips Python's cleanup, unless :func:`_is_watched`."""
    status = main()
    if not _is_watched():
        import os

        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # Python reports it
            sys.exit(status)
        os._exit(status)  # to free all objects takes milliseconds
    sys.exit(status)


if __name__ == "__main__":
    run()
