"""The clients of object stores and HDFS, with the settings of Hadoop and Spark.

=====================  ==============================================================================================
scheme                 client and settings
=====================  ==============================================================================================
``s3``, ``s3a``        PyArrow. Keys and options in the URI. If none, ``fs.s3a.*`` and ``fs.s3a.bucket.BUCKET.*`` of
                       Hadoop's S3A client. For missing settings: ``AWS_*``, and the files and roles of AWS.
``hdfs``, ``viewfs``   hdfs-native, a client without Java: ``fs.defaultFS``, ``dfs.*``, and the files of
                       ``HADOOP_CONF_DIR``. If it is not installed, PyArrow's client, which needs Java and libhdfs.
others                 PyArrow, with options in the URI and the environment of each store's own client.
=====================  ==============================================================================================

In Spark, the environment variable :data:`VARIABLE` passes the session's settings to the processes that list files. The
processes that read files get ready-made clients from them.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from kdump.errors import KdumpError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "KDUMP_STORE_SETTINGS"
"""Environment variable with Hadoop's settings for stores as a JSON object. kdump never prints it: it may have keys."""
SECRETS: Final = ("fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.session.token", "fs.s3a.proxy.password")
"""Secret settings, which Hadoop may keep in a credential provider."""
PREFIXES: Final = ("fs.s3a.", "fs.defaultFS", "fs.viewfs.", "dfs.")
_S3A: Final = "fs.s3a."
_ANONYMOUS: Final = "AnonymousAWSCredentialsProvider"
_FEW_TRIES: Final = {
    "dfs.client.failover.max.attempts": "3",
    "dfs.client.failover.sleep.base.millis": "100",
    "dfs.client.failover.sleep.max.millis": "500",
}
"""Settings for few retries in hdfs-native: its default retries take four minutes, and kdump repeats calls itself."""


