import base64
import json
import shlex
import subprocess
from pathlib import Path
from urllib.parse import quote

import fastavro.schema
import grpc_tools
import pytest
from grpc_tools import protoc

from kdump.schemas.export import ENDINGS, ExportedSchemas, file_name, import_script
from tests.schemas.test_store import key, schema, store_of

TEXT = '{"type":"string","doc":"it\'s $(x) `y`"}'


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
    ("kind", "name", "path"),
    [
        ("PROTOBUF", "shop/address.proto", "shop/address.proto"),
        ("JSON", "address.json", "address.json"),
        ("JSON", "../order/shop/address.json", None),
        ("JSON", "shop/./address.json", "shop/address.json"),
        ("JSON", "https://x/y.json", "https%3A%2F%2Fx%2Fy.json"),
        ("JSON", "urn:address", "urn%3Aaddress.json"),
        ("AVRO", "shop.Address", "shop.Address.avsc"),
        ("AVRO", "address.avsc", "address.avsc"),
    ],
)
def test_a_reference_is_where_the_schema_looks_for_it(kind, name, path):
    refers = [{"name": name, "subject": "address", "version": 1}]
    store = store_of(
        schema("address", schema="{}", schemaType=kind),
        schema("order", id=2, schema="{}", schemaType=kind, references=refers),
    )
    made = ExportedSchemas(store.versions(), store)
    found = {each.removeprefix("order/") for each in made.files if each.startswith("order/")}
    assert found - {f"1{ENDINGS[kind]}"} == ({path} if path else set())


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


def test_subjects_with_long_names_have_files_of_their_own():
    topic = "orders." * 35
    subjects = [f"{topic}-key", f"{topic}-value"]
    store = store_of(*(schema(subject, id=number) for number, subject in enumerate(subjects, 1)))
    made = ExportedSchemas(store.versions(), store)
    assert len(made.files) == len(subjects)
    assert {len(file_name(subject)) for subject in subjects} == {200}


def test_the_import_script_is_shell_and_restores_in_order(store, tmp_path):
    lines = list(import_script(store.versions(), store))
    script = tmp_path / "restore.sh"
    script.write_text("\n".join(lines))
    assert subprocess.run(["sh", "-n", script], check=False).returncode == 0
    done = set()
    for line in lines:
        if line.startswith("call POST"):
            words = shlex.split(line)
            body = json.loads(words[3])
            for reference in body.get("references", ()):
                found = store.version(reference["subject"], reference["version"])
                assert found is None or (found.subject, found.version) in done or found.schema_type == "XML"
            done.add((words[2].removeprefix("/subjects/").removesuffix("/versions"), body["version"]))
    newest = {(each.subject, each.id): each.version for each in store.versions()}
    replaced = {
        (quote(each.subject, safe=""), each.version)
        for each in store.versions()
        if each.state != "current" and newest[each.subject, each.id] > each.version
    }
    assert len(done | replaced) == len(list(store.versions()))


def test_the_calls_of_the_script_reach_a_registry(tmp_path):
    """curl is replaced by a program that notes its arguments and its input."""
    store = store_of(schema("a b", schema=TEXT), schema("c", id=2, deleted=True))
    noted = tmp_path / "noted"
    noting(tmp_path / "curl", noted)
    script = "\n".join(import_script(store.versions(), store))
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "REGISTRY": "http://registry"}
    subprocess.run(["sh"], input=script.encode(), check=True, env=environment)
    calls = [call.split("\n") for call in noted.read_text().split("\n;\n")[:-1]]
    assert [(call[2], call[-2], call[-1]) for call in calls] == [
        ("PUT", "http://registry/mode?force=true", '{"mode": "IMPORT"}'),
        ("POST", "http://registry/subjects/a%20b/versions", calls[1][-1]),
        ("POST", "http://registry/subjects/c/versions", calls[2][-1]),
        ("DELETE", "http://registry/subjects/c/versions/1", ""),
        ("PUT", "http://registry/mode?force=true", '{"mode": "READWRITE"}'),
    ]
    assert json.loads(calls[1][-1]) == {"schema": TEXT, "id": 1, "version": 1}
    failed = subprocess.run(
        ["sh"], input=script.encode(), check=False, capture_output=True, env={"PATH": "/usr/bin:/bin"}
    )
    assert failed.returncode != 0
    assert b"BOOTSTRAP to the address of a broker" in failed.stderr


