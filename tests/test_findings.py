from kdump.findings import Finding, status


def test_the_worst_level_decides_the_exit_status():
    damage, derived, remark = (Finding("a.log", level, "kind", "text") for level in ("damage", "derived", "remark"))
    assert status([]) == status([remark]) == 0
    assert status([remark, derived]) == 4
    assert status([derived, damage, remark]) == 3
