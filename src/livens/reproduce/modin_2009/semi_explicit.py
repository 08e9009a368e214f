"""Figures 3 to 5 of paper V in Modin 2009: expensive forces explicit, cheap stiff forces implicit."""

from __future__ import annotations

import functools

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from livens.plot.curves import curve, time_axis
from livens.plot.style import GREY, PAGE, PALETTE, house_style, new_figure
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import claim_above, claim_below, claim_between, claim_ranked, run
from livens.reproduce.modin_2009.extensions import imex_claims
from livens.reproduce.modin_2009.runs import with_title
from livens.results.result import Result

_OSCILLATORS = {"semi-explicit:0.5,0.8": "proposed", "theta:0.5": "theta = 1/2", "theta:0.8": "theta = 0.8"}
_PENDULUM = {"semi-explicit:0.5,0.6": "proposed", "theta:0.5": "theta = 1/2", "theta:0.6": "theta = 0.6"}
_T_OSCILLATORS, _T_PENDULUM = 20.0, 10.0


def _evaluations(result: Result) -> float:
    """Return the expensive-force evaluations per step, without those for derivatives.

    The semi-explicit scheme needs one. A fully implicit method needs one before the first Newton correction and one
    after each correction.
    """
    semi = result.info.scheme.startswith("semi-explicit")
    return 1.0 if semi else 1 + float(result.newton_iterations[1:].mean())


# -- two oscillators --------------------------------------------------------------------------------------------------
def _two_oscillators(scheme: str) -> Result:
    return run("two-oscillators", scheme, 1.0, _T_OSCILLATORS)


def exact_two_oscillators(t: np.ndarray) -> np.ndarray:
    """Return (q, v) at many times, by the modes of the linear system.

    >>> bool(np.allclose(exact_two_oscillators(np.zeros(1)), [[1.0, 1.1, 0.0, 0.0]]))
    True
    """
    pair = np.array([[1.0, -1.0], [-1.0, 1.0]])
    rates, modes = np.linalg.eig(
        np.block([[np.zeros((2, 2)), np.eye(2)], [-1e3 * pair - np.diag([1.0, 0.0]), -1e2 * pair]])
    )
    parts = np.linalg.solve(modes, [1.0, 1.1, 0.0, 0.0])
    return np.asarray((np.exp(np.outer(t, rates)) * parts @ modes.T).real)


@figure(
    "modin-2009",
    "V.3",
    "Two oscillators",
    quick=True,
    note="The horizon is not legible; here it is 20 s. The frequencies in the text are not those of the equations: the "
    "slow one is sqrt(1/2)/(2 pi) = 0.11 Hz; the stiff spring with its damper does not oscillate but decays with the "
    "rates 11 and 189 1/s. For this linear problem both forms of the theta method coincide.",
)
@house_style()
def oscillators() -> tuple[Figure, list[Claim]]:
    picture = new_figure(PAGE, 5.4)
    panels = picture.subplots(4, 1, sharex=True, sharey=True)
    t = np.linspace(0, _T_OSCILLATORS, 801)
    shown = {"exact": (t, exact_two_oscillators(t))}
    for scheme, label in _OSCILLATORS.items():
        result = _two_oscillators(scheme)
        shown[label] = result.t, np.hstack([result.q, result.v])
    for axes, (label, (times, z)) in zip(panels, shown.items(), strict=True):
        marker = "" if label == "exact" else "."
        for i in range(4):
            line = "-" if i < 2 else "--"
            axes.plot(times, z[:, i], color=PALETTE[i % 2], linestyle=line, marker=marker, markersize=3, linewidth=0.8)
        axes.set_title(label, color=GREY)
        axes.set_ylabel("$q$, $\\dot q$")
        axes.set_ylim(-1.6, 1.6)
    time_axis(panels[-1], _two_oscillators("theta:0.5"))
    return with_title(picture, "two-oscillators, h = 1 s; q solid, its rate dashed"), _pair_claims()


def _pair_claims() -> list[Claim]:
    results = {label: _two_oscillators(scheme) for scheme, label in _OSCILLATORS.items()}
    errors = {
        label: float(np.linalg.norm(result.q - exact_two_oscillators(result.t)[:, :2], axis=1).max())
        for label, result in results.items()
    }
    stiff = {label: float(np.abs(result.q[-1, 0] - result.q[-1, 1])) for label, result in results.items()}
    exact = float(np.abs(np.diff(exact_two_oscillators(np.array([_T_OSCILLATORS]))[0, :2])[0]))
    late = {label: float(np.abs(result.q[-9:]).max()) for label, result in results.items()}  # one period
    height = float(np.abs(exact_two_oscillators(np.linspace(11, 20, 901))[:, :2]).max())
    counts = {label: _evaluations(result) for label, result in results.items()}
    return [
        claim_ranked("The proposed method is the most accurate (largest position error).", errors),
        claim_between("It keeps the amplitude (over the exact one, last period),", late["proposed"] / height, 0.9, 1.1),
        claim_below("theta = 0.8 does not.", late["theta = 0.8"] / height, 0.5),
        claim_below(
            "The proposed method damps the stiff mode (final distance of the masses, minus the exact one),",
            abs(stiff["proposed"] - exact),
            1e-3,
            "m",
        ),
        claim_above(
            "theta = 1/2 damps it less (ratio of these distances).",
            abs(stiff["theta = 1/2"] - exact) / abs(stiff["proposed"] - exact),
            10.0,
        ),
        claim_ranked(
            "Evaluations of A per step.", {"proposed": counts["proposed"], "theta = 1/2": counts["theta = 1/2"]}
        ),
    ]


