"""Notebook representation of a run: table and two small plots."""

from __future__ import annotations

import base64
import io

from livens.errors import LivensError
from livens.models import html
from livens.plot import PICTURES
from livens.results.result import Result

#: Plots in order of preference; the first two applicable ones are shown.
_FIRST = ("snapshots", "trajectory", "energy", "coordinates")
_COUNT, _DPI = 2, 90


def _html(result: Result) -> str:
    facts, statistics = result.facts, result.statistics
    table = html.listing(
        {
            "run": facts.problem or f"a system of {len(facts.coordinates)} coordinates",
            "scheme": f"{facts.scheme}, h = {facts.h:g}",
            "time": f"{result.t[0]:g} to {result.t[-1]:g}, {len(result.t)} rows",
            "steps": f"{statistics.steps} in {statistics.wall_s:.3g} s",
            "status": result.status,
            "message": result.message,
            "energy drift": f"{result.summary.max_energy_drift:.1e}" if result.summary.energy else "",
            "constraints": f"{result.summary.max_constraint:.1e}" if facts.constraint_names else "",
            "variables": ", ".join(result.stored),
            "file": result.path,
            "more": "run.report(), run.view(), run.plot",
        }
    )
    return f'<div style="display:flex;gap:1em;align-items:center">{table}{"".join(_pictures(result))}</div>'


def _pictures(result: Result) -> list[str]:
    found: list[str] = []
    for name in _FIRST:
        if len(found) == _COUNT:
            break
        try:
            if not PICTURES[name].fits(result):
                continue
            buffer = io.BytesIO()
            PICTURES[name].draw(result).savefig(buffer, format="png", dpi=_DPI)
        except LivensError:  # plot not available for this run
            continue
        found.append(f'<img alt="{name}" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">')
    return found


Result.attach("_repr_html_", _html)
