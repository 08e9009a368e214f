"""Report of a reproduction with claims and figures, as Markdown and HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import livens
from livens.errors import InputError

if TYPE_CHECKING:
    from livens.reproduce.core import FigureResult, Report

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
td, th { text-align: left; vertical-align: top; padding: 0.3rem 0.6rem; border-bottom: 1px solid #ddd; }
td:last-child { white-space: nowrap; }
.no { color: #b00020; font-weight: bold; }
figure { margin: 1rem 0; } img { max-width: 100%; }
.note { border-left: 4px solid #E69F00; padding-left: 0.8rem; }
"""


def write_report(*reports: Report) -> list[Path]:
    """Write ``report.md`` and ``report.html`` of one or several sources into the folder of the first."""
    files = []
    markdown = "\n".join(as_markdown(report) for report in reports)
    for name, text in (("report.md", markdown), ("report.html", as_html(*reports))):
        path = reports[0].folder / name
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write the report '{path}': {error.strerror}") from None
        files.append(path)
    return files


def status(holds: bool | None) -> str:
    return "shown" if holds is None else "holds" if holds else "DOES NOT HOLD"


def _claim_count(report: Report) -> str:
    claims = [claim for claim in report.claims if claim.holds is not None]
    return f"{sum(bool(claim.holds) for claim in claims)} of {len(claims)} claims hold (livens {livens.__version__})."


def as_markdown(report: Report) -> str:
    """Return the report as Markdown; images are referenced as files in the same folder."""
    source = report.source
    lines = [f"# {source.name} reproduced", "", f"{source.citation}.", "", _claim_count(report), ""]
    lines += [source.note, ""] if source.note else []
    lines += ["## Claims", ""]
    lines += ["| figure | claim | measured | |", "|---|---|---|---|"]
    for result in report.results:
        for claim in result.claims:
            cells = (result.entry.number, claim.text, claim.measured, status(claim.holds))
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    lines += ["", "## Figures", ""]
    for result in report.results:
        lines += [f"### Figure {result.entry.number}: {result.entry.title}", ""]
        lines += [f"![{result.entry.title}]({_png(result)})", ""] if result.files else ["(not drawn: a run failed)", ""]
        lines += [f"> **Differences from the published figure.** {result.entry.note}", ""] if result.entry.note else []
        lines += [f"- {status(claim.holds)}: {claim.text} Measured: {claim.measured}." for claim in result.claims]
        lines += [""]
    return "\n".join(lines)


def as_html(*reports: Report) -> str:
    """Return the report as HTML; images are referenced as files in the same folder."""
    names = ", ".join(report.source.name for report in reports)
    body = "\n".join(line for report in reports for line in _body(report))
    head = f'<meta charset="utf-8"><title>{names} reproduced</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _body(report: Report) -> list[str]:
    source = report.source
    body = [f"<h1>{source.name} reproduced</h1>", f"<p>{html.escape(source.citation)}.</p>"]
    body += [f"<p><strong>{html.escape(_claim_count(report))}</strong></p>"]
    body += [f"<p>{html.escape(source.note)}</p>"] if source.note else []
    body += ["<h2>Claims</h2>"]
    body += _table((result, True) for result in report.results)
    body += ["<h2>Figures</h2>"]
    for result in report.results:
        title = f"Figure {result.entry.number}: {html.escape(result.entry.title)}"
        body += [f'<h3 id="{source.name}-figure-{result.entry.number}">{title}</h3>']
        if result.files:
            image = f'<img src="{_png(result)}" alt="{html.escape(result.entry.title, quote=True)}">'
            pdf = next((name for name in result.files if name.endswith(".pdf")), "")
            body += [f'<figure><a href="{pdf}">{image}</a></figure>']
        else:
            body += ['<p class="no">Not drawn: a run failed.</p>']
        if result.entry.note:
            note = html.escape(result.entry.note)
            body += [f'<p class="note"><strong>Differences from the published figure.</strong> {note}</p>']
        body += _table([(result, False)])
    return body


def _table(rows: Iterable[tuple[FigureResult, bool]]) -> list[str]:
    """Return the claims as an HTML table, optionally with the number of the figure."""
    lines = ["<table>"]
    for result, numbered in rows:
        for claim in result.claims:
            number = result.entry.number
            anchor = f"{result.entry.source}-figure-{number}"
            number_cell = f'<td><a href="#{anchor}">{number}</a></td>' if numbered else ""
            css_class = ' class="no"' if claim.holds is False else ""
            text, measured = html.escape(claim.text), html.escape(claim.measured)
            lines.append(
                f"<tr>{number_cell}<td>{text}</td><td>{measured}</td><td{css_class}>{status(claim.holds)}</td></tr>"
            )
    return [*lines, "</table>"]


def _png(result: FigureResult) -> str:
    return next(name for name in result.files if name.endswith(".png"))
