"""The README and the pages under docs/: each command line runs, and each output equals what kdump prints."""

import doctest
import importlib.util
import re
import shutil
import tarfile

import click
import pytest

from kdump.cli import WELCOME
from kdump.commands import help as help_command
from kdump.commands import root
from testing import GOLDEN, ROOT, forge, tiered
from tests.helpers import log_dirs
from tools.docs import layouts, pictures, shown, site, tables

TEXTS = {str(path.relative_to(ROOT)): path.read_text() for path in shown.PAGES}
HELP = {name: site.help_of(name) for name in (None, *root.COMMANDS)} | {
    "welcome": WELCOME,
    "files": root.FILES_TEXT,
    "incidents": "".join(f" {line}\n" for line in help_command.INCIDENTS.values()),
}
LINES = sorted(
    {line for text in TEXTS.values() for line in shown.command_lines(text)}
    | {line for text in HELP.values() for line in re.findall(r"^ +(kdump .*?)(?=  |$)", text, re.MULTILINE)}
)
PARSED = re.compile(r"spark-export|kdump mcp|--master|--follow|^kdump \S+$|\.\.\.(?!\d)|PATH|DIR|LEFT|TOPIC|COMMAND")
"""Command lines that are only parsed: they start Spark, never end, are a name, or contain a placeholder."""
STAGED = re.compile(r"(?<=[ ,])/(var|broker\d|b\d|disk\d|backup)")
WRITTEN = re.compile(
    r"(?<=[ >])(/mnt|/tmp|~)?/?"
    r"(rescue|fresh|new|exported|restore\.sh|offsets\.csv|cut\.log|values\.txt|orders\.csv|report\.html|\.config\S*)"
)
"""Paths that exist on the stage, and paths that are written."""
COPIED = ("__consumer_offsets-0", "__consumer_offsets-1", "__transaction_state-0", "__cluster_metadata-0")
"""Folders of the golden broker that are also on the stage."""
REPLICAS = (
    *("broker1", "broker2", "broker3", "broker1/kafka", "broker2/kafka", "broker3/kafka", "disk1", "disk2", "backup"),
    *(
        "b1/data1",
        "b1/data2",
        "b2/data1",
        "b2/data2",
        "backup/broker-1",
        "backup/broker-2",
        "var/kafka-1",
        "var/kafka-2",
    ),
)
STATUS = {
    "kdump metadata /var/kafka --tree /topics/orders": 2,
    "kdump connect /var/kafka --configs-topic my-configs --status-topic my-status": 1,
    "kdump get __consumer_offsets-3@17 --in /var/kafka --decode auto": 5,
    "kdump rebuild-cluster /backup/broker-1 /backup/broker-2 --plan": 3,
    "kdump metadata /broker1 --write-snapshot /tmp/new --voters 1@c1:9093": 2,
    "kdump rebuild-cluster /backup/broker-1 --out /mnt/new --node 1@k1:9092/9093": 3,
    "kdump rebuild-cluster /backup/broker-1 /backup/broker-2 --out /mnt/new --node 1@kafka1:9092/9093": 3,
}
"""Command lines whose data the stage lacks: a topic, partitions of offsets, or folders of topics in the metadata."""
TIME = 1_790_000_000_000


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """A folder with all files that the command lines of the docs name, as its own root."""
    root = tmp_path_factory.mktemp("stage")
    golden = GOLDEN / "brokers" / "4.2.2"
    broker = root / "var" / "kafka"
    for name in ("orders-0", "prices-0"):
        log_dirs.write(broker, name, {0: segment()})
        shown.run(f"kdump rebuild-index {name} --out {root / 'fresh'}", broker)
        shutil.copytree(root / "fresh" / name, broker / name, dirs_exist_ok=True)
    for name in COPIED:
        shutil.copytree(golden / name, broker / name)
    with tarfile.open(GOLDEN / "registries.tar.xz") as archive:
        members = [one for one in archive if one.name.startswith("confluent/logs/_schemas-0")]
        archive.extractall(root, members, filter="data")
    shutil.move(root / "confluent" / "logs" / "_schemas-0", broker)
    with tarfile.open(GOLDEN / "connect.tar.xz") as archive:
        archive.extractall(root, filter="data")
    for folder in (root / "connect" / "logs").iterdir():
        shutil.move(folder, broker)
    for name in REPLICAS:
        shutil.copytree(broker, root / name, dirs_exist_ok=True)
    for number in (1, 2):
        ids = f"version=1\ncluster.id=nub61tcETP6KClWv92MVHg\nnode.id={number}\n"
        (root / "backup" / f"broker-{number}" / "meta.properties").write_text(ids)
    for name in ("bundle", "backup", "b1", "b2", "b3"):
        with tarfile.open(root / f"{name}.tar.gz", "w:gz") as archive:
            archive.add(broker, name)
    shutil.copytree(broker / "orders-0", root / "orders-0")
    for suffix in ("log", "index", "timeindex"):
        shutil.copy(golden / "txn-0" / f"{0:020}.{suffix}", root / f"0.{suffix}")
    for path in (*golden.glob("txn-0/*.log"), *golden.glob("txn-0/*index")):
        shutil.copy(path, root)
    shutil.copy(next(broker.glob("orders-0/*.log")), root / "segment-of-a-customer.log")
    keys = tiered.Keys()
    (root / "private.pem").write_bytes(keys.pem())
    copied = tiered.Segment(0, 99, batch_of(0), topic="views")
    tiered.Store(root / "var" / "tiered", keys=None).write(copied)
    (root / "query.sql").write_text("from offsets")
    (root / "secret.txt").write_text("a secret of some length")
    return root


