"""Chain of N rods with spherical joints or hinges, fixed at one end."""

from __future__ import annotations

from livens.errors import InputError
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem


def chain_mechanism(N: int = 10, length: float = 0.1, mass: float = 0.1, hinges: bool = False) -> Multibody:
    """Build the chain along x, with the first rod fixed at the origin."""
    mb = Multibody(gravity=[0, 0, -9.81])
    previous = mb.ground
    for i in range(N):
        ends = dict(a=[i * length, 0, 0], b=[(i + 1) * length, 0, 0])
        rod = mb.rod(f"rod{i + 1}", **ends, mass=mass, radius=0.1 * length)
        if hinges:
            mb.revolute(f"hinge{i + 1}", previous, rod, at=rod.a, axis="yz"[i % 2])
        else:
            mb.spherical(f"ball{i + 1}", previous, rod, at=rod.a)
        previous = rod
    return mb


@problem(
    "link-chain", summary="N rods with ball joints swing down from the horizontal", source="livens", scheme="lie-em"
)
def link_chain(N: int = 10, length: float = 0.1, mass: float = 0.1) -> Problem:
    """Build a horizontal chain with spherical joints, at rest."""
    return chain_mechanism(_checked_rod_count(N), length, mass).problem("link-chain", h=1e-3, t_end=2.0)


@problem("hinge-chain", summary="N rods with alternating y and z hinges swing down", source="livens", scheme="lie-em")
def hinge_chain(N: int = 10, length: float = 0.1, mass: float = 0.1) -> Problem:
    """Build a horizontal chain with alternating hinge axes y and z, at rest."""
    return chain_mechanism(_checked_rod_count(N), length, mass, hinges=True).problem("hinge-chain", h=1e-3, t_end=2.0)


def _checked_rod_count(N: int) -> int:
    if N < 1:
        raise InputError(f"option 'N' must be at least 1, got {N}")
    return N
