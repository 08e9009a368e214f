"""Elements: energies, constraints and forces on a few coordinates. A system is a sum of elements."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens import math as m
from livens.errors import InputError, ModelError
from livens.expressions.numbers import number
from livens.expressions.parameters import Namespace, Parameters
from livens.expressions.probe import Probe
from livens.expressions.pure import pure_key
from livens.expressions.read import ModelFunction, Reader
from livens.models.model import digest_of, serialized
from livens.models.rates import Rates, Rubbing, Turning, read_rates


@dataclass(frozen=True)
class Through:
    """Energy or forces as a function of invariants; see `of_invariants`."""

    invariants: ModelFunction
    energy: ModelFunction


def through(invariants: ModelFunction, energy: ModelFunction) -> Through:
    """Define an energy, or forces, as a function of invariants that are at most quadratic in (q, v).

    Energy-momentum schemes use the equivariant discrete gradient for such energies: the momentum maps of all symmetries
    of the invariants are conserved exactly (S004 eqs. 87-92). Elements with many coordinates and few invariants, such
    as a motor between two bodies, have small derivatives.

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
    >>> spring = lv.through(lambda q: [q @ q], lambda w, k: 0.5 * k.c * (w[0] - 1) ** 2)
    >>> particle = lv.System("x y", kinetic=lambda v: 0.5 * (v @ v), potential=spring, parameters=dict(c=3.0))
    >>> brake = lv.through(lambda q: [q @ q / 2], lambda u: [-0.1 * u[0]])  # opposes the rate of w
    >>> braked = lv.System("x y", kinetic=lambda v: 0.5 * (v @ v), potential=spring, forces=brake, parameters=dict(c=3))
    """
    return Through(invariants, energy)


@dataclass(frozen=True, eq=False)
class Invariants:
    """Symbolic energy as a function of invariants: ``law(w, k)`` with ``w = w_of_q(q, v, k)``.

    For dissipation and forces, `law` also depends on the time derivatives `w_dot` of the invariants, and on t.
    """

    w: Any
    of: Any
    energy: Any
    u: Any = None


#: Allowed arguments of a model function, by role.
_ARGUMENTS = {
    "kinetic": "qvk",
    "mass": "qk",
    "potential": "qtk",
    "constraints": "qtk",
    "dissipation": "qvtk",
    "forces": "qvtk",
    "velocity_constraints": "qvtk",
}
#: Roles that may be given by invariants, with the allowed arguments of their laws.
_THROUGH = {"kinetic": "wk", "potential": "wk", "dissipation": "wutk", "forces": "wutk"}


class Element:
    """Energies, constraints and forces on a few coordinates of a system.

    Elements that share their functions share their derivatives and compiled code.

    Parameters
    ----------
    coordinates : sequence of int or str
        Names or indices of the system's coordinates; the model functions receive these coordinates in this order.
    kinetic, potential : callable or InvariantForm, optional
        Kinetic energy, a function of ``q v k``, and potential energy, a function of ``q t k``, in joules.
    mass : callable, optional
        Mass matrix, a function of ``q k``, instead of `kinetic`.
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

    def __init__(
        self,
        coordinates: Sequence[int | str],
        *,
        kinetic: ModelFunction | Through | None = None,
        mass: ModelFunction | None = None,
        potential: ModelFunction | Through | None = None,
        constraints: ModelFunction | None = None,
        dissipation: ModelFunction | Through | None = None,
        forces: ModelFunction | Through | None = None,
        velocity_constraints: ModelFunction | Turning | Rubbing | None = None,
        parameters: Mapping[str, Any] | None = None,
        name: str = "",
        constraint_names: Sequence[str] | None = None,
        quaternions: Sequence[Sequence[int]] = (),
        frames: Sequence[Sequence[Sequence[int]]] = (),
        look: ModelFunction | None = None,
        constants: Mapping[str, Any] | None = None,
        expensive: bool | None = None,
        beta: float | None = None,
    ) -> None:
        self.coordinates = tuple(coordinates)
        if expensive is not None:
            if not isinstance(expensive, bool):
                raise ModelError(f"expensive must be True or False, got {expensive!r}")
            self.expensive = expensive
        self.beta = None if beta is None else number("beta", beta, text=False)
        if self.beta is not None and not 0 <= self.beta <= 1:
            raise ModelError(f"beta must be between 0 (the start of a step) and 1 (its end), got {self.beta:g}")
        self.constants = Parameters(constants).values
        try:
            self.quaternions = tuple(tuple(four) for four in quaternions)
            self.frames = tuple(tuple(tuple(part) for part in frame) for frame in frames)
        except TypeError:
            raise ModelError("quaternions and frames must be lists of indices of coordinates") from None
        functions = (kinetic, mass, potential, constraints, dissipation, forces, velocity_constraints)
        given = dict(zip(_ARGUMENTS, functions, strict=True))
        self.functions: dict[str, ModelFunction | Through | Turning | Rubbing] = {
            role: function for role, function in given.items() if function is not None
        }
        self.parameters = Parameters(parameters)
        self.name = name
        if constraint_names is not None and not isinstance(constraint_names, (str, list, tuple)):
            raise ModelError(f"constraint_names must be a list of names, got {constraint_names!r}")
        if look is not None and not callable(look):
            raise ModelError(f"visual must be a function of q, t, k that returns shapes, got {look!r}")
        self.look = look
        self.constraint_names = tuple(constraint_names) if constraint_names is not None else None
        for role, function in self.functions.items():
            given_through = isinstance(function, Through) and role in _THROUGH
            given_turning = isinstance(function, (Turning, Rubbing)) and role == "velocity_constraints"
            if not (callable(function) or given_through or given_turning):
                raise ModelError(f"{role} must be a function of {', '.join(_ARGUMENTS[role])}, got {function!r}")
        if "kinetic" in self.functions and "mass" in self.functions:
            raise ModelError("give either kinetic or mass, not both: mass M stands for the kinetic energy v.M v/2")

    @property
    def kind(self) -> Hashable:
        """Key of the element type in addition to the functions: sizes and values of constants."""
        fixed = tuple((name, value.shape, value.tobytes()) for name, value in self.constants.items())
        return len(self.coordinates), self.parameters.shapes, self.quaternions, fixed

    @property
    def conservative(self) -> bool:
        """Whether all forces have a potential: no dissipation, applied forces or velocity constraints."""
        return not {"dissipation", "forces", "velocity_constraints"} & self.functions.keys()

    def more(self) -> Any:
        """Return additional data of the element for the fingerprint of the model."""
        return None


