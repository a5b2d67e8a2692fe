"""An independent writer of tiered storage: ``__remote_log_metadata``, and the objects of Aiven's manager.

It shares no code with kdump. The layouts are those of Kafka's ``RemoteLogSegmentMetadataRecord`` (KIP-405) and of
Aiven's tiered-storage-for-apache-kafka 1.x, taken from the files it writes.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from base64 import b64encode, urlsafe_b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from testing import forge

COPYING, COPIED, DELETING, DELETED = range(4)
"""The states of a segment."""
TOPIC_ID = bytes(15) + b"\x07"
TIME = 1_700_000_000_000
"""When copies begin, in ms; a copy ends one second later, and a deletion begins at the same time."""
INDEXES = ("offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction")


def uuid(raw: bytes) -> str:
    """A uuid as Kafka writes it."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def compact(data: bytes) -> bytes:
    return unsigned(len(data) + 1) + data


def unsigned(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


@dataclass
class Segment:
    """A segment of a tiered partition."""

    start: int
    end: int
    data: bytes = b""
    number: int = 1
    """Makes its id."""
    topic: str = "t"
    partition: int = 0
    topic_id: bytes = TOPIC_ID
    epochs: tuple[tuple[int, int], ...] = ()
    """Leader epochs, and the offsets in the segment at which they begin."""
    indexes: dict[str, bytes] = field(default_factory=dict)

    @property
    def id(self) -> bytes:
        return struct.pack(">QQ", 1, self.number)

    @property
    def folder(self) -> str:
        return f"{self.topic}-{uuid(self.topic_id)}/{self.partition}"

    @property
    def stem(self) -> str:
        return f"{self.start:020}-{uuid(self.id)}"

    def metadata_id(self) -> bytes:
        partition = compact(self.topic.encode()) + self.topic_id + struct.pack(">i", self.partition) + b"\0"
        return partition + self.id + b"\0"

    def added(self, state: int = COPYING, *, size: int | None = None, custom: bytes | None = None) -> bytes:
        """Return the value of the record for the start of its copy."""
        epochs = self.epochs or ((0, self.start),)
        body = self.metadata_id() + struct.pack(">qqiqq", self.start, self.end, 1, TIME, TIME)
        body += unsigned(len(epochs) + 1) + b"".join(struct.pack(">iq", *one) + b"\0" for one in epochs)
        body += struct.pack(">i", len(self.data) if size is None else size)
        body += (b"\0" if custom is None else compact(custom)) + bytes([state]) + b"\0"
        return b"\1\0\0" + body

    def changed(self, state: int, *, custom: bytes | None = None) -> bytes:
        """Return the value of the record for another state."""
        body = self.metadata_id() + struct.pack(">iq", 1, TIME + 1000) + (b"\0" if custom is None else compact(custom))
        return b"\1\1\0" + body + bytes([state]) + b"\0"

    def partition_deleted(self, state: int) -> bytes:
        """Return the value of the record for a state of the deletion of its partition."""
        partition = compact(self.topic.encode()) + self.topic_id + struct.pack(">i", self.partition) + b"\0"
        return b"\1\2\0" + partition + struct.pack(">iqb", 1, TIME + 1000, state) + b"\0"


def metadata_log(values: list[bytes]) -> bytes:
    """Return a segment of ``__remote_log_metadata`` with these values."""
    records = [forge.batch([forge.record(None, value)], base_offset=at) for at, value in enumerate(values)]
    return b"".join(records)


def write_metadata(log_dir: Path, values: list[bytes]) -> None:
    """Write the only partition of ``__remote_log_metadata`` into a log dir."""
    folder = log_dir / "__remote_log_metadata-0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{0:020}.log").write_bytes(metadata_log(values))


