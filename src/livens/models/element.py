"""An element: a few coordinates with their energies, constraints and forces. A system is a sum of elements."""

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
    """An energy, or forces, given through invariants; see `through`."""

    invariants: ModelFunction
    energy: ModelFunction


def through(invariants: ModelFunction, energy: ModelFunction) -> Through:
    """An energy as a function of invariants that are at most quadratic in (q, v).

    To be given as `kinetic` or `potential`: ``invariants`` is a function of q, v, k (q, k for a potential) that returns
    a list, ``energy`` a function of w and k, where w are the invariants. Energy-momentum schemes then use the
    equivariant discrete gradient: momentum maps of all symmetries that leave the invariants as they are, are conserved
    exactly (S004 eqs. 87-92).

    As `dissipation`, ``energy`` is a function of w, of their rates u, of t and k; as `forces`, a function of these that
    returns a list with the force on each invariant, whose power is that force times the rate. Elements with many
    coordinates and few invariants, such as a motor between two bodies, have small derivatives then.

    >>> import livens as lv
    >>> spring = lv.through(lambda q: [q @ q], lambda w, k: 0.5 * k.c * (w[0] - 1) ** 2)
    >>> particle = lv.System("x y", kinetic=lambda v: 0.5 * (v @ v), potential=spring, parameters=dict(c=3.0))
    >>> brake = lv.through(lambda q: [q @ q / 2], lambda u: [-0.1 * u[0]])  # against the rate of the square
    >>> braked = lv.System("x y", kinetic=lambda v: 0.5 * (v @ v), potential=spring, forces=brake, parameters=dict(c=3))
    """
    return Through(invariants, energy)


@dataclass(frozen=True, eq=False)
class Invariants:
    """An energy given through invariants, as expressions: ``energy(w, k)`` with ``w = of(q, v, k)``.

    Of dissipation and forces, `energy` is also of the rates u of the invariants, and of t.
    """

    w: Any
    of: Any
    energy: Any
    u: Any = None


#: What a model function may ask for, by its role.
_ARGUMENTS = {
    "kinetic": "qvk",
    "mass": "qk",
    "potential": "qtk",
    "constraints": "qtk",
    "dissipation": "qvtk",
    "forces": "qvtk",
    "velocity_constraints": "qvtk",
}
#: Roles of what may be given through invariants, and what the law of these may ask for.
_THROUGH = {"kinetic": "wk", "potential": "wk", "dissipation": "wutk", "forces": "wutk"}


class Element:
    """Energies, constraints and forces on a few coordinates of a system.

    `coordinates` are names or indices of the system's coordinates; the model functions see only these, in this order.
    `parameters` belong to this element; a model function finds them, and the system's, in `k`. So it does `constants`,
    numbers that never change: zeros and ones among them cost nothing, but elements that differ in them are different.
    Elements that share their functions share their derivatives and compiled code too.
    `quaternions` says which four of the element's coordinates, by their place in it, are unit quaternions. `frames`
    says which of them are the centre and the directors of a rigid body, part by part; the element then has the kinetic
    energy of that body, and no constraints but those that keep the directors orthonormal.
    `velocity_constraints` is a function of ``q v t k``, affine in v, that returns what stays zero: rolling, for one.
    `look` is a function of ``q t k`` that returns shapes (see `livens.shapes`): what the element looks like. It changes
    nothing of the motion.
    `expensive` and `beta` are for schemes that tell forces apart, such as `semi-explicit`: an expensive force is
    evaluated once per step and never differentiated; a cheap one is taken ``beta`` of the way from the start of a step
    to its end (0.8 damps what a step cannot resolve, as for penalties; 1/2 keeps the energy of elastic parts), or where
    the scheme says if nothing is given.
    """

    #: A rigid body that spins fast about its third axis: schemes may take the error in phase out of its kinetic energy.
    rotor: bool = False
    #: Whether elements of this kind are expensive, where nothing else is said.
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
            raise ModelError("quaternions and frames must be lists of places of coordinates") from None
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
            raise ModelError(f"look must be a function of q, t, k that returns shapes, got {look!r}")
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
        """What elements of one type have in common beside their functions: sizes, and the values of constants."""
        fixed = tuple((name, value.shape, value.tobytes()) for name, value in self.constants.items())
        return len(self.coordinates), self.parameters.shapes, self.quaternions, fixed

    @property
    def conservative(self) -> bool:
        """Its forces have a potential: no dissipation, no applied forces, nothing that rolls."""
        return not {"dissipation", "forces", "velocity_constraints"} & self.functions.keys()

    def more(self) -> Any:
        """What schemes may know of the element beside its energies, constraints and forces, for the model's digest."""
        return None


