"""Planning prints the same notes about missing topics as the commands."""

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")

from kdump.spark.source import answers, planning
from kdump.spark.source import options as words
from testing import GOLDEN

BROKER = GOLDEN / "brokers" / "4.2.2"
NOTE = f"no partition of topic 'tnx' is in {BROKER}; did you mean 'txn'?"


@pytest.mark.parametrize("output", ["records", "findings", "stats"])
def test_a_topic_that_is_not_there_is_noted_as_by_the_commands(output):
    given = {"paths": f'["{BROKER}"]', "topic": "txn,tnx", "output": output}
    options, notes = words.parse(given), []
    if output == "records":
        planning.plan(options, notes.append)
    elif output == "findings":
        answers.plan_checks(options, notes.append)
    else:
        answers.plan(options, notes.append)
    assert [note for note in notes if "tnx" in note] == [NOTE]