class ElementModel:
    """Element type: the expressions of its model functions in local symbols ``q v t k``.

    k contains the system's parameters, followed by the element's parameters. `invariant_forms` contains the energies
    given by invariants. Velocity-level constraints follow the position constraints; their entries in g are zero.
    Equal types are one object across systems, see `element_type`.
    """

    def __init__(
        self,
        q: Any,
        v: Any,
        t: Any,
        k: Any,
        quaternions: tuple[tuple[int, ...], ...],
        T: Any,
        V: Any,
        R: Any,
        F: Any,
        g: Any,
        through: dict[str, Invariants],
        rates: Rates | None = None,
    ) -> None:
        self.q, self.v, self.t, self.k = q, v, t, k
        #: Number of position-level constraints.
        self.on_position, self.rates = int(g.numel()), rates
        g = g if rates is None else ca.vertcat(g, ca.SX.zeros(rates.count))
        self.n, self.m = int(q.numel()), int(g.numel())
        self.quaternions = quaternions
        self.T, self.V, self.R, self.F, self.g = T, V, R, F, g
        self.through = through

    @functools.cached_property
    def digest(self) -> str:
        """Fingerprint of all expressions."""
        inputs, outputs = [self.q, self.v, self.t, self.k], [self.T, self.V, self.R, self.F, self.g]
        for given in self.through.values():
            inputs += [given.w] if given.u is None else [given.w, given.u]
            outputs += [given.of, given.energy]
        if self.rates is not None:
            outputs.append(self.rates.a)
            if self.rates.angles is not None:
                inputs.append(self.rates.angles.w)
                outputs += [self.rates.angles.of, self.rates.angles.law]
            if self.rates.drag is not None:
                outputs.append(self.rates.drag)
        return digest_of([serialized(inputs, outputs), list(self.through), self.quaternions])

    @functools.cached_property
    def driven(self) -> bool:
        """Whether velocity-level constraints do work: not all residuals vanish at zero velocity."""
        if self.rates is None:
            return False
        at_rest = ca.substitute(self.rates.a, self.v, ca.SX.zeros(self.n))
        return Probe([self.q, self.t, self.k], seed=6).vanishes(at_rest) is False

    @property
    def rubs(self) -> bool:
        """Whether a constraint has friction proportional to its multiplier."""
        return self.rates is not None and self.rates.drag is not None

    @functools.cached_property
    def mass(self) -> Any:
        """Mass matrix ``d2T/dv2``, a function of q, v and k."""
        return ca.hessian(self.T, self.v)[0]

    @functools.cached_property
    def mass_at(self) -> ca.Function:
        """Compiled mass matrix at (q, v, k)."""
        return ca.Function("M", [self.q, self.v, self.k], [ca.densify(self.mass)])

    def unit_length(self, four: Sequence[int]) -> int | None:
        """Return the index of the constraint (q.q - 1)/2 = 0 of a quaternion with these dofs, or None."""
        four = tuple(four)
        if four not in self._unit_lengths:
            q = self.q[list(four)]
            gap = self.g - (ca.dot(q, q) - 1) / 2
            found = Probe([self.q, self.t, self.k], seed=4).vanishing(gap, tolerance=1e-13)
            zero = [] if found is None else found.ravel().nonzero()[0].tolist()
            self._unit_lengths[four] = zero[0] if zero else None
        return self._unit_lengths[four]

    @functools.cached_property
    def _unit_lengths(self) -> dict[tuple[int, ...], int | None]:
        return {}


