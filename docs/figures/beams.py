"""Picture of three beam problems of the literature."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from registry import picture

import livens as lv
from livens.plot.style import PALETTE, new_figure


def _run(problem: str, **options: Any) -> Any:
    return lv.simulate(lv.problems.load(problem, **options))


@picture
def beams() -> Figure:
    figure = new_figure(7.2, 2.6)
    roll, bend, fly = figure.add_subplot(131), figure.add_subplot(132, projection="3d"), figure.add_subplot(133)
    for revolutions, colour in zip((0.25, 0.5, 0.75, 1.0), PALETTE, strict=False):
        nodes = _run("roll-up", revolutions=revolutions)["beam.position"][-1]
        angle = 2 * np.pi * revolutions * np.linspace(0, 1, 200)
        radius = 1 / (2 * np.pi * revolutions)
        roll.plot(radius * np.sin(angle), radius * (1 - np.cos(angle)), color="0.6", linewidth=0.8, zorder=0)
        roll.plot(nodes[:, 0], nodes[:, 1], "o", color=colour, markersize=2.5)
    roll.set(xlabel="$x$ (m)", ylabel="$y$ (m)", title="roll-up: nodes on exact circles", aspect="equal")
    for force, colour in zip((0, 300, 600), ("0.6", PALETTE[5], PALETTE[0]), strict=True):
        nodes = _run("45-degree-bend", force=force)["bend.position"][-1]
        bend.plot(*nodes.T, "o-", color=colour, markersize=2, linewidth=0.9, label=f"{force} N")
    bend.set(title="45 degree bend, 8 elements", xlabel="$x$ (m)", ylabel="$y$ (m)", zlabel="$z$ (m)", aspect="equal")
    bend.tick_params(labelsize=5, pad=-2)
    bend.legend(loc="upper left")
    run = _run("flying-spaghetti-2d")
    nodes = run["spaghetti.position"]
    times = np.arange(0.0, run.t[-1] + 1e-9, 1.0)
    for t, shade in zip(times, np.linspace(0.25, 1.0, len(times)), strict=True):
        fly.plot(*nodes[np.abs(run.t - t).argmin()].T, color=PALETTE[0], alpha=shade)
    fly.set(title="flying spaghetti, every second", xlabel="$x$ (m)", ylabel="$y$ (m)", aspect="equal")
    return figure
