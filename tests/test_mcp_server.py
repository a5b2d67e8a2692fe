"""``kdump mcp``: a tool returns the same rows as its command, and reads nothing outside its roots."""

import asyncio
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

mcp = pytest.importorskip("mcp")
pytest.importorskip("duckdb")

from kdump import mcp_server
from kdump.commands.mcp import TOOLS, specs
from kdump.mcp_server import CallError, ServerOptions, ToolCall
from testing import ROOT, forge
from testing.processes import kdump
from tests.helpers.log_dirs import write

BROKER = str(ROOT / "golden" / "brokers" / "4.2.2")
AT = "2026-11-22"
SPECS = {spec.name: spec for spec in specs()}
CALLS = {
    "offsets": ({"time": ["2023-11-14T22:30"], "topic": ["c-*"]}, ["--time", "2023-11-14T22:30", "--topic", "c-*"]),
    "transactions": ({"all": True, "max_timeout": "1h"}, ["--all", "--max-timeout", "1h"]),
    "producers": ({"gaps": True, "partition": [0]}, ["--gaps", "--partition", "0"]),
    "groups": ({"group": ["e*"], "history": True}, ["--group", "e*", "--history"]),
    "du": ({"by": "segment"}, ["--by", "segment"]),
    "stats": ({"records": True, "top": 2}, ["--records", "--top", "2"]),
    "retention": ({"topic": ["txn"]}, ["--topic", "txn"]),
    "compaction": ({"records": True}, ["--records"]),
    "metadata_topics": ({"topic": ["one"]}, ["--topic", "one"]),
    "metadata_events": ({"offset": 50}, ["--offset", "50"]),
    "check": ({"headers_only": True}, ["--headers-only"]),
    "dump": ({"offset": "3..9", "topic": ["c-none"]}, ["--offset", "3..9", "--topic", "c-none"]),
}
PLAIN = ServerOptions((BROKER,), payloads=True, plain=True, max_rows=100_000, max_bytes=1 << 30)


def call(name, options=PLAIN, **arguments):
    spec = SPECS[name]
    shape = mcp_server.KdumpServer(options, [spec])._input(spec)
    return ToolCall(options, spec, shape, arguments).run()


def lines(*words):
    done = kdump(*words, "-o", "jsonl")
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


@pytest.mark.parametrize("name", CALLS)
def test_the_rows_of_a_tool_are_the_lines_of_its_command(name):
    arguments, words = CALLS[name]
    timeless = name in {"dump", "metadata_events"}
    found = call(name, limit=100_000, **arguments, **({} if timeless else {"at": AT}))
    reported = [] if timeless else ["--at", AT]
    rows, status = lines(*TOOLS[name], *words, *reported, BROKER)
    assert found["rows"] == rows != []
    assert (found["exitStatus"], found["nextCursor"]) == (status, None)
    assert bool(found["damage"]) or status in {0, 3}


def test_tools_without_a_list_of_paths():
    rows, _ = lines("explain", "txn-0@127..128", "--in", BROKER, "--at", AT)
    assert call("explain", asked=["txn-0@127..128"], at=AT)["rows"] == rows
    assert call("explain", asked=["txn-0@127..128"], at=AT, paths=[BROKER])["rows"] == rows
    assert call("sql", query="select count(*) as n from records", paths=[f"{BROKER}/one-0"])["rows"] == [{"n": 1}]
    rows, _ = lines("coordinator", "billing", "--type", "group")
    assert call("coordinator", ids=["billing"], type="group")["rows"] == rows
    rows, _ = lines("diff", BROKER, f"{BROKER}-live", "--topic", "c-*")
    both = ServerOptions((BROKER, f"{BROKER}-live"), payloads=True, plain=True)
    assert call("diff", both, topic=["c-*"])["rows"] == rows
    rows, _ = lines("sql", "--schema", "offsets")
    assert call("sql_schema", view="offsets")["rows"] == rows


def test_pages_together_are_the_whole_answer():
    query = "select topic, \"offset\" from records where topic like 'c-%' order by all"
    whole = call("sql", query=query, limit=100_000)["rows"]
    pages, cursor = [], None
    while True:
        page = call("sql", query=query, limit=400, **({"cursor": cursor} if cursor else {}))
        pages += page["rows"]
        cursor = page["nextCursor"]
        assert page["truncated"] is (cursor is not None)
        if cursor is None:
            break
    assert pages == whole
    assert len(whole) > 1000


