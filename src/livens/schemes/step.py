"""The equations of one step: what a scheme writes down, and what the engine is given."""

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
    """What has to be solved in one step of a model.

    Equations may have structure, such as a sum over elements of a few types; `flatten` writes them as one expression
    graph, which is what the fused tier compiles. A tier that uses the structure never asks for that.
    """

    layout: Layout  # the parts of the state

    def flatten(self) -> FlatEquations:
        """The same equations as one expression graph."""
        raise NotImplementedError

    @property
    def size_in_pieces(self) -> int:
        """The number of unknowns, if the equations can be written piece by piece; else 0."""
        return 0

    def pieces(self) -> Pieces | None:
        """The same equations piece by piece, one kernel for each type of element, if they can be written like that."""
        return None

    @functools.cached_property
    def fingerprint(self) -> str:
        """Two runs with the same fingerprint solve the same equations, written down in the same order.

        Equations with structure are told by that: no graph of the whole system is needed.
        """
        return self.flatten().fingerprint


def table_digest(table: np.ndarray) -> str:
    """The SHA-256 of an array of whole numbers."""
    return hashlib.sha256(
        repr(table.shape).encode() + np.ascontiguousarray(table, dtype=np.int64).tobytes()
    ).hexdigest()


class Estimated(NamedTuple):
    """Whose errors are estimated, and how."""

    names: tuple[str, ...]  # of the variables
    order: int  # errors times powers of h are of size h to this plus one
    powers: tuple[int, ...]
    filtered: bool  # they are the solution of linear equations
    growth: float = 8.0  # a step may be longer than the one before by this factor


@dataclass(frozen=True, eq=False)
class ErrorEstimate:
    """What a scheme thinks of the error of a step, as expressions of its unknowns, state and constants.

    With a `matrix` the errors are the solution of ``matrix errors' = errors``. They are taken times h to the `powers`,
    and compared with `sizes`.
    """

    errors: Any
    sizes: Any
    order: int  # errors times powers of h are of size h to this plus one
    names: tuple[str, ...]  # of the variables
    matrix: Any = None
    powers: tuple[int, ...] = ()
    growth: float = 8.0  # a step may be longer than the one before by this factor

    @property
    def count(self) -> int:
        return int(self.errors.numel())

    @property
    def kind(self) -> Estimated:
        powers = self.powers or (0,) * self.count
        return Estimated(self.names, self.order, powers, self.matrix is not None, self.growth)


@dataclass(frozen=True)
class Box:
    """A force that is compiled elsewhere, and where its arguments and its result stand in the state."""

    force: BlackBox
    asked: int  # coordinates, rates and time, one after the other
    size: int  # how many coordinates there are
    found: int

    def fill(self, z: np.ndarray, k: np.ndarray) -> None:
        """What compiled loops do at the end of a step."""
        a, n = self.asked, self.size
        said = self.force(z[a : a + n], z[a + n : a + 2 * n], z[a + 2 * n], k)
        z[self.found : self.found + said.size] = said


@dataclass(frozen=True, eq=False)
class FlatEquations(StepEquations):
    """``residual(x; z, c) = 0`` for the unknowns x of a step that starts from the state z.

    ``c = (h, t, parameters...)`` are run-time inputs. The Jacobian is given by its nonzeros and their places.
    """

    x: Any
    z: Any
    c: Any
    residual: Any
    rows: np.ndarray  # of the Jacobian's nonzeros
    columns: np.ndarray
    jacobian: Any  # their values
    end: Any  # the state after the step
    guess: Any  # unknowns to start from where those of the steps before say nothing
    kinds: tuple[int, ...]  # how many unknowns of one kind (velocities, multipliers, ...) follow each other
    row_names: tuple[str, ...]
    layout: Layout  # the parts of the state
    noise: ca.Function | None = None  # as `roundoff`, if that is known from the parts; else it is derived
    inside: Any = None  # (theta, state at t + theta h) if the scheme has a formula within the step
    error: ErrorEstimate | None = None  # if the scheme estimates its own
    turn: Any = None  # (values, rows, columns) of a matrix: a correction is this times the Newton system's solution
    carried: Any = None  # (ratio, unknowns of a next step that is this many times as long), expressions of x, z, c
    box: Box | None = None  # a function that is called at the end of every step
    values: Mapping[str, Any] = field(default_factory=dict)  # what may be asked of a step, by name: stages, multipliers
    onward: Any = None  # a linear function of x: what of the next step's unknowns follows from those of this one

    def __post_init__(self) -> None:
        """Native code trusts these sizes: a wrong one would write beyond its arrays."""
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
    def of(cls, x: Any, z: Any, c: Any, *, residual: Any, **parts: Any) -> FlatEquations:
        """Equations whose Jacobian is derived from the residual as a whole."""
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
            **parts,
        )

    def flatten(self) -> FlatEquations:
        return self

    @functools.cached_property
    def size(self) -> int:
        return int(self.x.numel())

    @functools.cached_property
    def kind_sizes(self) -> np.ndarray:
        """`kinds` for the compiled loop."""
        return np.array(self.kinds, dtype=np.int64)

    @property
    def arguments(self) -> list[Any]:
        return [self.x, self.z, self.c]

    @functools.cached_property
    def residual_function(self) -> ca.Function:
        return ca.Function("residual", self.arguments, [self.residual])

    @functools.cached_property
    def roundoff(self) -> ca.Function:
        """How much of the residual can be rounding, at (x, z, c, e) for unknowns with errors e; in units of UNIT."""
        return self.noise if self.noise is not None else self._derived_roundoff()

    @functools.cached_property
    def vector_roundoff(self) -> ca.Function:
        """The same where the library for vectors computes sines and their like, to a few units in the last place."""
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
        """Residual and Jacobian nonzeros, then those of the matrix that turns the solution, if there is one."""
        turn = [] if self.turn is None else [self.turn[0]]
        return ca.Function("newton", self.arguments, [self.residual, self.jacobian, *turn])

    @functools.cached_property
    def end_function(self) -> ca.Function:
        return ca.Function("end", self.arguments, [self.end])

    def ended(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """The state at the end of a step, as numbers."""
        found = np.asarray(self.end_function(x, z, c).full().ravel())
        if self.box is not None:
            self.box.fill(found, c[2:])
        return found

    # code is found by these, and the fingerprint is made of them: they are long, and written once
    @functools.cached_property
    def residual_text(self) -> str:
        """The residual as CasADi writes it."""
        return str(self.residual_function.serialize())

    @functools.cached_property
    def newton_text(self) -> str:
        """The residual, its Jacobian and what turns the solution, likewise."""
        return str(self.newton_function.serialize())

    @functools.cached_property
    def end_text(self) -> str:
        """The end of the step, likewise."""
        return str(self.end_function.serialize())

    @functools.cached_property
    def guess_function(self) -> ca.Function:
        return ca.Function("guess", [self.z, self.c], [self.guess])

    @functools.cached_property
    def fingerprint(self) -> str:
        """Two runs with the same fingerprint solve the same equations, written down in the same order."""
        content = self.newton_text + self.end_text
        return hashlib.sha256(content.encode()).hexdigest()