#: Element types in use, by fingerprint.
_types: weakref.WeakValueDictionary[str, ElementModel] = weakref.WeakValueDictionary()
#: Element types of deterministic, closure-free functions, by these functions: they are not traced again.
_pure_types: weakref.WeakValueDictionary[Any, ElementModel] = weakref.WeakValueDictionary()


def read_type(element: Element, shared: Parameters) -> ElementModel:
    """Return the type of an element: trace its functions, or return the cached type."""
    key = pure_key(element.functions)
    if key is None:
        read = _read(element, shared)
        return _types.setdefault(read.digest, read)
    key = key, element.kind, shared.shapes
    known = _pure_types.get(key)
    if known is None:
        read = _read(element, shared)
        known = _pure_types[key] = _types.setdefault(read.digest, read)
    return known


def _read(element: Element, shared: Parameters) -> ElementModel:
    n = len(element.coordinates)
    q, v, t = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("t")
    k = ca.SX.sym("k", shared.size + element.parameters.size)
    symbols = m.symbols(k)
    named = shared.named(symbols[: shared.size]) | element.parameters.named(symbols[shared.size :])
    named |= element.constants
    where = f" of element '{element.name}'" if element.name else ""
    read = Reader({"q": q, "v": v, "t": t, "k": Namespace(named)}, where, must="return")
    functions, found = element.functions, dict[str, Invariants]()

    def number(role: str) -> Any:
        given = functions.get(role)
        if isinstance(given, Through):
            one = found[role] = _invariants(read, role, given, ca.vertcat(q, v), where)
            energy = one.energy if one.u is None else ca.substitute(one.energy, one.u, ca.jtimes(one.of, q, v))
            return ca.substitute(energy, one.w, one.of)
        return ca.SX(0) if given is None else read(role, given, (), _ARGUMENTS[role])

    if "mass" in functions:
        matrix = read("mass", functions["mass"], (n, n), _ARGUMENTS["mass"])
        if Probe([q, k], seed=0).vanishes(matrix - matrix.T, ca.norm_inf(ca.vec(matrix))) is False:
            raise ModelError(f"mass{where} must return a symmetric matrix")
        T = ca.dot(v, matrix @ v) / 2
    else:
        T = number("kinetic")
    V, R, F, g = number("potential"), number("dissipation"), ca.SX(n, 1), ca.SX(0, 1)
    if isinstance(functions.get("forces"), Through):
        on_invariants = number("forces")
        F = ca.jtimes(found["forces"].of, q, on_invariants, True)
    elif "forces" in functions:
        F = read("forces", functions["forces"], (n,), _ARGUMENTS["forces"])
    if "constraints" in functions:
        g = read.listed("constraints", read.value("constraints", functions["constraints"], _ARGUMENTS["constraints"]))
    rates = None
    if "velocity_constraints" in functions:
        rates = read_rates(read, functions["velocity_constraints"], q, v, where)  # type: ignore[arg-type]  # checked
    return ElementModel(q, v, t, k, element.quaternions, T, V, R, F, g, found, rates)


def _invariants(read: Reader, role: str, given: Through, state: Any, where: str) -> Invariants:
    what = f"invariants of {role}"
    of = read.listed(what, read.value(what, given.invariants, "qvk" if role == "kinetic" else "qk"))
    if not of.numel():
        raise ModelError(f"{what}{where} must return a list of numbers")
    if ca.depends_on(ca.jacobian(ca.jacobian(of, state), state), state):
        raise ModelError(f"{what}{where} must be at most quadratic in q and v")
    w, what = ca.SX.sym("w", of.numel()), f"{'law' if role == 'forces' else 'energy'} of {role}"
    if role in ("kinetic", "potential"):
        return Invariants(w, of, read.shaped(what, read.value(what, given.energy, _THROUGH[role], w=w), ()))
    u = ca.SX.sym("u", of.numel())
    value = read.value(what, given.energy, _THROUGH[role], w=w, u=u)
    if role == "dissipation":
        return Invariants(w, of, read.shaped(what, value, ()), u)
    law = read.listed(what, value)
    if law.numel() != of.numel():
        raise ModelError(f"{what}{where} must return a force for each of {of.numel()} invariants, got {law.numel()}")
    return Invariants(w, of, law, u)


def resolve(coordinates: Sequence[int | str], names: Sequence[str] | Mapping[str, int], where: str) -> tuple[int, ...]:
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
