"""Free rotation of rigid bodies in space around a kick of the angular momentum, symmetric in time::

    R_A = exp(h/2 w0) R0        l1 = l0 + h tau        R1 = exp(h/2 w1) R_A        I(R1) w1 = l1

l is the spatial angular momentum ``I(R) w``. The second half step is the adjoint of the first one, so that the step is
symmetric and of order 2, and l is exact without torques. The torques of expensive forces are evaluated at ``R_A``.
"""

from __future__ import annotations

import casadi as ca

from livens.schemes.discretization.quasi_velocities import QuasiVelocities
from livens.schemes.discretization.so3 import rotation_matrix, solve_3x3
from livens.types import Expr

#: Newton iterations of the adjoint half step in closed form; the error is of size ``|h w|^(2^n)``.
_ITERATIONS = 4


def configuration(tw: QuasiVelocities, q0: Expr, u0: Expr, u: Expr, h: Expr, b: float) -> Expr:
    """Return the configuration ``(1-b) z0 + b z1`` of a step with mean velocities u.

    Parameters
    ----------
    tw : QuasiVelocities
        Quasi-velocities of the system.
    q0, u0 : casadi.SX
        Coordinates and quasi-velocities at the beginning of the step.
    u : casadi.SX
        Mean quasi-velocities, ``(u0 + u1)/2``.
    h : casadi.SX
        Step size in seconds.
    b : float
        Evaluation point: 0 at the beginning of the step, 1 at its end.

    Returns
    -------
    casadi.SX
        Coordinates.
    """
    if not b:
        return q0
    q = tw.retract(q0, b * h * u)
    for frame, block in tw.spatial_blocks():
        u1 = 2 * u[block] - u0[block]
        R = rotation_matrix(h / 2 * ((b - 1) * u0[block] + b * u1)) @ rotation_matrix(h / 2 * u0[block])
        for d in frame.directors:
            q[list(d)] = R @ q0[list(d)]
    return q


def momentum_residual(tw: QuasiVelocities, q0: Expr, u0: Expr, q1: Expr, u: Expr, impulse: Expr, k: Expr) -> Expr:
    """Return ``I(R1) w1 - I(R0) w0 - impulse`` of all bodies in space, and zeros for other quasi-velocities."""
    residual = ca.SX.zeros(tw.size)
    for frame, block in tw.spatial_blocks():
        before, after = tw.inertia_tensor(frame, q0, k), tw.inertia_tensor(frame, q1, k)
        residual[block] = after @ (2 * u[block] - u0[block]) - before @ u0[block] - impulse[block]
    return residual


def angular_velocities(
    tw: QuasiVelocities, q0: Expr, u0: Expr, impulse: Expr, h: Expr, k: Expr, isotropic: bool = False
) -> Expr:
    """Return the angular velocities w1 of all bodies in space, without unknowns of the step.

    In the frame of the body, ``J W = exp(-h/2 W) D_A^T l1``. Newton's method starts at ``h = 0``, which is exact for
    equal moments of inertia: bodies with `isotropic` inertia tensors need no iterations.
    """
    u1 = ca.SX(u0)
    if isotropic:
        for frame, block in tw.spatial_blocks():
            u1[block] = u0[block] + impulse[block] / tw.body_inertia_tensor(frame, k)[0, 0]
        return u1
    W, pi, half = ca.SX.sym("W", 3), ca.SX.sym("pi", 3), ca.SX.sym("h")
    J = ca.SX.sym("J", 3, 3)
    residual = J @ W - rotation_matrix(-half * W) @ pi
    newton = ca.Function("newton", [W, J, pi, half], [W - solve_3x3(ca.jacobian(residual, W), residual)])
    for frame, block in tw.spatial_blocks():
        tensor = tw.body_inertia_tensor(frame, k)
        D_A = rotation_matrix(h / 2 * u0[block]) @ tw.directors(frame, q0)
        momentum = D_A.T @ (tw.inertia_tensor(frame, q0, k) @ u0[block] + impulse[block])
        rate = solve_3x3(tensor, momentum)
        for _ in range(_ITERATIONS):
            rate = newton(rate, tensor, momentum, h / 2)
        u1[block] = D_A @ rate
    return u1
