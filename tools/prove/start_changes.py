"""Changes to the log dirs of a stopped broker, for tools.prove.starts: typical faults of disks, people and tools.

Each change is a function of a :class:`Scene`. It returns a description, or None if it does not apply to the scene. The
name of the function is the kind.
"""

import gzip
import os
import random
import re
import shutil
import stat
import struct
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path

from kdump.answers.metadata.image import image_of
from kdump.broker_start import broker_dirs
from kdump.errors import SILENT
from kdump.internal_topics import cluster_metadata
from kdump.internal_topics.interpreter import FRAME, write
from kdump.log_dirs import local
from kdump.log_dirs.finder import Finder, Wanted
from kdump.records.record_batch import RecordBatch
from kdump.segments.walk import walk
from testing import forge

CHANGES: dict[str, Callable[["Scene"], str | None]] = {}
CHECKPOINTS = {
    "rp": "recovery-point-offset-checkpoint",
    "ls": "log-start-offset-checkpoint",
    "hw": "replication-offset-checkpoint",
    "cl": "cleaner-offset-checkpoint",
}
MARKER = ".kafka_cleanshutdown"
METADATA = "__cluster_metadata-0"


def change(made: Callable[["Scene"], str | None]) -> Callable[["Scene"], str | None]:
    """Add a change to the table."""
    CHANGES[made.__name__] = made
    return made


class Scene:
    """The log dirs to change: ``dirs`` in the order of log.dirs, and a seeded generator for choices.

    With ``only`` the changes are in the folder of this partition, and in its lines of checkpoints.
    """

    def __init__(self, dirs: list[Path], rng: random.Random, only: str = "") -> None:
        self.dirs, self.rng, self.only = dirs, rng, only

    @property
    def dir(self) -> Path:
        """One of the log dirs."""
        return self.rng.choice(self.dirs)

    @property
    def second(self) -> Path | None:
        """A log dir without a metadata log, if there is one."""
        return self.dirs[1] if len(self.dirs) > 1 else None

    def folders(self, *, internal: bool = False) -> list[Path]:
        """The partition folders with records."""
        found = (each for one in self.dirs if one.is_dir() for each in sorted(one.iterdir()))
        return [
            each
            for each in found
            if each.is_dir()
            and self.only in {"", each.name}
            and each.name.rpartition("-")[2].isdecimal()
            and (internal or not each.name.startswith("__"))
            and any(log.stat().st_size for log in each.glob("*.log") if log.is_file())
        ]

    @property
    def folder(self) -> Path:
        """One of the partition folders."""
        return self.rng.choice(self.folders())

    def logs(self, folder: Path) -> list[Path]:
        """The segments of a folder, oldest first."""
        return sorted(log for log in folder.glob("*.log") if log.is_file())

    def log(self, *, newest: bool = True) -> Path:
        """One segment with batches: the newest of a folder, or an older one. Raises IndexError without one."""
        for _ in range(100):
            logs = [each for each in self.logs(self.folder) if each.stat().st_size]
            if newest:
                return logs[-1]
            if len(logs) > 1:
                return self.rng.choice(logs[:-1])
        raise IndexError("no folder has an older segment")

    def batches(self, log: Path) -> list[RecordBatch]:
        """The batches of a segment, with their positions and offsets."""
        with local.LocalFile(log) as source:
            return [region for region in walk(source) if isinstance(region, RecordBatch)]

    def where(self, path: Path) -> str:
        """Return a path in the form for a description."""
        return "/".join(path.parts[-3:])


def siblings(log: Path) -> list[Path]:
    """All files of a segment."""
    return [each for each in log.parent.iterdir() if each.name.startswith(f"{log.stem}.")]


def _segments(verb: str, pick: Callable[[list[Path]], Path], *, all_files: bool) -> Callable[[Scene], str | None]:
    def made(scene: Scene) -> str | None:
        folder = scene.folder
        logs = scene.logs(folder)
        if len(logs) < 3:
            return None
        log = pick(logs)
        for each in siblings(log) if all_files else [log]:
            if all_files or each.suffix == ".log":
                each.unlink()
        return f"{scene.where(log)} {verb}"

    return made


for _name, _pick in (
    ("first", lambda logs: logs[0]),
    ("middle", lambda logs: logs[1]),
    ("last", lambda logs: logs[-1]),
):
    CHANGES[f"seg_lost_{_name}"] = _segments("and its indexes lost", _pick, all_files=True)
    CHANGES[f"seglog_lost_{_name}"] = _segments("alone lost", _pick, all_files=False)


# logs


def _write(scene: Scene, log: Path, data: bytes | bytearray, what: str) -> str:
    log.write_bytes(data)
    return f"{scene.where(log)}: {what}"


@change
def torn_tail(scene: Scene) -> str | None:
    """The last batch is truncated."""
    log = scene.log()
    cut = scene.rng.randint(1, min(300, log.stat().st_size))
    return _write(scene, log, log.read_bytes()[:-cut], f"{cut} bytes cut")


