"""Passwords and credentials, planted wherever Kafka writes them, appear in an output only if asked for."""

from __future__ import annotations

import base64
import json
import re
import sys

import pytest

from kdump import cli
from kdump.commands import root
from testing import forge
from tests.helpers import log_dirs
from tests.helpers.metadata_records import metadata_value as value
from tools.record import config_types

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
ID = bytes(15) + b"\1"
PASSWORDS = sorted({config.name for config in config_types.recorded() if config.type == "PASSWORD"})
UNKNOWN = [
    "my.plugin.password",
    "my.plugin.endpoint",
    "a",
    "log.retention.ms2",
    "Log.retention.ms",
    "vault.token",
    "SSL.KEY.PASSWORD",
    "Sasl.Jaas.Config",
    "value.converter.basic.auth.user.info",
    "schema.registry.ssl.key.password",
    "config.providers.vault.param.token",
    "aws.secret.access.key",
    "topic.encryption.key",
    "\x1b[31m",
]
LISTENERS = [
    *(f"listener.name.external.{name}" for name in PASSWORDS),
    *(f"listener.name.external.{mechanism}.sasl.jaas.config" for mechanism in ("plain", "scram-sha-256", "gssapi")),
    "listener.name.external.my.secret",
    "listener.name.external.scram-sha-512.ssl.keystore.type",
    "listener.name.",
    "listener.name.external.",
]
CLIENTS = [f"{client}.override.{name}" for client in ("producer", "consumer", "admin") for name in PASSWORDS]
NAMES = [*PASSWORDS, *UNKNOWN, *LISTENERS, *CLIENTS, "connection.password"]
URLS = ["sasl.oauthbearer.token.endpoint.url", "advertised.listeners", "retention.ms"]
"""Configs that are shown, but for a URL with a password."""
SECRET = re.compile(rb"sEcReT|SALTY|STORED|SERVED")


def secret(number):
    return f"sEcReT-{number:03}-sEcReT"


def config(name, number, resource=BROKER, of="1"):
    return value("ConfigRecord", resourceType=resource, resourceName=of, name=name, value=secret(number))


def urls():
    at = {"retention.ms": TOPIC}
    url = "https://bob:sEcReT-word@idp.example.com:8443/token"
    return [
        value("ConfigRecord", resourceType=at.get(name, BROKER), resourceName="1", name=name, value=url)
        for name in URLS
    ]


def credential(user):
    secrets = {"salt": b"SALTYSALTY", "storedKey": b"STOREDSTORED", "serverKey": b"SERVEDSERVED"}
    return value("UserScramCredentialRecord", name=user, mechanism=1, iterations=4096, **secrets)


def log(values):
    """A metadata log with one batch for each value."""
    return b"".join(
        forge.batch(
            [forge.record(None, each)], base_offset=offset, leader_epoch=1, base_timestamp=1_700_000_000_000 + offset
        )
        for offset, each in enumerate(values)
    )


def values():
    topic = [
        value("FeatureLevelRecord", name="metadata.version", featureLevel=20),
        value("TopicRecord", name="orders", topicId=ID),
        value("PartitionRecord", partitionId=0, topicId=ID, replicas=[1], isr=[1], leader=1),
        value("ConfigRecord", resourceType=TOPIC, resourceName="orders", name="retention.ms", value="604800123"),
        value("ConfigRecord", resourceType=BROKER, resourceName="", name="log.retention.hours", value="7h"),
    ]
    brokers = [config(name, number, of=of) for of in ("1", "") for number, name in enumerate(NAMES)]
    others = [
        config(name, number, kind, "orders")
        for kind in (TOPIC, CLIENT_METRICS, GROUP, 8, 77)
        for number, name in enumerate(NAMES)
    ]
    changed = [config(name, 500 + number) for number, name in enumerate(NAMES)]
    return [*topic, *brokers, *others, *changed, credential("bob"), credential("eve"), *urls()]


def damaged():
    """Broken records with secrets: truncated, with bytes after them, of unknown versions and types."""
    whole = config("ssl.key.password", 900)
    broken = [
        whole[:-3],
        whole + b"sEcReT",
        b"\1\4\7" + whole[3:],
        b"\1\x7f\0sEcReT",
        b"\7\4\0sEcReT",
        credential("x")[:-9],
    ]
    batches = [forge.batch([forge.record(None, each)], base_offset=offset) for offset, each in enumerate(broken)]
    wrong_crc = bytearray(forge.batch([forge.record(None, whole)], base_offset=20))
    wrong_crc[17] ^= 1
    lying = forge.record(None, whole)[:-4] + b"\x7f\xff\xff\xff"
    batches += [bytes(wrong_crc), forge.batch([], base_offset=21, count=1, payload=lying), b"sEcReT" * 9]
    return b"".join(batches) + forge.batch([forge.record(None, whole)], base_offset=30)[:-5]


