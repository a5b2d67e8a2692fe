"""Start a real controller on a snapshot that kdump writes: it must give the same answers as before.

    python -m tools.prove.metadata_snapshot [--release 4.2.2]

A node creates topics, deletes some, sets configs, describes them and stops. Its metadata log is then replaced by the
snapshot of ``kdump metadata --write-snapshot``. The node is started again and must describe the same.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tools.prove.broker import Broker

CLIENT: Final = Path(__file__).with_name("DescribeClient.java")
LOG: Final = "__cluster_metadata-0"
WAIT: Final = 30
"""The number of seconds until partitions must have their leaders again."""


def main() -> int:
    """Run the proof; return 0 if both answers are the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="4.2.2")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        return prove(options.release, Path(made))


def prove(release: str, folder: Path) -> int:
    """Query a node before and after its metadata log is replaced."""
    broker = Broker(release, folder / "node")
    metadata = broker.folder / "metadata"
    with broker:
        broker.run(CLIENT, broker.address, "create")
        before = described(broker)
    written = folder / "written"
    command = [sys.executable, "-m", "kdump", "metadata", str(metadata), "--write-snapshot", str(written)]
    subprocess.run(command, check=True)
    shutil.rmtree(metadata / LOG)
    (metadata / LOG).mkdir()
    (snapshot,) = written.iterdir()
    shutil.copy(snapshot, metadata / LOG)
    with broker:
        after = described(broker)
        deadline = time.monotonic() + WAIT
        while after != before and time.monotonic() < deadline:
            time.sleep(1)
            after = described(broker)
    for line in sorted(set(before) ^ set(after)):
        print(f"{'before' if line in before else 'after '}: {line}")
    print(f"{snapshot.name}: {len(before)} lines of topics and configs, {len(set(before) ^ set(after))} differ")
    return int(before != after)


def described(broker: Broker) -> list[str]:
    """Return the node's description of its topics and configs."""
    return broker.run(CLIENT, broker.address, "describe").splitlines()


if __name__ == "__main__":
    sys.exit(main())
