"""Row of N four-bar linkages (IFToMM A02) built with `Multibody`; `n-four-bar` has the published formulation."""

from __future__ import annotations

from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem
from livens.problems.four_bar import exact_motion


def four_bar_mechanism(N: int = 2, m: float = 1.0, l: float = 1.0, g: float = 9.81, speed: float = 1.0) -> Multibody:  # noqa: E741
    """Build N + 1 vertical bars on the ground and N bars between their tops, which move to the right."""
    mb = Multibody(gravity=[0, -g], planar=True)

    def bar(name: str, a: list[float], b: list[float], upright: bool) -> None:
        centre = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]
        rotation = [[0, -1], [1, 0]] if upright else [[1, 0], [0, 1]]
        geometry = dict(a=a, b=b), ("rod", l, 0.02 * l)
        moment = m * l**2 / 12
        mb.body(name, mass=m, inertia=moment, position=centre, rotation=rotation, points=geometry[0], shape=geometry[1])

    for i in range(N + 1):
        bar(f"lower{i}", [i * l, 0], [i * l, l], True)
    for i in range(N):
        bar(f"upper{i}", [i * l, l], [(i + 1) * l, l], False)
    bodies = mb.bodies
    for i in range(N + 1):
        mb.revolute(f"ground{i}", mb.ground, bodies[f"lower{i}"], at=[i * l, 0])
    for i in range(N):
        mb.revolute(f"left{i}", bodies[f"lower{i}"], bodies[f"upper{i}"], at=[i * l, l])
        mb.revolute(f"right{i}", bodies[f"upper{i}"], bodies[f"lower{i + 1}"], at=[(i + 1) * l, l])
    mb.initial(mb.joints["ground0"], rate=-speed / l)
    return mb


@problem(
    "double-four-bar-multibody",
    summary="N four-bar linkages in a row, built with Multibody",
    source="IFToMM A02",
    scheme="lie-em",
)
def double_four_bar_multibody(
    N: int = 2,
    m: float = 1.0,
    l: float = 1.0,  # noqa: E741
    g: float = 9.81,
    speed: float = 1.0,
) -> Problem:
    """Build the problem as `n-four-bar`; `speed` (m/s) is the initial speed of the upper bars."""
    if N < 1 or min(m, l) <= 0:
        raise InputError("options N, m and l must be greater than 0")
    reference = exact_motion(N, m, l, g, speed) if speed > 0 and g > 0 else None
    return four_bar_mechanism(N, m, l, g, speed).problem(
        "double-four-bar-multibody", h=1e-3, t_end=10.0, reference=reference
    )
