"""Assembly plan of a step: batched element kernels with index tables.

An `ElementBatch` is one kernel with index tables: local unknowns, state and parameters in; contributions to residual,
Jacobian and final state out, scattered by the tables. The size of the generated code does not depend on the number of
elements, as the system is never written as one graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.expressions.graph.increments import increments
from livens.expressions.graph.roundoff import roundoff_bound
from livens.expressions.state_layout import Layout
from livens.schemes.core.step_equations import ErrorEstimateInfo
from livens.types import Expr, IndexTable

if TYPE_CHECKING:
    from livens.models.element import ElementType


#: Arguments of a kernel, in this order.
KERNEL_ARGUMENTS = ("x", "z", "m", "h", "t", "k")
#: Absolute tolerance of compensated constraint residuals, in units of half an ulp of 1.
_COMPENSATED_ULPS = 4.0


@dataclass(frozen=True)
class KernelSymbols:
    """Symbols of one kernel: unknowns, state, compensation, step size, time, parameters."""

    x: Expr
    z: Expr
    compensation: Expr
    h: Expr
    t: Expr
    k: Expr

    @classmethod
    def create(cls, x: int, z: int, m: int = 0, k: int = 0) -> KernelSymbols:
        """Return new symbols of these sizes."""
        return cls(symbols("x", x), symbols("z", z), symbols("m", m), ca.SX.sym("h"), ca.SX.sym("t"), symbols("k", k))

    @property
    def arguments(self) -> list[Expr]:
        return [self.x, self.z, self.compensation, self.h, self.t, self.k]


def symbols(name: str, count: int) -> Expr:
    """Return a column of symbols; an empty column has shape (0, 1)."""
    return ca.SX.sym(name, count) if count else ca.SX(0, 1)


def _empty_dofs(count: int) -> np.ndarray:
    return np.zeros((count, 0), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ElementBatch:
    """Element kernel with one row of indices per instance.

    `residual` and `jac_values`, the nonzeros of its Jacobian at `jac_pattern`, are added to the equations
    `equation_dofs`; the index -1 skips an equation. `final_state` is added to the state at t + h, `compensation` to the
    compensation there. With `update = (y, x(y))`, the Newton system is solved for variations y of the unknowns, and
    x(y) is the increment of the unknowns.
    """

    name: str
    symbols: KernelSymbols
    residual: Any
    jac_values: Any
    jac_pattern: tuple[tuple[int, int], ...]
    unknown_dofs: np.ndarray  # indices of the unknowns
    state_dofs: np.ndarray  # indices in the state at t
    parameter_dofs: np.ndarray  # indices of the parameters
    compensation_dofs: np.ndarray  # indices in the compensation
    equation_dofs: np.ndarray
    final_state: Any = field(default_factory=lambda: ca.SX(0, 1))
    final_dofs: np.ndarray = field(default_factory=lambda: _empty_dofs(1))
    compensation: Any = field(default_factory=lambda: ca.SX(0, 1))
    compensation_out_dofs: np.ndarray = field(default_factory=lambda: _empty_dofs(1))
    update: tuple[Any, Any] | None = None  # (variations, increments of all unknowns of the batch)
    #: Increments of the state for compensated summation: the rounding errors are part of the compensation.
    increments: Any = field(default_factory=lambda: ca.SX(0, 1))
    increment_dofs: np.ndarray = field(default_factory=lambda: _empty_dofs(1))
    compensation_low_dofs: np.ndarray = field(default_factory=lambda: _empty_dofs(1))
    #: Symbols of the sum of the contributions of force batches (`is_force`); the final state may depend on them.
    impulse: Any = None
    is_force: bool = False
    #: Residual without compensation. Its round-off at positions of size one is an acceptable residual, as the remainder
    #: is stored in the compensation and corrected in the next step.
    uncompensated_residual: Any = None

    @property
    def count(self) -> int:
        return len(self.unknown_dofs)

    def roundoff_bound(self, library: int = 1) -> tuple[Expr, Expr]:
        """Return (errors of the unknowns, round-off bound of the residual and of its assembly), in units of UNIT."""
        e = symbols("e", self.symbols.x.numel())
        function = ca.Function("rows", self.symbols.arguments, [self.residual])
        errors = [e, *(ca.fabs(argument) for argument in self.symbols.arguments[1:])]
        bound = ca.densify(roundoff_bound(function, self.symbols.arguments, errors, library))
        if self.uncompensated_residual is not None:
            direct = roundoff_bound(
                ca.Function("rows", self.symbols.arguments, [self.uncompensated_residual]),
                self.symbols.arguments,
                errors,
                library,
            )
            bound = ca.fmax(bound, ca.fmin(ca.densify(direct), _COMPENSATED_ULPS / ca.fabs(self.symbols.h)))
        return e, bound + ca.fabs(self.residual)


def make_batch(
    name: str,
    kernel_symbols: KernelSymbols,
    residual: Expr,
    dofs: dict[str, np.ndarray],
    equation_dofs: np.ndarray | None = None,
    jacobian: Expr | None = None,
    final_state: Sequence[tuple[Any, np.ndarray]] = (),
    compensation: Sequence[tuple[Any, np.ndarray]] = (),
    update: tuple[Expr, Expr] | None = None,
    increments: Sequence[tuple[Any, np.ndarray, np.ndarray]] = (),
    impulse: Expr | None = None,
    is_force: bool = False,
    uncompensated_residual: Expr | None = None,
) -> ElementBatch:
    """Return a batch; the Jacobian is derived unless given, and entries that are identically zero are left out.

    `dofs` are the index tables of x, z, k and m, one row per instance; equations are numbered like unknowns by default.
    `final_state` and `compensation` are expressions with index tables; `increments` are increments with the indices of
    the sum and of its rounding error.
    """
    count = len(dofs["x"])
    residual = ca.densify(residual)
    jacobian = ca.sparsify(ca.jacobian(residual, kernel_symbols.x) if jacobian is None else jacobian)
    pattern = tuple(zip(*jacobian.sparsity().get_triplet(), strict=True)) if jacobian.nnz() else ()
    entries = ca.SX(jacobian.nz[:]) if pattern else ca.SX(0, 1)
    used = [i for i in range(residual.numel()) if not ca.SX(residual[i]).is_zero()]
    if len(used) < residual.numel():  # the Jacobian of an identically zero row is zero
        new_row = {row: i for i, row in enumerate(used)}
        pattern = tuple((new_row[row], column) for row, column in pattern)
        residual = residual[used] if used else ca.SX(0, 1)
        uncompensated_residual = uncompensated_residual[used] if uncompensated_residual is not None and used else None
    equation_dofs = dofs["x"] if equation_dofs is None else equation_dofs
    dof_tables = {name: dofs.get(name, _empty_dofs(count)) for name in ("x", "z", "k", "m")}
    final_values, final_dofs = _drop_zeros(final_state, count)
    compensation_values, compensation_out_dofs = _drop_zeros(compensation, count)
    return ElementBatch(
        name=name,
        symbols=kernel_symbols,
        residual=residual,
        jac_values=entries,
        jac_pattern=pattern,
        equation_dofs=equation_dofs[:, used],
        final_state=final_values,
        final_dofs=final_dofs,
        compensation=compensation_values,
        compensation_out_dofs=compensation_out_dofs,
        update=update,
        increments=ca.densify(ca.vertcat(*(increment for increment, _, _ in increments)))
        if increments
        else ca.SX(0, 1),
        increment_dofs=np.concatenate([z for _, z, _ in increments], axis=1) if increments else _empty_dofs(count),
        compensation_low_dofs=np.concatenate([low for _, _, low in increments], axis=1)
        if increments
        else _empty_dofs(count),
        impulse=impulse,
        is_force=is_force,
        uncompensated_residual=uncompensated_residual,
        unknown_dofs=dof_tables["x"],
        state_dofs=dof_tables["z"],
        parameter_dofs=dof_tables["k"],
        compensation_dofs=dof_tables["m"],
    )


def _drop_zeros(terms: Sequence[tuple[Expr, np.ndarray]], count: int) -> tuple[Expr, IndexTable]:
    values, columns = [], []
    for expression, dofs in terms:
        dense = ca.densify(expression)
        for i in range(dense.numel()):
            if not ca.SX(dense[i]).is_zero():
                values.append(ca.SX(dense[i]))
                columns.append(dofs[:, i])
    if not values:
        return ca.SX(0, 1), _empty_dofs(count)
    return ca.vertcat(*values), np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class AssemblyPlan:
    """Assembly plan: all batches of a step, block structure, initial guess and optional outputs."""

    layout: Layout  # layout of the state
    unknowns: Layout
    batches: tuple[ElementBatch, ...]
    block_sizes: tuple[int, ...]  # sizes of consecutive blocks of unknowns
    equation_labels: Callable[[], tuple[str, ...]]
    #: Mask of the multipliers; for other unknowns the index of the body, or group of coordinates, else -1.
    is_multiplier: np.ndarray
    body_index: np.ndarray
    #: ``(z, c, residual)`` -> initial guess of the unknowns; `residual` evaluates the equations.
    initial_guess: Callable[[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]], np.ndarray]
    compensation_layout: Layout = field(default_factory=Layout)
    #: ``(z, c)`` -> compensation before the first step.
    initial_compensation: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda z, c: np.zeros(0)
    #: Dense output ``(x, z, c, theta) -> {name: values}``, if available.
    dense_output: Callable[[np.ndarray, np.ndarray, np.ndarray, float], dict[str, np.ndarray]] | None = None
    #: Error estimate ``(x, z, c) -> (errors, scales)``, if available.
    error_estimate: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    error_info: ErrorEstimateInfo | None = None
    #: Substep sizes in units of h: (1.0,), or the weights of a composition.
    substep_weights: tuple[float, ...] = (1.0,)

    @property
    def size(self) -> int:
        return self.unknowns.size


def evaluate_batch(function: ca.Function, count: int, *columns: np.ndarray | float) -> list[np.ndarray]:
    """Evaluate a function at many instances; an argument is a scalar or has one column per instance."""
    if not count:
        return [np.zeros((function.size1_out(i), 0)) for i in range(function.n_out())]
    arguments = [np.full((1, count), c) if np.isscalar(c) else np.asarray(c) for c in columns]
    outputs = function.map(count)(*arguments)
    return [np.array(output) for output in (outputs if isinstance(outputs, (tuple, list)) else [outputs])]


def constraint_increment(model: ElementType, q: Expr, step: Expr, h: Expr, t: Expr, k: Expr) -> Expr:
    """Return ``g(q + step, t + h) - g(q, t)`` of an element's constraints, without cancellation."""
    variables = ca.vertcat(model.q, model.t)
    function = ca.Function("g", [variables, model.k], [ca.densify(model.g)])
    return increments(function, ca.vertcat(q, t), ca.vertcat(step, h), [k])