STARTS = {
    "empty": forge.batch([], last_offset_delta=0),
    "marker": forge.batch(
        [forge.record(b"\0\0\0\1", b"\0\0\0\0\0\0")], attributes=0x30, producer_id=5, producer_epoch=0
    ),
    "damaged": forge.batch([forge.record(b"k", b"v")], crc=1),
}
"""Batches before the first record that shows whose log it is."""


def connector():
    properties = {"connector.class": "a.B", "tasks.max": "3"} | {
        name: secret(number) for number, name in enumerate(NAMES)
    }
    properties["producer.override.sasl.oauthbearer.token.endpoint.url"] = "https://bob:sEcReT@idp/token"
    session = {"algorithm": "HmacSHA256", "key": secret(1), "creation-timestamp": 1}
    wrapped = {"schema": {}, "payload": {"properties": properties}}
    texts = {b"connector-db": {"properties": properties}, b"task-db-0": wrapped, b"session-key": session}
    records = [forge.record(key, json.dumps(text).encode(), offset=at) for at, (key, text) in enumerate(texts.items())]
    return forge.batch(records) + forge.batch(
        [forge.record(b"connector-db", b'{"properties":{"a":"sEcReT')], base_offset=3
    )


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    home = tmp_path_factory.mktemp("planted")
    sound = home / "sound"
    log_dirs.write(sound, "__cluster_metadata-0", {0: log(values())})
    log_dirs.write(sound, "connect-configs-0", {0: connector()})
    log_dirs.write(sound, "quickstart-config-0", {0: connector()})
    log_dirs.write(sound, "orders-0", {0: forge.batch([forge.record(b"k", b"v")])})
    log_dirs.node(sound, 1)
    broken = home / "broken"
    log_dirs.write(broken, "__cluster_metadata-0", {0: log(values()[:40]) + damaged()})
    log_dirs.node(broken, 1)
    (home / "copy.log").write_bytes(log(values()[1:]))
    for name, start in STARTS.items():
        (home / f"{name}.log").write_bytes(start + log(values()[1:]))
        (home / f"connect {name}.log").write_bytes(start + connector())
        log_dirs.write(home / name, "dbz-config-0", {0: start + connector()})
    return home


def found(data):
    """Return the secrets in an output, in any of the forms in which kdump writes bytes."""
    spaced = re.findall(rb"(?:[0-9a-f]{2} ){3,}", data)
    joined = [bytes.fromhex(run.decode()) for run in spaced]
    hexed = [bytes.fromhex(run.decode()[: len(run) & ~1]) for run in re.findall(rb"[0-9a-f]{12,}", data)]
    packed = []
    for run in re.findall(rb"[A-Za-z0-9+/_-]{8,}", data):
        for lead in range(4):
            part = run[lead:][: (len(run) - lead) & ~3].replace(b"-", b"+").replace(b"_", b"/")
            packed.append(base64.b64decode(part))
    return [one for one in [data, *joined, *hexed, *packed] if SECRET.search(one)][:1]


def run(monkeypatch, capfdbinary, *words):
    monkeypatch.setattr(sys, "argv", ["kdump", *map(str, words)])
    status = cli.main()
    seen = capfdbinary.readouterr()
    assert b"Traceback" not in seen.err
    return status, seen.out, seen.err


