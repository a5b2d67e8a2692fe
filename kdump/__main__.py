"""``python -m kdump`` and the script ``kdump``: Ctrl-C ends both quietly, from the first import on."""

import sys

CTRL_C = 130
"""What a shell reports for a program that Ctrl-C ended (128 + SIGINT)."""


def main() -> int:
    """Run kdump; return the exit status."""
    try:
        import os
        import signal

        # A KeyboardInterrupt in the midst of an import may be swallowed there, or come out as another error.
        heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if heeded:
            signal.signal(signal.SIGINT, lambda *_: os._exit(CTRL_C))
        from kdump import cli

        if heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return cli.main()
    except KeyboardInterrupt:
        return CTRL_C


if __name__ == "__main__":
    sys.exit(main())
