"""Pole below a light cart: short phases of very high velocity."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import math as m
from livens import scaling
from livens.errors import InputError
from livens.models import shapes
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.problem import Problem
from livens.problems import problem


def _look(q: Any, k: Any) -> list[shapes.Shape]:
    cart, reach = [q[0], 0.0], 1.5 * k.length
    end = [q[0] + k.length * m.sin(q[1]), -k.length * m.cos(q[1])]
    return [
        shapes.path([[-reach, 0.0], [reach, 0.0]], name="rail"),
        shapes.box(cart, [0.3 * k.length, 0.15 * k.length], name="cart"),
        shapes.rod(cart, end),
        shapes.sphere(end, name="end of the pole"),
    ]


@problem(
    "cart-pole",
    summary="pole below a light cart: nearly singular mass matrix, short phases of high velocity",
    source="a mass matrix nearly singular",
    scheme="kahan-li-8:adaptive-variational:0.5,0.5",
)
def cart_pole(ratio: float = 1e-6, theta0: float = np.pi / 2, g: float = 9.81, length: float = 1.0) -> Problem:
    """Build the problem from rest at the angle `theta0`; `ratio` is the mass of the cart over that of the pole's end.

    With a light cart, the end of the pole falls almost vertically. Near the lowest point, only the inertia of the cart
    resists the rotation, which is ``(ratio/(1 + ratio))^(-1/2)`` times faster than with a fixed pivot. The step-size
    scaling is the inertia of the pole on its free cart, relative to that on a fixed pivot.
    """
    if min(ratio, g, length) <= 0:
        raise InputError("ratio, g and length must be greater than 0")
    if not 0 < theta0 < np.pi:
        raise InputError(f"option 'theta0' must be between 0 and pi, got {theta0:g}")

    def energy(q: Any, p: Any, k: Any) -> Any:
        # inverse of the mass matrix with the determinant ratio + sin^2; 1 + ratio - cos^2 suffers from cancellation
        cos, determinant = m.cos(q[1]), k.length**2 * (k.ratio + m.sin(q[1]) ** 2)
        square = (k.length * p[0]) ** 2 - 2 * k.length * cos * p[0] * p[1] + (1 + k.ratio) * p[1] ** 2
        return square / (2 * determinant) - k.g * k.length * cos

    model = Hamiltonian(
        "x theta",
        hamiltonian=energy,
        parameters=dict(ratio=ratio, g=g, length=length),
        symmetries=dict(momentum=lambda q: [1, 0]),
        look=_look,
    )

    def inertia(q: Any, k: Any) -> Any:
        return (k.ratio + m.sin(q[1]) ** 2) / (1 + k.ratio)

    return Problem(
        "cart-pole",
        model,
        None,
        None,
        "kahan-li-8:adaptive-variational:0.5,0.5",
        0.05,
        10.0,
        reference=_Exact(ratio, theta0, g, length),
        scaling=scaling.written(inertia),
        start={"q0": np.array([0.0, theta0]), "p0": np.zeros(2)},
    )


class _Exact:
    """Exact motion by quadrature: with ``sin(theta/2) = sin(theta0/2) sin(phi)``, time is an integral over phi.

    The total horizontal momentum is zero, so one degree of freedom remains, ``T = length^2 I(theta) theta'^2/2``.
    """

    def __init__(self, ratio: float, theta0: float, g: float, length: float) -> None:
        self.ratio, self.theta0, self.length = ratio, theta0, length
        self.k, self.rate = np.sin(theta0 / 2), np.sqrt(g / length)
        # the substitution phi = width sinh(u) resolves the narrow velocity peak at phi = 0
        self.width = np.sqrt(ratio / (1 + ratio)) / (2 * self.k)
        self.top = np.arcsinh(np.pi / 2 / self.width)
        self.nodes, self.weights = np.polynomial.legendre.leggauss(320)
        self.quarter = self._time(self.top)

    def inertia(self, theta: Any) -> Any:
        return (self.ratio + np.sin(theta) ** 2) / (1 + self.ratio)

    def theta(self, u: Any) -> Any:
        return 2 * np.arcsin(self.k * np.sin(self.width * np.sinh(u)))

    def _time(self, u: float) -> float:
        """Return the time since the lowest point, by Gauss-Legendre quadrature."""
        at = u / 2 * (1 + self.nodes)
        theta = self.theta(at)
        density = np.sqrt(self.inertia(theta)) / np.cos(theta / 2) * self.width * np.cosh(at) / self.rate
        return float(u / 2 * (self.weights @ density))

    def __call__(self, t: float) -> dict[str, np.ndarray]:
        after = (t + self.quarter) % (4 * self.quarter)  # time since the upward passage of the lowest point
        falling = self.quarter < after < 3 * self.quarter
        since = 2 * self.quarter - after if falling else after - 4 * self.quarter * (after >= 3 * self.quarter)
        sign = np.sign(since)
        from scipy.optimize import brentq  # imported here because the import is slow

        u = sign * brentq(lambda u: self._time(u) - abs(since), 0.0, self.top, xtol=1e-15, rtol=1e-15) if since else 0.0
        theta = self.theta(u)
        phi = self.width * np.sinh(u)
        inertia = self.inertia(theta)
        speed = 2 * self.rate * self.k * abs(np.cos(phi)) / np.sqrt(inertia) * (-1 if falling else 1)
        shift = self.length / (1 + self.ratio)
        q = np.array([shift * (np.sin(self.theta0) - np.sin(theta)), theta])
        return {"q": q, "v": np.array([-shift * np.cos(theta) * speed, speed])}