DUMPS = [
    *(["-o", form] for form in ("text", "jsonl", "json", "csv", "table", "raw")),
    ["-f", "%k %s %h %S\\n"],
    *(["--encoding", way] for way in ("hex", "base64")),
    ["-o", "jsonl", "--encoding", "hex"],
    ["-o", "csv", "--encoding", "base64"],
    *(["-o", form, "--decode", "auto"] for form in ("jsonl", "json", "csv", "table")),
    ["--include-damaged", "-o", "jsonl", "--decode", "auto"],
    ["--include-damaged"],
    ["-o", "jsonl", "--fields", "value"],
    ["--batches", "-o", "jsonl"],
    ["--count"],
    ["--tail", "500", "-o", "jsonl"],
    ["--head", "500"],
    ["--grep", "sEcReT"],
    ["--jobs", "3", "-o", "jsonl"],
    ["--no-payload"],
]
ANSWERS = [
    *(["metadata", "{dir}", *more] for more in ([], ["--topics"], ["--events"], ["--tree", "/"], ["--diff", "2.."])),
    ["metadata", "{dir}", "--topic", "orders"],
    ["offsets", "{dir}"],
    ["transactions", "{dir}", "--all"],
    ["producers", "{dir}"],
    ["explain", "__cluster_metadata-0@0..9", "--in", "{dir}"],
    ["explain", "connect-configs-0@0..9", "--in", "{dir}"],
    ["diff", "{dir}", "{home}/sound"],
    ["groups", "{dir}"],
    ["du", "{dir}"],
    ["ls", "{dir}", "--segments"],
    ["stats", "{dir}", "--records"],
    ["retention", "{dir}", "--at", "2026-11-22"],
    ["schemas", "{dir}"],
    ["connect", "{dir}"],
    ["compaction", "{dir}", "--records", "--config", "*:cleanup.policy=compact"],
]
CHECKS = [
    *(["metadata", "{dir}", "--definitions", form] for form in ("sh", "strimzi")),
    ["check", "{dir}", "--remarks"],
    ["check", "{dir}", "--json"],
    ["verify-index", "{dir}"],
    ["report", "{dir}"],
    ["report", "{dir}", "--json"],
    ["report", "{dir}", "-o", "jsonl"],
    ["coordinator", "sound", "--type", "group", "--partitions", "50"],
]
WRITERS = [
    ["salvage", "{dir}", "--out", "{out}/salvaged"],
    ["slice", "{dir}/__cluster_metadata-0", "--offset", "0..", "--out", "{out}/slice.log"],
    ["rebuild-index", "{dir}/__cluster_metadata-0/00000000000000000000.log", "--out", "{out}/index"],
    ["metadata", "{home}/sound", "--write-snapshot", "{out}"],
    ["rebuild-cluster", "{dir}", "--release", "4.2.2", "--plan"],
    ["rebuild-cluster", "{dir}", "--release", "4.2.2", "--plan", "-o", "jsonl"],
    ["rebuild-cluster", "{dir}", "--release", "4.2.2", "--out", "{out}/rebuilt", "--yes"],
]
VIEWS_OF_SQL = (
    *(
        "batches",
        "commits",
        "compaction",
        "differences",
        "du",
        "findings",
        "finding_details",
        "groups",
        "group_offsets",
    ),
    *(
        "hours",
        "offsets",
        "other_files",
        "partitions",
        "producers",
        "producer_stats",
        "record_stats",
        "removed_records",
    ),
    *(
        "replica_differences",
        "retention",
        "schemas",
        "schema_history",
        "segments",
        "segment_ranges",
        "stats",
        "subjects",
    ),
    *("sequence_breaks", "topic_config_details", "transactional_ids", "transactions", "transaction_details"),
)
VIEWS = ("records", "damage", "topics", "events", "topic_configs")
SWEEP = [
    *(["dump", "{dir}", *more] for more in DUMPS),
    *([*words, "-o", form] for words in ANSWERS for form in ("table", "jsonl", "csv")),
    *(["sql", f"select * from {view}", "{dir}", "-o", form] for view in VIEWS for form in ("table", "jsonl", "csv")),
    *CHECKS,
    *WRITERS,
]


def test_the_sweep_has_every_command():
    assert len(NAMES) >= 60
    assert {words[0] for words in SWEEP} | {"get"} == {*root.COMMANDS} - {
        "spark-export",
        "mcp",  # each tool is one of the commands, without what shows secrets
        "help",
        "compat",
        "completion",
    }


@pytest.mark.parametrize("words", SWEEP, ids=lambda words: " ".join(words).replace("/", ":"))
@pytest.mark.parametrize("of", ["sound", "broken"])
def test_no_output_has_a_secret(planted, tmp_path, monkeypatch, capfdbinary, words, of):
    folder = planted / of
    status, out, err = run(monkeypatch, capfdbinary, *(w.format(dir=folder, home=planted, out=tmp_path) for w in words))
    assert status in {0, 1, 3, 4}, err
    assert not found(out + err)
    accounts = list(tmp_path.rglob("*.json"))
    assert not [path for path in accounts if found(path.read_bytes())]


