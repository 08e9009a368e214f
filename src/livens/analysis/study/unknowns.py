"""Design variables of a study: parameters and initial values by name, as one vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from livens.errors import InputError, suggestion
from livens.expressions.numbers import array
from livens.models.model import Model
from livens.models.problem import Problem
from livens.run.prepare import Prepared, prepare

_STARTS = ("q0", "v0", "p0", "x0")


def prepared(model: Model | Problem | Prepared, **options: Any) -> Prepared:
    """Return a prepared model, prepared here unless it is one already."""
    if isinstance(model, Prepared):
        return model
    return prepare(model, **{name: value for name, value in options.items() if value is not None})


class Unknowns:
    """Design variables named such as ``g``, ``v0``, ``v0[1]``, with labels and initial guess.

    >>> import livens as lv
    >>> step = lv.prepare(lv.problems.load("simple-pendulum"))
    >>> unknowns = Unknowns(step, {"g": 9.0, "v0[1]": 0.5}, {}, {})
    >>> unknowns.labels, unknowns.guess
    (('g', 'v0[1]'), array([9. , 0.5]))
    >>> unknowns.given(np.array([9.5, 1.0]))
    ({'q0': array([-1.,  0.]), 'v0': array([0., 1.])}, {'g': 9.5})
    """

    def __init__(
        self,
        step: Prepared,
        by: str | Sequence[str] | Mapping[str, Any],
        start: Mapping[str, Any],
        parameters: Mapping[str, Any] | None,
    ) -> None:
        listed = {by: None} if isinstance(by, str) else by
        if not isinstance(listed, (Mapping, Sequence)) or not listed:
            raise InputError(f"by must be names of parameters or initial values, optionally with guesses, got {by!r}")
        if not isinstance(listed, Mapping) and not all(isinstance(name, str) for name in listed):
            raise InputError(f"by must be names of parameters or initial values, got {by!r}")
        guesses = dict(listed) if isinstance(listed, Mapping) else dict.fromkeys(listed)
        if parameters is not None and not isinstance(parameters, Mapping):
            raise InputError(f"parameters must map names to values, got {parameters!r}")
        problem = step._model if isinstance(step._model, Problem) else None
        model = step.model
        usual = {**(problem.start_values if problem else {}), **{n: v for n, v in start.items() if v is not None}}
        changes = {**(problem.parameters if problem else {}), **step._defaults.get("parameters", {})}
        changes |= dict(parameters or {})
        k = model.parameter_vector(changes)
        self._start = {name: array(name, value).astype(float) for name, value in usual.items() if value is not None}
        for name in set(guesses) & set(_STARTS) - set(self._start):
            if guesses[name] is not None:
                self._start[name] = array(f"the guess of {name}", guesses[name]).astype(float)
        self._fixed = dict(changes)
        self._places: list[tuple[str, int | None]] = []  # name and entry; None for a scalar
        labels, numbers = list[str](), list[float]()
        for name, guess in guesses.items():
            if not isinstance(name, str):
                raise InputError(f"by must be names of parameters or initial values, got {name!r}")
            stem, _, which = name.partition("[")
            values = self._values(model, stem, k, name)
            if which:
                entry = which.removesuffix("]")
                if not entry.isdigit() or not int(entry) < values.size or not values.ndim:
                    raise InputError(f"'{stem}' has {values.size} entries, there is no '{name}'")
                chosen = [int(entry)]
            else:
                chosen = list(range(values.size))
            found = values.ravel()[chosen]
            if guess is not None:
                found = np.broadcast_to(array(f"the guess of {name}", guess), values.shape if not which else ()).ravel()
            for i, number in zip(chosen, found, strict=True):
                place = stem, i if values.ndim else None
                if place in self._places:
                    raise InputError(f"'{name}' is named twice")
                self._places.append(place)
                labels.append(stem if not values.ndim else f"{stem}[{i}]")
                numbers.append(float(number))
        self.labels, self.guess = tuple(labels), np.array(numbers)
        self._shapes = {stem: self._values(model, stem, k, stem) for stem, _ in self._places}

    def _values(self, model: Model, stem: str, k: np.ndarray, name: str) -> np.ndarray:
        if stem in _STARTS:
            if stem not in self._start:
                raise InputError(f"{stem} is missing: give the initial values, of which '{name}' is changed")
            return self._start[stem]
        entries = model.parameter_table.entries
        if stem not in entries:
            known = [*entries, *self._start]
            raise InputError(f"there is no parameter or initial value '{name}'{suggestion(name, known)}")
        return k[entries[stem].places[0]].reshape(entries[stem].shape)

    def given(self, numbers: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return initial values and parameters of a run from the vector of design variables."""
        start = {name: value.copy() for name, value in self._start.items()}
        parameters = dict(self._fixed)
        arrays = {stem: values.copy() for stem, values in self._shapes.items()}
        for (stem, i), number in zip(self._places, numbers, strict=True):
            if i is None:
                arrays[stem] = np.array(number)
            else:
                arrays[stem].reshape(-1)[i] = number
        for stem, values in arrays.items():
            if stem in _STARTS:
                start[stem] = values
            else:
                parameters[stem] = float(values) if values.ndim == 0 else values
        return {name: value for name, value in start.items() if name in arrays or name in self._start}, parameters

    def bounds(self, bounds: Mapping[str, Any] | None) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds of the design variables."""
        low, high = np.full(len(self.labels), -np.inf), np.full(len(self.labels), np.inf)
        if bounds is None:
            return low, high
        if not isinstance(bounds, Mapping):
            raise InputError(f"bounds must map names to pairs of numbers, got {bounds!r}")
        for name, pair in bounds.items():
            places = [i for i, label in enumerate(self.labels) if label == name or label.partition("[")[0] == name]
            if not places:
                raise InputError(f"there are bounds for '{name}', which is not a design variable")
            try:
                least, greatest = (float(value) for value in pair)
            except (TypeError, ValueError):
                raise InputError(f"the bounds of {name} must be two numbers, got {pair!r}") from None
            if not least < greatest:
                raise InputError(f"the bounds of {name} must be two numbers, the smaller one first, got {pair!r}")
            low[places], high[places] = least, greatest
        outside = np.flatnonzero((self.guess < low) | (self.guess > high))
        if outside.size:
            name = self.labels[outside[0]]
            raise InputError(f"the guess of {name}, {self.guess[outside[0]]:g}, lies outside its bounds")
        return low, high
