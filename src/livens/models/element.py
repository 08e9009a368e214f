"""Elements: energies, constraints and forces on a few coordinates. A system is a sum of elements."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens import math as m
from livens.errors import InputError, ModelError, explain_call_errors
from livens.expressions.function_key import function_key
from livens.expressions.parameters import ParameterNamespace, Parameters
from livens.expressions.probe import Probe
from livens.expressions.tracing import FunctionTracer, ModelFunction
from livens.models.base import serialize_expressions, sha256_of
from livens.models.velocity_constraints import (
    AngleRateConstraint,
    FrictionalConstraint,
    VelocityConstraints,
    trace_velocity_constraints,
)
from livens.types import Expr
from livens.validation import check_number


@dataclass(frozen=True)
class InvariantForm:
    """Energy or forces as a function of invariants; see `of_invariants`."""

    invariants: ModelFunction
    energy: ModelFunction


@explain_call_errors
def of_invariants(invariants: ModelFunction, energy: ModelFunction) -> InvariantForm:
    """Define an energy, or forces, as a function of invariants that are at most quadratic in (q, v).

    Energy-momentum schemes use the equivariant discrete gradient for such energies: the momentum maps of all symmetries
    of the invariants are conserved exactly (Kinon and Betsch 2024, eqs. 87-92). Elements with many coordinates and few
    invariants, such as a motor between two bodies, have small derivatives.

    Parameters
    ----------
    invariants : callable
        Function of ``q v k`` (for `kinetic`) or ``q k`` (otherwise) that returns the list of invariants w.
    energy : callable
        As `kinetic` or `potential`: energy as a function of ``w k``. As `dissipation`: a function of ``w u t k`` with
        the time derivatives u of the invariants. As `forces`: a function of ``w u t k`` that returns the force on each
        invariant; its power is the force times u.

    Returns
    -------
    InvariantForm
        Argument for `kinetic`, `potential`, `dissipation` or `forces` of a `System` or `Element`.

    Examples
    --------
    >>> import livens as lv
    >>> spring = lv.of_invariants(lambda q: [q @ q], lambda w, k: 0.5 * k.c * (w[0] - 1) ** 2)
    >>> particle = lv.System("x y", kinetic=lambda v: 0.5 * (v @ v), potential=spring, parameters=dict(c=3.0))
    >>> brake = lv.of_invariants(lambda q: [q @ q / 2], lambda u: [-0.1 * u[0]])  # opposes the rate of w
    >>> braked = lv.System("x y", kinetic=lambda v: 0.5 * (v @ v), potential=spring, forces=brake, parameters=dict(c=3))
    """
    return InvariantForm(invariants, energy)


@dataclass(frozen=True, eq=False)
class InvariantExpressions:
    """Symbolic energy as a function of invariants: ``law(w, k)`` with ``w = w_of_q(q, v, k)``.

    For dissipation and forces, `law` also depends on the time derivatives `w_dot` of the invariants, and on t.
    """

    w: Any
    w_of_q: Any
    law: Any
    w_dot: Any = None


#: Allowed arguments of a model function, by role.
_ROLE_ARGUMENTS = {
    "kinetic": "qvk",
    "mass": "qk",
    "potential": "qtk",
    "constraints": "qtk",
    "dissipation": "qvtk",
    "forces": "qvtk",
    "velocity_constraints": "qvtk",
}
#: Roles that may be given by invariants, with the allowed arguments of their laws.
_INVARIANT_ARGUMENTS = {"kinetic": "wk", "potential": "wk", "dissipation": "wutk", "forces": "wutk"}


@explain_call_errors
class Element:
    """Energies, constraints and forces on a few coordinates of a system.

    Elements that share their functions share their derivatives and compiled code.

    Parameters
    ----------
    coordinates : sequence of int or str
        Names or indices of the system's coordinates; the model functions receive these coordinates in this order.
    kinetic : callable or InvariantForm, optional
        Kinetic energy in joules, a function of ``q v k``.
    mass : callable, optional
        Mass matrix, a function of ``q k``, instead of `kinetic`.
    potential : callable or InvariantForm, optional
        Potential energy in joules, a function of ``q t k``.
    constraints : callable, optional
        Position constraints: a function of ``q t k`` that returns a list of residuals.
    dissipation : callable or InvariantForm, optional
        Rayleigh dissipation function of ``q v t k``, in watts.
    forces : callable or InvariantForm, optional
        Generalized forces: a function of ``q v t k``.
    velocity_constraints : callable, AngleRateConstraint or FrictionalConstraint, optional
        Velocity-level constraints, such as rolling: a function of ``q v t k``, affine in v, that returns residuals.
    parameters : mapping, optional
        Parameters of this element, available in ``k`` together with those of the system.
    name : str, default ""
        Name of the element in messages and results.
    constraint_names : sequence of str, optional
        Names of the constraints.
    quaternions : sequence of sequence of int, default ()
        Indices, within the element, of the four coordinates of each unit quaternion.
    frames : sequence, default ()
        Indices, within the element, of the centre and the directors of rigid bodies. The element then has the kinetic
        energy of a rigid body, and no constraints other than orthonormality of the directors.
    visual : callable, optional
        Function of ``q t k`` that returns shapes (see `livens.shapes`); it does not influence the motion.
    constants : mapping, optional
        Constant numbers in ``k``. Zeros and ones are simplified in the expressions. Elements with different constants
        have different types.
    expensive : bool, optional
        For schemes that split forces, such as `semi-explicit`: evaluate the force once per step without derivatives.
    beta : float, optional
        Implicitness of a cheap force in [0, 1], from the start (0) to the end (1) of a step. 0.8 damps unresolved
        frequencies, as of penalties; 1/2 preserves the energy of elastic parts. Default: chosen by the scheme.

    Raises
    ------
    ModelError
        If an argument is invalid, or `kinetic` and `mass` are both given.
    """

    #: Rigid body with fast spin about its third axis: schemes may correct the phase error of its kinetic energy.
    rotor: bool = False
    #: Default of the argument `expensive` for this element class.
    expensive: bool = False
    #: Joint or coupling whose constraints the element has, or in which it acts: the tree tier reads its geometry.
    joint: object | None = None

    def __init__(
        self,
        coordinates: Sequence[int | str],
        *,
        kinetic: ModelFunction | InvariantForm | None = None,
        mass: ModelFunction | None = None,
        potential: ModelFunction | InvariantForm | None = None,
        constraints: ModelFunction | None = None,
        dissipation: ModelFunction | InvariantForm | None = None,
        forces: ModelFunction | InvariantForm | None = None,
        velocity_constraints: ModelFunction | AngleRateConstraint | FrictionalConstraint | None = None,
        parameters: Mapping[str, Any] | None = None,
        name: str = "",
        constraint_names: Sequence[str] | None = None,
        quaternions: Sequence[Sequence[int]] = (),
        frames: Sequence[Sequence[Sequence[int]]] = (),
        visual: ModelFunction | None = None,
        constants: Mapping[str, Any] | None = None,
        expensive: bool | None = None,
        beta: float | None = None,
    ) -> None:
        self.coordinates = tuple(coordinates)
        if expensive is not None:
            if not isinstance(expensive, bool):
                raise ModelError(f"expensive must be True or False, got {expensive!r}")
            self.expensive = expensive
        self.beta = None if beta is None else check_number("beta", beta, allow_strings=False)
        if self.beta is not None and not 0 <= self.beta <= 1:
            raise ModelError(f"beta must be between 0 (the start of a step) and 1 (its end), got {self.beta:g}")
        self.constants = Parameters(constants).values
        try:
            self.quaternions = tuple(tuple(quat) for quat in quaternions)
            self.frames = tuple(tuple(tuple(part) for part in frame) for frame in frames)
        except TypeError:
            raise ModelError("quaternions and frames must be lists of indices of coordinates") from None
        functions = (kinetic, mass, potential, constraints, dissipation, forces, velocity_constraints)
        functions_by_role = dict(zip(_ROLE_ARGUMENTS, functions, strict=True))
        self.functions: dict[str, ModelFunction | InvariantForm | AngleRateConstraint | FrictionalConstraint] = {
            role: function for role, function in functions_by_role.items() if function is not None
        }
        self.parameters = Parameters(parameters)
        self.name = name
        if constraint_names is not None and not isinstance(constraint_names, (str, list, tuple)):
            raise ModelError(f"constraint_names must be a list of names, got {constraint_names!r}")
        if visual is not None and not callable(visual):
            raise ModelError(f"visual must be a function of q, t, k that returns shapes, got {visual!r}")
        self.visual = visual
        self.constraint_names = tuple(constraint_names) if constraint_names is not None else None
        for role, function in self.functions.items():
            is_invariant_form = isinstance(function, InvariantForm) and role in _INVARIANT_ARGUMENTS
            is_angle_rate = (
                isinstance(function, (AngleRateConstraint, FrictionalConstraint)) and role == "velocity_constraints"
            )
            if not (callable(function) or is_invariant_form or is_angle_rate):
                raise ModelError(f"{role} must be a function of {', '.join(_ROLE_ARGUMENTS[role])}, got {function!r}")
        if "kinetic" in self.functions and "mass" in self.functions:
            raise ModelError("give either kinetic or mass, not both: mass M stands for the kinetic energy v.M v/2")

    @property
    def type_key(self) -> Hashable:
        """Key of the element type in addition to the functions: sizes and values of constants."""
        fixed = tuple((name, value.shape, value.tobytes()) for name, value in self.constants.items())
        return len(self.coordinates), self.parameters.shapes, self.quaternions, fixed

    @property
    def conservative(self) -> bool:
        """True if all forces have a potential: no dissipation, applied forces or velocity constraints."""
        return not {"dissipation", "forces", "velocity_constraints"} & self.functions.keys()

    def extra_fingerprint(self) -> Any:
        """Return additional data of the element for the fingerprint of the model."""
        return None


class ElementType:
    """Element type: the expressions of its model functions in local symbols ``q v t k``.

    k contains the system's parameters, followed by the element's parameters. `invariant_forms` contains the energies
    given by invariants. Velocity-level constraints follow the position constraints; their entries in g are zero.
    Equal types are one object across systems, see `element_type`.
    """

    def __init__(
        self,
        q: Expr,
        v: Expr,
        t: Expr,
        k: Expr,
        quaternions: tuple[tuple[int, ...], ...],
        T: Expr,
        V: Expr,
        R: Expr,
        F: Expr,
        g: Expr,
        invariant_forms: dict[str, InvariantExpressions],
        velocity_constraints: VelocityConstraints | None = None,
    ) -> None:
        self.q, self.v, self.t, self.k = q, v, t, k
        #: Number of position-level constraints.
        self.n_position_constraints, self.velocity_constraints = int(g.numel()), velocity_constraints
        g = g if velocity_constraints is None else ca.vertcat(g, ca.SX.zeros(velocity_constraints.count))
        self.n, self.m = int(q.numel()), int(g.numel())
        self.quaternions = quaternions
        self.T, self.V, self.R, self.F, self.g = T, V, R, F, g
        self.invariant_forms = invariant_forms
        #: Functions of a numeric assembly, by name.
        self.functions = dict[str, ca.Function]()

    @functools.cached_property
    def fingerprint(self) -> str:
        """Fingerprint of all expressions."""
        inputs, outputs = [self.q, self.v, self.t, self.k], [self.T, self.V, self.R, self.F, self.g]
        for form in self.invariant_forms.values():
            inputs += [form.w] if form.w_dot is None else [form.w, form.w_dot]
            outputs += [form.w_of_q, form.law]
        if self.velocity_constraints is not None:
            outputs.append(self.velocity_constraints.a)
            if self.velocity_constraints.angles is not None:
                inputs.append(self.velocity_constraints.angles.rates)
                outputs += [self.velocity_constraints.angles.invariants, self.velocity_constraints.angles.law]
            if self.velocity_constraints.friction_direction is not None:
                outputs.append(self.velocity_constraints.friction_direction)
        return sha256_of([serialize_expressions(inputs, outputs), list(self.invariant_forms), self.quaternions])

    @functools.cached_property
    def is_driven(self) -> bool:
        """True if velocity-level constraints do work: not all residuals vanish at zero velocity."""
        if self.velocity_constraints is None:
            return False
        at_rest = ca.substitute(self.velocity_constraints.a, self.v, ca.SX.zeros(self.n))
        return Probe([self.q, self.t, self.k], seed=6).is_zero(at_rest) is False

    @property
    def has_constraint_friction(self) -> bool:
        """True if a constraint has friction proportional to its multiplier."""
        return self.velocity_constraints is not None and self.velocity_constraints.friction_direction is not None

    @functools.cached_property
    def g_dot(self) -> Expr:
        """Time derivative ``G v + dg/dt`` of the constraints on position level."""
        return ca.jtimes(self.g, self.q, self.v) + ca.jacobian(self.g, self.t)

    @functools.cached_property
    def mass(self) -> Expr:
        """Mass matrix ``d2T/dv2``, a function of q, v and k."""
        return ca.hessian(self.T, self.v)[0]

    @functools.cached_property
    def mass_function(self) -> ca.Function:
        """Compiled mass matrix at (q, v, k)."""
        return ca.Function("M", [self.q, self.v, self.k], [ca.densify(self.mass)])

    def unit_norm_constraint(self, quat: Sequence[int]) -> int | None:
        """Return the index of the constraint (q.q - 1)/2 = 0 of a quaternion with these dofs, or None."""
        quat = tuple(quat)
        if quat not in self._unit_norm_constraints:
            q = self.q[list(quat)]
            residual = self.g - (ca.dot(q, q) - 1) / 2
            vanishing = Probe([self.q, self.t, self.k], seed=4).zero_entries(residual, tolerance=1e-13)
            matches = [] if vanishing is None else vanishing.ravel().nonzero()[0].tolist()
            self._unit_norm_constraints[quat] = matches[0] if matches else None
        return self._unit_norm_constraints[quat]

    @functools.cached_property
    def _unit_norm_constraints(self) -> dict[tuple[int, ...], int | None]:
        return {}


#: Element types in use, by fingerprint.
_types_by_fingerprint: weakref.WeakValueDictionary[str, ElementType] = weakref.WeakValueDictionary()
#: Element types of deterministic, closure-free functions, by these functions: they are not traced again.
_types_by_functions: weakref.WeakValueDictionary[Any, ElementType] = weakref.WeakValueDictionary()


def element_type(element: Element, shared: Parameters) -> ElementType:
    """Return the type of an element: trace its functions, or return the cached type."""
    key = function_key(element.functions)
    if key is None:
        traced = _trace(element, shared)
        return _types_by_fingerprint.setdefault(traced.fingerprint, traced)
    key = key, element.type_key, shared.shapes
    cached = _types_by_functions.get(key)
    if cached is None:
        traced = _trace(element, shared)
        cached = _types_by_functions[key] = _types_by_fingerprint.setdefault(traced.fingerprint, traced)
    return cached


def _trace(element: Element, shared: Parameters) -> ElementType:
    n = len(element.coordinates)
    q, v, t = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("t")
    k = ca.SX.sym("k", shared.size + element.parameters.size)
    symbols = m.from_casadi(k)
    named = shared.unpack(symbols[: shared.size]) | element.parameters.unpack(symbols[shared.size :])
    named |= element.constants
    where = f" of element '{element.name}'" if element.name else ""
    trace = FunctionTracer({"q": q, "v": v, "t": t, "k": ParameterNamespace(named)}, where, verb="return")
    functions, invariant_forms = element.functions, dict[str, InvariantExpressions]()

    def scalar(role: str) -> Expr:
        function = functions.get(role)
        if isinstance(function, InvariantForm):
            form = invariant_forms[role] = _trace_invariants(trace, role, function, ca.vertcat(q, v), where)
            energy = (
                form.law if form.w_dot is None else ca.substitute(form.law, form.w_dot, ca.jtimes(form.w_of_q, q, v))
            )
            return ca.substitute(energy, form.w, form.w_of_q)
        return ca.SX(0) if function is None else trace(role, function, (), _ROLE_ARGUMENTS[role])

    if "mass" in functions:
        matrix = trace("mass", functions["mass"], (n, n), _ROLE_ARGUMENTS["mass"])
        if Probe([q, k], seed=0).is_zero(matrix - matrix.T, ca.norm_inf(ca.vec(matrix))) is False:
            raise ModelError(f"mass{where} must return a symmetric matrix")
        T = ca.dot(v, matrix @ v) / 2
    else:
        T = scalar("kinetic")
    V, R, F, g = scalar("potential"), scalar("dissipation"), ca.SX(n, 1), ca.SX(0, 1)
    if isinstance(functions.get("forces"), InvariantForm):
        invariant_forces = scalar("forces")
        F = ca.jtimes(invariant_forms["forces"].w_of_q, q, invariant_forces, True)
    elif "forces" in functions:
        F = trace("forces", functions["forces"], (n,), _ROLE_ARGUMENTS["forces"])
    if "constraints" in functions:
        g = trace.as_column(
            "constraints", trace.trace("constraints", functions["constraints"], _ROLE_ARGUMENTS["constraints"])
        )
    velocity_constraints = None
    if "velocity_constraints" in functions:
        velocity_constraints = trace_velocity_constraints(trace, functions["velocity_constraints"], q, v, where)  # type: ignore[arg-type]  # checked
    return ElementType(q, v, t, k, element.quaternions, T, V, R, F, g, invariant_forms, velocity_constraints)


def _trace_invariants(
    trace: FunctionTracer, role: str, form: InvariantForm, state: Expr, where: str
) -> InvariantExpressions:
    label = f"invariants of {role}"
    w_of_q = trace.as_column(label, trace.trace(label, form.invariants, "qvk" if role == "kinetic" else "qk"))
    if not w_of_q.numel():
        raise ModelError(f"{label}{where} must return a list of numbers")
    if ca.depends_on(ca.jacobian(ca.jacobian(w_of_q, state), state), state):
        raise ModelError(f"{label}{where} must be at most quadratic in q and v")
    w, label = ca.SX.sym("w", w_of_q.numel()), f"{'law' if role == 'forces' else 'energy'} of {role}"
    if role in ("kinetic", "potential"):
        return InvariantExpressions(
            w, w_of_q, trace.check_shape(label, trace.trace(label, form.energy, _INVARIANT_ARGUMENTS[role], w=w), ())
        )
    w_dot = ca.SX.sym("u", w_of_q.numel())
    value = trace.trace(label, form.energy, _INVARIANT_ARGUMENTS[role], w=w, u=w_dot)
    if role == "dissipation":
        return InvariantExpressions(w, w_of_q, trace.check_shape(label, value, ()), w_dot)
    law = trace.as_column(label, value)
    if law.numel() != w_of_q.numel():
        raise ModelError(
            f"{label}{where} must return a force for each of {w_of_q.numel()} invariants, got {law.numel()}"
        )
    return InvariantExpressions(w, w_of_q, law, w_dot)


def resolve_indices(
    coordinates: Sequence[int | str], names: Sequence[str] | Mapping[str, int], where: str
) -> tuple[int, ...]:
    """Return indices of coordinates given by name or index, among all `names` (or a map from names to indices)."""
    position = names if isinstance(names, Mapping) else {name: i for i, name in enumerate(names)}
    indices = []
    if not isinstance(coordinates, (list, tuple, range, str)):  # a string is a list of one-letter names
        raise InputError(f"{where} must be a list of coordinates, got {coordinates!r}")
    for c in coordinates:
        index = position.get(c) if isinstance(c, str) else int(c) if hasattr(c, "__index__") else None
        if index is None or not 0 <= index < len(names):
            raise InputError(f"{where} acts on the coordinate {c!r}, which the system does not have")
        indices.append(index)
    if len(set(indices)) != len(indices):
        raise InputError(f"{where} names a coordinate twice")
    return tuple(indices)