def paged(name, options, limit, **arguments):
    """Return the rows of all pages, and the damage of each page."""
    rows, damage, cursor = [], [], None
    while True:
        page = call(name, options, limit=limit, **arguments, **({"cursor": cursor} if cursor else {}))
        rows += page["rows"]
        damage += page["damage"]
        cursor = page["nextCursor"]
        if cursor is None:
            return rows, damage


@pytest.mark.parametrize(("limit", "arguments"), [(31, {}), (9, {"batches": True}), (37, {"offset": "3.."})])
def test_pages_of_a_damaged_dump_together_are_its_lines(tmp_path, limit, arguments):
    for name in ("c-gzip-0", "c-none-0", "segidx-0"):
        shutil.copytree(f"{BROKER}/{name}", tmp_path / name)
    for file, places in (("c-none-0", (20, 330, 700, 701, 1500)), ("segidx-0", (5, 400)), ("c-gzip-0", (100,))):
        (log, *_) = sorted((tmp_path / file).glob("*.log"))
        data = bytearray(log.read_bytes())
        for place in places:
            data[place] ^= 0xFF
        log.write_bytes(data)
    options = ServerOptions((str(tmp_path),), payloads=True, plain=True)
    words = [word for name, one in arguments.items() for word in (f"--{name}", *([] if one is True else [one]))]
    whole, _ = lines("dump", *words, str(tmp_path))
    found, damage = paged("dump", options, limit, **arguments)
    assert found == whole
    assert sum(row["kind"] == "damage" for row in found) >= 4
    assert len(damage) >= 4


def test_the_level_of_a_message_decides_what_is_damage(tmp_path):
    """Names in notes may have the words of damage, and an error or a warning need not have any."""
    name = "damage.is.wrong.byte.7"
    for topic in (name, "orders"):
        folder = tmp_path / f"{topic}-0"
        folder.mkdir()
        (folder / f"{0:020}.log").write_bytes(forge.batch([forge.record(b"k", b"v")]))
    copy = tmp_path / "copy" / f"{name}-0"
    shutil.copytree(tmp_path / f"{name}-0", copy)
    options = ServerOptions((str(tmp_path),), payloads=True, plain=True)
    found = call("dump", options)
    assert (found["exitStatus"], found["damage"]) == (0, [])
    assert any(name in text for text in found["notes"])
    absent = call("dump", options, topic=["orders", "absent"])
    assert (absent["exitStatus"], len(absent["rows"])) == (0, 1)
    (text,) = absent["damage"]
    assert "'absent'" in text


def test_a_page_of_a_dump_is_read_from_the_end_of_the_page_before(tmp_path):
    folder = tmp_path / "c-gzip-0"
    shutil.copytree(f"{BROKER}/c-gzip-0", folder)
    first, second, *_ = sorted(folder.glob("*.log"))
    options = ServerOptions((str(tmp_path),))
    whole = call("dump", options, limit=1000)["rows"]
    count = sum(row["file"] == str(first) for row in whole) + 12
    page = call("dump", options, limit=count)
    place = page["rows"][-1]["position"]
    assert place > 0
    for file, size in ((first, first.stat().st_size), (second, place)):
        times = file.stat()
        with file.open("r+b") as out:
            out.write(b"\xff" * size)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    rest = call("dump", options, limit=1000, cursor=page["nextCursor"])
    assert (page["rows"] + rest["rows"], rest["damage"]) == (whole, [])


@pytest.mark.parametrize("text", ["x", "[1]", '["a",["f",Infinity,0],[]]', "[" * 100_000])
def test_a_cursor_of_another_server_is_refused(text):
    with pytest.raises(CallError, match="the cursor is not from this server"):
        call("offsets", cursor=base64.urlsafe_b64encode(text.encode()).decode())


