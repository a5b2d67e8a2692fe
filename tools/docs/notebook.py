"""Runs the cells of the docs' notebook, and writes their outputs into it.

python -m tools.docs.notebook    # writes the outputs again

Cells run in one namespace, in the root of the checkout. As in Jupyter a cell shows what it prints, then the value of
its last expression, as text; a result of kdump also as HTML. Jupyter itself is not needed.
"""

from __future__ import annotations

import ast
import io
import json
from contextlib import chdir, redirect_stdout
from typing import Any

from testing import ROOT

PATH = ROOT / "docs" / "notebook.ipynb"


def rendered(text: str) -> str:
    """Return a notebook with the outputs of its cells. Raises the exceptions of the cells."""
    notebook = json.loads(text)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with chdir(ROOT):
        for number, cell in enumerate(code, 1):
            cell["execution_count"] = number
            cell["outputs"] = _outputs("".join(cell["source"]), number, namespace)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _outputs(source: str, number: int, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell; return its outputs in Jupyter's format (nbformat 4.5)."""
    body = ast.parse(source).body
    last = ast.Expression(body.pop().value) if isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), f"cell {number}", "exec"), namespace)  # noqa: S102  the project's own cells
        value = None if last is None else eval(compile(last, f"cell {number}", "eval"), namespace)  # noqa: S307  as above
    outputs: list[dict[str, Any]] = []
    if shown := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": shown.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if type(value).__module__.startswith("kdump."):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


if __name__ == "__main__":
    PATH.write_text(rendered(PATH.read_text()))
