"""The tables of the page."""

from kdump.report.document import LogDirReport, ReportAnswer
from kdump.report.tables import tables

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