def test_a_page_walks_the_folders_once(monkeypatch):
    walked = []
    walk = os.walk
    monkeypatch.setattr(os, "walk", lambda path, *given: walked.append(str(path)) or walk(path, *given))
    cursor = call("offsets", limit=1)["nextCursor"]
    call("offsets", limit=1, cursor=cursor)
    assert walked == [BROKER, BROKER]


def test_a_cursor_notices_another_file_in_the_place_of_an_archive(tmp_path):
    root = tmp_path / "logs.tar"
    options = ServerOptions((str(root),), payloads=True, plain=True)

    def fill(name):
        with tarfile.open(root, "w") as archive:
            archive.add(f"{BROKER}/{name}", name)

    fill("c-none-0")
    cursor = call("dump", options, limit=1)["nextCursor"]
    assert call("dump", options, limit=1, cursor=cursor)["rows"][0]["offset"] == 1
    fill("c-gzip-0")
    with pytest.raises(CallError, match="the files have changed"):
        call("dump", options, limit=1, cursor=cursor)


def test_a_cursor_of_something_else_is_refused(tmp_path):
    shutil.copytree(f"{BROKER}/c-none-0", tmp_path / "c-none-0")
    options = ServerOptions((str(tmp_path),))
    cursor = call("dump", options, limit=1)["nextCursor"]
    assert call("dump", options, limit=1, cursor=cursor)["rows"][0]["offset"] == 1
    with pytest.raises(CallError, match="other arguments"):
        call("dump", options, limit=1, cursor=cursor, offset="1..")
    for other in ("xyz", "MQ==", "WzEsIDIsIDNd", "WzEsIFsxLCAieCIsIDJdLCAzXQ=="):  # no base64, 1, [1, 2, 3], no number
        with pytest.raises(CallError, match="is not from this server"):
            call("dump", options, cursor=other)
    (tmp_path / "c-none-0" / "new").write_text("x")
    with pytest.raises(CallError, match="have changed"):
        call("dump", options, cursor=cursor)


def test_a_row_that_is_too_large_is_cut():
    options = ServerOptions((BROKER,), payloads=True, plain=True, max_bytes=1024)
    query = "select repeat('x', 5000) as long, 1 as one"
    (row,) = call("sql", options, query=query)["rows"]
    assert row["cut"] == ["long"]
    assert row["one"] == 1
    assert len(json.dumps(row)) <= 1024
    assert row["long"].endswith("…")


@pytest.fixture
def roots(tmp_path):
    """A root that contains a link to a folder outside, and that folder."""
    (tmp_path / "outside" / "secret-0").mkdir(parents=True)
    root = tmp_path / "root"
    shutil.copytree(f"{BROKER}/one-0", root / "one-0")
    (root / "linked").mkdir()
    (root / "linked" / "secret-0").symlink_to(tmp_path / "outside" / "secret-0")
    (tmp_path / "rooted").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "path",
    ["{0}/outside", "{0}/root/..", "root/../outside", "/etc", "{0}/root/linked", "root/linked", "{0}/rooted", "-", "~"],
)
def test_a_path_outside_is_refused(roots, path):
    with pytest.raises(CallError):
        call("offsets", ServerOptions((str(roots / "root"),)), paths=[path.format(roots)])


def test_a_link_to_itself_is_no_fault_of_the_server(roots):
    (roots / "root" / "turn").symlink_to("turn")
    options = ServerOptions((str(roots / "root"),))
    assert [row["topic"] for row in call("offsets", options, paths=["root/one-0"])["rows"]] == ["one"]
    with pytest.raises(CallError, match="turn does not exist"):
        call("offsets", options, paths=["root/turn"])
    shutil.rmtree(roots / "root" / "linked")
    assert [row["topic"] for row in call("offsets", options)["rows"]] == ["one"]


