"""Computation times of Symank 2025 7.3.3, published and measured."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from livens import problems
from livens.plot.style import GREY, PAGE, PALETTE, house_style, legend, new_figure
from livens.reproduce.core import Claim, figure
from livens.reproduce.symank_2025.pendulums import UNEQUAL_MASSES, UNEQUAL_MASSES_T_END
from livens.reproduce.symank_2025.runs import PAIRS
from livens.run.simulate import simulate

_H = 0.01
#: Number of runs; the shortest time counts.
_REPEATS = 15
#: Target ratio of published to measured time.
_TARGET_RATIO = 1000.0


class Row(NamedTuple):
    """Row of the table: title, run, and published times of J-PRK, M-PRK and M-PRK-GGL in s."""

    title: str
    problem: str
    options: tuple[tuple[str, Any], ...]
    t_end: float
    published: tuple[float, float, float]


TABLE = (
    Row("simple pendulum, energy", "pendulum", (), 240.0, (60.0, 134.7, 155.5)),
    Row("simple pendulum, constraints", "pendulum", (), 240.0, (34.3, 34.5, 40.9)),
    Row("double pendulum, energy", "double-pendulum", (), 240.0, (103.6, 258.6, 300.1)),
    Row("double pendulum, constraints", "double-pendulum", UNEQUAL_MASSES, UNEQUAL_MASSES_T_END, (10.5, 18.1, 21.0)),
)


@functools.cache
def seconds(name: str, options: tuple[tuple[str, Any], ...], t_end: float, scheme: str) -> tuple[float, int]:
    """Return the shortest time of several runs with all steps stored, and the number of steps."""
    problem = problems.load(name, **dict(options))
    costs = [simulate(problem, scheme=scheme, h=_H, t_end=t_end, progress=False).statistics for _ in range(_REPEATS)]
    return min(cost.wall_s for cost in costs), costs[0].steps


@figure(
    "symank-2025",
    "times",
    "Computation times, published and ours",
    note="Times depend on the machine and are reported without judgement. The published times are those of Python code "
    "on a laptop. The measured times are those of all steps, the shortest of several runs. Derivation and compilation "
    "of the equations are not included. "
    "The energy runs are fully specified: 24000 steps of 0.01 s. The constraint runs of the simple pendulum are said "
    "to have the same setup, but took half the time of J-PRK and a quarter of that of M-PRK; the difference is not "
    "explained, and the complete run is measured here. The end time of the last run is not given: at the published "
    "cost per step, its times correspond to 1700 to 2400 steps; here it has 2000.",
)
@house_style()
def times() -> tuple[Figure, list[Claim]]:
    measured = np.array([[seconds(*row[1:4], scheme) for scheme in PAIRS] for row in TABLE])
    published = np.array([row.published for row in TABLE])
    livens_times, steps = measured[:, :, 0], measured[:, :, 1].astype(int)
    picture = new_figure(PAGE, 3.0)
    axes = picture.add_subplot()
    positions = np.arange(len(TABLE))
    for i, label in enumerate(PAIRS.values()):
        bar_positions = positions + 0.27 * (i - 1)
        bars = axes.barh(
            bar_positions, published[:, i] / livens_times[:, i], height=0.24, color=PALETTE[i], label=label
        )
        texts = [f"{p:g} s / {1e3 * o:.1f} ms" for p, o in zip(published[:, i], livens_times[:, i], strict=True)]
        axes.bar_label(bars, texts, padding=3, fontsize=6)
    axes.axvline(_TARGET_RATIO, color=GREY, linewidth=0.8, linestyle="--")
    axes.set_yticks(positions, [row.title for row in TABLE])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.25 * float((published / livens_times).max()))
    axes.set_xlabel("published time over measured time")
    legend(axes)
    picture.suptitle("pendulum and double-pendulum, h = 0.01 s, three stages", x=0.01, ha="left", color=GREY)
    claims = [
        Claim(
            f"{row.title}, {label}: published time over measured time, target {_TARGET_RATIO:g}.",
            f"{row.published[i]:g} s / {1e3 * livens_times[r, i]:.1f} ms = {row.published[i] / livens_times[r, i]:.0f} "
            f"({steps[r, i]} steps, {1e6 * livens_times[r, i] / steps[r, i]:.1f} us each)",
            None,
        )
        for r, row in enumerate(TABLE)
        for i, label in enumerate(PAIRS.values())
    ]
    return picture, [_all_steps(steps), *claims]


def _all_steps(steps: np.ndarray) -> Claim:
    expected = [round(row.t_end / _H) for row in TABLE]
    complete = bool(np.all(steps == np.array(expected)[:, None]))
    return Claim("Each run takes all steps.", f"{', '.join(map(str, steps[:, 0]))} steps", complete)
