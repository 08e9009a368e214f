"""What a run needs to know of a model, whatever its kind: names, parameters, parts of its state, where it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.layout import Layout
from livens.expressions.parameters import Parameters


@dataclass(frozen=True)
class InitialState:
    """Where a run starts: the parts of the state by name, consistent and complete."""

    t: float
    values: dict[str, np.ndarray]
    dropped: tuple[int, ...] = ()  # redundant constraints left out

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values[name]


class View:
    """A model as observables see it: symbols of its state by name, in the order of its layout, with t and k."""

    symbols: dict[str, Any]
    t: Any
    k: Any

    @property
    def state(self) -> Any:
        """All symbols of the state as one column."""
        return ca.vertcat(*self.symbols.values())

    def function(self, expression: Any) -> ca.Function:
        """Any expression of this object's symbols as a function of (state..., t, k)."""
        return ca.Function("f", [*self.symbols.values(), self.t, self.k], [expression])

    def expression(self, name: str) -> Any:
        """An observable of the state by its name."""
        raise NotImplementedError

    @property
    def names(self) -> tuple[str, ...]:
        """The observables there are."""
        raise NotImplementedError


class Model:
    """Anything that moves. Subclasses say what it is made of."""

    kind: ClassVar[str]  # as schemes name what they are for
    coordinates: tuple[str, ...]
    constraint_names: tuple[str, ...] = ()
    algebraic: tuple[str, ...] = ()  # names of algebraic variables
    #: Names of what is conserved beside energy: momentum maps, other invariants.
    symmetries: Mapping[str, Any] = {}
    shared: Parameters
    usual_scheme: ClassVar[str] = "livens-em"

    @property
    def conservative(self) -> bool:
        """Nothing supplies or takes energy."""
        return False

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return self.shared.plain()

    @property
    def parameter_count(self) -> int:
        return self.shared.size

    def parameter_vector(self, changes: Mapping[str, Any] | None = None) -> np.ndarray:
        """All parameters as the compiled step reads them."""
        return self.shared.changed(changes or {}).vector()

    @property
    def layout(self) -> Layout:
        """The parts of the state that belong to the model; a scheme may add some."""
        raise NotImplementedError

    @property
    def view(self) -> View:
        """The model as observables see it."""
        raise NotImplementedError

    def start(self, given: Mapping[str, Any], k: np.ndarray, t0: float, project: bool, redundant: str) -> InitialState:
        """Check and complete initial values: `given` has what the user gave of ``q0 v0 p0 x0 y0``."""
        raise NotImplementedError

    @property
    def guards(self) -> Mapping[str, Any]:
        """Expressions of the view that must not cross zero in a run, each with what it means if they do."""
        return {}

    def watched_energy(self, conserved: tuple[str, ...]) -> str:
        """The energy to watch in a run with a scheme that conserves this; an empty name if there is none."""
        return ""

    def magnitude(self) -> Any:
        """How large energies are where the watched one is nearly zero: an expression, such as the kinetic energy."""
        return 0.0

    def watched_constraints(self) -> tuple[Any, Any]:
        """Constraints on position and on velocity level, as expressions of the view; empty ones if there are none."""
        return ca.SX(0, 1), ca.SX(0, 1)

    def conserves(self, name: str, k: np.ndarray) -> bool:
        """Whether the motion conserves what one of the `symmetries` stands for."""
        return True


def initial_numbers(name: str, value: Any, size: int, of: str) -> np.ndarray:
    """Finite numbers, one for each of the `size` things called `of`, or a sentence that says why not."""
    if value is None:
        raise InputError(f"{name} is missing: give {size} numbers (one per {of})")
    try:
        numbers = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be {size} numbers, got {value!r}") from None
    if numbers.shape != (size,):
        got = f"{numbers.size} numbers" if numbers.ndim == 1 else f"an array of shape {numbers.shape}"
        raise InputError(f"{name} must be {size} numbers (one per {of}), got {got}")
    if not np.all(np.isfinite(numbers)):
        raise InputError(f"{name} must be finite, got {value!r}")
    return numbers


def only(given: Mapping[str, Any], names: tuple[str, ...], kind: str) -> None:
    """Refuse initial values that a kind of model does not have."""
    for name, value in given.items():
        if value is not None and name not in names:
            raise InputError(f"a {kind} starts from {' and '.join(names)}, not from {name}")