@pytest.mark.parametrize(
    "form", [["--hexdump"], ["-o", "text"], ["-o", "jsonl"], ["-o", "table"]], ids=lambda form: form[-1]
)
@pytest.mark.parametrize("more", [[], ["--batch"], ["--decode", "auto"]], ids=" ".join)
def test_get_shows_none(planted, monkeypatch, capfdbinary, form, more):
    if "--hexdump" in form and "--decode" in more:
        pytest.skip("--hexdump goes with no --decode")
    places = [("sound", "connect-configs-0", range(4)), ("sound", "__cluster_metadata-0", (3, 5, 70, 600, 601, 602))]
    places.append(("broken", "__cluster_metadata-0", range(36, 62, 1)))
    for of, partition, offsets in places:
        for offset in offsets:
            words = ["get", f"{partition}@{offset}", "--in", planted / of, *form, *more]
            _, out, err = run(monkeypatch, capfdbinary, *words)
            assert not found(out + err), words


@pytest.mark.parametrize("path", ["{name}.log", "connect {name}.log", "{name}"])
@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize(
    "words", [["dump"], ["dump", "-o", "jsonl"], ["dump", "-o", "raw"], ["sql", "from records"]], ids=" ".join
)
def test_a_log_is_recognized_after_batches_without_records(planted, monkeypatch, capfdbinary, words, name, path):
    status, out, err = run(monkeypatch, capfdbinary, *words, planted / path.format(name=name))
    assert status == (3 if name == "damaged" else 0), err
    assert not found(out + err)
    assert b"[redacted]" in out


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize(
    "words", [["dump"], ["sql", "select * from records"], ["sql", "select * from events"]], ids=" ".join
)
@pytest.mark.parametrize("of", ["sound", "broken"])
def test_no_file_of_columns_has_a_secret(planted, tmp_path, monkeypatch, capfdbinary, words, form, of):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    where = [planted / of, "-o", form, "--out", tmp_path / "out"]
    status, out, err = run(monkeypatch, capfdbinary, *words, *where)
    assert status in {0, 3}, err
    assert not found(out + err)
    if form == "parquet":
        table = parquet.read_table(tmp_path / "out")
    else:
        table = pa.ipc.open_stream(tmp_path / "out").read_all()
    shown = b"".join(b"%r\n" % [value] for column in table.columns for value in column.to_pylist())
    assert b"[redacted]" in shown or "records" not in words[-1]
    assert not found(shown)


@pytest.mark.parametrize("form", ["jsonl"])
@pytest.mark.parametrize("view", sorted({*VIEWS_OF_SQL} - {*VIEWS}))
def test_no_view_of_sql_has_a_secret(planted, monkeypatch, capfdbinary, view, form):
    for of in ("sound", "broken"):
        _, out, err = run(monkeypatch, capfdbinary, "sql", f"select * from {view}", planted / of, "-o", form)
        assert not found(out + err)


URIS = [
    "s3://AKIA:sEc/ReT-sEcReT@bucket/x",
    "s3://AKIA:sEcReT@sEcReT@bucket/x",
    "s3://AKIA:sEcReT?sEcReT@bucket/x",
    "s3://AKIA:sEcReT sEcReT@bucket/x",
    "s3:/AKIA:sEcReT@bucket/x",
    "s3://AKIA:sEcReT@bucket/x?secret=sEcReT",
    "gs://user:sEcReT@bucket/x",
    "hdfs://user:sEcReT@host:x/y",
    "https://user:sEcReT@host/x?X-Amz-Signature=sEcReT",
]
"""URIs with credentials, also such that Arrow refuses: users forget to encode a secret."""
WHERE = [
    ["{uri}"],
    *([name, "{uri}"] for name in ("dump", "check", "verify-index", "report", "offsets", "metadata", "schemas", "ls")),
    ["connect", "{uri}"],
    ["get", "orders-0@0", "--in", "{uri}"],
    ["explain", "orders-0@0", "--in", "{uri}"],
    ["diff", "{uri}", "{uri}"],
    ["sql", "from records", "{uri}"],
    ["dump", "{dir}", "--remote", "{uri}"],
    ["dump", "{dir}", "--decode", "auto", "--schemas", "{uri}"],
    ["salvage", "{uri}", "--out", "{out}"],
    ["slice", "{uri}", "--offset", "0..", "--out", "{out}"],
    ["rebuild-index", "{uri}", "--out", "{out}"],
    ["rebuild-cluster", "{uri}", "--release", "4.2.2", "--out", "{out}"],
    ["dump", "{dir}", "-o", "parquet", "--out", "{uri}"],
    ["report", "{dir}", "--out", "{uri}"],
    ["salvage", "{dir}", "--out", "{uri}"],
    ["dump", "{uri}", "--no-such-option"],
    ["get", "X@0", "{uri}"],
]


