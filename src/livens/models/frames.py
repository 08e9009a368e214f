"""Rigid bodies in director coordinates: indices of the centre and the directors of each body."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.errors import ModelError
from livens.expressions.evaluate import Mapped
from livens.expressions.probe import Probe
from livens.models.element import ElementModel

if TYPE_CHECKING:
    from livens.models.system import System


@dataclass(frozen=True)
class Frame:
    """Coordinate indices of a rigid body in director formulation, and its element.

    The element has the kinetic energy of the body, and its constraints are the orthonormality of the directors. A
    particle is a body without directors.
    """

    position: tuple[int, ...]
    directors: tuple[tuple[int, ...], ...]
    element: int
    constraints: tuple[int, ...]
    #: Fast spin about the third axis, see `livens.schemes.recipes.rotor_body`.
    rotor: bool = False

    @functools.cached_property
    def coordinates(self) -> tuple[int, ...]:
        """Indices of all coordinates, the centre first."""
        return (*self.position, *(i for director in self.directors for i in director))

    @property
    def dimension(self) -> int:
        return len(self.position)

    @property
    def kind(self) -> tuple[int, int, bool]:
        """Signature: (dimension, number of directors, is a rotor)."""
        return self.dimension, len(self.directors), self.rotor

    @property
    def turning(self) -> int:
        """Number of components of the angular velocity: 0 for a particle, 1 in the plane, 3 in space."""
        return 0 if not self.directors else 3 if self.dimension == 3 else 1


def frames_of(system: System) -> tuple[Frame, ...]:
    """Return the director bodies declared by the elements; every coordinate must belong to exactly one body."""
    found: list[Frame] = []
    for number, (element, index, own) in enumerate(
        zip(system.elements, system.indices, system.multiplier_slices, strict=True)
    ):
        for position, *directors in element.frames:
            places = [tuple(index[i] for i in part) for part in (position, *directors)]
            inside = tuple(range(own.start, own.stop))
            found.append(Frame(places[0], tuple(places[1:]), number, inside, element.rotor))
    taken = [i for frame in found for i in frame.coordinates]
    distinct = set(taken)
    missing = [name for i, name in enumerate(system.coordinates) if i not in distinct]
    if missing:
        raise ModelError(f"the coordinate '{missing[0]}' belongs to no frame: bodies with directors and particles do")
    if len(distinct) != len(taken):
        raise ModelError("a coordinate belongs to two frames")
    declaring = {frame.element for frame in found}
    for number, model in enumerate(system.models):
        if number not in declaring and not model.T.is_zero():
            raise ModelError(f"{_name(system, number)} has kinetic energy, but does not declare a frame")
    for same in _alike(system, found).values():
        _check_mass(system, same[0])
    return tuple(found)


def _alike(system: System, frames: Sequence[Frame]) -> dict[Any, list[Frame]]:
    """Group bodies by element type and local dofs: their inertia is the same function of the parameters."""
    found: dict[Any, list[Frame]] = {}
    for frame in frames:
        found.setdefault((system.models[frame.element], _places(system, frame)), []).append(frame)
    return found


def mass_and_euler(system: System, frame: Frame) -> ca.Function:
    """Return mass and Euler tensor ``integral X X^T dm`` as a function of the parameters of the element."""
    return _inertia(system.models[frame.element], _places(system, frame))


@functools.lru_cache(maxsize=256)
def _inertia(model: ElementModel, own: tuple[tuple[int, ...], ...]) -> ca.Function:
    M, first = model.mass, [part[0] for part in own[1:]]
    euler = ca.densify(M[first, first]) if first else ca.SX(0, 0)
    return ca.Function("inertia", [model.k], [M[own[0][0], own[0][0]], euler])


def turn_regularly(system: System) -> bool:
    """Return whether all principal moments of inertia are positive, so that momenta determine angular velocities."""
    k, where = system.parameter_vector(), system.parameter_indices
    for same in _alike(system, [frame for frame in system.frames if frame.directors]).values():
        inertia = Mapped(mass_and_euler(system, same[0]), len(same))
        count, space = len(same[0].directors), same[0].dimension == 3
        euler = inertia(k[np.array([where[frame.element] for frame in same]).reshape(len(same), -1)])[1]
        euler = euler.reshape(-1, count, count)
        trace = np.trace(euler, axis1=1, axis2=2)
        if space:
            moments = np.linalg.eigvalsh(trace[:, None, None] * np.eye(count) - euler)
            regular = moments[:, 0] > 1e-12 * np.maximum(moments[:, -1], 1e-300)
        else:
            regular = trace > 0
        if not regular.all():
            return False
    return True


def _places(system: System, frame: Frame) -> tuple[tuple[int, ...], ...]:
    """Return the indices of the centre and the directors within the element."""
    index = system.indices[frame.element]
    return tuple(tuple(index.index(i) for i in part) for part in (frame.position, *frame.directors))


def _check_mass(system: System, frame: Frame) -> None:
    """Raise ModelError unless T is that of a rigid body about its centre of mass: ``m v.v/2 + E_ij d_i'.d_j'/2``."""
    model = system.models[frame.element]
    M, own = model.mass, _places(system, frame)
    flat = [i for part in own for i in part]
    corner = [part[0] for part in own]
    weights = ca.densify(M[corner, corner])
    weights[0, 1:], weights[1:, 0] = 0, 0  # the centre of mass is not coupled to the directors
    gap = M[flat, flat] - ca.kron(weights, ca.SX.eye(frame.dimension))
    if ca.depends_on(M, ca.vertcat(model.q, model.v)) or Probe([model.k], seed=5).vanishes(gap, 1) is False:
        raise ModelError(f"{_name(system, frame.element)} has not the kinetic energy of a rigid body about its centre")


def _name(system: System, number: int) -> str:
    return f"'{system.elements[number].name}'" if system.elements[number].name else f"element {number}"


def body_kinds(frames: Sequence[Frame]) -> tuple[tuple[int, int, bool], ...]:
    """Return the distinct body signatures."""
    return tuple(dict.fromkeys(frame.kind for frame in frames))
