"""Kernels of force elements on one body: wrench, 6x6 derivative and work of a step."""

from __future__ import annotations

import functools

import casadi as ca

from livens.engine.codegen.jit import NativeCode
from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.models.element import ElementType
from livens.schemes.discretization.rigid_body_kernels import RigidBodyElementKernel, RigidBodyScheme
from livens.schemes.discretization.so3 import cross, skew


class BodyMotion:
    """Symbolic motion of one body in a step: x has ``ups`` and ``alpha``, z centre and rotation, padded to four."""

    def __init__(self, x: ca.SX, z: ca.SX, h: ca.SX) -> None:
        self.ups, self.alpha, self.h = x[:3], x[4:7], h
        phi, *directors = (z[4 * i : 4 * i + 3] for i in range(4))
        f = 1 / (1 + ca.dot(self.alpha, self.alpha))
        self.q = ca.vertcat(phi, *directors)
        self.middle = [f * (d + cross(self.alpha, d) + self.alpha * ca.dot(self.alpha, d)) for d in directors]
        #: Change of centre and directors, divided by h.
        self.rates = ca.vertcat(2 / h * self.ups, *(2 / h * cross(self.alpha, d) for d in self.middle))
        #: Velocities of centre and directors where x contains velocity and angular velocity.
        self.velocities = ca.vertcat(self.ups, *(cross(self.alpha, d) for d in directors))

    def wrench(self, residual: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return h/4 times force and torque of a residual on centre and directors."""
        h = self.h
        torque = sum((cross(d, residual[3 * i : 3 * i + 3]) for i, d in enumerate(self.middle, 1)), ca.SX.zeros(3))
        return h / 4 * residual[:3], h / 4 * torque

    def by_variation(self, expression: ca.SX) -> ca.SX:
        """Return the derivative by the variation (nu, eps) of the end pose."""
        alpha = self.alpha
        tangent = ca.SX.eye(3) - skew(alpha) + alpha @ alpha.T
        return ca.horzcat(ca.jacobian(expression, self.ups), ca.jacobian(expression, alpha) @ tangent)


@functools.lru_cache(maxsize=256)
def force_kernels(
    scheme: RigidBodyScheme, model: ElementType, local_dofs: tuple[int, ...], width: int = 1
) -> tuple[NativeCode, NativeCode]:
    """Return the kernels of an element type on the given coordinates of a body: wrench with blocks, and work.

    Arguments are ``ups`` and ``alpha``, then centre and rotation matrix, each vector padded to four entries. The wrench
    is h/4 times the negative impulse of the element, its derivatives are those by the variations of the end pose.
    """
    x, z, c = ca.SX.sym("x", 8), ca.SX.sym("z", 16), ca.SX.sym("c", 2 + model.k.numel())
    h, t, k, dofs = c[0], c[1], c[2:], list(local_dofs)
    body = BodyMotion(x, z, h)
    residual, _, work = RigidBodyElementKernel(scheme, model, False).contribution(
        body.rates[dofs], ca.SX(0, 1), body.q[dofs], h, t, k
    )
    on_body = ca.SX.zeros(12)
    on_body[dofs] = residual
    force, torque = body.wrench(on_body)
    rows = [body.by_variation(row) for row in (force, torque)]
    blocks = [padded(block) for row in rows for block in (row[:, :3], row[:, 3:])]
    wrench = ca.vertcat(padded(force), padded(torque), *blocks)
    q_end = body.q + h * body.rates
    potential = ca.substitute(model.V, ca.vertcat(model.q, model.t, model.k), ca.vertcat(q_end[dofs], t + h, k))
    return (
        compile_function_kernel(ca.Function("force", [x, z, c], [ca.densify(wrench)]), "force", width=width),
        compile_function_kernel(
            ca.Function("work", [x, z, c], [ca.densify(ca.vertcat(work, potential))]), "work", width=width
        ),
    )


def padded(matrix: ca.SX) -> ca.SX:
    """Return the columns of a matrix with three rows, each padded to four entries."""
    return ca.vertcat(*(ca.vertcat(column, 0) for column in ca.horzsplit(ca.densify(matrix))))
