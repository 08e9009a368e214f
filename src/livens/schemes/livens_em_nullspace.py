"""The energy-momentum scheme with a discrete null space: three unknowns per quaternion."""

from __future__ import annotations

import dataclasses
from typing import Any

import casadi as ca
import numpy as np

from livens.models.system import System
from livens.schemes.base import Requirement
from livens.schemes.livens_em import LivensEM
from livens.schemes.recipes.turning import E, G, chord_velocity, unit_multiplier
from livens.schemes.step import StepEquations


class LivensEMNullspace(LivensEM):
    """`livens-em` for unit quaternions with the discrete null space method, S004 rem. 4.11.

    For every quaternion, the unknown is the incremental rotation vector ``theta = h w`` with

        q1 = exp(theta/2) o q0                                         (105)

    so its length stays one; its balance of momentum is multiplied by ``G(q_m)``, whose null space is q_m, the direction
    of its constraint force (104). The multiplier of unit length is eliminated. All other unknowns and equations are
    those of `livens-em`, and so is the trajectory.
    """

    name = "livens-em-nullspace"
    summary = "energy-momentum scheme on Livens' principle with a discrete null space for unit quaternions (Null-EML)"
    source = "S004 rem. 4.11"
    requires = (Requirement("has_quaternions", "coordinates that are unit quaternions"),)

    def reduce(self, equations: StepEquations, system: System) -> StepEquations:
        """Replace the velocities of every quaternion by its rate of rotation, and leave its constraint out."""
        n, m = system.n, system.m
        h, q0 = equations.c[0], equations.z[:n]
        eliminated = {n + k for k in system.quaternion_constraints}
        inside = {i for four in system.quaternions for i in four}
        kept = [i for i in range(n + m) if i not in inside and i not in eliminated]
        w = [ca.SX.sym("w", 3) for _ in system.quaternions]
        rest = ca.SX.sym("x", len(kept))

        v_m = ca.SX.zeros(n)
        residual = equations.residual_function
        x = ca.SX.zeros(n + m)
        x[kept] = rest
        for four, rate in zip(system.quaternions, w, strict=True):
            i = list(four)
            x[i] = chord_velocity(q0[i], rate, h)
            v_m[i] = x[i]
        r = residual(x, equations.z, equations.c)  # with the eliminated multipliers set to zero
        rows, multipliers = [r[kept]], dict[int, Any]()
        names = [equations.row_names[i] for i in kept]
        for number, four in zip(system.quaternion_constraints, system.quaternions, strict=True):
            i = list(four)
            q_m = q0[i] + h / 2 * v_m[i]
            # over |q_m|^2, else turning q by a full circle (q_m = 0) would count as a solution
            rows.append(G(q_m) @ r[i] / ca.dot(q_m, q_m))
            # what is left along q_m is the constraint force: r + h lam q_m = 0
            multipliers[number] = unit_multiplier(q_m, r[i], h)
            turned = system.coordinates[four[0]]
            names += [f"balance of angular momentum about axis {axis} of the quaternion at {turned}" for axis in "123"]

        y = ca.vertcat(rest, *w)
        reduced = ca.densify(ca.vertcat(*rows))
        jacobian = ca.jacobian(reduced, y)
        places = jacobian.sparsity().get_triplet()
        end = equations.end_function(x, equations.z, equations.c)
        for number, value in multipliers.items():
            end[3 * n + 2 + number] = value
        guess = equations.guess_function(equations.z, equations.c)
        rates = [2 * E(q0[list(four)]) @ guess[list(four)] for four in system.quaternions]
        velocities = sum(1 for i in kept if i < n)
        return dataclasses.replace(
            equations,
            x=y,
            residual=reduced,
            rows=np.array(places[0], dtype=np.int64),
            columns=np.array(places[1], dtype=np.int64),
            jacobian=ca.vertcat(*(jacobian[i, j] for i, j in zip(*places, strict=True))),
            end=ca.densify(end),
            guess=ca.densify(ca.vertcat(guess[kept], *rates)),
            kinds=(velocities, len(kept) - velocities, 3 * len(w)),
            row_names=tuple(names),
            noise=None,
        )
