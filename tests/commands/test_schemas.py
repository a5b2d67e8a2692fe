import json
import os

import pytest

from testing import forge
from testing.processes import kdump
from tests.helpers import log_dirs
from tests.schemas.test_store import schema


@pytest.fixture
def logs(registries):
    return str(registries / "confluent" / "logs")


def run(*arguments, status=0, **options):
    done = kdump(*arguments, **options)
    assert done.returncode == status, done.stderr.decode()
    return done


def lines(*arguments):
    return [json.loads(line) for line in run(*arguments, "-o", "jsonl").stdout.splitlines()]


def test_versions_that_are_current_and_all(logs):
    current = lines("schemas", logs)
    every = lines("schemas", logs, "--all")
    assert {line["state"] for line in current} == {"current"}
    assert {line["state"] for line in every} == {"current", "soft-deleted", "hard-deleted"}
    assert len(every) > len(current)
    assert list(every[0]) == [
        *("kind", "subject", "version", "id", "guid", "schemaType", "references", "metadata", "ruleSet", "schema"),
        *("state", "context", "topic", "firstOffset", "lastOffset", "timestampMs"),
    ]


@pytest.mark.parametrize(
    ("option", "name"),
    [
        (["--id", "950"], "hostile-proto"),
        (["--subject", "avro-all-0-k*"], "avro-all-0-key"),
        (["--type", "protobuf", "--id", "950"], "hostile-proto"),
    ],
)
def test_chosen_versions(logs, option, name):
    assert [line["subject"] for line in lines("schemas", logs, *option)] == [name]


def test_the_history_has_only_chosen_schemas(logs):
    every, chosen = lines("schemas", logs, "--history"), lines("schemas", logs, "--history", "--id", "950")
    assert 0 < len(chosen) < len(every)
    assert {line["subject"] for line in chosen} == {"hostile-proto"}


def test_a_guid_in_any_case(logs):
    (line,) = lines("schemas", logs, "--id", "950")
    assert lines("schemas", logs, "--guid", line["guid"].upper()) == [line]


def test_subjects_with_their_settings(logs):
    found = {line["subject"]: line for line in lines("schemas", logs, "--subjects")}
    assert found["ruled-value"]["mode"] == "READONLY"
    assert found["ruled-value"]["config"]["compatibilityLevel"] == "BACKWARD_TRANSITIVE"


def test_tables(logs):
    for option, word in (
        ((), b"avro-all-0-value"),
        (("--subjects",), b"READONLY"),
        (("--history",), b"not a registry record"),
    ):
        assert word in run("schemas", logs, *option).stdout


def test_the_import_script_is_printed(logs):
    assert run("schemas", logs, "--import-script").stdout.startswith(b"#!/bin/sh\n")


def test_files_are_written_and_not_overwritten(logs, tmp_path):
    out = tmp_path / "out"
    run("schemas", logs, "--all", "--export", out)
    assert (out / "avro-all-0-value" / "1.avsc").read_text().startswith('{"type":"record"')
    before = sorted(out.rglob("*"))
    run("schemas", logs, "--export", out, status=2)
    assert sorted(out.rglob("*")) == before
    assert b"which kdump does not change" in run("schemas", logs, "--export", f"{logs}/new", status=2).stderr


@pytest.mark.parametrize("options", [[], ["--import-script"], ["--export", "{}/out"]])
def test_all_damaged_ranges_are_counted(tmp_path, options):
    options = [option.format(tmp_path) for option in options]
    record = forge.record(*schema())
    batches = [forge.batch([record], base_offset=at, crc=1 if at % 2 else None) for at in range(25)]
    log_dirs.write(tmp_path / "logs", "_schemas-0", {0: b"".join(batches)})
    assert b"2 more ranges are damaged" in run("schemas", tmp_path / "logs", *options, status=3).stderr


@pytest.mark.parametrize(
    "options", [["--subjects", "--history"], ["--export", "x", "--import-script"], ["--type", "xml"], ["--id", "x"]]
)
def test_wrong_usage(logs, options):
    run("schemas", logs, *options, status=2)


def test_no_such_topic(logs, tmp_path):
    assert b"--schemas-topic" in run("schemas", logs, "--schemas-topic", "none", status=1).stderr
    run("schemas", tmp_path / "nothing", status=1)


def test_payloads_are_decoded_with_schemas_from_elsewhere(logs):
    topic = f"{logs}/tree-0"
    (line, *_) = lines("dump", topic, "--head", "1", "--decode", "auto")
    assert line["decoded"]["value"]["problem"] == "schema-missing"
    arguments = ("--head", "1", "--decode", "avro", "--schemas", f"{logs}/_schemas-0")
    (line, *_) = lines("dump", topic, *arguments)
    assert line["decoded"]["value"]["data"]["label"] == "\U0001f600 emoji"
    assert line["value"] is not None
    (line, *_) = lines("dump", topic, *arguments[:4], "--decode", "json", "--schemas", logs)
    assert "decoded" not in line


def test_get_shows_the_decoded_value(logs):
    assert "emoji" in run("get", "tree-0@0", "--in", logs, "--decode", "auto").stdout.decode()


def test_several_processes_decode_the_same(logs):
    one = lines("dump", logs, "--decode", "auto", "--jobs", "1")
    assert lines("dump", logs, "--decode", "auto", "--jobs", "3") == one


@pytest.mark.parametrize(
    "fields", [(), ("--fields", "offset,decoded"), ("--fields", "decoded,offset"), ("--fields", "decoded")]
)
def test_the_kernel_prints_what_the_general_path_does(logs, fields):
    arguments = ("dump", logs, "-o", "jsonl", "--decode", "auto", *fields)
    assert run(*arguments).stdout == run(*arguments, env=os.environ | {"KDUMP_KERNEL": "off"}).stdout


def test_a_lone_surrogate_in_a_payload_is_printed_as_an_escape(tmp_path):
    key, value = schema("t-value", schema="true", schemaType="JSON")
    log_dirs.write(tmp_path, "_schemas-0", {0: forge.batch([forge.record(key, value)])})
    payload = b'\0\0\0\0\1"\\ud800"'
    log_dirs.write(tmp_path, "t-0", {0: forge.batch([forge.record(b"k", payload)])})
    (line,) = lines("dump", tmp_path, "--topic", "t", "--decode", "auto")
    assert line["decoded"]["value"]["data"] == "\ud800"
