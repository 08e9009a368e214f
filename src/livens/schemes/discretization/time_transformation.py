"""Base classes of time-transformed schemes: equal steps in fictive time tau, physical time as part of the state."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.probe import Probe
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.nambu import Nambu
from livens.schemes.core.scheme import Requirement, Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, MapScheme, as_hamiltonian
from livens.schemes.scaling import Scaling, user_scaling
from livens.types import Expr, FloatArray

CONSERVATIVE = Requirement("conservative", "forces that have a potential, and nothing that depends on time")
SEPARABLE = Requirement("separable", "an energy T(p) + V(q)")


def check_scale(scaling: Scaling | None, value: float) -> float:
    """Return the value of a scaling in the initial state; raise InputError unless it is finite and positive."""
    if not (np.isfinite(value) and value > 0):
        raise InputError(
            f"the scaling {scaling} is {value:g} in the initial state; it must be finite and greater than 0"
        )
    return value


class TimeTransformed(Scheme):
    """Time-transformed scheme with a scaling function ``dt/dtau = g``, which is required."""

    group = "Schemes with adaptive steps, by a scaling function"
    fictive = True
    #: Arguments that g may depend on: "energies", "q" or "state".
    scaling_arguments: ClassVar[str] = "state"
    scaling: Scaling | None = None

    def with_scaling(self, scaling: object) -> Scheme:
        """Return the scheme with this scaling; a function is wrapped by `livens.scaling.user_scaling`."""
        if not isinstance(scaling, Scaling):
            if not callable(scaling):
                raise InputError(
                    f"scheme '{self.name}' needs a scaling that is a function of the state, such as "
                    f"livens.scaling.speed(), got {scaling!r}"
                )
            scaling = user_scaling(scaling)
        scheme = copy.copy(self)
        scheme.scaling = scaling
        return scheme

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.scaling == getattr(other, "scaling", None)

    def __hash__(self) -> int:
        return hash((super().__hash__(), self.scaling))

    def checked_scaling(self, model: Hamiltonian | Nambu) -> Scaling:
        """Return the scaling, after checking that it exists and suits the scheme."""
        if self.scaling is None:
            raise InputError(
                f"scheme '{self.name}' needs a scaling function for its steps, such as "
                "scaling=livens.scaling.speed(); see livens.scaling"
            )
        self.scaling.require(model, self.scaling_arguments, self.name)
        return self.scaling

    def initial_scaling(self, model: Any, k: FloatArray, *state: Any) -> float:
        """Return g in the initial state; raise InputError unless it is finite and positive."""
        scaling = self.checked_scaling(model)
        symbols = [model.x] if "nambu" in model.formulations else [model.q, model.p]
        value = float(ca.Function("g", [*symbols, model.k], [scaling.expression(model)])(*state, k))
        return check_scale(scaling, value)


class TimeTransformedMap(TimeTransformed, MapScheme):
    """Time-transformed map in coordinates and momenta; the initial energy is a constant in the state."""

    requires: tuple[Requirement, ...] = (CONSERVATIVE,)

    def extra_state(self, model: Hamiltonian) -> dict[str, int]:
        return {"t": 1, "start_energy": 1}

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, object], k: Any, t: float, h: float
    ) -> dict[str, Any]:
        phase = HamiltonianFunctions(as_hamiltonian(model), k)
        q, p = values["q"], values["p"]
        self.initial_scaling(phase.model, k, q, p)
        return {"t": t, "start_energy": float(phase.H(q, p, t))}

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        self.checked_scaling(as_hamiltonian(model))
        return super().equations(model, removed_constraints)

    def scaling_is_invariant(self, model: Any, name: str) -> bool:
        """Return whether the scaling is known and invariant under the generators of a symmetry of the model."""
        if self.scaling is None:
            return False
        phase = as_hamiltonian(model)
        g, xi = self.scaling.expression(phase), model.symmetries[name](phase.q)
        rates = [
            ca.jtimes(g, phase.q, xi[:, i]) - ca.jtimes(g, phase.p, ca.jacobian(xi[:, i], phase.q).T @ phase.p)
            for i in range(xi.shape[1])
        ]
        probe = Probe([phase.q, phase.p, phase.t, phase.k], seed=18, fixed={3: phase.parameter_vector()})
        return probe.is_zero(ca.vertcat(*rates), 1 + ca.fabs(g), 1e-10) is True

    def g(self, phase: HamiltonianFunctions, q: Expr, p: Expr) -> Any:
        """Return the scaling at (q, p)."""
        return phase.evaluate("g", self.checked_scaling(phase.model).expression(phase.model), q, p, 0)

    def g_q(self, phase: HamiltonianFunctions, q: Expr, p: Expr) -> Any:
        m = phase.model
        return phase.evaluate("g_q", ca.gradient(self.checked_scaling(m).expression(m), m.q), q, p, 0)

    def g_p(self, phase: HamiltonianFunctions, q: Expr, p: Expr) -> Any:
        m = phase.model
        return phase.evaluate("g_p", ca.gradient(self.checked_scaling(m).expression(m), m.p), q, p, 0)
