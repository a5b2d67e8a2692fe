"""What pyproject.toml cannot say: the kernel is compiled on all cores, man pages and completions are made."""

import os
import sys
from distutils.command.install_data import install_data
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from kdump import kernel  # noqa: E402  from this folder, whatever the caller's path is

FOLDER = Path("kdump", "kernel")


def extensions() -> list[Extension]:
    """Return the modules of the kernel, and the code of Cython that they share: the larger half of each otherwise.

    They are optional: without a C compiler there is no kernel, and kdump is slower (kdump/kernel/__init__.py).
    """
    os.chdir(HERE)
    depends = sorted(map(str, FOLDER.glob("*.pxd")))
    sources = {kernel.SHARED: "shared.c"} | {name: f"{name}.pyx" for name in kernel.MODULES}
    options = {"depends": depends, "extra_compile_args": ["-g0"], "optional": True}
    return [Extension(f"kdump.kernel.{name}", [str(FOLDER / source)], **options) for name, source in sources.items()]


class BuildKernel(build_ext):
    """Translates and compiles on all cores."""

    def run(self) -> None:
        from Cython.Build import cythonize

        translated = cythonize(
            self.extensions,
            nthreads=os.cpu_count(),
            build_dir=f"{self.build_temp}/c",
            shared_utility_qualified_name=f"kdump.kernel.{kernel.SHARED}",
            compiler_directives={"show_performance_hints": False},
        )
        for extension, code in zip(self.extensions, translated, strict=True):
            extension.sources = code.sources
        super().run()


class InstallShare(install_data):
    """Puts man pages and completions into share/."""

    def run(self) -> None:
        from tools import man_pages

        made = HERE / "build" / "share"
        folders: dict[str, list[str]] = {}
        for path in man_pages.write(made):
            folders.setdefault(str(Path("share") / path.parent.relative_to(made)), []).append(str(path))
        self.data_files = list(folders.items())
        super().run()


setup(
    cmdclass={"build_ext": BuildKernel, "install_data": InstallShare},
    ext_modules=extensions(),
    data_files=[("share/man/man1", [])],
)
