"""Batches that a filter skips, compared with the filter that checks each record."""

import io
import re
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdump import kernel
from kdump.log_dirs.finder import Finder
from kdump.log_reader.batch_selection import Take
from kdump.log_reader.filter import Filter, Prefilter, is_local, literal
from kdump.log_reader.reader import PartitionReader
from kdump.primitives import compression
from kdump.printers.classic_text import DumpText
from kdump.printers.record_rows import JsonLines
from kdump.rows.selection import SegmentFacts
from testing import GOLDEN, forge
from testing.processes import kdump

if not kernel.COMPILED:
    pytest.skip("there is no kernel", allow_module_level=True)

NAME = "00000000000000000000.log"


@pytest.mark.parametrize(
    ("pattern", "local"),
    [
        (b"needle", True),
        (b"a.b", True),
        (b"[0-9]+x", True),
        (rb"\d{2,}", True),
        (rb"user\.x", True),
        (b"[^a]{2}", True),
        (b"(?:a|b)c", True),
        (b".{0,20}x", True),
        (b"[]^$]", True),
        (b"a.*b", False),
        (b"[^x]+y", False),
        (rb"\S+", False),
        (b"^a", False),
        (b"a$", False),
        (rb"\bword", False),
        (b"(?<=a)b", False),
        (b"(?i:a)", False),
        (b"(?>a)b", False),
        (b"a++b", False),
        (b"(a|b)*c", False),
        (b".{5,}", False),
    ],
)
def test_what_depends_on_its_surroundings_is_no_matter_for_blocks(pattern, local):
    assert is_local(re.compile(pattern)) is local
    assert is_local(re.compile(pattern, re.VERBOSE)) is False


MARKED = SegmentFacts(NAME, "t", 0, high_watermark=20, log_start=5)


def printed(path, wanted, take, *, include_damaged=False):
    """Return the output of a filter, the number of records in it, and the damage."""
    printers = [JsonLines(io.BytesIO()), DumpText(io.BytesIO())]
    count, damage = 0, []
    for partition in Finder().find([str(path)]):
        for item in PartitionReader(filter=wanted, take=take, include_damaged=include_damaged).read(partition):
            if hasattr(item, "damage"):
                damage.append(item.damage)
                continue
            count += len(item.records) or (item.batch.count if take is Take.COUNT else 0)
            for printer in printers if take is not Take.COUNT else ():
                printer.found(item._replace(file=MARKED))
    return [printer.out.getvalue() for printer in printers], count, damage


