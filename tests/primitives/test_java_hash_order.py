"""Orders recorded from releases that reported gaps in many files at once.

The files were /srv/kafka-logs/orders-N/00000000000000000000.log, N from 0 on, 13 and 30 of them: with the thirteenth
the tables of all but Java grow.
"""

import pytest

from kdump.dump_log_segments.dialects import segments as dialects
from kdump.primitives import java_hash_order
from kdump.primitives.java_hash_order import java_hash

RECORDED = {
    "0.8.1.1": (
        [1, 9, 7, 5, 0, 8, 6, 3, 12, 4, 10, 2, 11],
        [15, 17, 24, 1, 18, 14, 28, 9, 21, 7, 16, 5, 23, 0, 13, 29, 8, 20, 6, 26, 12, 3, 27, 25, 4, 19, 10, 22, 11, 2],
    ),
    "0.8.2.1": (
        [1, 2, 11, 7, 8, 3, 12, 9, 4, 5, 0, 10, 6],
        [21, 16, 1, 27, 11, 2, 7, 17, 8, 22, 23, 28, 12, 3, 29, 13, 9, 18, 24, 19, 4, 14, 5, 20, 0, 25, 26, 10, 15, 6],
    ),
    "4.2.2": (
        [6, 12, 0, 2, 10, 5, 1, 3, 9, 4, 7, 8, 11],
        [12, 25, 0, 13, 2, 10, 26, 1, 22, 9, 23, 7, 19, 8, 11, 24, 6, 17, 29, 5, 18, 3, 14, 15, 21, 4, 27, 16, 20, 28],
    ),
    "4.3.1": (
        [6, 3, 12, 9, 4, 0, 10, 2, 7, 5, 8, 11, 1],
        [12, 25, 0, 13, 26, 10, 2, 1, 22, 9, 23, 19, 7, 8, 11, 24, 6, 17, 29, 5, 18, 3, 15, 14, 21, 4, 27, 20, 16, 28],
    ),
}
RECORDED["2.5.1"] = RECORDED["0.10.2.2"] = RECORDED["0.8.2.1"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("a", 97), ("polygenelubricants", 0x80000000), ("Aa", 2112), ("BB", 2112), ("ä€😀", 0xFD57AB)],
)
def test_java_hash(text, value):
    assert java_hash(text) == value


@pytest.mark.parametrize("release", RECORDED)
def test_files_come_in_the_recorded_order(release):
    for recorded in RECORDED[release]:
        files = {f"/srv/kafka-logs/orders-{n}/00000000000000000000.log": n for n in range(len(recorded))}
        assert [files[path] for path in dialects.find(release).file_order(files)] == recorded


@pytest.mark.parametrize(
    ("order", "recorded"),
    [
        (java_hash_order.scala_2_12_sets, "t-8 t-5 t-3 t-1 t-7 t-2 t-0 zz-1 t-6 t-4"),
        (java_hash_order.scala_2_13_sets, "t-5 zz-1 t-4 t-3 t-2 t-1 t-0 t-8 t-7 t-6"),
    ],
)
def test_partitions_come_in_the_recorded_order(order, recorded):
    sets = [[("t", number) for number in range(9)], [("zz", 1)]]
    assert " ".join(f"{topic}-{number}" for topic, number in order(sets, java_hash_order.partition_hash)) == recorded


def test_putting_a_key_again_grows_a_table_that_is_nearly_full():
    keys = [f"orders-{n}" for n in range(11)]
    assert java_hash_order.scala_2_13(keys, java_hash) != java_hash_order.scala_2_13([*keys, "orders-10"], java_hash)
    assert java_hash_order.scala_2_12(keys, java_hash) == java_hash_order.scala_2_12([*keys, "orders-10"], java_hash)
    keys += ["orders-11", "orders-12"]
    assert java_hash_order.java(keys, java_hash) != java_hash_order.java([*keys, "orders-12"], java_hash)


