"""Figures 1.1 and 2.7 to 2.10 of Modin 2009: pendulum by implicit and symplectic Euler."""

from __future__ import annotations

import functools

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp
from scipy.special import ellipk

from livens import problems
from livens.plot.curves import curve, time_axis
from livens.plot.style import COLUMN, GREY, PALETTE, house_style, legend, new_figure
from livens.reproduce import panels
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import claim_above, claim_below, claim_between, claim_no_trend, claim_order, run
from livens.reproduce.modin_2009.runs import with_title
from livens.results.result import Result

_H = 0.1
_PERIOD = 4 * float(ellipk(0.5))  # release at rest from the horizontal
_SCHEMES = {"implicit-euler": "implicit Euler", "symplectic-euler": "symplectic Euler"}
_T_END = 30.0  # about four periods
_HEAD = f"nonlinear-pendulum, h = {_H:g} s"


def _pendulum_run(scheme: str, t_end: float = _T_END, h: float = _H) -> Result:
    return run("nonlinear-pendulum", scheme, h, t_end)


def _exact(t: np.ndarray) -> np.ndarray:
    """Return the exact (q, p) at all times."""
    reference = problems.load("nonlinear-pendulum").reference
    assert reference is not None
    return np.array([np.concatenate([state["q"], state["v"]]) for state in map(reference, t)])


def _energy(result: Result) -> np.ndarray:
    """Return the energy relative to the lowest position; its initial value is 1."""
    return np.asarray(result.observe("hamiltonian") + 1)


def _modified_energy(result: Result) -> np.ndarray:
    """Return the modified energy ``H - h/2 H_q H_p`` of symplectic Euler (p first), conserved up to O(h^2)."""
    q, p = result.q[:, 0], result.p[:, 0]
    return np.asarray(_energy(result) - result.info.h / 2 * p * np.sin(q))


@figure(
    "modin-2009",
    "1.1",
    "Position of a pendulum, by a general-purpose and a geometric integrator",
    quick=True,
    note="The step size is that of 2.9.6. The horizontal position is plotted against time, the exact one in grey.",
)
@house_style()
def position() -> tuple[Figure, list[Claim]]:
    picture, *axes_pair = panels.two_panels()
    times = np.linspace(0, 2 * _PERIOD, 400)
    final_energies = {}
    for i, (axes, (scheme, label)) in enumerate(zip(axes_pair, _SCHEMES.items(), strict=True)):
        result = _pendulum_run(scheme, 2 * _PERIOD)
        curve(axes, times, np.sin(_exact(times)[:, 0]), color=GREY, linewidth=0.6, linestyle="--", label="exact")
        axes.plot(result.t, np.sin(result.q[:, 0]), color=PALETTE[1 - i], marker=".", markersize=2.5, label=label)
        axes.set_ylabel("horizontal position (m)")
        time_axis(axes, result)
        legend(axes)
        final_energies[scheme] = float(_energy(result)[-1])
    claims = [
        claim_below(
            "Implicit Euler has less than half of the energy after two periods,", final_energies["implicit-euler"], 0.5
        ),
        claim_between("symplectic Euler has all of it.", final_energies["symplectic-euler"], 0.99, 1.01),
    ]
    return with_title(picture, _HEAD), claims


@figure("modin-2009", "2.7", "Phase diagram of the pendulum", quick=True)
@house_style()
def phase_diagram() -> tuple[Figure, list[Claim]]:
    picture = new_figure(COLUMN, 3.2)
    axes = picture.add_subplot()
    q = np.linspace(-np.pi / 2, np.pi / 2, 2001)
    p = np.sqrt(2 * np.maximum(np.cos(q), 0))
    axes.plot(np.r_[q, q[::-1]], np.r_[p, -p], color=GREY, linewidth=1.2, label="exact")
    for i, (scheme, label) in enumerate(_SCHEMES.items()):
        result = _pendulum_run(scheme)
        axes.plot(
            result.q[:, 0], result.p[:, 0], color=PALETTE[1 - i], marker=".", markersize=2.5, linewidth=0.5, label=label
        )
    axes.set_xlabel("$q$")
    axes.set_ylabel("$p$ (1/s)")
    axes.set_aspect("equal")
    legend(axes)
    steps = [0.2 / 2**i for i in range(5)]
    swings = {h: _pendulum_run("symplectic-euler", _T_END, h) for h in steps}
    energy_errors, modified_errors = (
        [float(np.abs(f(result) - f(result)[0]).max()) for result in swings.values()]
        for f in (_energy, _modified_energy)
    )
    implicit = _energy(_pendulum_run("implicit-euler"))
    claims = [
        claim_below("Symplectic Euler stays near the exact curve (largest change of H),", energy_errors[1], 0.1, "J"),
        claim_above("implicit Euler does not.", float(np.abs(implicit - implicit[0]).max()), 0.5, "J"),
        claim_order("The deviation of symplectic Euler from H = const is O(h),", 1, steps, energy_errors),
        claim_order("that from the modified Hamiltonian H - h/2 H_q H_p = const is O(h^2).", 2, steps, modified_errors),
    ]
    return with_title(picture, _HEAD), claims


