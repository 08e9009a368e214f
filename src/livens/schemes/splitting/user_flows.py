"""Splitting methods with user-defined flows of the parts of a vector field."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import Any

import casadi as ca

from livens.errors import InputError, explain_call_errors
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.probe import Probe
from livens.expressions.state_layout import Layout
from livens.expressions.tracing import FunctionTracer
from livens.math import from_casadi
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.phase_space_map import as_hamiltonian, map_step_graph
from livens.types import Expr, ModelFunction
from livens.validation import check_choice

#: Names of the arguments of a flow.
_FLOW_ARGUMENTS = ("x", "h", "t", "k")
#: Tolerance of the checks of the flows, relative to the terms.
_TOLERANCE = 1e-9


class FlowSplitting(Scheme):
    """Lie-Trotter or Strang splitting with user-defined flows, see `flow_splitting`."""

    group = "Splitting and variational schemes, without constraints"
    formulations = ("descriptor", "phase space", "nambu")
    implicit = False
    summary, source = "a splitting with user-defined flows", "user-defined; Strang 1968"

    def __init__(self, flows: Sequence[ModelFunction], method: str, name: str, symplectic: bool) -> None:
        self.flows, self.method, self.name, self.symplectic = tuple(flows), method, name, symplectic
        self.symmetric = method == "strang"
        self.order = 2 if self.symmetric else 1
        self.evaluations_per_step = 2 * len(self.flows) - 1 if self.symmetric else len(self.flows)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FlowSplitting)
            and (self.name, self.method, self.symplectic) == (other.name, other.method, other.symplectic)
            and self.flows == other.flows
        )

    def __hash__(self) -> int:
        return hash((self.name, self.method, self.flows))

    def unmet_requirements(self, model: Any) -> list[str]:
        unmet = super().unmet_requirements(model)
        if unmet:
            return unmet
        if "descriptor" in model.formulations and not model.is_ode:
            return ["an ODE, without algebraic variables"]
        x, rates = _vector_field(model)
        h, t, k = ca.SX.sym("h"), ca.SX.sym("t"), model.view.k
        probe = Probe([x, model.view.t, k], seed=17, fixed={2: model.parameter_vector()})
        total = ca.SX.zeros(x.numel())
        for i, flow in enumerate(self.traced_flows(model)):
            moved = flow(x, h, t, k)
            function = ca.Function("flow", [x, h, t, k], [moved, ca.jacobian(moved, h), flow(moved, -h, t + h, k)])
            at_zero = function(x, 0, model.view.t, k)
            returned = function(x, 0.05, model.view.t, k)[2]
            if probe.is_zero(at_zero[0] - x, 1 + ca.fabs(x), _TOLERANCE) is False:
                return [f"flows that are the identity for h = 0; flow {i + 1} is not"]
            if self.symmetric and probe.is_zero(returned - x, 1 + ca.fabs(x), _TOLERANCE) is False:
                return [f"flows that return to their start with -h; flow {i + 1} does not: use method='lie'"]
            total += at_zero[1]
        if probe.is_zero(total - rates, 1 + ca.fabs(rates), _TOLERANCE) is False:
            return ["flows whose rates at h = 0 add up to the equations of the model"]
        return []

    def traced_flows(self, model: Any) -> list[Callable[[Any, Any, Any, Any], Any]]:
        """Return the flows as CasADi functions of (x, h, t, k)."""
        n = _vector_field(model)[0].numel()
        x, h, t, k = ca.SX.sym("x", n), ca.SX.sym("h"), ca.SX.sym("t"), ca.SX.sym("k", model.parameter_count)
        named = ParameterNamespace(model.model_parameters.unpack_symbols(k))
        trace = FunctionTracer({"x": x, "h": from_casadi(h)[0], "t": t, "k": named}, verb="return")
        functions: list[Any] = []
        for i, flow in enumerate(self.flows):
            role = f"flow {i + 1}"
            value = trace.check_shape(role, trace.trace(role, flow, _FLOW_ARGUMENTS), (n,))
            functions.append(ca.Function("flow", [x, h, t, k], [ca.densify(value)]))
        return functions

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        flows = self.traced_flows(model)
        fractions = [(flow, 1.0) for flow in flows]
        if self.symmetric:
            fractions = [*((flow, 0.5) for flow in flows[:-1]), (flows[-1], 1.0), *((f, 0.5) for f in flows[-2::-1])]
        in_phase_space = "phase space" in model.formulations
        phase = as_hamiltonian(model) if in_phase_space else None
        start_fractions = _start_fractions(flows, fractions)

        def build_step(old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr, k: Expr) -> Any:
            state = ca.vertcat(old.q, old.p) if in_phase_space else old.x
            for (flow, fraction), start in zip(fractions, start_fractions, strict=True):
                state = flow(state, fraction * h, t + start * h, k)
            new: dict[str, Any] = {**vars(old), "x": state}
            if phase is not None:
                q, p = state[: phase.n], state[phase.n :]
                velocity = ca.Function("v", [phase.q, phase.p, phase.t, phase.k], [ca.densify(phase.velocity)])
                new |= {"q": q, "p": p, "v": velocity(q, p, t + h, k)}
            return new, (), {}

        return map_step_graph(model.layout, Layout(), model.parameter_count, build_step)


def _start_fractions(flows: Sequence[object], fractions: Sequence[tuple[object, float]]) -> list[float]:
    """Return the time of every part at its start, in units of h: each flow has a clock of its own."""
    clocks, starts = dict.fromkeys(map(id, flows), 0.0), []
    for flow, fraction in fractions:
        starts.append(clocks[id(flow)])
        clocks[id(flow)] += fraction
    return starts


def _vector_field(model: Any) -> tuple[Expr, Expr]:
    """Return the state x, or (q, p), and its rate of change."""
    if "phase space" in model.formulations:
        phase = as_hamiltonian(model)
        return ca.vertcat(phase.q, phase.p), ca.vertcat(phase.velocity, phase.momentum_rate)
    if "nambu" in model.formulations:
        return model.x, model.vector_field
    return model.descriptor.x, model.vector_field


@explain_call_errors
def flow_splitting(
    flows: Sequence[ModelFunction], *, method: str = "strang", name: str = "user-splitting", symplectic: bool = False
) -> FlowSplitting:
    """Return a splitting method with user-defined flows of the parts of a model as a scheme.

    The flows are checked when the scheme meets a model: each is the identity for h = 0, and their rates add up to the
    equations of the model. Compose the Strang splitting to higher orders with `livens.schemes.compose`.

    Parameters
    ----------
    flows : sequence of callable
        Flow of each part: functions of any of ``x h t k`` that return the state after the time h. For a Hamiltonian x
        contains the coordinates, then the momenta. ``t`` is the time at the start of the part.
    method : {"strang", "lie"}, default "strang"
        "strang": half steps of all parts but the last, a full step of the last, and back: order 2, symmetric; "lie":
        one step of each part: order 1.
    name : str, default "user-splitting"
        Name of the scheme in results and reports.
    symplectic : bool, default False
        Whether all flows are symplectic maps.

    Returns
    -------
    Scheme
        Explicit scheme for ODEs, Nambu systems and Hamiltonians.

    Raises
    ------
    InputError
        If there are fewer than two flows, or `method` is unknown.

    Examples
    --------
    >>> import livens as lv
    >>> from livens import math as m
    >>> rotation = lambda x, h: [m.cos(h) * x[0] + m.sin(h) * x[1], m.cos(h) * x[1] - m.sin(h) * x[0]]
    >>> kick = lambda x, h: [x[0], x[1] - h * x[0] ** 3]
    >>> duffing = lv.FirstOrder("q p", rhs=lambda x: [x[1], -x[0] - x[0] ** 3])
    >>> strang = lv.schemes.flow_splitting([rotation, kick], name="rotate-and-kick")
    >>> run = lv.simulate(duffing, x0=[1.0, 0.0], scheme=lv.schemes.compose(strang, 4), h=0.05, t_end=10.0)
    >>> run.info.scheme
    'yoshida-4:rotate-and-kick'
    """
    if not isinstance(flows, Sequence) or len(flows) < 2 or not all(callable(flow) for flow in flows):
        raise InputError(f"flows must be at least two functions of x, h, t, k, got {flows!r}")
    if not isinstance(name, str) or not name:
        raise InputError(f"name must be a text of at least one character, got {name!r}")
    return FlowSplitting(flows, check_choice("method", method, ("strang", "lie")), name, bool(symplectic))
