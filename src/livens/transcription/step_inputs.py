"""Inputs as polynomials within a step: constant, linear between nodes, or with one value per stage.

An input is a parameter of the model. Within a step it is ``u(t) = sum_j U_j L_j((t - t_n)/h)`` with the Lagrange
polynomials L_j of a few nodes in [0, 1]. For other than constant inputs, the model is rewritten: the input is replaced
by this polynomial, and the values U_j, t_n and h become parameters.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.parameters import ParameterEntry, Parameters
from livens.models.base import Model
from livens.models.descriptor import DescriptorModel
from livens.models.element import ElementType, InvariantExpressions
from livens.models.input_entry import input_entry
from livens.models.system import System
from livens.schemes.core.scheme import Scheme
from livens.schemes.runge_kutta.families import RungeKutta
from livens.schemes.runge_kutta.murua import Murua
from livens.schemes.symplectic.lobatto_pair import LobattoPair
from livens.transcription.bounds import parse_bounds
from livens.validation import check_choice

_ModelT = TypeVar("_ModelT", bound=Model)

SHAPES = ("constant", "linear", "stages")
#: Name of the element that owns the polynomial coefficients in a rewritten model.
_OWNER = "input polynomials"


@dataclass(frozen=True, eq=False)
class DecisionParameter:
    """Parameter of the model that is optimised: its entry in the parameter vector and its bounds."""

    name: str
    entry: ParameterEntry
    lower: np.ndarray
    upper: np.ndarray

    @property
    def size(self) -> int:
        return len(self.lower)

    @functools.cached_property
    def indices(self) -> list[list[int]]:
        """Indices in the parameter vector, one list per slice (tied parameters have several)."""
        return [list(range(s.start, s.stop)) for s in self.entry.slices]


def decision_parameter(model: Model, role: str, name: str, bounds: object) -> DecisionParameter:
    """Return a decision parameter from its name and bounds ``(low, high)`` or None."""
    if not isinstance(name, str):
        raise InputError(f"{role} must map names of parameters to bounds, got the name {name!r}")
    entry = input_entry(model, name).value
    size = entry.slices[0].stop - entry.slices[0].start
    if bounds is None:
        bounds = (None, None)
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise InputError(f"bounds of '{name}' in {role} must be a pair (low, high) or None, got {bounds!r}")
    lower, upper = parse_bounds(f"bounds of '{name}' in {role}", tuple(bounds), size)
    return DecisionParameter(name, entry, lower, upper)


@dataclass(frozen=True, eq=False)
class InputShape:
    """Polynomial of an input within a step: nodes in [0, 1] and the matrix of its square integral."""

    name: str
    nodes: np.ndarray

    @property
    def n_nodes(self) -> int:
        return len(self.nodes)

    @property
    def is_continuous(self) -> bool:
        """True if the last value of a step is the first value of the next step."""
        return self.name == "linear"

    def basis(self, theta: ca.SX) -> list[ca.SX]:
        """Return the Lagrange polynomials at theta in [0, 1]."""
        polynomials = []
        for j, node in enumerate(self.nodes):
            factors = [(theta - other) / (node - other) for i, other in enumerate(self.nodes) if i != j]
            polynomials.append(functools.reduce(lambda a, b: a * b, factors, ca.SX(1)))
        return polynomials

    @functools.cached_property
    def gram_matrix(self) -> np.ndarray:
        """Integrals of products of Lagrange polynomials over [0, 1]: ``int u^2 = h U.M U``."""
        points, weights = np.polynomial.legendre.leggauss(self.n_nodes)
        theta = ca.SX.sym("theta")
        evaluate = ca.Function("basis", [theta], [ca.vertcat(*self.basis(theta))])
        values = np.array([np.array(evaluate((1 + x) / 2)).ravel() for x in points])
        return np.asarray(np.einsum("k,ki,kj->ij", weights / 2, values, values))


def stage_nodes(scheme: Scheme) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of the quadrature of a scheme; the midpoint for schemes without stages."""
    if isinstance(scheme, RungeKutta):
        tableau = scheme.tableau
    elif isinstance(scheme, Murua):
        tableau = scheme.coefficients.gauss
    elif isinstance(scheme, LobattoPair):
        tableau = scheme.pair.q
    else:
        return np.array([0.5]), np.array([1.0])
    return np.asarray(tableau.c, dtype=float), np.asarray(tableau.b, dtype=float)


