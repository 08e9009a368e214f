"""Schedules of inputs: values over time, with zero- or first-order hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from livens.errors import InputError, explain_call_errors
from livens.expressions.parameters import ParameterEntry
from livens.models.base import Model
from livens.models.input_entry import InputEntry, input_entry
from livens.types import ModelFunction
from livens.validation import check_arguments, check_array, check_choice, check_positive

#: Tolerance of sample times relative to the step size: a sample this close to the start of a step belongs to it.
_TIME_RTOL = 1e-9


@explain_call_errors
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

    def first_values(self) -> dict[str, Any]:
        """Return the values of the inputs at the first sample.

        Returns
        -------
        dict
            Values by name of the input.
        """
        return {name: rows[0] for name, rows in self.values.items()}

    @classmethod
    def of(cls, inputs: Any) -> Schedule | Feedback | None:
        """Return the argument `inputs` of a run as a schedule or a feedback law.

        Parameters
        ----------
        inputs : Schedule, Feedback, mapping or None
            Schedule, feedback law, or samples by the name of the input.

        Returns
        -------
        Schedule, Feedback or None
            None if there are no inputs.
        """
        return inputs if inputs is None or isinstance(inputs, (cls, Feedback)) else cls(inputs)

    @classmethod
    def of_samples(cls, inputs: object, purpose: str) -> Schedule | None:
        """Return the argument `inputs` as a schedule, for a purpose that a feedback law does not serve.

        Parameters
        ----------
        inputs : Schedule, mapping or None
            Schedule, or samples by the name of the input.
        purpose : str
            Subject of the message about feedback laws, such as "an ensemble".

        Returns
        -------
        Schedule or None
            None if there are no inputs.

        Raises
        ------
        InputError
            If `inputs` is a feedback law.
        """
        schedule = cls.of(inputs)
        if isinstance(schedule, Feedback):
            raise InputError(
                f"{purpose} needs the samples of its inputs before the run; a feedback law is called during the run. "
                "Use mb.pd, mb.pid or a motor with a law of the state"
            )
        return schedule


@explain_call_errors
class Feedback:
    """Sampled control law of any model, for the argument `inputs` of a run: a Python function with zero-order hold.

    The law is called at the start of the run and after every period, between steps.

    Parameters
    ----------
    law : callable
        Function ``law(t, measured)`` that returns the values of the inputs, one after another.
    period : float
        Sampling period in s, a whole number of steps.
    measured : sequence of str or callable
        Measured coordinates, outputs and observables by name, and functions of ``q v t k``.
    inputs : str or sequence of str
        Names of the inputs. Every parameter of the model is an input as well.

    Raises
    ------
    InputError
        If `law` is no function, the period is not positive, or there are no inputs.

    Examples
    --------
    >>> import livens as lv
    >>> cart = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, forces=lambda q, v, k: [k.u], parameters=dict(u=0.0))
    >>> law = lv.Feedback(lambda t, y: -y[0] - 2 * y[1], 0.1, [lambda q: q[0], lambda v: v[0]], "u")
    >>> run = lv.simulate(cart, [1.0], [0.0], h=0.1, t_end=20.0, inputs=law)
    >>> bool(abs(run.q[-1, 0]) < 1e-3)
    True
    """

    def __init__(
        self,
        law: ModelFunction,
        period: float,
        measured: Sequence[str | ModelFunction] | str,
        inputs: Sequence[str] | str,
    ) -> None:
        if not callable(law):
            raise InputError(f"the law must be a function of time and of the measured values, got {law!r}")
        check_arguments("the feedback law", law, ("t", "measured"))
        self.law, self.period = law, check_positive("period", period)
        self.measured = (measured,) if isinstance(measured, str) or callable(measured) else tuple(measured)
        self.values = dict.fromkeys((inputs,) if isinstance(inputs, str) else inputs)
        if not self.values or not self.measured:
            raise InputError("a feedback law needs the names of measured quantities and of inputs")

    def first_values(self) -> dict[str, Any]:
        """Return the values before the first sample: those of the model.

        Returns
        -------
        dict
            Empty.
        """
        return {}


class BoundFeedback:
    """Feedback law of a run: values of the parameter vector at the sampling times."""

    def __init__(self, feedback: Feedback, model: Model, t0: float, h: float) -> None:
        from livens.run.single_steps import Measurement  # single steps hold parameters, too

        self._feedback, self._t0, self._h = feedback, t0, h
        self._n_hold = max(1, round(feedback.period / h))
        if abs(self._n_hold * h - feedback.period) > 1e-9 * feedback.period:
            raise InputError(
                f"the period {feedback.period:g} of the feedback must be an integer multiple of the step size h = {h:g}"
            )
        self._entries = [input_entry(model, name) for name in feedback.values]
        self._sizes = [int(np.prod(entry.value.shape, dtype=int)) for entry in self._entries]
        self.measurement = Measurement.of_outputs(model, feedback.measured)
        self._last_sample = -1

    def _position(self, t: float) -> tuple[int, bool]:
        """Return the number of samples up to time t, and True if t is a sampling time."""
        position = (t - self._t0) / (self._n_hold * self._h)
        index = int(np.floor(position + _TIME_RTOL))
        return index, abs(position - index) < _TIME_RTOL * max(1.0, abs(position))

    def steps_until_change(self, t: float) -> int:
        """Return the number of steps from time t to the next sample."""
        index, _ = self._position(t)
        return max(1, round((self._t0 + (index + 1) * self._n_hold * self._h - t) / self._h))

    def apply(self, k: np.ndarray, t: float, z: np.ndarray) -> None:
        """Set the inputs of the following steps in the parameter vector, if t is a sampling time."""
        index, is_due = self._position(t)
        if not is_due or index == self._last_sample:
            return
        self._last_sample = index
        returned = self._feedback.law(t, self.measurement.values(t, z, k))
        try:
            values = np.atleast_1d(np.asarray(returned, dtype=float)).ravel()
        except (TypeError, ValueError):
            values = np.full(1, np.nan)
        if values.size != sum(self._sizes) or not np.isfinite(values).all():
            raise InputError(f"the feedback law must return {sum(self._sizes)} finite numbers, got {returned!r}")
        for entry, part in zip(self._entries, np.split(values, np.cumsum(self._sizes)[:-1]), strict=True):
            for target in entry.value.slices:
                k[target] = part
            for target in entry.rate.slices if entry.rate is not None else ():
                k[target] = 0.0


class BoundSchedule:
    """Schedule of a run: values of the parameter vector at the start of a step."""

    def __init__(self, schedule: Schedule, model: Model, t0: float, t_end: float, h: float) -> None:
        self._h, self._is_linear, self._follows_steps = h, schedule.hold == "linear", schedule.t is None
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

    @property
    def indices(self) -> np.ndarray:
        """Entries of the parameter vector that the inputs set."""
        parts = [part for entry, _ in self._entries for value in entry if value is not None for part in value.slices]
        return np.unique(np.concatenate([np.arange(part.start, part.stop) for part in parts]))

    def changes(self, k: np.ndarray, t0: float, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the steps before which inputs change, and the parameters `indices` from there on."""
        steps, rows, step, vector = list[int](), list[np.ndarray](), 0, k.copy()
        while step < n_steps:
            t = t0 + step * self._h
            self.apply(vector, t)
            steps.append(step)
            rows.append(vector[self.indices])
            step += self.steps_until_change(t)
        return np.array(steps, dtype=np.int64), np.array(rows).reshape(len(steps), self.indices.size)

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

    def apply(self, k: np.ndarray, t: float, z: np.ndarray | None = None) -> None:
        """Set the inputs of the step that starts at time t in the parameter vector; they do not depend on the state."""
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

    # -- derivatives --------------------------------------------------------------------------------------------------
    def zero_samples(self) -> list[np.ndarray]:
        """Return zeros in the shape of the samples of every input."""
        return [np.zeros_like(rows) for _, rows in self._entries]

    def by_name(self, names: Iterable[str], samples: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """Return values per sample by the name of the input, in the shapes of the inputs."""
        return {
            name: values.reshape(len(values), *entry.value.shape)
            for name, values, (entry, _) in zip(names, samples, self._entries, strict=True)
        }

    def pull_back(self, k_cotangent: np.ndarray, t: float, dt_dh: float, samples: list[np.ndarray]) -> float:
        """Move the cotangents of the inputs of a step at time t from the parameters to the samples.

        Returns the cotangent of h, on which times depend by `dt_dh`. Sample times that were given are constant; without
        them, samples move with the steps.
        """
        h_cotangent = 0.0
        for (entry, rows), target in zip(self._entries, samples, strict=True):
            value = _taken(k_cotangent, entry.value)
            if not self._is_linear:
                target[self._sample(t)] += value
                continue
            assert entry.rate is not None and entry.time is not None
            rate = _taken(k_cotangent, entry.rate)
            h_cotangent += dt_dh * float(_taken(k_cotangent, entry.time).sum())
            ends = ((t, value - rate / self._h, dt_dh), (t + self._h, rate / self._h, dt_dh + 1.0))
            start, end = (_interpolate(self._times, rows, time) for time, _, _ in ends)
            h_cotangent -= float(rate @ (end - start)) / self._h**2
            for time, cotangent, motion in ends:
                i, weight, weight_rate = _weights(self._times, time)
                target[i] += (1 - weight) * cotangent
                if weight or weight_rate:
                    target[i + 1] += weight * cotangent
                    h_cotangent += (
                        0.0
                        if self._follows_steps
                        else motion * weight_rate * float(cotangent @ (rows[i + 1] - rows[i]))
                    )
        return h_cotangent

    def pull_back_initial(self, k_cotangent: np.ndarray, samples: list[np.ndarray]) -> None:
        """Move the cotangents of the inputs of the initial state from the parameters to the first samples."""
        for (entry, _), target in zip(self._entries, samples, strict=True):
            target[0] += _taken(k_cotangent, entry.value)


def _taken(k_cotangent: np.ndarray, entry: ParameterEntry) -> np.ndarray:
    """Return the sum of the cotangents of an entry of the parameter vector, and set them to zero there."""
    total = np.sum([k_cotangent[part] for part in entry.slices], axis=0)
    for part in entry.slices:
        k_cotangent[part] = 0.0
    return np.asarray(total)


def _weights(times: np.ndarray, t: float) -> tuple[int, float, float]:
    """Return the sample before time t, the weight of the next one, and the derivative of this weight by t."""
    if len(times) == 1:
        return 0, 0.0, 0.0
    i = int(np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 2))
    weight_rate = 1 / (times[i + 1] - times[i])
    weight = (t - times[i]) * weight_rate
    return i, min(max(weight, 0.0), 1.0), weight_rate if 0.0 <= weight < 1.0 else 0.0


def _interpolate(times: np.ndarray, rows: np.ndarray, t: float) -> np.ndarray:
    """Return the linear interpolation of rows at time t; constant before the first and after the last sample."""
    i, weight, _ = _weights(times, t)
    return np.asarray(rows[i] if weight == 0.0 else (1 - weight) * rows[i] + weight * rows[i + 1])
