"""Run the real DumpLogSegments of any Kafka release, many times in one JVM.

    for run in original.runs("4.2.2", {"some name": ["--files", "00000000000000000000.log"]}, folder):
        print(run.name, run.status, run.stdout)

`fetch_jars` downloads the release, `RunOriginal.java` runs it; both results stay in ~/.cache/kdump.
"""

import base64
import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.record.fetch_jars import CACHE, fetch, main_class

SOURCE = Path(__file__).with_name("RunOriginal.java")

# Lines on stderr that come from the JVM or from a logging library, and not from the tool.
NOISE = re.compile(
    r"SLF4J|log4j:|WARNING:|OpenJDK |\[main\] |\s+at |\s+\.\.\. \d+ "
    r"|\[?\d{4}-\d\d-\d\d .*(WARN|ERROR|INFO)|ERROR StatusLogger|\d{4}-\d\d-\d\dT\S+ main (ERROR|WARN)"
)


class Run(NamedTuple):
    """One run of the original: its name, exit status and unchanged output."""

    name: str
    status: int
    stdout: bytes
    stderr: bytes


def classes() -> Path:
    """Return the folder with the compiled runner, which is compiled again after a change."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    folder = CACHE.parent / "classes" / digest
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            command = ["javac", "-nowarn", "-d", f"{temporary}/out", str(SOURCE)]
            subprocess.run(command, check=True, stderr=subprocess.PIPE)
            Path(temporary, "out").rename(folder)
    return folder


def runs(release: str, cases: Mapping[str, Sequence[str]], folder: Path) -> Iterator[Run]:
    """Run each case (name -> arguments) of a release's tool with `folder` as the working directory.

    Names and arguments contain no tab and no line end. Raises subprocess.CalledProcessError if the JVM itself fails.
    """
    jars = fetch(release)
    with tempfile.TemporaryDirectory() as temporary:
        wanted, results = Path(temporary, "cases"), Path(temporary, "results")
        lines = ("\t".join([name, *arguments]) + "\n" for name, arguments in cases.items())
        wanted.write_text("".join(lines), encoding="utf-8")
        command = ["java", "-Djava.security.manager=allow", "-Dfile.encoding=UTF-8", "-Xmx1g", "-XX:+UseSerialGC"]
        command += ["-cp", f"{classes()}:{jars}/*", "RunOriginal", main_class(release), str(wanted), str(results)]
        subprocess.run(command, check=True, cwd=folder, capture_output=True)
        with results.open(encoding="ascii") as lines_of_results:
            for line in lines_of_results:
                name, status, stdout, stderr = line.rstrip("\n").split("\t")
                yield Run(name, int(status), base64.b64decode(stdout), base64.b64decode(stderr))


def without_noise(stderr: str) -> str:
    """Return the tool's own lines on standard error."""
    return "".join(line for line in stderr.splitlines(keepends=True) if line.strip() and not NOISE.match(line))
