"""The page: its tables and its JSON equal the document, and no text from a name becomes markup."""

import base64
import gzip
import json
import re
from html.parser import HTMLParser

import pytest

from kdump.errors import UsageError
from kdump.report import page as pages
from testing.forge import batch, record
from testing.processes import kdump, patched
from tests.helpers import log_dirs
from tests.report.test_document import AT, BROKER, lines_of, rotten

HOSTILE = (
    "<script>alert(1)<",
    "\"' onmouseover=alert(1) x='",
    "a\u202egnp.exe",
    "red\x1b[31m",
    "{{ 7 * 7 }}",
    "]]><svg onload=alert(1)>",
    "line\u2028break",
    "x" * 200,
)


class Page(HTMLParser):
    """The tables of a page (by id: rows of values), its embedded object, and every tag and attribute."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.tags, self.attributes, self.texts = {}, set(), [], []
        self._rows = self._cell = self._raw = None
        self.packed = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.add(tag)
        self.attributes += attributes
        self._raw = given if tag in {"script", "style"} else None
        if tag == "table":
            self._rows = self.tables.setdefault(given["id"].removeprefix("table-"), [])
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])
        elif tag == "td":
            self._cell = [given.get("data-value"), ""]

    def handle_endtag(self, tag):
        if tag == "td":
            value, text = self._cell
            self._rows[-1].append(text if value is None else None if value == "" else float(value))
            self._cell = None
        elif tag == "table":
            self._rows = None
        self._raw = None

    def handle_data(self, data):
        if self._raw is not None:
            self.packed += data if self._raw.get("id") == "kdump-report" else ""
            return
        self.texts.append(data)
        if self._cell is not None:
            self._cell[1] += data

    @property
    def embedded(self):
        return json.loads(gzip.decompress(base64.b64decode(self.packed)))


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """The page of the golden broker."""
    out = tmp_path_factory.mktemp("page") / "report.html"
    assert kdump("report", BROKER, *AT, "--out", out).returncode == 3
    return Page(out.read_text())


def made(folder, out, status, *args):
    done = kdump("report", folder, *AT, "--out", out, *args)
    assert done.returncode == status, done.stderr.decode()
    return Page(out.read_text())


def rows(page, name):
    return [row for row in page.tables[name] if row]


def test_the_embedded_object_is_what_json_prints(golden):
    assert golden.embedded == json.loads(kdump("report", BROKER, *AT, "--json").stdout)


def test_visible_tables_have_the_numbers_of_the_commands(golden):
    du = [line for line in lines_of(["du"], BROKER) if line["kind"] == "partition"]
    names = ("topic", "partition", "state", "logDir", "segments", "logBytes", "allBytes", "earliest", "latest")
    assert [row[:9] for row in rows(golden, "partitions")] == [[line[name] for name in names] for line in du]
    topics = lines_of(["du", "--by", "topic"], BROKER)
    names = ("topic", "partitions", "replicas", "logBytes", "allBytes", "diskBytes")
    assert rows(golden, "topics") == [[line[name] for name in names] for line in topics]
    stats = [line for line in lines_of(["stats"], BROKER) if line["kind"] == "stats"]
    assert sum(row[2] for row in rows(golden, "stats")) == sum(line["records"] for line in stats)
    hanging = [line for line in lines_of(["transactions", *AT], BROKER) if line["kind"] == "transaction"]
    names = ("topic", "partition", "state", "producerId", "startOffset", "lastTimestampMs", "heldBack")
    assert [row[:5] for row in rows(golden, "transactions")] == [[line[name] for name in names[:5]] for line in hanging]
    offsets = [line for line in lines_of(["groups", *AT], BROKER) if line["kind"] == "offset"]
    assert sum(row[5] or 0 for row in rows(golden, "groups")) == sum(line["lag"] or 0 for line in offsets)
    findings = [line for line in lines_of(["check", "--headers-only"], BROKER) if line["kind"] == "finding"]
    assert sorted(row[4] for row in rows(golden, "findings")) == sorted(line["text"] for line in findings)


def test_events_read_as_those_of_the_command(golden, tmp_path):
    details = [row[4] for row in rows(golden, "events")]
    assert "leader=-1 was=1 leaderEpoch=1 isr=[1]" in details
    assert not [text for text in details if "None" in text or "'" in text]
    around = golden.embedded["answers"]["metadata"]["lines"][100]["timestampMs"]
    near = made(BROKER, tmp_path / "near.html", 3, "--around", around)
    assert any(text.startswith("The 200 events nearest to 2026-11-") for text in near.texts)
    far = made(BROKER, tmp_path / "far.html", 3, "--around", "2026-01-01")
    assert any("The metadata log has no event within an hour of 2026-01-01" in text for text in far.texts)
    assert not any("No metadata log" in text for text in far.texts)


def test_nothing_is_asked_of_a_network(golden):
    assert golden.tags.isdisjoint({"img", "link", "iframe", "object", "embed", "form", "image", "use"})
    addresses = [value for name, value in golden.attributes if name in {"src", "href", "xlink:href", "action"}]
    assert addresses
    assert all(value.startswith("#") for value in addresses)
    assert not [name for name, _ in golden.attributes if name.startswith("on") or name == "style"]
    policy = next(value for name, value in golden.attributes if value and value.startswith("default-src"))
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_each_section_and_table_is_labelled(golden):
    ids = {value for name, value in golden.attributes if name == "id"}
    labels = {value for name, value in golden.attributes if name == "aria-labelledby"}
    assert labels
    assert labels <= ids
    assert {value[1:] for name, value in golden.attributes if name == "href"} <= ids


def test_hostile_names_stay_text(tmp_path):
    folder = tmp_path / "logs"
    content = batch([record(b"k", b"v")], base_offset=0, base_timestamp=1_795_000_000_000)
    for number, name in enumerate(HOSTILE):
        log_dirs.write(folder, f"{name}-{number}", {0: content})
    log_dirs.write(folder, "bytes\udcff-0", {0: content[:-1] + b"!" + content})
    future = batch([record(b"k", b"v")], base_offset=0, base_timestamp=4_102_444_800_000)  # it blocks retention
    log_dirs.write(folder, "advice\u202e-0", {0: future, 1: content[:7] + b"\x01" + content[8:], 2: b""})
    page = made(folder, tmp_path / "report.html", 3, "--config", "*:retention.ms=3600000")
    text = (tmp_path / "report.html").read_text()
    assert "advice\\u202e-0" in "".join(page.texts)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]", text)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert text.count("<script") == 2
    assert "49" not in {row[0] for row in rows(page, "topics")}
    topics = {line["topic"] for line in page.embedded["answers"]["du"]["lines"]}
    assert set(HOSTILE) <= topics
    shown = {row[0] for row in rows(page, "topics")}
    assert {"<script>alert(1)<", "a\\u202egnp.exe", "red\\x1b[31m", "{{ 7 * 7 }}", "bytes\\xff"} <= shown


def test_a_damaged_log_dir_has_a_map_of_damage(tmp_path):
    page = made(rotten(tmp_path / "logs"), tmp_path / "report.html", 3)
    assert "Where segments are damaged" in page.texts
    assert [row[1:3] for row in rows(page, "damage")] == [
        [line["position"], line["size"]]
        for line in page.embedded["answers"]["damage"]["lines"]
        if line["kind"] == "damage"
    ]


def test_a_log_with_very_many_damaged_ranges_is_damaged_to_its_end(tmp_path):
    sound, bad = (batch([record(b"k", b"v")], crc=crc, base_offset=0) for crc in (None, 1))
    log_dirs.write(tmp_path / "logs", "orders-0", {0: (sound + bad) * 600})
    page = made(tmp_path / "logs", tmp_path / "report.html", 3)
    shown, ranges = len(rows(page, "damage")), page.embedded["answers"]["damage"]["lines"][0]["ranges"]
    assert ranges > 500
    assert any(f"{shown:,} rows, {ranges - shown:,} more are left out" in text for text in page.texts)
    assert any("99% to 100% of the file" in (value or "") for name, value in page.attributes if name == "aria-label")


def test_a_folder_without_a_log_is_a_page_too(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    log_dirs.node(folder, 1)
    page = made(folder, tmp_path / "report.html", 0)
    assert any("There is no partition here" in text for text in page.texts)


def test_a_page_is_not_overwritten_unasked(tmp_path):
    out = tmp_path / "report.html"
    out.write_text("mine")
    done = kdump("report", BROKER, "--out", out)
    assert (done.returncode, out.read_text()) == (2, "mine")
    assert b"--overwrite replaces it" in done.stderr
    made(BROKER, out, 3, "--overwrite")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_page_is_not_written_into_what_is_read(tmp_path):
    folder = rotten(tmp_path)
    done = kdump("report", folder, "--out", folder / "report.html")
    assert done.returncode == 2
    assert b"which kdump does not change" in done.stderr


def test_a_page_does_not_replace_what_is_read(tmp_path):
    folder = rotten(tmp_path / "logs")
    segment = tmp_path / f"{0:020}.log"
    segment.write_bytes((folder / "orders-1" / segment.name).read_bytes())
    before = segment.read_bytes()
    done = kdump("report", segment, "--out", segment, "--overwrite")
    assert (done.returncode, segment.read_bytes()) == (2, before)
    assert b"which kdump does not change" in done.stderr


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(pages, "find_spec", lambda name: None if name == "vl_convert" else name)
    with pytest.raises(UsageError, match=r"needs vl-convert-python: pip install 'kdump\[report\]'"):
        pages.require()
    hide = "import importlib.util as u; find = u.find_spec\n"
    hide += "u.find_spec = lambda name, *more: None if name == 'jinja2' else find(name, *more)"
    done = patched(hide, "report", BROKER, "--out", tmp_path / "report.html")
    assert done.returncode == 2
    assert b"pip install 'kdump[report]'" in done.stderr


def test_sections_without_anything_are_one_line_and_long_tables_are_cut_on_paper(tmp_path):
    log_dirs.write(tmp_path / "in", "orders-0", {0: batch([record(b"k", b"v")])})
    page = made(tmp_path / "in", tmp_path / "page.html", 0)
    text = page if isinstance(page, str) else (tmp_path / "page.html").read_text()
    assert 'id="transactions"' not in text
    assert "No transaction is open." in text
    assert "rows are on paper" not in text
    assert "Copy for the ticket" in text
