"""The tables of the page."""

from kdump.report.charts import _lag
from kdump.report.document import LogDirReport, ReportAnswer
from kdump.report.tables import tables
from kdump.report.verdicts import _groups

NAMES = ("check", "damage", "timeline", "du-topics", "du", "stats", "retention", "transactions")


def group(name):
    return {"kind": "group", "groupId": name, "type": "Classic", "state": "Empty", "members": []}


def offset(name, lag, ms):
    line = {"kind": "offset", "groupId": name, "lag": lag, "commitTimestampMs": ms, "problem": None}
    return {**line, "topic": "orders", "partition": 0, "offset": 1, "logEndOffset": None, "expireTimestampMs": None}


def test_an_unknown_lag_or_commit_time_is_not_zero():
    lines = [group("known"), group("unknown"), offset("known", 3, 1000), offset("known", None, None)]
    answers = {name: ReportAnswer("") for name in NAMES}
    answers["groups"] = ReportAnswer("kdump groups", [*lines, offset("unknown", None, None)])
    (table,) = (one for one in tables(LogDirReport((), 0, None, answers)) if one.name == "groups")
    found = [(row[0].value, row[5].value, row[5].text, row[6].value, row[6].text) for row in table.rows]
    assert found == [("known", 3, "3", 1000, "1970-01-01T00:00:01Z"), ("unknown", None, "–", None, "–")]


def test_an_offset_past_the_end_of_a_log_does_not_reduce_the_lag_of_its_group():
    lines = [
        group("ahead"),
        group("both"),
        offset("ahead", -5, 1000),
        offset("both", -5, 1000),
        offset("both", 7, 1000),
    ]
    answers = {name: ReportAnswer("") for name in NAMES}
    report = LogDirReport((), 0, None, answers | {"groups": ReportAnswer("kdump groups", lines)})
    (table,) = (one for one in tables(report) if one.name == "groups")
    assert {row[0].value: row[5].value for row in table.rows} == {"ahead": 0, "both": 7}
    ((_, _, _, chart),) = _lag(report)
    assert [(bar["name"], bar["lag"]) for bar in chart["data"]["values"]] == [("both", 7)]
    (verdict,) = _groups(report)
    assert verdict.text == "1 of 2 groups has lag: both (7)."
