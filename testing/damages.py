"""Seeded damage to a segment: flips, cuts, insertions, zeroed and swapped pages, batches twice, noise, bad headers."""

import random
from collections.abc import Sequence


def damage(data: bytearray, rng: random.Random, starts: Sequence[int]) -> str:
    """Damage `data`, whose batches begin at `starts` (the last start is the end); return the kind of damage."""
    kind = rng.choice(["flip", "cut", "insert", "zero", "swap", "duplicate", "noise", "header"])
    at, size = rng.randrange(len(data)), rng.choice([256, 512, 4096])
    if kind == "flip":
        for _ in range(rng.randint(1, 5)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[at : at + rng.randint(1, 3000)]
    elif kind == "insert":
        data[at:at] = rng.choice([rng.randbytes(rng.randint(1, 3000)), bytes(rng.randint(1, 3000))])
    elif kind == "zero":
        page = at // size * size
        data[page : page + size] = bytes(len(data[page : page + size]))
    elif kind == "swap" and len(data) > 2 * size:
        one, other = sorted(rng.sample(range(len(data) // size), 2))
        first, second = slice(one * size, (one + 1) * size), slice(other * size, (other + 1) * size)
        data[first], data[second] = data[second], data[first]
    elif kind == "duplicate":
        start = rng.choice(starts[:-1])
        copy = data[start : starts[starts.index(start) + 1]]
        to = rng.choice([rng.choice(starts), at])
        data[to:to] = copy
    elif kind == "noise":
        data[at : at + rng.randint(1, 500)] = rng.randbytes(rng.randint(1, 500))
    else:
        start = rng.choice(starts[:-1])
        data[min(start + rng.randrange(26), len(data) - 1)] = rng.randrange(256)
    return kind
