"""Composition methods of order 4, 6 and 8 with a symmetric base scheme.

A symmetric step is the flow of a vector field ``X_1 + h^2 X_3 + h^4 X_5 + ...``. Consecutive steps of sizes ``w_i h``,
some of them negative, have a higher order if the weights w satisfy order conditions that hold for every model.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from livens.errors import InputError, explain_call_errors, suggestion
from livens.models.base import sha256_of
from livens.schemes.core.registry import get
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations, StepGraph
from livens.schemes.discretization.assembly_plan import AssemblyPlan
from livens.types import Expr, FloatArray

ORDERS = (4, 6, 8)
#: First half of the symmetric weights, including the weight in the middle.
_YOSHIDA = {
    6: (0.78451361047755726382, 0.23557321335935813368, -1.17767998417887100695, 1.31518632068391121889),
    8: (
        0.74167036435061295345, -0.40910082580003159400, 0.19075471029623837995, -0.57386247111608226666,
        0.29906418130365592384, 0.33462491824529818378, 0.31529309239676659663, -0.79688793935291635402,
    ),
}  # fmt: skip
_KAHAN_LI = {
    6: (
        0.39216144400731413928, 0.33259913678935943860, -0.70624617255763935981, 0.082213596293550800230,
        0.79854399093482996340,
    ),
    8: (
        0.13020248308889008087881763, 0.56116298177510838456196441, -0.38947496264484728640807860,
        0.15884190655515560089621075, -0.39590389413323757733623154, 0.18453964097831570709183254,
        0.25837438768632204729397911, 0.29501172360931029887096624, -0.60550853383003451169892108,
    ),
}  # fmt: skip


def symmetric_jump_weights(count: int, order: int, base: int = 2) -> tuple[float, ...]:
    """Return the weights of the symmetric jump with `count` substeps, the middle one backwards, for an order.

    Each recursion raises the order by two. The weights of the outer steps are ``1/(c - c^(1/(p+1)))`` with
    ``c = count - 1`` and the current order p: the sum of all weights is 1, the sum of their powers ``p + 1`` is 0.
    """
    weights = np.ones(1)
    for p in range(base, order, 2):
        c = count - 1
        outer = 1 / (c - c ** (1 / (p + 1)))
        middle = 1 - c * outer
        weights = np.concatenate([(middle if i == c // 2 else outer) * weights for i in range(count)])
    weights[len(weights) // 2] += 1 - math.fsum(weights)  # remove the accumulated round-off of the total time
    return tuple(weights.tolist())


def composition_weights(method: str, order: int, base: int = 2) -> tuple[float, ...]:
    """Return the substep sizes, in units of h, of a composition that raises the order from `base` to `order`.

    >>> [len(composition_weights(method, 6)) for method in ("yoshida", "triple-jump", "suzuki", "kahan-li")]
    [7, 9, 25, 9]
    """
    if order not in ORDERS:
        raise InputError(f"compositions have order 4, 6 or 8, not {order}")
    if method == "triple-jump" or (method == "yoshida" and order == 4):
        return symmetric_jump_weights(3, order, base)
    if method == "suzuki":
        return symmetric_jump_weights(5, order, base)
    half = (_YOSHIDA if method == "yoshida" else _KAHAN_LI).get(order)
    if half is None:
        raise InputError(f"there is no composition '{method}' of order {order}; take 'suzuki' or 'yoshida'")
    return (*half, *half[-2::-1])


#: Largest order in the coordinates of compositions of schemes whose velocities leave the constraints.
_MAX_ORDER_OFF_MANIFOLD = 4


class Composition(Scheme):
    """Composition of steps of a symmetric scheme, forwards and backwards, as one step of higher order.

    With constraints, velocities have the declared order only if the base scheme keeps them on the constraints
    (`livens-variational`, `ggl-em`, `rattle`, Lobatto pairs). With other base schemes they have order 2 and coordinates
    order 4; compositions of order 6 and 8 are refused.
    """

    group = "Compositions of a symmetric scheme"
    method: ClassVar[str]

    def __init__(self, order: int, scheme: str | Scheme) -> None:
        self.base = base = get(scheme).as_substep()
        if not base.symmetric:
            raise InputError(f"scheme '{base.name}' is not symmetric: composing it does not raise its order by two")
        if order <= base.order:
            raise InputError(f"scheme '{base.name}' has order {base.order} already, not less than {order}")
        self.weights = composition_weights(self.method, order, base.order)
        self.name, self.order = f"{self.method}-{order}:{base.name}", order
        self.symplectic, self.symmetric, self.conserves = base.symplectic, True, base.conserves
        self.formulations, self.requires = base.formulations, base.requires
        self.implicit, self.fictive = base.implicit, base.fictive
        self.evaluations_per_step = len(self.weights) * base.evaluations_per_step
        self.summary = f"{len(self.weights)} steps of {base.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composition) and self.name == other.name and self.base == other.base

    def __hash__(self) -> int:
        return hash((self.name, self.base))

    def unmet_requirements(self, model: object) -> list[str]:
        unmet = self.base.unmet_requirements(model) or self._unsupported_external_force(model)
        if not unmet and self.order > _MAX_ORDER_OFF_MANIFOLD and self._leaves_velocity_constraints(model):
            return [
                "a base scheme whose velocities satisfy the constraints, such as livens-variational, ggl-em or rattle: "
                f"with '{self.base.name}' coordinates have order {_MAX_ORDER_OFF_MANIFOLD} and velocities order 2"
            ]
        return unmet

    def _leaves_velocity_constraints(self, model: Any) -> bool:
        """Return True if velocities of the base scheme satisfy the constraints to its own order only."""
        if self.base.symplectic or "velocity_constraint" in self.base.conserves or not getattr(model, "m", 0):
            return False
        rigid = {i for frame in getattr(model, "frames", ()) for i in frame.constraints}
        return bool(model.m > len(rigid))

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, FloatArray], k: FloatArray, t: float, h: float
    ) -> dict[str, Any]:
        return self.base.initial_scheme_state(model, values, k, t, h * self.weights[0])

    def symbolic_scheme_state(self, model: Any, q: Expr, p: Expr, k: Expr, t: float, h: float) -> dict[str, Any]:
        return self.base.symbolic_scheme_state(model, q, p, k, t, h * self.weights[0])

    def with_scaling(self, scaling: Any) -> Scheme:
        return type(self)(self.order, self.base.with_scaling(scaling))

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        return ComposedEquations(self.base.equations(model, removed_constraints), self.weights)


class ComposedEquations(StepEquations):
    """Composed step equations: consecutive substeps of sizes ``w_i h`` of a base scheme."""

    def __init__(self, base: StepEquations, weights: tuple[float, ...]) -> None:
        self.base, self.weights, self.layout = base, weights, base.layout

    def to_single_graph(self) -> StepGraph:
        return self._graph

    @functools.cached_property
    def _graph(self) -> StepGraph:
        return concatenate_substeps(self.base.to_single_graph(), self.weights)

    @property
    def n_assembled_unknowns(self) -> int:
        return len(self.weights) * self.base.n_assembled_unknowns

    def assembly_plan(self) -> AssemblyPlan | None:
        """Return the assembly plan of the base scheme; the substeps are decoupled and solved one after the other."""
        base = self.base.assembly_plan()
        if base is None:
            return None
        return dataclasses.replace(
            base, substep_weights=self.weights, dense_output=None, error_estimate=None, error_info=None
        )

    @functools.cached_property
    def fingerprint(self) -> str:
        return sha256_of(["substeps", self.weights, self.base.fingerprint])


def concatenate_substeps(e: StepGraph, weights: Collection[float]) -> StepGraph:
    """Concatenate substeps of sizes ``w_i h`` in one graph, with the unknowns and equations of all substeps."""
    x, z, c = ca.SX.sym("x", len(weights) * e.size), ca.SX.sym("z", e.z.numel()), ca.SX.sym("c", e.c.numel())
    h, state, elapsed = c[0], z, 0.0
    residuals, guesses = [], []
    for i, weight in enumerate(weights):
        x_i = x[i * e.size : (i + 1) * e.size] if e.size else ca.SX(0, 1)
        inputs = ca.vertcat(weight * h, c[1] + elapsed * h, c[2:])
        residuals.append(e.residual_function(x_i, state, inputs))
        guesses.append(e.initial_guess_function(z, inputs))
        state = e.final_state_function(x_i, state, inputs)
        elapsed += weight
    return StepGraph.from_residual(
        x,
        z,
        c,
        residual=ca.densify(ca.vertcat(*residuals)),
        final_state=state,
        initial_guess=ca.densify(ca.vertcat(*guesses)),
        block_sizes=e.block_sizes * len(weights),
        equation_labels=tuple(f"{name} in part {i + 1}" for i in range(len(weights)) for name in e.equation_labels),
        layout=e.layout,
    )


class Yoshida(Composition):
    """Yoshida's compositions with the minimum number of substeps: 3, 7, 15."""

    family, method = "yoshida-<order>:<scheme>", "yoshida"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((4, "stormer-verlet"), (6, "stormer-verlet"))
    source = "Yoshida 1990; order 8: Suzuki and Umeno 1993"
    when_to_use = "Order 4, 6 or 8 from a symmetric scheme with the fewest stages."
    when_to_avoid = "The system is damped: some stages go backwards in time."


