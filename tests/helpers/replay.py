"""Run command lines of kdump one after the other in this process: a JSON object per line in, one per line out.

It is a separate process because it captures output at the file descriptors. In: {"arguments": [...]}. Out: {"status":
n, "stdout": text, "stderr": text}. The working directory never changes.
"""

import json
import os
import sys
import tempfile
from typing import BinaryIO

from kdump.cli import main


def run(arguments: list[str], out: BinaryIO, err: BinaryIO) -> dict[str, int | str]:
    """Run one command line with its streams redirected to the two files."""
    for descriptor, file in ((1, out), (2, err)):
        file.seek(0)
        file.truncate()
        os.dup2(file.fileno(), descriptor)
    sys.argv = ["kdump", *arguments]
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    out.seek(0)
    err.seek(0)
    return {"status": status, "stdout": out.read().decode(), "stderr": err.read().decode()}


def serve() -> None:
    """Answer every line of stdin."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with answers, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        for line in sys.stdin:
            answers.write(json.dumps(run(json.loads(line)["arguments"], out, err)) + "\n")
            answers.flush()


if __name__ == "__main__":
    serve()
