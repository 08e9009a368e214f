"""External forces in implicit schemes, evaluated at the midpoint of the step in every Newton iteration.

The forces are n further inputs w of the step equations, and enter them like the forces of an element. Jacobians of the
force, given or by difference quotients, are further inputs J = (dF/dq, dF/dv). The Newton matrix follows by the chain
rule: ``r_x + r_w (F_q q_x + F_v v_x)``.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.graph.roundoff import roundoff_bound
from livens.models.element import Element
from livens.models.system import System
from livens.schemes.core.step_equations import MidpointForceSlot, StepEquations, StepGraph
from livens.types import Expr

#: Assumed accuracy of an external force, in units of its round-off; its operations are not known.
_FORCE_ULPS = 8.0
#: Maximum number of coordinates: the Jacobian of the force is dense, and steps are unrolled code.
_MAX_COORDINATES = 60


class MidpointForceEquations(StepEquations):
    """Step equations of a System with an external force at the midpoint ``(q0 + q1)/2, (q1 - q0)/h, t + h/2``.

    `equations_of` returns the equations of the system with a symbolic force of constant value in place of the external
    one. The scheme must apply forces at the midpoint, where they supply the work ``h F . (q1 - q0)/h``.
    """

    def __init__(self, system: System, equations_of: Callable[[System], StepEquations]) -> None:
        assert system.external_force is not None
        if system.n > _MAX_COORDINATES:
            raise InputError(
                f"implicit schemes treat external forces on at most {_MAX_COORDINATES} coordinates, as their Newton "
                f"matrix is dense; the model has {system.n}: use semi-explicit:0.5,0.5"
            )
        self.system, self.force = system, system.external_force
        self._symbolic = equations_of(_with_constant_force(system))
        self.layout = self._symbolic.layout

    def to_single_graph(self) -> StepGraph:
        return self._graph

    @functools.cached_property
    def _graph(self) -> StepGraph:
        e, n = self._symbolic.to_single_graph(), self.system.n
        x, z, nc = e.x, e.z, e.c.numel() - n
        c, w, J = e.c[:nc], e.c[nc:], ca.SX.sym("J", 2 * n * n)
        query, query_x = self._query(e, c, w)
        F_query = ca.reshape(J, 2 * n, n).T  # row by row
        columns = slice(0, 2 * n if self.force.depends_on_velocity else n)
        r_w = ca.jacobian(e.residual, w)
        sparsity = ca.Sparsity.triplet(e.size, e.size, e.jac_rows.tolist(), e.jac_cols.tolist())
        assert sparsity.get_triplet() == (e.jac_rows.tolist(), e.jac_cols.tolist()), "entries column by column"
        matrix = ca.SX(sparsity, ca.densify(e.jac_values))
        matrix += r_w @ (F_query[:, columns] @ query_x[columns, :])
        rows, cols = matrix.sparsity().get_triplet()
        return StepGraph(
            x=x,
            z=z,
            c=c,
            residual=e.residual,
            jac_rows=np.array(rows, dtype=np.int64),
            jac_cols=np.array(cols, dtype=np.int64),
            jac_values=ca.SX(matrix.nz[:]),
            final_state=e.final_state,
            initial_guess=ca.substitute(e.initial_guess, w, ca.SX.zeros(n)),
            block_sizes=e.block_sizes,
            equation_labels=e.equation_labels,
            layout=e.layout,
            assembled_roundoff_bound=self._roundoff(e, ca.vertcat(c, w, J), query, ca.fabs(r_w), ca.fabs(F_query)),
            update_matrix=e.update_matrix,
            external_force=MidpointForceSlot(
                self.force, n, ca.Function("query", [x, z, c], [ca.densify(query)]), ca.vertcat(w, J)
            ),
        )

    def _query(self, e: StepGraph, c: Expr, w: Expr) -> tuple[Expr, Expr]:
        """Return the query point (q, v, t), and its derivatives with respect to the solution of the Newton matrix.

        The mean velocity of a step is the factor of the force in its supplied work.
        """
        h, supplied = c[0], e.final_state[e.layout["supplied_energy"]]
        v_m = ca.jacobian(supplied, w).T / h
        query = ca.vertcat(e.z[e.layout["q"]] + h / 2 * v_m, v_m, c[1] + h / 2)
        derivative = ca.jacobian(query[: 2 * self.system.n], e.x)
        if e.update_matrix is None:
            return query, derivative
        values, rows, columns = e.update_matrix
        update = ca.SX(ca.SX.eye(e.size))
        for row in set(rows):
            update[row, row] = 0
        for value, row, column in zip(ca.vertsplit(values), rows, columns, strict=True):
            update[row, column] = value
        return query, derivative @ update

    def _roundoff(self, e: StepGraph, c: Expr, query: Expr, abs_r_w: Expr, abs_F_query: Expr) -> ca.Function:
        """Return the round-off bound of the residual, with that of the force and of its query point."""
        n, errors = self.system.n, ca.SX.sym("e", e.size)
        k = e.c.numel()
        bound = e.roundoff_bound(e.x, e.z, c[:k], errors)
        arguments = [e.x, e.z, c[: k - n]]
        query_function = ca.Function("query", arguments, [query])
        query_bound = roundoff_bound(query_function, arguments, [errors, ca.fabs(e.z), ca.fabs(c[: k - n])])
        force_bound = _FORCE_ULPS * ca.fabs(c[k - n : k]) + abs_F_query @ query_bound[: 2 * n]
        return ca.Function("noise", [e.x, e.z, c, errors], [ca.densify(bound + abs_r_w @ force_bound)])


def _with_constant_force(system: System) -> System:
    """Return the system with a force on all coordinates whose values are its last n parameters."""
    n = system.n
    force = Element(
        range(n),
        forces=lambda k: [k.midpoint_external_force[i] for i in range(n)],
        parameters=dict(midpoint_external_force=[0.0] * n),
    )
    result = copy.copy(system)
    for name in vars(system):
        if isinstance(getattr(type(system), name, None), functools.cached_property):
            del result.__dict__[name]
    result.external_force = None
    result.elements = (*system.elements, force)
    result.element_types = result._trace_types()
    result.element_dofs = (*system.element_dofs, tuple(range(n)))
    return result
