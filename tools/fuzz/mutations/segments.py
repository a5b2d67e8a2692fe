"""Functions that break a segment: its batches and messages, their fields, and their compressed contents.

Many have two variants, with the wrong checksum and with a corrected one: a reader must not trust fields because of a
right checksum.
"""

import functools
from collections.abc import Callable
from random import Random

from kdump.errors import DamageError
from kdump.formats import record_layout
from kdump.formats.record_layout import LOG_OVERHEAD
from kdump.primitives import compression
from kdump.primitives.crc import crc32, crc32c
from kdump.primitives.wire import read_varint, write_varint
from kdump.records import magic_2
from testing import GOLDEN
from tools.fuzz.mutations import whole
from tools.fuzz.mutations.framings import FRAMINGS
from tools.fuzz.mutations.whole import lie

LARGEST = 4000
"""The size of a source in bytes: enough for some batches, and fast to print a thousand times."""

Mutation = Callable[[Random, bytes], bytes]


@functools.cache
def segments() -> dict[str, bytes]:
    """Return the first batches of each golden segment and metadata snapshot that is not large: name -> bytes."""
    found = {}
    for path in sorted([*(GOLDEN / "brokers").glob("*/*/*.log"), *(GOLDEN / "brokers").glob("*/*/*.checkpoint")]):
        end = 0
        for entry in split(path.read_bytes()):
            if end + len(entry) > LARGEST:
                break
            end += len(entry)
        if end:
            found[path.relative_to(GOLDEN).as_posix()] = path.read_bytes()[:end]
    return found


def split(data: bytes) -> list[bytes]:
    """Return the entries of a valid segment, or of a decompressed message set. Remaining bytes are the last item."""
    entries = []
    while len(data) >= LOG_OVERHEAD.size and data:
        end = LOG_OVERHEAD.size + max(0, LOG_OVERHEAD.read(data).size)
        entries.append(data[:end])
        data = data[end:]
    return [*entries, data] if data else entries


def magic_of(entry: bytes) -> int:
    """Return the magic of an entry, -1 when it is too short to have one."""
    return entry[16] if len(entry) > 16 else -1


def seal(entry: bytes) -> bytes:
    """Return the entry with the right size and checksum."""
    out = bytearray(entry)
    out[8:12] = (len(out) - LOG_OVERHEAD.size).to_bytes(4, "big")
    if magic_of(entry) >= record_layout.MAGIC_2:
        out[17:21] = crc32c(bytes(out[21:])).to_bytes(4, "big")
    else:
        out[12:16] = crc32(bytes(out[16:])).to_bytes(4, "big")
    return bytes(out)


def duplicate_batch(random: Random, data: bytes) -> bytes:
    entries = split(data)
    at = random.randrange(len(entries))
    return b"".join(entries[: at + 1] + entries[at:])


def swap_batches(random: Random, data: bytes) -> bytes:
    """Change the order of the batches."""
    entries = split(data)
    random.shuffle(entries)
    return b"".join(entries)


def drop_batch(random: Random, data: bytes) -> bytes:
    """Leave a batch out."""
    entries = split(data)
    del entries[random.randrange(len(entries))]
    return b"".join(entries)


def foreign_batch(random: Random, data: bytes) -> bytes:
    """Put a batch of another segment in."""
    entries = split(data)
    others = split(segments()[random.choice(sorted(segments()))])
    entries.insert(random.randrange(len(entries) + 1), random.choice(others))
    return b"".join(entries)


def in_one_batch(change: Callable[[Random, bytes], bytes]) -> Mutation:
    """Return a mutation of a segment that applies a mutation of an entry to one batch."""

    @functools.wraps(change)
    def mutate(random: Random, data: bytes) -> bytes:
        entries = split(data)
        at = random.randrange(len(entries))
        entries[at] = change(random, entries[at])
        return b"".join(entries)

    return mutate


def fields_of(entry: bytes) -> list[tuple[int, int]]:
    """Return the position and size of the fixed fields of an entry's header."""
    magic = magic_of(entry)
    if magic >= record_layout.MAGIC_2:
        ends = [*list(record_layout.BATCH_HEADER.offsets.values())[1:], record_layout.BATCH_HEADER.size]
        return [
            (start, end - start) for start, end in zip(record_layout.BATCH_HEADER.offsets.values(), ends, strict=True)
        ]
    key = LOG_OVERHEAD.size + (record_layout.MESSAGE_HEADER_1 if magic == 1 else record_layout.MESSAGE_HEADER_0).size
    key_size = max(0, int.from_bytes(entry[key : key + 4], "big", signed=True))
    fields = [(0, 8), (8, 4), (12, 4), (16, 1), (17, 1), (key, 4), (key + 4 + key_size, 4)]
    return [*fields, (18, 8)] if magic == 1 else fields


