"""The hash codes of Java and Kafka, and the iteration order of Java's and Scala's hash collections.

DumpLogSegments prints files, members of a group and partitions in the order of a hash table. A function for an order
takes the keys (or sets or groups of keys) in insertion order, repeated insertions included, and returns each key once
in iteration order. Trees, which Java makes of slots with eight keys or more, are not imitated. Sources:
``java.util.HashMap``, ``HashMap`` and ``HashSet`` of ``scala.collection.mutable`` in the releases' Scala versions.
"""

from __future__ import annotations

from functools import partial
from struct import unpack
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Key = TypeVar("Key")

WORD: Final = 0xFFFFFFFF
SMALLEST_TABLE: Final = 16
SMALLEST_SET: Final = 32


def java_hash(text: str) -> int:
    """Return ``String.hashCode``, unsigned."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & WORD
    return value


def partition_hash(partition: tuple[str, int]) -> int:
    """Return ``TopicPartition.hashCode``, unsigned."""
    topic, number = partition
    return (31 * (31 + number) + java_hash(topic)) & WORD


def uuid_hash(uuid: bytes) -> int:
    """Return ``Uuid.hashCode`` of Kafka, unsigned."""
    one, two, three, four = unpack(">4I", uuid)
    return int(one ^ two ^ three ^ four)


def _rotated(value: int, count: int) -> int:
    return (value >> count | value << (32 - count)) & WORD


def _byteswap32(value: int) -> int:
    """Return ``scala.util.hashing.byteswap32``, which mixes hashes in Scala 2.9 to 2.12."""
    swapped = int.from_bytes((value * 0x9E3775CD & WORD).to_bytes(4, "little"), "big")
    return swapped * 0x9E3775CD & WORD


def scala_2_9(keys: Iterable[Key], hash_of: Callable[[Key], int]) -> list[Key]:
    """Return the order of ``mutable.HashMap`` of Scala 2.9: last slot first. Growth reverses the keys of a slot."""
    return _scala(keys, hash_of, rotation=0)


def scala_2_12(keys: Iterable[Key], hash_of: Callable[[Key], int]) -> list[Key]:
    """Return the order of ``mutable.HashMap`` of Scala 2.10 to 2.12, which is the order of 2.9 with rotated hashes."""
    return _scala(keys, hash_of, rotation=SMALLEST_TABLE.bit_length() - 1)


def _scala(keys: Iterable[Key], hash_of: Callable[[Key], int], rotation: int) -> list[Key]:
    table: list[list[Key]] = [[] for _ in range(SMALLEST_TABLE)]

    def chain(key: Key) -> list[Key]:
        return table[_rotated(_byteswap32(hash_of(key)), rotation) >> (33 - len(table).bit_length())]

    for count, key in enumerate(dict.fromkeys(keys), 1):
        chain(key).insert(0, key)
        if count > len(table) * 3 // 4:
            old = [each for slot in reversed(table) for each in slot]
            table = [[] for _ in range(2 * len(table))]
            for each in old:
                chain(each).insert(0, each)
    return [key for slot in reversed(table) for key in slot]


def scala_2_13(keys: Iterable[Key], hash_of: Callable[[Key], int]) -> list[Key]:
    """Return the order of ``mutable.HashMap`` and ``HashSet`` of Scala 2.13: by slot, then by signed mixed hash."""
    size = SMALLEST_TABLE
    distinct: dict[Key, None] = {}
    for key in keys:
        if len(distinct) + 1 >= size * 3 // 4:  # the table grows even if the key is already in it
            size *= 2
        distinct[key] = None

    return sorted(distinct, key=lambda key: _place(hash_of(key), size))


def scala_2_12_sets(sets: Iterable[Iterable[Key]], hash_of: Callable[[Key], int]) -> list[Key]:
    """Return the order of ``mutable.HashSet`` of Scala 2.10 to 2.12 after adding immutable sets one after the other."""
    table: list[list[Key]] = [[] for _ in range(SMALLEST_SET)]

    def put(key: Key) -> None:
        bits = len(table).bit_length() - 1
        at = _rotated(_byteswap32(hash_of(key)), bits) >> 32 - bits
        while table[at]:
            at = (at + 1) % len(table)
        table[at].append(key)

    keys = dict.fromkeys(key for each in sets for key in _immutable_2_12(each, hash_of))
    for count, key in enumerate(keys, 1):
        put(key)
        if count >= len(table) * 450 // 1000:
            old = [each for slot in table for each in slot]
            table = [[] for _ in range(2 * len(table))]
            for each in old:
                put(each)
    return [key for slot in table for key in slot]


def _immutable_2_12(keys: Iterable[Key], hash_of: Callable[[Key], int]) -> list[Key]:
    """Return the order of Scala 2.12's immutable Set: up to four keys by insertion, more by groups of 5 hash bits."""
    distinct = list(dict.fromkeys(keys))
    if len(distinct) <= 4:
        return distinct

    def digits(key: Key) -> list[int]:
        mixed = hash_of(key)
        mixed = mixed + ~(mixed << 9) & WORD
        mixed ^= mixed >> 14
        mixed = mixed + (mixed << 4) & WORD
        mixed ^= mixed >> 10
        return [mixed >> shift & 31 for shift in range(0, 35, 5)]

    return sorted(distinct, key=digits)


