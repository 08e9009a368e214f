"""Splittings of Nambu systems: exact flows of parts of their Hamiltonians, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.layout import Layout
from livens.models.nambu import Nambu
from livens.schemes.base import Scheme
from livens.schemes.recipes.adaptive import Adaptive
from livens.schemes.recipes.maps import map_equations
from livens.schemes.step import StepEquations
from livens.schemes.step_density import with_density

#: One part of a splitting: a state and a time to the state after it.
Flow = Callable[[Any, Any], Any]


class NambuSplitting(Scheme):
    """Exact flows of the parts, each for half a step, the last for a whole one, then back (S003 paper IV, 4.1)."""

    group = "Nambu systems"
    forms = ("nambu",)
    order, symplectic, symmetric = 2, False, True
    conserves: tuple[str, ...] = ()
    implicit = False

    def flows(self, model: Nambu, k: Any) -> Sequence[Flow]:
        """The parts, in their order."""
        raise NotImplementedError

    def splitting(self, model: Nambu, k: Any, x: Any, h: Any) -> Any:
        """One step of the base scheme."""
        flows = self.flows(model, k)
        for flow in flows[:-1]:
            x = flow(x, h / 2)
        x = flows[-1](x, h)
        for flow in flows[-2::-1]:
            x = flow(x, h / 2)
        return x

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        def write(old: Any, x: Any, h: Any, t: Any, k: Any) -> Any:
            return {"x": self.splitting(model, k, old.x, h)}, (), {}

        return map_equations(model.layout, Layout(), model.parameter_count, write)


class Rotations(NambuSplitting):
    """The second Hamiltonian is split: ``{M, T_1, .} + {M, T_2, .} + {M, T_3, .}`` with ``T_i = t_i x_i^2/2``.

    Each part turns the state about one axis, on the ellipsoid M: the first Hamiltonian is conserved exactly.
    """

    def missing(self, model: Any) -> list[str]:
        missing = super().missing(model)
        if missing:
            return missing
        if model.n != 3 or model.diagonal is None:
            return ["two Hamiltonians that are sums of squares c_i x_i^2/2"]
        values = np.array(ca.Function("d", [model.k], [model.diagonal])(model.parameter_vector()))
        return [] if np.all(values[0] > 0) else ["a first Hamiltonian with positive coefficients"]

    def flows(self, model: Nambu, k: Any) -> Sequence[Flow]:
        m, T = ca.vertsplit(ca.Function("d", [model.k], [model.diagonal])(k))

        def turn(i: int) -> Flow:
            j, l = (i + 1) % 3, (i + 2) % 3  # noqa: E741  # i, j, l are cyclic
            ratio = ca.sqrt(m[j] / m[l])

            def flow(x: Any, s: Any) -> Any:
                angle = s * T[i] * x[i] * ca.sqrt(m[j] * m[l])
                cos, sin = ca.cos(angle), ca.sin(angle)
                new = ca.SX(x)
                new[j] = cos * x[j] + sin * x[l] / ratio
                new[l] = cos * x[l] - sin * x[j] * ratio
                return new

            return flow

        return [turn(i) for i in range(3)]


class Shears(NambuSplitting):
    """All Hamiltonians are split, so that each part changes one state alone, along a straight line.

    In space these are ``{M_1 + M_2, T_1 + T_2, .}``, which moves x_3, and so on. That needs rates that do not depend on
    their own state.
    """

    def missing(self, model: Any) -> list[str]:
        missing = super().missing(model)
        if missing:
            return missing
        return [] if model.componentwise else ["rates that do not depend on their own state"]

    def flows(self, model: Nambu, k: Any) -> Sequence[Flow]:
        rate = model.function(model.field)

        def shear(i: int) -> Flow:
            def flow(x: Any, s: Any) -> Any:
                new = ca.SX(x)
                new[i] += s * rate(x, k)[i]
                return new

            return flow

        return [shear(i % model.n) for i in range(-1, model.n - 1)]


class AdaptiveNambu(Adaptive, NambuSplitting):
    """A further Hamiltonian ``G = log(xi/Q)`` and a further state xi make the steps adaptive (S003 paper IV, 4.1).

    ``{M, T, G, .}`` moves x with ``x'/xi`` in fictive time, and xi with the rate of log Q. xi is a density of steps,
    Q the reciprocal of the scaling.
    """

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        return {"t": t, "step_density": 1 / self.start_scale(model, k, values["x"])}

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        log = -ca.log(self.scaling_for(model).expression(model))
        rate = model.function(ca.dot(ca.gradient(log, model.x), model.field))

        def write(old: Any, x: Any, h: Any, t: Any, k: Any) -> Any:
            def base(size: Any) -> tuple[Any, Any]:
                new = self.splitting(model, k, old.x, size)
                return new, rate(new, k)

            size, new, density, _ = with_density(old.step_density, rate(old.x, k), h, base)
            return {"x": new, "t": old.t + size, "step_density": density}, (), {}

        return map_equations(model.layout.with_(t=1, step_density=1), Layout(), model.parameter_count, write)


class NambuT(Rotations):
    """Rotations about the three axes in equal steps."""

    name = "nambu-t"
    conserves = ("first Hamiltonian",)
    summary, source = "rotations: the second of two Hamiltonians is split", "S003 paper IV, 4.1"


class NambuMT(Shears):
    """Straight lines along the axes in equal steps."""

    name = "nambu-mt"
    summary, source = "straight lines: all Hamiltonians are split", "S003 paper IV, 4.1"


class NambuTG(AdaptiveNambu, Rotations):
    """Rotations about the three axes in adaptive steps."""

    name = "nambu-t-g"
    conserves = ("first Hamiltonian",)
    summary, source = "rotations, in adaptive steps", "S003 paper IV, 4.1"


class NambuMTG(AdaptiveNambu, Shears):
    """Straight lines along the axes in adaptive steps."""

    name = "nambu-mt-g"
    summary, source = "straight lines, in adaptive steps", "S003 paper IV, 4.1"
