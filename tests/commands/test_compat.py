import pytest
from click.testing import CliRunner

from kdump.commands.root import root
from kdump.dump_log_segments.dialects import releases
from kdump.errors import UsageError
from testing.processes import kdump


def test_all_tables_are_reported_in_order():
    reported = [change.since for change in releases.CHANGES]
    assert reported == sorted({dialect.since for table in releases.TABLES for dialect in table})
    assert all(dialect.why in releases.find(".".join(map(str, dialect.since))).why for dialect in releases.TABLES[0])


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("0.8", "0.8.2"),
        ("3.6.1", "3.6.0"),
        ("3", "3.9.0"),
        ("0.11.0.1", "0.11.0.1"),
        ("4.4", "4.4.0"),
        ("1.1.0", "1.1.0"),
    ],
)
def test_a_release_is_held_by_its_last_change(text, since):
    assert releases.find(text).release == since


def test_too_old():
    with pytest.raises(UsageError, match="older"):
        releases.find("0.7.2")


def test_the_command_lists_every_change():
    result = CliRunner().invoke(root, ["compat"])
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines() if not line.startswith(" ")] == [
        change.release for change in releases.CHANGES
    ]
    assert all(len(line) <= 100 for line in result.output.splitlines())


def test_the_command_shows_the_holder_of_a_release():
    result = CliRunner().invoke(root, ["compat", "2.0.3"])
    assert (result.exit_code, result.output) == (0, "2.0.1     isControl of a batch\n")


RELEASES = [("9.9", 2), ("3.99", 2), ("5.0.0", 2), ("3", 2), ("4.4.0", 0), ("2.8", 0)]


@pytest.mark.parametrize("command", ["retention", "transactions"])
@pytest.mark.parametrize(("release", "status"), RELEASES)
def test_answers_refuse_releases_that_there_are_not(tmp_path, command, release, status):
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(b"")
    assert kdump(command, tmp_path, "--release", release).returncode == status