@figure("modin-2009", "2.8", "Energy of the pendulum", quick=True)
@house_style()
def energy() -> tuple[Figure, list[Claim]]:
    picture, axes = panels.single_panel()
    for i, (scheme, label) in enumerate(_SCHEMES.items()):
        result = _pendulum_run(scheme)
        curve(axes, result.t, _energy(result), color=PALETTE[1 - i], label=label)
    axes.axhline(1.0, color=GREY, linewidth=0.6, linestyle="--", label="exact")
    axes.set_ylabel("$H + 1$ (J)")
    time_axis(axes, _pendulum_run("implicit-euler"))
    legend(axes)
    short, long = (_pendulum_run("symplectic-euler", t_end) for t_end in (_T_END, 10 * _T_END))
    lost = np.diff(_energy(_pendulum_run("implicit-euler")))
    claims = [
        claim_no_trend("The energy of symplectic Euler does not drift,", short.t, _energy(short), "J"),
        claim_no_trend(f"nor over ten times the horizon ({10 * _T_END:g} s).", long.t, _energy(long), "J"),
        claim_below("Implicit Euler loses energy in each step (largest change per step).", float(lost.max()), 0.0, "J"),
        claim_below("Implicit Euler loses almost all energy (final energy).", float(1 + lost.sum()), 0.2, "J"),
    ]
    return with_title(picture, _HEAD), claims


@figure("modin-2009", "2.9", "Global errors for the pendulum", quick=True)
@house_style()
def global_error() -> tuple[Figure, list[Claim]]:
    picture, axes = panels.single_panel()
    errors = {}
    for i, (scheme, label) in enumerate(_SCHEMES.items()):
        result = _pendulum_run(scheme)
        errors[scheme] = np.linalg.norm(np.hstack([result.q, result.p]) - _exact(result.t), axis=1)
        curve(axes, result.t, errors[scheme], color=PALETTE[1 - i], label=label)
    axes.set_ylabel("global error")
    time_axis(axes, _pendulum_run("implicit-euler"))
    legend(axes)
    claims = []
    for label, until in (("two periods", 2 * _PERIOD), ("the run", _T_END)):
        early = _pendulum_run("implicit-euler").t <= until
        ratio = float(errors["implicit-euler"][early].max() / errors["symplectic-euler"][early].max())
        claims.append(claim_above(f"Largest error of implicit over symplectic Euler, over {label}.", ratio, 5.0))
    return with_title(picture, _HEAD), claims


@functools.cache
def _local_errors(scheme: str) -> np.ndarray:
    """Return the local errors: distance of each step from the exact flow, along the numerical trajectory."""
    result = _pendulum_run(scheme)
    z = np.hstack([result.q, result.p])
    is_full_step = np.isclose(np.diff(result.t), _H, rtol=1e-9)  # the last step may be shorter
    step_start, step_end = z[:-1][is_full_step], z[1:][is_full_step]
    n = len(step_start)
    exact_flow = solve_ivp(
        lambda t, y: np.r_[y[n:], -np.sin(y[:n])],
        (0, _H),
        step_start.T.ravel(),
        method="DOP853",
        rtol=1e-13,
        atol=1e-13,
    )
    return np.asarray(np.linalg.norm(step_end - exact_flow.y[:, -1].reshape(2, n).T, axis=1))


@figure("modin-2009", "2.10", "Local errors for the pendulum", quick=True)
@house_style()
def local_error() -> tuple[Figure, list[Claim]]:
    picture, axes = panels.single_panel()
    for i, (scheme, label) in enumerate(_SCHEMES.items()):
        values = _local_errors(scheme)
        curve(axes, _H * np.arange(1, len(values) + 1), values, color=PALETTE[1 - i], label=label)
    axes.set_ylabel("local error")
    time_axis(axes, _pendulum_run("implicit-euler"))
    legend(axes)
    n_two_periods = int(2 * _PERIOD / _H)
    implicit, symplectic = (_local_errors(scheme)[:n_two_periods] for scheme in _SCHEMES)
    text = "Over two periods the mean local errors have the same size (implicit over symplectic Euler),"
    claims = [
        claim_between(text, float(implicit.mean() / symplectic.mean()), 1 / 3, 3),
        claim_between("and so have the largest local errors.", float(implicit.max() / symplectic.max()), 1 / 3, 3),
    ]
    return with_title(picture, _HEAD), claims
