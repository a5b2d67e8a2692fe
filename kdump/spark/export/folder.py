"""A folder on any file system that Spark supports: list, create, move and delete its files.

On the driver's own disks (``file:``), :mod:`kdump.output.files` moves files by an atomic rename that fails if the
target exists, and text files are replaced atomically. Renaming a folder is assumed to be atomic for the schemes of
``_WHOLE_RENAMES``; other stores are assumed to copy each file.
"""

from __future__ import annotations

import json
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kdump.errors import KdumpError
from kdump.log_dirs.remote import RemoteFiles, place
from kdump.output import files, parts
from kdump.output.access import ANY
from kdump.primitives.encodings import is_json
from kdump.spark.failures import try_to, writing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pyspark.sql import SparkSession

NEW: Final = ".new"
_WHOLE_RENAMES: Final = {"file", "hdfs", "webhdfs", "swebhdfs", "viewfs", "abfs", "abfss"}
"""Schemes of file systems that rename a folder with its contents atomically."""
_LEFT_BY_SPARK: Final = "_SUCCESS"


def items_of(found: Any) -> Iterator[Any]:
    while found.hasNext():
        yield found.next()


class Folder:
    """The folder ``path``, accessed by one Spark session. ``shown`` is its shown path, by default ``path``."""

    def __init__(self, spark: SparkSession, path: str, shown: str = "") -> None:
        self._spark, self.path = spark, path.rstrip("/") or "/"
        self.shown = shown or self.path
        context: Any = spark.sparkContext  # a classic session, which has its own JVM
        self._jvm = context._jvm
        self._hadoop = context._jsc.hadoopConfiguration()
        self._path = self._jvm.org.apache.hadoop.fs.Path
        self._files = self._path(self.path).getFileSystem(self._hadoop)
        self._is_local = self._files.getUri().getScheme() == "file"
        # no Hadoop checksum files: a text and its checksum cannot be replaced together atomically
        self._texts = self._files.getRawFileSystem() if self._is_local else self._files

    @property
    def local(self) -> Path | None:
        """The path on the driver's own disks, or None if the folder is elsewhere."""
        return Path(self._files.makeQualified(self._at("")).toUri().getPath()) if self._is_local else None

    @property
    def uri(self) -> str:
        return str(self._files.makeQualified(self._at("")).toString())

    @property
    def renames_whole(self) -> bool:
        return self._files.getUri().getScheme() in _WHOLE_RENAMES

    def beside(self, name: str) -> Folder:
        return Folder(self._spark, f"{self.path.rpartition('/')[0]}/{name}" if "/" in self.path else name, self.shown)

    def inside(self, name: str) -> Folder:
        return Folder(self._spark, f"{self.path}/{name}", self.shown)

    def make(self) -> None:
        with writing(self.shown):
            self._files.mkdirs(self._at(""))

    def exists(self, name: str = "") -> bool:
        """Return whether a file or folder in this folder exists; "" stands for this folder."""
        return bool(self._files.exists(self._at(name)))

    def sizes(self, folder: str = "", *, deep: bool = True) -> dict[str, int]:
        """Return path below ``folder`` -> size of each file (``deep``: in subfolders too) but ``_SUCCESS``; or {}."""
        if not self.exists(folder):
            return {}
        root = self._files.getFileStatus(self._at(folder)).getPath().toString().rstrip("/") + "/"
        found = {}
        for status in items_of(self._files.listFiles(self._at(folder), deep)):
            name = status.getPath().toString().removeprefix(root)
            if name.rpartition("/")[2] != _LEFT_BY_SPARK:
                found[name] = int(status.getLen())
        return found

    def files(self, folder: str = "", *, deep: bool = True) -> list[str]:
        return sorted(self.sizes(folder, deep=deep))

    def folders(self) -> list[str]:
        """Return the names of the folders in this folder; empty if it does not exist."""
        if not self.exists():
            return []
        inside = items_of(self._files.listStatusIterator(self._at("")))
        return sorted(status.getPath().getName() for status in inside if status.isDirectory())

    def size(self, name: str) -> int:
        return int(self._files.getFileStatus(self._at(name)).getLen())

    def make_parents(self, names: Iterable[str]) -> None:
        for folder in sorted({name.rpartition("/")[0] for name in names}):
            with writing(f"{self.shown}/{folder}"):
                self._files.mkdirs(self._at(folder))

    def take(self, source: Folder, name: str) -> None:
        """Move a file from ``source`` to this folder, unless it was moved before. Raises KdumpError.

        The file's parent folder must exist here (:meth:`make_parents`). In a store that copies, the file may stay in
        ``source``, and replaces a file of its name here: names of files that kdump writes are unique.
        """
        here, there = self.local, source.local
        if here is not None and there is not None:
            if self._was_taken(source, name):
                return
            taken = f"{self.shown}/{name} exists already, and holds other data"
            _take_place(there / name, here / name, f"{self.shown}/{name}", taken)
            checksum = self._checksum(name)
            if (there / checksum).exists():
                _take_place(there / checksum, here / checksum, f"{self.shown}/{name}", taken)
            return
        if self._copies(source, name):
            return
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types

        with writing(f"{self.shown}/{name}"):
            try:
                moved = self._files.rename(source._at(name), self._at(name))  # False if the file exists here
            except Py4JError:  # S3A raises it for a missing file
                moved = self._was_taken(source, name)
                if not moved:
                    raise
        if not moved and not self._was_taken(source, name):
            raise KdumpError(f"{self.shown}/{name}: Spark cannot move the new file to this path")

    def _copies(self, source: Folder, name: str) -> bool:
        """Copy a file within a store by one request, where S3A's rename needs some ten. Return whether it was copied.

        The rename is left for what PyArrow cannot do: other keys, objects above 5 GiB, a file that was moved before.
        """
        ours, theirs = self._store, source._store
        if ours is None or theirs is None:
            return False
        try:
            ours[0].copy(f"{theirs[1]}/{name}", f"{ours[1]}/{name}")
        except OSError:
            return False
        return True

    @cached_property
    def _store(self) -> tuple[RemoteFiles, str] | None:
        """PyArrow's client of a store that copies, and this folder's path in it; None if PyArrow cannot open it."""
        if self.renames_whole:
            return None
        try:
            store, path = place(self.uri)
        except (OSError, KdumpError):
            return None
        return (store, path) if isinstance(store, RemoteFiles) else None

    def _was_taken(self, source: Folder, name: str) -> bool:
        """Return whether a file was moved here before. Raises KdumpError if it is missing or has another size."""
        if not source.exists(name):
            if self.exists(name):
                return True
            raise KdumpError(
                f"{self.shown}/{name} is missing, and so is the file to move there: the output is incomplete"
            )
        if not self.exists(name):
            return False
        # a killed run has copied it in an object store, but not deleted the original
        if self.renames_whole or self.size(name) != source.size(name):
            raise KdumpError(f"{self.shown}/{name} exists already, and holds other data")
        source.delete(name)
        return True

    def rename(self, old: str, name: str) -> None:
        """Move a file within this unpublished folder to the path ``name``. Raises KdumpError if ``name`` exists."""
        local = self.local
        if local is not None:
            files.make_folders(local, *name.split("/")[:-1], access=ANY)
            taken = f"{self.shown}/{name} exists already, and holds other data"
            _take_place(local / old, local / name, f"{self.shown}/{name}", taken, is_durable=False)
            return
        with writing(f"{self.shown}/{name}"):
            self._files.mkdirs(self._at(name).getParent())
            moved = self._files.rename(self._at(old), self._at(name))
        if not moved:
            raise KdumpError(f"{self.shown}/{name}: Spark cannot move {old} to this path")

    def become(self, target: Folder) -> None:
        """Rename this folder to ``target``, which must not exist. Raises KdumpError if that fails."""
        taken = f"{target.path} has appeared meanwhile: another program writes to it"
        if self.local is not None and target.local is not None:
            _take_place(self.local, target.local, target.shown, taken)
            return
        if target.exists():  # Hadoop would move this folder into the target
            raise KdumpError(taken)
        inside = target.inside(self.path.rpartition("/")[2])
        with writing(target.shown):
            moved = self._files.rename(self._at(""), target._at(""))
            if moved and inside.exists():  # the target has appeared meanwhile
                self._files.rename(inside._at(""), self._at(""))
                raise KdumpError(taken)
        if not moved:
            raise KdumpError(f"{self.path} cannot be renamed to {target.path}")

    def delete(self, name: str = "") -> None:
        self._files.delete(self._at(name), True)

    def delete_empty(self) -> None:
        """Delete this empty folder. Raises UnreadableError if it is not empty."""
        with writing(self.shown):
            self._files.delete(self._at(""), False)

    def prune(self, folder: str) -> None:
        """Delete a subfolder if it is empty, then its parents in the same way."""
        while folder and self.exists(folder) and not self._texts.listStatusIterator(self._at(folder)).hasNext():
            self._files.delete(self._at(folder), False)
            folder = folder.rpartition("/")[0]

    def read_text(self, name: str) -> str:
        with closing(self._texts.open(self._at(name))) as stream:
            return bytes(stream.readAllBytes()).decode()

    def read_json(self, name: str, fields: Collection[str]) -> dict[str, Any]:
        """Return the JSON object in a file. Raises KdumpError if it is none, or lacks one of ``fields``."""
        try:
            found = json.loads(self.read_text(name))
            if not isinstance(found, dict) or not found.keys() >= {*fields}:
                raise ValueError("a field is missing")
        except (ValueError, RecursionError) as reason:
            raise KdumpError(f"{self.path}/{name} was not written by kdump: {reason}") from reason
        return found

    def write_text(self, name: str, text: str) -> None:
        """Write or replace a file of JSON. A reader never sees a part of the text.

        On the driver's own disks this is atomic. Elsewhere the file is missing for a moment. After a kill the text may
        be in the file ``name + NEW``, which :meth:`settle` completes or deletes.
        """
        new = name + NEW
        with writing(f"{self.shown}/{name}"):
            try:
                self.write_bytes(new, text.encode())
            except BaseException:
                try_to(lambda: self.delete(new))
                raise
            self.flush([new])
        self.take_text(self, new, name)

    def settle(self, name: str) -> bool:
        """Finish a killed ``write_text`` if only its whole text is left, or undo it. Return whether the file exists."""
        is_there, new = self.exists(name), name + NEW
        if self.exists(new):
            if is_there or not is_json(self.read_text(new)):
                self.delete(new)
            else:
                self.take_text(self, new, name)
                is_there = True
        return is_there

    def take_text(self, source: Folder, old: str, name: str) -> None:
        """Move the text file ``old`` of ``source`` to this folder, and replace the file ``name``."""
        with writing(f"{self.shown}/{name}"):
            if self._is_local:  # a checksum written by an older kdump would be wrong
                self._texts.delete(self._at(self._checksum(name)), False)
            else:
                self._files.delete(self._at(name), False)
            moved = self._texts.rename(source._at(old), self._at(name))
        if not moved:
            raise KdumpError(f"{self.shown}: {old} cannot be renamed to {name}")

    @staticmethod
    def _checksum(name: str) -> str:
        folder, slash, last = name.rpartition("/")
        return f"{folder}{slash}.{last}.crc"

    def write_bytes(self, name: str, data: bytes) -> None:
        """Create or replace a file; make its folder."""
        with closing(self._texts.create(self._at(name), True)) as stream:
            stream.write(data)

    def create_new(self, text: str) -> bool:
        """Create the file at this path; return False if it exists."""
        from py4j.protocol import Py4JJavaError

        try:
            stream = self._texts.create(self._at(""), False)
        except Py4JJavaError:
            if self.exists():
                return False
            raise
        with closing(stream):
            stream.write(text.encode())
        return True

    def overwrite(self, text: str) -> None:
        self.write_bytes("", text.encode())

    def modified(self) -> float:
        """Return the last modification time in seconds since 1970, by the clock of the file system."""
        return int(self._files.getFileStatus(self._at("")).getModificationTime()) / 1000

    def flush(self, names: Iterable[str]) -> None:
        """Flush files and their folders to the driver's own disk. Do nothing on other file systems."""
        local = self.local
        if local is None:
            return
        paths = [local / name for name in names]
        around = {folder for path in paths for folder in path.parents if folder.is_relative_to(local)}
        try:
            for path in paths:
                parts.flush(path)
            for folder in around:
                parts.flush_folder(folder)
        except OSError as reason:
            raise files.unwritable(self.shown, reason) from reason

    def _at(self, name: str) -> Any:
        path = f"{self.path}/{name}" if name else self.path
        return self._path(f"{path}/" if path.count("/") == 2 and "://" in path else path)  # the root of a file system


def _take_place(part: Path, target: Path, shown: str, taken: str, *, is_durable: bool = True) -> None:
    """Move a file or folder to ``target`` on the driver's own disks. If that exists, raise KdumpError(``taken``)."""
    try:
        files.take_place(part, target, is_durable=is_durable)
    except FileExistsError:
        raise KdumpError(taken) from None
    except OSError as reason:
        raise files.unwritable(shown, reason) from reason