@in_one_batch
def field(random: Random, entry: bytes) -> bytes:
    """Give a header field a wrong value."""
    at, size = random.choice(fields_of(entry))
    value = lie(random, int.from_bytes(entry[at : at + size], "big", signed=True), size * 8)
    return entry[:at] + value.to_bytes(size, "big", signed=True) + entry[at + size :]


@in_one_batch
def field_crc_ok(random: Random, entry: bytes) -> bytes:
    """Give a header field a wrong value, and correct the checksum."""
    at, size = random.choice(fields_of(entry)[3:])
    value = lie(random, int.from_bytes(entry[at : at + size], "big", signed=True), size * 8)
    return seal(entry[:at] + value.to_bytes(size, "big", signed=True) + entry[at + size :])


@in_one_batch
def attributes_crc_ok(random: Random, entry: bytes) -> bytes:
    """Flip bits of the attributes (codec, timestamp type, control, ...), and correct the checksum."""
    at = 22 if magic_of(entry) >= record_layout.MAGIC_2 else 17
    if len(entry) <= at:
        return entry
    return seal(entry[:at] + bytes([entry[at] ^ random.randrange(1, 128)]) + entry[at + 1 :])


@in_one_batch
def body_crc_ok(random: Random, entry: bytes) -> bytes:
    """Break the stored (compressed) bytes after the header, and correct size and checksum."""
    at = body_of(entry)
    if len(entry) <= at:
        return entry
    change = random.choice(whole.KINDS)
    return seal(entry[:at] + change(random, entry[at:]))


def body_of(entry: bytes) -> int:
    """Return the position of the records of a batch, or of the value of a message."""
    if magic_of(entry) >= record_layout.MAGIC_2:
        return record_layout.BATCH_HEADER.size
    at, size = fields_of(entry)[6]
    return at + size


# ---- what is inside of compressed batches


def unpacked(entry: bytes) -> tuple[int, bytes] | None:
    """Return codec and decompressed body of an entry, or None if it cannot be decompressed."""
    magic = magic_of(entry)
    if magic not in {0, 1, 2} or len(entry) < body_of(entry):
        return None
    codec = entry[22 if magic == record_layout.MAGIC_2 else 17] & 7
    try:
        return codec, compression.decompress(codec, entry[body_of(entry) :], magic=magic)
    except (DamageError, IndexError):
        return None


def packed(entry: bytes, body: bytes) -> bytes:
    """Return the entry with the encoded ``body`` in place of its own, and with the right size and checksum."""
    at = body_of(entry)
    if magic_of(entry) < record_layout.MAGIC_2:
        entry = entry[: at - 4] + len(body).to_bytes(4, "big") + entry[at:]
    return seal(entry[:at] + body)


def inside(change: Callable[[Random, int, bytes], bytes]) -> Mutation:
    """Return a mutation of a segment that changes decompressed records and compresses them again in the same codec."""

    @in_one_batch
    @functools.wraps(change)
    def mutate(random: Random, entry: bytes) -> bytes:
        plain = unpacked(entry)
        magic = magic_of(entry)
        if plain is None or not plain[1] or (plain[0] == compression.NONE and magic < record_layout.MAGIC_2):
            return entry
        codec, body = plain
        return packed(entry, compression.compress(codec, change(random, magic, body), magic=magic))

    return mutate


@inside
def records(random: Random, _magic: int, body: bytes) -> bytes:
    """Break the bytes of the decompressed records."""
    change = random.choice(whole.KINDS)
    return change(random, body)


@inside
def record_field(random: Random, magic: int, body: bytes) -> bytes:
    """Give a field of a record or of an inner message a wrong value."""
    if magic < record_layout.MAGIC_2:
        return record_field_of_messages(random, body)
    found = varints_of(body)
    if not found:
        return body
    at, value, end = random.choice(found)
    bits = random.choice((32, 32, 64))
    new = write_varint(lie(random, value, bits))
    shape = random.randrange(8)
    if shape == 0:
        new = b"\xff" * random.choice((4, 5, 9, 10, 11)) + b"\x01"
    elif shape == 1:  # more bytes than it needs
        new = write_varint(value)
        new = new[:-1] + bytes([new[-1] | 0x80]) + b"\x80" * random.randint(0, 3) + b"\x00"
    out = body[:at] + new + body[end:]
    if random.random() < 0.5:
        out = resized(out, body, len(new) - (end - at), at)
    return out


