"""Open pages of ``kdump report`` in headless Chromium and test their properties.

    python -m tools.prove.report_page [--chromium PATH] [--partitions N] [--pictures DIR]

It makes reports of the largest golden broker, of N partitions, of hostile names, of damage and of a folder without a
log. It opens each in light, dark and at 400 pixels. It fails if the console has a message, if the page requests
anything besides the file, or if a name becomes a script. It also fails if the page is wider than the window, takes more
than 2 s to load, or has a serious fault according to axe-core. With --pictures it writes screenshots. Playwright and
axe-playwright-python are not part of kdump.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from bench import report as bench
from testing import ROOT
from testing.forge import batch, record
from testing.processes import kdump
from tools import arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS: Final = 2.0
NAMES: Final = (
    "<script>alert(1)<",
    "\"' onmouseover=alert(1) x='",
    "a\u202egnp.exe",
    "red\x1b[31m",
    "{{ 7 * 7 }}",
    "&lt;b&gt; & co",
    "]]><svg onload=alert(1)>",
    "line\u2028break",
    "x" * 200,
)
"""The names of topics, in the form of folder names, which cannot contain a slash."""
VIEWS: Final = (("light", 1280, 900), ("dark", 1280, 900), ("light", 400, 800))
SERIOUS: Final = {"serious", "critical"}


def hostile(folder: Path) -> Path:
    """Write a log dir of hostile topics, one of them damaged."""
    for number, name in enumerate(NAMES):
        inside = folder / f"{name}-{number}"
        inside.mkdir(parents=True)
        stamp = bench.NOW - number * bench.HOUR
        batches = [batch([record(b"k", b"v" * 40)], base_offset=n, base_timestamp=stamp) for n in range(5)]
        (inside / f"{0:020}.log").write_bytes(b"".join(batches))
    return damage(folder / f"{NAMES[0]}-0", folder)


def damage(inside: Path, folder: Path) -> Path:
    """Fill two ranges of a folder's segment with zeros; return the log dir."""
    (log,) = inside.glob("*.log")
    data = bytearray(log.read_bytes())
    for share in (0.3, 0.7):
        start, size = int(len(data) * share), len(data) // 50
        data[start : start + size] = bytes(size)
    log.write_bytes(data)
    return folder


def log_dirs(folder: Path, partitions: int) -> Iterator[tuple[str, Path]]:
    """Yield the log dirs to report on, with their names."""
    yield "golden", ROOT / "golden/brokers/4.2.2"
    bench.make_partitions(folder / "many", partitions, 60)
    yield "many", folder / "many"
    yield "hostile", hostile(folder / "hostile")
    bench.make_partitions(folder / "damaged", 60, 400)
    for topic in bench.TOPICS[:3]:
        damage(folder / "damaged" / f"{topic}-0", folder)
    yield "damaged", folder / "damaged"
    (folder / "empty").mkdir()
    (folder / "empty" / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    yield "empty", folder / "empty"


def faults_of(browser: Any, path: Path, view: tuple[str, int, int], picture: Path | None) -> Iterator[str]:
    """Open a page in the mode ``view``; yield its faults."""
    scheme, width, height = view
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"script: {error}"))
    page.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: said.append(f"request: {request.url}") if request.url != path.as_uri() else None)
    began = time.monotonic()
    page.goto(path.as_uri(), wait_until="load")
    taken = time.monotonic() - began
    if taken > SECONDS:
        said.append(f"it takes {taken:.2f} s to open")
    for head in page.query_selector_all("th button")[:12]:
        head.focus()
        page.keyboard.press("Enter")
    for entry in page.query_selector_all("input[type=search]:visible")[:3]:
        entry.fill("a")
        entry.fill("")
    if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
        said.append("the page is wider than its window")
    page.reload(wait_until="load")
    if picture is not None:
        page.screenshot(path=str(picture))
    yield from said
    context.close()
    audit = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True)
    page = audit.new_page()  # the page's own policy keeps axe out
    page.goto(path.as_uri(), wait_until="load")
    for fault in Axe().run(page).response["violations"]:
        if fault["impact"] in SERIOUS:
            yield f"axe: {fault['id']} at {fault['nodes'][0]['target']}: {fault['help']}"
    audit.close()
    print(f"  {scheme:5} {width:4} px: {taken:.2f} s, {path.stat().st_size / (1 << 20):.2f} MiB", flush=True)


def main() -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("--chromium", default="/usr/bin/chromium", metavar="PATH")
    parser.add_argument("--partitions", type=int, default=2000, metavar="N")
    parser.add_argument("--pictures", type=Path, metavar="DIR")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        for name, path in log_dirs(Path(temporary), options.partitions):
            out = Path(temporary, f"{name}.html")
            done = kdump("report", path, "--out", out, "--at", str(bench.NOW))
            print(f"{name}: {done.stderr.decode().strip() or 'made'}")
            for view in VIEWS:
                picture = options.pictures and options.pictures / f"report-{name}-{view[0]}-{view[1]}.png"
                for fault in faults_of(browser, out, view, picture):
                    wrong += 1
                    print(f"    {fault}")
        browser.close()
    print(f"{wrong} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
