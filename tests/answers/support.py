"""Little log dirs for the tests of answers, and running an answering command on them."""

from __future__ import annotations

import json

from testing.processes import kdump


def write(log_dir, partition, segments, **beside):
    """Write a partition's folder: segments by base offset, other files by name (``__`` stands for a dot)."""
    folder = log_dir / partition
    folder.mkdir(parents=True, exist_ok=True)
    for base, content in segments.items():
        (folder / f"{base:020}.log").write_bytes(content)
    for name, content in beside.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name.replace("__", ".").replace("_", "-")).write_bytes(data)
    return folder


def checkpoint(path, *entries):
    """Write an offset checkpoint of ``(topic, partition, offset)``."""
    path.write_text("\n".join(["0", str(len(entries)), *(" ".join(map(str, entry)) for entry in entries)]) + "\n")


def ask(*args, status=0):
    """Run ``kdump ARGS -o jsonl``; return its lines and what it said."""
    done = kdump(*args, "-o", "jsonl")
    assert done.returncode == status, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()