BULKY = [
    [-602834831, 1, 1, 127, 1, 2, 127, 0, -2012234702, -1, 127, 548122383, 5, 0, 2, 5, 7, 1840061999, 0, 5],
    [-1383357728, -1510611561, 1696562740],
    [-202560798, 5, -317393250, 7, -1, 7, -1, 2089856548, 1472014281, -693906541, 1, 2064714880, 932814185, -684008623,
     -9825561, 1542336683, 0, 1, -1, 7],
]  # fmt: skip
RECORDED_BULKY = [
    -693906541, -1383357728, 7, 2089856548, 1840061999, 2, 1472014281, 1, 0, -1, 127, 5, 1696562740, -2012234702,
    -202560798, 548122383, -684008623, 2064714880, 932814185, -9825561, -602834831, -1510611561, -317393250, 1542336683,
]  # fmt: skip


def test_large_sets_fill_a_table_of_scala_2_13_beyond_three_quarters():
    """4.0.2 printed this for a transaction with a topic that occurs three times."""
    sets = [[("range", number) for number in numbers] for numbers in BULKY]
    ordered = java_hash_order.scala_2_13_sets(sets, java_hash_order.partition_hash)
    assert [number for _, number in ordered] == RECORDED_BULKY


@pytest.mark.parametrize("order", [java_hash_order.scala_2_12_sets, java_hash_order.scala_2_13_sets])
def test_every_partition_comes_once(order):
    assert order([], java_hash_order.partition_hash) == []
    sets = [[("t", number % 70) for number in range(100)], [("u", 3), ("u", 3)]]
    assert sorted(order(sets, java_hash_order.partition_hash)) == [*(("t", number) for number in range(70)), ("u", 3)]


@pytest.mark.parametrize(
    "order", [java_hash_order.scala_2_9, java_hash_order.scala_2_12, java_hash_order.scala_2_13, java_hash_order.java]
)
def test_every_key_comes_once(order):
    assert order([], len) == []
    assert sorted(order(["b", "a", "b", "c"], java_hash)) == ["a", "b", "c"]
    assert sorted(order(map(str, range(200)), java_hash)) == sorted(map(str, range(200)))
    assert sorted(order(["Aa", "BB"], java_hash)) == ["Aa", "BB"]


@pytest.mark.parametrize(
    ("sizes", "order"),
    [
        ([1, 3, 2], "t1-2, t0-0, t1-1, t1-0, t2-1, t2-0"),
        (
            [2, 5, 1, 4, 3],
            "t3-0, t4-1, t4-0, t1-4, t1-3, t0-1, t1-2, t0-0, t1-1, t3-3, t1-0, t3-2, t2-0, t3-1, t4-2",
        ),
        ([1], "t0-0"),
        ([7, 1], "t0-6, t0-5, t0-4, t0-3, t0-2, t0-1, t0-0, t1-0"),
    ],
)
def test_a_hash_map_of_several(sizes, order):
    """The order of Java 17; a map with one key begins with a table of two."""
    groups = [[(f"t{topic}", number) for number in range(size)] for topic, size in enumerate(sizes)]
    found = java_hash_order.java_put_all(groups, java_hash_order.partition_hash)
    assert ", ".join(f"{topic}-{number}" for topic, number in found) == order


def test_topic_ids_in_a_hash_map():
    """`Uuid.hashCode` and the order of Java 17, with more keys than fit in the first table."""
    seed, ids = 12345, []
    for _ in range(14):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        ids.append(seed.to_bytes(8, "big") + (seed * 31 % (1 << 64)).to_bytes(8, "big"))
    found = java_hash_order.java_put(ids, java_hash_order.uuid_hash)
    assert [ids.index(each) for each in found] == [9, 12, 3, 1, 10, 6, 4, 11, 13, 5, 0, 2, 7, 8]


def test_the_hash_of_a_topic_id():
    """`Uuid.fromString("Qaz6PCc5Kl1IeDkVyuV-bQ").hashCode()`."""
    assert java_hash_order.uuid_hash(bytes.fromhex("41acfa3c27392a5d48783915cae57e6d")) == -469199079 % (1 << 32)
