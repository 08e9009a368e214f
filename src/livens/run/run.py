"""Driver of a run: chunks of steps, step observers, events, checkpoints and termination."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from livens.engine.compiled import CompiledStep
from livens.engine.steps import Carry, Steps, Trouble, step_constants
from livens.errors import InputError, IntegrationError, Interrupted, LivensError, WriteError
from livens.models.model import InitialState
from livens.results.checkpoint import Checkpoint
from livens.results.record import Facts, Occurrence, Record, Statistics
from livens.results.recorder import Recorder
from livens.results.result import Result
from livens.run.actions import act
from livens.run.advice import hidden_constraints_left, too_long_for_expensive_forces
from livens.run.beginning import beginning, chunk_of, stepper_of
from livens.run.events import Event, settling
from livens.run.extremes import Extremes
from livens.run.interrupt import Interrupt
from livens.run.march import march_of
from livens.run.plan import Plan
from livens.run.progress import Progress
from livens.run.sampling import Sampling
from livens.run.watch import Watch

#: Occurrences of an acting event within one step after which the run fails as an event loop.
_OFTEN = 20
#: Counters stored in checkpoints, so that a resumed run continues counting.
_COUNTED = ("newton_iterations", "steps", "repivots", "reference_steps")


class Listener(Protocol):
    """Observer of the accepted steps of a run.

    Its checkpoint is stored under its name and is sufficient to continue as if the run had never been interrupted.
    """

    name: str

    def begin(self, carry: Carry) -> None:
        """Observe the initial state."""
        ...

    def look(self, steps: Steps, regular: bool = True) -> None:
        """Observe accepted steps; steps that are not `regular` are final steps of the run."""
        ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, stored: dict[str, Any]) -> None: ...


#: Callback between chunks of steps. Receives a function that returns the partial result; returns False to stop the run.
Onlooker = Callable[[Callable[[], Result]], bool]


class Run:
    """Run from an initial state, or from a checkpoint, to its end."""

    def __init__(
        self,
        plan: Plan,
        compiled: CompiledStep,
        facts: Facts,
        recorder: Recorder,
        *,
        initial: InitialState | None = None,
        earlier: Record | None = None,
        events: Sequence[Event] = (),
        progress: bool | None = None,
        onlooker: Onlooker | None = None,
    ) -> None:
        """Prepare a run from an initial state, or the continuation of an `earlier` one."""
        if earlier is not None:
            plan = _switched(plan, _kept_events(earlier))
        if plan.scheme.fictive and any(isinstance(event, Event) and event.action is not None for event in events):
            raise InputError(
                f"scheme '{plan.scheme.name}' uses fixed steps in fictive time: events with actions are not supported"
            )
        self._plan, self._compiled, self._facts = plan, compiled, facts
        self._recorder, self._extremes = recorder, Extremes(compiled, plan.k)
        self._listeners: tuple[Listener, ...] = (self._extremes, recorder)
        self._watch = Watch(events, compiled, plan.k, plan.tier) if events or compiled.model.guards else None
        self._march = march_of(plan, compiled.layout)
        controllers = getattr(plan.model, "controllers", ())
        self._sampling = Sampling(plan, controllers, compiled.layout) if controllers else None
        self._progress, self._onlooker = progress, onlooker
        self._ended = False  # True if a terminal event ended the run
        self._before_last: Checkpoint | None = None  # before the final steps: a longer run resumes here
        self._acts = any(getattr(event, "action", None) is not None for event in events)
        self._safe: Checkpoint | None = None  # before an action: a run with a failed action resumes here
        self._last: Steps | None = None  # final steps to t_end
        self._last_stop: Occurrence | None = None  # terminal event in the final steps
        if earlier is None:
            assert initial is not None
            self.statistics, self._events = Statistics(), []
            self._carry, self._stepper = beginning(plan, compiled, initial)
            for listener in self._listeners:
                listener.begin(self._carry)
        else:
            self.statistics, self._events = earlier.statistics, _kept_events(earlier)
            self._restore(earlier.checkpoint)
        if self._watch is not None:
            self._watch.begin(self._carry)
            if earlier is not None and "events" in earlier.checkpoint:
                self._watch.restore(earlier.checkpoint["events"], earlier.facts.events)
        self._before = self.statistics.repivots, self.statistics.reference_steps

    # -- checkpoints --------------------------------------------------------------------------------------------------
    def _checkpoint(self) -> Checkpoint:
        """Return the state of everything that is carried between steps."""
        return {
            "carry": self._carry.state(),
            "march": self._march.state(),
            "stepper": self._stepper.state(),
            "run": {"counts": [*(getattr(self.statistics, name) for name in _COUNTED), len(self._events), self._ended]},
            **{listener.name: listener.state() for listener in self._listeners},
            **({} if self._watch is None else {self._watch.name: self._watch.state()}),
            **({} if self._sampling is None else {self._sampling.name: self._sampling.state()}),
        }

    def _restore(self, stored: Checkpoint) -> None:
        self._carry = Carry.restored(stored["carry"])
        self._march.restore(stored["march"])
        self._stepper = stepper_of(self._plan, self._compiled, self._carry)
        if stored.get("stepper"):
            self._stepper.restore(stored["stepper"])
        for listener in self._listeners:
            listener.restore(stored[listener.name])
        if self._sampling is not None:
            self._sampling.restore(stored[self._sampling.name])
        if "counts" in stored["run"]:
            *counted, _, _ = map(int, stored["run"]["counts"])
            for name, count in zip(_COUNTED, counted, strict=True):
                setattr(self.statistics, name, count)
        else:  # file of an earlier version
            self.statistics.steps = self._march.step
            self.statistics.newton_iterations = int(stored["run"]["newton_iterations"])

    # -- integration --------------------------------------------------------------------------------------------------
    def go(self) -> Result:
        """Take all remaining steps and return the result."""
        try:
            return self._go()
        except WriteError as error:
            error.result = self._recorder.stored_result(self._plan.model)
            raise
        finally:
            self._recorder.release()
            self._stepper.release()

    def _go(self) -> Result:
        march, statistics = self._march, self.statistics
        begun, compiled_s = time.perf_counter() - statistics.wall_s, statistics.compile_s

        def clock() -> None:
            """Update the timers; code compiled during the run counts as compile time."""
            late = self._stepper.cost.compile_s
            statistics.wall_s, statistics.compile_s = time.perf_counter() - begun - late, compiled_s + late

        self._recorder.save_now_and_then(lambda: self._record("running"))
        _, total, unit = march.progress(self._carry)
        with Interrupt() as interrupt, Progress(self._plan.title, total, self._progress, unit) as bar:
            while not self._over():
                self._sample()
                if self._acts:  # if an action fails, a resumed run must detect its event again
                    self._safe = self._checkpoint()
                with self._in_order():
                    steps = march.take(self._stepper, self._carry, self._chunk())
                stop = self._look(steps)
                clock()
                if stop is not None:
                    if not self._act(stop):
                        return self._stopped(stop)
                    self._recorder.save_now_and_then(lambda: self._record("running"))
                    continue
                self._check_energy()  # first: failures after a blow-up are caused by it
                if steps.trouble is not None:
                    raise self._failure(steps.trouble)
                if self._too_many_steps():
                    return self._exhausted()
                if interrupt.seen and not march.over(self._carry):
                    raise self._interruption()
                if not march.over(self._carry):
                    interrupt.arm()  # not for short runs, where it would cost more than the run
                    bar.update(march.progress(self._carry)[0])
                    if self._onlooker is not None and not self._onlooker(self._so_far):
                        raise self._interruption()
                if not (march.over(self._carry) and self._recorder.keeps_back):  # the pending row of a finished
                    self._recorder.save_now_and_then(lambda: self._record("running"))  # run is written at its end
        clock()
        last, stop = self._last, self._last_stop
        if stop is not None:
            return self._stopped(stop)
        if last is None:
            return self._finished("complete", "")
        self._check_energy()
        if last.trouble is not None:
            raise self._failure(last.trouble)
        shortened = self._plan.control is None
        return self._finished("complete", f"the last step was shortened to {last.sizes[-1]:.6g}" if shortened else "")

    def _sample(self) -> None:
        """Sample the controllers at the state before the next steps."""
        if self._sampling is not None:
            with self._in_order():
                self._carry = self._sampling.sample(self._carry, self._march.step)

    def _over(self) -> bool:
        """Take the final, shortened steps once no regular step is left. Return True when the run is finished."""
        if not self._march.over(self._carry):
            return False
        if self._before_last is None:  # a longer run would not take the final steps
            self._before_last = self._checkpoint()
        self._sample()
        with self._in_order():
            self._last = self._march.last(self._stepper, self._carry)
        self._last_stop = self._look(self._last, regular=False) if self._last is not None else None
        if self._last_stop is None or not self._act(self._last_stop):
            return True
        return self._over()

    def _act(self, first: Occurrence) -> bool:
        """Apply the actions of all events at this time, in order. Return True if the run continues."""
        watch = self._watch
        if watch is None or self._is_guard(first):
            return False
        here = [event for event in self._events if abs(event["t"] - first.t) <= self._same_time(first.t)]
        acting = [event for event in here if watch.event(event["name"]).action is not None]
        if not acting:
            return False
        self._recorder.keep_tail()
        with self._in_order(self._safe):
            self._let_act(watch, acting)
            cost, self._stepper = self._stepper.cost, stepper_of(self._plan, self._compiled, self._carry)
        self._stepper.cost = cost
        self._recorder.jump(self._carry)
        self._march.rebase(self._carry)
        watch.stopped_at(self._carry, [event["name"] for event in here])
        return not any(watch.event(event["name"]).terminal for event in here)

    def _let_act(self, watch: Watch, acting: Sequence[dict[str, Any]]) -> None:
        """Update state and parameters by the actions of these events."""
        for event in acting:
            often = [other["t"] for other in self._events if other["name"] == event["name"]][-_OFTEN:]
            if (
                len(often) == _OFTEN
                and often[-1] - often[0] < self._plan.h
                and not settling(watch.event(event["name"]))
            ):
                raise self._happens_again(event["name"])
            before, plan = self._carry, self._plan
            made = act(
                watch.event(event["name"]), event["name"], plan.model, self._compiled, before.t, before.z,
                plan.parameters, plan.h, watch.events,
            )  # fmt: skip
            event["changes"] = made.said
            self._plan = _switched(plan, [event])
            c = step_constants(plan.h, before.t, self._plan.k)
            self._carry = Carry.start(before.t, made.z, self._compiled.first_guess(made.z, c, plan.tier))
            self._extremes.jump(before, self._carry, self._plan.k)
        watch.k = self._plan.k

    @contextlib.contextmanager
    def _in_order(self, safe: Checkpoint | None = None) -> Iterator[None]:
        """Finish the run as failed if an exception occurs, also in user functions; then re-raise the exception.

        The run can be resumed from its current state, or from the given checkpoint.
        """
        try:
            yield
        except Exception as error:
            if getattr(error, "result", None) is None:
                self._before_last = safe if self._before_last is None else self._before_last
                words = str(error) if isinstance(error, LivensError) else f"{type(error).__name__}: {error}"
                result = self._finished("failed", words)
                if isinstance(error, LivensError):
                    error.result = result
            raise

    def _same_time(self, t: float) -> float:
        """Return the tolerance within which times of events are equal."""
        return 1e-12 * max(abs(t), self._plan.t_end - self._plan.t0)

    def _chunk(self) -> int:
        """Return the largest number of steps of the next chunk."""
        plan = self._plan
        chunk = chunk_of(plan.tier, self._carry.z.size + self._carry.x.shape[1])
        if self._sampling is not None:
            chunk = min(chunk, self._sampling.room(self._march.step))
        most = plan.control.most_steps if plan.control else 0
        return min(chunk, most - self._march.step) if most else chunk

    def _look(self, steps: Steps, regular: bool = True) -> Occurrence | None:
        """Pass the steps to the observers up to an event that stops or acts; return this event, or None."""
        stop, upto = None, 0
        for s, occurrence in self._watch.found(steps) if self._watch is not None else ():
            assert self._watch is not None
            guard, event = self._is_guard(occurrence), self._watch.event(occurrence.name)
            if stop is not None:  # simultaneous events
                if occurrence.t > stop.t + self._same_time(stop.t) or guard:
                    break
                self._events.append(dataclasses.asdict(occurrence))
                continue
            if not guard:
                self._events.append(dataclasses.asdict(occurrence))
            if guard or event.terminal or event.action is not None:
                stop = occurrence
                upto = s
        if stop is not None:
            if regular:
                self._march.back(steps, upto)
            steps = steps.until(upto)
        if stop is None and self._watch is not None and self._watch.lost is not None:
            raise self._lost_event(steps, regular, *self._watch.lost)
        self._take(steps, regular)
        if stop is not None and not self._is_guard(stop) and stop.t > self._carry.t:
            last = self._march.shortened(self._stepper, self._carry, stop.t)
            if last.trouble is not None:
                raise self._failure(last.trouble)
            self._take(last, regular=False)
        return stop

    def _lost_event(self, steps: Steps, regular: bool, good: int, name: str) -> IntegrationError:
        """Accept the first `n_valid` steps and return the error about an event function that is NaN in the next one."""
        if regular:
            self._march.back(steps, good)
        there = float(steps.times[good + 1])
        self._take(steps.until(good), regular)
        message = (
            f"the function of event '{name}' is NaN between t = {self._carry.t:.9g} and {there:.9g}: zero crossings "
            "cannot be detected"
        )
        return IntegrationError(message, self._finished("failed", message))

    def _take(self, steps: Steps, regular: bool) -> None:
        self._extremes.look(steps, regular)
        lost = self._extremes.lost()
        if lost:  # the steps before are valid
            good = self._extremes.back(steps)
            if regular:
                self._march.back(steps, good)
            size = float(steps.sizes[good]) if good < steps.taken else 0.0
            trouble = Trouble(0.0, 0.0, lost, f"the {lost} is no longer finite", size)
            steps = steps.until(good, trouble)
            self._extremes.look(steps, regular)
        self._recorder.look(steps, regular)
        statistics, cost = self.statistics, self._stepper.cost
        statistics.newton_iterations += int(np.add.reduce(steps.iterations))
        statistics.steps += steps.taken
        statistics.count_forces(self._plan.scheme)
        repivots, reference_steps = self._before
        statistics.repivots = repivots + cost.repivots
        statistics.reference_steps = reference_steps + cost.reference_steps
        statistics.rejected, statistics.unsolved = cost.rejected, cost.unsolved
        self._carry = steps.carry
        if lost:
            self._check_energy()
            raise self._failure(trouble)

    # -- termination --------------------------------------------------------------------------------------------------
    def _record(self, status: str, message: str = "") -> Record:
        return Record(
            self._facts,
            self._extremes.summary_later(),  # type: ignore[arg-type]  # evaluated lazily by the record
            self.statistics,
            status,
            message,
            self._checkpoint() if self._before_last is None else self._before_last,
            self._events,
        )

    def _so_far(self) -> Result:
        """Return the result with the rows in memory; the arrays are read-only views, valid until the next steps."""
        return Result(self._recorder.in_memory(), self._record("running"), system=self._plan.model)

    def _finished(self, status: str, message: str) -> Result:
        result = self._recorder.finish(self._record(status, message), self._plan.model)
        result._scheme = self._plan.scheme
        return result

    def _is_guard(self, occurrence: Occurrence) -> bool:
        return self._watch is not None and occurrence.name in self._watch.guards

    def _stopped(self, occurrence: Occurrence) -> Result:
        """Return the result of a run ended by a terminal event; it can be resumed from the state of the event."""
        if self._is_guard(occurrence):
            message = f"at t = {occurrence.t:.9g} {occurrence.name}"
            raise IntegrationError(message, self._finished("failed", message))
        self._recorder.keep_tail()
        self._march.rebase(self._carry)
        self._ended, self._before_last = True, None
        if self._watch is not None:
            here = [event["name"] for event in self._events if event["t"] == occurrence.t]
            self._watch.stopped_at(self._carry, here)
        return self._finished("complete", f"stopped by the event '{occurrence.name}' at t = {occurrence.t:.9g}")

    def _failure(self, trouble: Trouble) -> IntegrationError:
        t, h = self._carry.t, trouble.h
        where = f"from t = {t:.9g} to {t + h:.9g}" if h and not self._plan.scheme.fictive else f"from t = {t:.9g}"
        worst = (
            f"; the worst equation is the {trouble.equation} with residual {trouble.residual:.3g} (round-off bound "
            f"{trouble.floor:.1g})"
            if trouble.residual
            else ""
        )
        message = f"the step {where} failed: {trouble.reason}{worst}. {self._advice(h)}"
        return IntegrationError(message, self._finished("failed", message))

    def _advice(self, h: float) -> str:
        if not h:
            return "The solution may end there, as in a collision, or the model may not be smooth there"
        plan, layout = self._plan, self._compiled.layout
        left = hidden_constraints_left(plan, layout, self._carry, self._extremes.summary(), self.statistics.steps)
        too_long = too_long_for_expensive_forces(plan)
        return (
            left
            or too_long
            or f"Try a smaller step than h = {h:g}; if that does not help, the model may be singular or not smooth "
            "there"
        )

    def _happens_again(self, name: str) -> IntegrationError:
        message = (
            f"the event '{name}' occurred {_OFTEN} times within one step before "
            f"t = {self._carry.t:.9g}. Make it terminal, or let its action bring the motion to rest"
        )
        return IntegrationError(message, self._finished("failed", message))

    def _check_energy(self) -> None:
        """Raise an error if the energy has blown up."""
        reason = self._extremes.exploded()
        if reason:
            too_long = too_long_for_expensive_forces(self._plan)
            advice = too_long or f"Try a smaller step than h = {self._plan.h:g}, or a scheme that is stable for it"
            message = f"the run blew up before t = {self._carry.t:.9g}: {reason}. {advice}"
            raise IntegrationError(message, self._finished("failed", message))

    def _too_many_steps(self) -> bool:
        control, march = self._plan.control, self._march
        return control is not None and 0 < control.most_steps <= march.step and not march.over(self._carry)

    def _exhausted(self) -> Result:
        step, t = self._march.step, self._carry.t
        message = f"the run reached the limit of {step} steps at t = {t:.9g}"
        return self._finished("interrupted", message)

    def _interruption(self) -> Interrupted:
        message = f"stopped by the user at t = {self._carry.t:.9g}"
        return Interrupted(message, self._finished("interrupted", message))


def _kept_events(earlier: Record) -> list[dict[str, Any]]:
    """Return the events before the checkpoint, without those of the final steps."""
    counts = earlier.checkpoint["run"].get("counts")
    return list(earlier.events) if counts is None else list(earlier.events)[: int(counts[-2])]


def _switched(plan: Plan, events: Sequence[Mapping[str, Any]]) -> Plan:
    """Return the plan with the parameters changed by the actions of these events."""
    changes = [event.get("changes", {}).get("parameters", {}) for event in events]
    changed = {name: value for change in changes for name, value in change.items()}
    return dataclasses.replace(plan, parameters={**plan.parameters, **changed}) if changed else plan
