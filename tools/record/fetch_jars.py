"""Fetch the jars of Kafka releases from Maven Central, so that the real DumpLogSegments can be run.

    python -m tools.record.fetch_jars 4.3.1 4.2.2 0.8.2.1

puts each release with all it needs into its own folder, ~/.cache/kdump/jars/RELEASE by default, and prints the folders.
A complete folder stays unchanged. From 4.3 on tool and server are separate: `--server` fetches the server to
RELEASE-server. Needs `mvn` (Maven 3) and a JDK.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import arguments

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kdump" / "jars"

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kdump</groupId>
  <artifactId>original</artifactId>
  <version>1</version>
  <dependencies>{dependencies}
  </dependencies>
</project>
"""

DEPENDENCY = """
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>
      <exclusions>{exclusions}
      </exclusions>
    </dependency>"""

# Parents of log4j 1.2.15 that Central never held, and build-time leftovers in the poms of 0.8: the tool needs none.
NOT_NEEDED = ["com.sun.jmx:jmxri", "com.sun.jdmk:jmxtools", "javax.jms:jms", "javax.mail:mail"]


def numbers(release: str) -> tuple[int, ...]:
    """Return a release as numbers: "0.8.2.1" -> (0, 8, 2, 1)."""
    return tuple(int(part) for part in release.split("."))


def apart(release: str) -> bool:
    """Return whether the tool is not in the server's jar: 4.3 moved it to kafka-tools."""
    return numbers(release) >= (4, 3)


def coordinates(release: str, *, server: bool = False) -> list[str]:
    """Return group:artifact:version of the tool, or of the server, whose jar has the Scala version in its name."""
    if apart(release) and not server:
        return [f"org.apache.kafka:kafka-tools:{release}"]
    firsts = {(2, 6): "2.13", (2, 1): "2.12", (0, 9): "2.11", (0, 8, 2): "2.10", (0,): "2.9.2"}
    scala = next(suffix for first, suffix in firsts.items() if numbers(release) >= first)
    return [f"org.apache.kafka:kafka_{scala}:{release}"]


def main_class(release: str) -> str:
    """Return the class with the tool's main method."""
    return ("org.apache.kafka.tools" if apart(release) else "kafka.tools") + ".DumpLogSegments"


def pom(wanted: list[str]) -> str:
    """Return a project that depends only on these artifacts."""
    exclusions = "".join(
        f"\n        <exclusion><groupId>{g}</groupId><artifactId>{a}</artifactId></exclusion>"
        for g, a in (name.split(":") for name in NOT_NEEDED)
    )
    parts = (coordinate.split(":") for coordinate in wanted)
    dependencies = [DEPENDENCY.format(group=g, artifact=a, version=v, exclusions=exclusions) for g, a, v in parts]
    return POM.format(dependencies="".join(dependencies))


def fetch(release: str, cache: Path = CACHE, *, server: bool = False) -> Path:
    """Return the folder with the jars of a release's tool or server, which is downloaded if missing.

    Raises subprocess.CalledProcessError if Maven fails; it prints the reason on standard error.
    """
    folder = cache / (f"{release}-server" if server and apart(release) else release)
    return gather(coordinates(release, server=server), folder)


def gather(wanted: list[str], folder: Path) -> Path:
    """Download artifacts ("group:name:version") and their dependencies into a folder, if it is missing; return it.

    Raises subprocess.CalledProcessError if Maven fails; it prints the reason on standard error.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        project, jars = Path(temporary, "pom.xml"), Path(temporary, "jars")
        project.write_text(pom(wanted), encoding="utf-8")
        command = ["mvn", "--quiet", "--batch-mode", "--file", str(project), "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        subprocess.run(command, check=True, stdout=sys.stderr)
        jars.rename(folder)
    return folder


def main() -> int:
    """Fetch the releases named on the command line."""
    parser = arguments.parser(__doc__)
    parser.add_argument("releases", nargs="+", metavar="RELEASE", help="such as 4.3.1")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder that keeps the jars (%(default)s)")
    parser.add_argument("--server", action="store_true", help="the server, not the tool")
    options = parser.parse_args()
    failed = 0
    for release in options.releases:
        try:
            print(fetch(release, options.cache, server=options.server), flush=True)
        except subprocess.CalledProcessError as reason:
            print(f"{release}: Maven ended with exit status {reason.returncode}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