def same(path, wanted):
    """Assert that the filter has the same output with and without the kernel; return the number of records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "COMPILED", False)
        text, count, damage = printed(path, wanted, Take.RECORDS)
    for take, include_damaged in ((Take.RUNS, False), (Take.RUNS, True), (Take.RECORDS, True)):
        assert printed(path, wanted, take, include_damaged=include_damaged) == (text, count, damage)
    assert printed(path, wanted, Take.COUNT)[1:] == (count, damage)
    return count


FILTERS = [
    Filter(keys=frozenset({b"k1"})),
    Filter(keys=frozenset({b"", b"tx0", b"k"})),
    Filter(types=frozenset({"data"})),
    Filter(types=frozenset({"tombstone"})),
    Filter(types=frozenset({"data", "control"})),
    Filter(headers=((b"h", None),)),
    Filter(headers=((b"h1", b"v1"), (b"h2", b""))),
    Filter(since=1_600_000_000_000, until=1_900_000_000_000),
    Filter(greps=(re.compile(b"[0-9]1"),)),
    Filter(greps=(re.compile(b"e$"), re.compile(b"a"))),
    Filter(greps=(re.compile(b""),), producer_ids=frozenset({0, 1000})),
    Filter(types=frozenset({"data"}), first_offset=3, last_offset=9),
    Filter(first_offset=3),
    Filter(last_offset=40),
    Filter(first_offset=17, last_offset=40, since=0),
    Filter(producer_ids=frozenset({0, 1, 1000})),
    Filter(leader_epochs=frozenset({0})),
    Filter(leader_epochs=frozenset({1, 2}), producer_ids=frozenset({-1})),
    Filter(transactional=True),
    Filter(transactional=False, until=1_900_000_000_000),
    Filter(types=frozenset({"control"})),
]


@pytest.mark.parametrize("path", sorted((GOLDEN / "brokers").rglob("*.log"))[::9], ids=str)
def test_golden_segments_are_filtered_the_same(path):
    for wanted in FILTERS:
        same(path, wanted)


TEXT = st.sampled_from([None, b"", b"a", b"ab", b"aab", b"ba", b"b\n", b"\x04ab", b"xaby", b"a" * 60])
RECORDS = st.lists(
    st.tuples(TEXT, TEXT, st.lists(st.tuples(st.sampled_from([b"", b"a"]), TEXT), max_size=2)), max_size=4
)


@settings(max_examples=120, deadline=None)
@given(
    batches=st.lists(RECORDS, min_size=1, max_size=6),
    codec=st.sampled_from([0, 0, compression.ZSTD]),
    broken=st.integers(0, 9),
    step=st.sampled_from([10, 4, 0, -3]),
    wanted=st.builds(
        Filter,
        keys=st.sampled_from([frozenset(), frozenset({b"a"}), frozenset({b"", b"ab"})]),
        types=st.sampled_from([frozenset(), frozenset({"data"}), frozenset({"tombstone"})]),
        headers=st.sampled_from([(), ((b"a", None),), ((b"", b"ab"), (b"a", b""))]),
        first_offset=st.sampled_from([None, None, 2]),
        last_offset=st.sampled_from([None, None, 3, 7]),
        producer_ids=st.sampled_from([frozenset(), frozenset({-1}), frozenset({5})]),
        leader_epochs=st.sampled_from([frozenset(), frozenset({0}), frozenset({5})]),
        since=st.sampled_from([None, 2]),
        until=st.sampled_from([None, 4]),
        greps=st.sampled_from([(), (re.compile(b"ab"),), (re.compile(b"a+b"), re.compile(b"y")), (re.compile(b"^a"),)]),
    ),
)
def test_any_filter_takes_the_same(batches, codec, broken, step, wanted, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "picks" / NAME
    path.parent.mkdir(exist_ok=True)
    data, offset = b"", 0 if step >= 0 else 20
    for number, records in enumerate(batches):
        made = [
            forge.record(key, value, offset=at, timestamp=at, headers=headers)
            for at, (key, value, headers) in enumerate(records)
        ]
        if number == broken:
            made.append(b"\x02\x00")
        packed = made if codec == 0 else [compression.compress(codec, b"".join(made))]
        header = {"leader_epoch": number % 4 and 5, "producer_id": -1 if number % 3 else 5}
        data += forge.batch(
            packed, count=len(made), base_offset=offset, attributes=codec, base_timestamp=0, max_timestamp=5, **header
        )
        offset += step
    path.write_bytes(data)
    same(path, wanted)


@pytest.mark.parametrize("count", [-1, 0, 1, 3])
def test_batches_that_claim_another_count_are_damage_as_before(count, tmp_path):
    path = tmp_path / NAME
    made = [forge.record(b"k", b"v", offset=at) for at in range(2)]
    sound = [forge.batch(made, base_offset=base) for base in (0, 2, 8)]
    path.write_bytes(b"".join([*sound[:2], forge.batch(made, base_offset=4, count=count), sound[2]]))
    for wanted in FILTERS:
        same(path, wanted)


def test_a_batch_that_ends_before_it_begins_ends_no_reading(tmp_path):
    path = tmp_path / NAME
    one = [forge.batch([forge.record(b"k", b"v")], base_offset=base) for base in (0, 1, 2, 3)]
    odd = forge.batch([], base_offset=20, last_offset_delta=-1)
    path.write_bytes(b"".join([*one, odd, *one[2:]]))
    assert same(path, Filter(last_offset=19)) == 6


@pytest.mark.parametrize(
    ("bounds", "count"),
    [
        ({"first_offset": 1 << 63}, 0),
        ({"last_offset": -(1 << 63) - 1}, 0),
        ({"since": 1 << 63}, 0),
        ({"until": -(1 << 63)}, 0),
        ({"last_offset": 1 << 63, "until": 1 << 63, "since": -(1 << 64)}, 21),
    ],
)
def test_bounds_beyond_64_bits_select_records_as_other_bounds_do(bounds, count):
    (partition,) = Finder().find([str(GOLDEN / "brokers" / "4.2.2" / "multi-0")])
    for take in (Take.RECORDS, Take.RUNS):
        items = PartitionReader(Filter(**bounds), take).read(partition)
        assert sum(len(item.records) for item in items) == count


@pytest.mark.parametrize("words", [["--offset", f"{1 << 63}.."], ["--since", str(1 << 63)]])
def test_a_bound_beyond_64_bits_on_the_command_line_selects_nothing(words):
    for form in (["--count"], ["-o", "jsonl"], ["-o", "text"]):
        done = kdump("dump", GOLDEN / "brokers" / "4.2.2" / "multi-0", *words, *form)
        assert done.returncode == 0, done.stderr
        assert done.stdout in (b"", b"0\n")


def test_a_filter_that_takes_all_needs_no_prefilter():
    assert Prefilter.of(Filter()) is None
    assert Prefilter.of(Filter(committed=True)) is None
    assert Prefilter.of(Filter(first_offset=3)).exact
    assert Prefilter.of(Filter(keys=frozenset(b"%d" % number for number in range(100)))) is None
    assert Prefilter.of(Filter(types=frozenset({"data"}))).exact


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (rb"note.:.needle", b"needle"),
        (rb"ab+c.de", b"de"),
        (rb"a\.bc", b"a.bc"),
        (rb"xy{0,3}", b""),
        (rb"xy{2}z", b""),
        (rb"[]a]bc[xyz]", b"bc"),
        (rb"a\{2}", b""),
        (rb"a\.+bc", b"bc"),
        (rb"abc?d", b""),
        (rb"abc|d", b""),
        (rb"(?i:abc)", b""),
        (rb"\x41bc", b""),
        (rb"ab\d", b""),
        (rb".+", b""),
    ],
)
def test_a_text_that_all_matches_hold(pattern, expected):
    assert literal(re.compile(pattern)) == expected
    assert literal(re.compile(pattern, re.IGNORECASE)) == b""


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet="ab.*+{}2,[]^-\\d\n", min_size=1, max_size=8), st.text(alphabet="ab.2{}", max_size=12))
def test_what_matches_holds_that_text(pattern, text):
    try:
        with warnings.catch_warnings(action="ignore"):
            grep = re.compile(pattern.encode())
    except re.error:
        return
    found = grep.search(text.encode())
    if is_local(grep) and found is not None:
        assert literal(grep) in found[0]
