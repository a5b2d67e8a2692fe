"""The data of the charts, before they are drawn."""

from kdump.report import charts
from kdump.report.document import LogDirReport, ReportAnswer


def test_each_replica_of_a_damaged_segment_has_a_row_of_its_own():
    files = [f"/broker{number}/orders-0/{0:020}.log" for number in (1, 2)]
    about = {"topic": "orders", "partition": 0, "size": 1000}
    lines = [{"kind": "damagedFile", **about, "file": file, "ranges": 1, "parts": None} for file in files]
    lines.append(
        {"kind": "damage", **about, "file": files[0], "position": 10, "size": 5, "reason": "the checksum is wrong"}
    )
    report = LogDirReport(("/broker1", "/broker2"), 0, None, {"damage": ReportAnswer("kdump dump", lines)})
    ((_, _, _, spec),) = charts._damage(report)
    rows = [value["name"] for value in spec["data"]["values"] if value["what"] == "sound"]
    assert len(set(rows)) == 2
    assert [value["name"] for value in spec["data"]["values"] if value["what"] == "damage"] == rows[:1]
