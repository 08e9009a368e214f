"""Two masses in redundant coordinates and the spring pendulum (Kinon and Betsch 2023, 6; 2024, 5).

Reference solutions are computed in other coordinates by DOP853 (order 8) at its tightest tolerance.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes

from livens.plot.curves import time_axis
from livens.plot.style import GREY, PALETTE, legend
from livens.reproduce import panels
from livens.reproduce.core import Claim
from livens.reproduce.measure import (
    claim_above,
    claim_below,
    claim_between,
    claim_constant,
    claim_constraints_hold,
    claim_order,
    largest_increment,
    run,
)
from livens.results.result import Result
from livens.types import ModelFunction

#: Step-size fractions of the convergence studies.
_STEP_FRACTIONS = tuple(2.0**-i for i in range(5))

FACTOR_NOTE = (
    "The potential is printed with k/4. The published curves have k/2, as the code of the authors (metis 1.0.7 and "
    "1.1.1, class RedundantTwoMassSpringSystem). Both are shown. Energy and constraint are conserved to round-off in "
    "both cases."
)
DERIVATIVE_NOTE = (
    "The published curves have dT/dr = m r^2 theta'^2 instead of m r theta'^2, as the code of the authors (metis "
    "1.0.7 to 1.1.1, class SpringPendulumPolar). A discrete gradient compensates such an error, so energy is "
    "conserved, but the motion is different. Its limit for small steps is the dashed curve: it conserves energy, but "
    "is not the motion of a spring pendulum. The solution of livens converges to the motion integrated in Cartesian "
    "coordinates."
)


def chain(factor: float = 0.25, h: float = 0.1, t_end: float = 10.0) -> Result:
    return run("mass-spring-redundant", "livens-em", h, t_end, (("potential_factor", factor),))


def pendulum(h: float = 0.01, t_end: float = 1.0) -> Result:
    return run("spring-pendulum-spherical", "livens-em", h, t_end)


# -- two masses -------------------------------------------------------------------------------------------------------
def chain_energies(left: Axes, right: Axes) -> None:
    """Plot the energies with the printed and with the published factor of the potential."""
    for axes, factor, label in ((left, 0.25, "as printed: k/4"), (right, 0.5, "as in the published figure: k/2")):
        panels.energies(axes, chain(factor))
        axes.annotate(label, (0.02, 0.03), xycoords="axes fraction", fontsize=7, color=GREY)
        axes.set_ylim(-0.12, 1.1)


def chain_energy_claims() -> list[Claim]:
    claims = []
    for factor, label in ((0.25, "k/4"), (0.5, "k/2")):
        result = chain(factor)
        kinetic = result.observe("kinetic_energy")
        claims.append(
            claim_above(f"With {label}, energy is exchanged between T and V.", float(np.ptp(kinetic)), 0.5, "J")
        )
        difference = np.abs(result.observe("total_energy") - result.observe("generalized_energy"))
        claims.append(
            claim_below(
                f"With {label}, total and generalised energy are equal because M is constant.",
                float(difference.max()),
                1e-13,
                "J",
            )
        )
        steps = [0.05 * fraction for fraction in _STEP_FRACTIONS]
        exact = _chain_reference(factor, 2.0)
        errors = [float(np.linalg.norm(chain(factor, h, 2.0).q[-1][[0, 2]] - exact)) for h in steps]
        text = f"With {label}, the motion converges with order 2 to that in minimal coordinates (t = 2 s)."
        claims.append(claim_order(text, 2, steps, errors))
    return claims


def chain_conserves() -> list[Claim]:
    return [
        claim_constant("Increments of the generalised energy are round-off (k/4).", chain(), "generalized_energy", "J"),
        claim_constant(
            "Increments of the generalised energy are round-off (k/2).", chain(0.5), "generalized_energy", "J"
        ),
    ]


def chain_constraint() -> list[Claim]:
    return [claim_constraints_hold("The constraint holds to round-off.", chain())]


def _chain_reference(factor: float, t: float) -> np.ndarray:
    """Return x1 and x2 by integration in minimal coordinates: ``T = 1/2 m1 x1'^2 + 1/2 m2 (x1' + x2')^2``."""
    m1, m2, k1, k2 = 2.0, 1.0, 1.0, 3.0

    def rates(_: float, y: np.ndarray) -> list[float]:
        x1, x2, v1, v2 = y
        f1, f2 = (-factor * k * (2 * x + 4 * x**3) for k, x in ((k1, x1), (k2, x2)))
        a1 = (f1 - f2) / m1
        return [v1, v2, a1, f2 / m2 - a1]

    return _final_state(rates, [0.0, 0.0, 1.0, -1.0], t)[:2]


