import os
import re
import subprocess
import sys
import tomllib

import click
import pytest

from kdump.commands.dump import SECTIONS
from kdump.commands.root import COMMANDS, GROUPS, root, short_help
from kdump.dump_log_segments.decoders import PARSERS
from kdump.internal_topics import DECODER_SWITCHES
from kdump.internal_topics.decode import TOPICS
from testing import GOLDEN, ROOT, forge
from testing.processes import FIRST_LINE, dump, kdump, python

BATCH = forge.batch([forge.record(b"k", b"v", headers=[(b"h", None)])], base_timestamp=5)


@pytest.fixture
def segment(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(BATCH)
    return path


def test_bare_kdump_shows_how_it_is_used():
    done = kdump()
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"kdump help" in done.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--print-data-log"], b"--files is missing"),
        (["--frobnicate", "--files", "x.log"], b"No such option"),
        (["--files", "x.log", "--max-bytes", "many"], b"Invalid value"),
        (["--compat", "0.7", "--files", "x.log"], b"older than"),
        (["check", ".", "--release", "0.1"], b"Kafka 0.1 is older than 0.8.0, the oldest release that kdump knows"),
        (["retention", ".", "--release", "0.7.2"], b"older than"),
        (["--compat", "new", "--files", "x.log"], b"not a Kafka release"),
        (["no-such-command"], b"No such command"),
        (["-o", "jsonl", "check", "x"], b"No such option '-o'. Write the options of check after its name."),
        (["dump", "--from", "3", "x"], b"No such option '--from'. Did you mean '--since'?"),
        (["offsets", "--max-messages", "3", "x"], b"No such option '--max-messages'."),
        (["check", "--format", "json", "x"], b"No such option '--format'. Did you mean '--output'?"),
        (["explain", "orders-0@5", "/var/kafka"], b"'--in'.\nhint: kdump explain orders-0@5 --in /var/kafka\n"),
        (["get", "--", "o-0@5", "--in", "x"], b"'--in'.\nhint: kdump get o-0@5 --in x\n"),
        (["explain", "a b-0@5..7", "-o", "csv", "x y"], b"hint: kdump explain 'a b-0@5..7' -o csv --in 'x y'\n"),
        (
            ["get", "orders-0@5"],
            b"Missing option '--in'. It names what to read: a log dir, folder,",
        ),
        (
            ["coordinator", "billing"],
            b"'--type'. Choose from: group, transaction, share\nhint: kdump coordinator --help\n",
        ),
        (["dump", "--in", "/var/kafka", "--count"], b"'--in'.\nhint: kdump dump /var/kafka --count\n"),
        (["check", "--in=/var/kafka"], b"'--in'.\nhint: kdump check /var/kafka\n"),
        (["dump", "orders-0@3", "--in", "x"], b"'--in'.\nhint: kdump get orders-0@3 --in x\n"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_why(args, says):
    done = kdump(*args)
    assert (done.returncode, done.stdout) == (2, b"")
    assert says in done.stderr


MANY_DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "words",
    [
        ["dump", ".", "--since", MANY_DIGITS],
        ["dump", ".", "--since", f"-{MANY_DIGITS}s"],
        ["dump", ".", "--offset", MANY_DIGITS],
        ["dump", ".", "--offset", f"1..{MANY_DIGITS}"],
        ["dump", ".", "--partition", MANY_DIGITS],
        ["dump", ".", "--producer-id", f"1-{MANY_DIGITS}"],
        ["dump", ".", "--begin", f"x.log@{MANY_DIGITS}"],
        ["dump", ".", "--max-batch-bytes", MANY_DIGITS],
        ["get", f"one-0@{MANY_DIGITS}", "--in", "."],
        ["get", f"one-{MANY_DIGITS}@0", "--in", "."],
        ["explain", f"one-0@{MANY_DIGITS}", "--in", "."],
        ["explain", f"one-0@0..{MANY_DIGITS}", "--in", "."],
        ["metadata", ".", "--diff", f"0..{MANY_DIGITS}"],
        ["offsets", ".", "--time", MANY_DIGITS],
        ["check", ".", "--config", f"node.id={MANY_DIGITS}"],
        ["retention", ".", "--config", f"*:retention.ms={MANY_DIGITS}"],
    ],
    ids=lambda words: " ".join(words).replace(MANY_DIGITS, "N"),
)
def test_a_number_of_thousands_of_digits_is_wrong_usage(words, tmp_path):
    done = kdump(*words, cwd=tmp_path)  # int() accepts at most 4300 digits
    is_path = "--diff" in words  # for which no such path is found
    assert (done.returncode, done.stdout) == (1 if is_path else 2, b"")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["get", "explain"])
def test_a_path_with_an_offset_is_suggested_as_a_record_of_its_folder(tmp_path, command):
    folder = tmp_path / "d 1" / "orders-0"
    folder.mkdir(parents=True)
    done = kdump(command, f"{folder}@5")
    assert done.returncode == 2
    assert done.stderr.decode().endswith(f"\nhint: kdump {command} orders-0@5 --in '{folder}'\n")


