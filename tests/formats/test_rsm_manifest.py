"""Manifests of Aiven's remote storage manager."""

import json
import random
from base64 import b64encode
from contextlib import suppress

import pytest
import zstandard

from kdump.errors import DamageError
from kdump.formats import rsm_manifest
from kdump.formats.rsm_manifest import Encryption, Part
from testing import tiered

FIXED = {
    "version": "1",
    "chunkIndex": {
        "type": "fixed",
        "originalChunkSize": 100,
        "originalFileSize": 250,
        "transformedChunkSize": 110,
        "finalTransformedChunkSize": 80,
    },
    "segmentIndexes": {
        "offset": {"position": 0, "size": 8},
        "timestamp": {"position": 8, "size": 12},
        "producerSnapshot": {"position": 20, "size": 10},
        "leaderEpoch": {"position": 30, "size": 8},
        "transaction": None,
    },
    "compression": False,
    "encryption": {"dataKey": "key1:AAEC", "aad": "AwQ="},
    "remoteLogSegmentMetadata": {"endOffset": 41, "segmentLeaderEpochs": {"2": 7, "10": 9}},
}


def variable(text, *, size=250):
    index = {"type": "variable", "originalChunkSize": 100, "originalFileSize": size, "transformedChunks": text}
    return {**FIXED, "chunkIndex": index}


def read(content):
    return rsm_manifest.read(json.dumps(content).encode())


def test_chunks_of_one_size():
    manifest = read(FIXED)
    assert (manifest.chunk_size, manifest.file_size, manifest.chunks) == (100, 250, (110, 110, 80))
    assert [manifest.original_size(number) for number in range(3)] == [100, 100, 50]
    assert manifest.indexes["timestamp"] == Part(8, 12)
    assert "transaction" not in manifest.indexes
    assert manifest.encryption == Encryption("key1", b"\0\1\2", b"\3\4")
    assert (manifest.end_offset, manifest.last_epoch, manifest.is_plain) == (41, 10, False)


def test_an_empty_segment_has_no_chunk():
    index = {**FIXED["chunkIndex"], "originalFileSize": 0}
    assert read({**FIXED, "chunkIndex": index}).chunks == ()


@pytest.mark.parametrize("sizes", [[7], [7, 9], [1000000, 1000010, 1000020, 3], [0, 1 << 24, 5], [1 << 31, 1, 2]])
def test_chunks_of_several_sizes(sizes):
    sizes = [min(size, (1 << 31) - 1) for size in sizes]
    manifest = read(variable(tiered.packed_sizes(sizes), size=100 * len(sizes)))
    assert manifest.chunks == tuple(sizes)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "not a JSON object"),
        ({**FIXED, "version": "2"}, "unknown version"),
        ({**FIXED, "chunkIndex": None}, "no valid chunkIndex"),
        ({**FIXED, "compression": "no"}, "no valid compression"),
        ({**FIXED, "segmentIndexes": {}}, "no valid offset"),
        ({**FIXED, "chunkIndex": {**FIXED["chunkIndex"], "originalChunkSize": 0}}, "no valid originalChunkSize"),
        ({**FIXED, "chunkIndex": {**FIXED["chunkIndex"], "originalFileSize": True}}, "no valid originalFileSize"),
        ({**FIXED, "chunkIndex": {**FIXED["chunkIndex"], "type": "odd"}}, "unknown type"),
        ({**FIXED, "encryption": {"dataKey": "key1", "aad": ""}}, "no valid dataKey"),
        ({**FIXED, "encryption": {"dataKey": "key1:?", "aad": ""}}, "no base64 text in"),
        (variable("?"), "no base64 text in"),
        (variable("\u00e9"), "no base64 text in"),
        (variable("AAAA"), "transformedChunks is broken"),
        (variable(tiered.packed_sizes([1, 2])), "number of chunk sizes in the manifest is wrong"),
        (
            variable(b64encode(zstandard.compress(b"\0\0\0\3\0\0\0\0\1\1\1\0")).decode()),
            "the list of chunk sizes does not have the length",
        ),
        (
            variable("", size=(1 << 31) - 1)
            | {"chunkIndex": {**FIXED["chunkIndex"], "originalChunkSize": 1, "originalFileSize": (1 << 31) - 1}},
            "too many chunks",
        ),
    ],
)
def test_what_is_wrong_is_named(content, says):
    with pytest.raises(DamageError, match=says):
        read(content)


def test_nothing_but_damage_comes_of_broken_bytes():
    data = json.dumps(variable(tiered.packed_sizes([90, 95, 40]))).encode()
    rng = random.Random(1)
    for end in range(len(data)):
        with pytest.raises(DamageError):
            rsm_manifest.read(data[:end])
    for _ in range(2000):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] = rng.randrange(256)
        with suppress(DamageError):
            rsm_manifest.read(bytes(changed))
    with pytest.raises(DamageError):
        rsm_manifest.read(b"[" * 100_000)