class TripleJump(Composition):
    """Triple jump: recursive composition with 3, 9, 27 substeps."""

    family, method = "triple-jump-<order>:<scheme>", "triple-jump"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((4, "implicit-midpoint"),)
    source = "Creutz and Gocksch 1989, Yoshida 1990"
    when_to_use = "You compare with the oldest composition."
    when_to_avoid = "You want efficiency: use `kahan-li-<order>:<scheme>`."


class Suzuki(Composition):
    """Suzuki's fractal: recursive composition with 5, 25, 125 substeps; more but shorter steps, smaller errors."""

    family, method = "suzuki-<order>:<scheme>", "suzuki"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((4, "stormer-verlet"),)
    source = "Suzuki 1990"
    when_to_use = "Order 4 with small error constants: stages are shorter than with `yoshida-4`."
    when_to_avoid = "You need order 6 or 8: the number of stages grows as a power of 5."


class KahanLi(Composition):
    """Kahan and Li's compositions with 9 and 17 short substeps: the smallest errors of orders 6 and 8."""

    family, method = "kahan-li-<order>:<scheme>", "kahan-li"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((6, "stormer-verlet"), (8, "stormer-verlet"))
    source = "Kahan and Li 1997"
    when_to_use = "Order 6 or 8 from a symmetric scheme with the smallest error constants."
    when_to_avoid = "The system is damped: some stages go backwards in time."


