import json
import shlex
import subprocess
from pathlib import Path

import fastavro.schema
import grpc_tools
import pytest
from grpc_tools import protoc

from kdump.schemas.export import ExportedSchemas, file_name, import_calls
from tests.schemas.test_store import schema, store_of


def test_recorded_schemas_compile(store, tmp_path):
    made = ExportedSchemas(store.versions(), store)
    for name, data in made.files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    compiled = 0
    own = Path(grpc_tools.__file__).parent / "_proto"
    for version in store.versions():
        if version.subject.startswith(("bad-", "hostile")):
            continue
        folder = tmp_path / file_name(version.subject)
        if version.schema_type == "PROTOBUF":
            out = tmp_path / "out"
            path = folder / f"{version.version}.proto"
            assert protoc.main(["protoc", f"-I{folder}", f"-I{own}", f"--descriptor_set_out={out}", str(path)]) == 0, (
                path
            )
        elif version.schema_type == "AVRO":
            fastavro.schema.load_schema(folder / f"{version.version}.avsc")
        else:
            json.loads((folder / f"{version.version}.json").read_text())
        compiled += 1
    assert compiled > 60


def test_no_file_lies_outside_the_folder():
    names = ["../../etc/passwd", "/etc/passwd", "a/../../b", "..", "a\0b", "x" * 300]
    refers = [{"name": name, "subject": "r", "version": 1} for name in names]
    store = store_of(
        schema("r", schema="message R {}", schemaType="PROTOBUF"),
        schema("../up", id=2, schema="message A {}", schemaType="PROTOBUF", references=refers),
        schema("..", id=3, references=refers),
        schema("", id=4),
    )
    made = ExportedSchemas(store.versions(), store)
    for name in made.files:
        assert not name.startswith("/")
        assert ".." not in name.split("/")
        assert all(0 < len(part.encode()) <= 255 for part in name.split("/"))
    assert len(made.notes) >= len(names)


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("orders-value", "orders-value"),
        (":.ctx:a", "%3A.ctx%3Aa"),
        ("a/b", "a%2Fb"),
        (".", "%2E"),
        ("\u00fc", "%C3%BC"),
    ],
)
def test_names_of_files(subject, name):
    assert file_name(subject) == name


def test_the_import_script_is_shell_and_restores_in_order(store, tmp_path):
    lines = list(import_calls(store.versions(), store))
    script = tmp_path / "restore.sh"
    script.write_text("\n".join(lines))
    assert subprocess.run(["sh", "-n", script], check=False).returncode == 0
    done = set()
    for line in lines:
        words = shlex.split(line, comments=True)
        if words[:2] == ["call", "POST"]:
            body = json.loads(words[3])
            for reference in body.get("references", ()):
                found = store.version(reference["subject"], reference["version"])
                assert found is None or (found.subject, found.version) in done or found.schema_type == "XML"
            done.add((words[2].removeprefix("/subjects/").removesuffix("/versions"), body["version"]))
    assert len(done) == len(list(store.versions()))


def test_the_calls_of_the_script_reach_a_registry(tmp_path):
    """curl is replaced by a program that notes its arguments."""
    store = store_of(schema("a b", schema='{"type":"string","doc":"it\'s $(x) `y`"}'), schema("c", id=2, deleted=True))
    noted = tmp_path / "noted"
    curl = tmp_path / "curl"
    curl.write_text(f'#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done >> {noted}\necho >> {noted}\n')
    curl.chmod(0o755)
    script = "\n".join(import_calls(store.versions(), store))
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "REGISTRY": "http://registry"}
    subprocess.run(["sh"], input=script.encode(), check=True, env=environment)
    calls = [call.split("\n") for call in noted.read_text().strip().split("\n\n")]
    assert [(call[2], call[-1]) for call in calls] == [
        ("PUT", "http://registry/mode?force=true"),
        ("POST", "http://registry/subjects/a%20b/versions"),
        ("POST", "http://registry/subjects/c/versions"),
        ("DELETE", "http://registry/subjects/c/versions/1"),
        ("PUT", "http://registry/mode?force=true"),
    ]
    body = json.loads(calls[1][calls[1].index("--data-raw") + 1])
    assert body == {"schema": '{"type":"string","doc":"it\'s $(x) `y`"}', "id": 1, "version": 1}
    failed = subprocess.run(
        ["sh"], input=script.encode(), check=False, capture_output=True, env={"PATH": "/usr/bin:/bin"}
    )
    assert failed.returncode != 0
