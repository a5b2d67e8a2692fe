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


if __name__ == "__main__":
    sys.exit(main())
