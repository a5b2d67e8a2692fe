"""Show that `kdump check` has no false alarm: healthy log dirs give exit status 0.

    python -m tools.prove.healthy FOLDER [FOLDER ...]

Each FOLDER is searched for log dirs, which have a meta.properties. Log dirs of one broker side by side are checked
together, as a broker starts with all of them. A FOLDER without a log dir is checked itself. Prints a line for each
check with another exit status, with the check's last line. The exit status is then 1.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from kdump.errors import many
from kdump.formats import meta_properties
from kdump.log_dirs.file_names import META_PROPERTIES, parse_folder
from tools import arguments


def brokers(folder: Path) -> list[list[Path]]:
    """Return the log dirs below a folder, grouped by broker: the same parent folder, node.id and cluster.id."""
    found: dict[object, list[Path]] = defaultdict(list)
    for file in sorted(folder.rglob(META_PROPERTIES)):
        properties = meta_properties.read(file.read_bytes())
        found[file.parent.parent, properties.broker_id, properties.cluster_id].append(file.parent)
    return list(found.values()) or [[folder]]


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    groups = [group for folder in parser.parse_args().folders for group in brokers(folder)]
    alarms = 0
    for group in groups:
        words = [sys.executable, "-m", "kdump", "check", "--", *map(str, group)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            alarms += 1
            last = (done.stdout + done.stderr).strip().rpartition("\n")[2]
            print(f"{done.returncode}: {' '.join(map(str, group))}: {last}")
    folders = sum(parse_folder(path.name) is not None for group in groups for each in group for path in each.iterdir())
    print(f"{many(len(groups), 'check')} of {many(folders, 'partition folder')}: {many(alarms, 'false alarm')}")
    sys.exit(alarms > 0)


if __name__ == "__main__":
    main()
