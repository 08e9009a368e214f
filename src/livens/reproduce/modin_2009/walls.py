"""Figures 2 to 4 of paper II in Modin 2009: particle between a soft and a stiff wall, compared with a BDF code."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from livens.errors import IntegrationError
from livens.plot.curves import curve
from livens.plot.style import GREY, PAGE, PALETTE, house_style, legend, new_figure
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import claim_above, claim_below, claim_ranked, convergence_order
from livens.reproduce.modin_2009.runs import (
    BdfSteps,
    adaptive,
    bdf,
    claim_drift,
    claim_no_drift,
    largest_step_ratio,
    with_title,
)
from livens.results.result import Result

_T_END = 200.0
#: Schemes of the paper, and smoothing length of the walls relative to the step eps.
METHODS = {"met1": ("adaptive-variational:0.5,0.5", 0.033), "met2": ("adaptive-variational:0,0", 0.04)}
LABELS = {"met1": "met1 ($\\alpha = \\beta = 1/2$)", "met2": "met2 ($\\alpha = \\beta = 0$)", "BDF": "BDF, order 2"}
_EPS = tuple(float(eps) for eps in np.geomspace(0.3, 0.01, 10))
_TOLERANCES = tuple(float(tolerance) for tolerance in np.geomspace(1.5e-3, 2.2e-7, 10))
_SCALING = (
    "The scaling uses the first term of (28), V''(D~) D~'^2. The second term, V' D~'', changes sign just outside a "
    "wall, so that with c_lim = 0, as in table 1, the scaling would have poles. The arctan of (29) has the opposite "
    "sign, otherwise D~ would grow with the distance from the wall. BDF is VODE with orders 1 and 2, instead of ode15s."
)


def walls(method: str, eps: float, t_end: float = _T_END) -> Result:
    scheme, length = METHODS[method]
    return adaptive("two-walls", scheme, eps, t_end, (("smooth", length * eps),))


def position(t: np.ndarray) -> np.ndarray:
    """Return the exact position at many times: half a sine in the soft wall, half a sine in the stiff wall.

    >>> [f"{q:.12f}" for q in position(np.array([0.0, np.pi / 2 + np.pi / 200]))]
    ['1.000000000000', '-0.010000000000']
    """
    time_since_entry = (t + np.pi / 2) % (1.01 * np.pi)  # time since entry into the soft wall
    return np.where(
        time_since_entry < np.pi, np.sin(time_since_entry), -0.01 * np.sin(100 * (time_since_entry - np.pi))
    )


def _errors(t: np.ndarray, q: np.ndarray, energy: np.ndarray) -> tuple[float, float, float]:
    """Return steps per second, and the largest errors of position and energy."""
    density = (len(t) - 1) / (t[-1] - t[0])
    return density, float(np.abs(q[:, 0] - position(t)).max()), float(np.abs(energy - 0.5).max())


def _error_levels(method: str, eps: tuple[float, ...] = _EPS) -> np.ndarray:
    """Return the errors for each step size whose run succeeds, shape (n_runs, 3)."""
    rows = []
    for step in eps:
        try:
            result = walls(method, step)
        except IntegrationError:
            continue
        rows.append(_errors(result.t, result.q, result.observe("hamiltonian")))
    return np.array(rows)


def _bdf(level: int) -> BdfSteps:
    return bdf("two-walls", _TOLERANCES[level], _T_END)


def work_precision(axes: Axes, rows: dict[str, np.ndarray], solid: str, dotted: str) -> None:
    """Plot two errors against the step density."""
    for i, (name, values) in enumerate(rows.items()):
        style = dict(color=PALETTE[i], marker="osD"[i], markersize=3, linewidth=0.9)
        axes.loglog(values[:, 0], values[:, 1], label=f"{LABELS[name]}: {solid}", **style)
        axes.loglog(values[:, 0], values[:, 2], linestyle=":", fillstyle="none", label=dotted, **style)
    axes.set_xlabel(r"$\varrho_\mathrm{step}$ (steps per second)")


@figure(
    "modin-2009",
    "II.2",
    "Errors against the density of steps, two walls",
    note=_SCALING + " For the longest step of the paper, 0.3, some step of met2 has no solution. Its order 1 is only "
    "visible below the step range of the paper; within this range its errors decrease faster. With tolerances above "
    "1e-4 BDF gains energy without bound (partly outside the plot). Not limited to order 2, BDF is better at high "
    "accuracy.",
)
@house_style()
def errors() -> tuple[Figure, list[Claim]]:
    picture = new_figure(PAGE, 3.4)
    axes = picture.add_subplot()
    code = np.array([_errors(run.t, run.q, run.energy) for run in map(_bdf, range(10))])
    rows = {"met1": _error_levels("met1"), "met2": _error_levels("met2"), "BDF": code}
    work_precision(axes, rows, "position", "energy")
    ends = np.array([30.0, 190.0])
    for order, value in ((1, 0.9), (2, 0.02)):
        axes.loglog(ends, value * (ends / ends[0]) ** -order, color=GREY, linewidth=0.6, linestyle=(0, (4, 2)))
        axes.annotate(f"order {order}", (ends[1], value * (ends[1] / ends[0]) ** -order), fontsize=7, color=GREY)
    axes.set_ylabel("largest error")
    axes.set_ylim(top=10)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    fine = rows["met1"][rows["met1"][:, 0] > 20]
    finer = _error_levels("met2", (0.004, 0.002, 0.001, 0.0005))
    orders = [
        -convergence_order(list(part[:, 0]), list(part[:, 1])) for part in (fine, finer, _symmetric_class_errors())
    ]
    best = bdf("two-walls", _TOLERANCES[-1], _T_END, 5)
    unlimited = np.array([_errors(best.t, best.q, best.energy)])
    claims = [
        _claim_order("met1: order 2 of the position, from 20 steps per second on.", 2, orders[0]),
        _claim_order("met2: order 1 of the position, from 500 steps per second on.", 1, orders[1]),
        _claim_order(
            "The symmetric class (25) with alpha = beta = 0 and smoothing length 0.01: order 2.", 2, orders[2]
        ),
        *(
            claim_above(
                f"Smallest ratio of BDF error to {n} error at equal density.", _smallest_error_ratio(code, rows[n]), 1.0
            )
            for n in METHODS
        ),
        claim_below(
            "BDF of orders up to 5 with the smallest tolerance: error over that of met1.",
            _smallest_error_ratio(unlimited, rows["met1"]),
            1.0,
        ),
    ]
    return with_title(picture, f"two-walls, t = {_T_END:g} s"), claims


def _symmetric_class_errors() -> np.ndarray:
    """Return the errors of the symmetric class, without figure in the paper, with the same scaling for all steps."""
    runs = [
        adaptive("two-walls", "adaptive-variational-sym:0,0", eps, 20.0, (("smooth", 0.01),))
        for eps in (0.02, 0.01, 0.005, 0.0025)
    ]
    return np.array([_errors(run.t, run.q, run.observe("hamiltonian")) for run in runs])


def _claim_order(text: str, expected: int, order: float) -> Claim:
    return Claim(text, f"{order:.3f}, {expected} ± 0.1", abs(order - expected) <= 0.1)


def _smallest_error_ratio(code: np.ndarray, rows: np.ndarray) -> float:
    """Return the smallest ratio of position errors of a code to interpolated errors of livens at equal density."""
    in_range = (code[:, 0] >= rows[0, 0]) & (code[:, 0] <= rows[-1, 0])
    interpolated = np.exp(np.interp(np.log(code[in_range, 0]), np.log(rows[:, 0]), np.log(rows[:, 1])))
    return float((code[in_range, 1] / interpolated).min())


@figure(
    "modin-2009",
    "II.3",
    "Energy errors in time, two walls",
    note="As in the paper, runs are those of the fifth level. The errors of met1 and met2 occur within a collision and "
    "vanish after it; BDF has smaller errors in these 40 s, with twice as many steps, but they accumulate. " + _SCALING,
)
@house_style()
def energy() -> tuple[Figure, list[Claim]]:
    picture = new_figure(PAGE, 4.2)
    upper = picture.subplots(3, 1, sharex=True)
    runs = {name: walls(name, _EPS[4]) for name in METHODS}
    code = _bdf(4)
    for i, (axes, (name, label)) in enumerate(zip(upper, LABELS.items(), strict=True)):
        t, H = (code.t, code.energy) if name == "BDF" else (runs[name].t, runs[name].observe("hamiltonian"))
        early = t <= 40
        curve(axes, t[early], H[early] - 0.5, color=PALETTE[i], label=label, linewidth=0.7)
        axes.set_ylabel("$H - H_0$ (J)")
        legend(axes)
    upper[-1].set_xlabel("$t$ (s)")
    claims = []
    for name, result in runs.items():
        claims.append(claim_no_drift(f"{name} does not drift,", result.t, result.observe("hamiltonian")))
        long_run = walls(name, _EPS[4], 10 * _T_END)
        claims.append(claim_no_drift("nor over ten times the horizon.", long_run.t, long_run.observe("hamiltonian")))
    claims.append(claim_drift("BDF drifts.", code.t, code.energy))
    return with_title(picture, f"two-walls, eps = {_EPS[4]:.3g}, tolerance of BDF {_TOLERANCES[4]:.2g}"), claims


def largest_ratio_after_start(sizes: np.ndarray) -> float:
    """Return the largest ratio of consecutive steps, without the start-up phase of the code."""
    return largest_step_ratio(sizes[10:])


@figure(
    "modin-2009",
    "II.4",
    "Step sizes, two walls",
    note="As in the paper, runs are those of the fifth level, for which BDF takes twice as many steps as met1 and "
    "met2. " + _SCALING,
)
@house_style()
def steps() -> tuple[Figure, list[Claim]]:
    picture = new_figure(PAGE, 2.8)
    axes = picture.add_subplot()
    code = _bdf(4)
    ratios_by_method = {}
    for i, (name, label) in enumerate(LABELS.items()):
        t, sizes = (code.t[1:], code.sizes) if name == "BDF" else _sizes(walls(name, _EPS[4]))
        ratios_by_method[name] = largest_ratio_after_start(sizes)
        early = t <= 10
        axes.semilogy(t[early], sizes[early], color=PALETTE[i], linewidth=0.8, label=label)
    axes.set_ylabel("step (s)")
    axes.set_xlabel("$t$ (s)")
    legend(axes)
    smallest = {name: float(_sizes(walls(name, _EPS[4]))[1][:-1].min()) for name in METHODS}
    claims = [
        claim_below("met1: largest ratio of consecutive steps.", ratios_by_method["met1"], 4.0),
        claim_below("met2: largest ratio of consecutive steps.", ratios_by_method["met2"], 4.0),
        claim_above("BDF: largest ratio of consecutive steps.", ratios_by_method["BDF"], 20.0),
        claim_ranked("BDF takes much smaller steps.", {"BDF": float(code.sizes[10:].min()), **smallest}),
    ]
    return with_title(picture, f"two-walls, eps = {_EPS[4]:.3g}, tolerance of BDF {_TOLERANCES[4]:.2g}"), claims


def _sizes(result: Result) -> tuple[np.ndarray, np.ndarray]:
    return result.t[1:], np.diff(result.t)
