"""Registry of the pictures of the documentation, and helpers that several pictures share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from livens.plot.style import house_style, new_figure

DOCS = Path(__file__).parents[1]
PICTURES: dict[str, Callable[[Path], None]] = {}


def picture(function: Callable[[], Figure]) -> Callable[[], Figure]:
    """Register a function that returns a figure."""

    def write(path: Path) -> None:
        with house_style():
            function().savefig(path, dpi=160)

    PICTURES[function.__name__.replace("_", "-")] = write
    return function


def names_of(page: str, blocks: int | str = 1) -> dict[str, Any]:
    """Return the names that the first Python blocks of a page define: a number of them, or up to one with this text."""
    text = (DOCS / page).read_text(encoding="utf-8")
    codes = re.findall(r"^```python[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    count = blocks if isinstance(blocks, int) else 1 + next(i for i, code in enumerate(codes) if blocks in code)
    names: dict[str, Any] = {}
    for code in codes[:count]:
        exec(compile(code, page, "exec"), names)
    return names


def panels(columns: int, width: float = 7.2, height: float = 2.2, rows: int = 1) -> tuple[Figure, np.ndarray]:
    """Return a figure with panels side by side."""
    figure = new_figure(width, height)
    return figure, np.atleast_1d(figure.subplots(rows, columns)).ravel()
