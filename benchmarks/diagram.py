"""Work-precision diagram."""

from __future__ import annotations

from matplotlib.figure import Figure

from benchmarks.report import BenchReport
from livens.plot.style import COLUMN, LEGEND_ROW, house_style, legend, legend_rows, new_figure

_MARKERS = "osD^vPX*"


@house_style()
def work_precision(report: BenchReport) -> Figure:
    """Plot errors against wall time, both logarithmic, one line for each code."""
    codes = list(dict.fromkeys(work.code for work in report.works))
    figure = new_figure(COLUMN, 2.6 + LEGEND_ROW * legend_rows(codes))
    axes = figure.subplots()
    for i, code in enumerate(codes):
        points = [(work.seconds, work.error) for work in report.works if work.code == code]
        times, errors = zip(*points, strict=True)
        axes.loglog(times, errors, marker=_MARKERS[i % len(_MARKERS)], markersize=3.5, linewidth=0.8, label=code)
    axes.set_xlabel("wall time (s)")
    axes.set_ylabel("error of $P_4$ at $t = 10$ s (m)")
    legend(axes, *axes.lines)
    return figure
