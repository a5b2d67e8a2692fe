"""``python -m kdump`` and the script ``kdump``: Ctrl-C ends both quietly, from the first import on."""

import sys

CTRL_C = 130
"""What a shell reports for a program that Ctrl-C ended (128 + SIGINT)."""
MANY = 50_000
"""New objects after which Python looks for garbage, more than imports make: these stay, a dump's go at once."""


def main() -> int:
    """Run kdump; return the exit status."""
    try:
        import gc
        import os
        import signal

        gc.set_threshold(MANY)
        # A KeyboardInterrupt in the midst of an import may be swallowed there, or come out as another error.
        heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if heeded:
            signal.signal(signal.SIGINT, lambda *_: os._exit(CTRL_C))
        from kdump import cli

        if heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        status = cli.main()
        gc.freeze()  # what is left goes with the process: nobody has to look through it at the end
        return status
    except KeyboardInterrupt:
        return CTRL_C


def run() -> None:
    """Run kdump and end the process: at once, unless somebody wants to do something at its end."""
    status = main()
    if "atexit" not in sys.modules and sys.getprofile() is sys.gettrace() is None:
        import os

        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # Python tells of it
            sys.exit(status)
        os._exit(status)  # to take all objects apart takes milliseconds
    sys.exit(status)


if __name__ == "__main__":
    run()
