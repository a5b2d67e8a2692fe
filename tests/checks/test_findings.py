from kdump.findings import Finding, Level, status


def test_the_worst_level_decides_the_exit_status():
    assert status([]) == status([Level.REMARK]) == 0
    assert status([Level.REMARK, Level.DERIVED]) == 4
    assert status([Level.DERIVED, Level.LOG, Level.REMARK]) == 3


def test_a_remark_is_nothing_wrong():
    assert [Finding(level=level, file="a.log", kind="k", text="t").is_remark for level in Level] == [True, False, False]
