"""Hertz theory: contact stiffness from curvatures and elastic materials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from livens.errors import InputError
from livens.expressions.numbers import array, number, positive
from livens.multibody.contacts.elliptic import elliptic_integrals


@dataclass(frozen=True)
class Material:
    """Elastic material; steel by default.

    Parameters
    ----------
    E : float, default 206e9
        Young's modulus in Pa.
    nu : float, default 0.3
        Poisson's ratio, above -1 and at most 0.5.
    """

    young: float = 206e9
    poisson: float = 0.3

    def __post_init__(self) -> None:
        positive("Young's modulus", self.young, text=False)
        if not -1 < number("Poisson's ratio", self.poisson, text=False) <= 0.5:
            raise InputError(f"Poisson's ratio must be above -1 and at most 1/2, got {self.poisson:g}")

    @property
    def compliance(self) -> float:
        """Compliance ``(1 - nu^2)/E``.

        Returns
        -------
        float
            Compliance in 1/Pa.
        """
        return (1 - self.poisson**2) / self.young


@dataclass(frozen=True)
class Ellipse:
    """Contact ellipse: ratio of its axes, and dimensionless approach delta* (1 for a circle)."""

    ratio: float
    depth: float  # delta*


def contact_ellipse(difference: float) -> Ellipse:
    """Return the contact ellipse for F, the difference of the curvatures in both planes over their sum; 0 is a circle.

    With m = 1 - 1/ratio^2, ``((ratio^2 + 1) E - 2 K)/((ratio^2 - 1) E) = (B - (1 - m) D)/E`` is F; it grows with m.
    """
    low, high = 0.0, 1.0 - 1e-15
    for _ in range(200):
        m = (low + high) / 2
        K, B, D = elliptic_integrals(m)
        low, high = (m, high) if B - (1 - m) * D < difference * (B + (1 - m) * D) else (low, m)
        if high - low <= 1e-16:
            break
    E = B + (1 - m) * D
    square = 1 / (1 - m)
    return Ellipse(math.sqrt(square), 2 * K / math.pi * (math.pi / (2 * square * E)) ** (1 / 3))


def hertz_stiffness(
    first: Sequence[float],
    second: Sequence[float],
    materials: tuple[Material, Material] | Material | None = None,
) -> float:
    """Return the Hertz stiffness K of ``Q = K depth^1.5`` of two bodies from their principal curvatures.

    The principal planes of both bodies must coincide, as for a ball in a groove: along the groove, and across it.

    Parameters
    ----------
    curvatures_a, curvatures_b : sequence of float
        Curvatures (1/radius) of both bodies in the two principal planes, in 1/m; negative for concave surfaces.
    materials : ElasticMaterial or pair of ElasticMaterial, optional
        Material of both bodies, or one for each; steel by default.

    Returns
    -------
    float
        Stiffness in N/m^1.5.

    Raises
    ------
    InputError
        If the surfaces touch along a line or not in a single point.

    Examples
    --------
    >>> ball = 1 / 0.01, 1 / 0.01
    >>> K = hertz_stiffness(ball, (0.0, 0.0), Material(young=2e11, poisson=0.3))
    >>> round(K / (4 / 3 * math.sqrt(0.01) / (2 * 0.91 / 2e11)), 12)
    1.0
    """
    curved = [array("the curvatures of a contact", x, (2,)) for x in (first, second)]
    both = materials if isinstance(materials, tuple) else (materials or Material(),) * 2
    if len(both) != 2 or not all(isinstance(one, Material) for one in both):
        raise InputError(f"materials must be an ElasticMaterial, or one for each body, got {materials!r}")
    total = float(curved[0].sum() + curved[1].sum())
    planes = curved[0] + curved[1]
    if not (total > 0 and min(planes) >= -1e-12 * total):
        raise InputError(
            f"surfaces with the curvatures {curved[0].tolist()} and {curved[1].tolist()} do not touch in a point: "
            "in each plane, a concave surface must be less curved than the convex surface in it"
        )
    difference = abs(float(planes[0] - planes[1])) / total
    if difference > 1 - 1e-9:
        raise InputError("these surfaces touch along a line: give a stiffness instead of a material")
    shape = contact_ellipse(difference).depth
    compliance = both[0].compliance + both[1].compliance
    return (2 / (shape * total)) ** 1.5 * 2 * total / (3 * compliance)