_METHODS = {composition.method: composition for composition in (Yoshida, TripleJump, Suzuki, KahanLi)}


@explain_call_errors
def compose(scheme: str | Scheme, order: int, method: str = "yoshida") -> Composition:
    """Return a composition of order 4, 6 or 8 of steps of a symmetric scheme.

    The schemes also have names, such as ``"kahan-li-8:stormer-verlet"``. A composition of an explicit scheme is
    explicit.

    Parameters
    ----------
    scheme : str or Scheme
        Symmetric base scheme.
    order : {4, 6, 8}
        Order of the composition.
    method : {"yoshida", "triple-jump", "suzuki", "kahan-li"}, default "yoshida"
        Composition method.

    Returns
    -------
    Composition
        The composed scheme.

    Raises
    ------
    InputError
        If the method is unknown, the base scheme is not symmetric, or its order is not below `order`.

    Examples
    --------
    >>> import livens as lv
    >>> compose("stormer-verlet", 6), compose("livens-em", 4, "suzuki").symmetric
    (<livens scheme yoshida-6:stormer-verlet>, True)
    """
    if not isinstance(method, str) or method not in _METHODS:
        raise InputError(f"unknown composition '{method}'{suggestion(str(method), _METHODS)}")
    return _METHODS[method](order, scheme)
