"""Design variables of a study: parameters and initial values by name, as one vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from livens.errors import InputError, suggestion
from livens.models.base import Model
from livens.models.problem import Problem
from livens.run.prepare import Prepared, prepare
from livens.validation import check_array

_INITIAL_VALUES = ("q0", "v0", "p0", "x0")


def as_prepared(model: Model | Problem | Prepared, **options: Any) -> Prepared:
    """Return a prepared model, prepared here unless it is one already."""
    if isinstance(model, Prepared):
        return model
    return prepare(model, **{name: value for name, value in options.items() if value is not None})


class DesignVariables:
    """Design variables named such as ``g``, ``v0``, ``v0[1]``, with labels and initial guess.

    >>> import livens as lv
    >>> step = lv.prepare(lv.problems.load("simple-pendulum"))
    >>> unknowns = DesignVariables(step, {"g": 9.0, "v0[1]": 0.5}, {}, {})
    >>> unknowns.labels, unknowns.initial_guess
    (('g', 'v0[1]'), array([9. , 0.5]))
    >>> unknowns.to_inputs(np.array([9.5, 1.0]))
    ({'q0': array([-1.,  0.]), 'v0': array([0., 1.])}, {'g': 9.5})
    """

    def __init__(
        self,
        step: Prepared,
        by: str | Sequence[str] | Mapping[str, Any],
        initial: Mapping[str, Any],
        parameters: Mapping[str, object] | None,
    ) -> None:
        listed = {by: None} if isinstance(by, str) else by
        if not isinstance(listed, (Mapping, Sequence)) or not listed:
            raise InputError(f"by must be names of parameters or initial values, optionally with guesses, got {by!r}")
        if not isinstance(listed, Mapping) and not all(isinstance(name, str) for name in listed):
            raise InputError(f"by must be names of parameters or initial values, got {by!r}")
        initial_guesses = dict(listed) if isinstance(listed, Mapping) else dict.fromkeys(listed)
        if parameters is not None and not isinstance(parameters, Mapping):
            raise InputError(f"parameters must map names to values, got {parameters!r}")
        problem = step._model if isinstance(step._model, Problem) else None
        model = step.model
        initial_values = {
            **(problem.start_values if problem else {}),
            **{n: v for n, v in initial.items() if v is not None},
        }
        changes = {**(problem.parameters if problem else {}), **step._defaults.get("parameters", {})}
        changes |= dict(parameters or {})
        k = model.parameter_vector(changes)
        self._initial = {
            name: check_array(name, value).astype(float) for name, value in initial_values.items() if value is not None
        }
        for name in set(initial_guesses) & set(_INITIAL_VALUES) - set(self._initial):
            if initial_guesses[name] is not None:
                self._initial[name] = check_array(f"the guess of {name}", initial_guesses[name]).astype(float)
        self._fixed = dict(changes)
        self._targets: list[tuple[str, int | None]] = []  # name and entry; None for a scalar
        labels, x = list[str](), list[float]()
        for name, initial_guess in initial_guesses.items():
            if not isinstance(name, str):
                raise InputError(f"by must be names of parameters or initial values, got {name!r}")
            stem, _, subscript = name.partition("[")
            values = self._values(model, stem, k, name)
            if subscript:
                entry = subscript.removesuffix("]")
                if not entry.isdigit() or not int(entry) < values.size or not values.ndim:
                    raise InputError(f"'{stem}' has {values.size} entries, there is no '{name}'")
                chosen = [int(entry)]
            else:
                chosen = list(range(values.size))
            selected = values.ravel()[chosen]
            if initial_guess is not None:
                selected = np.broadcast_to(
                    check_array(f"the guess of {name}", initial_guess), values.shape if not subscript else ()
                ).ravel()
            for i, component in zip(chosen, selected, strict=True):
                target = stem, i if values.ndim else None
                if target in self._targets:
                    raise InputError(f"'{name}' is named twice")
                self._targets.append(target)
                labels.append(stem if not values.ndim else f"{stem}[{i}]")
                x.append(float(component))
        self.labels, self.initial_guess = tuple(labels), np.array(x)
        self._shapes = {stem: self._values(model, stem, k, stem) for stem, _ in self._targets}

    def _values(self, model: Model, stem: str, k: np.ndarray, name: str) -> np.ndarray:
        if stem in _INITIAL_VALUES:
            if stem not in self._initial:
                raise InputError(f"{stem} is missing: give the initial values, of which '{name}' is changed")
            return self._initial[stem]
        entries = model.parameter_table.entries
        if stem not in entries:
            known = [*entries, *self._initial]
            raise InputError(f"there is no parameter or initial value '{name}'{suggestion(name, known)}")
        return k[entries[stem].slices[0]].reshape(entries[stem].shape)

    def to_inputs(self, x: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, object]]:
        """Return initial values and parameters of a run from the vector of design variables."""
        initial = {name: value.copy() for name, value in self._initial.items()}
        parameters = dict(self._fixed)
        arrays = {stem: values.copy() for stem, values in self._shapes.items()}
        for (stem, i), component in zip(self._targets, x, strict=True):
            if i is None:
                arrays[stem] = np.array(component)
            else:
                arrays[stem].reshape(-1)[i] = component
        for stem, values in arrays.items():
            if stem in _INITIAL_VALUES:
                initial[stem] = values
            else:
                parameters[stem] = float(values) if values.ndim == 0 else values
        return {name: value for name, value in initial.items() if name in arrays or name in self._initial}, parameters

    def bounds(self, bounds: Mapping[str, Any] | None) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds of the design variables."""
        low, high = np.full(len(self.labels), -np.inf), np.full(len(self.labels), np.inf)
        if bounds is None:
            return low, high
        if not isinstance(bounds, Mapping):
            raise InputError(f"bounds must map names to pairs of numbers, got {bounds!r}")
        for name, pair in bounds.items():
            indices = [i for i, label in enumerate(self.labels) if label == name or label.partition("[")[0] == name]
            if not indices:
                raise InputError(f"there are bounds for '{name}', which is not a design variable")
            try:
                least, greatest = (float(value) for value in pair)
            except (TypeError, ValueError):
                raise InputError(f"the bounds of {name} must be two numbers, got {pair!r}") from None
            if not least < greatest:
                raise InputError(f"the bounds of {name} must be two numbers, the smaller one first, got {pair!r}")
            low[indices], high[indices] = least, greatest
        outside = np.flatnonzero((self.initial_guess < low) | (self.initial_guess > high))
        if outside.size:
            name = self.labels[outside[0]]
            raise InputError(f"the guess of {name}, {self.initial_guess[outside[0]]:g}, lies outside its bounds")
        return low, high
