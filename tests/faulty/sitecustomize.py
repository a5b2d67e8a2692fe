"""Makes the faults in the file KDUMP_TEST_FAULTS happen in Spark's workers; Python imports this module at its start.

``{"open": {path: errno}, "disk": inode}``: files that cannot be opened, one that cannot be read from byte 20,000 on.
"""

import errno
import json
import os

FILE = os.environ.get("KDUMP_TEST_FAULTS")
opened, read = os.open, os.pread


def faults():
    try:
        with open(FILE) as file:  # noqa: PTH123  Path would call what stands here
            return json.load(file)
    except FileNotFoundError:
        return {}


def open_other(name, *arguments, **options):
    if number := faults().get("open", {}).get(str(name)):
        raise OSError(number, os.strerror(number))
    return opened(name, *arguments, **options)


def read_other(descriptor, size, position):
    if position + size > 20_000 and faults().get("disk") == os.fstat(descriptor).st_ino:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return read(descriptor, size, position)


if FILE:
    os.open, os.pread = open_other, read_other