def scala_2_13_sets(sets: Iterable[Iterable[Key]], hash_of: Callable[[Key], int]) -> list[Key]:
    """Return the order of ``mutable.HashSet`` of Scala 2.13 after adding immutable sets one after the other.

    A set of more than four keys resizes the table once, according to the size of this set alone. Each key of a smaller
    set may double the table, even a repeated key.
    """
    distinct: dict[Key, None] = {}
    size = SMALLEST_TABLE
    for each in sets:
        added = dict.fromkeys(each)
        if len(added) > 4:
            while (len(added) + 1) * 4 // 3 > size:
                size *= 2
            distinct |= added
            continue
        for key in added:
            if len(distinct) + 1 >= size * 3 // 4:
                size *= 2
            distinct[key] = None
    return sorted(distinct, key=lambda key: _place(hash_of(key), size))


def _place(value: int, size: int) -> tuple[int, int]:
    """Return the slot of a hash in a table of Java or of Scala 2.13, and the signed mixed hash."""
    mixed = value ^ value >> 16
    return mixed & (size - 1), mixed - ((mixed & 0x80000000) << 1)


def java(keys: Iterable[Key], hash_of: Callable[[Key], int]) -> list[Key]:
    """Return the order of ``java.util.HashMap`` filled by ``computeIfAbsent``: the newest key of a slot first.

    An insertion first doubles the table if over three quarters are filled.
    """
    size = SMALLEST_TABLE
    distinct: dict[Key, None] = {}
    for key in keys:
        if len(distinct) > size * 3 // 4:
            size *= 2
        distinct[key] = None

    newest_first = list(distinct)[::-1]
    return sorted(newest_first, key=lambda key: _place(hash_of(key), size)[0])


def java_put(keys: Iterable[Key], hash_of: Callable[[Key], int], size: int = SMALLEST_TABLE) -> list[Key]:
    """Return the order of ``HashMap(size)``, a power of 2, filled by ``put``: the oldest key of a slot first."""
    distinct = list(dict.fromkeys(keys))
    while len(distinct) > size * 3 // 4:
        size *= 2

    return sorted(distinct, key=lambda key: _place(hash_of(key), size)[0])


def java_put_all(groups: Iterable[Sequence[Key]], hash_of: Callable[[Key], int]) -> list[Key]:
    """Return the order of ``HashMap`` after ``putAll`` of groups. The first that is not empty sets the initial size."""
    filled = [group for group in groups if group]
    first = 4 * len(filled[0]) // 3 + 1 if filled else 1
    return java_put((key for group in filled for key in group), hash_of, 1 << (first - 1).bit_length())


scala_2_9_files = partial(scala_2_9, hash_of=java_hash)
scala_2_12_files = partial(scala_2_12, hash_of=java_hash)
scala_2_13_files = partial(scala_2_13, hash_of=java_hash)
java_files = partial(java, hash_of=java_hash)
