"""Granular box: many spheres in a box with run-time collision detection, at a cost proportional to their number.

Contacts are not elements. Schemes that evaluate forces once per step without derivatives, such as `semi-explicit`,
evaluate all contacts at once. Only pairs in neighbouring cells are tested, and only overlapping pairs are evaluated.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.element import Element
from livens.models.system import System
from livens.scene import shapes
from livens.types import ArrayLike, FloatArray, IndexTable, ModelFunction, ScalarLike, Vector
from livens.validation import check_array, check_choice, check_nonnegative, check_positive

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace
    from livens.scene.shapes import Shape


#: Exponent of the contact force ``stiffness depth^exponent``.
_FORCE_EXPONENTS = {"linear": 1.0, "hertz": 1.5}
#: Largest allowed initial overlap, relative to the radius.
_MAX_INITIAL_OVERLAP = 0.2


class ContactForces(NamedTuple):
    """Result of all contacts in a state: generalized forces, dissipated power in watts, stored energy in joules."""

    forces: np.ndarray
    dissipated_power: float
    stored_energy: float


@dataclass(frozen=True, eq=False)
class GranularParameters:
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

    def contact_forces(self, q: np.ndarray, v: np.ndarray) -> ContactForces:
        """Return the contact forces in a state; reference implementation of the compiled step."""
        from scipy.spatial import cKDTree  # slow import

        x, u, w = (a.reshape(-1, 6)[:, part] for a, part in ((q, slice(3)), (v, slice(3)), (v, slice(3, 6))))
        r, totals = self.radii, _Accumulator(len(x))
        pairs = cKDTree(x).query_pairs(2 * float(r.max()), output_type="ndarray")
        i, j = np.sort(pairs, axis=1).T if len(pairs) else np.zeros((2, 0), dtype=int)
        offset = x[j] - x[i]
        distance = np.linalg.norm(offset, axis=1)
        overlapping = (distance < r[i] + r[j]) & (distance > 0)
        i, j, offset, distance = i[overlapping], j[overlapping], offset[overlapping], distance[overlapping]
        depth = r[i] + r[j] - distance
        arms = r[i] - depth / 2, r[j] - depth / 2
        self._accumulate_contacts(totals, offset / distance[:, None], depth, u, w, i, arms[0], j, arms[1])
        for axis in range(3):
            for wall, sign in ((self.lower, -1.0), (self.upper, 1.0)):
                depth = sign * (x[:, axis] - wall[axis]) + r
                (i,) = np.nonzero(depth > 0)
                normal = np.zeros((len(i), 3))
                normal[:, axis] = sign
                self._accumulate_contacts(totals, normal, depth[i], u, w, i, r[i] - depth[i] / 2, None, None)
        return ContactForces(totals.forces.ravel(), totals.dissipated_power, totals.stored_energy)

    def _accumulate_contacts(
        self,
        totals: _Accumulator,
        n: Any,
        depth: FloatArray,
        u: Any,
        w: Any,
        i: IndexTable,
        arm_i: FloatArray,
        j: Any,
        arm_j: Any,
    ) -> None:
        """Accumulate contacts with the normals n, from the first ball to the second or into a wall."""
        relative_velocity = u[i] + np.cross(w[i], arm_i[:, None] * n)
        if j is not None:
            relative_velocity = relative_velocity - u[j] + np.cross(w[j], arm_j[:, None] * n)
        normal_velocity = (relative_velocity * n).sum(axis=1)
        elastic = self.stiffness * depth**self.exponent
        Q = elastic * np.maximum(0.0, 1 + self.damping * normal_velocity)
        tangential_velocity = relative_velocity - normal_velocity[:, None] * n
        size = np.sqrt((tangential_velocity**2).sum(axis=1) + self.smooth**2)
        friction_force = -(self.friction * elastic / size)[:, None] * tangential_velocity
        force = friction_force - Q[:, None] * n
        totals.add(i, force, np.cross(arm_i[:, None] * n, friction_force))
        if j is not None:
            totals.add(j, -force, np.cross(arm_j[:, None] * n, friction_force))
        totals.dissipated_power += float(
            ((Q - elastic) * normal_velocity).sum() - (friction_force * tangential_velocity).sum()
        )
        totals.stored_energy += float((self.stiffness / (self.exponent + 1) * depth ** (self.exponent + 1)).sum())


class _Accumulator:
    def __init__(self, count: int) -> None:
        self.forces, self.dissipated_power, self.stored_energy = np.zeros((count, 6)), 0.0, 0.0

    def add(self, i: Any, force: Any, torque: Any) -> None:
        np.add.at(self.forces, i, np.hstack([force, torque]))


def _kinetic(v: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.mass / 2 * (m.dot(v[:3], v[:3]) + 0.4 * k.radius**2 * m.dot(v[3:], v[3:]))


def _gravity_potential(q: Vector, k: ParameterNamespace) -> ScalarLike:
    return -k.mass * m.dot(k.gravity, q[:3])


def _visual(q: Vector, k: ParameterNamespace) -> Shape:
    return shapes.sphere(q[:3], k.radius, trace=None)


def _traced_visual(q: Vector, k: ParameterNamespace) -> Shape:
    """Return the visual of the first ball, which has a trace."""
    return shapes.sphere(q[:3], k.radius)


class GranularBox(System):
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
    >>> crowd = lv.GranularBox(rows, radius=0.05, mass=0.1, lower=[0, 0, 0], upper=[1, 1, 1], stiffness=1e4)
    >>> run = lv.simulate(crowd, q0=crowd.q0, v0=0 * crowd.q0, scheme="semi-explicit:0.5,0.5", h=1e-4, t_end=0.5)
    >>> bool(run.q[:, 2].min() > 0.04), len(crowd.stored_energy(run)) == len(run.t)
    (True, True)
    """

    def __init__(
        self,
        positions: ArrayLike,
        *,
        radius: FloatArray | float,
        mass: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        stiffness: float,
        law: str = "linear",
        damping: float = 0.0,
        friction: float = 0.0,
        smooth: float = 1e-2,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
    ) -> None:
        centres = check_array("positions", positions)
        if centres.ndim != 2 or centres.shape[1] != 3 or not len(centres):
            raise InputError(f"positions must be rows of three numbers, got an array of shape {centres.shape}")
        count = len(centres)
        radii, masses = (_per_ball(name, value, count) for name, value in (("radius", radius), ("mass", mass)))
        box = check_array("lower", lower, (3,)), check_array("upper", upper, (3,))
        if not np.all(box[1] - box[0] > 2 * radii.max()):
            raise InputError(
                f"balls of radius {radii.max():g} do not fit between {box[0].tolist()} and {box[1].tolist()}"
            )
        self.exponent = _FORCE_EXPONENTS[check_choice("law", law, tuple(_FORCE_EXPONENTS))]
        model_parameters = dict(
            gravity=check_array("gravity", gravity, (3,)),
            lower=box[0],
            upper=box[1],
            stiffness=check_positive("stiffness", stiffness),
            damping=check_nonnegative("damping", damping),
            friction=check_nonnegative("friction", friction),
            smooth=check_positive("smooth", smooth),
        )
        names = [[f"ball{i + 1}.{c}" for c in ("x", "y", "z", "ax", "ay", "az")] for i in range(count)]
        elements = [
            Element(
                ball_names,
                kinetic=_kinetic,
                potential=_gravity_potential,
                parameters=dict(mass=float(masses[i]), radius=float(radii[i])),
                name=f"ball{i + 1}",
                visual=_visual if i else _traced_visual,
            )
            for i, ball_names in enumerate(names)
        ]
        super().__init__(
            [c for ball_names in names for c in ball_names],
            elements=elements,
            parameters=model_parameters,
            visual=_box_edges(*box),
        )
        self.q0 = np.hstack([centres, np.zeros((count, 3))]).ravel()
        self._check_initial_overlap(centres, radii)

    @functools.cached_property
    def formulations(self) -> tuple[str, ...]:
        """Formulations: the granular form only, because contacts are not elements."""
        return ("crowd",)

    @property
    def default_scheme(self) -> str:  # type: ignore[override]  # as in System
        return "semi-explicit-2:0.5"

    def fingerprint_data(self) -> Sequence[Any]:
        return [*super().fingerprint_data(), self.exponent]

    def _check_initial_overlap(self, centres: np.ndarray, radii: np.ndarray) -> None:
        """Raise InputError if a ball overlaps with another ball or with a wall."""
        from scipy.spatial import cKDTree

        parameters = self.granular_parameters(self.parameter_vector())
        wall_overlap = (
            np.maximum(parameters.lower - centres, centres - parameters.upper).max(axis=1)
            + (1 - _MAX_INITIAL_OVERLAP) * radii
        )
        if (wall_overlap > 0).any():
            raise InputError(
                f"ball {int(np.argmax(wall_overlap)) + 1} overlaps with a wall of the box, or is outside of it"
            )
        pairs = cKDTree(centres).query_pairs(2 * float(radii.max()), output_type="ndarray")
        for i, j in pairs.tolist():
            depth = radii[i] + radii[j] - float(np.linalg.norm(centres[j] - centres[i]))
            if depth > _MAX_INITIAL_OVERLAP * min(radii[i], radii[j]):
                raise InputError(f"balls {i + 1} and {j + 1} overlap initially by {depth:.3g}: move them apart")

    def granular_parameters(self, k: np.ndarray) -> GranularParameters:
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
        shared = self.model_parameters.unpack(np.asarray(k, dtype=float)[: self.model_parameters.size])
        ball_parameters = np.array(
            [[k[i] for i in list(indices)[self.model_parameters.size :]] for indices in self.element_parameters]
        )
        mass, radii = ball_parameters.T
        masses = np.repeat(np.column_stack([mass, 0.4 * mass * radii**2]), 3, axis=1).ravel()
        named: dict[str, Any] = {name: np.asarray(value, dtype=float) for name, value in shared.items()}
        named |= {name: float(named[name]) for name in ("stiffness", "damping", "friction", "smooth")}
        return GranularParameters(self.exponent, radii=radii, masses=masses, **named)

    def stored_energy(self, run: Any, parameters: Mapping[str, Any] | None = None) -> np.ndarray:
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
        granular = self.granular_parameters(self.parameter_vector(parameters))
        return np.array([granular.contact_forces(q, v).stored_energy for q, v in zip(run.q, run.v, strict=True)])


def _per_ball(name: str, value: ArrayLike, count: int) -> np.ndarray:
    """Return one positive value per ball, checked."""
    values = np.atleast_1d(check_array(name, value))
    if values.shape not in ((1,), (count,)) or not np.all(values > 0):
        raise InputError(f"{name} must be one number greater than 0, or one for each of the {count} balls")
    return np.broadcast_to(values, (count,)).copy()


def _box_edges(lower: np.ndarray, upper: np.ndarray) -> ModelFunction:
    """Return the visual of the box: its edges."""
    (x, y, z), (X, Y, Z) = lower.tolist(), upper.tolist()
    floor, roof = ([[x, y, h], [X, y, h], [X, Y, h], [x, Y, h], [x, y, h]] for h in (z, Z))
    posts = [[[a, b, z], [a, b, Z]] for a in (x, X) for b in (y, Y)]
    return lambda: [shapes.path(points, name="box") for points in (floor, roof, *posts)]