@pytest.mark.parametrize("words", WHERE, ids=" ".join)
def test_no_message_shows_the_credentials_of_a_uri(planted, tmp_path, monkeypatch, capfdbinary, words):
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("KDUMP_STORE_SECONDS", "0")
    monkeypatch.chdir(tmp_path)
    for uri in URIS:
        line = [word.format(uri=uri, dir=planted / "sound" / "orders-0", out=tmp_path / "out") for word in words]
        _, out, err = run(monkeypatch, capfdbinary, *line)
        assert not SECRET.search(out + err), uri


def test_no_message_of_a_store_that_is_away_shows_the_credentials(monkeypatch, capfdbinary):
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("KDUMP_STORE_SECONDS", "0")
    uri = "s3a://AKIA:sEcReT@bucket/x?endpoint_override=localhost:1&scheme=http"
    status, out, err = run(monkeypatch, capfdbinary, "offsets", uri)
    assert status == 1
    assert not SECRET.search(out + err)


def test_no_tool_of_the_mcp_server_shows_a_secret(planted):
    pytest.importorskip("mcp")
    from kdump import mcp_server
    from kdump.commands.mcp import specs

    needs = {"explain": {"asked": ["__cluster_metadata-0@0..9"]}, "sql": {"query": "from records"}}
    for spec in specs():
        if spec.name not in {"dump", "connect", "explain", "sql", "check"} and not spec.name.startswith("metadata"):
            continue
        for of in ("sound", "broken") if spec.name in {"dump", "metadata_events"} else ("sound",):
            options = mcp_server.ServerOptions(
                (str(planted / of),), payloads=True, plain=True, max_rows=9999, max_bytes=1 << 26
            )
            shape = {"properties": {**spec.options, **mcp_server._COMMON}}
            made = mcp_server.ToolCall(options, spec, shape, needs.get(spec.name, {})).run()
            assert not found(json.dumps(made).encode()), spec.name


@pytest.mark.parametrize("more", DUMPS, ids=" ".join)
def test_a_copy_of_the_metadata_log_without_its_name_is_one_too(planted, monkeypatch, capfdbinary, more):
    if "--decode" in more:
        pytest.skip("what has no topic is not decoded")
    status, out, err = run(monkeypatch, capfdbinary, "dump", planted / "copy.log", *more)
    assert status == 0, err
    assert not found(out + err)


def test_the_page_has_none(planted, tmp_path, monkeypatch, capfdbinary):
    pytest.importorskip("vl_convert")
    for of in ("sound", "broken"):
        _, out, err = run(monkeypatch, capfdbinary, "report", planted / of, "--out", tmp_path / f"{of}.html")
        page = (tmp_path / f"{of}.html").read_bytes()
        assert b"ConfigChanged" in page
        assert b"[redacted]" in page
        assert not SECRET.search(page + out + err)


SHOWS = [
    ["metadata", "{dir}", "-o", "jsonl"],
    ["metadata", "{dir}"],
    ["metadata", "{dir}", "--topics"],
    ["metadata", "{dir}", "--events"],
    ["metadata", "{dir}", "--tree", "/"],
    ["metadata", "{dir}", "--diff", "2..", "-o", "csv"],
    ["dump", "{dir}"],
    ["dump", "{dir}", "-o", "jsonl", "--decode", "auto"],
    ["dump", "{home}/copy.log", "-o", "raw"],
    ["get", "connect-configs-0@0", "--in", "{dir}"],
    ["get", "__cluster_metadata-0@5", "--in", "{dir}", "--hexdump"],
]


@pytest.mark.parametrize("words", SHOWS, ids=lambda words: " ".join(words).replace("/", ":"))
def test_who_needs_them_asks(planted, monkeypatch, capfdbinary, words):
    words = [word.format(dir=planted / "sound", home=planted) for word in words]
    shown = run(monkeypatch, capfdbinary, *words, "--show-secrets")
    assert shown[0] == 0
    assert b"sEcReT" in shown[1]
    hidden = run(monkeypatch, capfdbinary, *words)
    assert b"sEcReT" not in hidden[1]
    assert b"[redacted]" in hidden[1] or b"hidden (--show-secrets shows it)" in hidden[1]


