"""An element: a few coordinates with their energies, constraints and forces. A system is a sum of elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError, ModelError
from livens.expressions.parameters import Namespace, Parameters
from livens.expressions.read import argument_names

ModelFunction = Callable[..., Any]


@dataclass(frozen=True)
class Through:
    """An energy given through invariants; see `through`."""

    invariants: ModelFunction
    energy: ModelFunction


def through(invariants: ModelFunction, energy: ModelFunction) -> Through:
    """An energy as a function of invariants that are at most quadratic in (q, v).

    To be given as `kinetic` or `potential`: ``invariants`` is a function of q, v, k (q, k for a potential) that returns
    a list, ``energy`` a function of w and k, where w are the invariants. Energy-momentum schemes then use the
    equivariant discrete gradient: momentum maps of all symmetries that leave the invariants as they are, are conserved
    exactly (S004 eqs. 87-92).

    >>> import livens as lv
    >>> spring = lv.through(lambda q: [q @ q], lambda w, k: 0.5 * k.c * (w[0] - 1) ** 2)
    >>> particle = lv.System("x y", kinetic=lambda v: 0.5 * (v @ v), potential=spring, parameters=dict(c=3.0))
    """
    return Through(invariants, energy)


@dataclass(frozen=True, eq=False)
class Invariants:
    """An energy given through invariants, as expressions: ``energy(w, k)`` with ``w = of(q, v, k)``."""

    w: Any
    of: Any
    energy: Any


#: What a model function may ask for, by its role.
_ARGUMENTS = {
    "kinetic": "qvk",
    "mass": "qk",
    "potential": "qtk",
    "constraints": "qtk",
    "dissipation": "qvtk",
    "forces": "qvtk",
}


class Element:
    """Energies, constraints and forces on a few coordinates of a system.

    `coordinates` are names or indices of the system's coordinates; the model functions see only these, in this order.
    `parameters` belong to this element; a model function finds them, and the system's, in `k`.
    Elements that share their functions share their derivatives and compiled code too.
    `quaternions` says which four of the element's coordinates, by their place in it, are unit quaternions.
    """

    def __init__(
        self,
        coordinates: Sequence[int | str],
        *,
        kinetic: ModelFunction | Through | None = None,
        mass: ModelFunction | None = None,
        potential: ModelFunction | Through | None = None,
        constraints: ModelFunction | None = None,
        dissipation: ModelFunction | None = None,
        forces: ModelFunction | None = None,
        parameters: Mapping[str, Any] | None = None,
        name: str = "",
        constraint_names: Sequence[str] | None = None,
        quaternions: Sequence[Sequence[int]] = (),
    ) -> None:
        self.coordinates = tuple(coordinates)
        self.quaternions = tuple(tuple(four) for four in quaternions)
        self.functions: dict[str, ModelFunction | Through] = {
            role: function
            for role, function in {
                "kinetic": kinetic, "mass": mass, "potential": potential, "constraints": constraints,
                "dissipation": dissipation, "forces": forces,
            }.items()
            if function is not None
        }  # fmt: skip
        self.parameters = Parameters(parameters)
        self.name = name
        self.constraint_names = tuple(constraint_names) if constraint_names is not None else None
        for role, function in self.functions.items():
            given_through = isinstance(function, Through) and role in ("kinetic", "potential")
            if not (callable(function) or given_through):
                raise ModelError(f"{role} must be a function of {_allowed(role)}, got {function!r}")
        if "kinetic" in self.functions and "mass" in self.functions:
            raise ModelError("give either kinetic or mass, not both: mass M stands for the kinetic energy v.M v/2")


class ElementModel:
    """What the model functions of one type of element say, as expressions of local symbols ``q v t k``."""

    def __init__(self, element: Element, shared: Parameters) -> None:
        n = len(element.coordinates)
        self.n = n
        self.quaternions = element.quaternions
        self.q, self.v, self.t = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("t")
        self.k = ca.SX.sym("k", shared.size + element.parameters.size)
        named = shared.symbols(self.k[: shared.size]) | element.parameters.symbols(self.k[shared.size :])
        self._given = {
            "q": m.symbols(self.q),
            "v": m.symbols(self.v),
            "t": m.Scalar(self.t),
            "k": Namespace(named),
        }
        self._where = f" of element '{element.name}'" if element.name else ""
        self.through: dict[str, Invariants] = {}
        functions = element.functions
        self.T = self._kinetic(functions)
        self.V = self._scalar("potential", functions)
        self.R = self._scalar("dissipation", functions)
        self.F = self._forces(functions)
        self.g = self._constraints(functions)
        self.m = self.g.numel()

    def _call(self, role: str, function: ModelFunction, allowed: str = "", **more: Any) -> Any:
        names = argument_names(role, function, self._where, allowed or _ARGUMENTS[role])
        try:
            return function(*((self._given | more)[name] for name in names))
        except ModelError as error:
            raise ModelError(f"{role}{self._where}: {error}") from None
        except Exception as error:  # whatever a model function raises is the model's fault: say which function
            raise ModelError(f"{role}{self._where}: {type(error).__name__}: {error}") from error

    def _shaped(self, role: str, value: Any, shape: tuple[int, ...]) -> Any:
        wanted = "one number" if shape == () else f"an array of shape {shape}"
        try:
            items = m.array(value)
            if items.shape == shape and value is not None:
                return m.expression(value)
            got = f"an array of shape {items.shape}"
        except (TypeError, ValueError):
            got = f"{type(value).__name__} {value!r}"
        raise ModelError(f"{role}{self._where} must return {wanted}, got {got}")

    def _scalar(self, role: str, functions: Mapping[str, Any]) -> Any:
        if role not in functions:
            return ca.SX(0)
        if isinstance(functions[role], Through):
            return self._through(role, functions[role])
        return self._shaped(role, self._call(role, functions[role]), ())

    def _through(self, role: str, given: Through) -> Any:
        what = f"invariants of {role}"
        flat = _flattened(self._call(what, given.invariants, "qvk" if role == "kinetic" else "qk"))
        if not flat:
            raise ModelError(f"{what}{self._where} must return a list of numbers")
        of = ca.densify(m.expression(np.array(flat, dtype=object)))
        state = ca.vertcat(self.q, self.v)
        if ca.depends_on(ca.jacobian(ca.jacobian(of, state), state), state):
            raise ModelError(f"{what}{self._where} must be at most quadratic in q and v")
        w = ca.SX.sym("w", len(flat))
        what = f"energy of {role}"
        energy = self._shaped(what, self._call(what, given.energy, "wk", w=m.symbols(w)), ())
        self.through[role] = Invariants(w, of, energy)
        return ca.substitute(energy, w, of)

    def _kinetic(self, functions: Mapping[str, Any]) -> Any:
        if "mass" not in functions:
            return self._scalar("kinetic", functions)
        matrix = self._shaped("mass", self._call("mass", functions["mass"]), (self.n, self.n))
        if not _is_symmetric(matrix, [self.q, self.k]):
            raise ModelError(f"mass{self._where} must return a symmetric matrix")
        return ca.dot(self.v, matrix @ self.v) / 2

    def _forces(self, functions: Mapping[str, Any]) -> Any:
        if "forces" not in functions:
            return ca.SX(self.n, 1)
        return self._shaped("forces", self._call("forces", functions["forces"]), (self.n,))

    def _constraints(self, functions: Mapping[str, Any]) -> Any:
        if "constraints" not in functions:
            return ca.SX(0, 1)
        value = self._call("constraints", functions["constraints"])
        flat = _flattened(value)
        if flat is None:
            raise ModelError(
                f"constraints{self._where} must return a list of numbers (or of vectors of them), got {value!r}"
            )
        return ca.densify(m.expression(np.array(flat, dtype=object))) if flat else ca.SX(0, 1)


def _flattened(value: Any) -> list[Any] | None:
    if isinstance(value, (m.Scalar, int, float, np.integer, np.floating)):
        return [value]
    if not isinstance(value, (list, tuple, np.ndarray)):
        return None
    parts = [_flattened(item) for item in value]
    return None if any(part is None for part in parts) else [item for part in parts if part for item in part]


def _allowed(role: str) -> str:
    return ", ".join(_ARGUMENTS[role])


def _is_symmetric(matrix: Any, symbols: list[Any]) -> bool:
    difference = ca.Function("d", symbols, [matrix - matrix.T, matrix])
    random = np.random.default_rng(0)
    for _ in range(3):
        gap, value = (np.array(x) for x in difference(*(random.uniform(0.5, 1.5, s.shape) for s in symbols)))
        if np.all(np.isfinite(gap)) and np.abs(gap).max(initial=0) > 1e-12 * np.abs(value).max(initial=0):
            return False
    return True


def resolve(coordinates: Sequence[int | str], names: Sequence[str], where: str) -> tuple[int, ...]:
    """Names or indices of coordinates as indices."""
    position = {name: i for i, name in enumerate(names)}
    indices = []
    for c in coordinates:
        index = position.get(c) if isinstance(c, str) else int(c)
        if index is None or not 0 <= index < len(names):
            raise InputError(f"{where} acts on the coordinate {c!r}, which the system does not have")
        indices.append(index)
    if len(set(indices)) != len(indices):
        raise InputError(f"{where} names a coordinate twice")
    return tuple(indices)
