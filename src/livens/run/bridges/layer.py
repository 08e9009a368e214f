"""Simulation as a function of arrays with a vector-Jacobian product: common part of all bridges."""

from __future__ import annotations

import collections
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from livens.errors import InputError, suggestion
from livens.expressions.numbers import array, whole_number
from livens.run.departure import Departure
from livens.run.gradient import Gradient, tape_of
from livens.run.prepare import Prepared
from livens.run.several import plan_of
from livens.run.tape import Tape, observed_numbers

_STARTS = ("q0", "v0", "p0", "x0")
#: Largest number of runs cached between the forward and the backward pass.
_KEPT = 8


class SimulationLayer:
    """Differentiable simulation: inputs are initial values and parameters, outputs are variables by time.

    Initial values are projected to the nearest consistent ones, so that gradient steps may leave the constraints.

    Parameters
    ----------
    step : Prepared
        Prepared step, see `livens.prepare`.
    inputs : sequence of str
        Names of initial values (``q0 v0 p0 x0``) and parameters.
    outputs : sequence of str
        Names of variables (``q v p x``).
    every : int, optional
        Return every `every`-th state and the last one. Default: the last state only.
    **run
        Further arguments of `Prepared.run`: `h`, `t_end`, `t0`, `parameters`.
    """

    def __init__(
        self,
        step: Prepared,
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        every: int | None = None,
        **run: Any,
    ) -> None:
        plan = plan_of(step, {}, **run)
        self._step, self._run, model = step, run, step.model
        self._every = None if every is None else whole_number("every", every, least=1)
        self.inputs, self.outputs = _names("inputs", inputs), _names("outputs", outputs)
        table, n = model.parameter_table, len(model.coordinates)
        self.input_shapes: list[tuple[int, ...]] = []
        for name in self.inputs:
            if name not in _STARTS and name not in table.entries:
                raise InputError(f"unknown input '{name}'{suggestion(name, [*table.entries, *_STARTS])}")
            self.input_shapes.append((n,) if name in _STARTS else table.entries[name].shape)
        symbols = model.view.symbols
        for name in self.outputs:
            if name not in symbols:
                raise InputError(f"unknown output '{name}', allowed: {', '.join(symbols)}")
        at = observed_numbers(plan, self._every)
        self.t = plan.t0 + np.minimum(at * plan.h, plan.t_end - plan.t0)
        self.output_shapes = [(len(at), int(symbols[name].numel())) for name in self.outputs]
        self._known: collections.OrderedDict[bytes, tuple[Tape, Departure]] = collections.OrderedDict()
        self._lock = threading.Lock()

    def forward(self, *values: Any) -> list[np.ndarray]:
        """Return the outputs of a run."""
        tape, _ = self._taped(values)
        layout = tape.compiled.layout
        return [tape.states[:, layout[name]].copy() for name in self.outputs]

    def backward(self, values: Sequence[Any], bars: Sequence[Any]) -> list[np.ndarray]:
        """Return the cotangents of the inputs, given those of the outputs."""
        tape, departure = self._taped(values)
        layout = tape.compiled.layout
        rows = np.zeros_like(tape.states)
        for name, bar in zip(self.outputs, bars, strict=True):
            rows[:, layout[name]] += np.asarray(bar, dtype=float)
        a, g = tape.back(rows)
        by = Gradient.of(self._step.model, departure.back(a, g[2:], g[0]))
        found = {**by.start, **by.parameters}
        missing = [name for name in self.inputs if name not in found]
        if missing:
            raise InputError(f"this model has no initial values {', '.join(missing)}")
        return [np.asarray(found[name], dtype=float) for name in self.inputs]

    def _taped(self, values: Sequence[Any]) -> tuple[Tape, Departure]:
        if len(values) != len(self.inputs):
            raise InputError(f"the simulation takes {len(self.inputs)} inputs ({', '.join(self.inputs)})")
        given = [
            array(name, value, shape) if shape else np.asarray(array(name, value)).reshape(())
            for name, value, shape in zip(self.inputs, values, self.input_shapes, strict=True)
        ]
        key = b"".join(value.tobytes() for value in given)
        with self._lock:
            known = self._known.get(key)
        if known is None:
            start = {name: value for name, value in zip(self.inputs, given, strict=True) if name in _STARTS}
            parameters = {name: value for name, value in zip(self.inputs, given, strict=True) if name not in _STARTS}
            fixed = dict(self._run.get("parameters") or {})
            run = {name: value for name, value in self._run.items() if name != "parameters"}
            plan = plan_of(self._step, start, parameters={**fixed, **parameters}, project=True, **run)
            _, tape, departure = tape_of(plan, self._every, keep=False)
            known = tape, departure
            with self._lock:
                self._known[key] = known
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
        return known


def _names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    listed = (names,) if isinstance(names, str) else names
    if not isinstance(listed, Sequence) or not listed or not all(isinstance(name, str) for name in listed):
        raise InputError(f"{what} must be names, got {names!r}")
    return tuple(listed)
