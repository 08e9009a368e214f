"""Equations of one step: the interface between schemes and the engine."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from livens.expressions.graph.roundoff import VECTOR_LIBRARY, roundoff_bound, uses_library
from livens.expressions.layout import Layout

if TYPE_CHECKING:
    from livens.models.black_box import BlackBox
    from livens.schemes.recipes.pieces import Pieces


class StepEquations:
    """Equations that are solved in one step of a model.

    Equations may have structure, such as a sum over elements of a few types. `to_single_graph` writes them as one
    expression graph, which the fused tier compiles. The assembled tier uses the structure (`assembly_plan`) instead.
    """

    layout: Layout  # the parts of the state

    def flatten(self) -> FlatEquations:
        """Return the equations as one expression graph."""
        raise NotImplementedError

    @property
    def size_in_pieces(self) -> int:
        """Number of unknowns of the assembly plan; 0 if there is none."""
        return 0

    def pieces(self) -> Pieces | None:
        """Return the equations as batched element kernels, one batch per element type; None if not available."""
        return None

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the equations and of their order; equal for runs that solve the same equations.

        Structured equations hash their parts, so that no graph of the whole system is built.
        """
        return self.flatten().fingerprint


def table_digest(table: np.ndarray) -> str:
    """Return the SHA-256 of the shape and the entries of an integer array."""
    return hashlib.sha256(
        repr(table.shape).encode() + np.ascontiguousarray(table, dtype=np.int64).tobytes()
    ).hexdigest()


class Estimated(NamedTuple):
    """Metadata of an error estimate: variables, order and scaling."""

    names: tuple[str, ...]  # names of the variables
    order: int  # order p: errors times powers of h are of size h^(p + 1)
    powers: tuple[int, ...]
    filtered: bool  # the errors are the solution of a linear system
    growth: float = 8.0  # maximum ratio of successive step sizes


@dataclass(frozen=True, eq=False)
class ErrorEstimate:
    """Local error estimate of a step, as expressions of unknowns, state and inputs.

    With a `matrix` the errors are the solution of ``matrix errors' = errors``. The errors are multiplied by h to the
    power `h_powers` and compared with `scales`.
    """

    errors: Any
    sizes: Any
    order: int  # order p: errors times powers of h are of size h^(p + 1)
    names: tuple[str, ...]  # names of the variables
    matrix: Any = None
    powers: tuple[int, ...] = ()
    growth: float = 8.0  # maximum ratio of successive step sizes

    @property
    def count(self) -> int:
        return int(self.errors.numel())

    @property
    def kind(self) -> Estimated:
        powers = self.powers or (0,) * self.count
        return Estimated(self.names, self.order, powers, self.matrix is not None, self.growth)


@dataclass(frozen=True)
class Box:
    """External (compiled) force with the positions of its arguments and of its result in the state vector."""

    force: BlackBox
    asked: int  # start of the query point: coordinates, velocities and time
    size: int  # number of coordinates
    found: int  # start of the result

    def fill(self, z: np.ndarray, k: np.ndarray) -> None:
        """Evaluate the force at the query point and write the result into the state z."""
        a, n = self.asked, self.size
        said = self.force(z[a : a + n], z[a + n : a + 2 * n], z[a + 2 * n], k)
        z[self.found : self.found + said.size] = said


