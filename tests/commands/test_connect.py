import json
import shutil
import tarfile

import pytest

from testing import GOLDEN
from testing.processes import kdump
from tools.prove import connect_answers


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("connect")
    with tarfile.open(GOLDEN / "connect.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "connect"


@pytest.fixture
def logs(recorded):
    return recorded / "logs"


def run(*arguments, status=0):
    done = kdump("connect", *arguments)
    assert done.returncode == status, done.stderr.decode()
    return done


def lines(*arguments):
    return [json.loads(line) for line in run(*arguments, "-o", "jsonl").stdout.splitlines()]


def test_it_is_what_the_rest_api_answered(recorded, logs):
    answers = json.loads((recorded / "answers.json").read_text())
    assert connect_answers.compare(answers, logs) == []
    assert len(answers) == 5


def test_states_that_a_stop_does_not_change(logs):
    found = {line["connector"]: line for line in lines(logs) if line["kind"] == "connector"}
    assert {name: line["targetState"] for name, line in found.items() if line["targetState"]} == {
        "paused": "PAUSED",
        "stopped-1": "STOPPED",
    }
    assert found["stopped-1"]["tasks"] == 0
    assert found["sink-2"]["config"]["database.password"] == "[redacted]"
    assert b"sEcReT" not in run(logs).stdout + run(logs, "-o", "csv").stdout + run(logs, "-o", "jsonl").stdout


def test_the_table(logs):
    shown = run(logs).stdout.decode()
    assert "lines-in" in shown
    assert "Source offsets" in shown
    connectors, _, rest = shown.partition("\nTasks\n")
    assert "deleted" not in connectors  # its offsets stay in the topic
    assert "deleted" in rest.partition("Source offsets")[2]
    assert "Couldn't find or create file" in rest
    assert run(logs).stderr == b""


def test_one_connector(logs):
    assert {line["connector"] for line in lines(logs, "--connector", "s*")} == {"sink-2", "stopped-1"}
    assert run(logs, "--connector", "Sink-2").stderr == (
        b"note: there is no connector 'Sink-2' in these paths; did you mean 'sink-2'?\n"
    )


def test_names_that_say_nothing(logs, tmp_path):
    for folder in logs.iterdir():
        name = folder.name.replace("connect-", "c").replace("configs", "one").replace("status", "two")
        shutil.copytree(folder, tmp_path / name.replace("offsets", "three"))
    assert b"name the topic with --configs-topic" in run(tmp_path, status=1).stderr
    named = ["--configs-topic", "cone", "--status-topic", "ctwo", "--offsets-topic", "cthree"]
    found = lines(tmp_path, *named)
    assert {line["configsTopic"] for line in found if line["kind"] == "connector"} == {"cone"}
    assert [line | {"configsTopic": ""} for line in found] == [line | {"configsTopic": ""} for line in lines(logs)]


@pytest.mark.parametrize("option", ["--configs-topic", "--status-topic", "--offsets-topic"])
def test_a_named_topic_that_is_absent_is_an_error(logs, option):
    done = run(logs, option, "nosuch", status=1)
    assert f"error: no partition of topic 'nosuch' is in {logs}" in done.stderr.decode()
    assert bool(done.stdout) == (option != "--configs-topic")
    near = run(logs, option, "connect-config", status=1)
    assert "topic 'connect-config' is in" in near.stderr.decode()
    assert "did you mean 'connect-configs'?" in near.stderr.decode()


def test_topics_whose_names_begin_like_those_of_kafka(logs, tmp_path):
    """A hosted Kafka Connect names its topics ``__amazon_msk_connect_configs_...``."""
    for folder in logs.iterdir():
        shutil.copytree(folder, tmp_path / f"__hosted_{folder.name}")
    found = lines(tmp_path)
    assert {line["configsTopic"] for line in found if line["kind"] == "connector"} == {"__hosted_connect-configs"}
    assert len(found) == len(lines(logs))


def test_a_cluster_without_its_other_topics(logs, tmp_path):
    shutil.copytree(logs / "connect-configs-0", tmp_path / "connect-configs-0")
    done = run(tmp_path)
    assert done.stderr.decode().count("topic was found for the Connect cluster") == 2
    assert b"no state" in done.stdout


def test_damage_is_exit_status_3(logs, tmp_path):
    shutil.copytree(logs, tmp_path / "logs")
    file = tmp_path / "logs" / "connect-configs-0" / f"{0:020}.log"
    data = bytearray(file.read_bytes())
    data[-20] ^= 1
    file.write_bytes(data)
    assert b"byte" in run(tmp_path / "logs", status=3).stderr