@change
def cut_border(scene: Scene) -> str | None:
    """Whole batches at the end are removed."""
    log = scene.log()
    at = scene.rng.choice(scene.batches(log)).position
    return _write(scene, log, log.read_bytes()[:at], f"cut at the batch at byte {at}")


@change
def cut_older(scene: Scene) -> str | None:
    log = scene.log(newest=False)
    size = scene.rng.randrange(log.stat().st_size)
    return _write(scene, log, log.read_bytes()[:size], f"cut to {size} bytes")


@change
def flip(scene: Scene) -> str | None:
    """One bit of a segment is flipped."""
    log = scene.log(newest=scene.rng.random() < 0.6)
    data = bytearray(log.read_bytes())
    at = scene.rng.randrange(len(data))
    data[at] ^= 1 << scene.rng.randrange(8)
    return _write(scene, log, data, f"a bit of byte {at} turned")


@change
def flip_header(scene: Scene) -> str | None:
    """One byte of a batch's header is changed."""
    log = scene.log(newest=scene.rng.random() < 0.7)
    data, batch = bytearray(log.read_bytes()), scene.rng.choice(scene.batches(log))
    at, value = scene.rng.randrange(61), scene.rng.randrange(256)
    data[batch.position + at] = value
    return _write(scene, log, data, f"byte {at} of the batch at {batch.position} is {value}")


@change
def zeros(scene: Scene) -> str | None:
    """A segment ends in zeros, or is all zeros."""
    log = scene.log(newest=scene.rng.random() < 0.8)
    data = bytearray(log.read_bytes())
    at = scene.rng.choice([0, scene.rng.randrange(len(data)), scene.rng.choice(scene.batches(log)).position])
    data[at:] = bytes(len(data) - at)
    return _write(scene, log, data, f"zeros from byte {at}")


@change
def tail(scene: Scene) -> str | None:
    """Zeros or garbage after the last batch."""
    log = scene.log(newest=scene.rng.random() < 0.8)
    count = scene.rng.choice([1, 5, 12, 16, 17, 18, 60, 61, 300, 4096])
    more = bytes(count) if scene.rng.random() < 0.5 else scene.rng.randbytes(count)
    return _write(
        scene, log, log.read_bytes() + more, f"{count} bytes of {'garbage' if any(more) else 'zeros'} after it"
    )


@change
def log_empty(scene: Scene) -> str | None:
    """A segment has no bytes."""
    return _write(scene, scene.log(newest=scene.rng.random() < 0.6), b"", "0 bytes")


@change
def batch_twice(scene: Scene) -> str | None:
    """The last batch is there twice."""
    log = scene.log()
    data, batch = log.read_bytes(), scene.rng.choice(scene.batches(log))
    copy = data[batch.position : batch.position + batch.size]
    return _write(scene, log, data + copy, f"batch at byte {batch.position} again at the end")


@change
def length(scene: Scene) -> str | None:
    """The length of a batch is changed."""
    log = scene.log()
    data, batch = bytearray(log.read_bytes()), scene.rng.choice(scene.batches(log))
    value = scene.rng.choice([0, 5, 13, 14, 48, 49, batch.size, 1 << 20, 0x7FFFFFFF, -1])
    struct.pack_into(">i", data, batch.position + 8, value)
    return _write(scene, log, data, f"length {value} at byte {batch.position}")


@change
def offset(scene: Scene) -> str | None:
    """The base offset of a batch is changed; the crc does not cover it."""
    log = scene.log()
    data, batches = bytearray(log.read_bytes()), scene.batches(log)
    batch = scene.rng.choice([batches[-1], scene.rng.choice(batches)])
    value = scene.rng.choice(
        [batch.base_offset + 1000, batch.base_offset + (1 << 31), max(batch.base_offset - 9, 0), 0, -1]
    )
    struct.pack_into(">q", data, batch.position, value)
    return _write(scene, log, data, f"base offset {value} at byte {batch.position}")


@change
def magic(scene: Scene) -> str | None:
    """The magic of a batch is changed."""
    log = scene.log()
    data, batch = bytearray(log.read_bytes()), scene.rng.choice(scene.batches(log))
    data[batch.position + 16] = scene.rng.choice([0, 1, 3, 127, 255])
    return _write(scene, log, data, f"magic {data[batch.position + 16]} at byte {batch.position}")


# segments


@change
def renamed(scene: Scene) -> str | None:
    """A segment has another base offset in its name."""
    log = scene.log(newest=scene.rng.random() < 0.7)
    base = max(int(log.stem) + scene.rng.choice([-5, 8, 1000]), 0)
    if base == int(log.stem) or (log.parent / f"{base:020}.log").exists():
        return None
    for each in siblings(log):
        if each.suffix != ".snapshot":
            each.rename(each.with_name(f"{base:020}{each.suffix}"))
    return f"{scene.where(log)} renamed to {base}"


