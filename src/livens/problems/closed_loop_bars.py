"""Closed loop of four bars with spherical joints, loaded by a force and a torque for one second.

See Kinon and Betsch 2024, 5.5.

The loop is formulated with quaternions, as in the source, and with directors. After the load, both formulations
conserve energy and linear momentum to round-off; only directors conserve angular momentum. With quaternions the joints
change angular momentum by O(h^2): the mean of two unit quaternions has a norm below 1, so the joint is slightly open at
the midpoint, where its force acts. By default, the kinetic energy is not a function of invariants: with joints, this
makes energy-momentum schemes unstable (docs/theory/known-limits.md). The published form is an option.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from livens import bodies
from livens import math as m
from livens import rotations as rot
from livens.models.element import Element
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.types import ScalarLike, Vector
from livens.validation import check_choice

#: Initial centres of the bars, in half bar lengths, and the coordinate axis of each bar: a square around the origin.
_CENTRES = ((1, 0, 0), (0, 1, 0), (-1, 0, 0), (0, -1, 0))
_BAR_AXES = (1, 0, 1, 0)


#: Generalised forces of the torque: with the power ``tau . omega`` for every norm of the quaternion, or (128).
TORQUES = ("normalised", "printed")


def load_function(t: ScalarLike) -> ScalarLike:
    """Return the load function (127): linear from 0 to 1 at t = 1/2, back to 0 at t = 1."""
    return m.where(t < 0.5, 2 * t, m.where(t < 1, 2 * (1 - t), 0.0))


def joint_positions(l: float) -> list[tuple[int, np.ndarray, int, np.ndarray]]:  # noqa: E741
    """Return the joints as first bar and position in its frame, second bar and position in its frame.

    Initial orientations are the identity: a corner minus a centre is the body-fixed position of the joint.
    """
    corners = [(l / 2, l / 2, 0), (-l / 2, l / 2, 0), (-l / 2, -l / 2, 0), (l / 2, -l / 2, 0)]
    centres = l / 2 * np.array(_CENTRES)
    return [(i, corners[i] - centres[i], (i + 1) % 4, corners[i] - centres[i - 3]) for i in range(4)]


def _bar_loop(
    name: str,
    body: Callable[[str, bodies.Inertia], bodies.BodyElement],
    l: float,  # noqa: E741
    width: float,
    rho: float,
    f_m: float,
    torque: str = "normalised",
) -> Problem:
    check_choice("torque", torque, TORQUES)
    mass = rho * width**2 * l
    axial_moment, transverse_moment = mass / 12 * 2 * width**2, mass / 12 * (l**2 + width**2)
    bars = []
    for i, axis in enumerate(_BAR_AXES):
        moments = [transverse_moment, transverse_moment, transverse_moment]
        moments[axis] = axial_moment
        bars.append(body(f"bar{i + 1}", bodies.Inertia(mass, moments)))
    centres = l / 2 * np.array(_CENTRES)
    joints = [bodies.spherical_joint((bars[a], X), (bars[b], Y)) for a, X, b, Y in joint_positions(l)]
    loads = [
        bodies.force(bars[0], lambda t: [8 * f_m * load_function(t), 0, 0]),
        bodies.torque(bars[0], lambda t: [6 * f_m * load_function(t), 0, 0])
        if torque == "normalised"
        else Element(bars[0].coordinates, forces=lambda q, t: _printed_torque(q, 6 * f_m * load_function(t))),
    ]
    system = System(
        bodies.coordinates(bars),
        elements=[*bars, *joints, *loads],
        symmetries=dict(linear_momentum=bodies.linear_momentum(bars), angular_momentum=bodies.angular_momentum(bars)),
    )
    q0 = np.concatenate([bar.state(centre)[0] for bar, centre in zip(bars, centres, strict=True)])
    return Problem(name, system, q0, np.zeros(system.n), "livens-em", 0.1, 10.0)


def _printed_torque(q: Vector, tau: ScalarLike) -> Vector:
    """Return the generalised forces ``2 E(q)^T tau`` (128) of a torque about x, without the division by ``q . q``."""
    return np.concatenate([np.zeros(3), 2 * (rot.E(q[3:]).T @ m.array([tau, 0, 0]))])


@problem(
    "closed-loop-bars",
    summary="closed loop of four bars with spherical joints, quaternions: 28 coordinates, 16 constraints",
    source="Kinon and Betsch 2024, 5.5",
    source_run="livens-em, h = 0.1 s, until t = 10 s, equivariant=1, torque=printed",
    scheme="livens-em",
)
def closed_loop_bars(
    l: float = 10.0,  # noqa: E741
    width: float = 1.0,
    rho: float = 1.0,
    f_m: float = 100.0,
    equivariant: int = 0,
    torque: str = "normalised",
) -> Problem:
    """Build the loop; `f_m` is the maximum of the load function, force and torque are 8 and 6 times as large.

    The published form has ``equivariant=1``, a kinetic energy that is a function of invariants (86) to (88), and
    ``torque="printed"``, (128). The default divides (128) by ``q . q``, which is less than 1 at the midpoint of a step.
    """
    body = functools.partial(bodies.quaternion_body, equivariant=bool(equivariant))
    return _bar_loop("closed-loop-bars", body, l, width, rho, f_m, torque)


@problem(
    "closed-loop-bars-directors",
    summary="closed loop of four bars with directors, angular momentum conserved: 48 coordinates, 36 constraints",
    source="Kinon and Betsch 2024, 5.5",
    scheme="livens-em",
)
def closed_loop_bars_directors(
    l: float = 10.0,  # noqa: E741
    width: float = 1.0,
    rho: float = 1.0,
    f_m: float = 100.0,
) -> Problem:
    """Build the loop of `closed-loop-bars` with directors instead of quaternions."""
    return _bar_loop("closed-loop-bars-directors", bodies.director_body, l, width, rho, f_m)
