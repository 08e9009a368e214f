"""Result of a run: trajectory, metadata, summary and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

import livens
from livens.errors import InputError, explain_call_errors
from livens.expressions.result_variables import RESULT_VARIABLES, variable_dims
from livens.late_attributes import LateAttributes
from livens.models.base import Model
from livens.results.record import EventRecord, RunInfo, RunRecord, Statistics, Summary
from livens.schemes.core.scheme import Scheme
from livens.types import ArrayLike, ModelFunction
from livens.validation import check_path

if TYPE_CHECKING:
    import xarray

    from livens.analysis.accuracy.estimate import Estimate
    from livens.analysis.report import Report
    from livens.models.problem import Problem
    from livens.plot import Plots
    from livens.results.dense_output import Sample
    from livens.scene.scene import Scene
    from livens.viewer import Animation


class MissingVariableError(InputError):
    """Error: a variable was requested that the run did not store.

    Parameters
    ----------
    name : str
        Name of the variable.
    stored : iterable of str
        Names of the stored variables.
    """

    def __init__(self, name: str, stored: Iterable[str]) -> None:
        super().__init__(f"the run did not store '{name}', only {', '.join(stored)} (see the argument store)")


class _Variable:
    """Descriptor of a variable of a run, read on first access."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name, variable = name, RESULT_VARIABLES[name]
        rows = "(n_rows, number of columns)" if variable.dim else "(n_rows,)"
        unit = f" Unit: {variable.unit}." if variable.unit else ""
        self.__doc__ = f"{variable.description[0].upper()}{variable.description[1:]}, of shape {rows}.{unit}"

    def __get__(self, result: Result | None, owner: type) -> Any:
        if result is None:
            return self
        try:
            return result._arrays[self._name]
        except KeyError:
            raise MissingVariableError(self._name, result.stored) from None