def segment():
    """A segment of 2,100 records, a minute apart, in batches of 100."""
    return b"".join(map(batch_of, range(0, 2100, 100)))


def batch_of(first):
    """A batch of 100 records from an offset on."""
    return forge.batch(
        [
            forge.record(b"customer-%d" % (n % 50), b'{"customer":%d}' % n, offset=n - first, timestamp=n - first)
            for n in range(first, first + 100)
        ],
        base_offset=first,
        base_timestamp=TIME + first,
        max_timestamp=TIME + first + 99,
    )


def needs_jq(text):
    if "| jq" in text and shutil.which("jq") is None:
        pytest.skip("jq is not installed")


@pytest.mark.parametrize("page", [name for name, text in TEXTS.items() if shown.BLOCK.search(text)])
def test_the_outputs_are_what_is_printed(page):
    needs_jq(TEXTS[page])
    assert shown.renewed(TEXTS[page]) == TEXTS[page], f"python -m tools.docs.shown {page} renews them"


@pytest.mark.parametrize("line", [line for line in LINES if not PARSED.search(line)])
def test_the_command_line_runs(line, stage, tmp_path):
    needs_jq(line)
    if "golden/" in line:
        done = shown.run(line)
    else:
        staged = WRITTEN.sub(rf"{tmp_path}/\2", STAGED.sub(rf"{stage}/\1", line))
        done = shown.run(staged, stage)
    assert done.status == STATUS.get(line, 0), done.output


@pytest.mark.parametrize("line", [line for line in LINES if PARSED.search(line)])
def test_the_command_line_has_words_that_kdump_knows(line):
    words = shown.parse(re.sub(r" ?\.\.\.", "", line)).words[1:]
    command = (
        root.root
        if words[0].startswith(("-", "/", "./")) or words[0].isupper()
        else root.root.get_command(click.Context(root.root), words[0])
    )
    assert command is not None
    known = {text for option in command.params for text in (*option.opts, *option.secondary_opts)} | {"--help", "-h"}
    assert [word for word in words if re.fullmatch(r"--[a-z-]+|-[a-z]", word) and word not in known] == []


@pytest.mark.parametrize("page", [name for name, text in TEXTS.items() if ">>> " in text])
def test_the_python_does_what_it_says(page, monkeypatch):
    for library in ("pyarrow", "duckdb"):
        if f"import {library}" in TEXTS[page]:
            pytest.importorskip(library)
    monkeypatch.chdir(ROOT)
    globs = {}
    for block in re.findall(r"```python\n(.*?)```", TEXTS[page], re.DOTALL):
        if ">>> " in block:
            test = doctest.DocTestParser().get_doctest(block, globs, page, page, 0)
            globs = test.globs
            assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False).failed == 0


@pytest.mark.parametrize("page", TEXTS)
def test_other_python_compiles(page):
    for block in re.findall(r"```python\n(.*?)```", TEXTS[page], re.DOTALL):
        if ">>> " not in block:
            compile(block, page, "exec")


@pytest.mark.parametrize("page", TEXTS)
def test_tools_and_links_are_there(page):
    for module in re.findall(r"python -m (tools[\w.]*|bench[\w.]*)", TEXTS[page]):
        assert importlib.util.find_spec(module), module
    for mark, name in re.findall(r"<!-- (table|layout): (.+?) -->", TEXTS[page]):
        assert name in tables.TABLES if mark == "table" else layouts.named(name)
    if page == "README.md":
        for target in re.findall(r"\]\(([^)#]+)|(?:src|srcset)=\"([^\"]+)\"", TEXTS[page]):
            assert (ROOT / "".join(target)).exists(), target


def test_the_pictures_are_of_today():
    assert [path.name for path, content in pictures.files() if path.read_text() != content] == [], (
        "python -m tools.docs.pictures draws them again"
    )


def test_a_layout_shows_each_byte_once():
    from kdump.formats.record_layout import BATCH_HEADER

    drawn = layouts.drawing(BATCH_HEADER)
    assert [int(line[:4]) for line in drawn.splitlines() if line[:4].strip()] == [*range(0, 61, 8)]
    assert "baseOffset int64" in drawn
    assert "recordsCount int32" in drawn


def test_every_column_and_file_is_in_its_table():
    from kdump.log_dirs.file_names import FILES
    from kdump.rows import columns

    assert all(f"| {column.name} |" in tables.columns() for column in (*columns.RECORD, *columns.DAMAGE))
    assert all(f"| `{file.name}` |" in tables.files() for file in FILES if file.format)


def test_a_pipe_gets_what_kdump_prints():
    done = shown.run("kdump compat | head -n 1 | cut -c 1-5")
    assert (done.status, done.output) == (0, "0.8.0\n")


def test_an_output_that_differs_is_found():
    assert shown.renewed("```console\n$ kdump compat 2.0.3\nold\n```\n") == (
        "```console\n$ kdump compat 2.0.3\n2.0.1     isControl of a batch\n```\n"
    )
    assert 'title="exit status 2"' in shown.renewed("```console\n$ kdump nothing\n```\n")
