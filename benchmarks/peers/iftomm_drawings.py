"""Problems of the IFToMM benchmark as `Multibody` models, for other codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens.multibody.multibody import Multibody
from livens.problems import load

#: Negligible moment of inertia of a point mass, required by other codes.
_NEGLIGIBLE_INERTIA = 1e-10


def benchmark_mechanism(problem: str) -> Multibody:
    """Return the `Multibody` model of a problem."""
    from livens.problems.bricard import bricard_mechanism
    from livens.problems.double_four_bar_multibody import four_bar_mechanism
    from livens.problems.flyball_governor import governor_mechanism

    mechanisms = {
        "simple-pendulum": pendulum,
        "double-four-bar-multibody": four_bar_mechanism,
        "andrews-squeezer": squeezer,
        "bricard": bricard_mechanism,
        "flyball-governor": governor_mechanism,
    }
    return mechanisms[problem]()


def pendulum() -> Multibody:
    """Build a point mass on a massless rod, released from the horizontal."""
    mb = Multibody(gravity=[0, -9.81], planar=True)
    bob = mb.body("bob", mass=1.0, inertia=_NEGLIGIBLE_INERTIA, position=[-1, 0])
    mb.revolute("hinge", mb.ground, bob, at=[0, 0])
    return mb


def squeezer() -> Multibody:
    """Build the planar seven-body mechanism in the initial configuration of the published problem."""
    published = load("andrews-squeezer")
    k: dict[str, Any] = published.model.model_parameters.values
    angles: Any = published.q0
    beta, theta, gamma, phi, delta, omega, epsilon = angles
    A, B = k["A"], k["B"]

    def along(angle: float) -> np.ndarray:
        return np.array([np.cos(angle), np.sin(angle)])

    def across(angle: float) -> np.ndarray:
        return np.array([-np.sin(angle), np.cos(angle)])

    crank = k["rr"] * along(beta)
    end = crank - k["d"] * along(beta + theta)
    knee, elbow = A + k["zt"] * along(delta), A - k["u"] * across(epsilon)
    centres = (
        k["ra"] * along(beta),
        crank - k["da"] * along(beta + theta),
        B - k["sa"] * across(gamma) + k["sb"] * along(gamma),
        knee - (k["e"] - k["ea"]) * across(phi + delta),
        A + k["ta"] * along(delta) + k["tb"] * across(delta),
        elbow + (k["zf"] - k["fa"]) * along(omega + epsilon),
        A - k["ua"] * across(epsilon) - k["ub"] * along(epsilon),
    )
    mb = Multibody(planar=True)
    links = [
        mb.body(f"K{i + 1}", mass=k["m"][i], inertia=k["I"][i], position=centre) for i, centre in enumerate(centres)
    ]
    link1, link2, link3, link4, link5, link6, link7 = links
    motor = mb.revolute("O", mb.ground, link1, at=[0, 0])
    mb.revolute("crank pin", link1, link2, at=crank)
    mb.revolute("B", mb.ground, link3, at=B)
    mb.revolute("A5", mb.ground, link5, at=A)
    mb.revolute("A7", mb.ground, link7, at=A)
    mb.revolute("knee", link5, link4, at=knee)
    mb.revolute("elbow", link7, link6, at=elbow)
    for link in (link3, link4, link6):
        mb.revolute(f"end of {link.name}", link2, link, at=end)
    corner = link3.point("D", at=B + k["sd"] * along(gamma) - k["sc"] * across(gamma))
    mb.spring("spring", corner, k["C"], stiffness=float(k["c0"]), free_length=float(k["l0"]))
    mb.motor(motor, torque=float(k["mom"]), name="motor")
    return mb
