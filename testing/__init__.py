"""Code for tests, tools and benches: forged batches, golden files, seeded damage, kdump in a process of its own."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
GOLDEN: Final = ROOT / "golden"