def test_a_path_inside_is_taken_by_its_name_too(roots):
    options = ServerOptions((str(roots / "root"),))
    for path in ("root/one-0", str(roots / "root" / "one-0")):
        assert [row["topic"] for row in call("offsets", options, paths=[path])["rows"]] == ["one"]


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("offsets", {"nosuch": 1}, "no argument 'nosuch'"),
        ("offsets", {"topic": "orders"}, "topic must be of type array"),
        ("offsets", {"limit": 0}, "1 or more"),
        ("offsets", {"limit": True}, "limit must be of type integer"),
        ("offsets", {"limit": 1.5}, "limit must be of type integer"),
        ("sql", {"query": "select '\ud800'"}, r"query is not Unicode text: .*\\ud800"),
        ("sql", {"query": "select $a", "params": {"a": None}}, "params.a must be of type string"),
        ("sql", {"query": "select $a", "params": {"\ud800": "1"}}, "params is not Unicode text"),
        ("du", {"by": "colour"}, "must be one of"),
        ("offsets", {"at": "yesterday"}, "yesterday"),
        ("sql", {"query": "drop view records"}, "DROP is refused"),
        ("sql", {"query": "select * from read_text('/etc/passwd')"}, "disabled by configuration"),
        ("sql", {"query": "select 1; select 2"}, "2 statements"),
        ("dump", {"remote": ["/etc"]}, "no argument"),
        ("schemas", {"export": "/tmp/x"}, "no argument"),
        ("sql", {}, "sql needs query"),
        ("coordinator", {"ids": ["billing"]}, "coordinator needs type"),
        ("explain", {}, "explain needs asked"),
        ("offsets", {"at": "1\0"}, "at holds a NUL"),
        ("offsets", {"topic": ["x" * 200_000]}, "too long or too many"),
        ("offsets", {"paths": [f"{BROKER}/{'x' * 300}"]}, "cannot be read"),
    ],
)
def test_what_a_tool_does_not_take_is_an_error(name, arguments, words):
    with pytest.raises(CallError, match=words):
        call(name, **arguments)


def test_no_argument_names_a_file():
    names = {name for spec in SPECS.values() for name in spec.options}
    assert not names & {
        "remote",
        "remote_key",
        "schemas",
        "export",
        "out",
        "redact_key",
        "write_snapshot",
        "diff",
        "tree",
    }
    assert not names & {"show_secrets", "temp_dir", "file", "master", "conf", "jobs"}
    assert {name for name, spec in SPECS.items() if "config" in spec.options} == {"retention", "compaction"}


def test_payloads_are_left_out_without_the_option():
    options = ServerOptions((BROKER,))
    found = json.dumps(call("dump", options, topic=["c-none"])["rows"])
    assert "key-31" not in found
    assert '"value"' not in found
    headers = [row["headers"] for row in call("dump", options, topic=["headers"])["rows"]]
    plain, _ = lines("dump", BROKER, "--topic", "headers")
    assert headers == [[{"key": one["key"]} for one in row["headers"]] for row in plain[: len(headers)]]
    assert [{"key": "trace-id"}] in headers
    query = "select count(key) as k, count(value) as v, count(nullif(len(headers), 0)) as h from records"
    assert call("sql", options, query=query)["rows"] == [{"k": 0, "v": 0, "h": 0}]
    query = "select max(keySize) as n from records where topic = 'c-none'"
    assert call("sql", options, query=query)["rows"] == [{"n": len("key-31")}]
    assert "keySize" in [row["column"] for row in call("sql_schema", options, view="records")["rows"]]
    query = "select count(*) as n from records where key = 'key-31'::BLOB"
    assert call("sql", options, query=query)["rows"] == [{"n": 0}]
    assert all("metadata" not in row for row in call("groups", options, limit=1000)["rows"])
    query = "select count(metadata) as m, count(raw) as r from group_offsets"
    assert call("sql", options, query=query)["rows"] == [{"m": 0, "r": 0}]
    for hidden in ({"grep": ["x"]}, {"key": ["key-31"]}):
        with pytest.raises(CallError, match="--payloads"):
            call("dump", options, **hidden)


@pytest.mark.parametrize("plain", [False, True])
def test_keys_of_compaction_are_shown_plain_or_not_at_all(plain):
    key = None if plain else "a secret of some length"
    options = ServerOptions((BROKER,), payloads=True, plain=plain, redact_key=key)
    assert ("ck-1" in json.dumps(call("compaction", options, top=2)["rows"])) == plain


