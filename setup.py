"""What pyproject.toml cannot say: the kernel is compiled on all cores, man pages and completions are made."""

import os
import sys
from distutils.command.install_data import install_data
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).parent
KERNEL = "kdump/kernel"
SHARED = "kdump.kernel.shared"
"""Cython's code for memoryviews, compiled once: each module would have its own copy, the larger half of its code."""


def kernel() -> list[Extension]:
    """Return the modules of the kernel, one for each source, and what they share.

    They are optional: without a C compiler there is no kernel, and kdump is slower (kdump/kernel/__init__.py).
    """
    os.chdir(HERE)
    sources = sorted(Path(KERNEL).glob("*.pyx"))
    depends = sorted(map(str, Path(KERNEL).glob("*.pxd")))
    names = {f"kdump.kernel.{source.stem}": source for source in sources}
    return [
        Extension(name, [str(source)], depends=depends, extra_compile_args=["-g0"], optional=True)
        for name, source in ({SHARED: Path(KERNEL) / "shared.c"} | names).items()
    ]


class BuildKernel(build_ext):
    """Translates and compiles on all cores."""

    def run(self) -> None:
        from Cython.Build import cythonize

        translated = cythonize(
            self.extensions,
            nthreads=os.cpu_count(),
            build_dir=f"{self.build_temp}/c",
            shared_utility_qualified_name=SHARED,
            compiler_directives={"show_performance_hints": False},
        )
        for extension, code in zip(self.extensions, translated, strict=True):
            extension.sources = code.sources
        super().run()


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


setup(
    cmdclass={"build_ext": BuildKernel, "install_data": InstallShare},
    ext_modules=kernel(),
    data_files=[("share/man/man1", [])],
)
