"""Figures 5 to 7 of paper II in Modin 2009: four elastic balls in a box, compared with a BDF code."""

from __future__ import annotations

import functools

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from livens.plot.style import COLUMN, GREY, PAGE, PALETTE, house_style, legend, new_figure
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import claim_above, claim_below, claim_between
from livens.reproduce.modin_2009.runs import adaptive, bdf, with_title
from livens.reproduce.modin_2009.walls import LABELS, METHODS, largest_ratio_after_start, work_precision
from livens.results.result import Result

_T_END = 2.0
_EPS = tuple(float(eps) for eps in np.geomspace(0.3, 0.005, 10))
_EPS_OF_SIZES = 0.01
_TOLERANCES = tuple(float(tolerance) for tolerance in np.geomspace(1e-3, 1e-8, 10))
_NOTE = (
    "Positions of the balls are not given. Here all collisions up to t = 2 s are central, and ball 4 moves at the end, "
    "as in the paper. Steps, tolerances and c_smooth are not given either: eps and c_smooth/eps are those of example "
    "3.2. BDF is VODE with orders 1 and 2, instead of ode15s."
)


def _billiard(method: str, eps: float) -> Result:
    scheme, length = METHODS[method]
    return adaptive("billiard", scheme, eps, _T_END, (("smooth", length * eps),))


def _speeds(v: np.ndarray) -> np.ndarray:
    """Return the speeds of the four balls."""
    return np.asarray(np.hypot(*v.reshape(4, 2).T))


@functools.cache
def _reference_run() -> Result:
    return _billiard("met1", 5e-4)


@figure("modin-2009", "II.5", "Paths of the balls", note=_NOTE)
@house_style()
def path() -> tuple[Figure, list[Claim]]:
    result = _reference_run()
    picture = new_figure(COLUMN, 3.4)
    axes = picture.add_subplot()
    for i in range(4):
        q = result.q[:, 2 * i : 2 * i + 2]
        axes.plot(*q.T, color=PALETTE[i], linewidth=1.0)
        axes.add_patch(Circle(tuple(q[0]), 0.1, fill=False, color=PALETTE[i], linewidth=1.0))
        axes.annotate(str(i + 1), tuple(q[0]), ha="right", va="bottom", fontsize=7, color=PALETTE[i])
        axes.add_patch(Circle(tuple(q[-1]), 0.1, fill=False, color=GREY, linewidth=0.5, linestyle=(0, (3, 2))))
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="$x$ (m)", ylabel="$y$ (m)")
    axes.spines[["top", "right"]].set_visible(True)
    speeds = _speeds(result.v[-1])
    claims = [
        claim_below("Balls 1 to 3 are at rest at t = 2 s (sum of their speeds),", float(speeds[:3].sum()), 1e-6, "m/s"),
        claim_below("ball 4 has the total speed (difference to sqrt 2).", abs(float(speeds[3]) - 2**0.5), 1e-6, "m/s"),
        claim_above(
            "All four balls have moved (smallest displacement range).",
            float(min(np.hypot(*np.ptp(result.q[:, 2 * i : 2 * i + 2], axis=0)) for i in range(4))),
            0.01,
            "m",
        ),
    ]
    return with_title(picture, "billiard, from circles to dashed circles, t = 2 s"), claims


@figure(
    "modin-2009",
    "II.6",
    "Errors against the density of steps, billiard",
    note=_NOTE + " In the paper met1 and met2 perform well compared with BDF. Here all three are similar, and BDF is "
    "slightly better: between collisions the motion is a straight line, which BDF follows in few steps, while the "
    "smoothed contacts limit the steps of met1 and met2 to 0.01 s.",
)
@house_style()
def errors() -> tuple[Figure, list[Claim]]:
    picture = new_figure(PAGE, 3.4)
    axes = picture.add_subplot()
    rows = {}
    for name in METHODS:
        runs = [_billiard(name, eps) for eps in _EPS]
        rows[name] = np.array([_errors(r.t, r.v, r.observe("hamiltonian")) for r in runs])
    codes = [bdf("billiard", tolerance, _T_END) for tolerance in _TOLERANCES]
    rows["BDF"] = np.array([_errors(r.t, r.v, r.energy) for r in codes])
    work_precision(axes, rows, "speed", "energy")
    axes.set_ylabel("error")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    text = "Error of BDF over that of {} at the same density (geometric mean)."
    claims = [
        *(claim_between(text.format(name), _mean_ratio(rows["BDF"], rows[name]), 0.1, 10) for name in METHODS),
        *(claim_below(f"{name}: error with the smallest step.", rows[name][-1, 1], 1e-5, "m/s") for name in METHODS),
    ]
    return with_title(picture, "billiard, speed of balls 1 to 3 and energy, t = 2 s"), claims


def _errors(t: np.ndarray, v: np.ndarray, energy: np.ndarray) -> tuple[float, float, float]:
    """Return steps per second, the sum of speeds that should vanish at the end, and the largest energy error."""
    return (len(t) - 1) / (t[-1] - t[0]), float(_speeds(v[-1])[:3].sum()), float(np.abs(energy - 1).max())


def _mean_ratio(code: np.ndarray, ours: np.ndarray) -> float:
    """Return the geometric mean of the error ratio of BDF to livens at equal step densities."""
    code, ours = np.log(code), np.log(ours)
    in_range = (code[:, 0] >= ours[0, 0]) & (code[:, 0] <= ours[-1, 0])
    return float(np.exp(np.mean(code[in_range, 1] - np.interp(code[in_range, 0], ours[:, 0], ours[:, 1]))))


@figure("modin-2009", "II.7", "Step sizes, billiard", note=_NOTE)
@house_style()
def steps() -> tuple[Figure, list[Claim]]:
    picture = new_figure(PAGE, 2.8)
    axes = picture.add_subplot()
    ours, code = np.diff(_billiard("met1", _EPS_OF_SIZES).t), bdf("billiard", _TOLERANCES[-1], _T_END).sizes
    for sizes, name, i in ((code, "BDF", 2), (ours, "met1", 0)):
        axes.semilogy(np.arange(1, 1001), sizes[:1000], color=PALETTE[i], linewidth=0.8, label=LABELS[name])
    axes.set_xlabel("step")
    axes.set_ylabel("size (s)")
    legend(axes)
    claims = [
        claim_below("met1: largest ratio of consecutive steps.", largest_ratio_after_start(ours), 4.0),
        claim_above("BDF: largest ratio of consecutive steps.", largest_ratio_after_start(code), 20.0),
        claim_above("met1: smallest step.", float(ours[:-1].min()), 5e-5, "s"),
        claim_below("BDF: smallest step.", float(code[10:].min()), 2e-5, "s"),
    ]
    return with_title(picture, f"billiard, eps = {_EPS_OF_SIZES:g}, tolerance of BDF {_TOLERANCES[-1]:g}"), claims
