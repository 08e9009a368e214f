"""A run and what it left behind."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

import livens
from livens.errors import InputError, suggestion, with_words
from livens.expressions.numbers import path_of
from livens.expressions.variables import dimensions
from livens.models.model import Model
from livens.results.record import Facts, Occurrence, Record, Statistics, Summary
from livens.schemes.base import Scheme

if TYPE_CHECKING:
    import xarray

    from livens.analysis.accuracy.estimate import Estimate
    from livens.analysis.report import Report
    from livens.models.problem import Problem
    from livens.models.scene import Scene
    from livens.plot import Plots
    from livens.results.dense import Moment
    from livens.viewer import Film


class MissingVariableError(InputError):
    """A variable is asked for that the run did not store."""

    def __init__(self, name: str, stored: Iterable[str]) -> None:
        super().__init__(f"the run did not store '{name}', only {', '.join(stored)} (see the argument store)")


class _Variable:
    """An array of a run, read when first asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, result: Result | None, owner: type) -> Any:
        if result is None:
            return self
        if self._name not in result.stored:
            raise MissingVariableError(self._name, result.stored)
        return result._arrays[self._name]


class Result:
    """Trajectory and record of a run. Arrays have time as their first axis.

    `multipliers[n]` acts on the step that ends at ``t[n]``; entry 0 is the consistent initial value.
    """

    t: np.ndarray = _Variable()  # type: ignore[assignment]
    q: np.ndarray = _Variable()  # type: ignore[assignment]
    v: np.ndarray = _Variable()  # type: ignore[assignment]
    x: np.ndarray = _Variable()  # type: ignore[assignment]
    y: np.ndarray = _Variable()  # type: ignore[assignment]
    p: np.ndarray = _Variable()  # type: ignore[assignment]
    multipliers: np.ndarray = _Variable()  # type: ignore[assignment]
    step_size: np.ndarray = _Variable()  # type: ignore[assignment]
    newton_iterations: np.ndarray = _Variable()  # type: ignore[assignment]
    supplied_energy: np.ndarray = _Variable()  # type: ignore[assignment]
    dissipated_energy: np.ndarray = _Variable()  # type: ignore[assignment]
    fictive_time: np.ndarray = _Variable()  # type: ignore[assignment]
    step_density: np.ndarray = _Variable()  # type: ignore[assignment]
    stages: np.ndarray = _Variable()  # type: ignore[assignment]

    if TYPE_CHECKING:  # attached by later rooms, see `attach`

        @property
        def system(self) -> Any: ...
        @property
        def problem(self) -> Problem | None: ...
        @property
        def scene(self) -> Scene: ...
        @property
        def plot(self) -> Plots: ...
        def accuracy(
            self, *, seconds: float = 2.0, share: float = 0.75, scheme: Any = None, scaling: Any = None
        ) -> Estimate: ...
        def named(self, name: str) -> Any: ...
        def report(self, *, accuracy: bool | Estimate = True) -> Report: ...
        @overload
        def observe(
            self, what: str | Callable[..., Any], *, increments: bool = False, by: None = None
        ) -> np.ndarray: ...
        @overload
        def observe(
            self, what: str | Callable[..., Any], *, increments: bool = False, by: str
        ) -> dict[str, np.ndarray]: ...
        def observe(self, what: Any, *, increments: bool = False, by: str | None = None) -> Any: ...
        def vjp(self, bars: Mapping[str, Any]) -> Any: ...
        def jvp(
            self,
            q0: Any = None,
            v0: Any = None,
            *,
            p0: Any = None,
            x0: Any = None,
            parameters: Mapping[str, Any] | None = None,
            h: Any = None,
        ) -> dict[str, np.ndarray]: ...
        def view(self, *others: Result, frames: int | None = None, curves: str | Sequence[str] = ()) -> Film: ...
        def animate(self, path: str | Path, *others: Result, frames: int | None = None, **options: Any) -> Path: ...

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        record: Record,
        *,
        system: Model | None = None,
        path: Path | None = None,
    ) -> None:
        self._arrays, self._system = arrays, system
        #: The scheme as the run was given it; a file only has its name, by which a user's own may not be found.
        self._scheme: Scheme | None = None
        self.record, self.path = record, path
        self.statistics: Statistics = record.statistics
        self.status: str = record.status
        self.message: str = record.message

    @property
    def facts(self) -> Facts:
        """How the run was made."""
        return self.record.facts

    @property
    def summary(self) -> Summary:
        """What was conserved, over every step and not only the stored ones."""
        return self.record.summary

    @property
    def stored(self) -> tuple[str, ...]:
        """Names of the variables the run holds; all, unless some were chosen with `store`."""
        return self.facts.stored

    def last(self, name: str) -> np.ndarray:
        """The last row of a variable; of a file, nothing else is read."""
        if name not in self.stored:
            raise MissingVariableError(str(name), self.stored)
        read = getattr(self._arrays, "last", None)
        return np.asarray(getattr(self, name)[-1] if read is None else read(name))

    @property
    def parameter_vector(self) -> np.ndarray:
        return self.system.parameter_vector(self.facts.parameters)

    @property
    def parameter_pieces(self) -> list[tuple[int, np.ndarray]]:
        """All parameters from which row on: actions of events may have changed some, see `livens.Event`."""
        changed, pieces = dict(self.facts.parameters), [(0, self.parameter_vector)]
        for event in self.record.events:
            switched = event.get("changes", {}).get("parameters", {})
            if switched:
                changed |= switched
                row = int(np.searchsorted(self.t, event["t"], side="right")) - 1
                pieces.append((row, self.system.parameter_vector(changed)))
        return pieces

    def at(self, t: Any) -> Moment:
        """The state at any time of the run, also between its rows: ``run.at(0.5).q``.

        t is a number or an array of them. Collocation schemes evaluate their polynomial within the step; for others a
        polynomial goes through the rows around, so keep every step (or few are missing) where that matters.
        """
        from livens.results.dense import at

        return at(self, t)

    def step_values(self, names: str | Sequence[str] | None = None, steps: Any = None) -> Moment:
        """What steps were solved for, by name, with one row for each step: stages and multipliers of every kind.

        Runs store what belongs to the ends of steps. Here steps are taken again for what is within them: positions and
        velocities ``Q1 V1 Q2 ..`` of stages, their multipliers ``L1 ..``, the multipliers ``gam`` of the GGL schemes,
        states ``X1 ..`` and slopes of models of first order. `names` and `steps` (numbers from 0) choose among them;
        ``t`` and ``h`` say when each step begins and how long it is.

        >>> import livens as lv
        >>> run = lv.simulate(lv.problems.load("simple-pendulum"), scheme="ggl-em", h=0.01, t_end=0.1)
        >>> inner = run.step_values("gam")
        >>> inner.gam.shape, bool(abs(inner.gam).max() < 1e-2)
        ((10, 1), True)
        """
        from livens.results.dense import step_values

        return step_values(self, names, steps)

    @property
    def events(self) -> list[Occurrence]:
        """What happened of the events the run was asked to look for."""
        return [Occurrence(**event) for event in self.record.events]

    def to_xarray(self) -> xarray.Dataset:
        """The run as an xarray Dataset, with coordinates and constraints by name."""
        import xarray

        from livens.results.hdf5_writer import attributes

        dims = dimensions()
        data = {name: (dims[name], getattr(self, name)) for name in self.stored if name != "t"}
        labels = {
            "t": self.t,
            "coordinate": list(self.facts.coordinates),
            "constraint": np.array(self.facts.constraint_names, dtype=object),
            "algebraic": np.array(self.facts.algebraic, dtype=object),
        }
        used = {"t"}.union(*(dims[name] for name in self.stored))
        labels = {axis: names for axis, names in labels.items() if axis in used}
        return xarray.Dataset(data, coords=labels, attrs=attributes(self.record))

    def to_pandas(self, names: str | Sequence[str] | None = None) -> Any:
        """Quantities over time as a pandas DataFrame: ``run.to_pandas(["x", "hinge.angle"])``; all coordinates if not
        said otherwise."""
        from livens.results.tables import frame

        return frame(self, names)

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the run to an HDF5 file; an existing file is only replaced with ``force=True``."""
        from livens.results.hdf5_reader import save

        return save(self, path_of("the path of a run", path), force=force)

    @classmethod
    def attach(cls, name: str, value: Any) -> None:
        """Add a method or property from a later room, under a name that `livens.ACCESSORS` has."""
        setattr(cls, name, with_words(value, f"run.{name}") if isinstance(value, FunctionType) else value)

    def __getattr__(self, name: str) -> Any:
        """What later rooms attach is attached when they are imported, which happens here when it is first used."""
        if name in livens.ACCESSORS and name not in vars(type(self)):
            importlib.import_module(f"livens.{livens.ACCESSORS[name]}")
            return getattr(self, name)
        raise AttributeError(f"a Result has no '{name}'{suggestion(name, dir(self))}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *livens.ACCESSORS})

    def __getitem__(self, name: str) -> Any:
        """A quantity over time by its name: a coordinate, an observable, or what the model names (`hinge.angle`)."""
        return self.named(name)

    def __iter__(self) -> Any:
        raise TypeError("a Result is asked for quantities by name, such as result['x']; its rows are result.q")

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        name = self.facts.problem or f"system of {len(self.facts.coordinates)} coordinates"
        return (
            f"<livens.Result: {name}, {self.facts.scheme}, {self.statistics.steps} steps, "
            f"t = {self.t[0]:g} to {self.t[-1]:g}, {self.status}>"
        )
