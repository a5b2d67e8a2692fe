"""Only kdump/output/files.py and the two modules below it write local files.

Only spark/export/folder.py writes to HDFS and object stores, through Spark's session. Spark's own writers write the
rows, into folders that are then published in this way.
"""

import ast
import re

import pytest

from testing import ROOT

PACKAGE = ROOT / "kdump"
WAY_OUT = {"output/files.py", "output/parts.py", "output/access.py"}
ALLOWED = {
    "log_dirs/unpacking.py": {"tempfile.TemporaryFile"},  # decompressed bytes; a file without a name.
    "spark/export/parquet.py": {"tempfile.TemporaryFile"},  # a worker's file on its way to a store; without a name.
    "spark/session.py": {"tempfile.TemporaryFile"},  # the output of Spark; a file without a name.
    "spark/export/commit.py": {"write_text"},  # to a file system that Spark knows.
    "spark/export/following.py": {"write_text"},  # the same.
    "output/stdout.py": {"os.fdopen", "os.open"},  # the standard streams, and /dev/null in their place
}
"""Other modules that write: the calls, and the reason."""
PATHS = {
    "mkdir",
    "rename",
    "touch",
    "write_text",
    "write_bytes",
    "unlink",
    "rmdir",
    "symlink_to",
    "hardlink_to",
    "chmod",
}
OF_OS = {"mkdir", "makedirs", "rename", "renames", "replace", "link", "symlink", "unlink", "remove", "rmdir"}
OF_OS |= {"truncate", "mkfifo", "mknod", "chmod", "chown"}
OWNERS = {
    "os": OF_OS,
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move", "rmtree"},
    "tempfile": {"TemporaryFile", "NamedTemporaryFile", "TemporaryDirectory", "mkstemp", "mkdtemp"},
}
OF_SPARK = {"self._files", "self._texts", "self", "self._place", "output", "source", "account", "staging", "made"}
"""Objects of the export with the methods of a file system in Spark."""
OF_HELP = {"formatter"}
"""Objects that write the help of commands into a text."""


def writes(source):
    """Return the calls of a source that may write to a file system, by line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        words = ast.unparse(node.func)
        owner, _, name = words.rpartition(".")
        arguments = [*node.args[(not owner or owner == "os") :], *(key.value for key in node.keywords)]
        modes = [one.value for one in arguments if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        opens = name in {"open", "fdopen"} and any({*mode} & {*"wxa+"} and len(mode) <= 3 for mode in modes)
        flags = words == "os.open" and any(flag in ast.unparse(node) for flag in ("O_CREAT", "O_WRONLY", "O_RDWR"))
        replaces = name == "replace" and len(node.args) == 1 and not node.keywords
        if flags or (owner in OWNERS and (name in OWNERS[owner] or opens)):
            found.append((node.lineno, words))
        elif (opens or (owner and (name in PATHS or replaces))) and owner not in {*OWNERS, *OF_SPARK, *OF_HELP}:
            found.append((node.lineno, name))
    return found


@pytest.mark.parametrize(
    "line",
    [
        "open('x', 'w')",
        "open('x', mode='ab')",
        "path.open('xb')",
        "os.open('x', os.O_CREAT | os.O_WRONLY)",
        "path.mkdir(parents=True)",
        "os.rename('a', 'b')",
        "path.replace(other)",
        "os.link('a', 'b')",
        "path.write_bytes(b'')",
        "shutil.rmtree('x')",
        "tempfile.mkdtemp()",
    ],
)
def test_what_writes_is_seen(line):
    assert len(writes(line)) == 1


@pytest.mark.parametrize(
    "line", ["open('x', 'rb')", "text.replace('a', 'b')", "os.open('x', os.O_RDONLY)", "time.replace(hour=1)"]
)
def test_what_reads_is_not(line):
    assert writes(line) == []


HADOOP = {"mkdirs", "create", "createNewFile", "append", "rename", "delete", "deleteOnExit", "concat", "truncate"}
HADOOP |= {"setPermission", "setOwner", "setTimes", "copyFromLocalFile", "moveFromLocalFile", "setReplication"}
HADOOP_OWNERS = re.compile(r".*(_files|_texts|FileSystem\(.*\)|FileUtil|FileContext|\bfs)")
"""The objects that are a file system of Hadoop, or make one; only the package ``spark`` has any."""
SPARK = {"save", "saveAsTable", "insertInto", "saveAsTextFile", "parquet", "orc", "csv", "json", "writeTo"}
HADOOP_WAY_OUT = "spark/export/folder.py"
SPARKS_WRITERS = {"spark/export/output.py": {"save"}}
"""Modules that let Spark write rows."""


def hadoop_writes(source):
    """Return the calls that write to a Hadoop file system, by line, and the calls of Spark's writers."""
    found, rows = [], []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, name = ast.unparse(node.func.value), node.func.attr
            if name in HADOOP and HADOOP_OWNERS.fullmatch(owner):
                found.append((node.lineno, name))
            elif name in SPARK and ("writer" in owner or ".write" in owner):
                rows.append((node.lineno, name))
    return found, rows


@pytest.mark.parametrize(
    "line",
    [
        "self._files.mkdirs(path)",
        "output._texts.rename(a, b)",
        "path.getFileSystem(conf).delete(path, True)",
        "jvm.org.apache.hadoop.fs.FileUtil.setOwner(a)",
        "self._files.getRawFileSystem().create(path, True)",
    ],
)
def test_what_writes_to_hadoop_is_seen(line):
    assert len(hadoop_writes(line)[0]) == 1


def test_hadoop_is_written_by_one_module():
    found, rows = {}, {}
    for path in sorted((PACKAGE / "spark").rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        there = hadoop_writes(path.read_text())
        if there[0]:
            found[name] = there[0]
        if there[1]:
            rows[name] = {call for _, call in there[1]}
    assert [*found] == [HADOOP_WAY_OUT]
    assert rows == SPARKS_WRITERS


def test_what_spark_publishes_on_this_machine_goes_the_one_way_out():
    """The module's only own rename replaces a text file here; everything else takes a free place."""
    tree = ast.parse((PACKAGE / HADOOP_WAY_OUT).read_text())
    (folder,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    methods = {node.name: ast.unparse(node) for node in folder.body if isinstance(node, ast.FunctionDef)}
    renaming = {name for name, text in methods.items() if ".rename(" in text}
    assert renaming == {"take", "rename", "become", "take_text"}
    for name in ("take", "rename", "become"):
        before, _, _ = methods[name].partition(".rename(")
        assert "_take_place(" in before
        assert "return" in before.rpartition("_take_place(")[2]


def test_nothing_else_writes():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in WAY_OUT:
            calls = [(line, call) for line, call in writes(path.read_text()) if call not in ALLOWED.get(name, ())]
            found.update({f"{name}:{line}": call for line, call in calls})
    assert found == {}


def test_what_is_allowed_is_used():
    for name, allowed in ALLOWED.items():
        assert allowed == {call for _, call in writes((PACKAGE / name).read_text())} & allowed
