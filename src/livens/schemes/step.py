"""What the engine is given: the equations of one step, as expressions."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.graph.roundoff import roundoff_bound
from livens.expressions.layout import Layout


@dataclass(frozen=True, eq=False)
class StepEquations:
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
    error: Any = None  # (estimated errors, what they are measured against) if the scheme estimates its own
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

    @property
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
        if self.noise is not None:
            return self.noise
        e = ca.SX.sym("e", self.size)
        bound = roundoff_bound(self.residual_function, self.arguments, [e, ca.fabs(self.z), ca.fabs(self.c)])
        return ca.Function("noise", [*self.arguments, e], [ca.densify(bound)])

    @functools.cached_property
    def newton_function(self) -> ca.Function:
        """Residual and Jacobian nonzeros."""
        return ca.Function("newton", self.arguments, [self.residual, self.jacobian])

    @functools.cached_property
    def end_function(self) -> ca.Function:
        return ca.Function("end", self.arguments, [self.end])

    @functools.cached_property
    def guess_function(self) -> ca.Function:
        return ca.Function("guess", [self.z, self.c], [self.guess])
