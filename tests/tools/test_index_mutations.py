"""A few of the seeded mutations of tools/fuzz/index_mutations.py."""

from random import Random

import pytest

from testing import GOLDEN
from tools.fuzz import index_mutations


@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex"])
def test_no_silent_mutation_does_harm(suffix):
    folders = [GOLDEN / "brokers" / "4.2.2" / "txn-0", GOLDEN / "brokers" / "0.10.2.2" / "mixed-0"]
    held = [subject for subject in index_mutations.subjects(folders) if subject.content(suffix).strip(b"\0")]
    random, found, harmful = Random(suffix), 0, 0
    for _ in range(150):
        subject = random.choice(held)
        kind, data = index_mutations.mutate(random, subject.content(suffix), suffix)
        harm = index_mutations.HARMS[suffix](subject, data)
        reported = subject.findings(suffix, data)
        found, harmful = found + bool(reported), harmful + bool(harm)
        assert reported or not harm, (kind, subject.files.beside(suffix), harm)
    assert found > 60
    assert harmful > 10


@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex"])
def test_the_healthy_files_do_no_harm(suffix):
    for subject in index_mutations.subjects([GOLDEN / "brokers" / "4.2.2" / "txn-0"]):
        if subject.content(suffix):
            assert index_mutations.HARMS[suffix](subject, subject.content(suffix)) == ""
            assert subject.findings(suffix, subject.content(suffix)) == 0