class ElementModel:
    """What the model functions of one type of element say, as expressions of local symbols ``q v t k``.

    k are the system's parameters, then the element's own. `through` has the energies that are given through invariants.
    Constraints on velocity level come after those on positions, of which g has an entry that is always zero.
    Types with the same content are one object, in whatever systems they are: see `read_type`.
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
        #: How many of the constraints are on positions.
        self.on_position, self.rates = int(g.numel()), rates
        g = g if rates is None else ca.vertcat(g, ca.SX.zeros(rates.count))
        self.n, self.m = int(q.numel()), int(g.numel())
        self.quaternions = quaternions
        self.T, self.V, self.R, self.F, self.g = T, V, R, F, g
        self.through = through

    @functools.cached_property
    def digest(self) -> str:
        """A fingerprint of all expressions."""
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
        """Its constraints on velocity level do work: not all of them hold at rest."""
        if self.rates is None:
            return False
        at_rest = ca.substitute(self.rates.a, self.v, ca.SX.zeros(self.n))
        return Probe([self.q, self.t, self.k], seed=6).vanishes(at_rest) is False

    @property
    def rubs(self) -> bool:
        """The force of a constraint comes with one that takes energy."""
        return self.rates is not None and self.rates.drag is not None

    @functools.cached_property
    def mass(self) -> Any:
        """The mass matrix ``d2T/dv2``, of q, v and k."""
        return ca.hessian(self.T, self.v)[0]

    @functools.cached_property
    def mass_at(self) -> ca.Function:
        """The mass matrix at (q, v, k), as numbers."""
        return ca.Function("M", [self.q, self.v, self.k], [ca.densify(self.mass)])

    def unit_length(self, four: Sequence[int]) -> int | None:
        """Which of the constraints is (q.q - 1)/2 = 0 of a quaternion, given by its places in q; nothing if none is."""
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


#: Types that some system uses, by their content.
_types: weakref.WeakValueDictionary[str, ElementModel] = weakref.WeakValueDictionary()
#: Those whose functions say the same whenever they are called, by these functions: they need not be read again.
_pure_types: weakref.WeakValueDictionary[Any, ElementModel] = weakref.WeakValueDictionary()


def read_type(element: Element, shared: Parameters) -> ElementModel:
    """The type of an element: its functions, read with the symbols they name; the one there is, if it has been read."""
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
    """Names or indices of coordinates as indices, among all `names` (or their indices by name)."""
    position = names if isinstance(names, Mapping) else {name: i for i, name in enumerate(names)}
    indices = []
    if not isinstance(coordinates, (list, tuple, range, str)):  # a text is a list of names of one letter
        raise InputError(f"{where} must be a list of coordinates, got {coordinates!r}")
    for c in coordinates:
        index = position.get(c) if isinstance(c, str) else int(c) if hasattr(c, "__index__") else None
        if index is None or not 0 <= index < len(names):
            raise InputError(f"{where} acts on the coordinate {c!r}, which the system does not have")
        indices.append(index)
    if len(set(indices)) != len(indices):
        raise InputError(f"{where} names a coordinate twice")
    return tuple(indices)
