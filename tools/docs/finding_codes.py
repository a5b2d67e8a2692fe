"""Write docs/finding-codes.md from the one table of codes: ``python -m tools.docs.finding_codes``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kdump.findings.codes import CODES

PAGE: Final = Path(__file__).parents[2] / "docs" / "finding-codes.md"
HEAD: Final = """# Finding codes

`kdump check /var/kafka -o jsonl` prints a `code` with each finding. Codes are stable: scripts may rely on them. The
level is that of the gravest finding with this code. `log` gives exit status 3, `derived` gives 4, and a `remark`
changes no exit status. A finding also gives 3 if a broker does not start, or if records are missing or would be lost.

| Code | Level | Meaning | What to do | Decided by |
|---|---|---|---|---|
"""


def page() -> str:
    rows = (f"| `{row}` | {row.level} | {row.sentence} | {row.hint or '-'} | {row.source} |\n" for row in CODES)
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page())
