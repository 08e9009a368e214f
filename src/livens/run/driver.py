"""Driver of a run: chunks of steps, step observers, events, checkpoints and termination."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from livens.engine.compiled_step import CompiledStep
from livens.engine.stepper import IntegratorState, StepChunk, StepFailure, step_inputs
from livens.errors import InputError, IntegrationError, Interrupted, LivensError, WriteError
from livens.models.base import InitialState
from livens.results.checkpoint import Checkpoint
from livens.results.record import EventRecord, RunInfo, RunRecord, Statistics
from livens.results.recorder import Recorder
from livens.results.result import Result
from livens.run.drift_monitor import DriftMonitor, varied_parameters
from livens.run.events.actions import apply_action
from livens.run.events.detection import EventDetector
from livens.run.events.event import Event, ModelEvent, may_accumulate
from livens.run.failure_hints import hint_explicit_stability, hint_velocity_drift
from livens.run.held_parameters import HeldParameters
from livens.run.interrupt import Interrupt
from livens.run.plan import Plan
from livens.run.progress import Progress
from livens.run.sampled_control import SampledControllers, SamplingStepper
from livens.run.startup import chunk_size, make_stepper, start_integration
from livens.run.step_control import step_limit_message
from livens.run.stepping import make_stepping
from livens.run.tunnelling import TunnellingMonitor

#: Occurrences of an acting event within one step after which the run fails as an event loop.
_MAX_EVENTS_PER_STEP = 20
#: Counters stored in checkpoints, so that a resumed run continues counting.
_CHECKPOINTED_COUNTERS = ("newton_iterations", "steps", "repivots", "reference_steps")


class StepObserver(Protocol):
    """Observer of the accepted steps of a run.

    Its checkpoint is stored under its name and is sufficient to continue as if the run had never been interrupted.
    """

    name: str

    def start(self, state: IntegratorState) -> None:
        """Observe the initial state."""
        ...

    def observe(self, steps: StepChunk, regular: bool = True) -> None:
        """Observe accepted steps; steps that are not `regular` are final steps of the run."""
        ...

    def checkpoint(self) -> dict[str, Any]: ...

    def restore(self, stored: dict[str, object]) -> None: ...


#: Largest number of steps between two samples up to which steps are taken one by one, and of steps between two outputs.
_MAX_STEPS_ONE_BY_ONE, _MAX_SAMPLED_CHUNK = 4, 512
#: Callback between chunks of steps. Receives a function that returns the partial result; returns False to stop the run.
RunCallback = Callable[[Callable[[], Result]], bool]


class Run:
    """Run from an initial state, or from a checkpoint, to its end."""

    def __init__(
        self,
        plan: Plan,
        compiled: CompiledStep,
        info: RunInfo,
        recorder: Recorder,
        *,
        initial: InitialState | None = None,
        earlier: RunRecord | None = None,
        events: Sequence[Event] = (),
        progress: bool | None = None,
        callback: RunCallback | None = None,
    ) -> None:
        """Prepare a run from an initial state, or the continuation of an `earlier` one."""
        if earlier is not None:
            plan = _with_event_parameters(plan, _events_before_checkpoint(earlier))
        if plan.scheme.fictive and any(isinstance(event, Event) and event.action is not None for event in events):
            raise InputError(
                f"scheme '{plan.scheme.name}' uses fixed steps in fictive time: events with actions are not supported"
            )
        self._plan, self._compiled, self._info = plan, compiled, info
        self._recorder, self._monitor = (
            recorder,
            DriftMonitor(compiled, plan.k, plan.tier, varied_parameters(plan), h=plan.h),
        )
        self._observers: tuple[StepObserver, ...] = (self._monitor, recorder)
        self._event_detector = (
            EventDetector(events, compiled, plan.k, plan.tier) if events or compiled.model.guards else None
        )
        pairs = getattr(plan.model, "swept_pairs", ())
        self._tunnelling = TunnellingMonitor(pairs, compiled.layout["q"]) if pairs else None
        self._stepping = make_stepping(plan, compiled.layout)
        controllers = getattr(plan.model, "controllers", ())
        self._controllers = SampledControllers(plan, controllers, compiled.layout) if controllers else None
        has_held = plan.inputs is not None or compiled.model.angle_branches is not None
        self._held = HeldParameters(plan, compiled) if has_held else None
        self._progress, self._callback = progress, callback
        self._force_counts = compiled.force_counts()  # before the run
        self._ended_by_event = False  # True if a terminal event ended the run
        self._resume_point: Checkpoint | None = None  # before the final steps: a longer run resumes here
        self._has_actions = any(getattr(event, "action", None) is not None for event in events)
        self._pre_action_checkpoint: Checkpoint | None = (
            None  # before an action: a run with a failed action resumes here
        )
        self._final_steps: StepChunk | None = None  # final steps to t_end
        self._terminal_event: EventRecord | None = None  # terminal event in the final steps
        if earlier is None:
            assert initial is not None
            self.statistics, self._events = Statistics(), []
            self._state, self._stepper = start_integration(plan, compiled, initial)
            for listener in self._observers:
                listener.start(self._state)
        else:
            self.statistics, self._events = earlier.statistics, _events_before_checkpoint(earlier)
            self._restore(earlier.checkpoint)
        if self._event_detector is not None:
            self._event_detector.start_from(self._state)
            if earlier is not None and "events" in earlier.checkpoint:
                self._event_detector.restore(earlier.checkpoint["events"], earlier.info.events)
        self._initial_counts = self.statistics.repivots, self.statistics.reference_steps
        if self._force_counts is not None:
            self._force_counts -= self.statistics.force_evaluations, self.statistics.force_jacobians

    # -- checkpoints --------------------------------------------------------------------------------------------------
    def _checkpoint(self) -> Checkpoint:
        """Return the state of everything that is carried between steps."""
        return {
            "carry": self._state.to_checkpoint(),
            "march": self._stepping.checkpoint(),
            "stepper": self._stepper.checkpoint(),
            "run": {
                "counts": [
                    *(getattr(self.statistics, name) for name in _CHECKPOINTED_COUNTERS),
                    len(self._events),
                    self._ended_by_event,
                ]
            },
            **{listener.name: listener.checkpoint() for listener in self._observers},
            **({} if self._event_detector is None else {self._event_detector.name: self._event_detector.checkpoint()}),
            **({} if self._controllers is None else {self._controllers.name: self._controllers.checkpoint()}),
            **({} if self._held is None else {self._held.name: self._held.checkpoint()}),
        }

    def _restore(self, stored: Checkpoint) -> None:
        self._state = IntegratorState.from_checkpoint(stored["carry"])
        self._stepping.restore(stored["march"])
        self._stepper = make_stepper(self._plan, self._compiled, self._state)
        if stored.get("stepper"):
            self._stepper.restore(stored["stepper"])
        for listener in self._observers:
            listener.restore(stored[listener.name])
        if self._controllers is not None:
            self._controllers.restore(stored[self._controllers.name])
        if self._held is not None and self._held.name in stored:
            self._held.restore(stored[self._held.name])
            if self._held.has_started:
                self._set_parameters(self._held.last)
        if "counts" in stored["run"]:
            *counts, _, _ = map(int, stored["run"]["counts"])
            for name, count in zip(_CHECKPOINTED_COUNTERS, counts, strict=True):
                setattr(self.statistics, name, count)
        else:  # file of an earlier version
            self.statistics.steps = self._stepping.n_steps
            self.statistics.newton_iterations = int(stored["run"]["newton_iterations"])

    # -- integration --------------------------------------------------------------------------------------------------
    def integrate(self) -> Result:
        """Take all remaining steps and return the result."""
        try:
            return self._integrate()
        except WriteError as error:
            error.result = self._recorder.load_result(self._plan.model)
            raise
        finally:
            self._recorder.release()
            self._stepper.close()

    def _integrate(self) -> Result:
        stepping, statistics = self._stepping, self.statistics
        t_start, compiled_s = time.perf_counter() - statistics.wall_s, statistics.compile_s

        def update_times() -> None:
            """Update the timers; code compiled during the run counts as compile time."""
            late_compile_s = self._stepper.statistics.compile_s
            statistics.wall_s, statistics.compile_s = (
                time.perf_counter() - t_start - late_compile_s,
                compiled_s + late_compile_s,
            )

        self._recorder.flush_if_due(lambda: self._record("running"))
        _, total, unit = stepping.progress(self._state)
        with Interrupt() as interrupt, Progress(self._plan.title, total, self._progress, unit) as bar:
            while not self._take_final_steps_if_due():
                sampling = self._take_sampled_steps()
                if sampling is None:
                    self._sample_controllers()
                if self._has_actions:  # if an action fails, a resumed run must detect its event again
                    self._pre_action_checkpoint = self._checkpoint()
                with self._fail_on_exception():
                    steps = sampling or stepping.advance(self._stepper, self._state, self._chunk_size())
                if self._held is not None:
                    n_valid = self._held.n_valid(steps, self._plan.k)
                    if n_valid < steps.n_steps:
                        stepping.rollback(steps, n_valid)
                        steps = steps.truncated(n_valid)
                stop = self._process_chunk(steps)
                update_times()
                if stop is not None:
                    if not self._handle_event(stop):
                        return self._terminal_result(stop)
                    self._recorder.flush_if_due(lambda: self._record("running"))
                    continue
                self._check_blow_up()  # first: failures after a blow-up are caused by it
                if steps.failure is not None:
                    raise self._step_failure_error(steps.failure)
                if self._step_limit_reached():
                    return self._step_limit_result()
                if interrupt.requested and not stepping.is_finished(self._state):
                    raise self._interrupted_error()
                if not stepping.is_finished(self._state):
                    interrupt.install()  # not for short runs, where it would cost more than the run
                    bar.update(stepping.progress(self._state)[0])
                    if self._callback is not None and not self._callback(self._partial_result):
                        raise self._interrupted_error()
                if not (
                    stepping.is_finished(self._state) and self._recorder.has_pending_row
                ):  # the pending row of a finished
                    self._recorder.flush_if_due(lambda: self._record("running"))  # run is written at its end
        update_times()
        final_steps, stop = self._final_steps, self._terminal_event
        if stop is not None:
            return self._terminal_result(stop)
        if final_steps is None:
            return self._finish("complete", "")
        self._check_blow_up()
        if final_steps.failure is not None:
            raise self._step_failure_error(final_steps.failure)
        shortened = self._plan.control is None
        return self._finish(
            "complete", f"the last step was shortened to {final_steps.step_sizes[-1]:.6g}" if shortened else ""
        )

    def _set_parameters(self, k: np.ndarray) -> None:
        """Use other parameter values from the current state on."""
        changes_energy = self._plan.inputs is not None and not self._plan.model.inputs.keys() >= {
            *self._plan.inputs.values
        }
        self._plan = dataclasses.replace(self._plan)
        self._plan.__dict__["k"] = k
        self._stepper.set_parameters(k)
        self._stepping.set_parameters(k)
        if changes_energy and self._monitor.has_started:
            self._monitor.apply_jump(self._state, self._state, k)
        self._monitor.k = k
        if self._event_detector is not None:
            self._event_detector.k = k

    def _sample_controllers(self) -> None:
        """Sample the controllers, and update inputs and branches of angles, at the state before the next steps."""
        if self._held is not None:
            self._state, k = self._held.updated(self._state, self._plan.k)
            if k is not self._plan.k:
                self._set_parameters(k)
        if self._controllers is not None:
            with self._fail_on_exception():
                self._state = self._controllers.sample(self._state, self._stepping.n_steps)

    def _take_sampled_steps(self) -> StepChunk | None:
        """Take steps with a sample of the controllers between them; None if the next step needs the general loop."""
        controllers = self._controllers
        if controllers is None or self._held is not None or self._event_detector is not None:
            return None
        if controllers.shortest_hold > _MAX_STEPS_ONE_BY_ONE or not self._stepper.takes_single_steps:
            return None
        stepper = SamplingStepper(self._stepper, controllers, self._compiled.layout, self._stepping.n_steps)
        chunk = chunk_size(self._plan.tier, self._state.z.size + self._state.unknown_history.shape[1])
        with self._fail_on_exception():
            steps = self._stepping.advance(stepper, self._state, min(chunk, _MAX_SAMPLED_CHUNK))
        return steps if steps.n_steps else None

    def _take_final_steps_if_due(self) -> bool:
        """Take the final, shortened steps once no regular step is left. Return True when the run is finished."""
        if not self._stepping.is_finished(self._state):
            return False
        if self._resume_point is None:  # a longer run would not take the final steps
            self._resume_point = self._checkpoint()
        self._sample_controllers()
        has_more = True
        while has_more:
            with self._fail_on_exception():
                self._final_steps = self._stepping.final_steps(self._stepper, self._state)
            self._terminal_event = (
                self._process_chunk(self._final_steps, regular=False) if self._final_steps is not None else None
            )
            has_more = self._stepping.has_more_final_steps and self._terminal_event is None
        if self._terminal_event is None or not self._handle_event(self._terminal_event):
            return True
        return self._take_final_steps_if_due()

    def _handle_event(self, occurrence: EventRecord) -> bool:
        """Apply the actions of all events at this time, in order. Return True if the run continues."""
        detector = self._event_detector
        if detector is None or self._is_guard(occurrence):
            return False
        simultaneous = [
            event for event in self._events if abs(event["t"] - occurrence.t) <= self._time_tolerance(occurrence.t)
        ]
        acting = [event for event in simultaneous if detector.event(event["name"]).action is not None]
        if not acting:
            return False
        self._recorder.commit_tail()
        before_actions = detector.values(self._state)
        with self._fail_on_exception(self._pre_action_checkpoint):
            self._apply_actions(detector, acting)
            cost, self._stepper = self._stepper.statistics, make_stepper(self._plan, self._compiled, self._state)
        self._stepper.statistics = cost
        self._recorder.record_discontinuity(self._state)
        self._stepping.restart_from(self._state)
        detector.restart_at(self._state, [event["name"] for event in simultaneous], before_actions)
        return not any(self._is_terminal(detector.event(event["name"]), event["name"]) for event in simultaneous)

    def _apply_actions(self, detector: EventDetector, acting: Sequence[dict[str, Any]]) -> None:
        """Update state and parameters by the actions of these events."""
        for event in acting:
            recent_times = [other["t"] for other in self._events if other["name"] == event["name"]][
                -_MAX_EVENTS_PER_STEP:
            ]
            if (
                len(recent_times) == _MAX_EVENTS_PER_STEP
                and recent_times[-1] - recent_times[0] < self._plan.h
                and not may_accumulate(detector.event(event["name"]))
            ):
                raise self._event_loop_error(event["name"])
            state_before, plan = self._state, self._plan
            result = apply_action(
                detector.event(event["name"]), event["name"], plan.model, self._compiled,
                state_before.t, state_before.z, plan.parameters, plan.h, detector.events, plan.k,
            )  # fmt: skip
            event["changes"] = result.returned
            self._plan = self._with_event_parameters(plan, event)
            c = step_inputs(plan.h, state_before.t, self._plan.k)
            self._state = IntegratorState.initial(
                state_before.t, result.z, self._compiled.initial_unknowns(result.z, c, plan.tier)
            )
            self._monitor.apply_jump(state_before, self._state, self._plan.k)
        detector.k = self._plan.k
        self._stepping.set_parameters(self._plan.k)

    def _with_event_parameters(self, plan: Plan, event: Mapping[str, object]) -> Plan:
        """Return the plan with the parameters changed by an event; inputs and branches of angles keep their values."""
        changed = _with_event_parameters(plan, [event])
        if changed is plan or self._held is None:
            return changed
        before, after = plan.model.parameter_vector(plan.parameters), changed.k
        changed.__dict__["k"] = np.where(before != after, after, plan.k)
        return changed

    @contextlib.contextmanager
    def _fail_on_exception(self, fallback: Checkpoint | None = None) -> Iterator[None]:
        """Finish the run as failed if an exception occurs, also in user functions; then re-raise the exception.

        The run can be resumed from its current state, or from the given checkpoint.
        """
        try:
            yield
        except Exception as error:
            if getattr(error, "result", None) is None:
                self._resume_point = fallback if self._resume_point is None else self._resume_point
                message = str(error) if isinstance(error, LivensError) else f"{type(error).__name__}: {error}"
                result = self._finish("failed", message)
                if isinstance(error, LivensError):
                    error.result = result
            raise

    def _is_terminal(self, event: Event, name: str) -> bool:
        """Return True if the last occurrence of an event ends the run."""
        count = int(event.terminal)
        return count == 1 or (count > 1 and sum(other["name"] == name for other in self._events) >= count)

    def _time_tolerance(self, t: float) -> float:
        """Return the tolerance within which times of events are equal."""
        return 1e-12 * max(abs(t), self._plan.t_end - self._plan.t0)

    def _chunk_size(self) -> int:
        """Return the largest number of steps of the next chunk."""
        plan = self._plan
        chunk = chunk_size(plan.tier, self._state.z.size + self._state.unknown_history.shape[1])
        if self._controllers is not None:
            chunk = min(chunk, self._controllers.steps_until_sample(self._stepping.n_steps))
        if self._held is not None:
            chunk = min(chunk, self._held.steps_until_change(self._state.t))
        max_steps = plan.control.most_steps if plan.control else 0
        return min(chunk, max_steps - self._stepping.n_steps) if max_steps else chunk

    def _process_chunk(self, steps: StepChunk, regular: bool = True) -> EventRecord | None:
        """Pass the steps to the observers up to an event that stops or acts; return this event, or None."""
        stop, n_accepted = None, 0
        for s, occurrence in self._event_detector.detect(steps) if self._event_detector is not None else ():
            assert self._event_detector is not None
            guard, event = self._is_guard(occurrence), self._event_detector.event(occurrence.name)
            if stop is not None:  # simultaneous events
                if occurrence.t > stop.t + self._time_tolerance(stop.t) or guard:
                    break
                self._events.append(dataclasses.asdict(occurrence))
                continue
            if not guard:
                self._events.append(dataclasses.asdict(occurrence))
            if guard or event.action is not None or self._is_terminal(event, occurrence.name):
                stop = occurrence
                n_accepted = s
        if stop is not None:
            if regular:
                self._stepping.rollback(steps, n_accepted)
            steps = steps.truncated(n_accepted)
        if stop is None and self._event_detector is not None and self._event_detector.undefined is not None:
            raise self._event_undefined_error(steps, regular, *self._event_detector.undefined)
        self._accept(steps, regular)
        if stop is not None and not self._is_guard(stop) and stop.t > self._state.t:
            final_step = self._stepping.step_to(self._stepper, self._state, stop.t)
            if final_step.failure is not None:
                raise self._step_failure_error(final_step.failure)
            self._accept(final_step, regular=False)
        return stop

    def _event_undefined_error(self, steps: StepChunk, regular: bool, n_valid: int, name: str) -> IntegrationError:
        """Accept the first `n_valid` steps and return the error about an event function that is NaN in the next one."""
        if regular:
            self._stepping.rollback(steps, n_valid)
        t_next = float(steps.t_nodes[n_valid + 1])
        self._accept(steps.truncated(n_valid), regular)
        message = (
            f"the function of event '{name}' is NaN between t = {self._state.t:.9g} and {t_next:.9g}: zero crossings "
            "cannot be detected"
        )
        return IntegrationError(message, self._finish("failed", message))

    def _accept(self, steps: StepChunk, regular: bool) -> None:
        self._monitor.observe(steps, regular)
        nonfinite = self._monitor.nonfinite_quantity()
        if nonfinite:  # the steps before are valid
            n_valid = self._monitor.rollback(steps)
            if regular:
                self._stepping.rollback(steps, n_valid)
            size = float(steps.step_sizes[n_valid]) if n_valid < steps.n_steps else 0.0
            failure = StepFailure(0.0, 0.0, nonfinite, f"the {nonfinite} is no longer finite", size)
            steps = steps.truncated(n_valid, failure)
            self._monitor.observe(steps, regular)
        if self._tunnelling is not None:
            self._tunnelling.observe(steps)
        self._recorder.observe(steps, regular)
        statistics, cost = self.statistics, self._stepper.statistics
        statistics.newton_iterations += int(np.add.reduce(steps.newton_iterations))
        statistics.steps += steps.n_steps
        statistics.count_forces(self._plan.scheme, self._compiled.evaluations_since(self._force_counts))
        repivots, reference_steps = self._initial_counts
        statistics.repivots = repivots + cost.repivots
        statistics.reference_steps = reference_steps + cost.fallback_steps
        statistics.rejected, statistics.unsolved = cost.rejected, cost.newton_failures
        self._state = steps.final
        if nonfinite:
            self._check_blow_up()
            raise self._step_failure_error(failure)

    # -- termination --------------------------------------------------------------------------------------------------
    def _record(self, status: str, message: str = "") -> RunRecord:
        return RunRecord(
            self._info,
            self._monitor.lazy_summary(),  # type: ignore[arg-type]  # evaluated lazily by the record
            self.statistics,
            status,
            message,
            self._checkpoint() if self._resume_point is None else self._resume_point,
            self._events,
        )

    def _partial_result(self) -> Result:
        """Return the result with the rows in memory; the arrays are read-only views, valid until the next steps."""
        return Result(self._recorder.rows_in_memory(), self._record("running"), system=self._plan.model)

    def _finish(self, status: str, message: str) -> Result:
        result = self._recorder.finish(self._record(status, message), self._plan.model)
        result._scheme = self._plan.scheme
        return result

    def _is_guard(self, occurrence: EventRecord) -> bool:
        return self._event_detector is not None and occurrence.name in self._event_detector.guards

    def _terminal_result(self, occurrence: EventRecord) -> Result:
        """Return the result of a run ended by a terminal event; it can be resumed from the state of the event."""
        if self._is_guard(occurrence):
            message = f"at t = {occurrence.t:.9g} {occurrence.name}"
            raise IntegrationError(message, self._finish("failed", message))
        self._recorder.commit_tail()
        self._stepping.restart_from(self._state)
        self._ended_by_event, self._resume_point = True, None
        if self._event_detector is not None:
            names = [event["name"] for event in self._events if event["t"] == occurrence.t]
            self._event_detector.restart_at(self._state, names)
        return self._finish("complete", f"stopped by the event '{occurrence.name}' at t = {occurrence.t:.9g}")

    def _step_failure_error(self, failure: StepFailure) -> IntegrationError:
        t, h = self._state.t, failure.h
        interval = f"from t = {t:.9g} to {t + h:.9g}" if h and not self._plan.scheme.fictive else f"from t = {t:.9g}"
        worst_equation = (
            f"; the worst equation is the {failure.worst_equation} with residual {failure.residual:.3g} "
            f"(round-off bound {failure.roundoff_bound:.1g})"
            if failure.residual
            else ""
        )
        message = f"the step {interval} failed: {failure.reason}{worst_equation}. {self._hint(h)}"
        return IntegrationError(message, self._finish("failed", message))

    def _hint(self, h: float) -> str:
        if not h:
            return "The solution may end there, as in a collision, or the model may not be smooth there"
        plan, layout = self._plan, self._compiled.layout
        drift_hint = hint_velocity_drift(plan, layout, self._state, self._monitor.summary(), self.statistics.steps)
        stability_hint = hint_explicit_stability(plan)
        return (
            drift_hint
            or stability_hint
            or f"Try a smaller step than h = {h:g}; if that does not help, the model may be singular or not smooth "
            "there"
        )

    def _event_loop_error(self, name: str) -> IntegrationError:
        event = None if self._event_detector is None else self._event_detector.event(name)
        remedy = (
            "Use a compliant contact (mb.contact), or end the run before"
            if isinstance(event, ModelEvent)
            else "Make it terminal, or let its action bring the motion to rest"
        )
        message = (
            f"the event '{name}' occurred {_MAX_EVENTS_PER_STEP} times within one step before "
            f"t = {self._state.t:.9g}. {remedy}"
        )
        return IntegrationError(message, self._finish("failed", message))

    def _check_blow_up(self) -> None:
        """Raise an error if the energy has blown up."""
        reason = self._monitor.blow_up_message()
        if reason:
            stability_hint = hint_explicit_stability(self._plan)
            advice = (
                stability_hint or f"Try a smaller step than h = {self._plan.h:g}, or a scheme that is stable for it"
            )
            message = f"the run blew up before t = {self._state.t:.9g}: {reason}. {advice}"
            raise IntegrationError(message, self._finish("failed", message))

    def _step_limit_reached(self) -> bool:
        control, stepping = self._plan.control, self._stepping
        return (
            control is not None and 0 < control.most_steps <= stepping.n_steps and not stepping.is_finished(self._state)
        )

    def _step_limit_result(self) -> Result:
        return self._finish("interrupted", step_limit_message(self._stepping.n_steps, self._state.t))

    def _interrupted_error(self) -> Interrupted:
        message = f"stopped by the user at t = {self._state.t:.9g}"
        return Interrupted(message, self._finish("interrupted", message))


def _events_before_checkpoint(earlier: RunRecord) -> list[dict[str, Any]]:
    """Return the events before the checkpoint, without those of the final steps."""
    counts = earlier.checkpoint["run"].get("counts")
    return list(earlier.events) if counts is None else list(earlier.events)[: int(counts[-2])]


def _with_event_parameters(plan: Plan, events: Sequence[Mapping[str, Any]]) -> Plan:
    """Return the plan with the parameters changed by the actions of these events."""
    changes = [event.get("changes", {}).get("parameters", {}) for event in events]
    changed = {name: value for change in changes for name, value in change.items()}
    return dataclasses.replace(plan, parameters={**plan.parameters, **changed}) if changed else plan
