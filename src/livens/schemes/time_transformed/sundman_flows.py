"""Time-transformed splitting of a Hamiltonian into two parts with user-defined flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import casadi as ca

from livens.errors import InputError, explain_call_errors
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.probe import Probe
from livens.expressions.tracing import FunctionTracer
from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, MapResult, as_hamiltonian
from livens.schemes.discretization.time_transformation import CONSERVATIVE, TimeTransformedMap
from livens.schemes.splitting.user_flows import FlowSplitting
from livens.schemes.time_transformed.sundman import Sundman
from livens.types import Expr, FloatArray, ModelFunction

#: Tolerance of the checks of energies and flows, relative to the terms.
_TOLERANCE = 1e-9


class SundmanFlows(Sundman):
    """SYMP for ``H = H1 + H2`` with user-defined flows (Modin 2009, paper III, second remark after theorem 2).

    Each part conserves its own energy, so that its scaled flow is its flow for another time::

        H2 for eps/2 g(H0 - H2, H2);   H1 for eps g(H1, H0 - H1), t += eps g;   H2 for eps/2 g(H0 - H2, H2)

    The scaling g is a function of H1, in place of T, and of H2, in place of V.
    """

    conserves = ()
    requires = (CONSERVATIVE,)
    implicit = False

    def __init__(self, flows: Sequence[ModelFunction], energies: Sequence[ModelFunction], name: str) -> None:
        self._splitting = FlowSplitting(flows, "strang", name, symplectic=True)
        self._energies, self.name = tuple(energies), name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SundmanFlows) and (self._splitting, self._energies, self.scaling) == (
            other._splitting,
            other._energies,
            other.scaling,
        )

    def __hash__(self) -> int:
        return hash((self._splitting, self._energies, self.scaling))

    def extra_state(self, model: Hamiltonian) -> dict[str, int]:
        return TimeTransformedMap.extra_state(self, model)

    def initial_scheme_state(
        self, model: object, values: Mapping[str, object], k: FloatArray, t: float, h: float
    ) -> dict[str, FloatArray]:
        return TimeTransformedMap.initial_scheme_state(self, model, values, k, t, h)

    def unmet_requirements(self, model: object) -> list[str]:
        unmet = super().unmet_requirements(model)
        if unmet:
            return unmet
        phase = as_hamiltonian(model)
        state, h, k = ca.vertcat(phase.q, phase.p), ca.SX.sym("h"), phase.k
        probe = Probe([phase.q, phase.p, h, k], seed=19, fixed={3: phase.parameter_vector()})
        energies = self._traced_energies(phase)
        parts = [energy(state, k) for energy in energies]
        if (
            probe.is_zero(parts[0] + parts[1] - ca.substitute(phase.H, phase.t, 0), 1 + ca.fabs(phase.H), _TOLERANCE)
            is False
        ):
            return ["two energies that add up to the Hamiltonian"]
        for i, (flow, energy) in enumerate(zip(self._splitting.traced_flows(phase), energies, strict=True)):
            change = energy(flow(state, 0.1 * h, 0, k), k) - parts[i]
            if probe.is_zero(change, 1 + ca.fabs(parts[i]), _TOLERANCE) is False:
                return [f"flows that conserve their energies; flow {i + 1} does not"]
        return self._splitting.unmet_requirements(phase)

    def _traced_energies(self, phase: Hamiltonian) -> list[ca.Function]:
        """Return the energies of both parts as CasADi functions of the state and the parameters."""
        named = ParameterNamespace(phase.model_parameters.unpack_symbols(phase.k))
        trace = FunctionTracer({"q": phase.q, "p": phase.p, "k": named})
        state = ca.vertcat(phase.q, phase.p)
        values = [trace(f"energy {i + 1}", energy, (), "qpk") for i, energy in enumerate(self._energies)]
        return [ca.Function("energy", [state, phase.k], [value]) for value in values]

    def step(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr
    ) -> MapResult:
        H0, n, k = old.start_energy, phase.model.n, phase.k
        first, second = self._splitting.traced_flows(phase.model)
        energies, g = self._traced_energies(phase.model), self._scaling_of_energies(phase)

        def half_step(state: Expr) -> Expr:
            H2 = energies[1](state, k)
            return second(state, h / 2 * g(H0 - H2, H2, k), 0, k)

        state = half_step(ca.vertcat(old.q, old.p))
        H1 = energies[0](state, k)
        duration = h * g(H1, H0 - H1, k)
        state = half_step(first(state, duration, 0, k))
        return MapResult({"q": state[:n], "p": state[n:], "t": old.t + duration})


@explain_call_errors
def sundman_splitting(
    flows: Sequence[ModelFunction], energies: Sequence[ModelFunction], *, name: str = "user-sundman"
) -> SundmanFlows:
    """Return a time-transformed splitting with user-defined flows of two parts of a Hamiltonian, as a scheme.

    The scheme takes steps in fictive time, with a scaling of the energies of both parts. It has order 2, and is
    symmetric and symplectic on the level set of the initial energy. Flows and energies are checked when the scheme
    meets a model.

    Parameters
    ----------
    flows : sequence of two callables
        Exact flows of H1 and H2: functions of any of ``x h k`` that return the state after the time h, with the
        coordinates, then the momenta in x. H2 is followed for half a step before and after H1.
    energies : sequence of two callables
        H1 and H2, functions of any of ``q p k``. Their sum is the Hamiltonian of the model. A scaling
        ``lambda T, V: ...`` gets H1 as T and H2 as V.
    name : str, default "user-sundman"
        Name of the scheme in results and reports.

    Returns
    -------
    Scheme
        Explicit scheme with a scaling for Hamiltonians and systems without constraints.

    Raises
    ------
    InputError
        If there are not two flows and two energies.

    Examples
    --------
    >>> import livens as lv
    >>> from livens import math as m
    >>> turn = lambda x, h: [m.cos(h) * x[0] + m.sin(h) * x[1], m.cos(h) * x[1] - m.sin(h) * x[0]]
    >>> kick = lambda x, h: [x[0], x[1] - h * x[0] ** 3]
    >>> scheme = lv.schemes.sundman_splitting(
    ...     [turn, kick], [lambda q, p: (p[0] ** 2 + q[0] ** 2) / 2, lambda q: q[0] ** 4 / 4]
    ... )
    >>> duffing = lv.Hamiltonian(
    ...     "q", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2 + q[0] ** 4 / 4
    ... )
    >>> scaling = lambda T, V: 1 / (1 + V)
    >>> run = lv.simulate(duffing, q0=[2.0], p0=[0.0], scheme=scheme, scaling=scaling, h=0.05, t_end=50.0)
    >>> bool(run.summary.max_energy_drift < 1e-2)
    True
    """
    for role, functions in (("flows", flows), ("energies", energies)):
        is_pair = isinstance(functions, Sequence) and len(functions) == 2
        if not is_pair or not all(callable(function) for function in functions):
            raise InputError(f"{role} must be two functions, got {functions!r}")
    if not isinstance(name, str) or not name:
        raise InputError(f"name must be a text of at least one character, got {name!r}")
    return SundmanFlows(flows, energies, name)
