"""Models of first order in descriptor form: ``residual(t, x, x', k) = 0`` with the terms of a power balance."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens.errors import InputError, suggestion
from livens.expressions.layout import Layout
from livens.models.model import Model, View


@dataclass(frozen=True, eq=False)
class Descriptor:
    """All that integrating in time needs: ``residual(t, x, x', k) = 0`` and the terms of the power balance.

    Expressions of the symbols x, xdot, t, k; inputs are inserted. Along solutions
    ``d/dt stored = supplied - dissipated`` (S002 thm. 4.2).
    """

    x: Any
    xdot: Any
    t: Any
    k: Any
    residual: Any
    stored: Any = None  # energy, if the model has one
    dissipated: Any = 0.0
    supplied: Any = 0.0
    u: Any = None
    y: Any = None


class DescriptorModel(Model):
    """A model of first order. Its state is x, of which the last may be algebraic variables y."""

    usual_scheme = "gauss-2"

    @property
    def descriptor(self) -> Descriptor:
        raise NotImplementedError

    @functools.cached_property
    def regular_flow(self) -> bool:
        """``x'`` follows from x: the derivative of the residual by x' is regular at a generic state."""
        import numpy as np

        d = self.descriptor
        matrix = ca.Function("E", [d.x, d.xdot, d.t, d.k], [ca.jacobian(d.residual, d.xdot)])
        random = np.random.default_rng(1)
        x, xdot = (random.uniform(0.5, 1.5, d.x.numel()) for _ in range(2))
        values = np.array(matrix(x, xdot, 0.7, self.parameter_vector()))
        return bool(np.all(np.isfinite(values)) and np.linalg.matrix_rank(values) == d.x.numel())

    @functools.cached_property
    def autonomous(self) -> bool:
        d = self.descriptor
        return not ca.depends_on(d.residual, d.t)

    @property
    def layout(self) -> Layout:
        parts = {"x": len(self.coordinates)} | ({"y": len(self.algebraic)} if self.algebraic else {})
        if self.descriptor.stored is not None:
            parts |= {"supplied_energy": 1, "dissipated_energy": 1}
        return Layout(**parts)

    @functools.cached_property
    def view(self) -> View:
        return DescriptorView(self, self.observables)

    @property
    def observables(self) -> Mapping[str, Any]:
        """Expressions of the descriptor's symbols that can be asked for by name."""
        return {}

    def watched_energy(self, conserved: tuple[str, ...]) -> str:
        return "hamiltonian" if self.descriptor.stored is not None else ""

    def magnitude(self) -> Any:
        stored = self.descriptor.stored
        return 0.0 if stored is None else ca.fabs(stored)


class DescriptorView(View):
    """The symbols of a descriptor, x and y apart, and its observables."""

    def __init__(self, model: DescriptorModel, observables: Mapping[str, Any]) -> None:
        d, n = model.descriptor, len(model.coordinates)
        self.symbols = {"x": d.x[:n]} | ({"y": d.x[n:]} if model.algebraic else {})
        self.t, self.k = d.t, d.k
        self._expressions = dict(observables)
        if d.stored is not None:
            self._expressions["hamiltonian"] = d.stored

    # the descriptor's x may be one symbol: the parts of it are not symbols, so functions are made of the whole
    @property
    def state(self) -> Any:
        return ca.vertcat(*self.symbols.values())

    def expression(self, name: str) -> Any:
        if name not in self._expressions:
            raise InputError(f"unknown observable '{name}'{suggestion(str(name), self._expressions)}")
        return self._expressions[name]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._expressions)