# -- spring pendulum --------------------------------------------------------------------------------------------------
def pendulum_energy_claims() -> list[Claim]:
    result = pendulum()
    return [
        claim_above("Energy is exchanged between T and V.", float(np.ptp(result.observe("kinetic_energy"))), 0.1, "J"),
        claim_constant("The generalised energy is constant.", result, "generalized_energy", "J"),
    ]


def pendulum_total() -> list[Claim]:
    text = "The total energy is conserved only to about 1e-4, because M depends on q."
    claims = [claim_between(text, largest_increment(pendulum(), "total_energy"), 1e-5, 1e-3, "J")]
    steps = [0.01 * fraction for fraction in _STEP_FRACTIONS]
    deviations = [float(np.abs(np.ptp(pendulum(h).observe("total_energy")))) for h in steps]
    return [*claims, claim_order("The deviation of the total energy is of order 2 in h.", 2, steps, deviations)]


def pendulum_conserves() -> list[Claim]:
    return [
        claim_constant("Increments of the generalised energy are round-off.", pendulum(), "generalized_energy", "J"),
        claim_constant("Increments of the momentum of phi are round-off.", pendulum(), "p_phi"),
    ]


def pendulum_motion_claims() -> list[Claim]:
    steps = [0.01 * fraction for fraction in _STEP_FRACTIONS]
    exact = pendulum_path(np.array([1.0]))[0]
    errors = [float(np.linalg.norm(cartesian(pendulum(h).q[-1]) - exact)) for h in steps]
    wrong = misprinted_path(np.linspace(0, 1, 201))
    energy = 0.5 * (wrong[:, 3] ** 2 + (wrong[:, 0] * wrong[:, 4]) ** 2) + _spring_energy(wrong[:, 0])
    energy = energy + 0.5 * (wrong[:, 0] * np.sin(wrong[:, 1]) * wrong[:, 5]) ** 2
    final_distance = float(np.linalg.norm(cartesian(wrong[-1, :3]) - exact))
    return [
        claim_order("The motion converges with order 2 to that in Cartesian coordinates (t = 1 s).", 2, steps, errors),
        claim_below(
            "The motion with the published derivative conserves energy as well,", float(np.ptp(energy)), 1e-10, "J"
        ),
        claim_above(
            "but its final state is wrong (distance over the error of livens).",
            final_distance / min(errors),
            10,
            "times",
        ),
    ]


def pendulum_motion(left: Axes, right: Axes) -> None:
    """Plot elongation and distance from the reference, with the correct and with the published derivative."""
    result, t = pendulum(), np.linspace(0, 1, 401)
    left.plot(t, np.linalg.norm(pendulum_path(t), axis=1), color=PALETTE[7], linewidth=3, alpha=0.5, label="reference")
    left.plot(result.t, result.q[:, 0], ".", color=PALETTE[0], markersize=3, label="livens-em")
    left.plot(t, misprinted_path(t)[:, 0], "--", color=PALETTE[1], label="published derivative")
    left.set_ylabel("$r$ (m)")
    time_axis(left, result)
    legend(left)
    pendulum_distance(right)


