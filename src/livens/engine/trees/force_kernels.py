"""Kernels of force elements on one body: wrench, 6x6 derivative and work of a step."""

from __future__ import annotations

import functools

import casadi as ca

from livens.engine.codegen.jit import NativeCode
from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.models.element import ElementType
from livens.schemes.discretization.rigid_body_kernels import RigidBodyElementKernel, RigidBodyScheme
from livens.schemes.discretization.so3 import cross, skew


@functools.lru_cache(maxsize=256)
def force_kernels(
    scheme: RigidBodyScheme, model: ElementType, local_dofs: tuple[int, ...]
) -> tuple[NativeCode, NativeCode]:
    """Return the kernels of an element type on the given coordinates of a body: wrench with blocks, and work.

    Arguments are ``ups`` and ``alpha``, then centre and rotation matrix, each vector padded to four entries. The wrench
    is h/4 times the negative impulse of the element, its derivatives are those by the variations of the end pose.
    """
    x, z, c = ca.SX.sym("x", 8), ca.SX.sym("z", 16), ca.SX.sym("c", 2 + model.k.numel())
    ups, alpha, h, t, k = x[:3], x[4:7], c[0], c[1], c[2:]
    phi, *directors = (z[4 * i : 4 * i + 3] for i in range(4))
    f = 1 / (1 + ca.dot(alpha, alpha))
    middle = [f * (d + cross(alpha, d) + alpha * ca.dot(alpha, d)) for d in directors]
    rates = ca.vertcat(2 / h * ups, *(2 / h * cross(alpha, d) for d in middle))
    q, dofs = ca.vertcat(phi, *directors), list(local_dofs)
    residual, _, work = RigidBodyElementKernel(scheme, model, False).contribution(
        rates[dofs], ca.SX(0, 1), q[dofs], h, t, k
    )
    on_body = ca.SX.zeros(12)
    on_body[dofs] = residual
    force = h / 4 * on_body[:3]
    torque = h / 4 * sum((cross(d, on_body[3 * i : 3 * i + 3]) for i, d in enumerate(middle, 1)), ca.SX.zeros(3))
    tangent = ca.SX.eye(3) - skew(alpha) + alpha @ alpha.T
    blocks = [
        _padded(block)
        for row in (force, torque)
        for block in (ca.jacobian(row, ups), ca.jacobian(row, alpha) @ tangent)
    ]
    wrench = ca.vertcat(_padded(force), _padded(torque), *blocks)
    q_end = q + h * rates
    potential = ca.substitute(model.V, ca.vertcat(model.q, model.t, model.k), ca.vertcat(q_end[dofs], t + h, k))
    return (
        compile_function_kernel(ca.Function("force", [x, z, c], [ca.densify(wrench)]), "force"),
        compile_function_kernel(ca.Function("work", [x, z, c], [ca.densify(ca.vertcat(work, potential))]), "work"),
    )


def _padded(matrix: ca.SX) -> ca.SX:
    """Return the columns of a matrix with three rows, each padded to four entries."""
    return ca.vertcat(*(ca.vertcat(column, 0) for column in ca.horzsplit(ca.densify(matrix))))
