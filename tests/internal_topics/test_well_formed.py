"""The kernel reads what the interpreter reads, and gives up on what that refuses."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdump import kernel
from kdump.internal_topics import well_formed
from kdump.internal_topics.interpreter import PayloadError, Reader, read, write
from kdump.internal_topics.schema import parse
from tests.internal_topics.test_interpreter import LAYOUTS, values_of

if not kernel.COMPILED:
    pytest.skip("there is no kernel", allow_module_level=True)


def interpreted(schema, data):
    """Return the interpreter's result, or None if it refuses the bytes or leaves some over."""
    reader = Reader(data)
    try:
        values = read(schema, reader)
    except PayloadError:
        return None
    return None if reader.remaining else values


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=6, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_reads_as_the_interpreter_does(name, data):
    schema = LAYOUTS[name]
    values = data.draw(values_of(schema))
    written = write(schema, values)
    fast = well_formed.read(schema, written, 0)
    assert fast == values
    assert list(fast) == list(interpreted(schema, written))
    for end in range(len(written)):
        assert well_formed.read(schema, written[:end], 0) is None
    assert well_formed.read(schema, written + b"\0", 0) is None
    for _ in range(10):
        at, byte = data.draw(st.integers(0, max(0, len(written) - 1))), data.draw(st.integers(0, 255))
        changed = written[:at] + bytes([byte]) + written[at + 1 :]
        found = well_formed.read(schema, changed, 0)
        assert found is None or repr(found) == repr(interpreted(schema, changed))


TEXTS = parse("""
    Sample; versions 0; flexible 0+
        names     []string
        late      int32   tag 0
        list      []int8  tag 1
        place     Place   null  tag 2  = null
            where  int8
""")["Sample"].struct(0)


@pytest.mark.parametrize(
    "data",
    [
        *("0202ff 00", "028040 00", "00 00", "01 8100", "01 01 0501 00", "01 01 80000400000001"),
        *("01 01 00840000000009", "01 01 0203 01 05 00", "01 01 0201 00", "01 01 0203 81 00 00"),
    ],
)
def test_leaves_what_is_seldom_to_the_interpreter(data):
    raw = bytes.fromhex(data)
    found = well_formed.read(TEXTS, raw, 0)
    assert found is None or found == interpreted(TEXTS, raw)


def test_a_long_string_is_read():
    values = {"names": ["n" * 300, "é"], "late": 7, "list": [1, -1], "place": None}
    assert well_formed.read(TEXTS, write(TEXTS, values), 0) == values


def test_each_message_has_lists_of_its_own():
    one, other = (well_formed.read(TEXTS, b"\1\0", 0) for _ in range(2))
    assert one["list"] == []
    assert one["list"] is not other["list"]
