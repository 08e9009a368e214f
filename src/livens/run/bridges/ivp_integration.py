"""Integration of a traced right-hand side: schemes and step control of the methods of `livens.solve_ivp`."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from livens.errors import IntegrationError
from livens.results.result import Result
from livens.run.bridges.ivp_problem import EXPLICIT, IMPLICIT, SWITCHING, IvpProblem
from livens.run.bridges.traced_ode import COMPARED_ROWS, TracedOde
from livens.run.events.event import Event
from livens.run.step_control import StepControl

#: Smallest and largest tolerance of Taylor series.
_TAYLOR_TOLERANCES = (1e-17, 0.5)
#: Relative tolerance below which "radau-iia-5" is used instead of "radau-iia-3".
_HIGH_ORDER_RTOL = 1e-7
#: Taylor steps before the first check for stiffness, and between further checks.
_STIFFNESS_CHECK_STEPS = 400, 1600
#: A problem is stiff if the fastest decay within a step, and within the remaining time, exceeds these exponents.
_STIFF_STEP_DECAY, _STIFF_TOTAL_DECAY = 2.0, 2000.0


#: Smallest number of groups of rows of a solution that are compared with the functions, and number of rows for one more
#: group, of smooth problems and of others; largest number of groups.
_SMOOTH_COMPARISONS, _COMPARISONS, _MAX_COMPARISONS = (1, 512), (2, 128), 16


class IvpIntegration:
    """Sequence of runs from the initial to the final time."""

    def __init__(self, problem: IvpProblem, ode: TracedOde) -> None:
        self._problem, self._ode, self._model = problem, ode, ode.model
        self._t, self._end, self._y = problem.sign * problem.t0, problem.sign * problem.tf, problem.y0.astype(float)
        self._values = ode.parameter_values(problem.args)
        self._parameters = {"args": np.array(self._values)} if self._values else None
        self.runs: list[Result] = []
        self._counts = [0] * len(problem.event_rules)
        #: Message of an integration that ended before the final time.
        self.failure = ""

    @property
    def is_stopped(self) -> bool:
        """True if a terminal event has ended the last run."""
        return bool(self.runs) and self.runs[-1].message.startswith("stopped by the event")

    @property
    def _is_finished(self) -> bool:
        return self.is_stopped or self._t >= self._end

    def run(self) -> None:
        """Integrate to the end, to a terminal event, or to a failure of a smooth problem after the first step."""
        try:
            self._run()
        except IntegrationError as error:
            if error.result is None or error.result.t.size < 2 or not self._model.is_smooth:
                raise
            self.runs.append(error.result)
            self.failure = str(error)

    def agrees(self) -> bool:
        """Return True if the expressions have the values of the functions at times along the solution."""
        problem, n_rows = self._problem, sum(run.statistics.steps for run in self.runs) + 1
        least, interval = _SMOOTH_COMPARISONS if self._model.is_smooth else _COMPARISONS
        n_groups = min(least + n_rows // interval, _MAX_COMPARISONS)
        count = COMPARED_ROWS * n_groups
        rows = [(i + 1) * (n_rows - 1) // count for i in range(count)]
        t, y = joined_rows(self.runs)
        return all(
            self._ode.agrees(problem, self._values, problem.sign * t[group], y[group])
            for group in (rows[i : i + COMPARED_ROWS] for i in range(0, count, COMPARED_ROWS))
        )

    def _run(self) -> None:
        problem, model = self._problem, self._model
        if problem.method not in SWITCHING:
            self._advance(self._scheme(problem.method))
            if not self._is_finished:  # the first step of a given size
                self._advance(self._scheme(problem.method))
            return
        if not model.is_smooth:
            self._advance(self._scheme("Radau"))
            return
        first, further = _STIFFNESS_CHECK_STEPS
        self._advance("taylor", first)
        while not self._is_finished:
            if self._is_stiff():
                self._advance(self._scheme("Radau"))
                return
            self._advance("taylor", further)

    def _is_stiff(self) -> bool:
        """Return True if stability limits the steps: a series of order N is stable for about N/e decay times."""
        last = self.runs[-1]
        decay = self._model.decay_rate(self._t, self._y, self._values)
        step = float(last.t[-1] - last.t[-2])
        return decay * step > _STIFF_STEP_DECAY and decay * (self._end - self._t) > _STIFF_TOTAL_DECAY

    def _advance(self, scheme: str, max_steps: int = 0) -> None:
        problem = self._problem
        control: StepControl | None = self._control(scheme, self._y, max_steps)
        h = problem.first_step if not self.runs else None
        end = self._end
        if scheme.startswith("taylor") and h is not None:  # a series chooses its steps: the first one is a run
            control, end = None, min(self._t + h, self._end)
        run = self._model.prepared(scheme).run(
            x0=self._y,
            t0=self._t,
            t_end=end,
            h=h,
            control=control,
            events=self._events(),
            parameters=self._parameters,
            progress=False,
        )
        self.runs.append(run)
        self._t, self._y = float(run.t[-1]), run.x[-1].copy()
        for event in run.events:
            self._counts[int(event.name)] += 1

    def _events(self) -> list[Event] | None:
        """Return the events; occurrences of earlier runs count for terminal events."""
        rules = zip(self._model.event_functions, self._problem.event_rules, self._counts, strict=True)
        return [
            Event(function, name=str(i), direction=direction, terminal=max(terminal - count, 1) if terminal else False)
            for i, (function, (terminal, direction), count) in enumerate(rules)
        ] or None

    # -- schemes and tolerances ---------------------------------------------------------------------------------------
    def _scheme(self, method: str) -> str:
        """Return the scheme of a method."""
        if method in EXPLICIT and self._model.is_smooth:
            return "taylor"
        if method in (*EXPLICIT, *IMPLICIT):
            return "radau-iia-3" if float(self._problem.rtol.min()) > _HIGH_ORDER_RTOL else "radau-iia-5"
        return method

    def _control(self, scheme: str, y: np.ndarray, max_steps: int) -> StepControl:
        """Return the step-size control of a scheme from a state."""
        if scheme.startswith("taylor"):
            # one tolerance relative to the largest entry: no entry has a larger error than by SciPy's rule
            sizes = np.abs(y)
            scale, smallest = max(float(sizes.max()), 1e-300), float(sizes.min())
            if self._problem.rtol.ndim or self._problem.atol.ndim:
                allowed, rtol = (
                    float(np.min(self._problem.rtol * sizes + self._problem.atol)),
                    float(self._problem.rtol.min()),
                )
            else:
                rtol = float(self._problem.rtol)
                allowed = rtol * smallest + float(self._problem.atol)
            low, high = _TAYLOR_TOLERANCES
            tolerance = min(max(min(rtol, allowed / scale), low), high)
            return _step_control(_rounded_down(tolerance), None, self._problem.max_step, max_steps)
        relative, absolute = (
            tuple(np.broadcast_to(value, y.shape).tolist()) for value in (self._problem.rtol, self._problem.atol)
        )
        return _step_control(
            relative, tuple(max(value, 1e-300) for value in absolute), self._problem.max_step, max_steps
        )


@functools.lru_cache(maxsize=256)
def _step_control(
    tolerance: float | tuple[float, ...], absolute: tuple[float, ...] | None, largest: float, max_steps: int
) -> StepControl:
    """Return a step-size control; equal controls share their validated run."""
    return StepControl(tolerance=tolerance, absolute=absolute, largest=largest, most_steps=max_steps)


def joined_rows(runs: Sequence[Result]) -> tuple[np.ndarray, np.ndarray]:
    """Return the times and states of consecutive runs; the first row of a further run is the last one before it."""
    if len(runs) == 1:
        return runs[0].t, runs[0].x
    first, *further = runs
    return (
        np.concatenate([first.t, *(run.t[1:] for run in further)]),
        np.concatenate([first.x, *(run.x[1:] for run in further)]),
    )


def _rounded_down(tolerance: float) -> float:
    """Return the largest quarter power of two below a tolerance, so that similar initial states share their control."""
    return float(2.0 ** (math.floor(4 * math.log2(tolerance)) / 4))
