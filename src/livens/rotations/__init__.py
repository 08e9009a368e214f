"""Rotations by unit quaternions, scalar first: ``q = (q0, q1, q2, q3)``.

See Kinon and Betsch 2024, sect. 3 and appendix C.

``R(q) = E(q) G(q)^T`` maps convective (body-fixed) components to spatial ones; the angular velocity is
``Omega = 2 G(q) v`` in the body frame and ``omega = 2 E(q) v`` in space, where v is the time derivative of q.
Polynomials in q stay polynomials (``to_matrix(q)`` is not divided by ``q.q``): discrete gradients of polynomials of
second degree need no correction.

>>> from livens import rotations as rot
>>> quarter = rot.from_axis_angle([0, 0, 1], 3.141592653589793 / 2)
>>> rot.rotate(quarter, [1.0, 0.0, 0.0]).round(12).tolist()
[0.0, 1.0, 0.0]

Functions accept numbers and symbols, except `from_matrix`, `to_axis_angle` and `to_euler_angles`, which require
numbers.

- `quaternions`: algebra, matrices of multiplication, angular velocity
- `conversions`: rotation vectors, axis and angle, matrices, directors
- `euler_angles`: Euler angles
"""

from __future__ import annotations

from livens.rotations.conversions import (
    directors,
    exponential,
    from_axis_angle,
    from_directors,
    from_matrix,
    logarithm,
    rotate,
    to_axis_angle,
    to_matrix,
)
from livens.rotations.euler_angles import EulerAngles, euler_kinematic_matrix, from_euler_angles, to_euler_angles
from livens.rotations.quaternions import (
    E,
    G,
    Q_l,
    Q_r,
    conjugate,
    convective_velocity,
    identity,
    normalized,
    product,
    rate_from_convective,
    rate_from_spatial,
    skew,
    spatial_velocity,
)

__all__ = [
    "E",
    "EulerAngles",
    "G",
    "Q_l",
    "Q_r",
    "conjugate",
    "convective_velocity",
    "directors",
    "euler_kinematic_matrix",
    "exponential",
    "from_axis_angle",
    "from_directors",
    "from_euler_angles",
    "from_matrix",
    "identity",
    "logarithm",
    "normalized",
    "product",
    "rate_from_convective",
    "rate_from_spatial",
    "rotate",
    "skew",
    "spatial_velocity",
    "to_axis_angle",
    "to_euler_angles",
    "to_matrix",
]
