"""Equations of steps with a step density, which keep the structure of the equations of the base scheme."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.expressions.evaluate import Evaluator
from livens.models.base import sha256_of
from livens.models.system import System
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations, StepGraph
from livens.types import FloatArray

if TYPE_CHECKING:
    from livens.models.base import Model
    from livens.schemes.time_transformed.step_density_over import StepDensityOver


class StepDensityEquations(StepEquations):
    """Step equations of a base scheme with a step density; time and density are further parts of the state.

    `to_single_graph` adds the step size to the graph of the base scheme. Tiers that step element by element or on a
    tree take steps of the base scheme, whose sizes follow from `density_rate` or `log_scaling`.
    """

    def __init__(self, scheme: StepDensityOver, model: Model, base: StepEquations) -> None:
        self._scheme, self._model, self.base = scheme, model, base
        n_accelerations = 0
        if scheme.needs_acceleration(model):
            assert isinstance(model, System)
            n_accelerations = model.n + model.m
        extra = {"mean_acceleration": n_accelerations} if n_accelerations else {}
        self.layout = base.layout.extended(t=1, step_density=1, **extra)

    @property
    def base_scheme(self) -> Scheme:
        """Scheme of the steps."""
        return self._scheme.base

    @functools.cached_property
    def _graph(self) -> StepGraph:
        return self._scheme.single_graph(self._model, self.base.to_single_graph())

    def to_single_graph(self) -> StepGraph:
        return self._graph

    @property
    def n_assembled_unknowns(self) -> int:
        return self.base.n_assembled_unknowns

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the equations of the base scheme and of the scaling function."""
        parts = [evaluator.serialize() for evaluator in (self._density_rate or self._log_scaling,)]
        return sha256_of(["step density", *parts, self.base.fingerprint])

    # -- numeric evaluation, for tiers without a graph of all equations ------------------------------------------------
    @functools.cached_property
    def integrates_density(self) -> bool:
        """True if the density is integrated; False if the step size is an unknown of the step."""
        return self._scheme.integrates_density(self._model)

    @functools.cached_property
    def _density_rate(self) -> ca.Function | None:
        """Rate of log Q as a function of state and parameters."""
        if not self.integrates_density:
            return None
        layout = self.base.layout
        z, k = ca.SX.sym("z", layout.size), ca.SX.sym("k", self._n_parameters)
        rate = self._scheme.log_density_rate(self._model, k)(*(z[layout[name]] for name in "qvp"))
        return ca.Function("rate", [z, k], [ca.densify(ca.SX(rate))])

    @functools.cached_property
    def _log_scaling(self) -> ca.Function:
        """Logarithm of g as a function of both states of a step, inputs, fictive step size and accelerations."""
        n_accelerations = self.layout.sizes.get("mean_acceleration", 0)
        old, new = ca.SX.sym("old", self.base.layout.size), ca.SX.sym("new", self.base.layout.size)
        c, unit = ca.SX.sym("c", 2 + self._n_parameters), ca.SX.sym("unit")
        a = ca.SX.sym("a", n_accelerations)
        g = self._scheme.scaling_of_step(self._model, self.base.layout, old, new, c, unit, a)
        return ca.Function("log_scaling", [old, new, c, unit, a], [ca.densify(ca.log(g))])

    @functools.cached_property
    def uses_multipliers(self) -> bool:
        """True if the scaling of a step depends on its multipliers."""
        layout, arguments = self.base.layout, self._log_scaling.sx_in()
        if "multipliers" not in layout:
            return False
        return bool(ca.depends_on(self._log_scaling(*arguments), arguments[1][layout["multipliers"]]))

    @property
    def _n_parameters(self) -> int:
        return int(self._model.view.k.numel())

    @functools.cached_property
    def density_rate(self) -> Callable[[FloatArray, FloatArray], float]:
        """Rate of the logarithm of the step density: a function of the state of the base scheme and the parameters."""
        function = self._density_rate
        assert function is not None
        evaluate = Evaluator.of_function(function)
        return lambda z, k: float(evaluate(z, k)[0][0, 0])

    @functools.cached_property
    def log_scaling(self) -> Callable[[FloatArray, FloatArray, FloatArray, float], tuple[float, FloatArray]]:
        """Function of both states of a step, its inputs and the fictive step size: log g, and the accelerations."""
        evaluate, model = Evaluator.of_function(self._log_scaling), self._model
        accelerations = self._scheme.accelerations_of_step if self._scheme.needs_acceleration(model) else None

        def log_scaling(old: FloatArray, new: FloatArray, c: FloatArray, unit: float) -> tuple[float, FloatArray]:
            a = np.zeros(0) if accelerations is None else accelerations(model, self.base.layout, old, new, c)
            return float(evaluate(old, new, c, unit, a)[0][0, 0]), a

        return log_scaling
