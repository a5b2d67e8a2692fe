"""The entry of ``python -m kdump`` and the script ``kdump``, which Ctrl-C and SIGTERM end without a traceback."""

import sys

CTRL_C = 130
"""The exit status after Ctrl-C (128 + SIGINT, as in shells)."""
MANY = 50_000
"""The number of new objects that starts a garbage collection. Imports make fewer objects, and free none."""

MONITORS = 6
"""Maximum number of tools in ``sys.monitoring``."""


def main() -> int:
    """Run kdump; return the exit status."""
    try:
        # The module signal imports enum, and Ctrl-C during this import would show a traceback.
        import _signal as signal  # type: ignore[import-not-found]  # it has no stub
        import gc
        import os

        gc.set_threshold(MANY)
        # An import may swallow a KeyboardInterrupt, or turn it into another error.
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
            os._exit(ended.status)  # flushing would fail if the terminal is closed
        finally:
            signals.clean_up()
        gc.freeze()  # skips the garbage collection at the end of the process
        return status
    except KeyboardInterrupt:
        return CTRL_C


def _is_watched() -> bool:
    """Return whether a profiler, a debugger or an atexit handler must run when this process ends."""
    monitoring = getattr(sys, "monitoring", None)  # Python 3.12 and later have it
    if monitoring is not None and any(map(monitoring.get_tool, range(MONITORS))):
        return True
    return "atexit" in sys.modules or sys.getprofile() is not None or sys.gettrace() is not None


def run() -> None:
    """Run kdump and exit, without Python's cleanup unless :func:`_is_watched`."""
    status = main()
    if not _is_watched():
        import os

        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # Python flushes again, and reports the error
            sys.exit(status)
        os._exit(status)  # freeing all objects takes milliseconds
    sys.exit(status)


if __name__ == "__main__":
    run()