def input_shape(name: str, scheme: Scheme) -> InputShape:
    """Return the shape of inputs by name."""
    check_choice("shape", name, SHAPES)
    if name == "linear":
        return InputShape(name, np.array([0.0, 1.0]))
    nodes = stage_nodes(scheme)[0] if name == "stages" else np.array([0.5])
    if len(np.unique(nodes)) != len(nodes):
        raise InputError(
            f"shape 'stages' needs distinct stages, and those of scheme '{scheme.name}' coincide: "
            "use shape='constant' or 'linear'"
        )
    return InputShape("constant" if len(nodes) == 1 else name, nodes)


class PolynomialInputs:
    """Model whose inputs are polynomials within a step, and its parameter vector.

    For constant inputs the model is unchanged. `parameters` writes input values, start and size of a step, and free
    parameters into the parameter vector.
    """

    def __init__(self, model: Model, inputs: Sequence[DecisionParameter], shape: InputShape) -> None:
        self.original, self.inputs, self.shape = model, tuple(inputs), shape
        self.n_inputs = sum(parameter.size for parameter in inputs)
        self.n_original = model.parameter_count
        self.model = model if shape.n_nodes == 1 or not inputs else self._rewritten(model)
        self.is_rewritten = self.model is not model

    @property
    def n_values(self) -> int:
        """Number of input values in one step."""
        return self.n_inputs * self.shape.n_nodes

    def parameters(self, k: ca.SX, values: Sequence[ca.SX], t: ca.SX, h: ca.SX) -> ca.SX:
        """Return the parameter vector of a step.

        Parameters
        ----------
        k : casadi.SX
            Parameter vector of the original model.
        values : sequence of casadi.SX
            Values of all inputs at each node of the shape.
        t, h : casadi.SX
            Start and size of the step.
        """
        k, offset = ca.SX(k), 0
        middle = sum(
            (weight * value for weight, value in zip(self.middle_weights, values, strict=True)),
            ca.SX.zeros(self.n_inputs),
        )
        for parameter in self.inputs:
            for indices in parameter.indices:
                k[indices] = middle[offset : offset + parameter.size]
            offset += parameter.size
        return ca.vertcat(k, t, h, *values) if self.is_rewritten else k

    @functools.cached_property
    def middle_weights(self) -> list[float]:
        """Values of the Lagrange polynomials in the middle of a step."""
        return [float(value) for value in self.shape.basis(ca.SX(0.5))]

    # -- rewriting ----------------------------------------------------------------------------------------------------
    def _rewritten(self, model: Model) -> Model:
        tail = Parameters(
            {"since": 0.0, "step": 1.0, **{f"value{j}": np.zeros(self.n_inputs) for j in range(self.shape.n_nodes)}}
        )
        if isinstance(model, System):
            if model.frames:
                raise InputError(
                    f"shape '{self.shape.name}' is not available for bodies with frames: use shape='constant'"
                )
            return self._rewritten_system(model, tail)
        if isinstance(model, DescriptorModel):
            return self._rewritten_descriptor(model, tail)
        raise InputError(f"shape '{self.shape.name}' is not available for a {model.type_label}: use shape='constant'")

    def _rewritten_system(self, system: System, tail: Parameters) -> System:
        new = _copy_without_caches(system)
        new.__dict__["parameter_table"] = system.parameter_table.extended(_OWNER, tail)
        tail_indices = tuple(range(self.n_original, self.n_original + tail.size))
        parameters = tuple((*indices, *tail_indices) for indices in system.element_parameters)
        new.__dict__["element_parameters"] = parameters
        types: dict[tuple[ElementType, tuple[int, ...]], ElementType] = {}
        rewritten = []
        for element_type, indices in zip(system.element_types, system.element_parameters, strict=True):
            key = element_type, self._local_inputs(indices)
            if key not in types:
                types[key] = self._rewritten_type(element_type, indices, tail.size)
            rewritten.append(types[key])
        new.element_types = tuple(rewritten)
        return new

    def _rewritten_descriptor(self, model: DescriptorModel, tail: Parameters) -> DescriptorModel:
        new, d, symbol = _copy_without_caches(model), model.descriptor, ca.SX.sym("inputs", tail.size)
        table = model.parameter_table
        new.__dict__["parameter_table"] = table.extended(_OWNER, tail)
        replaced = self._replaced_parameters(d.k, range(model.parameter_count), d.t, symbol)
        terms = {
            name: ca.substitute(term, d.k, replaced)
            for name in ("residual", "stored", "dissipated", "supplied", "u", "y")
            if isinstance(term := getattr(d, name), ca.SX) and term.numel()
        }
        new.__dict__["descriptor"] = dataclasses.replace(d, k=ca.vertcat(d.k, symbol), **terms)
        return new

    def _replaced_parameters(self, k: ca.SX, indices: Sequence[int], t: ca.SX, tail: ca.SX) -> ca.SX:
        """Return local parameters with the inputs replaced by their polynomials."""
        inputs, replaced = self.polynomials(t, tail), ca.SX(k)
        for local, number in enumerate(self._local_inputs(indices)):
            if number >= 0:
                replaced[local] = inputs[number]
        return replaced

    def _local_inputs(self, indices: Sequence[int]) -> tuple[int, ...]:
        """Return the input that each local parameter is, by its index among all inputs; -1 for other parameters."""
        input_of, offset = dict[int, int](), 0
        for parameter in self.inputs:
            for slice_indices in parameter.indices:
                input_of |= {i: offset + a for a, i in enumerate(slice_indices)}
            offset += parameter.size
        return tuple(input_of.get(i, -1) for i in indices)

    def polynomials(self, t: ca.SX, tail: ca.SX) -> ca.SX:
        """Return all inputs at time t from the coefficients ``(since, step, values...)``."""
        basis = self.shape.basis((t - tail[0]) / tail[1])
        n = self.n_inputs
        return sum(
            (basis[j] * tail[2 + j * n : 2 + (j + 1) * n] for j in range(1, len(basis))), basis[0] * tail[2 : 2 + n]
        )

    def _rewritten_type(self, model: ElementType, indices: Sequence[int], tail_size: int) -> ElementType:
        tail = ca.SX.sym("inputs", tail_size)
        replaced = self._replaced_parameters(model.k, indices, model.t, tail)

        def rewrite(expression: ca.SX) -> ca.SX:
            return ca.substitute(expression, model.k, replaced) if expression.numel() else expression

        if ca.depends_on(rewrite(model.T), tail) or model.velocity_constraints is not None:
            raise InputError(
                f"shape '{self.shape.name}' is not available for inputs of the kinetic energy or of models with "
                "velocity constraints: use shape='constant'"
            )
        forms = {
            role: InvariantExpressions(form.w, rewrite(form.w_of_q), rewrite(form.law), form.w_dot)
            for role, form in model.invariant_forms.items()
        }
        if any(ca.depends_on(form.law, tail) for role, form in forms.items() if role == "potential"):
            del forms["potential"]  # energies of invariants do not depend on time
        return ElementType(
            model.q, model.v, model.t, ca.vertcat(model.k, tail), model.quaternions, model.T,
            rewrite(model.V), rewrite(model.R), rewrite(model.F), rewrite(model.g), forms,
        )  # fmt: skip


def _copy_without_caches(model: _ModelT) -> _ModelT:
    """Return a shallow copy of a model without the values of its cached properties."""
    new = copy.copy(model)
    for cls in type(model).__mro__:
        for name, attribute in vars(cls).items():
            if isinstance(attribute, functools.cached_property):
                new.__dict__.pop(name, None)
    return new
