"""The clients of stores get Hadoop's settings, and HDFS is read with the methods of ``pyarrow.fs``."""

import json
import pickle
import re
import sys
import types
from io import BytesIO
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[spark]'")
from pyarrow import fs

from kdump.cli import main
from kdump.errors import KdumpError, UsageError
from kdump.log_dirs import remote, stores
from kdump.log_dirs.finder import Finder
from testing import GOLDEN
from testing.stores import Clock

BROKER = GOLDEN / "brokers" / "4.2.2"
KEYS = {"fs.s3a.access.key": "a", "fs.s3a.secret.key": "b"}


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ({}, {}),
        ({"fs.s3a.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}, {}),
        (KEYS, {"access_key": "a", "secret_key": "b"}),
        ({**KEYS, "fs.s3a.session.token": "c"}, {"access_key": "a", "secret_key": "b", "session_token": "c"}),
        ({"fs.s3a.access.key": "a"}, {}),
        (
            {**KEYS, "fs.s3a.bucket.logs.access.key": "of logs", "fs.s3a.bucket.other.secret.key": "no"},
            {"access_key": "of logs", "secret_key": "b"},
        ),
        (
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"anonymous": True},
        ),
        (
            {"fs.s3a.proxy.host": "proxy", "fs.s3a.proxy.username": "u", "fs.s3a.proxy.password": "p"},
            {"proxy_options": {"scheme": "http", "host": "proxy", "port": 443, "username": "u", "password": "p"}},
        ),
        (
            {"fs.s3a.bucket.logs.proxy.host": "proxy", "fs.s3a.proxy.port": "3128", "fs.s3a.proxy.ssl.enabled": "true"},
            {"proxy_options": {"scheme": "https", "host": "proxy", "port": 3128}},
        ),
        ({"fs.s3a.assumed.role.arn": "arn:aws:iam::1:role/r"}, {"role_arn": "arn:aws:iam::1:role/r"}),
        (
            {"fs.s3a.endpoint": "http://minio:9000/"},
            {"endpoint_override": "minio:9000", "scheme": "http", "region": "us-east-1"},
        ),
        (
            {"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false", "fs.s3a.endpoint.region": "x"},
            {"endpoint_override": "minio:9000", "scheme": "http", "region": "x"},
        ),
        (
            {
                "fs.s3a.endpoint": "minio:9000",
                "fs.s3a.connection.ssl.enabled": " False",
                "fs.s3a.endpoint.region": "x\n",
            },
            {"endpoint_override": "minio:9000", "scheme": "http", "region": "x"},
        ),
        (
            {"fs.s3a.proxy.host": "proxy", "fs.s3a.proxy.ssl.enabled": "TRUE"},
            {"proxy_options": {"scheme": "https", "host": "proxy", "port": 443}},
        ),
        (
            {"fs.s3a.endpoint": "s3.eu-west-1.amazonaws.com", "fs.s3a.path.style.access": "false"},
            {
                "endpoint_override": "s3.eu-west-1.amazonaws.com",
                "scheme": "https",
                "force_virtual_addressing": True,
                "region": "eu-west-1",
            },
        ),
    ],
)
def test_s3_gets_the_settings_of_s3a(given, arguments, monkeypatch):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(fs, "resolve_s3_region", lambda _: "us-east-1")
    assert stores.s3_arguments("logs", given) == arguments
    if arguments and "role_arn" not in arguments:
        monkeypatch.setenv(stores.VARIABLE, json.dumps(given))
        system, path = stores.client("s3", "//logs/broker/")
        assert (type(system), path) == (fs.S3FileSystem, "logs/broker")


def test_a_wrong_port_of_the_proxy_is_wrong_usage():
    with pytest.raises(UsageError, match=r"fs\.s3a\.proxy\.port is not a number: '3128/'"):
        stores.s3_arguments("logs", {"fs.s3a.proxy.host": "proxy", "fs.s3a.proxy.port": "3128/"})