@pytest.mark.parametrize("plain", [False, True])
def test_diff_shows_plain_payloads_or_none(tmp_path, plain):
    for number, value in enumerate((b"secret-one", b"secret-two")):
        batch = forge.batch([forge.record(b"cardno", value)])
        write(tmp_path / str(number), "t-0", {0: batch})
        (tmp_path / str(number) / "meta.properties").write_text(f"version=1\nnode.id={number}\ncluster.id=c\n")
    key = None if plain else "a secret of some length"
    options = ServerOptions((str(tmp_path),), payloads=True, plain=plain, redact_key=key)
    paths = [str(tmp_path / "0"), str(tmp_path / "1")]
    rows = call("diff", options, records=True, paths=paths)["rows"]
    assert rows
    assert (b"cardno" in json.dumps(rows).encode(), b"secret" in json.dumps(rows).encode()) == (plain, plain)


def test_payloads_are_hashed_unless_they_are_to_be_plain():
    options = ServerOptions((BROKER,), payloads=True, redact_key="a secret of some length")
    query = "select as_text(key) as k from records where topic = 'c-none' and offset = 0"
    (row,) = call("sql", options, query=query)["rows"]
    assert row["k"].startswith("hmac-sha256:")
    assert call("sql", PLAIN, query=query)["rows"] == [{"k": "key-31"}]


def test_a_number_without_a_fraction_is_an_integer():
    assert len(call("offsets", limit=2.0, partition=[0.0])["rows"]) == 2


def test_parameters_may_be_numbers():
    query = "select $a::bigint + $b::double as c, $d::boolean as d"
    assert call("sql", query=query, params={"a": 1, "b": 0.5, "d": True})["rows"] == [{"c": 1.5, "d": True}]


def test_halves_of_surrogate_pairs_are_escaped_in_rows():
    assert mcp_server.sendable([{"a\ud800": "é\udc80", "b": 1}]) == [{"a\\ud800": "é\\udc80", "b": 1}]


@pytest.mark.parametrize("query", ["select count(*) from range(1000000000000)", "select list_sort(range(60000000))[1]"])
def test_a_time_limit_ends_a_call(query, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    options = ServerOptions((BROKER,), timeout=1)
    with pytest.raises(CallError, match="stopped after 1 s"):
        call("sql", options, query=query)
    assert list(tmp_path.iterdir()) == []


def test_the_client_of_the_sdk():
    """The official client starts the server; results are structured and text, errors are results."""

    async def ask():
        server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "kdump", "mcp", BROKER], cwd=str(ROOT))
        async with mcp.Client(server) as client:
            tools = (await client.list_tools()).tools
            found = await client.call_tool("offsets", {"topic": ["txn"]})
            wrong = await client.call_tool("offsets", {"nosuch": 1})
            absent = await client.call_tool("nosuch", {})
            return tools, found, wrong, absent

    tools, found, wrong, absent = asyncio.run(ask())
    assert {tool.name for tool in tools} == set(TOOLS)
    assert all(tool.annotations.read_only_hint and not tool.annotations.open_world_hint for tool in tools)
    assert all(tool.input_schema["additionalProperties"] is False for tool in tools)
    rows, _ = lines("offsets", BROKER, "--topic", "txn")
    assert found.structured_content["rows"] == rows == json.loads(found.content[0].text)["rows"]
    assert wrong.is_error
    assert "nosuch" in wrong.content[0].text
    assert absent.is_error


ENDLESS = "select count(*) from range(1000000000000)"


def test_a_cancelled_call_ends_its_command(monkeypatch):
    runs = []

    class Run(mcp_server.ChildRun):
        def __init__(self, *given):
            super().__init__(*given)
            runs.append(self)

    monkeypatch.setattr(mcp_server, "ChildRun", Run)

    async def ask():
        server = mcp_server.KdumpServer(PLAIN, list(SPECS.values()))
        task = asyncio.create_task(server.call_tool("sql", {"query": ENDLESS}))
        while not runs:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(ask())
    assert runs[0].status in {128 + signal.SIGTERM, -signal.SIGTERM}  # the second, if Python has not started yet


class RawClient:
    """A server and a client that writes its messages itself."""

    def __init__(self):
        words = [sys.executable, "-m", "kdump", "mcp", BROKER]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"})
        self.answer = json.loads(self.process.stdout.readline())

    def ask(self, method, **params):
        line = json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
        self.send(line.encode() + b"\n")

    def send(self, line):
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def children(self):
        """Return the process ids of the commands that have begun to answer a call."""
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        return [int(one) for thread in threads for one in (thread / "children").read_text().split()]


