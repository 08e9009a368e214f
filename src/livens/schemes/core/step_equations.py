"""Equations of one step: the interface between schemes and the engine."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from livens.expressions.graph.roundoff import roundoff_bound
from livens.expressions.state_layout import Layout
from livens.types import Expr

if TYPE_CHECKING:
    from livens.models.external_force import ExternalForce
    from livens.schemes.discretization.assembly_plan import AssemblyPlan


class StepEquations:
    """Equations that are solved in one step of a model.

    Equations may have structure, such as a sum over elements of a few types. `to_single_graph` writes them as one
    expression graph, which the fused tier compiles. The assembled tier uses the structure (`assembly_plan`) instead.
    """

    layout: Layout  # the parts of the state

    def to_single_graph(self) -> StepGraph:
        """Return the equations as one expression graph."""
        raise NotImplementedError

    @property
    def n_unknowns(self) -> int | None:
        """Number of unknowns of a step with a stepper of its own; None if the equations are compiled as one graph."""
        return None

    @property
    def loops_over_bodies(self) -> bool:
        """True if steps loop over bodies and cells, without one graph of all equations."""
        return False

    @property
    def n_assembled_unknowns(self) -> int:
        """Number of unknowns of the assembly plan; 0 if there is none."""
        return 0

    def assembly_plan(self) -> AssemblyPlan | None:
        """Return the equations as batched element kernels, one batch per element type; None if not available."""
        return None

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the equations and of their order; equal for runs that solve the same equations.

        Structured equations hash their parts, so that no graph of the whole system is built.
        """
        return self.to_single_graph().fingerprint


def array_sha256(table: np.ndarray) -> str:
    """Return the SHA-256 of the shape and the entries of an integer array."""
    return hashlib.sha256(
        repr(table.shape).encode() + np.ascontiguousarray(table, dtype=np.int64).tobytes()
    ).hexdigest()


class ErrorEstimateInfo(NamedTuple):
    """Metadata of an error estimate: variables, order and scaling."""

    names: tuple[str, ...]  # names of the variables
    order: int  # order p: errors times powers of h are of size h^(p + 1)
    h_powers: tuple[int, ...]
    filtered: bool  # the errors are the solution of a linear system
    max_growth: float = 8.0  # maximum ratio of successive step sizes
    doubling_order: int = 0  # order of the scheme if the error is estimated by a double step; else 0
    scale_groups: tuple[int, ...] = ()  # first variable of the group whose largest magnitude is the scale


@dataclass(frozen=True, eq=False)
class ErrorEstimate:
    """Local error estimate of a step, as expressions of unknowns, state and inputs.

    With a `matrix` the errors are the solution of ``matrix errors' = errors``. The errors are multiplied by h to the
    power `h_powers` and compared with `scales`.
    """

    errors: Any
    scales: Any
    order: int  # order p: errors times powers of h are of size h^(p + 1)
    names: tuple[str, ...]  # names of the variables
    matrix: Any = None
    h_powers: tuple[int, ...] = ()
    max_growth: float = 8.0  # maximum ratio of successive step sizes

    @property
    def count(self) -> int:
        return int(self.errors.numel())

    @functools.cached_property
    def info(self) -> ErrorEstimateInfo:
        powers = self.h_powers or (0,) * self.count
        return ErrorEstimateInfo(self.names, self.order, powers, self.matrix is not None, self.max_growth)


@dataclass(frozen=True)
class ExternalForceSlot:
    """External (compiled) force with the positions of its arguments and of its result in the state vector."""

    force: ExternalForce
    query_start: int  # start of the query point: coordinates, velocities and time
    n: int  # number of coordinates
    result_start: int  # start of the result

    def evaluate_into(self, z: np.ndarray, k: np.ndarray) -> None:
        """Evaluate the force at the query point and write the result into the state z."""
        start, n = self.query_start, self.n
        result = self.force(z[start : start + n], z[start + n : start + 2 * n], z[start + 2 * n], k)
        z[self.result_start : self.result_start + result.size] = result


