"""meta.properties and .kafka_cleanshutdown."""

import pytest

from kdump.errors import DamageError
from kdump.formats import clean_shutdown, meta_properties
from kdump.formats.clean_shutdown import CleanShutdown
from kdump.formats.meta_properties import MetaProperties

TEXT = (
    b"#\n#Sat Nov 21 09:49:43 UTC 2026\nnode.id=1\ndirectory.id=wIeNNiNiRUKBPWdIWwhK7A\n"
    b"version=1\ncluster.id=Jcp9qHk6RnaNkgBVOvaAyg\n"
)


def values(text: bytes) -> dict[str, str]:
    return dict(meta_properties.read(text).values)


def test_whole():
    properties = meta_properties.read(TEXT)
    assert properties.comments == ("#", "#Sat Nov 21 09:49:43 UTC 2026")
    assert properties.cluster_id == "Jcp9qHk6RnaNkgBVOvaAyg"
    assert properties.broker_id == "1"
    assert properties.directory_id == "wIeNNiNiRUKBPWdIWwhK7A"
    assert meta_properties.encode(properties) == TEXT
    assert meta_properties.read(b"version=0\nbroker.id=3\n").broker_id == "3"


def test_cut_at_every_byte_gives_the_keys_so_far():
    keys = list(meta_properties.read(TEXT).values)
    for end in range(len(TEXT)):
        assert list(values(TEXT[:end]))[: TEXT[:end].count(b"=") - 1] == keys[: max(0, TEXT[:end].count(b"=") - 1)]


def test_garbage_after_is_one_more_key():
    assert list(values(TEXT + b"\xff\xfe garbage")) == [*meta_properties.read(TEXT).values, "\xff\xfe"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (rb"a=b", {"a": "b"}),
        (rb"a:b", {"a": "b"}),
        (rb"a b", {"a": "b"}),
        (b"\t a \f=\t b ", {"a": "b "}),
        (rb"a = : b", {"a": ": b"}),
        (rb"a", {"a": ""}),
        (rb"=b", {"": "b"}),
        (rb"a\=\:\ c=d\#", {"a=: c": "d#"}),
        (b"a=b\\\n   c", {"a": "bc"}),
        (b"a=b\\\n\nc", {"a": "b", "c": ""}),
        (b"a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        (b"a=1\r\n! x\r#y\\\nb=2", {"a": "1", "b": "2"}),
        (b"a=1\na=2", {"a": "2"}),
        (rb"a=\u00e9\t\n\q", {"a": "é\t\nq"}),
        (b"a=b\\", {"a": "b"}),
        (b"\0=\xe9", {"\0": "é"}),
    ],
)
def test_the_syntax_of_java_properties(line, expected):
    assert values(line) == expected


@pytest.mark.parametrize("line", [rb"x=1" b"\n" rb"a=\u12", rb"x=1" b"\n" rb"a=\uzzzz"])
def test_a_malformed_escape_is_damage(line):
    with pytest.raises(DamageError) as caught:
        values(line)
    assert (caught.value.kind, caught.value.position) == ("escape", 4)


@pytest.mark.parametrize("odd", [" lead", "in side", "tail ", "a=b:c#d!e\\f", "é\u2028", "\t\n\r\f", ""])
def test_odd_keys_and_values_come_back(odd):
    properties = MetaProperties({odd: odd, "k": "v"})
    assert meta_properties.read(meta_properties.encode(properties)) == properties


def test_clean_shutdown():
    assert clean_shutdown.read(b"") == CleanShutdown(None, None)
    text = b'{"version":0,"brokerEpoch":42}'
    assert clean_shutdown.read(text) == CleanShutdown(0, 42)
    assert clean_shutdown.encode(CleanShutdown(0, 42)) == text
    assert clean_shutdown.encode(CleanShutdown()) == b""
    assert clean_shutdown.read(b'{"brokerEpoch":7,"more":[]}') == CleanShutdown(0, 7)


@pytest.mark.parametrize("end", range(1, 30))
def test_clean_shutdown_cut_or_with_garbage_after(end):
    text = b'{"version":0,"brokerEpoch":42}'
    for odd in (text[:end], text + text[:end]):
        with pytest.raises(DamageError) as caught:
            clean_shutdown.read(odd)
        assert caught.value.kind == "json"


@pytest.mark.parametrize("text", [b"[]", b"1", b'{"brokerEpoch":"1"}', b'{"version":true}', b"\xff"])
def test_clean_shutdown_of_another_shape(text):
    with pytest.raises(DamageError) as caught:
        clean_shutdown.read(text)
    assert caught.value.kind == "json"


@pytest.mark.parametrize(
    ("version", "node", "found"),
    [
        ("1", "1", 1),
        (r"\u0661", r"\u0663", 3),
        ("01", "+1", 1),
        ("1 ", "00000000000000000001", 1),
        ("1", "-1", -1),
        ("1", "1 ", "property"),
        ("1", r"1\u00a0", "property"),
        ("1", r"1\u001c", "property"),
        ("1", "1_0", "property"),
        ("1", "", "property"),
        (r"1\u00a0", "1", "version"),
        ("", "1", "version"),
    ],
)
def test_numbers_are_read_as_by_kafkas_class_meta_properties(version, node, found):
    properties = meta_properties.read(f"version={version}\nnode.id={node}\ncluster.id=x\n".encode())
    if isinstance(found, int):
        meta_properties.check(properties)
        assert (properties.version, properties.node_id) == (1, found)
    else:
        with pytest.raises(DamageError) as error:
            meta_properties.check(properties)
        assert error.value.kind == found


@pytest.mark.parametrize("version", ["0", "-0"])
def test_before_kraft_the_broker_id_is_the_node(version):
    properties = meta_properties.read(f"version={version}\nbroker.id=5\nnode.id=x\n".encode())
    meta_properties.check(properties)
    assert properties.node_id == 5