def record_field_of_messages(random: Random, body: bytes) -> bytes:
    """Give a field of an inner message a wrong value, with or without a corrected checksum."""
    entries = split(body)
    at = random.randrange(len(entries))
    broken = random.choice((field, field_crc_ok, attributes_crc_ok))(random, entries[at])
    return b"".join([*entries[:at], broken, *entries[at + 1 :]])


def varints_of(body: bytes) -> list[tuple[int, int, int]]:
    """Return position, value and end of each varint of the records in ``body``, as far as they are valid."""
    found: list[tuple[int, int, int]] = []
    position = 0

    def take(bits: int = 32) -> int:
        nonlocal position
        value, end = read_varint(body, position, bits)
        found.append((position, value, end))
        position = end
        return value

    try:
        while position < len(body):
            take()
            position += 1
            take(64)
            take()
            for _ in range(2):
                position += max(0, take())
            for _ in range(take() * 2):
                position += max(0, take())
    except DamageError:
        pass  # what was read so far is enough to choose from
    return found


def resized(out: bytes, body: bytes, grown: int, at: int) -> bytes:
    """Return ``out`` with the size of the record around ``at`` changed by ``grown``."""
    position = 0
    while position < len(body):
        size, start = read_varint(body, position)
        if start <= at < start + size:
            return out[:position] + write_varint(size + grown) + out[start:]
        position = max(start, start + size)
    return out


@in_one_batch
def record_content(random: Random, entry: bytes) -> bytes:
    """Break the key or value of a record and nothing else: input for decoders of Kafka's own records."""
    plain = unpacked(entry)
    if plain is None or magic_of(entry) != record_layout.MAGIC_2 or plain[0] != compression.NONE:
        return entry
    header, position = record_layout.BATCH_HEADER.read(entry), 0
    out = []
    chosen = random.randrange(max(1, header.records_count))
    while position < len(plain[1]):
        record, position = magic_2.read_record(plain[1], position, len(plain[1]), header, None)
        key, value = record.key, record.value
        if len(out) == chosen:
            change = random.choice(whole.KINDS)
            if key and random.random() < 0.3:
                key = random.choice((change(random, key), change(random, key), b"", None))
            elif value:
                value = random.choice((change(random, value), change(random, value), change(random, value), b"", None))
        out.append(
            magic_2.write_record(
                timestamp_delta=record.timestamp - header.base_timestamp,
                offset_delta=record.offset - header.base_offset,
                key=key,
                value=value,
                headers=record.headers,
            )
        )
    return packed(entry, b"".join(out))


@inside
def inner_order(random: Random, magic: int, body: bytes) -> bytes:
    """Drop, duplicate or swap records or inner messages."""
    if magic < record_layout.MAGIC_2:
        parts = split(body)
    else:
        parts, position = [], 0
        while position < len(body):
            size, start = read_varint(body, position)
            parts.append(body[position : start + size])
            position = start + size
    what = random.randrange(3)
    at = random.randrange(len(parts))
    if what == 0:
        del parts[at]
    elif what == 1:
        parts.insert(at, parts[at])
    else:
        random.shuffle(parts)
    return b"".join(parts)


@inside
def nested_wrapper(random: Random, magic: int, body: bytes) -> bytes:
    """Replace an inner message or record by a wrapper or a batch."""
    others = split(segments()[random.choice(sorted(segments()))])
    return (
        random.choice(others) + (body if random.random() < 0.5 else b"") if magic < record_layout.MAGIC_2 else others[0]
    )


@in_one_batch
def other_framing(random: Random, entry: bytes) -> bytes:
    """Encode the same records in another valid, or nearly valid, framing of a codec."""
    plain = unpacked(entry)
    if plain is None:
        return entry
    codec = random.choice((compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD))
    at = 22 if magic_of(entry) >= record_layout.MAGIC_2 else 17
    entry = entry[:at] + bytes([entry[at] & ~7 | codec]) + entry[at + 1 :]
    return packed(entry, random.choice(FRAMINGS[codec])(random, plain[1]))


KINDS = (
    *whole.KINDS,
    duplicate_batch,
    swap_batches,
    drop_batch,
    foreign_batch,
    field,
    field_crc_ok,
    attributes_crc_ok,
    body_crc_ok,
    records,
    record_field,
    record_content,
    record_content,
    inner_order,
    nested_wrapper,
    other_framing,
)