def compensated_constraints(
    model: ElementType,
    residual: Expr,
    chosen: list[int],
    m: Expr,
    arguments: tuple[Expr, Expr, Expr, Expr, Expr],
    commanded: Sequence[int] = (),
) -> tuple[Expr, Expr, list[int]]:
    """Return compensated residuals ``(m + [g(q1) - g(q0)])/h`` of constraints, the next m, and the compensated indices.

    `residual` contains all constraints in the form of the scheme, `arguments` are q, its increment, h, t and the
    parameters. Constraints on velocity level are not compensated, as they hold in every step by themselves. Constraints
    with `commanded` parameters are not compensated either, as they jump between steps.
    """
    commands = model.k[list(commanded)] if commanded else None
    compensable = [
        i for i in range(model.n_position_constraints) if commands is None or not ca.depends_on(model.g[i], commands)
    ]
    compensated = [position for position, i in enumerate(chosen) if i in compensable]
    residuals = [residual[i] for i in chosen]
    remainder = ca.SX(0, 1)
    if compensated:
        increment, h = constraint_increment(model, *arguments), arguments[2]
        remainder = ca.densify(ca.vertcat(*(m[position] + increment[chosen[position]] for position in compensated)))
        for j, position in enumerate(compensated):
            residuals[position] = remainder[j] / h
    return ca.densify(ca.vertcat(*residuals)), remainder, compensated


def evaluate_constraints(model: ElementType, q: np.ndarray, t: float, k: np.ndarray) -> np.ndarray:
    """Evaluate the constraints of many elements of one type, one row per element."""
    function = ca.Function("g", [model.q, model.t, model.k], [ca.densify(model.g)])
    return evaluate_batch(function, len(q), q.T, t, k.T)[0].T
