"""HTML tables and lists for notebooks and pages."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def escape(value: float | str) -> str:
    """Return a value as escaped text.

    >>> escape(0.25), escape("<b>"), escape(None)
    ('0.25', '&lt;b&gt;', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (tuple, list)):
        return ", ".join(escape(part) for part in value)
    return html.escape(str(value))


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], *, highlighted: Sequence[bool] = ()) -> str:
    """Return an HTML table with a head row; highlighted rows are bold and red."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in heads)
    body = []
    for i, row in enumerate(rows):
        style = (
            ' class="livens-wrong" style="color:#c1272d;font-weight:bold"'
            if i < len(highlighted) and highlighted[i]
            else ""
        )
        body.append(f"<tr{style}>" + "".join(f"<td>{escape(value)}</td>" for value in row) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def definition_table(entries: Mapping[str, Any]) -> str:
    """Return an HTML table of names and values, without empty values."""
    rows = [
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in entries.items()
        if value not in (None, "", (), [], {})
    ]
    return f"<table><tbody>{''.join(rows)}</tbody></table>"
