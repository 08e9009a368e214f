"""Schedules of inputs: values over time, with zero- or first-order hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.models.base import Model
from livens.models.input_entry import InputEntry, input_entry
from livens.validation import check_array, check_choice

#: Tolerance of sample times relative to the step size: a sample this close to the start of a step belongs to it.
_TIME_RTOL = 1e-9


class Schedule:
    """Values of inputs over time, for the argument `inputs` of a run.

    Parameters
    ----------
    values : mapping of str to array_like
        Values by name of an input, one row per sample. Every parameter of the model is an input as well.
    t : array_like of shape (n_samples,), optional
        Increasing sample times in seconds. Default: one sample per step, from the start of the run.
    hold : {"constant", "linear"}, default "constant"
        Zero-order hold, or first-order hold (linear interpolation between the samples). With zero-order hold, a
        sample acts from the first step on that starts at or after its time.

    Raises
    ------
    InputError
        If the numbers of samples differ, times do not increase, or values are not finite.

    Examples
    --------
    >>> import livens as lv
    >>> cart = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, forces=lambda q, v, k: [k.u], parameters=dict(u=0.0))
    >>> schedule = lv.Schedule({"u": [1.0, -1.0]}, t=[0.0, 1.0])
    >>> run = lv.simulate(cart, [0.0], [0.0], h=0.1, t_end=2.0, inputs=schedule)
    >>> round(float(run.q[-1, 0]), 12), round(float(run.v[-1, 0]), 12)
    (1.0, 0.0)
    """

    def __init__(self, values: Mapping[str, Any], t: Any = None, hold: str = "constant") -> None:
        if not isinstance(values, Mapping) or not values:
            raise InputError(f"inputs must map names to values over time, got {values!r}")
        self.hold = check_choice("hold", hold, ("constant", "linear"))
        self.values = {str(name): np.atleast_1d(check_array(f"input '{name}'", rows)) for name, rows in values.items()}
        counts = {name: len(rows) for name, rows in self.values.items()}
        self.t = None if t is None else np.atleast_1d(check_array("t", t))
        if self.t is not None:
            if self.t.ndim != 1 or (np.diff(self.t) <= 0).any():
                raise InputError("the times of a schedule must be increasing numbers")
            counts["t"] = len(self.t)
        if len(set(counts.values())) != 1:
            listed = ", ".join(f"{name}: {count}" for name, count in counts.items())
            raise InputError(f"all inputs need the same number of samples, got {listed}")
        self.n_samples = next(iter(counts.values()))

    @classmethod
    def of(cls, inputs: Any) -> Schedule | None:
        """Return the argument `inputs` of a run as a schedule.

        Parameters
        ----------
        inputs : Schedule, mapping or None
            Schedule, or samples by the name of the input.

        Returns
        -------
        Schedule or None
            None if there are no inputs.
        """
        return inputs if inputs is None or isinstance(inputs, cls) else cls(inputs)


class BoundSchedule:
    """Schedule of a run: values of the parameter vector at the start of a step."""

    def __init__(self, schedule: Schedule, model: Model, t0: float, t_end: float, h: float) -> None:
        self._h, self._is_linear = h, schedule.hold == "linear"
        times = t0 + np.arange(schedule.n_samples) * h if schedule.t is None else schedule.t
        needed = round((t_end - t0) / h) + (1 if self._is_linear else 0)
        if schedule.t is None and schedule.n_samples < needed:
            raise InputError(
                f"inputs have {schedule.n_samples} samples, but the run has {needed} "
                f"{'nodes' if self._is_linear else 'steps'}: give a sample for each of them, or sample times t"
            )
        self._times = times
        self._entries: list[tuple[InputEntry, np.ndarray]] = []
        for name, rows in schedule.values.items():
            entry = input_entry(model, name)
            if rows.shape[1:] != entry.value.shape:
                raise InputError(
                    f"input '{name}' needs samples of shape {entry.value.shape}, got {rows.shape[1:]}: one row per "
                    "sample"
                )
            if self._is_linear and entry.rate is None:
                raise InputError(
                    f"'{name}' is a parameter, which is constant in a step: use hold='constant', or an input of a "
                    "Multibody (mb.input)"
                )
            self._entries.append((entry, rows.reshape(schedule.n_samples, -1)))

    def steps_until_change(self, t: float) -> int:
        """Return the number of steps from time t to the next change."""
        if self._is_linear:
            return 1
        after = self._sample(t) + 1
        if after >= self._times.size:
            return 2**52
        return max(1, int(np.ceil((self._times[after] - t) / self._h - _TIME_RTOL)))

    def _sample(self, t: float) -> int:
        index = int(np.searchsorted(self._times, t + _TIME_RTOL * self._h, side="right")) - 1
        return min(max(index, 0), self._times.size - 1)

    def apply(self, k: np.ndarray, t: float) -> None:
        """Set the inputs of the step that starts at time t in the parameter vector."""
        if not self._is_linear:
            sample = self._sample(t)
            for entry, rows in self._entries:
                for part in entry.value.slices:
                    k[part] = rows[sample]
            return
        for entry, rows in self._entries:
            start, end = (_interpolate(self._times, rows, time) for time in (t, t + self._h))
            assert entry.rate is not None and entry.time is not None
            for value, rate, since in zip(entry.value.slices, entry.rate.slices, entry.time.slices, strict=True):
                k[value], k[rate], k[since] = start, (end - start) / self._h, t


def _interpolate(times: np.ndarray, rows: np.ndarray, t: float) -> np.ndarray:
    """Return the linear interpolation of rows at time t; constant before the first and after the last sample."""
    if len(times) == 1:
        return np.asarray(rows[0])
    i = int(np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 2))
    weight = min(max((t - times[i]) / (times[i + 1] - times[i]), 0.0), 1.0)
    return np.asarray(rows[i] if weight == 0.0 else (1 - weight) * rows[i] + weight * rows[i + 1])