def test_known_values_are_shown(planted, monkeypatch, capfdbinary):
    for words in (["--topics"], ["--events", "-o", "jsonl"], ["-o", "jsonl"], ["--tree", "/configs"]):
        assert b"604800123" in run(monkeypatch, capfdbinary, "metadata", planted / "sound", *words)[1]
    for words in (["-o", "jsonl", "--decode", "auto"], ["-o", "raw"], []):
        assert b"604800123" in run(monkeypatch, capfdbinary, "dump", planted / "sound", *words)[1]


def test_the_classic_dump_stays_that_of_kafka(planted, monkeypatch, capfdbinary):
    segment = planted / "sound" / "__cluster_metadata-0" / f"{0:020}.log"
    shown = run(monkeypatch, capfdbinary, "--files", segment, "--cluster-metadata-decoder")[1]
    assert shown.count(b"sEcReT") >= len(NAMES)


@pytest.mark.parametrize("topic", ["", "quickstart-config-0"])
@pytest.mark.parametrize("more", [[], ["--batch"]], ids=lambda more: more[-1] if more else "record")
def test_a_hexdump_hides_the_values_of_a_log_without_a_readable_record(tmp_path, monkeypatch, capfdbinary, topic, more):
    value = json.dumps({"properties": {"connection.password": "sEcReT"}}).encode()
    record = forge.record(b"connector-jdbc", value)
    assert record[-1] == 0  # the count of headers
    folder = tmp_path / (topic or "copy")
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(forge.batch([record[:-1] + b"\1"]))
    place = [f"{topic}@0", "--in", tmp_path] if topic else ["@0", "--in", folder / f"{0:020}.log"]
    _, out, err = run(monkeypatch, capfdbinary, "get", *place, "--hexdump", *more)
    assert b"hidden (--show-secrets shows it)" in out
    assert not found(out)
    assert not found(err)


PIECE = 123_456_789
"""The number that the first bytes of a secret give where a size is read."""


@pytest.mark.parametrize("topic", ["copy", "quickstart-config-0", "__cluster_metadata-0"])
@pytest.mark.parametrize(
    "words",
    [
        ["check"],
        ["check", "-o", "jsonl"],
        ["sql", "select * from findings"],
        ["offsets", "--time", "5"],
        ["dump"],
        ["dump", "-o", "jsonl"],
        ["dump", "-o", "arrow"],
        ["get", "@0", "--in"],
        ["get", "@0", "--hexdump", "--in"],
        ["sql", "select * from records"],
    ],
    ids=" ".join,
)
def test_damage_inside_a_record_shows_no_number_if_the_log_may_hold_secrets(
    tmp_path, monkeypatch, capfdbinary, topic, words
):
    body = b"\0\0\0" + forge.sized(b"connector-jdbc") + forge.varint(PIECE) + b"sEcReT"
    batch = bytearray(forge.batch([forge.varint(len(body)) + body]))
    segment = tmp_path / topic / f"{0:020}.log"
    segment.parent.mkdir()
    segment.write_bytes(batch)
    status, out, err = run(monkeypatch, capfdbinary, *words, segment)
    assert status == 3
    assert str(PIECE).encode() not in out + err
    assert b"value size is wrong" in out + err
    batch[-1] ^= 1
    segment.write_bytes(batch)
    _, out, err = run(monkeypatch, capfdbinary, *words, segment)
    is_named = topic == "__cluster_metadata-0"
    assert is_named or b"checksum is wrong" in out + err  # no bytes of a record are in this reason


@pytest.mark.parametrize(
    "words", [["metadata"], ["report", "-o", "jsonl"], ["explain", "__cluster_metadata-0@0", "--in"]]
)
def test_a_replay_of_a_broken_record_shows_no_number(tmp_path, monkeypatch, capfdbinary, words):
    body = b"\0\0\0" + forge.sized(None) + forge.varint(PIECE) + b"sEcReT"
    segment = tmp_path / "__cluster_metadata-0" / f"{0:020}.log"
    segment.parent.mkdir()
    segment.write_bytes(forge.batch([forge.varint(len(body)) + body]))
    status, out, err = run(monkeypatch, capfdbinary, *words, segment.parent)
    assert status == 3
    assert str(PIECE).encode() not in out + err
