"""Notebook representation of a run: table and two small plots."""

from __future__ import annotations

import base64
import io

from livens.errors import LivensError
from livens.plot import PLOTS
from livens.results.result import Result
from livens.scene import html

#: Plots in order of preference; the first two applicable ones are shown.
_PREFERRED = ("snapshots", "trajectory", "energy", "coordinates")
_COUNT, _DPI = 2, 90


def _html(result: Result) -> str:
    info, statistics = result.info, result.statistics
    table = html.definition_table(
        {
            "run": info.problem or info.name or f"a system of {len(info.coordinates)} coordinates",
            "scheme": f"{info.scheme}, h = {info.h:g}",
            "time": f"{result.t[0]:g} to {result.t[-1]:g}, {len(result.t)} rows",
            "steps": f"{statistics.steps} in {statistics.wall_s:.3g} s",
            "status": result.status,
            "message": result.message,
            "energy drift": f"{result.summary.max_energy_drift:.1e}" if result.summary.energy else "",
            "constraints": f"{result.summary.max_constraint:.1e}" if info.constraint_names else "",
            "variables": ", ".join(result.stored),
            "file": result.path,
            "more": "run.report(), run.view(), run.plot",
        }
    )
    return f'<div style="display:flex;gap:1em;align-items:center">{table}{"".join(_images(result))}</div>'


def _images(result: Result) -> list[str]:
    images: list[str] = []
    for name in _PREFERRED:
        if len(images) == _COUNT:
            break
        try:
            if not PLOTS[name].is_applicable(result):
                continue
            buffer = io.BytesIO()
            PLOTS[name].draw(result).savefig(buffer, format="png", dpi=_DPI)
        except LivensError:  # plot not available for this run
            continue
        images.append(f'<img alt="{name}" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">')
    return images


Result.attach("_repr_html_", _html)
