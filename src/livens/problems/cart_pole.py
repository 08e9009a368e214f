"""Pole below a light cart: short phases of very high velocity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens import scaling
from livens.errors import InputError
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.problem import Problem
from livens.problems import problem
from livens.scene import shapes
from livens.types import FloatArray, ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


def _visual(q: Vector, k: ParameterNamespace) -> list[shapes.Shape]:
    cart, half_length = [q[0], 0.0], 1.5 * k.length
    end = [q[0] + k.length * m.sin(q[1]), -k.length * m.cos(q[1])]
    return [
        shapes.path([[-half_length, 0.0], [half_length, 0.0]], name="rail"),
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

    def energy(q: Vector, p: Vector, k: ParameterNamespace) -> Any:
        # inverse of the mass matrix with the determinant ratio + sin^2; 1 + ratio - cos^2 suffers from cancellation
        cos, determinant = m.cos(q[1]), k.length**2 * (k.ratio + m.sin(q[1]) ** 2)
        square = (k.length * p[0]) ** 2 - 2 * k.length * cos * p[0] * p[1] + (1 + k.ratio) * p[1] ** 2
        return square / (2 * determinant) - k.g * k.length * cos

    model = Hamiltonian(
        "x theta",
        hamiltonian=energy,
        parameters=dict(ratio=ratio, g=g, length=length),
        symmetries=dict(momentum=lambda q: [1, 0]),
        visual=_visual,
    )

    def inertia(q: Vector, k: ParameterNamespace) -> ScalarLike:
        return (k.ratio + m.sin(q[1]) ** 2) / (1 + k.ratio)

    return Problem(
        "cart-pole",
        model,
        None,
        None,
        "kahan-li-8:adaptive-variational:0.5,0.5",
        0.05,
        10.0,
        reference=_ExactMotion(ratio, theta0, g, length),
        scaling=scaling.user_scaling(inertia),
        initial_values={"q0": np.array([0.0, theta0]), "p0": np.zeros(2)},
    )


class _ExactMotion:
    """Exact motion by quadrature: with ``sin(theta/2) = sin(theta0/2) sin(phi)``, time is an integral over phi.

    The total horizontal momentum is zero, so one degree of freedom remains, ``T = length^2 I(theta) theta'^2/2``.
    """

    def __init__(self, ratio: float, theta0: float, g: float, length: float) -> None:
        self.ratio, self.theta0, self.length = ratio, theta0, length
        self.modulus, self.frequency = np.sin(theta0 / 2), np.sqrt(g / length)
        # the substitution phi = width sinh(u) resolves the narrow velocity peak at phi = 0
        self.width = np.sqrt(ratio / (1 + ratio)) / (2 * self.modulus)
        self.u_max = np.arcsinh(np.pi / 2 / self.width)
        self.nodes, self.weights = np.polynomial.legendre.leggauss(320)
        self.quarter_period = self._time_from_bottom(self.u_max)

    def inertia(self, theta: FloatArray | float) -> FloatArray | float:
        return (self.ratio + np.sin(theta) ** 2) / (1 + self.ratio)

    def theta(self, u: FloatArray | float) -> FloatArray | float:
        return 2 * np.arcsin(self.modulus * np.sin(self.width * np.sinh(u)))

    def _time_from_bottom(self, u: float) -> float:
        """Return the time since the lowest point, by Gauss-Legendre quadrature."""
        points = u / 2 * (1 + self.nodes)
        theta = self.theta(points)
        density = np.sqrt(self.inertia(theta)) / np.cos(theta / 2) * self.width * np.cosh(points) / self.frequency
        return float(u / 2 * (self.weights @ density))

    def __call__(self, t: float) -> dict[str, np.ndarray]:
        phase = (t + self.quarter_period) % (
            4 * self.quarter_period
        )  # time since the upward passage of the lowest point
        falling = self.quarter_period < phase < 3 * self.quarter_period
        time_from_bottom = (
            2 * self.quarter_period - phase
            if falling
            else phase - 4 * self.quarter_period * (phase >= 3 * self.quarter_period)
        )
        sign = np.sign(time_from_bottom)
        from scipy.optimize import brentq  # imported here because the import is slow

        u = (
            sign
            * brentq(
                lambda u: self._time_from_bottom(u) - abs(time_from_bottom), 0.0, self.u_max, xtol=1e-15, rtol=1e-15
            )
            if time_from_bottom
            else 0.0
        )
        theta = self.theta(u)
        phi = self.width * np.sinh(u)
        inertia = self.inertia(theta)
        speed = 2 * self.frequency * self.modulus * abs(np.cos(phi)) / np.sqrt(inertia) * (-1 if falling else 1)
        shift = self.length / (1 + self.ratio)
        q = np.array([shift * (np.sin(self.theta0) - np.sin(theta)), theta])
        return {"q": q, "v": np.array([-shift * np.cos(theta) * speed, speed])}