def test_deleted_versions_neither_stop_the_script_nor_hide_later_ones():
    """A registry refuses to delete a version after another refers to it, and keeps one version per id and subject."""
    refers = {"references": [{"name": "a", "subject": "a", "version": 1}]}
    store = store_of(
        schema("a", version=1, id=1, deleted=True),
        schema("b", version=1, id=2, **refers),
        schema("c", version=1, id=3, schema=TEXT),
        (key(subject="c", version=1, magic=1), None),
        schema("c", version=2, id=3, schema=TEXT),
        schema("d", version=1, id=4, deleted=True, **refers),
        schema("d", version=2, id=5),
        schema("e", version=1, id=6, deleted=True),
        schema("e", version=2, id=6),
        schema("f", version=2, id=7, references=[{"name": "e", "subject": "e", "version": 1}]),
    )
    lines = [shlex.split(line)[1:4] for line in import_script(store.versions(), store) if line.startswith("call ")]
    calls = [
        (method, path.split("/")[2], json.loads(body[0])["version"] if body else int(path[-1]))
        for method, path, *body in lines
        if path.startswith("/subjects")
    ]
    wanted = ["POST a 1", "DELETE a 1", "POST b 1", "POST d 1", "DELETE d 1", "POST e 1"]
    assert [f"{method} {subject} {version}" for method, subject, version in calls] == [
        *wanted,
        "POST c 2",
        "POST d 2",
        "POST e 2",
        "POST f 2",
    ]


def test_half_a_surrogate_pair_in_a_subject_stays_itself():
    store = store_of(schema("\ud800"))
    assert any("/subjects/%ED%A0%80/versions" in line for line in import_script(store.versions(), store))


@pytest.mark.parametrize("definition", ["1201702200620670726f746f32", "120170220c0a014d12070a01781801280a"])
def test_a_descriptor_without_names_is_exported_as_it_is(definition):
    text = base64.b64encode(bytes.fromhex(definition)).decode()
    store = store_of(schema(schema=text, schemaType="PROTOBUF"))
    assert ExportedSchemas(store.versions(), store).files == {"s-value/1.proto": text.encode()}


def test_a_note_says_that_the_text_of_a_descriptor_lacks_options():
    """A file with ``option java_package = "org.shop"`` and a message, as Karapace and Kafka's clients send it."""
    message = bytes([10, 1]) + b"A"
    options = bytes([10, 8]) + b"org.shop"
    definition = bytes([10, 1]) + b"a" + bytes([34, len(message)]) + message + bytes([66, len(options)]) + options
    store = store_of(schema(schema=base64.b64encode(definition).decode(), schemaType="PROTOBUF"))
    exported = ExportedSchemas(store.versions(), store)
    assert b"message A" in exported.files["s-value/1.proto"]
    assert b"org.shop" not in exported.files["s-value/1.proto"]
    (note,) = exported.notes
    assert note.startswith("version 1 of s-value: the log has only a descriptor")


def test_references_are_those_of_the_schema_s_context():
    refers = [{"name": "x.proto", "subject": "x", "version": 1}]
    own = schema(":.c:x", id=1, schema="// own", schemaType="PROTOBUF")
    user = schema(":.c:a", id=2, schema='import "x.proto";', schemaType="PROTOBUF", references=refers)
    store = store_of(user, own, schema("x", id=1, schema="// other", schemaType="PROTOBUF"))
    (version,) = store.with_id(2)
    assert ExportedSchemas([version], store).files["%3A.c%3Aa/x.proto"] == b"// own"
    calls = [line for line in import_script(store.versions(), store) if line.startswith("call POST")]
    assert [shlex.split(call)[2] for call in calls] == [
        f"/subjects/{name}/versions" for name in ("%3A.c%3Ax", "%3A.c%3Aa", "x")
    ]