def test_the_region_of_the_environment_is_kept_beside_an_endpoint(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert "region" not in stores.s3_arguments("logs", {"fs.s3a.endpoint": "http://minio:9000"})


def test_only_settings_of_stores_are_kept():
    given = {"fs.s3a.endpoint": "x", "fs.defaultFS": "hdfs://n", "dfs.nameservices": "n", "io.file.buffer.size": "1"}
    assert set(stores.relevant(given)) == {"fs.s3a.endpoint", "fs.defaultFS", "dfs.nameservices"}


@pytest.mark.parametrize("text", ["{", "[]", "1"])
def test_a_broken_variable_is_an_error_that_shows_no_value(text, monkeypatch):
    monkeypatch.setenv(stores.VARIABLE, text)
    with pytest.raises(KdumpError, match=f"^the environment variable {stores.VARIABLE} is not a JSON object$"):
        stores.settings()


STACK = "\n\tat org.apache.hadoop.hdfs.server.namenode.INodeFile.valueOf(INodeFile.java:91)\n"


class Client:
    """The part of ``hdfs_native.Client`` that kdump calls, over a folder."""

    def __init__(self, url, config):
        if url is None and "fs.defaultFS" not in config:
            raise RuntimeError('InvalidArgument("No fs.defaultFS setting found")')
        self.url = url or config["fs.defaultFS"]

    def _at(self, path):
        found = Path(f"{BROKER}{path}")
        if not found.exists():
            raise FileNotFoundError(path + STACK)
        return found

    def get_file_info(self, path):
        found = self._at(path)
        size = 0 if found.is_dir() else found.stat().st_size
        return types.SimpleNamespace(path=path, isdir=found.is_dir(), length=size, modification_time=1_700_000_000_123)

    def list_status(self, path):
        return (self.get_file_info(f"{path.rstrip('/')}/{one.name}") for one in self._at(path).iterdir())

    def read(self, path):
        found = self._at(path)
        if found.is_dir():
            raise FileNotFoundError(f"Path is not a file: {path}{STACK}")
        return Reader(found.read_bytes())


class Reader:
    def __init__(self, data):
        self.data, self.size = data, len(data)

    def read_range(self, position, size):
        assert position + size <= self.size  # else it panics
        return self.data[position : position + size]

    def close(self):
        pass


@pytest.fixture
def hdfs(monkeypatch):
    monkeypatch.setitem(sys.modules, "hdfs_native", types.SimpleNamespace(Client=Client))
    monkeypatch.setattr(stores, "_CLIENTS", {})


def test_hdfs_is_read_like_the_local_folder(hdfs, capsys, monkeypatch):
    def output(path):
        monkeypatch.setattr(sys, "argv", ["kdump", "offsets", path, "-o", "jsonl"])
        assert main() == 0
        return capsys.readouterr().out

    local = output(f"{BROKER}/multi-0").replace(f"{BROKER}/", "hdfs://node:9820/")
    assert output("hdfs://node:9820/multi-0") == local
    monkeypatch.setenv(stores.VARIABLE, '{"fs.defaultFS": "hdfs://node:9820"}')
    assert output("hdfs:///multi-0") == local.replace("hdfs://node:9820/", "hdfs:///")


def test_a_file_of_hdfs_has_size_time_and_bytes_at_positions(hdfs):
    system, path = stores.client("hdfs", "//node:9820/one-0")
    copy = pickle.loads(pickle.dumps(system))
    assert copy == system
    (log,) = [info for info in copy.get_file_info(fs.FileSelector(path)) if info.path.endswith(".log")]
    assert log.mtime_ns == 1_700_000_000_123_000_000
    data = (BROKER / "one-0" / log.base_name).read_bytes()
    file = copy.open_input_file(log.path)
    assert file.size() == log.size == len(data)
    for position in range(len(data) + 1):
        assert file.read_at(7, position) == data[position : position + 7]
    file.close()
    assert copy.get_file_info("/nowhere").type == fs.FileType.NotFound
    for call in (lambda: copy.open_input_file("/one-0"), lambda: copy.get_file_info(fs.FileSelector("/nowhere"))):
        with pytest.raises(FileNotFoundError) as error:
            call()
        assert "\n" not in str(error.value)


def test_what_is_not_there_is_named_by_its_uri(hdfs):
    place, path = remote.place("hdfs://node:9820/nowhere")
    with pytest.raises(KdumpError, match=r"^hdfs://node:9820/nowhere: No such file or directory$"):
        list(Finder().find([path], place))


def test_hdfs_without_a_name_node_says_how_to_name_one(hdfs):
    with pytest.raises(
        UsageError, match=r"^hdfs:///x: No fs\.defaultFS .* write hdfs://HOST:PORT/PATH, or set HADOOP_CONF"
    ):
        stores.client("hdfs", "///x")


def test_without_hdfs_native_and_libhdfs_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(KdumpError, match=r"pip install 'kdump\[hdfs\]'$"):
        stores.client("hdfs", "//localhost:1/x")


DATA_NODES = 'DataTransferError("All DataNodes failed: [DatanodeInfoProto { ip_addr: \\"127.0.0.1\\" }]")'
NAME_NODE = 'RPCError("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "Cannot create\\n\\tat org.apache")'


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (DATA_NODES, "DataTransferError: All DataNodes failed"),
        ('DataTransferError("All DataNodes failed: []")', "DataTransferError: All DataNodes failed"),
        (
            NAME_NODE,
            "RPCError: org.apache.hadoop.hdfs.server.namenode.SafeModeException: Cannot create",
        ),
    ],
)
def test_data_nodes_that_do_not_answer_are_an_outage(hdfs, monkeypatch, raised, text):
    """hdfs-native raises RuntimeError for them, and OSError for a name node that does not answer."""

    def fail(*_):
        raise RuntimeError(raised)

    system, path = stores.client("hdfs", f"//node:9820/one-0/{0:020}.log")
    file = system.open_input_file(path)
    monkeypatch.setattr(Reader, "read_range", fail)
    writer = types.SimpleNamespace(write=fail, close=fail)
    for call in (lambda: file.read_at(1, 0), lambda: stores.HdfsStream(writer).write(b"x")):
        with pytest.raises(OSError, match=f"^{re.escape(text)}$") as error:
            call()
        assert remote.kind_of(error.value) is remote.ErrorKind.TRANSPORT


