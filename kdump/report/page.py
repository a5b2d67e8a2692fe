"""The page of a report: one HTML file without external resources.

A content security policy in its head forbids all requests, and all scripts except one with a given checksum. Jinja2
escapes every text outside of the charts; control characters and characters that change the text direction are escaped
before. The document is embedded as gzipped JSON in base64, which has no characters with a meaning in HTML.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from importlib import resources
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from kdump import __version__
from kdump.errors import UsageError
from kdump.primitives.terminal import harmless_line
from kdump.printers.json_text import harmless_json
from kdump.printers.quantities import size, time
from kdump.report.series import on_disk

if TYPE_CHECKING:
    from kdump.report.document import LogDirReport

NEEDS: Final = {"jinja2": "Jinja2", "vl_convert": "vl-convert-python"}
POLICY: Final = "default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'"
PAPER: Final = 30
"""Maximum number of rows of a table on paper; ``page.css`` and ``page.js`` have the same number."""
PARTS: Final = {
    "findings": "Findings",
    "damage": "Damage",
    "timeline": "Timeline",
    "replicas": "Replicas",
    "disk": "Disk",
    "time": "Over time",
    "retention": "Retention",
    "topics": "Batches and codecs",
    "transactions": "Transactions",
    "groups": "Groups",
    "metadata": "Metadata events",
    "partitions": "Partitions",
    "said": "Not read or not used",
}
"""The sections of the page in order, by the name of their anchor."""
NOTHING: Final = {
    "findings": "The headers of batches show no fault.",
    "damage": "No damaged range was found.",
    "timeline": "No event has a time.",
    "retention": "Retention deletes no segment.",
    "transactions": "No transaction is open.",
    "groups": "No group is in these paths.",
    "metadata": "No metadata log is in these paths.",
}
"""Section -> the sentence that the page has instead of an empty section."""


def _nothing(report: LogDirReport) -> dict[str, str]:
    if "metadata" not in report.answers:
        return NOTHING
    place = f"at or before {time(report.at)}" if report.around is None else f"within an hour of {time(report.around)}"
    return NOTHING | {"metadata": f"The metadata log has no event {place}."}


def require() -> None:
    """Raise UsageError if a package for the page is missing."""
    missing = [name for module, name in NEEDS.items() if find_spec(module) is None]
    if missing:
        raise UsageError(f"the page needs {' and '.join(missing)}: pip install 'kdump[report]' (--json needs neither)")


def page(report: LogDirReport) -> str:
    import jinja2

    from kdump.report.charts import charts
    from kdump.report.short import ticket
    from kdump.report.tables import tables
    from kdump.report.verdicts import verdicts

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    drawn, found = charts(report), tables(report)
    held = {chart.part for chart in drawn} | {table.part for table in found}
    held |= {"said"} if report.messages else set()
    style, script = _asset("page.css"), _asset("page.js")
    return environment.get_template("page.html").render(
        version=__version__,
        paths=[harmless_line(path) for path in report.paths],
        at=time(report.at),
        verdicts=[
            (one, harmless_line(one.text), harmless_line(one.advice), [*map(harmless_line, one.commands)])
            for one in verdicts(report)
        ],
        tiles=_tiles(report),
        parts={name: title for name, title in PARTS.items() if name in held},
        nothing=[text for name, text in _nothing(report).items() if name not in held],
        ticket="\n".join(map(harmless_line, ticket(report))),
        paper=PAPER,
        charts=drawn,
        tables=found,
        messages=[harmless_line(text) for text in report.messages],
        harmless=harmless_line,
        embedded=_embedded(report),
        style=style,
        script=script,
        policy=POLICY.format(style=_checksum(style), script=_checksum(script)),
    )


def _asset(name: str) -> str:
    return (resources.files("kdump.report") / "assets" / name).read_text("utf-8")


def _checksum(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _embedded(report: LogDirReport) -> str:
    text = harmless_json(json.dumps(report.as_object(), ensure_ascii=False, separators=(",", ":")))
    return base64.b64encode(gzip.compress(text.encode("utf-8", "backslashreplace"), 6, mtime=0)).decode()


def _tiles(report: LogDirReport) -> list[tuple[str, str]]:
    partitions = report.held("du", "partition")
    (summary,) = report.lines("check", "summary")
    records = sum(line.records for line in report.held("stats", "stats"))
    occupied = sum(map(on_disk, (*partitions, *report.held("du", "other"))))
    return [
        ("log dirs", f"{len({line.log_dir for line in partitions}):,}"),
        ("topics", f"{len(report.lines('du-topics', 'topic')):,}"),
        ("partitions", f"{len(partitions):,}"),
        ("segments", f"{sum(line.segments for line in partitions):,}"),
        ("records", f"{records:,}"),
        ("of log", size(sum(line.log_bytes for line in partitions))),
        ("on disk", size(occupied)),
        ("findings", f"{summary['findings']:,}"),
    ]
