"""Functions that break any file."""

from random import Random


def flip_bits(random: Random, data: bytes) -> bytes:
    """Flip one to four bits anywhere."""
    out = bytearray(data)
    for _ in range(random.randint(1, 4)):
        out[random.randrange(len(out))] ^= 1 << random.randrange(8)
    return bytes(out)


def set_bytes(random: Random, data: bytes) -> bytes:
    """Overwrite one to eight neighbouring bytes with one value."""
    at = random.randrange(len(data))
    size = random.randint(1, 8)
    return (
        data[:at] + bytes([random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))]) * size + data[at + size :]
    )


def cut(random: Random, data: bytes) -> bytes:
    """Truncate the file."""
    return data[: random.randrange(len(data))]


def insert(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.randbytes(random.randint(1, 64)) + data[at:]


def delete(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + data[at + random.randint(1, 64) :]


def zero_page(random: Random, data: bytes) -> bytes:
    """Fill a range with zeros, like a lost page of a disk."""
    size = random.choice((16, 64, 256, 512, 4096))
    at = random.randrange(0, len(data), 16)
    return data[:at] + bytes(min(size, len(data) - at)) + data[at + size :]


def stale_page(random: Random, data: bytes) -> bytes:
    """Overwrite a range with another range of the same file."""
    size = random.choice((16, 64, 256, 512))
    source, at = random.randrange(len(data)), random.randrange(len(data))
    page = data[source : source + size]
    return data[:at] + page + data[at + len(page) :]


def append_zeros(random: Random, data: bytes) -> bytes:
    """Append zeros, like a preallocated file."""
    return data + bytes(random.choice((1, 11, 12, 16, 17, 18, 26, 27, 61, 100, 4096)))


def append_garbage(random: Random, data: bytes) -> bytes:
    return data + random.randbytes(random.randint(1, 100))


def lie(random: Random, value: int, bits: int) -> int:
    """Return another number in place of ``value``, often one at which readers fail."""
    top = 1 << bits - 1
    candidates = (0, 1, -1, 2, -2, -top, top - 1, value + 1, value - 1, value * 2, -value, value + 100, top // 2)
    chosen = random.choice((*candidates, random.randrange(-top, top)))
    return (chosen + top) % (top * 2) - top


KINDS = (flip_bits, set_bytes, cut, insert, delete, zero_page, stale_page, append_zeros, append_garbage)
