"""Row of N four-bar linkages (IFToMM A02; N = 2 is the example of Kinon et al. 2023, 5.2).

Bars are planar rigid bodies, described by the position of the centre and two directors: six coordinates
``(x, y, d1x, d1y, d2x, d2y)`` each. N + 1 lower bars stand on the ground at distance l, N upper bars join their tops.
The horizontal configuration, with all bars aligned, is singular: N + 1 degrees of freedom instead of one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.element import Element
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.problems.elliptic import jacobi, quarter_period
from livens.scene import shapes
from livens.types import ModelFunction, ScalarLike, Vector
from livens.validation import check_choice

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


_COORDINATES = ("x", "y", "d1x", "d1y", "d2x", "d2y")
#: Initial velocities: consistent ones, or those of the published figures of Kinon et al. 2023 after the first step.
STARTS = ("consistent", "published")


def _kinetic(v: Vector, k: ParameterNamespace) -> ScalarLike:
    """Return the kinetic energy; each director has half of the moment of inertia m l^2/12."""
    return 0.5 * k.m * (m.dot(v[:2], v[:2]) + k.l**2 / 24 * m.dot(v[2:], v[2:]))


def _weight(q: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.m * k.g * q[1]


def _orthonormality(q: Vector) -> list[ScalarLike]:
    d1, d2 = q[2:4], q[4:6]
    return [0.5 * (m.dot(d1, d1) - 1), 0.5 * (m.dot(d2, d2) - 1), m.dot(d1, d2)]


def _ground_pin(q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
    """Return the constraint that fixes the lower end of a bar (x, y, d1x, d1y) at (k.at, 0)."""
    return [q[0] - k.l / 2 * q[2] - k.at, q[1] - k.l / 2 * q[3]]


@functools.cache
def _pin(a: int, b: int) -> ModelFunction:
    """Return the revolute joint between end a (+1 or -1) of one bar and end b of another (x, y, d1x, d1y)."""

    def constraints(q: Vector, k: ParameterNamespace) -> Any:
        return q[0:2] + a * k.l / 2 * q[2:4] - q[4:6] - b * k.l / 2 * q[6:8]

    return constraints


def _damper_dissipation(v: Vector, k: ParameterNamespace) -> ScalarLike:
    """Return the Rayleigh dissipation of a damper from the ground to the right end of an upper bar.

    See Kinon et al. 2023, eq. 77.

    The other end is fixed, so the damper acts on the absolute velocity; its matrix is symmetric positive semidefinite.
    """
    rate = v[0:2] + k.l / 2 * v[2:4]
    return 0.5 * k.eta * m.dot(rate, rate)


def _bar(q: Vector, k: ParameterNamespace) -> shapes.Shape:
    arm = k.l / 2 * q[2:4]
    return shapes.rod(q[:2] - arm, q[:2] + arm, trace=0.5)


def _support(k: ParameterNamespace) -> shapes.Shape:
    return shapes.ground([k.at, 0.0])


def _dashpot(i: int) -> ModelFunction:
    """Return the visual of the damper from the support of a lower bar to the top of the next one."""
    return lambda q, k: shapes.damper([i * k.l, 0.0], q[:2] + k.l / 2 * q[2:4])


def _system(N: int, parameters: dict[str, float], frames: bool = False) -> System:
    lower = [f"lower{i}" for i in range(N + 1)]
    upper = [f"upper{i}" for i in range(N)]

    def coordinates(bar: str, count: int = 6) -> list[str]:
        return [f"{bar}.{c}" for c in _COORDINATES[:count]]

    elements = [
        Element(
            coordinates(bar),
            kinetic=_kinetic,
            potential=_weight,
            constraints=_orthonormality,
            name=bar,
            constraint_names=["|d1| = 1", "|d2| = 1", "d1.d2 = 0"],
            frames=[[(0, 1), (2, 3), (4, 5)]],
            visual=_bar,
        )
        for bar in lower + upper
    ]
    elements += [
        Element(
            coordinates(bar, 4),
            constraints=_ground_pin,
            parameters=dict(at=i * parameters["l"]),
            name=f"ground-{bar}",
            constraint_names=["x", "y"],
            visual=_support,
        )
        for i, bar in enumerate(lower)
    ]
    for i, bar in enumerate(upper):
        for name, constraint, bar_a, bar_b in (
            (f"{lower[i]}-{bar}", _pin(1, -1), lower[i], bar),
            (f"{bar}-{lower[i + 1]}", _pin(1, 1), bar, lower[i + 1]),
        ):
            joint_coordinates = coordinates(bar_a, 4) + coordinates(bar_b, 4)
            elements.append(Element(joint_coordinates, constraints=constraint, name=name, constraint_names=["x", "y"]))
    if "eta" in parameters:
        elements += [
            Element(coordinates(bar, 4), dissipation=_damper_dissipation, name=f"damper-{bar}", visual=_dashpot(i))
            for i, bar in enumerate(upper)
        ]
    names = [c for bar in lower + upper for c in coordinates(bar)]
    return System(names, elements=elements, parameters=parameters, frames=frames)


def _initial_speed(N: int, speed: float, start: str) -> float:
    """Return the initial speed of the upper bars.

    The published velocities have zero director velocities, which violate the constraints. The first step of
    `ggl-variational` projects them in the mass metric onto the single degree of freedom: its multiplier acts along
    ``G(q0)^T``. All states after the first step are those of a consistent start with the projected velocities.
    """
    check_choice("start", start, STARTS)
    if start == "consistent":
        return speed
    # mass-weighted product of published and consistent velocities, over the square of the latter
    return speed * ((N + 1) / 4 + N) / ((N + 1) / 3 + N)


def _upright(N: int, l: float, speed: float) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
    """Return the upright configuration, with consistent velocities: the tops move to the right with `speed`."""
    rate = speed / l
    q = [[i * l, l / 2, 0, 1, -1, 0] for i in range(N + 1)] + [[(i + 0.5) * l, l, 1, 0, 0, 1] for i in range(N)]
    v = [[speed / 2, 0, rate, 0, 0, rate]] * (N + 1) + [[speed, 0, 0, 0, 0, 0]] * N
    return np.array(q, dtype=float).ravel(), np.array(v, dtype=float).ravel()


def exact_motion(N: int, m_: float, l: float, g: float, speed: float) -> Callable[[float], dict[str, np.ndarray]]:  # noqa: E741
    """Return the exact motion: the angle phi of the lower bars from the downward vertical is that of a pendulum.

    ``T = 1/2 I phi'^2`` with ``I = (N+1) m l^2/3 + N m l^2`` and ``V = -P cos(phi)`` with ``P = ((N+1)/2 + N) m g l``.
    From the upright start the bars rotate: ``sin(phi/2)`` is a Jacobi elliptic function of modulus ``kappa < 1``.
    """
    inertia, weight = ((N + 1) / 3 + N) * m_ * l**2, ((N + 1) / 2 + N) * m_ * g * l
    energy = 0.5 * inertia * (speed / l) ** 2 + weight
    modulus = 2 * weight / (energy + weight)  # kappa^2
    frequency = np.sqrt((energy + weight) / (2 * inertia))

    def reference(t: float) -> dict[str, np.ndarray]:
        # phi/2 = am(frequency t + K) is pi/2 at the upright start and grows while the bars rotate to the right
        sn, cn, dn = jacobi(frequency * t + quarter_period(modulus), modulus)
        d1 = np.array([-2 * sn * cn, sn**2 - cn**2])
        d1_rate = -2 * frequency * dn * _rotated_by_right_angle(d1)
        lower_q = [np.r_[[i * l, 0] + l / 2 * d1, d1, _rotated_by_right_angle(d1)] for i in range(N + 1)]
        lower_v = [np.r_[l / 2 * d1_rate, d1_rate, _rotated_by_right_angle(d1_rate)] for _ in range(N + 1)]
        upper_q = [np.r_[[(i + 0.5) * l, 0] + l * d1, 1, 0, 0, 1] for i in range(N)]
        upper_v = [np.r_[l * d1_rate, 0, 0, 0, 0] for _ in range(N)]
        return {"q": np.concatenate(lower_q + upper_q), "v": np.concatenate(lower_v + upper_v)}

    return reference


def _rotated_by_right_angle(d: np.ndarray) -> np.ndarray:
    """Return the vector rotated by 90 degrees counterclockwise."""
    return np.array([-d[1], d[0]])


def _problem(
    name: str,
    N: int,
    m_: float,
    l: float,  # noqa: E741
    g: float,
    speed: float,
    t_end: float,
    frames: bool = False,
) -> Problem:
    if N < 1:
        raise InputError(f"option 'N' must be at least 1, got {N}")
    q0, v0 = _upright(N, l, speed)
    system = _system(N, dict(m=m_, l=l, g=g), frames)
    reference = exact_motion(N, m_, l, g, speed) if speed > 0 and g > 0 else None
    scheme = "lie-em" if frames else "livens-em"
    return Problem(name, system, q0, v0, scheme, 1e-3, t_end, reference=reference)


@problem(
    "double-four-bar",
    summary="five planar bars passing singular configurations: 30 coordinates, 29 constraints",
    source="Kinon et al. 2023, 5.2, IFToMM A02",
    source_run="ggl-variational, h = 0.001 s, until t = 10 s, start=published",
    scheme="livens-em",
)
def double_four_bar(
    m: float = 1.0,
    l: float = 1.0,  # noqa: E741
    g: float = 9.81,
    speed: float = 1.0,
    start: str = "consistent",
) -> Problem:
    """Build two loops; `speed` (m/s) is the initial speed of the upper bars.

    ``start="published"`` is the start of the figures of Kinon et al. 2023, whose director velocities are zero, after
    its first step: 11/12 of the speed.
    """
    return _problem("double-four-bar", 2, m, l, g, _initial_speed(2, speed, start), 10.0)


@problem(
    "double-four-bar-damped",
    summary="double four-bar linkage with two dampers, from P1 to P5 and from P2 to P6",
    source="Kinon et al. 2023, 5.2 (77)",
    source_run="ggl-variational, h = 0.001 s, until t = 10 s, start=published",
    scheme="livens-em",
)
def double_four_bar_damped(
    m: float = 1.0,
    l: float = 1.0,  # noqa: E741
    g: float = 9.81,
    speed: float = 1.0,
    eta: float = 0.5,
    start: str = "consistent",
) -> Problem:
    """Build the problem with dampers to fixed points, which act on the velocities of P5 and P6.

    P5 and P6 are the right ends of the upper bars. With the inclination theta of the lower bars,
    ``3 m l^2 theta'' = -7/2 m g l cos(theta) - 2 eta l^2 theta'``. `start` is as in `double-four-bar`.
    """
    q0, v0 = _upright(2, l, _initial_speed(2, speed, start))
    system = _system(2, dict(m=m, l=l, g=g, eta=eta))
    return Problem("double-four-bar-damped", system, q0, v0, "livens-em", 1e-3, 10.0)


@problem("n-four-bar", summary="N four-bar linkages in a row", source="IFToMM A02", scheme="livens-em")
def n_four_bar(
    N: int = 4,
    m: float = 1.0,
    l: float = 1.0,  # noqa: E741
    g: float = 9.81,
    speed: float = 1.0,
    frames: int = 0,
) -> Problem:
    """Build `double-four-bar` with N loops; with ``frames=1`` a bar has three unknowns, see `lie-em`."""
    return _problem("n-four-bar", N, m, l, g, speed, 10.0, bool(frames))
