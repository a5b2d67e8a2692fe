"""Read errors in the outputs of checks and answers: they end the task, as for records.

Spark tries a task again and then ends the job with path and reason. A row in its place would make an outage of a store,
missing rights or a file that is gone look like an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import FailingDiskError, PartlyUnreadableError

if TYPE_CHECKING:
    from kdump.errors import UnreadableError


def refuse(error: UnreadableError, *, skip: bool) -> None:
    """Raise an error of reading. A caller makes a row of what is left: damage of a tiered segment, which was read, and
    bytes that a failing disk does not return where ``skip``, the option ``skipUnreadable``, allows that.
    """
    if not (isinstance(error, PartlyUnreadableError) or (skip and isinstance(error, FailingDiskError))):
        raise error