@dataclass
class Keys:
    """An RSA key pair, and the name under which manifests name it."""

    name: str = "key1"
    private: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))

    def pem(self) -> bytes:
        """Return the private key as in a broker's ``private.key.file``."""
        none = serialization.NoEncryption()
        return self.private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, none)

    def public_pem(self) -> bytes:
        """Return the public key as in a broker's ``public.key.file``."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self.private.public_key().public_bytes(serialization.Encoding.PEM, form)

    def wrap(self, data_key: bytes) -> str:
        public = self.private.public_key().public_numbers()
        size, seed = public.n.bit_length() // 8, os.urandom(64)
        data = hashlib.sha3_512(b"").digest() + bytes(size - 130 - len(data_key)) + b"\1" + data_key
        masked = xored(data, mgf1(seed, len(data)))
        block = b"\0" + xored(seed, mgf1(masked, 64)) + masked
        sealed = pow(int.from_bytes(block, "big"), public.e, public.n).to_bytes(size, "big")
        return f"{self.name}:{b64encode(sealed).decode()}"


def mgf1(seed: bytes, size: int) -> bytes:
    """Return the mask of RFC 8017, B.2.1, by SHA3-512."""
    out = b""
    while len(out) < size:
        out += hashlib.sha3_512(seed + struct.pack(">I", len(out) // 64)).digest()
    return out[:size]


def xored(left: bytes, right: bytes) -> bytes:
    return (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).to_bytes(len(left), "big")


def packed_sizes(sizes: list[int]) -> str:
    """Return the sizes of chunks in the form of ``transformedChunks``."""
    if len(sizes) == 1:
        raw = struct.pack(">ii", 1, sizes[0])
    else:
        base = min(sizes[:-1])
        width = max(1, *((size - base).bit_length() + 7 >> 3 for size in sizes[:-1]))
        raw = struct.pack(">iib", len(sizes), base, width)
        raw += b"".join((size - base).to_bytes(width, "big") for size in sizes[:-1]) + struct.pack(">i", sizes[-1])
    return b64encode(zstandard.compress(raw)).decode()


@dataclass
class Store:
    """A folder of objects that has the layout of Aiven's manager."""

    root: Path
    chunk: int = 100
    compress: bool = False
    keys: Keys | None = None

    def paths(self, segment: Segment) -> tuple[Path, Path, Path]:
        """Return the paths of the log, the indexes and the manifest of a segment."""
        stem = self.root / segment.folder / segment.stem
        return Path(f"{stem}.log"), Path(f"{stem}.indexes"), Path(f"{stem}.rsm-manifest")

    def write(self, segment: Segment, **changes: Any) -> dict[str, Any]:
        """Write the three objects; return the manifest, some of whose fields ``changes`` replaces."""
        data_key, aad = AESGCM.generate_key(256), os.urandom(32)
        chunks = [segment.data[at : at + self.chunk] for at in range(0, len(segment.data), self.chunk)]
        done = [self.transformed(chunk, data_key, aad) for chunk in chunks]
        manifest: dict[str, Any] = {"version": "1", "chunkIndex": self.chunk_index(segment, done)}
        indexes, places = b"", {}
        for name in INDEXES:
            if name == "transaction" and name not in segment.indexes:
                places[name] = None
                continue
            plain = segment.indexes.get(name, b"")
            part = self.encrypted(plain, data_key, aad) if plain else b""
            places[name] = {"position": len(indexes), "size": len(part)}
            indexes += part
        manifest |= {"segmentIndexes": places, "compression": self.compress}
        if self.keys is not None:
            manifest["encryption"] = {"dataKey": self.keys.wrap(data_key), "aad": b64encode(aad).decode()}
        log, index, manifest_path = self.paths(segment)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"".join(done))
        index.write_bytes(indexes)
        manifest_path.write_text(json.dumps({**manifest, **changes}))
        return manifest

    def chunk_index(self, segment: Segment, done: list[bytes]) -> dict[str, Any]:
        sizes = [len(each) for each in done] or [0]
        original = {"originalChunkSize": self.chunk, "originalFileSize": len(segment.data)}
        if self.compress:
            return {"type": "variable", **original, "transformedChunks": packed_sizes(sizes)}
        fixed = {"transformedChunkSize": sizes[0], "finalTransformedChunkSize": sizes[-1]}
        return {"type": "fixed", **original, **fixed}

    def transformed(self, chunk: bytes, data_key: bytes, aad: bytes) -> bytes:
        return self.encrypted(zstandard.compress(chunk) if self.compress else chunk, data_key, aad)

    def encrypted(self, data: bytes, data_key: bytes, aad: bytes) -> bytes:
        if self.keys is None:
            return data
        iv = os.urandom(12)
        return iv + AESGCM(data_key).encrypt(iv, data, aad)
