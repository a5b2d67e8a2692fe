import json

import pytest

from kdump.dump_log_segments.decoders import java
from kdump.internal_topics import (
    cluster_metadata,
    consumer_offsets,
    remote_log_metadata,
    share_group_state,
    transaction_state,
)
from kdump.internal_topics.schema import NEWEST, parse, parse_release
from testing import GOLDEN

TEXTS = [
    consumer_offsets.MESSAGES,
    consumer_offsets.MEMBER_MESSAGES,
    transaction_state.MESSAGES,
    share_group_state.MESSAGES,
    remote_log_metadata.MESSAGES,
    cluster_metadata.MESSAGES,
    cluster_metadata.CONTROL_MESSAGES,
]
MESSAGES = {name: message for text in TEXTS for name, message in text.items()}
FACTS = [json.loads(line) for line in (GOLDEN / "messages.jsonl").read_text().splitlines()]


def shown(slot) -> str:
    """Return a type as in golden/messages.jsonl."""
    if slot.struct:
        one = "{" + layout(slot.struct) + "}"
    elif slot.type in {"string", "bytes"}:
        null = slot.nullable and not slot.array
        one = ("compact_" if slot.compact else "") + ("nullable_" if null else "") + slot.type
    else:
        one = {"bool": "boolean"}.get(slot.type, slot.type)
    if not slot.array:
        return one
    return ("?" if slot.nullable else "") + ("c" if slot.compact else "") + f"[{one}]"


def layout(struct) -> str:
    fields = [f"{slot.name} {shown(slot)}" for slot in struct.plain]
    if struct.flexible:
        tagged = (f"{tag}:{slot.name} {shown(slot)}" for tag, slot in sorted(struct.tagged.items()))
        fields.append("<" + ", ".join(tagged) + ">")
    return ", ".join(fields)


def default(slot):
    """Return a default as in golden/messages.jsonl; None for a struct's, which is text there."""
    value = slot.default()
    if isinstance(value, bytes):
        return java.uuid(value) if slot.type == "uuid" else f"bytes:{len(value)}"
    return "[]" if value == [] else value


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact['message']}-{fact['releases'][0]}")
def test_a_message_is_what_the_classes_of_the_release_read(fact):
    message = MESSAGES[fact["message"]]
    is_key = message.name.endswith("Key")
    for release in map(parse_release, fact["releases"]):
        versions = message.versions(release)
        assert is_key or list(versions) == fact["versions"], release
        if fact["type"] >= 0:
            assert message.types.at(release) == [fact["type"]], release
        lowest, highest = fact["versions"]
        said = ""
        for version in range(lowest, highest + 1):
            said = fact["layouts"].get(str(version), said)
            assert layout(message.struct(0 if is_key else version, release)) == said, (release, version)
        newest = message.struct(versions.highest, release)
        names = [slot.name for slot in newest.slots]
        assert names == [name for name in fact["defaults"] if name in names]
        for slot in newest.slots:
            if slot.struct is None or slot.array:
                assert default(slot) == fact["defaults"][slot.name], (release, slot.name)


def test_no_release_knows_more_or_less_messages():
    releases = {release for fact in FACTS for release in fact["releases"]}
    for release in releases:
        known = {fact["message"] for fact in FACTS if release in fact["releases"]}
        assert {name for name, each in MESSAGES.items() if each.versions(parse_release(release))} == known, release


EXAMPLE = """
    Shape; type 1, 0 before 2.1; versions 0-1 before 2.1, 0-3; flexible 3+
        name      string           # no comment is part of the notation
"""

SMALL = """
    Shape; type 1, 0 before 2.1;
        versions 0-1 before 2.1, 0-3; flexible 3+
        name      string
        count     int32    1-2  = -1
        flag      bool     = true  from 2.0
        places    []Place  null 2+  tag 0  = null
            where  string
            when   int64   2+
        last      Place
    Other; versions 0 from 3.0
        place     Place
"""


def test_a_text_says_which_fields_a_version_has_in_a_release():
    reported, other = parse(SMALL).values()
    assert reported.types.at((2, 0)) == [1, 0]
    assert reported.types.at(NEWEST) == [1]
    assert reported.versions((2, 0)) == (0, 1)
    assert reported.versions() == (0, 3)
    assert layout(reported.struct(0, (1, 9))) == "name string, last {where string}"
    assert layout(reported.struct(2)) == ("name string, count int32, flag boolean, last {where string, when int64}")
    assert layout(reported.struct(3)) == (
        "name compact_string, flag boolean, last {where compact_string, when int64, <>}, "
        "<0:places ?c[{where compact_string, when int64, <>}]>"
    )
    assert other.versions((2, 9)) is None
    assert layout(other.struct(0)) == "place {where string}"
    with pytest.raises(KeyError):
        other.struct(0, (2, 9))


def test_a_version_that_is_not_known_is_read_as_the_nearest():
    reported = parse(SMALL)["Shape"]
    assert layout(reported.struct(7, (2, 0))) == layout(reported.struct(1, (2, 0)))
    assert layout(reported.struct(-1)) == layout(reported.struct(0))
    assert reported.struct(7).refused == 7
    assert reported.struct(3).refused is None


def test_versions_that_broken_bytes_name_are_not_kept():
    reported = parse(SMALL)["Shape"]
    assert reported.struct(3) is reported.struct(3)
    assert reported.struct(7) is not reported.struct(7)
    assert reported.struct(-7) is reported.struct(0)


def test_each_use_gets_a_fresh_default():
    places = parse("Shape; versions 0\n    places []int32\n")["Shape"].struct(0).slots[0]
    assert places.default() is not places.default()


@pytest.mark.parametrize(
    "text",
    [
        "Shape; versions x\n",
        "Shape; size 3; versions 0\n",
        "Shape; versions 0 until 3.0\n",
        "Shape; versions 0\n    name text\n",
        "Shape; versions 0\n    name string maybe 3\n",
        "Shape; versions 0\n   name string\n",
        "Shape; versions 0\n        name string\n",
        "Shape; versions 0\n    name string 1-\n",
        EXAMPLE,
    ],
)
def test_what_the_notation_does_not_have_is_refused(text):
    with pytest.raises((ValueError, KeyError)):
        parse(text)
