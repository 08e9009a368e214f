"""Sphinx extension: tutorials as Jupyter notebooks, written by ``python docs/_ext/notebooks.py``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
NOTEBOOKS = DOCS.parent / "examples" / "notebooks"
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?::\w[^\n]*\n)*(.*?)^```$", re.DOTALL | re.MULTILINE)


def tutorials() -> list[Path]:
    """Return the pages of the section Learn that consist of cells."""
    return [page for page in sorted((DOCS / "learn").glob("*.md")) if _CELL.search(page.read_text(encoding="utf-8"))]


def notebook(page: Path) -> str:
    """Return a tutorial as a notebook without output."""
    text = _FRONT_MATTER.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"\]\((?!\w+:)([^)#]+\.md)", lambda match: f"]({_link(page, match[1])}", text)
    cells = []
    for i, part in enumerate(_CELL.split(text)):
        if not part.strip():
            continue
        cell: dict[str, Any] = {
            "cell_type": "code" if i % 2 else "markdown",
            "id": f"cell-{len(cells)}",
            "metadata": {},
        }
        if i % 2:
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell | {"source": part.strip("\n").splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _link(page: Path, target: str) -> str:
    """Return the path of a linked page, relative to the folder of the notebooks."""
    path = (page.parent / target).resolve().relative_to(DOCS)
    return f"../../docs/{path.as_posix()}"


def add_download(app: Any, name: str, source: list[str]) -> None:
    """Add a link to the notebook below the title of a tutorial."""
    if name in {f"learn/{page.stem}" for page in tutorials()}:
        link = f"{{download}}`Download as a notebook <../../examples/notebooks/{name.removeprefix('learn/')}.ipynb>`"
        source[0] = re.sub(r"^(# .+\n)", lambda match: f"{match[1]}\n{link}\n", source[0], count=1, flags=re.MULTILINE)


def setup(app: Any) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("source-read", add_download)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    NOTEBOOKS.mkdir(exist_ok=True)
    for tutorial in tutorials():
        (NOTEBOOKS / f"{tutorial.stem}.ipynb").write_text(notebook(tutorial), encoding="utf-8")