@dataclass(frozen=True, eq=False)
class MidpointForceSlot:
    """External (compiled) force at the midpoint of an implicit step, with its query point and its inputs.

    The force and its Jacobian follow the parameters in the inputs of the step functions.
    """

    force: ExternalForce
    n: int  # number of coordinates
    query: ca.Function  # query point as a function of (x, z, c): coordinates, velocities and time
    inputs: Expr  # symbols of the force and of its Jacobian, row by row

    def append_to(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the inputs c, the force and its Jacobian."""
        query = self.query(x, z, c).full().ravel()
        q, v, t = query[: self.n], query[self.n : 2 * self.n], float(query[-1])
        return np.concatenate([c, self.force(q, v, t, c[2:]), self.force.jacobian(q, v, t, c[2:]).ravel()])


@dataclass(frozen=True, eq=False)
class StepGraph(StepEquations):
    """Step equations as one graph: ``residual(x; z, c) = 0`` for the unknowns x of a step from the state z.

    ``c = (h, t, parameters...)`` are the run-time inputs. The Jacobian is stored as nonzeros with their positions.
    """

    x: Any
    z: Any
    c: Any
    residual: Any
    jac_rows: np.ndarray  # row indices of the nonzeros of the Jacobian
    jac_cols: np.ndarray  # column indices
    jac_values: Any  # values of the nonzeros
    final_state: Any  # state at t + h
    initial_guess: Any  # initial guess of the unknowns, used where no predictor is available
    block_sizes: tuple[int, ...]  # sizes of consecutive blocks of unknowns (velocities, multipliers, ...)
    equation_labels: tuple[str, ...]
    layout: Layout  # the parts of the state
    assembled_roundoff_bound: ca.Function | None = (
        None  # round-off bound assembled from element kernels; else derived from the graph
    )
    dense_output: Any = None  # dense output: (theta, state at t + theta h)
    error_estimate: ErrorEstimate | None = None
    update_matrix: Any = (
        None  # (values, rows, columns) of the COO matrix that maps the Newton solution to increments of x
    )
    stage_extrapolation: Any = (
        None  # stage extrapolation: (ratio of step sizes, unknowns of the next step), expressions of x, z, c
    )
    external_force: ExternalForceSlot | MidpointForceSlot | None = None  # evaluated after every step, or within it
    named_values: Mapping[str, Any] = field(default_factory=dict)  # intermediate values by name: stages, multipliers
    linear_predictor: Any = None  # linear predictor of the unknowns of the next step, a linear function of x

    def __post_init__(self) -> None:
        """Check the sizes: native code relies on them, and a wrong size would write out of bounds."""
        sizes = {
            "residual": (self.residual.numel(), self.size),
            "end": (self.final_state.numel(), self.z.numel()),
            "layout": (self.layout.size, self.z.numel()),
            "guess": (self.initial_guess.numel(), self.size),
            "jacobian": (self.jac_values.numel(), len(self.jac_rows)),
            "kinds": (sum(self.block_sizes), self.size),
            "onward": (self.size if self.linear_predictor is None else self.linear_predictor.numel(), self.size),
        }
        for name, (size, needed) in sizes.items():
            if size != needed:
                raise ValueError(f"the equations of a step have {size} entries in '{name}', not {needed}")

    @classmethod
    def from_residual(
        cls,
        x: Expr,
        z: Expr,
        c: Expr,
        *,
        residual: Any,
        final_state: Expr,
        initial_guess: Expr,
        block_sizes: tuple[int, ...],
        equation_labels: tuple[str, ...],
        layout: Layout,
        assembled_roundoff_bound: ca.Function | None = None,
        dense_output: Any = None,
        error_estimate: ErrorEstimate | None = None,
        stage_extrapolation: tuple[Expr, Expr] | None = None,
        named_values: Mapping[str, Expr] | None = None,
    ) -> StepGraph:
        """Return equations whose Jacobian is derived from the residual by automatic differentiation."""
        jacobian = ca.jacobian(residual, x)
        jac_rows, jac_cols = jacobian.sparsity().get_triplet()
        return cls(
            x=x,
            z=z,
            c=c,
            residual=residual,
            jac_rows=np.array(jac_rows, dtype=np.int64),
            jac_cols=np.array(jac_cols, dtype=np.int64),
            jac_values=ca.SX(jacobian.nz[:]) if jac_rows else ca.SX(0, 1),
            final_state=final_state,
            initial_guess=initial_guess,
            block_sizes=block_sizes,
            equation_labels=equation_labels,
            layout=layout,
            assembled_roundoff_bound=assembled_roundoff_bound,
            dense_output=dense_output,
            error_estimate=error_estimate,
            stage_extrapolation=stage_extrapolation,
            named_values={} if named_values is None else named_values,
        )

    def to_single_graph(self) -> StepGraph:
        return self

    @functools.cached_property
    def size(self) -> int:
        return int(self.x.numel())

    @functools.cached_property
    def block_size_array(self) -> np.ndarray:
        """`block_sizes` as an integer array for the compiled loop."""
        return np.array(self.block_sizes, dtype=np.int64)

    @property
    def arguments(self) -> list[Expr]:
        if isinstance(self.external_force, MidpointForceSlot):
            return [self.x, self.z, ca.vertcat(self.c, self.external_force.inputs)]
        return [self.x, self.z, self.c]

    def complete_inputs(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the inputs of the step functions: c, followed by an external force at the midpoint."""
        slot = self.external_force
        return slot.append_to(x, z, c) if isinstance(slot, MidpointForceSlot) else c

    @functools.cached_property
    def residual_function(self) -> ca.Function:
        return ca.Function("residual", self.arguments, [self.residual])

    @functools.cached_property
    def roundoff_bound(self) -> ca.Function:
        """Round-off bound of the residual at (x, z, c, e) for unknowns with errors e, in units of UNIT."""
        if self.assembled_roundoff_bound is not None:
            return self.assembled_roundoff_bound
        e = ca.SX.sym("e", self.size)
        errors = [e, ca.fabs(self.z), ca.fabs(self.c)]
        bound = roundoff_bound(self.residual_function, self.arguments, errors)
        return ca.Function("noise", [*self.arguments, e], [ca.densify(bound)])

    @functools.cached_property
    def newton_function(self) -> ca.Function:
        """Residual and nonzeros of the Jacobian, then the nonzeros of the update matrix, if there is one."""
        update_values = [] if self.update_matrix is None else [self.update_matrix[0]]
        return ca.Function("newton", self.arguments, [self.residual, self.jac_values, *update_values])

    @functools.cached_property
    def final_state_function(self) -> ca.Function:
        return ca.Function("end", self.arguments, [self.final_state])

    def evaluate_final_state(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the final state of a step as numbers."""
        state = np.asarray(self.final_state_function(x, z, self.complete_inputs(x, z, c)).full().ravel())
        if isinstance(self.external_force, ExternalForceSlot):
            self.external_force.evaluate_into(state, c[2:])
        return state

    # serialized graphs: keys of the code cache and parts of the fingerprint; long, therefore cached
    @functools.cached_property
    def residual_source(self) -> str:
        """Serialized residual function."""
        return str(self.residual_function.serialize())

    @functools.cached_property
    def newton_source(self) -> str:
        """Serialized residual, Jacobian and update matrix."""
        return str(self.newton_function.serialize())

    @functools.cached_property
    def final_state_source(self) -> str:
        """Serialized final state."""
        return str(self.final_state_function.serialize())

    @functools.cached_property
    def initial_guess_function(self) -> ca.Function:
        return ca.Function("guess", [self.z, self.c], [self.initial_guess])

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the equations and of their order; equal for runs that solve the same equations."""
        source = self.newton_source + self.final_state_source
        return hashlib.sha256(source.encode()).hexdigest()
