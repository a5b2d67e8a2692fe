"""The notebook of the docs shows what its cells return, and the runner runs cells as Jupyter does."""

import json

import pytest

from tools.docs import notebook


def test_the_docs_notebook_shows_what_its_cells_return():
    text = notebook.PATH.read_text()
    assert notebook.rendered(text) == text, "python -m tools.docs.notebook writes the outputs again"
    assert len([cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]) == 11


def cells(*sources):
    code = [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": ["text"]}, *code]})


def test_a_cell_shows_what_it_prints_and_its_last_expression():
    found = json.loads(notebook.rendered(cells("a = 2\nprint('x')\na + 1", "a", "b = a", "None")))["cells"]
    assert found[0] == {"cell_type": "markdown", "source": ["text"]}
    assert [[out.get("text") or out["data"]["text/plain"] for out in cell["outputs"]] for cell in found[1:]] == [
        [["x\n"], ["3"]],
        [["2"]],
        [],
        [],
    ]


def test_a_cell_that_raises_fails_the_run():
    with pytest.raises(ZeroDivisionError):
        notebook.rendered(cells("1 / 0"))
