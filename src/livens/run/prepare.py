"""Prepared runs: a model and a scheme, compiled once and run many times."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livens.engine.compiled_step import compiled_step
from livens.engine.lru_cache import LruCache
from livens.errors import CallError, InputError, LivensError, explain_call_errors, suggestion
from livens.models.base import Model
from livens.models.problem import Problem
from livens.results.result import Result
from livens.run.drift_monitor import DriftMonitor
from livens.run.events.event import Event, model_events
from livens.run.plan import Plan, adaptive_scheme, control_with_tolerance, scaled_scheme
from livens.run.progress import show_preparation
from livens.run.schedule import Schedule
from livens.run.simulate import execute
from livens.run.single_steps import Measurement, MotionState, StepSession
from livens.run.startup import REFERENCE_H, compile_and_start, start_integration
from livens.run.step_control import PerVariable, StepControl
from livens.run.stepping import make_stepping
from livens.schemes.core.scheme import Scheme
from livens.types import ArrayLike, FloatArray, ModelFunction
from livens.validation import check_integer, check_number, check_positive

if TYPE_CHECKING:
    import casadi

    from livens.run.drive import Drive

#: Largest number of cached plans of a prepared step, and argument types that are used as cache keys.
_MAX_CACHED_PLANS, _HASHABLE_TYPES = 64, frozenset((float, int, bool, str, type(None), StepControl))
#: Options of a run besides initial values and parameters, in the order of the cache key.
_RUN_OPTIONS = ("h", "t_end", "t0", "every", "project", "store", "control", "inputs")


@explain_call_errors
class Prepared:
    """Compiled model and scheme, returned by `livens.prepare`.

    Instances can be used from several threads at once: every run has its own state, and the compiled loop releases
    the global interpreter lock.
    """

    def __init__(
        self, model: Model | Problem, defaults: Mapping[str, Any], initial: Mapping[str, Any] | None = None
    ) -> None:
        self._model, self._defaults, self._initial = model, dict(defaults), dict(initial or {})
        self.model: Model = model.model if isinstance(model, Problem) else model
        self._plan_cache: LruCache[Any, Plan] = LruCache(_MAX_CACHED_PLANS)  # validated plans by their options
        self._step_size: float | None = None  # default step size of single steps, validated

    @property
    def scheme(self) -> Scheme:
        """Scheme of the step."""
        scheme: Scheme = self._defaults["scheme"]
        return scheme

    def _with_defaults(self, initial: Mapping[str, object]) -> Mapping[str, Any]:
        """Return initial values; omitted ones are those of `livens.prepare`."""
        if not self._initial:
            return initial
        return {**self._initial, **{name: value for name, value in initial.items() if value is not None}}

    def _compile(self) -> None:
        """Compile all code that a run needs, by one step from the initial values.

        Initial values may be missing, or invalid until `run` replaces some of them. Then only code that does not depend
        on initial values is compiled: `run` raises the error. The pivot order of the Newton kernel depends on them.
        """
        options: dict[str, Any] = {}
        if not isinstance(self._model, Problem) and "h" not in self._defaults and "control" not in self._defaults:
            options["h"] = REFERENCE_H
        if not isinstance(self._model, Problem) and "t_end" not in self._defaults:
            options["t_end"] = self._defaults.get("t0", 0.0) + 2 * self._defaults.get("h", REFERENCE_H)
        try:
            plan = self._make_plan(self._initial, **options)
        except InputError:  # options of a run are missing or invalid
            return
        with show_preparation(plan.title, None):
            try:
                compiled, initial = compile_and_start(plan)
                state, stepper = start_integration(plan, compiled, initial)
            except LivensError:
                compiled = compiled_step(plan.model, plan.scheme)
                if plan.tier == "fused" and compiled.stepper_type("fused").needs_pivot_order:
                    compiled.kernels(None)
                return
            monitor = DriftMonitor(compiled, plan.k, plan.tier, h=plan.h)
            monitor.start(state)
            monitor.observe(make_stepping(plan, compiled.layout).advance(stepper, state, 1))
            stepper.close()

    def _make_plan(self, initial: Mapping[str, Any], **options: Any) -> Plan:
        specified = {name: value for name, value in options.items() if value is not None}
        return Plan.from_arguments(
            self._model, self._with_defaults(initial), is_compatible=True, **{**self._defaults, **specified}
        )

    def _cached_plan(self, initial: Mapping[str, Any], parameters: Any, *run_options: Any) -> Plan:
        """Return the plan of a run; a cached plan with the same options is not validated again."""
        option_types = tuple(map(type, run_options))
        is_hashable = _HASHABLE_TYPES.issuperset(option_types) and _has_hashable_fields(run_options)
        cached = self._plan_cache.get((run_options, option_types)) if is_hashable else None
        if cached is not None:
            parameters = self._defaults.get("parameters") if parameters is None else parameters
            return cached.with_inputs(self._with_defaults(initial), parameters)
        plan = self._make_plan(initial, parameters=parameters, **dict(zip(_RUN_OPTIONS, run_options, strict=True)))
        return self._plan_cache.put((run_options, option_types), plan) if is_hashable else plan

    def run(
        self,
        q0: ArrayLike | None = None,
        v0: ArrayLike | None = None,
        *,
        p0: ArrayLike | None = None,
        x0: ArrayLike | None = None,
        y0: ArrayLike | None = None,
        parameters: Mapping[str, object] | None = None,
        h: float | None = None,
        t_end: float | None = None,
        t0: float | None = None,
        every: int | None = None,
        project: bool | None = None,
        store: str | Sequence[str] | None = None,
        control: StepControl | None = None,
        inputs: Schedule | Mapping[str, object] | None = None,
        events: Sequence[Event] | None = None,
        out: str | Path | None = None,
        force: bool = False,
        progress: bool | None = None,
    ) -> Result:
        """Simulate, as `livens.simulate` does; omitted arguments are those of `livens.prepare` or of the problem.

        Parameters
        ----------
        q0, v0, p0, x0, y0 : array_like of shape (n,), optional
            Initial values, see `livens.simulate`.
        parameters : dict of str to array_like, optional
            Parameter values by name.
        h : float, optional
            Step size in seconds.
        t_end : float, optional
            End time in seconds.
        t0 : float, optional
            Start time in seconds.
        every : int, optional
            Output stride: store every `every`-th step.
        project : bool, optional
            Project inconsistent initial values to the nearest consistent ones.
        store : str or sequence of str, optional
            Variables to store.
        control : StepControl, optional
            Step-size control.
        inputs : Schedule or mapping of str to array_like, optional
            Inputs over time: a `Schedule`, or one row of values per step by name (zero-order hold).
        events : sequence of Event, optional
            Events to detect.
        out : str or Path, optional
            HDF5 file of the run.
        force : bool, default False
            Replace an existing file.
        progress : bool, optional
            Show a progress bar. Default: on a terminal only.

        Returns
        -------
        Result
            Trajectory, report and statistics.
        """
        initial = dict(q0=q0, v0=v0, p0=p0, x0=x0, y0=y0)
        plan = self._cached_plan(initial, parameters, h, t_end, t0, every, project, store, control, inputs)
        return execute(plan, events=events, out=out, force=force, progress=progress)

    def value_and_gradient(
        self, loss: ModelFunction, *, every: int | None = None, data: FloatArray | None = None, keep: str = "all"
    ) -> ModelFunction:
        """Return a function that computes a loss of a run of this step and its derivatives by all inputs.

        Equivalent to `livens.value_and_gradient` with this step as the first argument.

        Parameters
        ----------
        loss : callable
            Function of any of ``q, v, p, x, t, k, d`` that returns a scalar.
        every : int, optional
            Sum the loss over every `every`-th step. Default: the last state only.
        data : array_like, optional
            Data with one row per observed state, passed to the loss as ``d``.
        keep : {"all", "checkpoints"}, default "all"
            Store all states for the adjoint sweep, or checkpoints from which they are recomputed.

        Returns
        -------
        callable
            Function of the arguments of `run`. It returns the value and a `Gradient`.

        Examples
        --------
        >>> import livens as lv
        >>> step = lv.prepare(lv.problems.load("simple-pendulum"), h=0.01, t_end=0.5)
        >>> value, by = step.value_and_gradient(lambda q: q[0])(v0=[0.0, 0.1], parameters={"g": 9.81})
        >>> round(by.parameters["g"], 4)
        0.0988
        """
        from livens.run.derivatives.gradient import value_and_gradient

        return functools.partial(value_and_gradient(loss, every=every, data=data, keep=keep), self)

    def casadi_function(self) -> casadi.Function:
        """Return one step as a `casadi.Function`, with derivatives, for optimal control by multiple shooting.

        Returns
        -------
        casadi.Function
            Function of the variables of a state (``q v p``, or ``x``), the time t, the step size h and the parameter
            vector k (see `Model.parameter_vector`). Outputs are the variables after the step: ``q_next``, ...

        Raises
        ------
        InputError
            If the scheme is a Taylor series or steps in fictive time, or the model has an external force.

        Examples
        --------
        >>> import livens as lv
        >>> oscillator = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: 0.5 * q[0] ** 2)
        >>> step = lv.prepare(oscillator, scheme="livens-em", h=0.1)
        >>> state = step.start([1.0], [0.0])
        >>> function = step.casadi_function()
        >>> after = function(q=state.q, v=state.v, p=state.p, h=0.1)
        >>> float(after["q_next"]) == float(step.step(state).q[0])
        True
        """
        from livens.run.bridges.casadi_step import casadi_step

        return casadi_step(self.model, self.scheme)

    def drive(self, inputs: Sequence[str] = (), outputs: Sequence[str] = (), **start: object) -> Drive:
        """Return a motion whose inputs may change between steps, for control loops and environments.

        Parameters
        ----------
        inputs : sequence of str, default ()
            Names of scalar parameters, such as ``["motor.u"]``.
        outputs : sequence of str, default ()
            Names of coordinates, outputs of a mechanism (``"hinge.angle"``) or observables.
        **start
            Initial values and options, see `start`.

        Returns
        -------
        Drive
            Motion with `reset`, `advance` and the arrays `inputs` and `outputs`, which stay in place.

        Raises
        ------
        InputError
            If an input or output is unknown, or the scheme has no fixed implicit steps.

        Examples
        --------
        >>> import livens as lv
        >>> cart = lv.System(
        ...     "x", kinetic=lambda v: 0.5 * v[0] ** 2, forces=lambda k: [k.u], parameters=dict(u=0.0)
        ... )
        >>> drive = lv.prepare(cart, scheme="livens-em", h=0.1).drive(["u"], ["x"], q0=[0.0], v0=[0.0])
        >>> drive.inputs[:] = 2.0
        >>> [round(float(drive.advance()[0]), 3) for _ in range(2)]
        [0.01, 0.04]
        """
        from livens.run.drive import Drive

        options = [name for name in inspect.signature(self.start).parameters if name != "self"]
        for name in start:
            if name not in options:
                raise CallError(f"drive has no argument '{name}'{suggestion(name, ('inputs', 'outputs', *options))}")
        initial = {name: start.pop(name, None) for name in ("q0", "v0", "p0", "x0", "y0")}
        begin = check_number("t0", start["t0"] if start.get("t0") is not None else self._defaults.get("t0") or 0.0)
        return Drive(self._make_plan(initial, t_end=begin + 1.0, **start), inputs, outputs)

    # -- one step at a time -------------------------------------------------------------------------------------------
    def start(
        self,
        q0: ArrayLike | None = None,
        v0: ArrayLike | None = None,
        *,
        p0: ArrayLike | None = None,
        x0: ArrayLike | None = None,
        y0: ArrayLike | None = None,
        parameters: Mapping[str, object] | None = None,
        h: float | None = None,
        t0: float | None = None,
        project: bool | None = None,
    ) -> MotionState:
        """Return the initial state of a user-written time loop, checked and completed like that of a run.

        Parameters
        ----------
        q0, v0, p0, x0, y0 : array_like of shape (n,), optional
            Initial values, see `livens.simulate`.
        parameters : dict of str to array_like, optional
            Parameter values by name.
        h : float, optional
            Step size in seconds.
        t0 : float, optional
            Start time in seconds.
        project : bool, optional
            Project inconsistent initial values to the nearest consistent ones.

        Returns
        -------
        MotionState
            Initial state.

        Raises
        ------
        InputError
            If the model has sampled controllers, joint stops or rigid contact, which need a run.
        """
        initial_values = dict(q0=q0, v0=v0, p0=p0, x0=x0, y0=y0)
        begin = check_number("t0", t0 if t0 is not None else self._defaults.get("t0") or 0.0)
        plan = self._make_plan(initial_values, parameters=parameters, h=h, t0=t0, project=project, t_end=begin + 1.0)
        if getattr(plan.model, "controllers", ()):
            raise InputError("sampled controllers are not called by single steps: use run, or call them in your loop")
        if events := model_events(plan.model):
            raise InputError(f"{events[0].label} are not detected by single steps: use run")
        compiled, initial = compile_and_start(plan)
        state, stepper = start_integration(plan, compiled, initial)
        return MotionState(state, StepSession(compiled, stepper, plan.k), plan.k)

    def step(
        self,
        state: MotionState,
        h: float | None = None,
        *,
        inputs: Mapping[str, object] | None = None,
        n_steps: int = 1,
    ) -> MotionState:
        """Return the state after one step. Steps of equal size are cheapest: the predictor uses the previous steps.

        Parameters
        ----------
        state : MotionState
            State before the step, from `start` or `step`.
        h : float, optional
            Step size in seconds. Default: that of `livens.prepare`, or of the problem.
        inputs : mapping of str to float or array_like, optional
            New values of inputs by name, held in this step and in all following ones. Inputs are those of
            `livens.Multibody.input`, and all other parameters of the model. Consistency of the state is not checked.
        n_steps : int, default 1
            Number of steps with these inputs.

        Returns
        -------
        MotionState
            State after the step.

        Raises
        ------
        InputError
            If `state` is not a `MotionState`, or an input is unknown or not finite.
        IntegrationError
            If the step cannot be solved.

        Examples
        --------
        >>> import livens as lv
        >>> cart = lv.System(
        ...     "x", kinetic=lambda v: 0.5 * v[0] ** 2, forces=lambda q, v, k: [k.u], parameters=dict(u=0.0)
        ... )
        >>> step = lv.prepare(cart, h=0.1)
        >>> state = step.step(step.start([0.0], [0.0]), inputs={"u": 2.0})
        >>> state.v
        array([0.2])
        """
        if not isinstance(state, MotionState):
            raise InputError(f"step needs a state returned by `start` or `step`, got {state!r}")
        if h is None:
            h = self._step_size
            if h is None:
                h = self._step_size = self._default_step_size()
        else:
            h = check_positive("h", h)
        if n_steps != 1:
            n_steps = check_integer("n_steps", n_steps, 1)
        k = state._k if inputs is None else state._session.with_inputs(state._k, inputs)
        return state._session.advance(state, k, h, n_steps)

    def _default_step_size(self) -> float:
        requested = self._defaults.get("h")
        return check_positive(
            "h", self._model.h if requested is None and isinstance(self._model, Problem) else requested
        )

    def measurement(self, *names: str) -> Measurement:
        """Compile the measurement of named outputs, for control laws in user-written time loops.

        Parameters
        ----------
        *names : str
            Names of outputs, such as ``"hinge.angle"``, of coordinates, or of observables, such as
            ``"kinetic_energy"``. Constraint forces cannot be measured: they are unknown before the step.

        Returns
        -------
        Measurement
            Function of a state that returns the values as one array.

        Raises
        ------
        InputError
            If there is no such output, or it is not a function of the state.
        """
        return Measurement.of_outputs(self.model, names)


def _has_hashable_fields(options: Sequence[object]) -> bool:
    """Return True if no step-size control has tolerances by variable name."""
    controls = [option for option in options if type(option) is StepControl]
    return not controls or all(dict not in (type(each.tolerance), type(each.absolute)) for each in controls)


@explain_call_errors
def prepare(
    model: Model | Problem,
    scheme: str | Scheme | None = None,
    *,
    q0: Any = None,
    v0: Any = None,
    p0: Any = None,
    x0: Any = None,
    y0: Any = None,
    h: float | None = None,
    t_end: float | None = None,
    t0: float | None = None,
    parameters: Mapping[str, object] | None = None,
    scaling: Any = None,
    tolerance: PerVariable | None = None,
    adaptive: str | None = None,
    every: int = Plan.every,
    project: bool = Plan.project,
    redundant: str = Plan.redundant,
    control: StepControl | None = Plan.control,
    tier: str = Plan.tier,
    threads: int = Plan.threads,
    store: str | Sequence[str] | None = Plan.store,
    compile: bool = True,
) -> Prepared:
    """Compile a model with a scheme for repeated runs.

    All arguments but `model` are defaults of the runs. Equal models are compiled only once: compiled code is cached by
    the fingerprint of the model.

    Parameters
    ----------
    model : Model or Problem
        Model to simulate. A `Problem` has its own initial values, step size and end time.
    scheme : str or Scheme, optional
        Integration scheme. Default: the scheme recommended for the model.
    q0, v0, p0, x0, y0 : array_like of shape (n,), optional
        Initial values, see `livens.simulate`.
    h : float, optional
        Step size in seconds.
    t_end : float, optional
        End time in seconds.
    t0 : float, optional
        Start time in seconds.
    parameters : dict of str to array_like, optional
        Parameter values by name that replace those of the model.
    scaling : callable or str, optional
        Scaling function of schemes with fixed steps in fictive time, see `livens.scaling`.
    tolerance : float, sequence of float or dict of str to float, optional
        Relative error tolerance of adaptive steps.
    adaptive : {"reversible"}, optional
        Steps that follow the `scaling`, symmetric in time; see `livens.simulate`.
    every : int, default 1
        Output stride: store every `every`-th step. The last step is always stored.
    project : bool, default False
        Project inconsistent initial values to the nearest consistent ones.
    redundant : {"error", "remove", "auto"}, default "error"
        Treatment of redundant constraints.
    control : StepControl, optional
        Step-size control.
    tier : {"auto", "tree", "fused", "assembled", "reference"}, default "auto"
        Tier of the engine, see `livens.simulate`.
    threads : int, default 1
        Number of threads of the assembled tier.
    store : str or sequence of str, optional
        Variables to store. Default: all.
    compile : bool, default True
        Compile now, so that the first run is as fast as the others. Without initial values, here or in a `Problem`, the
        Newton kernel is compiled in the first run: its pivot order depends on them. If False, the first run compiles.

    Returns
    -------
    Prepared
        Prepared step with the methods `run`, `start`, `step` and `value_and_gradient`.

    Raises
    ------
    InputError
        If `model` is not a model, the scheme cannot integrate it, or a time or step size is not a finite number.

    Examples
    --------
    >>> import livens as lv
    >>> pendulum = lv.System(
    ...     "x y",
    ...     kinetic=lambda v, k: 0.5 * k.m * (v @ v),
    ...     potential=lambda q, k: k.m * k.g * q[1],
    ...     constraints=lambda q, k: [0.5 * (q @ q - k.l**2)],
    ...     parameters=dict(m=1.0, l=1.0, g=9.81),
    ... )
    >>> step = lv.prepare(pendulum, scheme="livens-em", h=0.01)
    >>> speeds = [step.run([-l, 0], [0, 0], parameters={"l": l}, t_end=2.0).v[:, 0].max() for l in (1.0, 2.0)]
    >>> [round(float(speed), 2) for speed in speeds]  # sqrt(2 g l)
    [4.43, 6.26]

    In a user-written time loop:

    >>> state = step.start([-1, 0], [0, 0])
    >>> while state.q[0] < 0:
    ...     state = step.step(state)
    >>> round(state.t, 2)
    0.6
    """
    from livens import schemes

    actual = model.model if isinstance(model, Problem) else model
    if not isinstance(actual, Model):
        raise InputError(f"prepare needs a model, such as a System, or a Problem, got {model!r}")
    default_scheme = model.scheme if isinstance(model, Problem) else actual.default_scheme
    chosen_scheme = schemes.get(default_scheme if scheme is None else scheme)
    chosen_scheme = adaptive_scheme(chosen_scheme, adaptive, tolerance, control)
    schemes.check_compatible(chosen_scheme, actual)
    control = control_with_tolerance(control, tolerance)
    if scaling is None and chosen_scheme.fictive and isinstance(model, Problem):
        scaling = model.scaling
    if scaling is not None:
        chosen_scheme = scaled_scheme(chosen_scheme, scaling)
    defaults = dict(
        scheme=chosen_scheme,
        h=None if h is None else check_positive("h", h),
        t_end=None if t_end is None else check_number("t_end", t_end),
        t0=None if t0 is None else check_number("t0", t0),
        parameters=parameters,
        every=every,
        project=project,
        redundant=redundant,
        control=control,
        tier=tier,
        threads=threads,
        store=store,
    )
    initial = {name: value for name, value in dict(q0=q0, v0=v0, p0=p0, x0=x0, y0=y0).items() if value is not None}
    prepared = Prepared(model, {name: value for name, value in defaults.items() if value is not None}, initial)
    if compile:
        prepared._compile()
    return prepared
