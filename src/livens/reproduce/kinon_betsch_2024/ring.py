"""Figures 14 to 16 of Kinon and Betsch 2024: closed loop of four bars, loaded for one second."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from livens import problems
from livens import rotations as rot
from livens.plot.curves import curve, time_axis
from livens.plot.style import PAGE, PALETTE, house_style, legend, new_figure
from livens.problems.closed_loop_bars import joint_positions, load_function
from livens.reproduce import panels, solids
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import (
    claim_below,
    claim_between,
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


#: Options of the published form of the ring.
_PUBLISHED = (("equivariant", 1), ("torque", "printed"))
_FORM_NOTE = (
    "The runs have the form of the source: kinetic energy through invariants, (86) to (88), with eight invariants as "
    "in metis 1.1.1, the code of the authors, and the torque (128) (problem closed-loop-bars with equivariant=1 and "
    "torque='printed')."
)


def _bar_loop(name: str = "closed-loop-bars", h: float = 0.1, options: tuple[tuple[str, object], ...] = ()) -> Result:
    return run(name, "livens-em", h, 10.0, options)


def _published(h: float = 0.1) -> Result:
    return _bar_loop(h=h, options=_PUBLISHED)


def _unloaded(result: Result) -> np.ndarray:
    """Return the mask of rows after the end of the load."""
    return np.asarray(result.t > 1 - 1e-9)


def joint_moments(result: Result) -> np.ndarray:
    """Return the change of angular momentum by the joints in each step, ``-h sum g_k(q_m) x lam_k``.

    Under rotations of space the joint opening g_k is a vector. The joint force along ``Dg_k(q_m)`` therefore has the
    moment of a force at both ends of the opening at the midpoint.
    """
    q_m, h = (result.q[1:] + result.q[:-1]) / 2, np.diff(result.t)
    bars = q_m.reshape(len(q_m), 4, 7)
    multipliers = result.multipliers[1:, 4:].reshape(-1, 4, 3)  # after the four unit norms
    total = np.zeros((len(q_m), 3))
    for k, (a, X, b, Y) in enumerate(joint_positions(10.0)):
        opening = np.array([_point(bar[a], X) - _point(bar[b], Y) for bar in bars])
        total -= h[:, None] * np.cross(opening, multipliers[:, k])
    return total


def _point(bar: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return the position of a body-fixed point, quadratic in the quaternion."""
    return np.asarray(bar[:3] + rot.E(bar[3:]) @ rot.G(bar[3:]).T @ X)


def _momentum_change(result: Result) -> float:
    momentum = result.observe("angular_momentum")[_unloaded(result)]
    return float(np.linalg.norm(momentum - momentum[0], axis=1).max())


@figure("kinon-betsch-2024", 14, "Closed loop of bars and its load function", quick=True)
@house_style()
def load() -> tuple[Figure, list[Claim]]:
    picture = new_figure(PAGE, 2.8)
    left, right = picture.add_subplot(1, 2, 1, projection="3d"), picture.add_subplot(1, 2, 2)
    problem = problems.load("closed-loop-bars")
    assert problem.q0 is not None
    for bar, edges in zip(problem.q0.reshape(4, 7), _EDGES, strict=True):
        solids.box(left, bar[:3], bar[3:], edges)
    solids.set_equal_axes(left, [-6.5] * 3, [6.5] * 3, "initial position")
    f_m, t = 100.0, np.linspace(0, 2, 401)
    f = f_m * np.array([float(load_function(time)) for time in t])
    right.plot(t, f, color=PALETTE[0])
    right.set_xlabel("$t$ (s)")
    right.set_ylabel("$f(t)$ (N)")
    result = _published()
    rate = np.diff(result.observe("linear_momentum")[:, 0]) / np.diff(result.t)
    midpoints = (result.t[1:] + result.t[:-1]) / 2
    expected = 8 * f_m * np.array([float(load_function(time)) for time in midpoints])
    claims = [
        claim_between("The largest value of the load function is f_m, at t = 0.5 s.", float(f.max()), f_m, f_m, "N"),
        claim_below(
            "In each step, the linear momentum changes by the force 8 f(t) at the midpoint.",
            float(np.abs(rate - expected).max()),
            roundoff_limit(result, "linear_momentum") / 0.1,
            "N",
        ),
    ]
    return panels.with_caption(picture, result), claims


@figure("kinon-betsch-2024", 15, "Closed loop of bars at six instants", quick=True, note=_FORM_NOTE)
@house_style()
def snapshots() -> tuple[Figure, list[Claim]]:
    result = _published()
    picture = new_figure(PAGE, 4.2)
    for i, time in enumerate(_TIMES):
        row = int(np.abs(result.t - time).argmin())
        bars = result.q[row].reshape(4, 7)
        axes = picture.add_subplot(2, 3, i + 1, projection="3d")
        for bar, edges in zip(bars, _EDGES, strict=True):
            solids.box(axes, bar[:3], bar[3:], edges)
        middle = bars[:, :3].mean(axis=0)
        solids.set_equal_axes(axes, middle - 7.5, middle + 7.5, f"$t$ = {result.t[row]:g} s")
    distance = float(np.abs(result.q - _bar_loop().q).max())
    claims = [
        claim_constraints_hold("Joint and normalisation constraints hold to round-off.", result),
        claim_below("The default form of livens gives the same motion (largest distance in 10 s).", distance, 0.1),
    ]
    return panels.with_caption(picture, result), claims