@pytest.mark.parametrize(
    ("words", "as_usual"),
    [
        (["-files", "{log}"], []),
        (["-files={log}", "-print-data-log"], ["--print-data-log"]),
        (["-deep-iteration=true", "-files", "{log}"], ["--deep-iteration"]),
        (["-max-bytes", "100", "--files", "{log}"], ["--max-bytes", "100"]),
        (["--files", "{log}", "-key-decoder-class", "-print-data-log"], ["--print-data-log"]),
    ],
    ids=" ".join,
)
def test_options_have_one_hyphen_or_two_as_in_java(segment, words, as_usual):
    """The original takes both, and a value of an option that has none (asked of 0.8.2, 1.1, 2.8, 3.3, 3.8, 4.4)."""
    words = [word.format(log=segment) for word in words]
    assert dump(*words) == dump("--files", segment, *as_usual) != b""


def test_a_value_of_a_flag_is_ignored_as_in_java_with_a_note(segment):
    done = kdump("--files", segment, "--print-data-log=false")
    assert done.stdout == dump("--files", segment, "--print-data-log")
    assert b"WARNING: --print-data-log takes no value" in done.stderr


def test_an_option_of_a_command_is_no_option_of_the_original(segment):
    assert kdump("dump", segment, "-files").stdout == kdump("dump", segment, "-f", "iles").stdout == b"iles"


def test_options_stand_anywhere_and_words_left_over_are_named(segment):
    done = kdump("--files", segment, "other.log", "--print-data-log")
    assert done.returncode == 0
    assert done.stdout == dump(f"--files={segment}", "--print-data-log")
    assert b"'other.log' is an extra word" in done.stderr


def test_a_list_of_files(segment):
    once = dump("--files", segment)
    assert dump("--files", f"{segment},{segment},") == once + once
    assert dump("--files", ",") == b""


def test_a_missing_file_ends_with_1_after_what_could_be_printed(segment):
    missing = segment.with_name("00000000000000000007.log")
    done = kdump("--files", f"{segment},{missing}")
    assert done.returncode == 1
    assert done.stdout.endswith(b"Log starting offset: 7\n")
    assert b"00000000000000000007.log: No such file" in done.stderr


def test_damage_names_file_and_byte(segment):
    segment.write_bytes(BATCH + bytes(40))
    done = kdump("--files", segment)
    assert done.returncode == 1
    assert str(segment).encode() in done.stderr
    assert f"byte {len(BATCH) + 8}".encode() in done.stderr


def test_decoder_classes(segment):
    for name in ("org.apache.kafka.tools.api.StringDecoder", None):
        args = ["--value-decoder-class", name] if name else ["--value-decoder-class"]
        assert dump("--files", segment, *args).endswith(b" headerKeys: [h] key: k payload: v\n")
    done = kdump("--files", segment, "--value-decoder-class", "no.such.Decoder")
    assert done.returncode == 1
    assert b"no.such.Decoder" in done.stderr


def test_each_topic_of_kafka_has_its_decoder_switch():
    assert set(DECODER_SWITCHES) == set(TOPICS)
    assert set(DECODER_SWITCHES.values()) == set(PARSERS)


@pytest.mark.parametrize("which", ["key", "value"])
def test_a_decoder_switch_leaves_decoder_classes_alone(which):
    segment = GOLDEN / "brokers" / "4.2.2" / "__consumer_offsets-1" / "00000000000000000000.log"
    switch = ["--files", segment, "--offsets-decoder"]
    assert kdump(*switch, f"--{which}-decoder-class", "no.such.Decoder").stdout == kdump(*switch).stdout


def test_a_closed_pipe_is_quiet(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(forge.batch([forge.record(None, None)], base_offset=i) for i in range(20_000)))
    done = kdump("--files", path, shell=FIRST_LINE)
    assert done.stdout.split()[-1] == b"141"
    assert done.stderr == b""


def test_inputs_are_only_read(segment):
    segment.chmod(0o400)
    before = segment.stat()
    dump("--files", segment, "--print-data-log")
    after = segment.stat()
    assert (before.st_mtime_ns, before.st_size, list(segment.parent.iterdir())) == (
        after.st_mtime_ns,
        after.st_size,
        [segment],
    )


def script() -> list[str]:
    """The script that pip writes for the command ``kdump`` of pyproject.toml."""
    module, function = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["kdump"].split(":")
    return ["-c", f"import re\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"]