@explain_call_errors
class Result(LateAttributes):
    """Result of a run: trajectory and record. Arrays have time as their first axis.

    ``multipliers[n]`` belongs to the step that ends at ``t[n]``; entry 0 is the consistent initial value.

    Parameters
    ----------
    arrays : mapping of str to numpy.ndarray
        Stored variables by name.
    record : Record
        Metadata, conservation summary, statistics and checkpoint.
    system : Model, optional
        Model of the run.
    path : pathlib.Path, optional
        File of the run.
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
    discrete_energy: np.ndarray = _Variable()  # type: ignore[assignment]
    step_density: np.ndarray = _Variable()  # type: ignore[assignment]
    stages: np.ndarray = _Variable()  # type: ignore[assignment]
    q_0: np.ndarray = _Variable()  # type: ignore[assignment]
    p_0: np.ndarray = _Variable()  # type: ignore[assignment]
    q_1: np.ndarray = _Variable()  # type: ignore[assignment]
    p_1: np.ndarray = _Variable()  # type: ignore[assignment]

    if TYPE_CHECKING:  # attached by later layers, see `attach`

        @property
        def system(self) -> Any: ...
        @property
        def problem(self) -> Problem | None: ...
        @property
        def scene(self) -> Scene: ...
        @property
        def plot(self) -> Plots: ...
        def accuracy(
            self, *, seconds: float = 2.0, fraction: float = 0.75, scheme: object = None, scaling: object = None
        ) -> Estimate: ...
        def named(self, name: str) -> Any: ...
        @property
        def names(self) -> tuple[str, ...]: ...
        def report(self, *, accuracy: bool | Estimate = True) -> Report: ...
        @overload
        def observe(self, what: str | ModelFunction, *, increments: bool = False, by: None = None) -> np.ndarray: ...
        @overload
        def observe(self, what: str | ModelFunction, *, increments: bool = False, by: str) -> dict[str, np.ndarray]: ...
        def observe(self, what: object, *, increments: bool = False, by: str | None = None) -> Any: ...
        def vjp(self, cotangents: Mapping[str, object]) -> Any: ...
        def jvp(
            self,
            q0: ArrayLike | None = None,
            v0: ArrayLike | None = None,
            *,
            p0: ArrayLike | None = None,
            x0: ArrayLike | None = None,
            parameters: Mapping[str, object] | None = None,
            h: object = None,
        ) -> dict[str, np.ndarray]: ...
        def view(self, *others: Result, frames: int | None = None, curves: str | Sequence[str] = ()) -> Animation: ...
        def animate(self, path: str | Path, *others: Result, frames: int | None = None, **options: object) -> Path: ...

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        record: RunRecord,
        *,
        system: Model | None = None,
        path: Path | None = None,
    ) -> None:
        self._arrays, self._system = arrays, system
        #: Scheme object of the run. A file contains its name only, which may not identify a user-defined scheme.
        self._scheme: Scheme | None = None
        #: Events passed to the run. A file contains their names only.
        self._events: tuple[Any, ...] | None = None
        self.record, self.path = record, path
        self.statistics: Statistics = record.statistics
        self.status: str = record.status
        self.message: str = record.message

    @property
    def info(self) -> RunInfo:
        """Metadata of the run.

        Returns
        -------
        RunInfo
            Scheme, step size, times, coordinates, parameters and provenance.
        """
        return self.record.info

    @property
    def summary(self) -> Summary:
        """Conservation summary of the run, over all steps and not only the stored ones.

        Returns
        -------
        Summary
            Maximum drifts of energy and momenta, and maximum constraint residuals.
        """
        return self.record.summary

    @property
    def stored(self) -> tuple[str, ...]:
        """Names of the stored variables.

        Returns
        -------
        tuple of str
            All variables of the run, or those selected by the argument `store` of `simulate`.
        """
        return self.info.stored

    def last(self, name: str) -> np.ndarray:
        """Return the last row of a variable; only this row is read from a file.

        Parameters
        ----------
        name : str
            Name of a stored variable.

        Returns
        -------
        numpy.ndarray
            Value at the last stored time.

        Raises
        ------
        MissingVariableError
            If the run did not store the variable.
        """
        if name not in self.stored:
            raise MissingVariableError(str(name), self.stored)
        read = getattr(self._arrays, "last", None)
        return np.asarray(getattr(self, name)[-1] if read is None else read(name))

    @property
    def parameter_vector(self) -> np.ndarray:
        """Parameter vector of the model at the start of the run.

        Returns
        -------
        numpy.ndarray of shape (n_parameters,)
            Values in the order of the parameter table of the model.
        """
        return self.system.parameter_vector(self.info.parameters)

    @property
    def parameter_segments(self) -> list[tuple[int, np.ndarray]]:
        """Parameter vectors of the segments of a run with constant parameters.

        Actions of events may change parameters, see `livens.Event`.

        Returns
        -------
        list of (int, numpy.ndarray)
            First row of each segment, and its parameter vector.
        """
        changed, segments = dict(self.info.parameters), [(0, self.parameter_vector)]
        for event in self.record.events:
            new_values = event.get("changes", {}).get("parameters", {})
            if new_values:
                changed |= new_values
                row = int(np.searchsorted(self.t, event["t"], side="right")) - 1
                segments.append((row, self.system.parameter_vector(changed)))
        held = self.record.checkpoint.get("inputs", {})
        if np.size(held.get("times", ())):
            segments = self._with_held_parameters(segments, held)
        return segments

    def _with_held_parameters(
        self, segments: list[tuple[int, np.ndarray]], held: Mapping[str, Any]
    ) -> list[tuple[int, np.ndarray]]:
        """Return the segments of a run whose inputs, or branches of angles, changed between steps."""
        times, indices = np.ravel(held["times"]), np.ravel(held["indices"]).astype(int)
        values, first = np.reshape(held["values"], (times.size, indices.size)), np.ravel(held["first"])
        tolerance = 1e-12 * max(1.0, float(np.abs(self.t[-1])))
        rows = np.searchsorted(self.t, times - tolerance)
        by_events, merged = dict(segments), dict[int, np.ndarray]()
        vector, current, default = segments[0][1], first.copy(), self.parameter_vector
        for row in sorted({*by_events, *rows.tolist()}):
            vector = by_events.get(row, vector)
            sample = np.searchsorted(rows, row, side="right") - 1
            current = np.where(vector != default, vector, first)
            if sample >= 0:
                current[indices] = values[sample]
            merged[row] = current
        return sorted(merged.items())

    def at(self, t: Any) -> Sample:
        """Return the state at any time of the run, also between rows (dense output): ``run.at(0.5).q``.

        Collocation schemes evaluate their polynomial within the step. For other schemes a polynomial interpolates the
        neighbouring rows; its accuracy requires that (almost) every step is stored.

        Parameters
        ----------
        t : float or array_like
            Time or times within the run, in seconds.

        Returns
        -------
        Sample
            State variables at `t`; for an array of times their leading axes have the shape of `t`.

        Raises
        ------
        InputError
            If a time is outside the run.
        IntegrationError
            If a step cannot be replayed.
        """
        from livens.results.dense_output import at

        return at(self, t)

    def step_values(self, names: str | Sequence[str] | None = None, steps: Any = None) -> Sample:
        """Return unknowns of steps by name, with one row for each step: stage values and multipliers.

        Runs store values at the ends of steps. This method replays the steps to compute values within them: positions
        and velocities ``Q1 V1 Q2 ..`` of stages, their multipliers ``L1 ..``, the multipliers ``gam`` of the GGL
        schemes, states ``X1 ..`` and stage derivatives of first-order models.

        Parameters
        ----------
        names : str or sequence of str, optional
            Names of the unknowns. Default: all.
        steps : int or array_like of int, optional
            Indices of the steps, from 0. Default: all.

        Returns
        -------
        Sample
            The unknowns by name, with the start ``t`` and the size ``h`` of every step.

        Raises
        ------
        InputError
            If a name or index is unknown, or the run did not store every step.
        IntegrationError
            If a step cannot be replayed.

        Examples
        --------
        >>> import livens as lv
        >>> run = lv.simulate(lv.problems.load("simple-pendulum"), scheme="ggl-em", h=0.01, t_end=0.1)
        >>> inner = run.step_values("gam")
        >>> inner.gam.shape, bool(abs(inner.gam).max() < 1e-2)
        ((10, 1), True)
        """
        from livens.results.dense_output import step_values

        return step_values(self, names, steps)

    @property
    def events(self) -> list[EventRecord]:
        """Events detected in the run.

        Returns
        -------
        list of EventRecord
            Name, time, state and changes of each event, in order of time.
        """
        return [EventRecord(**event) for event in self.record.events]

    def to_xarray(self) -> xarray.Dataset:
        """Return the run as an xarray Dataset, with coordinates and constraints by name.

        Returns
        -------
        xarray.Dataset
            Stored variables with the dimension ``t``.
        """
        from livens.results.pandas_export import import_xarray

        xarray = import_xarray()

        from livens.results.storage.hdf5_writer import attributes

        dims = variable_dims()
        data = {name: (dims[name], getattr(self, name)) for name in self.stored if name != "t"}
        labels = {
            "t": self.t,
            "coordinate": list(self.info.coordinates),
            "constraint": np.array(self.info.constraint_names, dtype=object),
            "algebraic": np.array(self.info.algebraic, dtype=object),
        }
        used = {"t"}.union(*(dims[name] for name in self.stored))
        labels = {axis: names for axis, names in labels.items() if axis in used}
        return xarray.Dataset(data, coords=labels, attrs=attributes(self.record))

    def to_pandas(self, names: str | Sequence[str] | None = None) -> Any:
        """Return quantities over time as a pandas DataFrame: ``run.to_pandas(["x", "hinge.angle"])``.

        Parameters
        ----------
        names : str or sequence of str, optional
            Names of the quantities. Default: all coordinates.

        Returns
        -------
        pandas.DataFrame
            One column per quantity or vector component; the index is the time in seconds.

        Raises
        ------
        InputError
            If pandas is not installed, or a name is unknown.
        """
        from livens.results.pandas_export import to_dataframe

        return to_dataframe(self, names)

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the run to an HDF5 file.

        Parameters
        ----------
        path : str or pathlib.Path
            Name of the file.
        force : bool, default False
            Replace an existing result file.

        Returns
        -------
        pathlib.Path
            The path.

        Raises
        ------
        InputError
            If the file exists and `force` is False, or if it cannot be written.
        """
        from livens.results.storage.hdf5_reader import save

        return save(self, check_path("the path of a run", path), force=force)

    @classmethod
    def attach(cls, name: str, value: object) -> None:
        """Attach a method or property of a later layer, under a name listed in `livens.ACCESSORS`.

        Parameters
        ----------
        name : str
            Name of the attribute.
        value : function or property
            The method or property.
        """
        setattr(cls, name, explain_call_errors(value, f"run.{name}") if isinstance(value, FunctionType) else value)

    @classmethod
    def _late_attributes(cls) -> Mapping[str, str]:
        return livens.ACCESSORS

    def __getitem__(self, name: str) -> Any:
        """Return a quantity over time by name: a coordinate, an observable, or a name of the model (`hinge.angle`)."""
        return self.named(name)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Any:
        raise TypeError("a Result is not iterable: use a quantity by name, such as result['x'], or the rows result.q")

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        name = self.info.problem or self.info.name or f"system of {len(self.info.coordinates)} coordinates"
        return (
            f"<livens.Result: {name}, {self.info.scheme}, {self.statistics.steps} steps, "
            f"t = {self.t[0]:g} to {self.t[-1]:g}, {self.status}>"
        )