@change
def set_aside(scene: Scene) -> str | None:
    """A segment has another end in its name, and may be compressed."""
    log = scene.log(newest=scene.rng.random() < 0.7)
    end = scene.rng.choice([".gz", ".bak", "~", ".1", ".deleted.old", " (1)"])
    target = log.with_name(f"{log.name}{end}")
    target.write_bytes(gzip.compress(log.read_bytes()) if end == ".gz" else log.read_bytes())
    log.unlink()
    return f"{scene.where(log)} is {target.name}"


@change
def overlap(scene: Scene) -> str | None:
    """Another segment also has the second half of one."""
    log = scene.log(newest=False)
    batches = scene.batches(log)
    half = batches[len(batches) // 2]
    target = log.with_name(f"{half.base_offset:020}.log")
    if target.exists():
        return None
    target.write_bytes(log.read_bytes()[half.position :])
    return f"{scene.where(target)}: second half of {log.name} again"


@change
def odd_name(scene: Scene) -> str | None:
    """A file with a suffix of Kafka and a strange name."""
    log = scene.log(newest=scene.rng.random() < 0.7)
    base = int(log.stem)
    name = scene.rng.choice(
        ["copy", "00000000000000000000 (1)", "old", "9999", "00000000000000000000.log", "-5", "0x10",
         f"{base}", f"+{base}", f"+{base + 3}", f"{base + 3}", f"{base:025}", f"+{base + 3:020}", "-0", "99" * 10,
         "".join(chr(0x660 + int(each)) for each in f"{base + 3:020}")]
    )  # fmt: skip
    target = log.with_name(f"{name}.{scene.rng.choice(['log', 'index', 'timeindex', 'snapshot', 'txnindex'])}")
    shutil.copyfile(log, target)
    return f"{scene.where(target)}: copy of {log.name}"


@change
def log_folder(scene: Scene) -> str | None:
    """A folder has the name of a file of a segment."""
    log = scene.log(newest=scene.rng.random() < 0.5)
    target = log.with_suffix(scene.rng.choice([".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".snapshot"]))
    if target.exists():
        target.unlink()
    target.mkdir()
    return f"{scene.where(target)} is a folder"


@change
def special_file(scene: Scene) -> str | None:
    """A pipe, a socket, or a link to a device has the name of a file of a segment, or of another file of the folder."""
    log = scene.log(newest=scene.rng.random() < 0.6)
    suffix = scene.rng.choice([".log", ".log", ".index", ".index", ".timeindex", ".txnindex", ".snapshot"])
    target = log.with_suffix(suffix)
    if scene.rng.random() < 0.15:
        target = log.with_name(scene.rng.choice(["copy.log", f"{int(log.stem) + 3:020}.log", f"{log.name}.swap"]))
    how = scene.rng.choice(["pipe", "socket", "/dev/null", "/dev/zero"])
    target.unlink(missing_ok=True)
    if how == "pipe":
        os.mkfifo(target)
    elif how == "socket":
        os.mknod(target, stat.S_IFSOCK | 0o644)
    else:
        target.symlink_to(how)
    return f"{scene.where(target)}: {how}"


@change
def all_lost(scene: Scene) -> str | None:
    """Files of a whole partition are lost."""
    folder = scene.folder
    which = scene.rng.choice(["logs", "segments", "everything", "emptied"])
    for each in list(folder.iterdir()):
        if which == "emptied" and each.suffix == ".log":
            each.write_bytes(b"")
        elif (
            which == "everything"
            or (which == "logs" and each.suffix == ".log")
            or (which == "segments" and each.name != "partition.metadata")
        ):
            each.unlink()
    return f"{scene.where(folder)}: {which} lost"


# indexes, snapshots


@change
def index(scene: Scene) -> str | None:
    """An index is missing, empty, garbage, truncated, or has additional entries."""
    log = scene.log(newest=scene.rng.random() < 0.6)
    target = log.with_suffix(scene.rng.choice([".index", ".index", ".timeindex", ".txnindex"]))
    how = scene.rng.choice(["missing", "empty", "garbage", "torn", "zeros", "more", "beyond"])
    old = target.read_bytes() if target.exists() else b""
    if how == "missing":
        target.unlink(missing_ok=True)
    else:
        made = {
            "empty": b"",
            "garbage": scene.rng.randbytes(len(old) or 24),
            "torn": old[:-3],
            "zeros": bytes(len(old) or 24),
            "more": old + scene.rng.randbytes(8),
            "beyond": old + struct.pack(">ii", 1 << 20, 1 << 20),
        }
        target.write_bytes(made[how])
    return f"{scene.where(target)}: {how}"


@change
def snapshot(scene: Scene) -> str | None:
    """A producer snapshot is missing, empty, garbage, flipped, or past the log end."""
    folder = scene.folder
    found = sorted(folder.glob("*.snapshot"))
    if not found:
        return None
    target = scene.rng.choice([found[-1], scene.rng.choice(found)])
    how = scene.rng.choice(["missing", "empty", "garbage", "flipped", "beyond", "all missing"])
    data = bytearray(target.read_bytes())
    if how == "all missing":
        for each in found:
            each.unlink()
    elif how == "missing":
        target.unlink()
    elif how == "beyond":
        target.rename(target.with_name(f"{int(target.stem) + 500:020}.snapshot"))
    else:
        if how == "flipped" and data:
            data[scene.rng.randrange(len(data))] ^= 1
        target.write_bytes({"empty": b"", "garbage": scene.rng.randbytes(60)}.get(how, bytes(data)))
    return f"{scene.where(target)}: {how}"


# leftovers of cleaning, splitting and deletion


@change
def swap(scene: Scene) -> str | None:
    """A ``.swap`` file beside a segment, or in place of it."""
    folder = scene.folder
    log = scene.rng.choice(scene.logs(folder))
    how = scene.rng.choice(["empty", "torn", "zeros", "whole", "moved", "flipped", "beyond", "merged", "indexes"])
    data, target = bytearray(log.read_bytes()), log.with_name(f"{log.name}.swap")
    if how == "indexes":
        for suffix in (".index", ".timeindex"):
            if log.with_suffix(suffix).exists():
                shutil.copyfile(log.with_suffix(suffix), log.with_name(f"{log.stem}{suffix}.swap"))
        return f"{scene.where(log)}: its indexes as .swap"
    if how == "moved":
        for each in siblings(log):
            if each.suffix in {".log", ".index", ".timeindex", ".txnindex"}:
                each.rename(each.with_name(f"{each.name}.swap"))
        return f"{scene.where(log)}: is .swap now"
    if how == "merged":
        logs = scene.logs(folder)
        data = bytearray(b"".join(each.read_bytes() for each in logs[:2]))
        target = logs[0].with_name(f"{logs[0].name}.swap")
    elif how == "torn":
        del data[scene.rng.randrange(len(data) + 1) :]
    elif how == "flipped" and data:
        data[scene.rng.randrange(len(data))] ^= 4
    elif how == "beyond":
        target = log.with_name(f"{int(log.stem) + 700:020}.log.swap")
    target.write_bytes({"empty": b"", "zeros": bytes(len(data))}.get(how, bytes(data)))
    return f"{scene.where(target)}: {how}"


@change
def cleaned(scene: Scene) -> str | None:
    """A ``.cleaned`` file, alone or beside a ``.swap``."""
    folder = scene.folder
    log = scene.rng.choice(scene.logs(folder))
    target = log.with_name(f"{log.name}.cleaned")
    target.write_bytes(scene.rng.choice([log.read_bytes(), bytes(20), b""]))
    more = swap(scene) if scene.rng.random() < 0.5 else ""
    return f"{scene.where(target)}; {more}"


@change
def deleted(scene: Scene) -> str | None:
    """Files of a segment are ``.deleted``."""
    log = scene.log(newest=scene.rng.random() < 0.5)
    keeps = scene.rng.random() < 0.4
    for each in siblings(log):
        if each.suffix == ".deleted":
            continue
        target = each.with_name(f"{each.name}.deleted")
        if keeps:
            shutil.copyfile(each, target)
        else:
            each.rename(target)
    return f"{scene.where(log)}: {'also' if keeps else 'is'} .deleted"


# partition.metadata and epochs


def topic_id(text: str) -> bytes:
    """The content of a ``partition.metadata``."""
    return f"version: 0\ntopic_id: {text}".encode()


@change
def partition_metadata(scene: Scene) -> str | None:
    """``partition.metadata`` is missing, empty, truncated, zeroed, garbage, of another topic."""
    folders = scene.folders() if scene.rng.random() < 0.15 else [scene.folder]
    how = scene.rng.choice(
        ["missing", "missing", "empty", "torn", "zeros", "garbage", "other", "version", "folder", "CRLF"]
    )
    for folder in folders:
        target = folder / "partition.metadata"
        old = target.read_bytes()
        other = urlsafe_b64encode(scene.rng.randbytes(16)).decode().rstrip("=")
        target.unlink()
        if how == "folder":
            target.mkdir()
        elif how != "missing":
            made = {
                "empty": b"",
                "torn": old[: scene.rng.randrange(len(old))],
                "zeros": bytes(len(old)),
                "garbage": scene.rng.randbytes(40),
                "other": topic_id(other),
                "version": old.replace(b"version: 0", scene.rng.choice([b"version: 1", b"version: -1", b"version:0"])),
                "CRLF": old.replace(b"\n", b"\r\n") + b"\r\n",
            }
            target.write_bytes(made[how])
    return f"{', '.join(map(scene.where, folders))}: partition.metadata {how}"


def _text_file(scene: Scene, target: Path, line: str) -> str | None:
    if not target.exists():
        return None
    old = target.read_bytes()
    lines = old.decode().splitlines()
    how = scene.rng.choice(
        ["missing", "empty", "zeros", "garbage", "torn", "count", "version", "line", "line", "none", "folder", "blank"]
    )
    target.unlink()
    if how == "folder":
        target.mkdir()
    elif how == "line":
        target.write_text("\n".join([lines[0], str(len(lines[2:]) + 1), *lines[2:], line, ""]))
    elif how != "missing":
        made = {
            "empty": b"",
            "zeros": bytes(len(old)),
            "garbage": scene.rng.randbytes(len(old)),
            "torn": old[: scene.rng.randrange(len(old))],
            "count": "\n".join([lines[0], str(len(lines)), *lines[2:], ""]).encode(),
            "version": b"1" + old[1:],
            "none": b"0\n0\n",
            "blank": b"\n" + old,
        }
        target.write_bytes(made[how])
    return f"{scene.where(target)}: {how}" + (f" {line}" if how == "line" else "")


@change
def epochs(scene: Scene) -> str | None:
    """``leader-epoch-checkpoint`` of a partition."""
    line = scene.rng.choice(["9 100000", "0 5", "-1 -1", "7 7 7", "x 1", "3 99999999999999999999"])
    return _text_file(scene, scene.folder / "leader-epoch-checkpoint", line)


@change
def checkpoint(scene: Scene) -> str | None:
    """A checkpoint of a log dir."""
    kind = scene.rng.choice(sorted(CHECKPOINTS))
    target = scene.dir / CHECKPOINTS[kind]
    folders = [each for each in scene.folders() if each.parent == target.parent]
    if kind == "cl" and not target.exists():
        target.write_text("0\n0\n")
    if not folders:
        return None
    topic, _, number = scene.rng.choice(folders).name.rpartition("-")
    value = scene.rng.choice([-3, 0, 5, 30, 61, 97, 100000])
    return _text_file(
        scene, target, scene.rng.choice([f"{topic} {number} {value}"] * 5 + [f"gone 3 {value}", "a b", "a b c"])
    )


@change
def log_start(scene: Scene) -> str | None:
    """One log start offset in the checkpoint is changed."""
    return _one_entry(scene, CHECKPOINTS["ls"])


@change
def recovery_point(scene: Scene) -> str | None:
    """One recovery point in the checkpoint is changed."""
    return _one_entry(scene, CHECKPOINTS["rp"])


@change
def high_watermark(scene: Scene) -> str | None:
    """One high watermark in the checkpoint is changed."""
    return _one_entry(scene, CHECKPOINTS["hw"])


def _one_entry(scene: Scene, name: str) -> str | None:
    folder = scene.folder
    target = folder.parent / name
    topic, _, number = folder.name.rpartition("-")
    value = scene.rng.choice([0, 5, 30, 61, 97, 112, 113, 150, 100000, -3])
    lines = target.read_text().splitlines() if target.is_file() else ["0", "0"]
    rest = [line for line in lines[2:] if not line.startswith(f"{topic} {number} ")]
    target.write_text("\n".join(["0", str(len(rest) + 1), *rest, f"{topic} {number} {value}", ""]))
    return f"{scene.where(target)}: {topic} {number} {value}"


# folders


def _named(folder: Path, state: str) -> Path:
    return folder.with_name(f"{folder.name}.{uuid.UUID(int=len(folder.name) * 7919).hex}-{state}")


@change
def folder_lost(scene: Scene) -> str | None:
    """A partition folder is lost."""
    folder = scene.rng.choice(scene.folders(internal=True))
    if folder.name == METADATA:
        return None
    shutil.rmtree(folder)
    return f"{scene.where(folder)} lost"


@change
def folder_named(scene: Scene) -> str | None:
    """A partition folder is -stray, -delete or -future, or there is such a copy."""
    folder, state = scene.folder, scene.rng.choice(["stray", "delete", "future"])
    target, copies = _named(folder, state), scene.rng.random() < 0.5
    if copies and scene.second is not None and state == "future" and scene.rng.random() < 0.5:
        target = next(each for each in scene.dirs if each != folder.parent) / target.name
    shutil.copytree(folder, target) if copies else folder.rename(target)
    if copies and scene.rng.random() < 0.3:
        scene.logs(target)[-1].unlink()
    return f"{scene.where(target)}: {'copy of' if copies else 'was'} {folder.name}"


@change
def folder_foreign(scene: Scene) -> str | None:
    """A folder that is not a partition, or belongs to a topic that the cluster does not have."""
    name = scene.rng.choice(
        ["lost+found", "backup", ".Trash-1000", "old-orders-0", "plain-9", "plain-0.bak", ".snapshot",
         "remote-log-index-cache", "fresh-3", "plain--1", "-0", "plain-99999999999", "plain-+1", "plain-01", "a b-0"]
    )  # fmt: skip
    target = scene.dir / name
    if target.exists():
        return None
    if scene.rng.random() < 0.5:
        target.mkdir()
        return f"{scene.where(target)}: empty folder"
    folder = scene.folder
    shutil.copytree(folder, target)
    return f"{scene.where(target)}: copy of {folder.name}"


@change
def folder_twice(scene: Scene) -> str | None:
    """A partition in both log dirs, or moved to the other one."""
    if scene.second is None:
        return None
    folder = scene.folder
    target = next(each for each in scene.dirs if each != folder.parent) / folder.name
    moves = scene.rng.random() < 0.5
    shutil.move(folder, target) if moves else shutil.copytree(folder, target)
    return f"{scene.where(target)}: {'moved' if moves else 'copied'} from {folder.parent.name}"


@change
def folder_is_file(scene: Scene) -> str | None:
    """A file or a dangling link has the name of a partition."""
    folder = scene.folder
    shutil.rmtree(folder)
    if scene.rng.random() < 0.5:
        folder.write_text("x")
        return f"{scene.where(folder)} is a file"
    folder.symlink_to("/nowhere/at/all")
    return f"{scene.where(folder)} is a dangling link"


@change
def files_beside(scene: Scene) -> str | None:
    """Files that no broker writes."""
    if scene.rng.random() < 0.5:
        for name in ("notes.txt", "plain-7", ".lock.bak", "backup-1.tar"):
            (scene.dir / name).write_text("x")
        return "files in the log dirs"
    folder = scene.folder
    for name in ("README.txt", "core.123", "00000000000000000000.log.bak", ".nfs0000", "x.tmp"):
        (folder / name).write_text("x")
    return f"{scene.where(folder)}: files of others"


# log dirs


@change
def meta_properties(scene: Scene) -> str | None:
    """``meta.properties`` of a log dir."""
    target = scene.dir / "meta.properties"
    old = target.read_text()
    lines = old.splitlines()
    key, value = scene.rng.choice(
        [("node.id", "7"), ("cluster.id", "AAAAAAAAAAAAAAAAAAAAAA"), ("directory.id", "Qaz6PCc5Kl1IeDkVyuV-bQ"),
         ("directory.id", "not-an-id!"), ("directory.id", "AAAAAAAAAAAAAAAAAAAAAQ"), ("version", "0"), ("version", "2"),
         ("version", "x"), ("node.id", "x"), ("note", "moved"), ("node.id", "-1"), ("broker.id", "5")]
    )  # fmt: skip
    how = scene.rng.choice(["missing", "empty", "zeros", "garbage", "without", "other", "other", "other", "CRLF"])
    target.unlink()
    rest = [line for line in lines if not line.startswith(f"{key}=")]
    if how != "missing":
        made = {
            "empty": b"",
            "zeros": bytes(len(old)),
            "garbage": scene.rng.randbytes(80),
            "without": "\n".join([*rest, ""]).encode(),
            "other": "\n".join([*rest, f"{key}={value}", ""]).encode(),
            "CRLF": "\r\n".join([*lines, ""]).encode(),
        }
        target.write_bytes(made[how])
    return f"{scene.where(target)}: {how}" + (f" {key}={value}" if how in {"other", "without"} else "")


@change
def directory_id_twice(scene: Scene) -> str | None:
    """Both log dirs have one directory.id."""
    if scene.second is None:
        return None
    shutil.copyfile(scene.dirs[0] / "meta.properties", scene.second / "meta.properties")
    return "meta.properties of the second log dir is the first one's"


@change
def disk(scene: Scene) -> str | None:
    """The second log dir is lost, empty, a file, new, or the log dirs are in another order."""
    if scene.second is None:
        return None
    how = scene.rng.choice(["lost", "empty", "file", "formatted", "properties alone", "lost+found"])
    meta = (scene.second / "meta.properties").read_text()
    shutil.rmtree(scene.second)
    if how == "file":
        scene.second.write_text("x")
    elif how != "lost":
        scene.second.mkdir()
        if how == "lost+found":
            (scene.second / "lost+found").mkdir()
        elif how != "empty":
            new = urlsafe_b64encode(scene.rng.randbytes(16)).decode().rstrip("=").replace("-", "a")
            lines = [line for line in meta.splitlines() if how == "properties alone" or "directory.id" not in line]
            lines += [f"directory.id={new}"] if how == "formatted" else []
            (scene.second / "meta.properties").write_text("\n".join([*lines, ""]))
    return f"the second log dir: {how}"


@change
def marker(scene: Scene) -> str | None:
    """``.kafka_cleanshutdown`` is there, absent, garbage, a folder, a broken link, or a link to a folder."""
    how = scene.rng.choice(["absent", "one absent", "garbage", "empty", "folder", "put", "linked", "linked", "broken"])
    places = [scene.dir] if how in {"one absent", "folder"} else scene.dirs
    for each in places:
        target = each / MARKER
        target.unlink(missing_ok=True)
        if how == "folder":
            target.mkdir()
        elif how in {"linked", "broken"}:
            target.symlink_to(scene.rng.choice(["/usr", "/proc/self/fdinfo"]) if how == "linked" else "/nowhere/at/all")
        elif "absent" not in how:
            target.write_bytes(
                {"garbage": scene.rng.randbytes(30), "empty": b""}.get(how, b'{"version":0,"brokerEpoch":9}')
            )
    return f"marker {how} in {', '.join(each.name for each in places)}"


@change
def any_file(scene: Scene) -> str | None:
    """A file is missing, truncated, partly zeros, garbage or another file, has a flipped bit, or is a folder."""
    target = scene.rng.choice(files(scene))
    how = scene.rng.choice(["missing", "empty", "cut", "page", "flipped", "garbage", "twice", "folder"])
    data = bytearray(target.read_bytes()[:65536])
    at = scene.rng.randrange(len(data) or 1)
    if how in {"missing", "folder"}:
        target.unlink()
        if how == "folder":
            target.mkdir()
        return f"{scene.where(target)}: {how}"
    if how == "flipped" and data:
        data[at] ^= 1 << scene.rng.randrange(8)
    page = at - at % 512
    zeros = bytes(min(512, len(data) - page))
    made = {
        "empty": b"",
        "cut": data[:at],
        "page": data[:page] + zeros + data[page + len(zeros) :],
        "garbage": scene.rng.randbytes(len(data)),
        "twice": data + data,
    }
    target.write_bytes(made.get(how, data))
    return f"{scene.where(target)}: {how} at {at} of {len(data)}"


@change
def exchanged(scene: Scene) -> str | None:
    """A file that is not a log has the content of another file with this suffix, as after a wrong repair of a disk."""
    target = scene.rng.choice([each for each in files(scene) if each.suffix != ".log"])
    others = [each for each in files(scene) if each.suffix == target.suffix and each != target]
    if target.suffix == "":
        others = [each for each in others if each.name == target.name]
    if not others:
        return None
    other = scene.rng.choice(others)
    shutil.copyfile(other, target)
    return f"{scene.where(target)}: content of {scene.where(other)}"


def files(scene: Scene) -> list[Path]:
    """All files of the log dirs, or those of the scene's only folder."""
    places = scene.folders(internal=True) if scene.only else scene.dirs
    return sorted(each for one in places for each in one.rglob("*") if each.is_file() and each.name != ".lock")


# the metadata log


@change
def metadata_folder(scene: Scene) -> str | None:
    """Files of ``__cluster_metadata-0`` are lost, or the folder is in both log dirs."""
    folder = scene.dirs[0] / METADATA
    how = scene.rng.choice(["*", "*.log", "*.checkpoint", "*index", "leader-epoch-checkpoint", "partition.metadata"])
    if scene.rng.random() < 0.3:
        if scene.second is not None and scene.rng.random() < 0.5:
            shutil.copytree(folder, scene.second / METADATA)
            return "metadata log in both log dirs"
        shutil.rmtree(folder)
        if scene.rng.random() < 0.3:
            (scene.dirs[0] / "bootstrap.checkpoint").unlink(missing_ok=True)
            return "metadata log and bootstrap.checkpoint lost"
        return "metadata log: folder lost"
    for each in sorted(folder.glob(how)):
        each.unlink()
    return f"metadata log: {how} lost"


@change
def metadata_log(scene: Scene) -> str | None:
    """The log of ``__cluster_metadata-0`` is damaged."""
    folder = scene.dirs[0] / METADATA
    log = sorted(folder.glob("*.log"))[-1]
    data, rng = bytearray(log.read_bytes()), scene.rng
    at = rng.randrange(len(data))
    flipped = bytearray(data)
    flipped[at] ^= 1 << rng.randrange(8)
    made = {
        "empty": b"",
        "torn": data[: -rng.randint(1, 60)],
        "half": data[: len(data) // 2],
        f"a bit of byte {at} turned": flipped,
        f"cut to {at} bytes": data[:at],
        "garbage after it": data + rng.randbytes(99),
        "zeros after it": data + bytes(99),
        "zeros at its end": data[:at] + bytes(len(data) - at),
    }
    how = rng.choice(sorted(made))
    log.write_bytes(made[how])
    if rng.random() < 0.2:
        for each in folder.glob("*.checkpoint"):
            each.unlink()
        how += ", and no snapshot"
    return f"metadata log: {how}"


@change
def directories(scene: Scene) -> str | None:
    """The metadata log assigns partitions to no log dir, a lost one, or one that is not known yet (``DirectoryId``)."""
    folder = scene.dirs[0] / METADATA
    with local.LocalFile(sorted(folder.glob("*.log"))[-1]) as source:
        last = [region for region in walk(source) if isinstance(region, RecordBatch)][-1]
    image = image_of(Finder(Wanted()).find([str(folder)]), SILENT)
    node = broker_dirs.of((scene.dirs[0] / "meta.properties").read_bytes()).node_id
    assigned = [
        (topic.id, number)
        for topic in image.topics.by_name.values()
        for number, state in sorted(topic.partitions.items())
        if node in state.replicas and not topic.name.startswith("__")
    ]
    number, name = scene.rng.choice([(0, "MIGRATING"), (1, "UNASSIGNED"), (2, "LOST"), (77, "reserved")])
    picked = scene.rng.sample(assigned, scene.rng.randint(1, len(assigned)))
    layout = cluster_metadata.MESSAGES["PartitionChangeRecord"].struct(1)
    values = [
        {"partitionId": at, "topicId": topic, "directories": [number.to_bytes(16, "big")]} for topic, at in picked
    ]
    frame = bytes([FRAME, 5, 1])
    made = [forge.record(None, frame + write(layout, each), offset=delta) for delta, each in enumerate(values)]
    more = forge.batch(made, base_offset=last.last_offset + 1, leader_epoch=last.partition_leader_epoch)
    with sorted(folder.glob("*.log"))[-1].open("ab") as log:
        log.write(more)
    lost = scene.rng.random() < 0.5 and [each for each in scene.folders() if scene.rng.random() < 0.3]
    for each in lost or ():
        shutil.rmtree(each)
    return f"{len(picked)} partitions in directory {name}, {len(lost or ())} folders lost"


@change
def metadata_snapshot(scene: Scene) -> str | None:
    """The newest snapshot of the metadata log is damaged, or only the oldest is left."""
    folder = scene.dirs[0] / METADATA
    found = sorted(folder.glob("*.checkpoint"))
    if not found:
        return None
    how = scene.rng.choice(["torn", "flipped", "empty", "garbage", "oldest alone"])
    data = bytearray(found[-1].read_bytes())
    if how == "oldest alone":
        for each in (*found[1:], *folder.glob("*.log")):
            each.unlink()
        return f"metadata log: only {found[0].name} is left"
    at = scene.rng.randrange(len(data))
    if how == "flipped":
        data[at] ^= 1 << scene.rng.randrange(8)
    made = {"torn": data[:at], "empty": b"", "garbage": scene.rng.randbytes(200)}
    found[-1].write_bytes(made.get(how, data))
    return f"metadata log: {found[-1].name} {how}"


@change
def epochs_of_metadata(scene: Scene) -> str | None:
    """``leader-epoch-checkpoint`` or ``partition.metadata`` of the metadata log."""
    folder = scene.dirs[0] / METADATA
    if scene.rng.random() < 0.3:
        (folder / "partition.metadata").write_bytes(topic_id("Qaz6PCc5Kl1IeDkVyuV-bQ"))
        return "metadata log: partition.metadata of another topic"
    return _text_file(scene, folder / "leader-epoch-checkpoint", "9 100000")


@change
def quorum_state(scene: Scene) -> str | None:
    """``quorum-state`` of the metadata log."""
    target = scene.dirs[0] / METADATA / "quorum-state"
    old = target.read_bytes()
    how = scene.rng.choice(["missing", "empty", "zeros", "garbage", "torn"])
    target.unlink()
    if how != "missing":
        made = {"empty": b"", "zeros": bytes(len(old)), "garbage": scene.rng.randbytes(40), "torn": old[:-5]}
        target.write_bytes(made[how])
    return f"quorum-state {how}"


@change
def quorum_state_text(scene: Scene) -> str | None:
    """``quorum-state`` is JSON that other readers take, or has numbers that do not fit."""
    target = scene.dirs[0] / METADATA / "quorum-state"
    old, made = target.read_text(), scene.rng.choice(["BOM", "UTF-16", "more", "NaN", "highest epoch", "large epoch"])
    epoch = {"highest epoch": 2**31 - 1, "large epoch": 2**31}
    texts = {"BOM": f"\ufeff{old}", "more": f"{old.strip()} x", "NaN": old.replace("{", '{"x":NaN,', 1)}
    new = re.sub(r'(?<="leaderEpoch":)\d+', str(epoch.get(made)), old) if made in epoch else texts.get(made, old)
    target.write_bytes(new.encode("utf-16-le" if made == "UTF-16" else "utf-8"))
    return f"quorum-state {made}"


@change
def snapshot_name(scene: Scene) -> str | None:
    """A file with a suffix of snapshots and another name."""
    name = scene.rng.choice(["copy", "7-1", f"{7:020}-{1:010} (1)", f"{7:021}-{1:010}", f"{7:020}_{1:010}"])
    name += f".checkpoint{scene.rng.choice(['', '.part', '.deleted', '.bak'])}"
    (scene.dirs[0] / METADATA / name).write_bytes(b"")
    return f"metadata log: {name}"


@change
def checkpoint_number(scene: Scene) -> str | None:
    """A number in a checkpoint of a log dir is malformed."""
    target = scene.dir / CHECKPOINTS[scene.rng.choice(["rp", "hw"])]
    lines = target.read_text().splitlines()
    if len(lines) < 3:
        return None
    lines[-1] += scene.rng.choice(["x", "9" * 20, "\u0007"])
    target.write_text("\n".join([*lines, ""]))
    return f"{scene.where(target)}: {lines[-1]!r}"


@change
def bootstrap(scene: Scene) -> str | None:
    """``bootstrap.checkpoint`` of the first log dir."""
    target = scene.dirs[0] / "bootstrap.checkpoint"
    old = target.read_bytes() if target.exists() else b""
    how = scene.rng.choice(["missing", "empty", "garbage", "torn", "flip"])
    target.unlink(missing_ok=True)
    if how != "missing":
        made = bytearray(old)
        if how == "flip" and made:
            made[scene.rng.randrange(len(made))] ^= 1
        target.write_bytes({"empty": b"", "garbage": scene.rng.randbytes(90), "torn": old[:-8]}.get(how, bytes(made)))
    return f"bootstrap.checkpoint {how}"
