"""Granular box: many spheres in a box with run-time collision detection, at a cost proportional to their number.

Contacts are not elements. Schemes that evaluate forces once per step without derivatives, such as `semi-explicit`,
evaluate all contacts at once. Only pairs in neighbouring cells are tested, and only overlapping pairs are evaluated.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.numbers import array, not_negative, one_of, positive
from livens.models import shapes
from livens.models.element import Element
from livens.models.system import System

#: Exponent of the contact force ``stiffness depth^exponent``.
_EXPONENTS = {"linear": 1.0, "hertz": 1.5}
#: Largest allowed initial overlap, relative to the radius.
_DEEPEST = 0.2


class Touching(NamedTuple):
    """Result of all contacts in a state: generalized forces, dissipated power in watts, stored energy in joules."""

    forces: np.ndarray
    lost: float
    stored: float


@dataclass(frozen=True, eq=False)
class CrowdNumbers:
    """Parameters of a granular box in one run, as arrays."""

    exponent: float
    stiffness: float
    damping: float
    friction: float
    smooth: float
    lower: np.ndarray
    upper: np.ndarray
    gravity: np.ndarray
    radii: np.ndarray
    masses: np.ndarray  # mass or moment of inertia of each coordinate, of shape (6 n_balls,)

    def touching(self, q: np.ndarray, v: np.ndarray) -> Touching:
        """Return the contact forces in a state; reference implementation of the compiled step."""
        from scipy.spatial import cKDTree  # slow import

        x, u, w = (a.reshape(-1, 6)[:, part] for a, part in ((q, slice(3)), (v, slice(3)), (v, slice(3, 6))))
        r, found = self.radii, _Sums(len(x))
        pairs = cKDTree(x).query_pairs(2 * float(r.max()), output_type="ndarray")
        i, j = np.sort(pairs, axis=1).T if len(pairs) else np.zeros((2, 0), dtype=int)
        gap = x[j] - x[i]
        far = np.linalg.norm(gap, axis=1)
        near = (far < r[i] + r[j]) & (far > 0)
        i, j, gap, far = i[near], j[near], gap[near], far[near]
        depth = r[i] + r[j] - far
        arms = r[i] - depth / 2, r[j] - depth / 2
        self._push(found, gap / far[:, None], depth, u, w, i, arms[0], j, arms[1])
        for axis in range(3):
            for wall, sign in ((self.lower, -1.0), (self.upper, 1.0)):
                depth = sign * (x[:, axis] - wall[axis]) + r
                (i,) = np.nonzero(depth > 0)
                normal = np.zeros((len(i), 3))
                normal[:, axis] = sign
                self._push(found, normal, depth[i], u, w, i, r[i] - depth[i] / 2, None, None)
        return Touching(found.forces.ravel(), found.lost, found.stored)

    def _push(self, found: _Sums, n: Any, depth: Any, u: Any, w: Any, i: Any, arm_i: Any, j: Any, arm_j: Any) -> None:
        """Accumulate contacts with the normals n, from the first ball to the second or into a wall."""
        sliding = u[i] + np.cross(w[i], arm_i[:, None] * n)
        if j is not None:
            sliding = sliding - u[j] + np.cross(w[j], arm_j[:, None] * n)
        rate = (sliding * n).sum(axis=1)
        elastic = self.stiffness * depth**self.exponent
        Q = elastic * np.maximum(0.0, 1 + self.damping * rate)
        along = sliding - rate[:, None] * n
        size = np.sqrt((along**2).sum(axis=1) + self.smooth**2)
        rubbing = -(self.friction * elastic / size)[:, None] * along
        push = rubbing - Q[:, None] * n
        found.add(i, push, np.cross(arm_i[:, None] * n, rubbing))
        if j is not None:
            found.add(j, -push, np.cross(arm_j[:, None] * n, rubbing))
        found.lost += float(((Q - elastic) * rate).sum() - (rubbing * along).sum())
        found.stored += float((self.stiffness / (self.exponent + 1) * depth ** (self.exponent + 1)).sum())


class _Sums:
    def __init__(self, count: int) -> None:
        self.forces, self.lost, self.stored = np.zeros((count, 6)), 0.0, 0.0

    def add(self, i: Any, force: Any, torque: Any) -> None:
        np.add.at(self.forces, i, np.hstack([force, torque]))


def _kinetic(v: Any, k: Any) -> Any:
    return k.mass / 2 * (m.dot(v[:3], v[:3]) + 0.4 * k.radius**2 * m.dot(v[3:], v[3:]))


def _weight(q: Any, k: Any) -> Any:
    return -k.mass * m.dot(k.gravity, q[:3])


def _look(q: Any, k: Any) -> Any:
    return shapes.sphere(q[:3], k.radius, trace=None)


def _first_look(q: Any, k: Any) -> Any:
    """Return the visual of the first ball, which has a trace."""
    return shapes.sphere(q[:3], k.radius)


class Crowd(System):
    """Granular box: spheres in contact with one another and with the walls of a box.

    A ball has three coordinates of its centre and three angles, of which only the rates matter: ``q`` and ``v`` have
    six entries per ball. The schemes are `semi-explicit:<alpha>,<beta>` and `semi-explicit-2:<beta>`. Contact forces
    count as supplied; `stored_energy` returns the elastic energy of the contacts.

    Parameters
    ----------
    positions : array_like of shape (n_balls, 3)
        Initial centres, in metres.
    radius, mass : float or array_like of shape (n_balls,)
        Radii in metres and masses in kilograms.
    lower, upper : array_like of shape (3,)
        Corners of the box, in metres.
    stiffness : float
        Stiffness of a contact, in N/m ("linear") or N/m^1.5 ("hertz").
    law : {"linear", "hertz"}, default "linear"
        Contact law.
    damping : float, default 0.0
        Hunt-Crossley damping, in s/m.
    friction : float, default 0.0
        Coulomb friction coefficient.
    smooth : float, default 1e-2
        Regularization speed of friction, in m/s.
    gravity : array_like of shape (3,), default (0.0, 0.0, -9.81)
        Gravitational acceleration, in m/s^2.

    Raises
    ------
    InputError
        If an argument is invalid, or balls overlap with each other or with a wall.

    Examples
    --------
    >>> import livens as lv
    >>> rows = [[0.2 * i, 0.3, 0.1] for i in range(1, 4)]
    >>> crowd = lv.Crowd(rows, radius=0.05, mass=0.1, lower=[0, 0, 0], upper=[1, 1, 1], stiffness=1e4)
    >>> run = lv.simulate(crowd, q0=crowd.q0, v0=0 * crowd.q0, scheme="semi-explicit:0.5,0.5", h=1e-4, t_end=0.5)
    >>> bool(run.q[:, 2].min() > 0.04), len(crowd.stored(run)) == len(run.t)
    (True, True)
    """

    def __init__(
        self,
        positions: Any,
        *,
        radius: Any,
        mass: Any,
        lower: Any,
        upper: Any,
        stiffness: float,
        law: str = "linear",
        damping: float = 0.0,
        friction: float = 0.0,
        smooth: float = 1e-2,
        gravity: Any = (0.0, 0.0, -9.81),
    ) -> None:
        places = array("positions", positions)
        if places.ndim != 2 or places.shape[1] != 3 or not len(places):
            raise InputError(f"positions must be rows of three numbers, got an array of shape {places.shape}")
        count = len(places)
        radii, masses = (_each(word, given, count) for word, given in (("radius", radius), ("mass", mass)))
        box = array("lower", lower, (3,)), array("upper", upper, (3,))
        if not np.all(box[1] - box[0] > 2 * radii.max()):
            raise InputError(
                f"balls of radius {radii.max():g} do not fit between {box[0].tolist()} and {box[1].tolist()}"
            )
        self.exponent = _EXPONENTS[one_of("law", law, tuple(_EXPONENTS))]
        numbers = dict(
            gravity=array("gravity", gravity, (3,)),
            lower=box[0],
            upper=box[1],
            stiffness=positive("stiffness", stiffness),
            damping=not_negative("damping", damping),
            friction=not_negative("friction", friction),
            smooth=positive("smooth", smooth),
        )
        names = [[f"ball{i + 1}.{c}" for c in ("x", "y", "z", "ax", "ay", "az")] for i in range(count)]
        elements = [
            Element(
                own,
                kinetic=_kinetic,
                potential=_weight,
                parameters=dict(mass=float(masses[i]), radius=float(radii[i])),
                name=f"ball{i + 1}",
                look=_look if i else _first_look,
            )
            for i, own in enumerate(names)
        ]
        super().__init__([c for own in names for c in own], elements=elements, parameters=numbers, look=_box(*box))
        self.q0 = np.hstack([places, np.zeros((count, 3))]).ravel()
        self._check(places, radii)

    @functools.cached_property
    def forms(self) -> tuple[str, ...]:
        """Formulations: the granular form only, because contacts are not elements."""
        return ("crowd",)

    @property
    def usual_scheme(self) -> str:  # type: ignore[override]  # as in System
        return "semi-explicit-2:0.5"

    def content(self) -> Sequence[Any]:
        return [*super().content(), self.exponent]

    def _check(self, places: np.ndarray, radii: np.ndarray) -> None:
        """Raise InputError if a ball overlaps with another ball or with a wall."""
        from scipy.spatial import cKDTree

        numbers = self.numbers(self.parameter_vector())
        beyond = np.maximum(numbers.lower - places, places - numbers.upper).max(axis=1) + (1 - _DEEPEST) * radii
        if (beyond > 0).any():
            raise InputError(f"ball {int(np.argmax(beyond)) + 1} overlaps with a wall of the box, or is outside of it")
        pairs = cKDTree(places).query_pairs(2 * float(radii.max()), output_type="ndarray")
        for i, j in pairs.tolist():
            depth = radii[i] + radii[j] - float(np.linalg.norm(places[j] - places[i]))
            if depth > _DEEPEST * min(radii[i], radii[j]):
                raise InputError(f"balls {i + 1} and {j + 1} overlap initially by {depth:.3g}: move them apart")

    def numbers(self, k: np.ndarray) -> CrowdNumbers:
        """Return the parameters of a run as arrays.

        Parameters
        ----------
        k : ndarray of shape (parameter_count,)
            Parameter vector.

        Returns
        -------
        GranularParameters
            Contact parameters, radii and masses.
        """
        shared = self.shared.named(np.asarray(k, dtype=float)[: self.shared.size])
        own = np.array([[k[i] for i in list(where)[self.shared.size :]] for where in self.parameter_indices])
        mass, radii = own.T
        masses = np.repeat(np.column_stack([mass, 0.4 * mass * radii**2]), 3, axis=1).ravel()
        named: dict[str, Any] = {name: np.asarray(value, dtype=float) for name, value in shared.items()}
        named |= {name: float(named[name]) for name in ("stiffness", "damping", "friction", "smooth")}
        return CrowdNumbers(self.exponent, radii=radii, masses=masses, **named)

    def stored(self, run: Any, parameters: Mapping[str, Any] | None = None) -> np.ndarray:
        """Return the elastic energy of all contacts.

        Parameters
        ----------
        run : Result
            Result of a simulation.
        parameters : mapping, optional
            Parameter values of the run that differ from those of the model.

        Returns
        -------
        ndarray of shape (n_rows,)
            Energy at every stored time, in joules.
        """
        numbers = self.numbers(self.parameter_vector(parameters))
        return np.array([numbers.touching(q, v).stored for q, v in zip(run.q, run.v, strict=True)])


def _each(word: str, given: Any, count: int) -> np.ndarray:
    """Return one positive value per ball, checked."""
    values = np.atleast_1d(array(word, given))
    if values.shape not in ((1,), (count,)) or not np.all(values > 0):
        raise InputError(f"{word} must be one number greater than 0, or one for each of the {count} balls")
    return np.broadcast_to(values, (count,)).copy()


def _box(lower: np.ndarray, upper: np.ndarray) -> Any:
    """Return the visual of the box: its edges."""
    (x, y, z), (X, Y, Z) = lower.tolist(), upper.tolist()
    floor, roof = ([[x, y, h], [X, y, h], [X, Y, h], [x, Y, h], [x, y, h]] for h in (z, Z))
    posts = [[[a, b, z], [a, b, Z]] for a in (x, X) for b in (y, Y)]
    return lambda: [shapes.path(points, name="box") for points in (floor, roof, *posts)]