@figure(
    "kinon-betsch-2024",
    16,
    "Energy and angular momentum of the closed loop of bars",
    note=_FORM_NOTE + " The source states that angular momentum is conserved exactly after the load. With quaternions "
    "it is not: the joint force acts at the midpoint of a step, where the mean of two unit quaternions has a norm "
    "below 1, so that the joint is open. The points of application of action and reaction differ, and their moment "
    "changes the angular momentum; the kinetic energy does not. The hidden constraints drift apart by a mode of the "
    "published form that joints excite, and the joints open with it. The default form, with the partitioned discrete "
    "gradient (129) to (131) of the kinetic energy, does not have this mode: half of its smaller change of angular "
    "momentum is that of the kinetic energy, the other half that of the joints. With directors, for which joint "
    "constraints are linear, the same scheme conserves angular momentum to round-off.",
)
@house_style()
def conserved() -> tuple[Figure, list[Claim]]:
    result, default_run, directors_run = _published(), _bar_loop(), _bar_loop("closed-loop-bars-directors")
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
    runs = {"as published": result, "default": default_run, "directors": directors_run}
    for axes, name, label in (
        (below_left, "generalized_energy", r"$|E_{n+1} - E_n|$ (J)"),
        (below_right, "angular_momentum", r"$|L_{n+1} - L_n|$ (kg m$^2$/s)"),
    ):
        steps = {
            form: np.linalg.norm(run_.observe(name, increments=True).reshape(len(run_.t) - 1, -1), axis=1)[unloaded]
            for form, run_ in runs.items()
        }
        panels.logarithmic(axes, result, steps, roundoff_limit(result, name) / 1000, label, t=result.t[1:][unloaded])
    claims = [
        *(
            claim_below(
                f"After the load, increments of the energy are round-off ({form}).",
                largest_increment(run_, "generalized_energy", 1.0),
                roundoff_limit(run_, "generalized_energy"),
                "J",
            )
            for form, run_ in runs.items()
        ),
        claim_below(
            "The energy equals the work of the load.",
            float(np.abs(result.observe("energy_balance_defect")).max()),
            roundoff_limit(result, "generalized_energy"),
            "J",
        ),
        *_published_momentum_claims(result),
        *_default_momentum_claims(default_run),
        claim_below(
            "With directors, angular momentum is conserved to round-off.",
            largest_increment(directors_run, "angular_momentum", 1.0),
            roundoff_limit(directors_run, "angular_momentum"),
            "kg m^2/s",
        ),
    ]
    return panels.with_caption(picture, result), claims


def _momentum_parts(result: Result) -> tuple[np.ndarray, np.ndarray]:
    """Return the changes of angular momentum after the load, in total and by the joints, since the end of the load."""
    unloaded = _unloaded(result)[:-1]
    total, joints = (
        np.cumsum(steps[unloaded], axis=0)
        for steps in (np.diff(result.observe("angular_momentum"), axis=0), joint_moments(result))
    )
    return total, joints


def _largest_norm(vectors: np.ndarray) -> float:
    return float(np.linalg.norm(vectors, axis=1).max())


def _published_momentum_claims(result: Result) -> list[Claim]:
    total, joints = _momentum_parts(result)
    violation = np.abs(result.observe("velocity_constraint")).max(axis=1)
    at_end_of_load = int(np.abs(result.t - 1).argmin())
    unit = "kg m^2/s"
    return [
        claim_between(
            "As published, angular momentum is not conserved after the load,", _largest_norm(total), 0.1, 1, unit
        ),
        claim_below(
            "and the whole change is the moment of the open joints.",
            _largest_norm(total - joints),
            roundoff_limit(result, "angular_momentum"),
            unit,
        ),
        claim_between("Hidden constraints are violated at t = 1 s", float(violation[at_end_of_load]), 5e-4, 5e-3),
        claim_between("and at t = 10 s.", float(violation[-1]), 5, 20),
    ]


def _default_momentum_claims(result: Result) -> list[Claim]:
    total, joints = _momentum_parts(result)
    unit = "kg m^2/s"
    return [
        claim_between(
            "With the default form, angular momentum changes after the load,", _largest_norm(total), 0.005, 0.02, unit
        ),
        claim_between(
            "by the joints",
            _largest_norm(joints),
            0.4 * _largest_norm(total),
            0.6 * _largest_norm(total),
            unit,
        ),
        claim_between(
            "and by the discrete gradient of the kinetic energy,",
            _largest_norm(total - joints),
            0.4 * _largest_norm(total),
            0.6 * _largest_norm(total),
            unit,
        ),
        claim_order("of order 2.", 2, _STEPS, [_momentum_change(_bar_loop(h=h)) for h in _STEPS]),
    ]