def test_a_message_that_cannot_be_read_gets_an_error():
    client = RawClient()

    def answer():
        found = json.loads(client.process.stdout.readline())
        return found["id"], found["error"]["code"], found["error"]["message"].partition(": ")[2]

    client.ask("tools/call", name="sql", arguments={"query": "select '\ud800'"})
    assert answer() == ("tools/call", -32700, "a text in it holds half of a surrogate pair, which is not Unicode")
    client.send(b'\n{"id": 1\n')
    assert answer() == (None, -32700, "it is not JSON")
    client.send(b'{"jsonrpc":"2.0","id":7}\n')
    assert answer() == (7, -32600, "it is not a JSON-RPC message")
    for field, wrong in (("params", ""), ("params", "x"), ("method", 7), ("jsonrpc", "")):
        client.send(json.dumps({"jsonrpc": "2.0", "id": field, "method": "tools/list", field: wrong}).encode() + b"\n")
        assert answer() == (field, -32600, "it is not a JSON-RPC message")
    client.send(b'""\n')
    assert answer() == (None, -32600, "it is not a JSON-RPC message")
    for nested, number in ((b"[" * 500 + b"]" * 500, 8), (b"[" * 100_000, None)):
        client.send(b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"a":' + nested + b"}}\n")
        assert answer() == (number, -32700, "it is nested too deeply")
    client.ask("tools/call", name="offsets", arguments={"limit": 1.0})
    assert len(json.loads(client.process.stdout.readline())["result"]["structuredContent"]["rows"]) == 1
    client.process.stdin.close()
    assert client.process.wait(20) == 0
    client.process.stdout.close()


def test_a_client_that_closes_the_pipe_of_answers_ends_the_server_without_an_error():
    words = [sys.executable, "-m", "kdump", "mcp", BROKER]
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    first = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(words, cwd=ROOT, **pipes) as process:
        process.stdout.close()
        process.stdin.write(first.encode() + b"\n")
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc and the end with a parent are Linux's")
@pytest.mark.parametrize("how", ["closed pipe", "SIGINT", "SIGKILL"])
def test_a_server_that_ends_ends_its_calls(how, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    client = RawClient()
    process = client.process
    assert client.answer["result"]["serverInfo"]["name"] == "kdump"
    client.ask("tools/call", name="sql", arguments={"query": ENDLESS})
    while not list(tmp_path.iterdir()):  # the query's temporary folder
        time.sleep(0.02)
    (child,) = client.children()
    if how == "closed pipe":
        process.stdin.close()
    else:
        process.send_signal(signal.Signals[how])
    assert process.wait(20) == {"closed pipe": 0, "SIGINT": 130, "SIGKILL": -signal.SIGKILL}[how]
    until = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not Path(f"/proc/{child}").exists()
    assert list(tmp_path.iterdir()) == []
    process.stdin.close()
    process.stdout.close()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["--redact-key", "/nope"], "--redact-key needs --payloads"),
        (["--no-redact"], "--no-redact needs --payloads"),
        (["--payloads", "--no-redact", "--redact-key", "/nope"], "--no-redact cannot be combined with --redact-key"),
    ],
)
def test_options_that_do_nothing_are_wrong_usage(given, text):
    done = kdump("mcp", BROKER, *given)
    assert (done.returncode, text in done.stderr.decode()) == (2, True)


def test_tools_offer_only_arguments_that_their_commands_take():
    taken = {"dump": {"paths", "topic", "partition"}, "schemas": {"paths"}, "explain": {"paths", "at"}}
    assert {name: SPECS[name].common & {"paths", "topic", "partition", "at"} for name in taken} == taken
    assert {name for name in SPECS if "paths" not in SPECS[name].common} == {"coordinator", "sql_schema"}
    assert not {"all_columns", "expanded"} & {name for spec in SPECS.values() for name in spec.options}


def test_events_have_the_values_of_configs():
    shown = [row for row in call("metadata_events", limit=1000)["rows"] if "value" in json.dumps(row)]
    assert shown
