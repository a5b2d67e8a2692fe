"""Ranges of offsets, compared with a search through all of them."""

from random import Random

from kdump.rebuild.merging import OffsetSpan, OffsetSpans


def made(random: Random, count: int) -> list[OffsetSpan]:
    starts = [random.randrange(60) for _ in range(count)]
    return [OffsetSpan(start, start + random.randrange(8)) for start in starts]


def test_look_ups_find_what_a_search_finds():
    random = Random(5)
    for _ in range(400):
        given = made(random, random.randrange(9))
        ranges = OffsetSpans(given)
        for start, stop in made(random, 6):
            found = ranges.meeting(start, stop)
            met = [one for one in given if one.start < stop and one.stop > start]
            assert (found is not None) == bool(met), (given, start, stop)
            assert found is None or given[found] in met
            assert ranges.hold(start, stop) == any(one.start <= start and stop <= one.stop for one in given)


def test_common_parts_have_the_offsets_of_both():
    random = Random(6)
    for _ in range(400):
        given, marks = made(random, random.randrange(9)), sorted(random.sample(range(70), 6))
        others = [OffsetSpan(*marks[at : at + 2]) for at in (0, 2, 4)]
        found = list(OffsetSpans(given).common(others))
        covered = {offset for one in given for offset in range(*one)} & {n for one in others for n in range(*one)}
        assert [offset for one in found for offset in range(*one)] == sorted(covered), (given, others)