def relevant(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of stores: of S3A, HDFS and viewfs."""
    return {name: value for name, value in settings.items() if name.startswith(PREFIXES)}


def settings() -> dict[str, str]:
    """Return the settings in :data:`VARIABLE`; empty if it is not set. Raises KdumpError if it is not a JSON object."""
    text = os.environ.get(VARIABLE)
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise KdumpError(f"the environment variable {VARIABLE} is not a JSON object")
    return {str(name): str(value) for name, value in found.items()}


def client(scheme: str, rest: str) -> tuple[Any, str]:
    """Return the file system of the URI ``scheme:rest`` (of ``pyarrow.fs``, or HdfsSystem), and the path in it.

    Raises KdumpError, UsageError, and the errors of the client: OSError and Arrow's errors.
    """
    given = settings()
    host, _, path = rest.removeprefix("//").partition("/")
    if scheme == "s3" and not re.search(r"[@:]", host) and "?" not in rest:  # neither keys nor options in the URI
        arguments = s3_arguments(host, given)
        if arguments:
            from pyarrow.fs import S3FileSystem

            own = {"region", "endpoint_override", "proxy_options"}
            if not arguments.keys() & own and not any(map(os.environ.get, _ENDPOINTS)):
                arguments |= _region(host)
            return S3FileSystem(**arguments), f"{host}/{path}".rstrip("/")
    if scheme in ("hdfs", "viewfs"):
        try:
            import hdfs_native  # noqa: F401  to test whether it is installed
        except ImportError:
            try:
                return _by_arrow(scheme, rest)
            except OSError as reason:
                raise KdumpError(
                    f"{scheme} needs hdfs-native, or PyArrow with libhdfs; neither is installed: "
                    "pip install 'kdump[hdfs]'"
                ) from reason
        hdfs = HdfsSystem(f"{scheme}://{host}" if host else None, {**_FEW_TRIES, **given})
        try:
            hdfs.connect()
        except RuntimeError as reason:  # a setting is missing or wrong; no name node was contacted yet
            found = re.search(r'"(.*)"', str(reason))
            hint = "" if host else "; write hdfs://HOST:PORT/PATH, or set HADOOP_CONF_DIR"
            raise UsageError(f"{scheme}:{rest}: {found[1] if found else reason}{hint}") from reason
        return hdfs, f"/{path}"
    return _by_arrow(scheme, rest)


def _by_arrow(scheme: str, rest: str) -> tuple[Any, str]:
    from pyarrow.fs import FileSystem

    system, path = FileSystem.from_uri(f"{scheme}:{rest}")
    return system, path


def s3_arguments(bucket: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of ``pyarrow.fs.S3FileSystem`` for the S3A settings in ``given``; empty if none is used."""
    settings = {name.removeprefix(_S3A): value.strip() for name, value in given.items() if name.startswith(_S3A)}
    of_bucket = f"bucket.{bucket}."
    settings |= {name.removeprefix(of_bucket): value for name, value in settings.items() if name.startswith(of_bucket)}
    found: dict[str, Any] = {}
    if settings.get("access.key") and settings.get("secret.key"):
        found["access_key"], found["secret_key"] = settings["access.key"], settings["secret.key"]
        if settings.get("session.token"):
            found["session_token"] = settings["session.token"]
    elif _ANONYMOUS in settings.get("aws.credentials.provider", ""):
        found["anonymous"] = True
    elif settings.get("assumed.role.arn"):
        found["role_arn"] = settings["assumed.role.arn"]
    endpoint = settings.get("endpoint", "")
    if endpoint:
        scheme, _, address = endpoint.rpartition("://")
        found["endpoint_override"] = address.rstrip("/")
        is_plain = scheme == "http" or (not scheme and not _is_on(settings, "connection.ssl.enabled", default=True))
        found["scheme"] = "http" if is_plain else "https"
        if not _is_on(settings, "path.style.access", default=True):
            found["force_virtual_addressing"] = True
    region = settings.get("endpoint.region") or (_AWS_REGION.search(endpoint) or {1: ""})[1]
    if region:
        found["region"] = region
    elif endpoint and not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
        found["region"] = "us-east-1"  # the default of S3A
    if settings.get("proxy.host"):
        found["proxy_options"] = _proxy(settings)
    return found


def _is_on(settings: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return a setting of type boolean as Hadoop reads it (``Configuration.getBoolean``)."""
    return {"true": True, "false": False}.get(settings.get(name, "").lower(), default)


def _proxy(settings: Mapping[str, str]) -> dict[str, Any]:
    is_plain = not _is_on(settings, "connection.ssl.enabled", default=True)
    port = settings.get("proxy.port") or ("80" if is_plain else "443")
    try:
        number = int(port)
    except ValueError:
        raise UsageError(f"fs.s3a.proxy.port is not a number: {port!r}") from None
    found: dict[str, Any] = {
        "scheme": "https" if _is_on(settings, "proxy.ssl.enabled", default=False) else "http",
        "host": settings["proxy.host"],
        "port": number,
    }
    names = {"username": settings.get("proxy.username"), "password": settings.get("proxy.password")}
    return found | {name: value for name, value in names.items() if value}


def _region(bucket: str) -> dict[str, str]:
    """Return the region of an AWS bucket as S3A finds it; empty if AWS does not answer."""
    from pyarrow.fs import resolve_s3_region

    try:
        return {"region": resolve_s3_region(bucket)}
    except OSError:
        return {}


_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_AWS_REGION: Final = re.compile(r"s3[.-]([a-z0-9-]+)\.amazonaws\.com")


@dataclass(frozen=True)
class HdfsSystem:
    """HDFS through hdfs-native, with the methods of a ``pyarrow.fs`` file system that kdump calls.

    ``url`` is the URL of the name node or name service; None means ``fs.defaultFS``. The methods raise OSErrors with a
    text of one line. ``connect`` raises RuntimeError for a missing or wrong setting.
    """

    url: str | None
    config: dict[str, str]

    def __hash__(self) -> int:
        return hash(self.url)

    def connect(self) -> Any:
        """Return the client of this process. A client cannot be pickled or used after a fork."""
        found = _CLIENTS.get((os.getpid(), self))
        if found is None:
            from hdfs_native import Client

            found = _CLIENTS[os.getpid(), self] = Client(self.url, self.config)
        return found

    def get_file_info(self, what: Any) -> Any:
        """Return the FileInfo of a path, or a list of FileInfo for the folder of a FileSelector."""
        from pyarrow.fs import FileInfo, FileType

        if isinstance(what, str):
            try:
                return _info(what, _one_line(lambda: self.connect().get_file_info(what)))
            except FileNotFoundError:
                return FileInfo(what, FileType.NotFound)
        found = _one_line(lambda: list(self.connect().list_status(what.base_dir)))
        return [_info(one.path, one) for one in found]

    def open_input_file(self, path: str) -> HdfsFile:
        return HdfsFile(_one_line(lambda: self.connect().read(path)))

    def open_output_stream(self, path: str) -> HdfsStream:
        """Create or replace a file. Its folder must exist."""
        from hdfs_native import WriteOptions

        options = WriteOptions(overwrite=True, create_parent=False)
        return HdfsStream(_one_line(lambda: self.connect().create(path, options)))

    def delete_file(self, path: str) -> None:
        """Delete a file, even if it is being written."""
        _one_line(lambda: self.connect().delete(path))


_CLIENTS: Final[dict[tuple[int, HdfsSystem], Any]] = {}


class HdfsFile:
    """An open file of HDFS, with the methods of a ``pyarrow.NativeFile`` that kdump calls."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def size(self) -> int:
        return int(self._reader.size)

    def read_at(self, size: int, position: int) -> bytes:
        size = min(size, self.size() - position)  # hdfs-native panics past the end
        return _one_line(lambda: bytes(self._reader.read_range(position, size))) if size > 0 else b""

    def close(self) -> None:
        self._reader.close()


class HdfsStream:
    """A new file of HDFS that is being written. A ``with`` block that ends without an error completes the file."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, data: bytes) -> None:
        _one_line(lambda: self._writer.write(data))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:  # after an error the caller deletes the file: closing would complete a partial file
            _one_line(self._writer.close)


def _info(path: str, status: Any) -> Any:
    from pyarrow.fs import FileInfo, FileType

    kind = FileType.Directory if status.isdir else FileType.File
    time = status.modification_time * 1_000_000  # ms to ns
    return FileInfo(path, kind, mtime_ns=time, size=None if status.isdir else status.length)


def _one_line(call: Any) -> Any:
    """Call a function of hdfs-native. Raise its errors as an OSError with one line, without a stack trace."""
    try:
        return call()
    except OSError as error:
        raise type(error)(str(error).partition("\n")[0]) from None
    except RuntimeError as error:
        raise OSError(_short(str(error))) from None


def _short(text: str) -> str:
    """Return the first part of an error text of Rust, such as ``DataTransferError("All DataNodes failed: [...``."""
    words = re.split(r"\\n|\n|: \[", text, maxsplit=1)[0]
    return words.replace('("', ": ", 1).replace('", "', ": ").rstrip('")')