# -- pendulum on a stiff spring ---------------------------------------------------------------------------------------
def _penalty_pendulum(scheme: str) -> Result:
    return run("pendulum-penalty", scheme, 0.01, _T_PENDULUM)


@functools.cache
def _exact_penalty_pendulum() -> np.ndarray:
    """Return q at the end of all steps by DOP853 (order 8)."""
    t = _penalty_pendulum("theta:0.5").t

    def rate(_: float, z: np.ndarray) -> np.ndarray:
        pull = 1e4 * (z[0] ** 2 + z[1] ** 2 - 1)
        return np.array([z[2], z[3], -pull * z[0], -1 - pull * z[1]])

    solution = solve_ivp(rate, (0, t[-1]), [1.01, 0, 0, 0], method="DOP853", rtol=1e-11, atol=1e-12, t_eval=t)
    return np.asarray(solution.y[:2].T)


def _length(q: np.ndarray) -> np.ndarray:
    return np.asarray(np.hypot(*q.T) - 1)


@figure(
    "modin-2009",
    "V.4",
    "Error of a pendulum on a stiff spring",
    note="The horizon is not legible; here it is 10 s. Errors are relative to the exact motion, which oscillates "
    "undamped along the rod. theta = 1/2 correctly does not damp this oscillation, the other methods "
    "filter it out.",
)
@house_style()
def pendulum_error() -> tuple[Figure, list[Claim]]:
    exact = _exact_penalty_pendulum()
    picture = new_figure(PAGE, 4.2)
    panels = picture.subplots(3, 1, sharex=True, sharey=True)
    errors = {}
    for i, (axes, (scheme, label)) in enumerate(zip(panels, _PENDULUM.items(), strict=True)):
        result = _penalty_pendulum(scheme)
        errors[label] = result.q[:, 0] - exact[:, 0]
        curve(axes, result.t, errors[label], color=PALETTE[i], linewidth=0.6)
        axes.set_title(label, color=GREY)
        axes.set_ylabel("error of $q^x$ (m)")
    time_axis(panels[-1], _penalty_pendulum("theta:0.5"))
    largest = {label: float(np.abs(values).max()) for label, values in errors.items()}
    rough = {label: _roughness(_penalty_pendulum(scheme).q[:, 0]) for scheme, label in _PENDULUM.items()}
    names = ("theta = 1/2", "proposed", "theta = 0.6")
    claims = [
        claim_ranked("The error of theta = 1/2 is the smallest.", {n: largest[n] for n in names}),
        claim_above(
            "The motion of theta = 1/2 oscillates from step to step (mean second difference of q^x in the last half, "
            "over that of the proposed method).",
            rough["theta = 1/2"] / rough["proposed"],
            5.0,
        ),
    ]
    return with_title(picture, "pendulum-penalty, h = 0.01 s"), claims


def _roughness(x: np.ndarray) -> float:
    return float(np.abs(np.diff(x[len(x) // 2 :], 2)).mean())


@figure(
    "modin-2009",
    "V.5",
    "Length of a pendulum on a stiff spring",
    note="The figure shows |q| - 1, as in the caption; the text has |q|^2 - 1. See figure V.4 for the exact motion.",
)
@house_style()
def pendulum_length() -> tuple[Figure, list[Claim]]:
    picture = new_figure(PAGE, 4.2)
    panels = picture.subplots(3, 1, sharex=True, sharey=True)
    for i, (axes, (scheme, label)) in enumerate(zip(panels, _PENDULUM.items(), strict=True)):
        result = _penalty_pendulum(scheme)
        curve(axes, result.t, _length(result.q), color=PALETTE[i], linewidth=0.6)
        axes.set_title(label, color=GREY)
        axes.set_ylabel("$|q| - 1$ (m)")
    time_axis(panels[-1], _penalty_pendulum("theta:0.5"))
    half = len(_exact_penalty_pendulum()) // 2
    late = {
        label: float(np.abs(_length(_penalty_pendulum(scheme).q)[half:]).max()) for scheme, label in _PENDULUM.items()
    }
    exact = float(np.abs(_length(_exact_penalty_pendulum())[half:]).max())
    counts = {
        label: float(_penalty_pendulum(scheme).newton_iterations[1:].mean()) for scheme, label in _PENDULUM.items()
    }
    evaluations = {label: _evaluations(_penalty_pendulum(scheme)) for scheme, label in _PENDULUM.items()}
    claims = [
        claim_below(
            "The proposed method damps the stiff mode (largest error, last half),", late["proposed"], 1e-3, "m"
        ),
        claim_below("theta = 0.6 damps it as well,", late["theta = 0.6"], 1e-3, "m"),
        claim_above("theta = 1/2 does not.", late["theta = 1/2"], 5e-3, "m"),
        claim_above("The stiff mode of the exact motion is undamped.", exact, 5e-3, "m"),
        claim_ranked("Newton corrections per step.", {n: counts[n] for n in ("proposed", "theta = 1/2")}),
        claim_ranked("Evaluations of A per step.", {n: evaluations[n] for n in ("proposed", "theta = 1/2")}),
        *imex_claims(),
    ]
    return with_title(picture, "pendulum-penalty, h = 0.01 s"), claims
