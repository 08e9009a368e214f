"""Splitting methods of Nambu systems: composition of exact flows of parts of the Hamiltonians."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.layout import Layout
from livens.models.nambu import Nambu
from livens.schemes.base import Scheme
from livens.schemes.recipes.adaptive import Adaptive
from livens.schemes.recipes.maps import digits, map_equations
from livens.schemes.step import StepEquations
from livens.schemes.step_density import with_density

#: Flow of one part of a splitting: (state, time) -> state.
Flow = Callable[[Any, Any], Any]


class NambuSplitting(Scheme):
    """Symmetric splitting: exact half-step flows, the last part for a full step, then back (S003 paper IV, 4.1)."""

    group = "Nambu systems"
    forms = ("nambu",)
    order, symplectic, symmetric = 2, False, True
    conserves: tuple[str, ...] = ()
    implicit = False

    def flows(self, model: Nambu, k: Any) -> Sequence[Flow]:
        """Return the subflows, in their order."""
        raise NotImplementedError

    def splitting(self, model: Nambu, k: Any, x: Any, h: Any) -> Any:
        """Return the state after one step of the splitting."""
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
    """Splitting of the second Hamiltonian: ``{M, T_1, .} + {M, T_2, .} + {M, T_3, .}`` with ``T_i = t_i x_i^2/2``.

    Each part rotates the state about one axis, on the ellipsoid M: the first Hamiltonian is conserved exactly.
    """

    #: Index of the Hamiltonian that is not split.
    whole: int = 0

    def missing(self, model: Any) -> list[str]:
        missing = super().missing(model)
        if missing:
            return missing
        if model.n != 3 or model.diagonal is None:
            return ["two Hamiltonians that are sums of squares c_i x_i^2/2"]
        values = np.array(ca.Function("d", [model.k], [model.diagonal])(model.parameter_vector()))
        which = ("first", "second")[self.whole]
        return [] if np.all(values[self.whole] > 0) else [f"a {which} Hamiltonian with positive coefficients"]

    def flows(self, model: Nambu, k: Any) -> Sequence[Flow]:
        m, T = ca.vertsplit(ca.Function("d", [model.k], [model.diagonal])(k))
        if self.whole:  # {M, T, .} = {T, -M, .}
            m, T = T, -m

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
    """Splitting of all Hamiltonians into shears: each part changes one state variable linearly in time.

    In three dimensions the parts are ``{M_1 + M_2, T_1 + T_2, .}``, which changes x_3, and so on. The time derivative
    of a state variable must not depend on that variable.
    """

    def missing(self, model: Any) -> list[str]:
        missing = super().missing(model)
        if missing:
            return missing
        return [] if model.componentwise else ["time derivatives that do not depend on their own state variable"]

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
    """Time-transformed splitting with an additional Hamiltonian ``G = G1(x) + G2(xi)`` (S003 paper IV, 4.1).

    ``{M, T, G, .}`` moves x with ``G2'(xi) x'`` in fictive time, and the additional state xi with the rate of -G1. For
    a scaling g, G1 is chosen such that ``G2'(xi) = g`` on the initial level set of G. In the paper ``G2 = log xi``, so
    that xi is a step density and ``G1 = log g``; `power` selects other functions ``G2 = xi^m/m``.
    """

    #: Exponent m of G2; 0 is the logarithm.
    power: float = 0.0

    def _extra(self, g: Any) -> Any:
        """Return ``-G1`` as a function of the scaling."""
        m = self.power
        return -ca.log(g) if m == 0.0 else g ** (m / (m - 1)) / m

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        return {"t": t, "step_density": self.start_scale(model, k, values["x"]) ** (1 / (self.power - 1))}

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        extra = self._extra(self.scaling_for(model).expression(model))
        rate = model.function(ca.dot(ca.gradient(extra, model.x), model.field))

        def write(old: Any, x: Any, h: Any, t: Any, k: Any) -> Any:
            def base(size: Any) -> tuple[Any, Any]:
                new = self.splitting(model, k, old.x, size)
                return new, rate(new, k)

            size, new, xi, _ = with_density(old.step_density, rate(old.x, k), h, base, self.power - 1)
            return {"x": new, "t": old.t + size, "step_density": xi}, (), {}

        return map_equations(model.layout.with_(t=1, step_density=1), Layout(), model.parameter_count, write)


class NambuT(Rotations):
    """Splitting into rotations about the three axes, with equal steps."""

    name = "nambu-t"
    conserves = ("first Hamiltonian",)
    summary, source = "rotations: the second of two Hamiltonians is split", "S003 paper IV, 4.1"


class NambuM(Rotations):
    """Splitting of the first Hamiltonian; the second is conserved exactly (S003 paper IV, remark 4.3)."""

    name = "nambu-m"
    whole = 1
    conserves = ("second Hamiltonian",)
    summary, source = "rotations: the first of two Hamiltonians is split", "S003 paper IV, remark 4.3"


class NambuMT(Shears):
    """Splitting into shears along the axes, with equal steps."""

    name = "nambu-mt"
    summary, source = "straight lines: all Hamiltonians are split", "S003 paper IV, 4.1"


class NambuTG(AdaptiveNambu, Rotations):
    """Splitting into rotations about the three axes, with adaptive steps."""

    name = "nambu-t-g"
    conserves = ("first Hamiltonian",)
    summary, source = "rotations, in adaptive steps", "S003 paper IV, 4.1"


class NambuMG(AdaptiveNambu, NambuM):
    """Splitting into rotations that conserves the second Hamiltonian, with adaptive steps."""

    name = "nambu-m-g"
    summary, source = "rotations that conserve the second Hamiltonian, adaptive steps", "S003 paper IV, remark 4.3"


class NambuMTG(AdaptiveNambu, Shears):
    """Splitting into shears along the axes, with adaptive steps."""

    name = "nambu-mt-g"
    summary, source = "straight lines, in adaptive steps", "S003 paper IV, 4.1"


class _OtherExtra(AdaptiveNambu):
    """Time-transformed splitting with ``G2 = xi^m/m``, for m other than 1, which would give equal steps."""

    def __init__(self, power: float) -> None:
        if power == 1.0:
            raise InputError(f"{type(self).family} with the power 1 has equal steps: take any other power")
        self.power, self.name = power, type(self).family.replace("<power>", digits(power))


class NambuTGPower(_OtherExtra, NambuTG):
    """Splitting into rotations with adaptive steps and ``G2 = xi^m/m``; the power 0 is `nambu-t-g`."""

    family = "nambu-t-g:<power>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((-1.0,), (2.0,))
    summary, source = "rotations, in adaptive steps by another extra Hamiltonian", "S003 paper IV, 4.1"


class NambuMTGPower(_OtherExtra, NambuMTG):
    """Splitting into shears with adaptive steps and ``G2 = xi^m/m``; the power 0 is `nambu-mt-g`."""

    family = "nambu-mt-g:<power>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((-1.0,), (2.0,))
    summary, source = "straight lines, in adaptive steps by another extra Hamiltonian", "S003 paper IV, 4.1"
