"""The results of kdump's functions as HTML, as a notebook shows them."""

from html.parser import HTMLParser

import kdump
from testing import GOLDEN

BROKER = GOLDEN / "brokers" / "4.2.2"
DAMAGED = GOLDEN / "damaged" / "fuzz000"


class Tables(HTMLParser):
    """The texts of the paragraphs, and of the cells of each row."""

    def __init__(self, text):
        super().__init__()
        self.paragraphs, self.rows, self._into = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, _):
        if tag == "tr":
            self.rows.append([])
        if tag in {"p", "th", "td"}:
            self._into = self.paragraphs if tag == "p" else self.rows[-1]
            self._into.append("")

    def handle_data(self, data):
        self._into[-1] += data


def shown(result):
    return Tables(result._repr_html_())


def test_records_of_a_log():
    found = shown(kdump.open(BROKER, topic="c-none"))
    assert found.paragraphs[0].endswith(">: the first 20")
    assert found.rows[0] == ["topic", "partition", "offset", "timestamp", "key", "value"]
    assert [row[:3] for row in found.rows[1:]] == [["c-none", "0", str(offset)] for offset in range(20)]
    assert shown(kdump.open(BROKER, limit=0)).rows[1:] == []


def test_lines_of_an_answer_by_their_kind():
    groups = kdump.groups(BROKER, group="eos")
    found = shown(groups)
    counts = {kind: sum(line.kind == kind for line in groups) for kind in ("group", "offset")}
    lines = [f"{counts['group']} line of group", f"{counts['offset']} line of offset"]
    assert found.paragraphs == [*lines, *groups.notes]
    assert [row[0] for row in found.rows] == ["groupId", "eos", "groupId", "eos"]
    assert any("byte 798" in text for text in shown(kdump.stats(DAMAGED)).paragraphs)


def test_damage_and_notes_are_below_the_table():
    texts = shown(kdump.open(DAMAGED)).paragraphs
    assert any("byte 798: 843 bytes cannot be read" in text for text in texts[1:])
    assert any("did you mean 'c-zstd'?" in text for text in shown(kdump.open(BROKER, topic="c-zstdd")).paragraphs)
    result = shown(kdump.sql("select topic from records", DAMAGED))
    assert any("byte 798: 843 bytes cannot be read" in text for text in result.paragraphs[1:])


def test_decoded_records_are_shown_decoded():
    found = shown(kdump.open(BROKER, topic="__consumer_offsets", decode="auto"))
    assert found.rows[1][4:] == ['{"group": "classic-1"}', found.rows[1][5]]
    assert found.rows[1][5].startswith('{"protocolType": ""')


def test_findings_of_a_check():
    found = shown(kdump.check(DAMAGED))
    assert found.paragraphs == ["2 findings, status 3"]
    assert [row[:2] for row in found.rows] == [["check", "level"], ["crc", "log"], ["recovery", "log"]]


def test_texts_of_logs_are_no_html(tmp_path):
    folder = tmp_path / "<b>-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes((BROKER / "one-0" / "00000000000000000000.log").read_bytes())
    assert "<b>" not in kdump.open(tmp_path)._repr_html_()
    assert "&lt;b&gt;" in kdump.offsets(tmp_path)._repr_html_()