@pytest.mark.parametrize("reason", [OSError("disk"), KeyboardInterrupt()])
def test_a_file_of_hdfs_is_not_completed_after_an_error(monkeypatch, reason):
    """The name node publishes a file when its writer is closed."""
    calls = []
    writer = types.SimpleNamespace(write=lambda _: None, close=lambda: calls.append("close"))
    client = types.SimpleNamespace(create=lambda *_: writer, delete=lambda path: calls.append(f"delete {path}"))
    module = types.SimpleNamespace(Client=lambda *_: client, WriteOptions=lambda **_: None)
    monkeypatch.setitem(sys.modules, "hdfs_native", module)
    monkeypatch.setattr(stores, "_CLIENTS", {})
    system = stores.HdfsSystem("hdfs://node", {})
    blocks = [b"half"]

    def read(_):
        if blocks:
            return blocks.pop()
        raise reason

    store = remote.RemoteFiles(system, "hdfs://node/")
    with pytest.raises(type(reason)):
        store._put(types.SimpleNamespace(seek=lambda _: None, read=read), "/lake/x")
    assert calls == ["delete /lake/x"]
    store._put(BytesIO(b"whole"), "/lake/x")
    assert calls == ["delete /lake/x", "close"]


def test_a_file_that_could_not_be_opened_for_writing_is_not_deleted():
    """It does not belong to this run: an older file of that name may exist."""
    deleted = []

    def refuse(_):
        raise PermissionError("403")

    system = types.SimpleNamespace(open_output_stream=refuse, delete_file=deleted.append)
    with pytest.raises(PermissionError):
        remote.RemoteFiles(system, "s3://").put_once(b"new", "lake/x")
    assert deleted == []


def test_a_segment_is_read_again_when_the_data_nodes_are_back(hdfs, monkeypatch):
    monkeypatch.setattr(remote, "time", clock := Clock())
    system, path = stores.client("hdfs", f"//node:9820/one-0/{0:020}.log")
    read, left = Reader.read_range, [3]

    def fail_first(self, position, size):
        left[0] -= 1
        if left[0] >= 0:
            raise RuntimeError(DATA_NODES)
        return read(self, position, size)

    monkeypatch.setattr(Reader, "read_range", fail_first)
    with remote.RemoteFiles(system, "hdfs://node:9820/").open(path) as source:
        assert source.read(0, 61) == (BROKER / "one-0" / f"{0:020}.log").read_bytes()[:61]
    assert len(clock.pauses) == 3


@pytest.mark.parametrize("region", [None, "eu-west-1"])
def test_a_bucket_of_aws_is_read_in_its_own_region(monkeypatch, region):
    """S3A follows the region. PyArrow with keys as arguments asks us-east-1 for a bucket of eu-west-1."""

    def resolve(bucket):
        assert bucket == "logs"
        return "eu-west-1"

    for name in ("AWS_REGION", *stores._ENDPOINTS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(fs, "resolve_s3_region", resolve if region is None else None)
    given = {**KEYS, **({} if region is None else {"fs.s3a.endpoint.region": region})}
    monkeypatch.setenv(stores.VARIABLE, json.dumps(given))
    system, path = stores.client("s3", "//logs/broker-1")
    assert (system.region, path) == ("eu-west-1", "logs/broker-1")


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_aws_is_not_asked_for_the_region_of_another_store(monkeypatch, name):
    monkeypatch.setattr(fs, "resolve_s3_region", None)
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv(stores.VARIABLE, json.dumps(KEYS))
    assert stores.client("s3", "//logs/broker-1")[1] == "logs/broker-1"


def test_without_an_answer_about_its_region_a_bucket_has_that_of_the_environment(monkeypatch):
    def resolve(_):
        raise OSError

    monkeypatch.setattr(fs, "resolve_s3_region", resolve)
    monkeypatch.setenv(stores.VARIABLE, json.dumps(KEYS))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert stores.client("s3", "//logs/broker-1")[1] == "logs/broker-1"


def test_a_path_may_have_the_characters_of_keys(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv(stores.VARIABLE, json.dumps(KEYS))
    monkeypatch.setattr(stores, "_by_arrow", None)  # it does not use the settings
    assert stores.client("s3", "//logs/a@b:c")[1] == "logs/a@b:c"
