"""What pyproject.toml cannot say: man pages and completions are made from the commands when a wheel is built."""

import sys
from distutils.command.install_data import install_data
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent


class InstallShare(install_data):
    """Puts man pages and completions into share/."""

    def run(self) -> None:
        sys.path.insert(0, str(HERE))
        try:
            from tools import man_pages
        finally:
            sys.path.remove(str(HERE))
        made = HERE / "build" / "share"
        folders: dict[str, list[str]] = {}
        for path in man_pages.write(made):
            folders.setdefault(str(Path("share") / path.parent.relative_to(made)), []).append(str(path))
        self.data_files = list(folders.items())
        super().run()


setup(cmdclass={"install_data": InstallShare}, data_files=[("share/man/man1", [])])
