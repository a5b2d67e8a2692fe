"""The entry of ``python -m kdump`` and of the script ``kdump``. Ctrl-C, SIGTERM and SIGHUP cause no traceback."""

import sys

CTRL_C = 130
"""The exit status after Ctrl-C (128 + SIGINT, as in shells)."""
MANY = 50_000
"""Python collects garbage after this number of new objects. The number is large: imports create little garbage."""
SELDOM = 100
"""A large number makes the garbage collector visit older objects, such as the list of all files, seldom."""

MONITORS = 6
"""Maximum number of tools in ``sys.monitoring``."""


def main() -> int:
    try:
        # The module signal imports enum, and Ctrl-C during this import would show a traceback.
        import _signal as signal  # type: ignore[import-not-found]  # it has no stub
        import gc
        import os

        gc.set_threshold(MANY, SELDOM)
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
    """Return whether a profiler, a debugger or a similar tool is active: it must see the end of this process."""
    monitoring = getattr(sys, "monitoring", None)  # Python 3.12 and later have it
    if monitoring is not None and any(map(monitoring.get_tool, range(MONITORS))):
        return True
    return sys.getprofile() is not None or sys.gettrace() is not None


def run() -> None:
    """Run kdump and ``atexit`` functions, and exit. Python's cleanup runs only after an error or if watched."""
    status = main()
    if _is_watched():
        sys.exit(status)
    import os

    if "atexit" in sys.modules:  # otherwise no function is registered
        sys.modules["atexit"]._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # Python flushes again, and reports the error
        sys.exit(status)
    os._exit(status)  # freeing all objects takes 20 ms after an import of DuckDB and PyArrow


if __name__ == "__main__":
    run()