def noting(program, noted):
    """Write a program that notes its arguments and its input, and then a semicolon."""
    program.write_text(
        f'#!/bin/sh\n{{ for word in "$@"; do printf "%s\\n" "$word"; done; cat; printf "\\n;\\n"; }} >> {noted}\n'
    )
    program.chmod(0o755)


def test_a_registry_without_the_mode_import_is_named(tmp_path):
    (tmp_path / "curl").write_text("#!/bin/sh\nexit 22\n")
    (tmp_path / "curl").chmod(0o755)
    store = store_of(schema())
    done = subprocess.run(
        ["sh"],
        input="\n".join(import_script(store.versions(), store)).encode(),
        check=False,
        capture_output=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "REGISTRY": "http://registry"},
    )
    assert done.returncode == 1
    assert b"set BOOTSTRAP instead of REGISTRY" in done.stderr


def test_contexts_have_modes_of_their_own_and_settings_are_restored(tmp_path):
    config = {"compatibilityLevel": "FULL", "subject": "a"}
    store = store_of(
        schema("a"),
        schema(":.site:a", id=1, schema='"long"'),
        (key("CONFIG", magic=0), b'{"compatibilityLevel":"NONE"}'),
        (key("CONFIG", subject="a", magic=0), json.dumps(config).encode()),
        (key("CONFIG", subject=":.site:", magic=0), b'{"compatibilityLevel":"NONE"}'),
        (key("MODE", subject="a", magic=0), b'{"mode":"READONLY"}'),
    )

    def calls(**options):
        lines = import_script(store.versions(), store, **options)
        return [shlex.split(line)[1:3] for line in lines if line.startswith("call ")]

    of_subjects = [["PUT", "/config/a"], ["PUT", "/mode/a?force=true"]]
    head = [["PUT", "/mode?force=true"], ["PUT", "/mode/%3A.site%3A?force=true"]]
    posts = [["POST", "/subjects/a/versions"], ["POST", "/subjects/%3A.site%3Aa/versions"]]
    back = [["PUT", "/mode?force=true"], ["DELETE", "/mode/%3A.site%3A"]]
    assert calls() == [*head, *posts, *back, *of_subjects]
    assert calls(whole=True) == [*head, *posts, *back, ["PUT", "/config"], ["PUT", "/config/%3A.site%3A"], *of_subjects]


def test_records_of_the_topic_give_the_same_store(tmp_path):
    first = store_of(
        schema("c", id=3, schema=TEXT, references=[{"name": "a", "subject": "a b", "version": 1}], more="kept"),
        schema("a b", schema="tab\there\n\ud800 \u00fc"),
        schema("soft", id=4, deleted=True),
        schema("gone", id=5),
        (schema("gone")[0], None),
        (key("CONFIG", magic=0), b'{"compatibilityLevel":"NONE"}'),
        (key("MODE", subject="c", magic=0), b'{"mode":"READONLY"}'),
    )
    noting(tmp_path / "kafka-topics.sh", tmp_path / "topics")
    (tmp_path / "kafka-console-producer.sh").write_text(f"#!/bin/sh\ncat > {tmp_path}/records\n")
    (tmp_path / "kafka-console-producer.sh").chmod(0o755)
    script = "\n".join(import_script(first.versions(), first, whole=True))
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "BOOTSTRAP": "broker:9092", "SCHEMAS_TOPIC": "mine"}
    subprocess.run(["sh"], input=script.encode(), check=True, env=environment)
    assert "--topic\nmine\n" in (tmp_path / "topics").read_text()
    records = [line.split("\t") for line in (tmp_path / "records").read_text().splitlines()]
    second = store_of(*((name.encode(), value.encode()) for name, value in records))
    same = ("subject", "version", "id", "schema_type", "references", "text")

    def facts(store):
        return {tuple(getattr(each, name) for name in same) for each in store.versions()}

    assert facts(first) == facts(second)
    assert [(one.subject, one.state) for one in second.versions()] == [
        ("a b", "current"),
        ("c", "current"),
        ("soft", "soft-deleted"),
        ("gone", "soft-deleted"),
    ]
    assert (second.config(""), second.mode("c")) == ({"compatibilityLevel": "NONE"}, "READONLY")
    assert second.version("c", 1).stored["more"] == "kept"
