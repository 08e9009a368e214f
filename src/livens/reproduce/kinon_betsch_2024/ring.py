"""Figures 15 and 16 of Kinon and Betsch 2024: closed loop of four bars, loaded for one second."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from livens.plot.curves import curve, time_axis
from livens.plot.style import PAGE, PALETTE, house_style, legend, new_figure
from livens.reproduce import panels, solids
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import (
    claim_above,
    claim_below,
    claim_constraints_hold,
    claim_order,
    largest_increment,
    roundoff_limit,
    run,
)
from livens.results.result import Result

_TIMES = (0.0, 1.0, 2.0, 4.0, 7.0, 10.0)
_EDGES = ((1.0, 10.0, 1.0), (10.0, 1.0, 1.0), (1.0, 10.0, 1.0), (10.0, 1.0, 1.0))
_STEPS = (0.05, 0.025, 0.0125, 0.00625)


def _bar_loop(name: str = "closed-loop-bars", h: float = 0.1) -> Result:
    return run(name, "livens-em", h, 10.0)


def _unloaded(result: Result) -> np.ndarray:
    """Return the mask of rows after the end of the load."""
    return np.asarray(result.t > 1 - 1e-9)


def _momentum_change(result: Result) -> float:
    momentum = result.observe("angular_momentum")[_unloaded(result)]
    return float(np.linalg.norm(momentum - momentum[0], axis=1).max())


@figure("kinon-betsch-2024", 15, "Closed loop of bars at six instants", quick=True)
@house_style()
def snapshots() -> tuple[Figure, list[Claim]]:
    result = _bar_loop()
    picture = new_figure(PAGE, 4.2)
    for i, time in enumerate(_TIMES):
        row = int(np.abs(result.t - time).argmin())
        bars = result.q[row].reshape(4, 7)
        axes = picture.add_subplot(2, 3, i + 1, projection="3d")
        for bar, edges in zip(bars, _EDGES, strict=True):
            solids.box(axes, bar[:3], bar[3:], edges)
        middle = bars[:, :3].mean(axis=0)
        solids.set_equal_axes(axes, middle - 7.5, middle + 7.5, f"$t$ = {result.t[row]:g} s")
    claims = [claim_constraints_hold("Joint and normalisation constraints hold to round-off.", result)]
    return panels.with_caption(picture, result), claims


@figure(
    "kinon-betsch-2024",
    16,
    "Energy and angular momentum of the closed loop of bars",
    note="The source states that angular momentum is conserved exactly after the load. With quaternions it is not, for "
    "two reasons of equal size. The joint force acts at the midpoint of a step, where the mean of two unit quaternions "
    "has a norm below 1: the joint is open by O(h^2), and action and reaction have a moment (5.2e-3 kg m^2/s until "
    "t = 10 s at h = 0.1 s). The partitioned discrete gradient (129)-(131) of the kinetic energy, used here instead of "
    "(86)-(88), is not invariant under rotations (5.3e-3 kg m^2/s). The change is not visible on the scale of L. With "
    "directors, for which joint constraints are linear, the same scheme conserves angular momentum to round-off.",
)
@house_style()
def conserved() -> tuple[Figure, list[Claim]]:
    result, directors_run = _bar_loop(), _bar_loop("closed-loop-bars-directors")
    picture = new_figure(PAGE, 4.6)
    (left, right), (below_left, below_right) = picture.subplots(2, 2)
    curve(left, result.t, result.observe("generalized_energy"), color=PALETTE[6])
    left.set_ylabel("$E$ (J)")
    momentum = result.observe("angular_momentum")
    for i in range(3):
        curve(right, result.t, momentum[:, i], label=f"$L_{i + 1}$", color=PALETTE[i], linestyle=("-", "--", ":")[i])
    right.set_ylabel("angular momentum (kg m$^2$/s)")
    time_axis(left, result)
    time_axis(right, result)
    legend(right)
    unloaded = _unloaded(result)[:-1]
    for axes, name, label in (
        (below_left, "generalized_energy", r"$|E_{n+1} - E_n|$ (J)"),
        (below_right, "angular_momentum", r"$|L_{n+1} - L_n|$ (kg m$^2$/s)"),
    ):
        steps = {
            formulation: np.linalg.norm(run_.observe(name, increments=True).reshape(len(run_.t) - 1, -1), axis=1)[
                unloaded
            ]
            for formulation, run_ in (("quaternions", result), ("directors", directors_run))
        }
        panels.logarithmic(axes, result, steps, roundoff_limit(result, name) / 1000, label, t=result.t[1:][unloaded])
    text = "After the load, increments of the energy are round-off"
    claims = [
        claim_below(
            f"{text} (quaternions).",
            largest_increment(result, "generalized_energy", 1.0),
            roundoff_limit(result, "generalized_energy"),
            "J",
        ),
        claim_below(
            f"{text} (directors).",
            largest_increment(directors_run, "generalized_energy", 1.0),
            roundoff_limit(directors_run, "generalized_energy"),
            "J",
        ),
        claim_below(
            "The energy equals the work of the load.",
            float(np.abs(result.observe("energy_balance_defect")).max()),
            roundoff_limit(result, "generalized_energy"),
            "J",
        ),
        claim_below(
            "With directors, angular momentum is conserved to round-off.",
            largest_increment(directors_run, "angular_momentum", 1.0),
            roundoff_limit(directors_run, "angular_momentum"),
            "kg m^2/s",
        ),
        claim_above("With quaternions, angular momentum is not conserved.", _momentum_change(result), 1e-3, "kg m^2/s"),
        claim_order(
            "The change of angular momentum is of order 2.",
            2,
            _STEPS,
            [_momentum_change(_bar_loop(h=h)) for h in _STEPS],
        ),
    ]
    return panels.with_caption(picture, result), claims
