"""Result of `solve_ivp` with the fields of SciPy's `OdeResult`, and its dense output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from livens.results.result import Result
from livens.run.bridges.ivp_integration import joined_rows

#: Messages of SciPy by status.
MESSAGES = {
    0: "The solver successfully reached the end of the integration interval.",
    1: "A termination event occurred.",
}
#: Relative tolerance of times at the end of the interval, in units in the last place.
_TIME_ULPS = 4
#: Number of Chebyshev points of a step in a copy of a dense output.
_N_SAMPLES = 33


class OdeResult(dict[str, Any]):
    """Solution of an initial value problem, with the fields of `scipy.integrate.solve_ivp` as keys and attributes.

    Further fields are `compiled` (True if livens integrated), `scheme` (names of the schemes) and `runs` (the results
    of livens, with conservation reports and statistics).
    """

    def __getattr__(self, name: str) -> np.ndarray:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"an OdeResult has no '{name}', only {', '.join(self)}") from None

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __dir__(self) -> list[str]:
        return list(self)

    def __copy__(self) -> OdeResult:
        return OdeResult(self)

    def __reduce__(self) -> tuple[type[OdeResult], tuple[dict[str, Any]]]:
        """Return the result for pickling, without `runs`."""
        return OdeResult, ({**self, "runs": []},)

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:>{width}}: {value!r}" for name, value in self.items())


class DenseOutput:
    """Continuous solution ``sol(t)`` of consecutive runs, with the attributes of `scipy.integrate.OdeSolution`.

    Outside of the integration interval, the states at its ends are returned. A copy by `pickle` or `copy.deepcopy`
    contains the states at Chebyshev points of every step.
    """

    def __init__(self, runs: Sequence[Result], sign: float) -> None:
        self._runs, self._sign = runs, sign
        self._set_times(sign * joined_rows(runs)[0])
        self._samples: np.ndarray | None = None

    def _set_times(self, ts: np.ndarray) -> None:
        self.ts = ts
        self.t_min, self.t_max = float(np.min(ts)), float(np.max(ts))
        self.n_segments = len(ts) - 1

    def __getstate__(self) -> dict[str, Any]:
        if self._samples is not None:
            return dict(vars(self))
        start, length = self.ts[:-1, None], np.diff(self.ts)[:, None]
        times = start + 0.5 * length * (1 - np.cos(np.pi * np.arange(_N_SAMPLES) / (_N_SAMPLES - 1)))
        samples = self(times.ravel()).T.reshape(*times.shape, -1)
        return dict(_sign=self._sign, ts=self.ts, _samples=samples)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._runs, self._sign, self._samples = (), state["_sign"], state["_samples"]
        self._set_times(state["ts"])

    def __call__(self, t: ArrayLike) -> np.ndarray:
        """Return the state at a time, shape (n,), or at k times, shape (n, k)."""
        times = np.asarray(t, dtype=float)
        if times.ndim > 1:
            raise ValueError("`t` must be a float or a 1-D array.")
        s = self._sign * np.atleast_1d(times)
        states = self._evaluated(s) if self._samples is None else self._interpolated(s, self._samples)
        return states[0] if times.ndim == 0 else states.T

    def _evaluated(self, s: np.ndarray) -> np.ndarray:
        states = np.empty((len(s), self._runs[0].x.shape[1]))
        last_run = len(self._runs) - 1
        for i, run in enumerate(self._runs):
            first, last = run.t[0], run.t[-1]
            is_inside = ((s >= first) | (i == 0)) & ((s <= last) | (i == last_run))
            if is_inside.any():
                states[is_inside] = run.at(np.clip(s[is_inside], first, last)).x
        return states

    def _interpolated(self, s: np.ndarray, samples: np.ndarray) -> np.ndarray:
        """Return states from those at the Chebyshev points of the steps, by the barycentric formula."""
        ends = self._sign * self.ts
        s = np.clip(s, ends[0], ends[-1])
        step = np.clip(np.searchsorted(ends, s, side="right") - 1, 0, self.n_segments - 1)
        j = np.arange(_N_SAMPLES)
        distance = 2 * (s - ends[step]) / (ends[step + 1] - ends[step]) - 1
        difference = distance[:, None] + np.cos(np.pi * j / (_N_SAMPLES - 1))
        weights = np.where(j % 2, -1.0, 1.0) * np.where((j == 0) | (j == _N_SAMPLES - 1), 0.5, 1.0)
        is_node = difference == 0
        weights = np.where(is_node.any(1, keepdims=True), is_node, weights / np.where(is_node, 1.0, difference))
        states: np.ndarray = np.einsum("ij,ijn->in", weights / weights.sum(1, keepdims=True), samples[step])
        return states


def make_result(
    runs: Sequence[Result],
    sign: float,
    *,
    status: int,
    message: str,
    t_eval: np.ndarray | None,
    dense_output: bool,
    n_events: int | None,
) -> OdeResult:
    """Return the fields of SciPy from the runs of livens; events of the runs have the names "0", "1", ..."""
    sol = DenseOutput(runs, sign) if dense_output or t_eval is not None else None
    times, states = joined_rows(runs)
    ts = sign * times
    t: np.ndarray | list[float]
    y: np.ndarray | list[np.ndarray]
    if t_eval is None:
        t, y = ts, states.T.copy()
    else:
        assert sol is not None
        end = float(sign * ts[-1])
        t = t_eval[sign * t_eval <= end + _TIME_ULPS * np.finfo(float).eps * abs(end)]
        if len(t):
            y = sol(t)
        else:  # as in SciPy
            t, y = [], []
    t_events: list[np.ndarray] | None = None
    y_events: list[np.ndarray] | None = None
    if n_events is not None:
        occurrences = [event for run in runs for event in run.events]
        by_event = [[event for event in occurrences if event.name == str(i)] for i in range(n_events)]
        t_events = [sign * np.array([event.t for event in events]) for events in by_event]
        y_events = [np.array([event.state["x"] for event in events]) for events in by_event]
    steps = sum(run.statistics.steps for run in runs)
    newton_iterations = int(sum(run.statistics.newton_iterations for run in runs))
    schemes = dict.fromkeys(run.info.scheme for run in runs)
    return OdeResult(
        t=t,
        y=y,
        sol=sol if dense_output else None,
        t_events=t_events,
        y_events=y_events,
        nfev=int(3 * newton_iterations + steps),
        njev=newton_iterations,
        nlu=newton_iterations,
        status=status,
        message=message or MESSAGES.get(status, ""),
        success=status >= 0,
        compiled=True,
        scheme="+".join(schemes),
        runs=list(runs),
    )