@dataclass(frozen=True, eq=False)
class FlatEquations(StepEquations):
    """Step equations as one graph: ``residual(x; z, c) = 0`` for the unknowns x of a step from the state z.

    ``c = (h, t, parameters...)`` are the run-time inputs. The Jacobian is stored as nonzeros with their positions.
    """

    x: Any
    z: Any
    c: Any
    residual: Any
    rows: np.ndarray  # row indices of the nonzeros of the Jacobian
    columns: np.ndarray  # column indices
    jacobian: Any  # values of the nonzeros
    end: Any  # state at t + h
    guess: Any  # initial guess of the unknowns, used where no predictor is available
    kinds: tuple[int, ...]  # sizes of consecutive blocks of unknowns (velocities, multipliers, ...)
    row_names: tuple[str, ...]
    layout: Layout  # the parts of the state
    noise: ca.Function | None = None  # round-off bound assembled from element kernels; else derived from the graph
    inside: Any = None  # dense output: (theta, state at t + theta h)
    error: ErrorEstimate | None = None
    turn: Any = None  # (values, rows, columns) of the COO matrix that maps the Newton solution to increments of x
    carried: Any = None  # stage extrapolation: (ratio of step sizes, unknowns of the next step), expressions of x, z, c
    box: Box | None = None  # external force, evaluated at the end of every step
    values: Mapping[str, Any] = field(default_factory=dict)  # intermediate values by name: stages, multipliers
    onward: Any = None  # linear predictor of the unknowns of the next step, a linear function of x

    def __post_init__(self) -> None:
        """Check the sizes: native code relies on them, and a wrong size would write out of bounds."""
        wrong = {
            "residual": (self.residual.numel(), self.size),
            "end": (self.end.numel(), self.z.numel()),
            "layout": (self.layout.size, self.z.numel()),
            "guess": (self.guess.numel(), self.size),
            "jacobian": (self.jacobian.numel(), len(self.rows)),
            "kinds": (sum(self.kinds), self.size),
            "onward": (self.size if self.onward is None else self.onward.numel(), self.size),
        }
        for name, (found, needed) in wrong.items():
            if found != needed:
                raise ValueError(f"the equations of a step have {found} entries in '{name}', not {needed}")

    @classmethod
    def of(
        cls,
        x: Any,
        z: Any,
        c: Any,
        *,
        residual: Any,
        end: Any,
        guess: Any,
        kinds: tuple[int, ...],
        row_names: tuple[str, ...],
        layout: Layout,
        noise: ca.Function | None = None,
        inside: Any = None,
        error: ErrorEstimate | None = None,
        carried: Any = None,
        values: Mapping[str, Any] | None = None,
    ) -> FlatEquations:
        """Return equations whose Jacobian is derived from the residual by automatic differentiation."""
        jacobian = ca.jacobian(residual, x)
        rows, columns = jacobian.sparsity().get_triplet()
        return cls(
            x=x,
            z=z,
            c=c,
            residual=residual,
            rows=np.array(rows, dtype=np.int64),
            columns=np.array(columns, dtype=np.int64),
            jacobian=ca.SX(jacobian.nz[:]) if rows else ca.SX(0, 1),
            end=end,
            guess=guess,
            kinds=kinds,
            row_names=row_names,
            layout=layout,
            noise=noise,
            inside=inside,
            error=error,
            carried=carried,
            values={} if values is None else values,
        )

    def flatten(self) -> FlatEquations:
        return self

    @functools.cached_property
    def size(self) -> int:
        return int(self.x.numel())

    @functools.cached_property
    def kind_sizes(self) -> np.ndarray:
        """`block_sizes` as an integer array for the compiled loop."""
        return np.array(self.kinds, dtype=np.int64)

    @property
    def arguments(self) -> list[Any]:
        return [self.x, self.z, self.c]

    @functools.cached_property
    def residual_function(self) -> ca.Function:
        return ca.Function("residual", self.arguments, [self.residual])

    @functools.cached_property
    def roundoff(self) -> ca.Function:
        """Round-off bound of the residual at (x, z, c, e) for unknowns with errors e, in units of UNIT."""
        return self.noise if self.noise is not None else self._derived_roundoff()

    @functools.cached_property
    def vector_roundoff(self) -> ca.Function:
        """Round-off bound with the vector math library, accurate to a few units in the last place."""
        if not uses_library(self.residual_function):
            return self.roundoff
        return self._derived_roundoff(VECTOR_LIBRARY)

    def _derived_roundoff(self, library: int = 1) -> ca.Function:
        e = ca.SX.sym("e", self.size)
        errors = [e, ca.fabs(self.z), ca.fabs(self.c)]
        bound = roundoff_bound(self.residual_function, self.arguments, errors, library)
        return ca.Function("noise", [*self.arguments, e], [ca.densify(bound)])

    @functools.cached_property
    def newton_function(self) -> ca.Function:
        """Residual and nonzeros of the Jacobian, then the nonzeros of the update matrix, if there is one."""
        turn = [] if self.turn is None else [self.turn[0]]
        return ca.Function("newton", self.arguments, [self.residual, self.jacobian, *turn])

    @functools.cached_property
    def end_function(self) -> ca.Function:
        return ca.Function("end", self.arguments, [self.end])

    def ended(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the final state of a step as numbers."""
        found = np.asarray(self.end_function(x, z, c).full().ravel())
        if self.box is not None:
            self.box.fill(found, c[2:])
        return found

    # serialized graphs: keys of the code cache and parts of the fingerprint; long, therefore cached
    @functools.cached_property
    def residual_text(self) -> str:
        """Serialized residual function."""
        return str(self.residual_function.serialize())

    @functools.cached_property
    def newton_text(self) -> str:
        """Serialized residual, Jacobian and update matrix."""
        return str(self.newton_function.serialize())

    @functools.cached_property
    def end_text(self) -> str:
        """Serialized final state."""
        return str(self.end_function.serialize())

    @functools.cached_property
    def guess_function(self) -> ca.Function:
        return ca.Function("guess", [self.z, self.c], [self.guess])

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the equations and of their order; equal for runs that solve the same equations."""
        content = self.newton_text + self.end_text
        return hashlib.sha256(content.encode()).hexdigest()