def pendulum_distance(axes: Axes) -> None:
    """Plot the distance from the reference motion, with the correct and with the published derivative."""
    for divisor, colour in ((1, PALETTE[0]), (16, PALETTE[2])):
        result = pendulum(0.01 / divisor)
        distance = np.linalg.norm(cartesian(result.q) - pendulum_path(result.t), axis=1)
        axes.semilogy(result.t[divisor:], distance[divisor:], color=colour, label=f"$h$ = {0.01 / divisor:.2g} s")
    t = np.linspace(0, 1, 401)
    distance = np.linalg.norm(cartesian(misprinted_path(t)[:, :3]) - pendulum_path(t), axis=1)
    axes.semilogy(t[4:], distance[4:], "--", color=PALETTE[1], label="published derivative, $h \\to$ 0")
    axes.set_ylabel("distance from the reference (m)")
    time_axis(axes, pendulum())
    legend(axes)


def cartesian(q: np.ndarray) -> np.ndarray:
    """Return Cartesian positions of spherical coordinates (r, theta, phi)."""
    r, theta, phi = np.moveaxis(np.asarray(q), -1, 0)
    return np.stack([r * np.sin(theta) * np.cos(phi), r * np.sin(theta) * np.sin(phi), r * np.cos(theta)], axis=-1)


def _spring_energy(r: np.ndarray) -> np.ndarray:
    return 0.5 * 300 * ((r**2 - 1) / 2) ** 2


@functools.cache
def _pendulum_solution() -> Callable[[np.ndarray], np.ndarray]:
    def rates(_: float, y: np.ndarray) -> np.ndarray:
        x, v = y[:3], y[3:]
        return np.concatenate([v, -300 * (x @ x - 1) / 2 * x])

    return _solution(rates, [1.05, 0.0, 0.0, 0.0, 1.05, -1.05], 1.0)


def pendulum_path(t: np.ndarray) -> np.ndarray:
    """Return the reference positions by integration in Cartesian coordinates, shape (n_times, 3)."""
    return _pendulum_solution()(t)[:, :3]


def misprinted_path(t: np.ndarray) -> np.ndarray:
    """Return (q, v) of the limit motion of the scheme with the wrong derivative ``dT/dr = m r^2 theta'^2``.

    The correction term of the Gonzalez discrete gradient adds the force ``((f - f~).v)/|v|^2 v`` along v.
    """

    def rates(_: float, y: np.ndarray) -> np.ndarray:
        r, theta, _, u, w, s = y
        sine, cosine = np.sin(theta), np.cos(theta)
        force_error = (r - r**2) * w**2
        push = force_error * u / (u**2 + w**2 + s**2)
        pull = -300 * (r**2 - 1) / 2 * r
        p_r = r**2 * w**2 + r * sine**2 * s**2 + pull + push * u
        p_theta = r**2 * sine * cosine * s**2 + push * w
        p_phi = push * s
        return np.array(
            [
                u,
                w,
                s,
                p_r,
                (p_theta - 2 * r * u * w) / r**2,
                (p_phi - 2 * r * u * sine**2 * s - 2 * r**2 * sine * cosine * w * s) / (r * sine) ** 2,
            ]
        )

    return _solution(rates, [1.05, np.pi / 2, 0.0, 0.0, 1.0, 1.0], 1.0)(t)


def _solution(rates: ModelFunction, initial: list[float], t_end: float) -> Callable[[np.ndarray], np.ndarray]:
    def at(t: np.ndarray) -> np.ndarray:
        from scipy.integrate import solve_ivp

        solution = solve_ivp(rates, (0.0, t_end), initial, method="DOP853", rtol=3e-14, atol=1e-14, t_eval=t)
        return np.asarray(solution.y.T)

    return at


def _final_state(rates: ModelFunction, initial: list[float], t: float) -> np.ndarray:
    return np.asarray(_solution(rates, initial, t)(np.array([t]))[0])
