"""Splitting methods of Nambu systems: composition of exact flows of parts of the Hamiltonians."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.state_layout import Layout
from livens.models.nambu import Nambu
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.phase_space_map import format_number, map_step_graph
from livens.schemes.discretization.time_transformation import TimeTransformed
from livens.schemes.time_transformed.step_density import density_step
from livens.types import Expr

#: Flow of one part of a splitting: (state, time) -> state.
Flow = Callable[[Expr, Expr], Expr]


class NambuSplitting(Scheme):
    """Symmetric splitting: exact half-step flows, the last part for a full step, then back.

    See Modin 2009, paper IV, 4.1.
    """

    group = "Nambu systems"
    formulations = ("nambu",)
    order, symplectic, symmetric = 2, False, True
    conserves: tuple[str, ...] = ()
    implicit = False

    def subflows(self, model: Nambu, k: Expr) -> Sequence[Flow]:
        """Return the subflows, in their order."""
        raise NotImplementedError

    def compose(self, model: Nambu, k: Expr, x: Expr, h: Expr) -> Expr:
        """Return the state after one step of the splitting."""
        flows = self.subflows(model, k)
        for flow in flows[:-1]:
            x = flow(x, h / 2)
        x = flows[-1](x, h)
        for flow in flows[-2::-1]:
            x = flow(x, h / 2)
        return x

    def equations(self, model: Nambu, removed_constraints: Collection[int] = ()) -> StepEquations:
        def build_step(old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr, k: Expr) -> Any:
            return {"x": self.compose(model, k, old.x, h)}, (), {}

        return map_step_graph(model.layout, Layout(), model.parameter_count, build_step)


class Rotations(NambuSplitting):
    """Splitting of the second Hamiltonian: ``{M, T_1, .} + {M, T_2, .} + {M, T_3, .}`` with ``T_i = t_i x_i^2/2``.

    Each part rotates the state about one axis, on the ellipsoid M: the first Hamiltonian is conserved exactly.
    """

    #: Index of the Hamiltonian that is not split.
    unsplit_index: int = 0

    def unmet_requirements(self, model: Any) -> list[str]:
        unmet = super().unmet_requirements(model)
        if unmet:
            return unmet
        if model.n != 3 or model.diagonal_coefficients is None:
            return ["two Hamiltonians that are sums of squares c_i x_i^2/2"]
        values = np.array(ca.Function("d", [model.k], [model.diagonal_coefficients])(model.parameter_vector()))
        ordinal = ("first", "second")[self.unsplit_index]
        return [] if np.all(values[self.unsplit_index] > 0) else [f"a {ordinal} Hamiltonian with positive coefficients"]

    def subflows(self, model: Nambu, k: Expr) -> Sequence[Flow]:
        m, T = ca.vertsplit(ca.Function("d", [model.k], [model.diagonal_coefficients])(k))
        if self.unsplit_index:  # {M, T, .} = {T, -M, .}
            m, T = T, -m

        def rotation_flow(i: int) -> Flow:
            j, l = (i + 1) % 3, (i + 2) % 3  # noqa: E741  # i, j, l are cyclic
            ratio = ca.sqrt(m[j] / m[l])

            def flow(x: Expr, s: Expr) -> Expr:
                angle = s * T[i] * x[i] * ca.sqrt(m[j] * m[l])
                cos, sin = ca.cos(angle), ca.sin(angle)
                new = ca.SX(x)
                new[j] = cos * x[j] + sin * x[l] / ratio
                new[l] = cos * x[l] - sin * x[j] * ratio
                return new

            return flow

        return [rotation_flow(i) for i in range(3)]


class Shears(NambuSplitting):
    """Splitting of all Hamiltonians into shears: each part changes one state variable linearly in time.

    In three dimensions the parts are ``{M_1 + M_2, T_1 + T_2, .}``, which changes x_3, and so on. The time derivative
    of a state variable must not depend on that variable.
    """

    def unmet_requirements(self, model: Any) -> list[str]:
        unmet = super().unmet_requirements(model)
        if unmet:
            return unmet
        return (
            []
            if model.is_divergence_free_componentwise
            else ["time derivatives that do not depend on their own state variable"]
        )

    def subflows(self, model: Nambu, k: Expr) -> Sequence[Flow]:
        rate = model.function(model.vector_field)

        def shear_flow(i: int) -> Flow:
            def flow(x: Expr, s: Expr) -> Expr:
                new = ca.SX(x)
                new[i] += s * rate(x, k)[i]
                return new

            return flow

        return [shear_flow(i % model.n) for i in range(-1, model.n - 1)]


class TimeTransformedNambu(TimeTransformed, NambuSplitting):
    """Time-transformed splitting with an additional Hamiltonian ``G = G1(x) + G2(xi)`` (Modin 2009, paper IV, 4.1).

    ``{M, T, G, .}`` moves x with ``G2'(xi) x'`` in fictive time, and the additional state xi with the rate of -G1. For
    a scaling g, G1 is chosen such that ``G2'(xi) = g`` on the initial level set of G. In the paper ``G2 = log xi``, so
    that xi is a step density and ``G1 = log g``; `power` selects other functions ``G2 = xi^m/m``.
    """

    #: Exponent m of G2; 0 is the logarithm.
    power: float = 0.0

    def _G1(self, g: Expr) -> Expr:
        """Return ``-G1`` as a function of the scaling."""
        m = self.power
        return -ca.log(g) if m == 0.0 else g ** (m / (m - 1)) / m

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, object], k: Any, t: float, h: float
    ) -> dict[str, Any]:
        return {"t": t, "step_density": self.initial_scaling(model, k, values["x"]) ** (1 / (self.power - 1))}

    def equations(self, model: Nambu, removed_constraints: Collection[int] = ()) -> StepEquations:
        G1 = self._G1(self.checked_scaling(model).expression(model))
        rate = model.function(ca.dot(ca.gradient(G1, model.x), model.vector_field))

        def build_step(old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr, k: Expr) -> Any:
            def base(size: Expr) -> tuple[Expr, Expr]:
                new = self.compose(model, k, old.x, size)
                return new, rate(new, k)

            size, new, xi, _ = density_step(old.step_density, rate(old.x, k), h, base, self.power - 1)
            return {"x": new, "t": old.t + size, "step_density": xi}, (), {}

        return map_step_graph(model.layout.extended(t=1, step_density=1), Layout(), model.parameter_count, build_step)


class NambuT(Rotations):
    """Splitting into rotations about the three axes, with equal steps."""

    name = "nambu-t"
    conserves = ("first Hamiltonian",)
    summary, source = "rotations: the second of two Hamiltonians is split", "Modin 2009, paper IV, 4.1"
    when_to_use = "Nambu systems in space: conserves the first Hamiltonian and volume."
    when_to_avoid = "The second Hamiltonian has to be exact: use `nambu-m`."


class NambuM(Rotations):
    """Splitting of the first Hamiltonian; the second is conserved exactly (Modin 2009, paper IV, remark 4.3)."""

    name = "nambu-m"
    unsplit_index = 1
    conserves = ("second Hamiltonian",)
    summary, source = "rotations: the first of two Hamiltonians is split", "Modin 2009, paper IV, remark 4.3"
    when_to_use = "Nambu systems in space: conserves the second Hamiltonian and volume."
    when_to_avoid = "The first Hamiltonian has to be exact: use `nambu-t`."


class NambuMT(Shears):
    """Splitting into shears along the axes, with equal steps."""

    name = "nambu-mt"
    summary, source = "straight lines: all Hamiltonians are split", "Modin 2009, paper IV, 4.1"
    when_to_use = "Nambu systems whose single components have linear flows."
    when_to_avoid = "One Hamiltonian has to be exact: use `nambu-t` or `nambu-m`."


class NambuTG(TimeTransformedNambu, Rotations):
    """Splitting into rotations about the three axes, with adaptive steps."""

    name = "nambu-t-g"
    conserves = ("first Hamiltonian",)
    summary, source = "rotations, in adaptive steps", "Modin 2009, paper IV, 4.1"
    when_to_use = "Nambu systems with adaptive steps that conserve the first Hamiltonian."
    when_to_avoid = "Steps need not vary: use `nambu-t`."


class NambuMG(TimeTransformedNambu, NambuM):
    """Splitting into rotations that conserves the second Hamiltonian, with adaptive steps."""

    name = "nambu-m-g"
    summary, source = (
        "rotations that conserve the second Hamiltonian, adaptive steps",
        "Modin 2009, paper IV, remark 4.3",
    )
    when_to_use = "Nambu systems with adaptive steps that conserve the second Hamiltonian."
    when_to_avoid = "Steps need not vary: use `nambu-m`."


class NambuMTG(TimeTransformedNambu, Shears):
    """Splitting into shears along the axes, with adaptive steps."""

    name = "nambu-mt-g"
    summary, source = "straight lines, in adaptive steps", "Modin 2009, paper IV, 4.1"
    when_to_use = "Nambu systems with adaptive steps and flows along straight lines."
    when_to_avoid = "One Hamiltonian has to be exact: use `nambu-t-g`."


class _PowerLawG2(TimeTransformedNambu):
    """Time-transformed splitting with ``G2 = xi^m/m``, for m other than 1, which would give equal steps."""

    def __init__(self, power: float) -> None:
        if power == 1.0:
            raise InputError(f"{type(self).family} with the power 1 has equal steps: take any other power")
        self.power, self.name = power, type(self).family.replace("<power>", format_number(power))


class NambuTGPower(_PowerLawG2, NambuTG):
    """Splitting into rotations with adaptive steps and ``G2 = xi^m/m``; the power 0 is `nambu-t-g`."""

    family = "nambu-t-g:<power>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((-1.0,), (2.0,))
    summary, source = "rotations, in adaptive steps by another extra Hamiltonian", "Modin 2009, paper IV, 4.1"
    when_to_use = "You study other extra Hamiltonians for the step size."
    when_to_avoid = "You want the standard choice: use `nambu-t-g`."


class NambuMTGPower(_PowerLawG2, NambuMTG):
    """Splitting into shears with adaptive steps and ``G2 = xi^m/m``; the power 0 is `nambu-mt-g`."""

    family = "nambu-mt-g:<power>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((-1.0,), (2.0,))
    summary, source = "straight lines, in adaptive steps by another extra Hamiltonian", "Modin 2009, paper IV, 4.1"
    when_to_use = "You study other extra Hamiltonians for the step size."
    when_to_avoid = "You want the standard choice: use `nambu-mt-g`."
