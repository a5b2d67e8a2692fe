"""Code for tests, tools and benches: forged batches, golden files, seeded damage, and runs of kdump."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
GOLDEN: Final = ROOT / "golden"
