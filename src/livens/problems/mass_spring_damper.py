"""Two masses between two walls on three springs, with dampers and a constant force (Symank 2025, 7.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from livens.errors import InputError
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Largest entry (1/s) of the system matrix for which the matrix exponential is accurate enough as a reference.
_MAX_RATE = 1e5


def _potential(q: Vector, k: ParameterNamespace) -> ScalarLike:
    """Return the spring energy; the distance of the walls is the sum of the free lengths."""
    stretched = q[0] - k.r[0], q[1] - q[0] - k.r[1], q[1] - k.r[0] - k.r[1]
    return 0.5 * sum(stiffness * x**2 for stiffness, x in zip(k.k, stretched, strict=True))


def _visual(q: Vector, k: ParameterNamespace) -> list[shapes.Shape]:
    """Return two boxes between two walls, with dampers below the springs."""
    end, side = sum(k.r), 0.08 * sum(k.r)
    floor = -side
    parts = [
        shapes.path([[0, floor], [0, side]], name="wall"),
        shapes.path([[end, floor], [end, side]], name="wall"),
        shapes.path([[0, floor / 2], [end, floor / 2]], name="floor"),
        shapes.spring([0, 0], [q[0] - side / 2, 0]),
        shapes.spring([q[0] + side / 2, 0], [q[1] - side / 2, 0]),
        shapes.spring([q[1] + side / 2, 0], [end, 0]),
        shapes.box([q[0], 0], [side, side], name="first"),
        shapes.box([q[1], 0], [side, side], name="second"),
    ]
    for position, wall, viscosity in ((q[0], 0.0, k.d[0]), (q[1], end, k.d[1])):
        if viscosity > 0:
            parts.append(shapes.damper([wall, -0.35 * side], [position, -0.35 * side], 0.2 * side))
    return parts


def _problem(
    name: str,
    m: tuple[float, float],
    d: tuple[float, float],
    k: tuple[float, ...],
    r: tuple[float, ...],
    alpha: float,
    p0: tuple[float, float],
    starts_balanced: list[bool],
    h: float,
    t_end: float,
    scheme: str = "livens-em",
) -> Problem:
    """Build the problem; masses in `starts_balanced` start with the velocity at which spring and damper balance."""
    if min(m + d) < 0 or max(m) == 0:
        raise InputError("masses and dampers must not be negative, and one mass must be greater than 0")
    for i in (0, 1):
        if starts_balanced[i] and d[i] == 0:
            raise InputError(f"a mass of zero needs a damper: set d{i + 1} greater than 0")
    system = System(
        "p1 p2",
        kinetic=lambda v, k: 0.5 * (k.m @ v**2),
        potential=_potential,
        dissipation=lambda v, k: 0.5 * (k.d @ v**2),
        forces=lambda k: [k.alpha, 0],
        parameters=dict(m=m, d=d, k=k, r=r, alpha=alpha),
        visual=_visual,
    )
    K = np.array([[k[0] + k[1], -k[1]], [-k[1], k[1] + k[2]]])
    equilibrium = np.array([r[0], r[0] + r[1]]) + np.linalg.solve(K, [alpha, 0.0])
    force = K @ (equilibrium - p0)
    v0 = np.array([force[i] / d[i] if starts_balanced[i] else 0.0 for i in (0, 1)])
    reference = _exact_motion(np.array(m), np.array(d), K, equilibrium, np.array(p0), v0)
    return Problem(name, system, np.array(p0), v0, scheme, h, t_end, reference=reference)


def _exact_motion(
    m: np.ndarray, d: np.ndarray, K: np.ndarray, equilibrium: np.ndarray, p0: np.ndarray, v0: np.ndarray
) -> Callable[[float], dict[str, np.ndarray]] | None:
    """Return the exact motion by the matrix exponential of ``x' = A x``, x: offsets from equilibrium and velocities."""
    A = np.zeros((4, 4))
    for i in (0, 1):
        if m[i] > 0:
            A[i, 2 + i], A[2 + i, :2], A[2 + i, 2 + i] = 1.0, -K[i] / m[i], -d[i] / m[i]
        else:  # the velocity follows from the force balance and is not a state
            A[i, :2] = -K[i] / d[i]
    if np.abs(A).max() > _MAX_RATE:
        return None
    initial_state = np.concatenate([p0 - equilibrium, v0])

    def reference(t: float) -> dict[str, np.ndarray]:
        from scipy.linalg import expm  # imported here because the import is slow

        x = expm(t * A) @ initial_state
        return {"q": equilibrium + x[:2], "v": (A @ x)[:2]}

    return reference


@problem(
    "mass-spring-damper",
    summary="two masses on three springs with dampers and a constant force: a linear system",
    source="Symank 2025, 7.2",
    source_run="GLC and LIIIC, h up to 0.1 s, until t = 2000 s",
    scheme="livens-em",
)
def mass_spring_damper(
    m1: float = 1.0,
    m2: float = 1.0,
    d1: float = 0.0,
    d2: float = 0.0,
    alpha: float = 0.0,
    k: tuple[float, float, float] = (1.0, 1.0, 1.0),
    r: tuple[float, float, float] = (10.0, 10.0, 10.0),
    p0: tuple[float, float] = (6.0, 24.0),
) -> Problem:
    """Build the problem, released at rest from `p0`; dampers `d1`, `d2`, force `alpha` on the first mass.

    A mass may be zero if its damper is not: it starts with the velocity at which springs and damper balance.
    """
    is_massless = [m1 == 0, m2 == 0]
    return _problem("mass-spring-damper", (m1, m2), (d1, d2), k, r, alpha, p0, is_massless, 0.01, 2000.0)


@problem(
    "vanishing-mass",
    summary="two masses on three springs, the second mass vanishing",
    source="Symank 2025, 7.2.3",
    source_run="GLC and LIIIC, until t = 30 s",
    scheme="radau-iia-3",
)
def vanishing_mass(m2: float = 0.0, d2: float = 1e-4, p0: tuple[float, float] = (4.275, 15.0)) -> Problem:
    """Build the problem; the second mass starts with the velocity at which springs and damper balance, for any `m2`.

    For the printed `p0` this velocity is 4e4 and decays within 1e-3 s. With ``p0=(6, 18)`` there is no boundary layer:
    the second mass starts at rest, in the equilibrium of its springs.
    """
    k, r = (1.0, 1.0, 1.0), (10.0, 10.0, 10.0)
    return _problem("vanishing-mass", (1.0, m2), (0.0, d2), k, r, 0.0, p0, [False, True], 2e-4, 30.0, "radau-iia-3")
