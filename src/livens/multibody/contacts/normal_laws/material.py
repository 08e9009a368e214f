"""Hertz theory: contact stiffness from curvatures and elastic materials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from livens.errors import InputError, explain_call_errors
from livens.multibody.contacts.elliptic_integrals import elliptic_integrals
from livens.validation import check_array, check_number, check_positive


@explain_call_errors
@dataclass(frozen=True)
class ElasticMaterial:
    """Elastic material; steel by default.

    Parameters
    ----------
    E : float, default 206e9
        Young's modulus in Pa.
    nu : float, default 0.3
        Poisson's ratio, above -1 and at most 0.5.
    """

    E: float = 206e9
    nu: float = 0.3

    def __post_init__(self) -> None:
        check_positive("Young's modulus", self.E, allow_strings=False)
        if not -1 < check_number("Poisson's ratio", self.nu, allow_strings=False) <= 0.5:
            raise InputError(f"Poisson's ratio must be above -1 and at most 1/2, got {self.nu:g}")

    @property
    def compliance(self) -> float:
        """Compliance ``(1 - nu^2)/E``.

        Returns
        -------
        float
            Compliance in 1/Pa.
        """
        return (1 - self.nu**2) / self.E


@dataclass(frozen=True)
class ContactEllipse:
    """Contact ellipse: ratio of its axes, and dimensionless approach delta* (1 for a circle)."""

    ratio: float
    depth: float  # delta*


def contact_ellipse(difference: float) -> ContactEllipse:
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
    return ContactEllipse(math.sqrt(square), 2 * K / math.pi * (math.pi / (2 * square * E)) ** (1 / 3))


@explain_call_errors
@explain_call_errors
def hertz_stiffness(
    curvatures_a: Sequence[float],
    curvatures_b: Sequence[float],
    materials: tuple[ElasticMaterial, ElasticMaterial] | ElasticMaterial | None = None,
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
    >>> K = hertz_stiffness(ball, (0.0, 0.0), ElasticMaterial(E=2e11, nu=0.3))
    >>> round(K / (4 / 3 * math.sqrt(0.01) / (2 * 0.91 / 2e11)), 12)
    1.0
    """
    curvatures = [check_array("the curvatures of a contact", x, (2,)) for x in (curvatures_a, curvatures_b)]
    pair = materials if isinstance(materials, tuple) else (materials or ElasticMaterial(),) * 2
    if len(pair) != 2 or not all(isinstance(material, ElasticMaterial) for material in pair):
        raise InputError(f"materials must be an ElasticMaterial, or one for each body, got {materials!r}")
    total = float(curvatures[0].sum() + curvatures[1].sum())
    planes = curvatures[0] + curvatures[1]
    if not (total > 0 and min(planes) >= -1e-12 * total):
        raise InputError(
            f"surfaces with the curvatures {curvatures[0].tolist()} and {curvatures[1].tolist()} do not touch in a "
            "point: in each plane, a concave surface must be less curved than the convex surface in it"
        )
    difference = abs(float(planes[0] - planes[1])) / total
    if difference > 1 - 1e-9:
        raise InputError("these surfaces touch along a line: give a stiffness instead of a material")
    shape = contact_ellipse(difference).depth
    compliance = pair[0].compliance + pair[1].compliance
    return (2 / (shape * total)) ** 1.5 * 2 * total / (3 * compliance)
