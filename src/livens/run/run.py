"""A run under way: chunks of steps, what is kept of them, and how it ends."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from livens.engine.controlled import ControlledStepper
from livens.engine.explicit import ExplicitStepper
from livens.engine.fused import FusedStepper
from livens.engine.pivots import SingularMatrixError
from livens.engine.reference import ReferenceStepper
from livens.engine.stepper import Carry, Stepper, Steps, Trouble
from livens.errors import IntegrationError, Interrupted, WriteError
from livens.models.model import InitialState, Model
from livens.results.provenance import bodies
from livens.results.recorder import Recorder
from livens.results.result import Facts, Occurrence, Record, Result, Statistics
from livens.results.variables import ALWAYS, VARIABLES
from livens.run.events import Event, Watch
from livens.run.extremes import Monitor
from livens.run.interrupt import Interrupt
from livens.run.march import pace_of
from livens.run.plan import Task
from livens.run.progress import Progress
from livens.schemes.base import Scheme
from livens.schemes.step import StepEquations

#: One call of the compiled loop takes at most so many steps, and so many numbers (what fits into a core's cache).
_CHUNK_STEPS, _CHUNK_NUMBERS = 4096, 150_000
#: The reference tier is slow: look at the clock and at Ctrl-C more often.
_REFERENCE_STEPS = 32
#: The first pivot order is chosen for the system's own parameters and this step, whatever those of the run.
_TYPICAL_STEP = 2.0**-10


@functools.lru_cache(maxsize=64)
def _equations(model: Model, scheme: Scheme, dropped: tuple[int, ...]) -> StepEquations:
    return scheme.equations(model, dropped)


@functools.lru_cache(maxsize=64)
def _fingerprint(equations: StepEquations) -> str:
    """Two runs with the same fingerprint solve the same equations, written down in the same order."""
    content = equations.newton_function.serialize() + equations.end_function.serialize()
    return hashlib.sha256(content.encode()).hexdigest()


class Run:
    """A run from its first step, or from a checkpoint, to its end."""

    recorder: Recorder
    stepper: Stepper
    carry: Carry

    def __init__(self, task: Task, dropped: tuple[int, ...], events: Sequence[Event] = ()) -> None:
        self.task = task
        self.equations = _equations(task.system, task.scheme, dropped)
        self.layout = self.equations.layout
        self.c = np.concatenate([[task.h, task.t0], task.k])
        self.pace = pace_of(task, self.layout["t"].start if "t" in self.layout else None)
        self.statistics = Statistics()
        self.monitor = Monitor(task.system, task.scheme, task.k, self.layout)
        watched = events or task.system.guards
        self.watch = Watch(events, task.system, self.equations, task.k) if watched else None
        self.events: list[dict[str, Any]] = []  # that happened
        problem = task.problem
        self.facts = Facts(
            scheme=task.scheme.name, h=task.h, t0=task.t0, t_end=task.t_end, every=task.every,
            coordinates=task.system.coordinates, constraint_names=task.system.constraint_names,
            parameters=task.parameters, problem=problem.name if problem else None,
            problem_options=dict(problem.options) if problem else {}, model=_fingerprint(self.equations),
            tier=task.tier, dropped=dropped, stored=self.variables, bodies=bodies(task.system),
            algebraic=task.system.algebraic, control=dataclasses.asdict(task.control) if task.control else {},
        )  # fmt: skip

    @property
    def variables(self) -> tuple[str, ...]:
        """What the rows of this run can hold."""
        fictive = ("fictive_time",) if "t" in self.layout else ()
        return tuple(name for name in VARIABLES if name in self.layout or name in (*ALWAYS, *fictive))

    # -- beginning ----------------------------------------------------------------------------------------------------
    def begin(self, initial: InitialState) -> None:
        """Get ready for the first step."""
        task = self.task
        memory = task.scheme.memory(task.system, initial.values, task.k, initial.t, task.h)
        z = self.layout.vector({**initial.values, **memory})
        x = self.equations.guess_function(z, self.c).full().ravel()
        self.carry = Carry.start(z, x)
        self.pace.begin(initial.t)
        self._make_stepper(z, x)

    def _make_stepper(self, z: np.ndarray, x: np.ndarray) -> None:
        task = self.task
        if task.tier == "reference":
            self.stepper = ReferenceStepper(self.equations)
            return
        if not self.equations.size:
            self.stepper = ExplicitStepper(self.equations)
            return
        try:
            typical = np.concatenate([[_TYPICAL_STEP, task.t0], task.system.parameter_vector()])
            if task.control is not None:
                control = task.control.of(task.scheme, task.h)
                self.stepper = ControlledStepper(self.equations, z, x, self.c, control, task.t_end, typical)
            else:
                self.stepper = FusedStepper(self.equations, z, x, self.c, typical)
        except SingularMatrixError as error:
            raise IntegrationError(
                f"the first step cannot be solved: {error}; {_undetermined(self.equations, x, z, self.c)}. "
                "If this is a singular position, start a little beside it"
            ) from None

    def record_start(self, initial: InitialState) -> None:
        """The initial state is the first row."""
        t, Z = np.array([initial.t]), self.carry.z[None, :]
        self.monitor.look(t, Z)
        rows = self._rows(t, Z, np.zeros(1), np.zeros(1, dtype=np.int64), np.zeros(1))
        self.recorder.add(rows, np.zeros(1, dtype=np.int64))
        self.recorder.save_now_and_then(lambda: self._record("running"))

    def take_up(self, earlier: Record) -> None:
        """Get ready to go on after the last step that a file can vouch for."""
        stored = earlier.checkpoint
        self.carry = Carry(stored["z"], stored["x"], stored["dx"], stored["scale"])
        self.pace.restore(stored)
        self._make_stepper(self.carry.z, self.carry.x[-1])
        if isinstance(self.stepper, FusedStepper):
            self.stepper.order = tuple(map(int, stored["row_order"])), tuple(map(int, stored["column_order"]))
        self.monitor.restore(stored)
        self.statistics, self.events = earlier.statistics, list(earlier.events)
        self.statistics.steps, self.statistics.newton_iterations = self.pace.step, int(stored["newton_iterations"])

    # -- going --------------------------------------------------------------------------------------------------------
    def go(self, progress: bool | None) -> Result:
        """Take all steps that are left."""
        try:
            return self._go(progress)
        except WriteError as error:
            error.result = self.recorder.kept(self.task.system)
            raise
        finally:
            self.recorder.release()

    def _go(self, progress: bool | None) -> Result:
        task, pace = self.task, self.pace
        chunk = max(1, min(_CHUNK_STEPS, _CHUNK_NUMBERS // (self.carry.z.size + self.equations.size)))
        if task.tier == "reference":
            chunk = _REFERENCE_STEPS
        title = f"{task.problem.name if task.problem else 'livens'} ({task.scheme.name})"
        begun = time.perf_counter() - self.statistics.wall_s
        _, total, unit = pace.progress()
        if self.watch is not None:
            self.watch.begin(pace.t, self.carry.z)
        with Interrupt() as interrupt, Progress(title, total, progress, unit) as bar:
            while not pace.over():
                first, before = pace.step, pace.t
                steps, t, sizes = pace.take(self.stepper, self.carry, self.c, self._at_most(chunk))
                stop = self._happened(steps, t)
                if stop is not None:
                    self._take_until(stop[0], steps, t, sizes, first)
                    self._reach(stop[1], float(t[stop[0] - 1]) if stop[0] else before)
                    self.statistics.wall_s = time.perf_counter() - begun
                    return self._stopped(stop[1])
                self._take(steps, np.arange(first + 1, first + steps.taken + 1), t, sizes)
                self.statistics.wall_s = time.perf_counter() - begun
                if steps.trouble is not None:
                    raise self._failure(steps.trouble, float(self.c[0]))
                if self._too_many_steps():
                    raise self._exhausted()
                if interrupt.seen and not pace.over():
                    raise self._interruption()
                bar.update(pace.progress()[0])
                self.recorder.save_now_and_then(lambda: self._record("running"))
            checkpoint, rest = self._checkpoint(), pace.rest()
            last = self._last_step(rest) if rest else None
        self.statistics.wall_s = time.perf_counter() - begun
        if last is not None:
            return self._stopped(last)
        message = f"the last step was shortened to {rest:.6g}" if rest else ""
        return self.recorder.finish(self._record("complete", message, checkpoint), task.system)

    def _happened(self, steps: Steps, t: np.ndarray) -> tuple[int, Occurrence] | None:
        """Note the events in these steps; the one that ends the run, if there is one, and the step it happened in."""
        if self.watch is None:
            return None
        for s, occurrence, terminal in self.watch.look(t, steps, self.c):
            if occurrence.name in self.watch.guards:
                return s, occurrence
            self.events.append(dataclasses.asdict(occurrence))
            if terminal:
                return s, occurrence
        return None

    def _take_until(self, s: int, steps: Steps, t: np.ndarray, sizes: np.ndarray, first: int) -> None:
        """Keep the steps before step s, in which the run is to end."""
        z = steps.Z[s - 1].copy() if s else self.carry.z
        carry = dataclasses.replace(Carry.start(z, steps.X[s].copy()), dx=steps.carry.dx, scale=steps.carry.scale)
        until = dataclasses.replace(
            steps, taken=s, Z=steps.Z[:s], X=steps.X[:s], iterations=steps.iterations[:s], carry=carry
        )
        self._take(until, np.arange(first + 1, first + s + 1), t[:s], sizes[:s])
        self.pace.step = first + s

    def _reach(self, occurrence: Occurrence, t: float) -> None:
        """A shorter step, from t to where the event happened; none to where the model must not go."""
        if self.watch is None or occurrence.name in self.watch.guards or occurrence.t <= t:
            return
        last, size = self.pace.shortened(self.stepper, self.carry, self.c, t, occurrence.t), occurrence.t - t
        if last.trouble is not None:
            raise self._failure(last.trouble, size)
        self._take(last, np.array([Recorder.IRREGULAR]), np.array([occurrence.t]), np.array([size]))

    def _stopped(self, occurrence: Occurrence) -> Result:
        assert self.watch is not None
        if occurrence.name in self.watch.guards:
            message = f"at t = {occurrence.t:.9g} {occurrence.name}"
            raise IntegrationError(message, self.recorder.finish(self._record("failed", message), self.task.system))
        message = f"stopped by the event '{occurrence.name}' at t = {occurrence.t:.9g}"
        return self.recorder.finish(self._record("complete", message), self.task.system)

    def _last_step(self, size: float) -> Occurrence | None:
        """A shorter step, to end where the user said; not in the checkpoint, as a longer run would not take it.

        If an event ends the run before, the step ends there; the event is returned.
        """
        end = np.array([self.task.t_end])
        steps = self.pace.shortened(self.stepper, self.carry, self.c, self.pace.t, self.task.t_end)
        if steps.trouble is not None:
            raise self._failure(steps.trouble, size)
        stop = self._happened(steps, end)
        if stop is not None:
            self._reach(stop[1], self.pace.t)
            return stop[1]
        self._take(steps, np.array([Recorder.IRREGULAR]), end, np.array([size]))
        return None

    def _take(self, steps: Steps, numbers: np.ndarray, t: np.ndarray, sizes: np.ndarray) -> None:
        """Keep what the stepper handed back."""
        statistics, cost = self.statistics, self.stepper.statistics
        self.monitor.look(t, steps.Z)
        statistics.newton_iterations += int(steps.iterations.sum())
        statistics.steps += steps.taken
        statistics.repivots, statistics.reference_steps = cost.repivots, cost.reference_steps
        statistics.rejected = cost.rejected
        fictive = numbers * self.task.h
        if len(numbers) and numbers[0] == Recorder.IRREGULAR:
            fictive = np.array([self.pace.step * self.task.h + self.c[0]])
        self.recorder.add(self._rows(t, steps.Z, sizes, steps.iterations, fictive), numbers)
        self.carry = steps.carry

    def _rows(
        self, t: np.ndarray, Z: np.ndarray, sizes: np.ndarray, iterations: np.ndarray, fictive: np.ndarray
    ) -> dict[str, np.ndarray]:
        rows = {"t": t, "step_size": sizes, "newton_iterations": iterations, "fictive_time": fictive}
        for name in self.layout.sizes:
            if name in VARIABLES and name != "t":
                part = self.layout[name]
                rows[name] = Z[:, part] if VARIABLES[name].axis else Z[:, part.start]
        return rows

    # -- ending -------------------------------------------------------------------------------------------------------
    def _checkpoint(self) -> dict[str, Any]:
        order = self.stepper.order if isinstance(self.stepper, FusedStepper) else ((), ())
        return {
            **self.pace.state(), "rows": self.recorder.regular_rows,
            "newton_iterations": self.statistics.newton_iterations,
            "z": self.carry.z, "x": self.carry.x, "dx": self.carry.dx, "scale": self.carry.scale,
            "row_order": np.array(order[0], dtype=np.int64), "column_order": np.array(order[1], dtype=np.int64),
            **self.monitor.state(),
        }  # fmt: skip

    def _record(self, status: str, message: str = "", checkpoint: dict[str, Any] | None = None) -> Record:
        return Record(
            self.facts, self.monitor.summary(), self.statistics, status, message, checkpoint or self._checkpoint(),
            self.events,
        )  # fmt: skip

    def _failure(self, trouble: Trouble, h: float) -> IntegrationError:
        t = self.pace.t
        where = f"from t = {t:.9g} to {t + h:.9g}" if not self.task.scheme.fictive else f"from t = {t:.9g}"
        worst = (
            f"; the worst equation is the {trouble.equation} with residual {trouble.residual:.3g} (round-off allows "
            f"{trouble.floor:.1g})"
            if trouble.residual
            else ""
        )
        message = (
            f"the step {where} failed: {trouble.reason}{worst}. "
            f"Try a smaller step than h = {h:g}; if that does not help, the model may be singular or not smooth there"
        )
        return IntegrationError(message, self.recorder.finish(self._record("failed", message), self.task.system))

    def _at_most(self, chunk: int) -> int:
        """The steps of the next chunk."""
        control = self.task.control
        return min(chunk, control.most_steps - self.pace.step) if control and control.most_steps else chunk

    def _too_many_steps(self) -> bool:
        control = self.task.control
        return control is not None and 0 < control.most_steps <= self.pace.step and not self.pace.over()

    def _exhausted(self) -> IntegrationError:
        message = f"the run took {self.pace.step} steps, the most it was allowed, and got to t = {self.pace.t:.9g}"
        return IntegrationError(message, self.recorder.finish(self._record("failed", message), self.task.system))

    def _interruption(self) -> Interrupted:
        message = f"stopped by the user at t = {self.pace.t:.9g}"
        return Interrupted(message, self.recorder.finish(self._record("interrupted", message), self.task.system))


def _undetermined(e: StepEquations, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> str:
    """Which unknowns a singular Jacobian leaves open, in words."""
    values = e.newton_function(x, z, c)[1].full().ravel()
    if not np.all(np.isfinite(values)):
        return "the derivatives of the model are not finite at the initial values"
    matrix = np.zeros((e.size, e.size))
    matrix[e.rows, e.columns] = values
    direction = np.abs(np.linalg.svd(matrix)[2][-1])
    names = [e.row_names[i] for i in np.flatnonzero(direction > 0.3 * direction.max())[:4]]
    return f"the system does not determine what belongs to: {', '.join(names)}"
