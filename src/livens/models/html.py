"""HTML tables and lists for notebooks and pages."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def cell(value: Any) -> str:
    """Return a value as escaped text.

    >>> cell(0.25), cell("<b>"), cell(None)
    ('0.25', '&lt;b&gt;', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (tuple, list)):
        return ", ".join(cell(part) for part in value)
    return html.escape(str(value))


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], *, marked: Sequence[bool] = ()) -> str:
    """Return an HTML table with a head row; highlighted rows are bold and red."""
    head = "".join(f"<th>{cell(word)}</th>" for word in heads)
    body = []
    for i, row in enumerate(rows):
        style = ' class="livens-wrong" style="color:#c1272d;font-weight:bold"' if i < len(marked) and marked[i] else ""
        body.append(f"<tr{style}>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def listing(entries: Mapping[str, Any]) -> str:
    """Return an HTML table of names and values, without empty values."""
    rows = [
        f"<tr><th style='text-align:left'>{cell(name)}</th><td style='text-align:left'>{cell(value)}</td></tr>"
        for name, value in entries.items()
        if value not in (None, "", (), [], {})
    ]
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def some(names: Sequence[Any], most: int = 12) -> str:
    """Return the first names, and the number of the remaining ones.

    >>> some(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    shown = ", ".join(str(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
