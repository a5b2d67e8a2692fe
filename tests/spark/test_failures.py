"""Messages for Spark's errors, which are made here without a session."""

import signal
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
from pyspark.errors import PySparkException

from kdump.errors import KdumpError, UnreadableError
from kdump.spark.failures import errors, writing
from kdump.spark.session import interruptible

OUT = "/lake/out"


def raised(text):
    """Return kdump's error for an error of Spark during a write."""
    with pytest.raises(KdumpError) as caught, errors(), writing(OUT):
        raise PySparkException(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("failed: java.io.IOException: No space left on device\n\tat a.b", "No space left on device"),
        ("java.io.UncheckedIOException: java.io.FileNotFoundException: /x (Is a directory)", "/x (Is a directory)"),
        ("first: java.nio.file.AccessDeniedException: /lake/x\nCaused by: java.io.IOException: why", "why"),
        ("org.apache.hadoop.security.AccessControlException: Permission denied", "Permission denied"),
    ],
)
def test_a_disk_that_refuses_is_named(text, reason):
    error = raised(text)
    assert isinstance(error, UnreadableError)
    assert str(error) == f"{OUT}: cannot be written: {reason}"


@pytest.mark.parametrize(
    "text",
    [
        'Task 0: java.io.IOException: Cannot run program "nopython": error=2, No such file or directory\n\tat a.b',
        "Task 0: java.io.InvalidClassException: a.B; local class incompatible",
        "Task 0\nCaused by: java.io.NotSerializableException: a.B",
    ],
)
def test_what_the_output_is_not_to_blame_for_is_no_error_of_it(text):
    error = raised(text)
    assert not isinstance(error, UnreadableError)
    assert text.split(": ")[-1].split("\n")[0] in str(error)
    assert "cannot be written" not in str(error)


def test_an_interrupt_stays_one_where_java_has_ended_too():
    def no_java():
        raise ConnectionRefusedError("no Java")

    def interrupt():
        with errors(), interruptible(SimpleNamespace(sparkContext=SimpleNamespace(cancelAllJobs=no_java))):
            raise KeyboardInterrupt

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert signal.getsignal(signal.SIGINT) is handler