ENTRIES = {"kdump": script(), "python -m kdump": ["-m", "kdump"]}


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize(
    "module", ["kdump.cli", "click", "kdump.output.stdout", "kdump.commands.check", "kdump.checks.whole_partition"]
)
def test_ctrl_c_while_modules_are_imported_is_quiet(tmp_path, name, module):
    """A finder presses Ctrl-C when the module is imported."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = python(*ENTRIES[name], "check", "nothing", env=env)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, b"", b"")  # click ends the line of ^C


def test_a_profiler_says_what_it_has_seen():
    """The process does not end earlier."""
    done = subprocess.run(
        [sys.executable, "-m", "cProfile", "-m", "kdump", "--version"], capture_output=True, check=True
    )
    assert b"kdump, version" in done.stdout
    assert b"function calls" in done.stdout


def test_what_is_registered_for_the_end_is_done():
    code = "import atexit; atexit.register(print, 'it ran'); from kdump.__main__ import run; run()"
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, check=True)
    assert done.stdout.endswith(b"it ran\n")


def test_nothing_slow_is_imported_before_ctrl_c_is_heeded():
    code = "import sys; before = set(sys.modules); import kdump.__main__; print(*sorted({*sys.modules} - before))"
    done = python("-S", "-c", code, check=True)
    assert done.stdout.split() == [b"__future__", b"kdump", b"kdump.__main__"]


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_help_fits_a_terminal_of_80_columns(name):
    command = root if name is None else root.get_command(click.Context(root), name)
    context = click.Context(command, info_name=f"kdump {name or ''}".rstrip(), terminal_width=80)
    lines = command.get_help(context).splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if line.endswith("...") and "Usage:" not in line] == [], "no help text is shortened"
    assert [option.name for option in command.params if isinstance(option, click.Option) and not option.help] == []
    assert name in (None, "compat", "completion") or any("Exit status:" in line for line in lines)


@pytest.mark.parametrize("width", [60, 78, 80])
def test_what_commands_do_is_wrapped_and_not_cut(width):
    text = root.get_help(click.Context(root, info_name="kdump", terminal_width=width))
    assert [line for line in text.splitlines() if len(line) > width] == []
    whole = " ".join(text.split())
    assert [name for names in GROUPS.values() for name in names if f" {name} {names[name]}" not in whole] == []


def test_help_lists_every_command_once_in_its_group():
    _, *flat = re.split(r"^(\w[\w ]*):$", kdump("--help", check=True).stdout.decode(), flags=re.MULTILINE)
    listed = dict(
        zip(flat[::2], (re.findall(r"^  ([a-z][a-z-]*) ", body, re.MULTILINE) for body in flat[1::2]), strict=True)
    )
    assert {title: listed[title] for title in GROUPS} == {title: list(names) for title, names in GROUPS.items()}


COMPLETE = "import sys; from kdump.cli import main; sys.argv = ['kdump']; sys.exit(main())"
"""The command of a shell's completion: the console script, without arguments."""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_list_says_of_a_command_what_its_own_help_says(name):
    command = root.get_command(click.Context(root), name)
    (sentence,) = [names[name] for names in GROUPS.values() if name in names]
    assert command.get_short_help_str(len(sentence)) == sentence
    assert short_help(name) == command.get_short_help_str()
    assert not command.hidden


def test_names_of_commands_are_completed_with_what_they_do():
    asked = {"_KDUMP_COMPLETE": "fish_complete", "COMP_WORDS": "kdump", "COMP_CWORD": "d"}
    done = python("-c", COMPLETE, env={**os.environ, **asked}, check=True)
    assert re.findall(r"^plain,(.*)\t(.*)$", done.stdout.decode(), re.MULTILINE) == [
        ("dump", "Print the records of Kafka's log segments."),
        ("diff", "Compare the copies that brokers have of..."),
        ("du", "Show what fills the disk: every folder and..."),
    ]


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["dump", GOLDEN / "brokers" / "4.2.2", "--topic", "one,c-z"], ["one,c-zstd"]),
        (["check", GOLDEN / "brokers" / "4.2.2", "--topic", "he"], ["headers"]),
        (["dump", GOLDEN / "nowhere", "--topic", "he"], []),
        (["dump", "x", "--fields", "offset,keyE"], ["offset,keyEncoding"]),
        (["dump", "x", "--batches", "--fields", "baseO"], ["baseOffset"]),
        (["dump", "x", "--type", "data,to"], ["data,tombstone"]),
        (["--compat", "0.8"], ["0.8.0", "0.8.1", "0.8.2"]),
    ],
)
def test_words_of_options_are_completed(words, completed):
    line = " ".join(map(str, ["kdump", *words]))
    asked = {"_KDUMP_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    done = python("-c", COMPLETE, env={**os.environ, **asked}, check=True)
    assert [text.removeprefix("plain,") for text in done.stdout.decode().split()] == completed


def test_options_of_dump_stand_in_sections():
    text = kdump("help", "dump", check=True).stdout.decode()
    titles = re.findall(r"^(\w[\w ]*):$", text, re.MULTILINE)
    assert titles == ["Which files", "Which records", "What to print", "How"]
    parameters = {param.name for param in root.get_command(click.Context(root), "dump").params}
    assert {name for names in SECTIONS.values() for name in names} <= parameters
