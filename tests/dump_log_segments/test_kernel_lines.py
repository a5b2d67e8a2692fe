"""Lines of magic 0 and 1 from the kernel, compared with lines made field by field."""

import io
import random

import pytest

from kdump import kernel
from kdump.dump_log_segments import Options
from kdump.dump_log_segments.dialects import segments as dialects
from kdump.dump_log_segments.dispatch import dump_files
from kdump.dump_log_segments.run import DumpRun
from kdump.errors import KdumpError
from kdump.primitives import compression
from testing import forge

NAME = "00000000000000000000.log"
MESSAGES = [(b"key", b"100% value"), (None, b"v"), (b"k", None), (None, None), (b"", b""), ("ü".encode(), b"\xff\xfe")]


def dumped(path, release, **options):
    out = io.BytesIO()
    run = DumpRun(dialects.find(release), Options(print_data_log=True, deep_iteration=True, **options), out)
    error = None
    try:
        dump_files(run, [str(path)])
    except KdumpError as reason:
        error = str(reason)
    return out.getvalue(), error


def by_field(path, release, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "COMPILED", False)
        return dumped(path, release, **options)


def segment(magic, codec):
    """Return single entries, then a wrapper if there is a codec."""
    made = [forge.message(magic, key, value, timestamp=number**7) for number, (key, value) in enumerate(MESSAGES)]
    plain = b"".join(forge.entry(number, body) for number, body in enumerate(made))
    if codec == compression.NONE:
        return plain
    packed = compression.compress(codec, plain, magic=magic)
    wrappers = [
        forge.entry(9 + at, forge.message(magic, None, packed, timestamp=5, attributes=codec | bits))
        for at, bits in enumerate((0, 8))
    ]
    return b"".join(wrappers) + plain


@pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP, compression.SNAPPY, compression.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("release", ["4.3", "3.0", "2.8", "2.2", "1.0"])
def test_messages_read_the_same(release, magic, codec, tmp_path):
    path = tmp_path / NAME
    path.write_bytes(segment(magic, codec))
    want = by_field(path, release)
    assert dumped(path, release) == want
    assert want[0].count(b"100% value") == 1 + 2 * (codec != compression.NONE)
    assert dumped(path, release, skip_record_metadata=True) == by_field(path, release, skip_record_metadata=True)


@pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP])
@pytest.mark.parametrize("magic", [0, 1])
def test_broken_messages_read_the_same(magic, codec, tmp_path):
    """Both ways print the fields before an unreadable one."""
    path = tmp_path / NAME
    whole = segment(magic, codec)
    seed = random.Random(magic)
    for at in range(len(whole)):
        for data in (whole[:at] + bytes([seed.randrange(256)]) + whole[at + 1 :], whole[:at]):
            path.write_bytes(data)
            assert dumped(path, "4.3") == by_field(path, "4.3"), at
