"""Base classes of time-transformed schemes: equal steps in fictive time tau, physical time as part of the state."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.nambu import Nambu
from livens.schemes.base import Requirement, Scheme
from livens.schemes.recipes.maps import MapScheme, Phase, phase_of
from livens.schemes.scaling import Scaling, written
from livens.schemes.step import StepEquations

CONSERVATIVE = Requirement("conservative", "forces that have a potential, and nothing that depends on time")
SEPARABLE = Requirement("separable", "an energy T(p) + V(q)")


class Adaptive(Scheme):
    """Time-transformed scheme with a scaling function ``dt/dtau = g``, which is required."""

    group = "Schemes with adaptive steps, by a scaling function"
    fictive = True
    #: Arguments that g may depend on: "energies", "q" or "state".
    wants: ClassVar[str] = "state"
    scaling: Scaling | None = None

    def scaled(self, scaling: Any) -> Scheme:
        """Return the scheme with this scaling; a function is wrapped by `livens.scaling.user_scaling`."""
        if not isinstance(scaling, Scaling):
            if not callable(scaling):
                raise InputError(
                    f"scheme '{self.name}' needs a scaling that is a function of the state, such as "
                    f"livens.scaling.speed(), got {scaling!r}"
                )
            scaling = written(scaling)
        made = copy.copy(self)
        made.scaling = scaling
        return made

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.scaling == getattr(other, "scaling", None)

    def __hash__(self) -> int:
        return hash((super().__hash__(), self.scaling))

    def scaling_for(self, model: Hamiltonian | Nambu) -> Scaling:
        """Return the scaling, after checking that it exists and suits the scheme."""
        if self.scaling is None:
            raise InputError(
                f"scheme '{self.name}' needs a scaling function for its steps, such as "
                "scaling=livens.scaling.speed(); see livens.scaling"
            )
        self.scaling.require(model, self.wants, self.name)
        return self.scaling

    def start_scale(self, model: Any, k: Any, *state: Any) -> float:
        """Return g in the initial state; raise InputError unless it is finite and positive."""
        scaling = self.scaling_for(model)
        symbols = [model.x] if "nambu" in model.forms else [model.q, model.p]
        value = float(ca.Function("g", [*symbols, model.k], [scaling.expression(model)])(*state, k))
        if not (np.isfinite(value) and value > 0):
            raise InputError(
                f"the scaling {scaling} is {value:g} in the initial state; it must be finite and greater than 0"
            )
        return value


class AdaptiveMap(Adaptive, MapScheme):
    """Time-transformed map in coordinates and momenta; the initial energy is a constant in the state."""

    requires: tuple[Requirement, ...] = (CONSERVATIVE,)

    def add(self, model: Hamiltonian) -> dict[str, int]:
        return {"t": 1, "start_energy": 1}

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        phase = Phase(phase_of(model), k)
        q, p = values["q"], values["p"]
        self.start_scale(phase.model, k, q, p)
        return {"t": t, "start_energy": float(phase.H(q, p, t))}

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        self.scaling_for(phase_of(model))
        return super().equations(model, dropped)

    def g(self, phase: Phase, q: Any, p: Any) -> Any:
        """Return the scaling at (q, p)."""
        return phase.any("g", self.scaling_for(phase.model).expression(phase.model), q, p, 0)

    def g_q(self, phase: Phase, q: Any, p: Any) -> Any:
        m = phase.model
        return phase.any("g_q", ca.gradient(self.scaling_for(m).expression(m), m.q), q, p, 0)

    def g_p(self, phase: Phase, q: Any, p: Any) -> Any:
        m = phase.model
        return phase.any("g_p", ca.gradient(self.scaling_for(m).expression(m), m.p), q, p, 0)
