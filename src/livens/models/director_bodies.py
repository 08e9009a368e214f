"""Rigid bodies in director coordinates: indices of the centre and the directors of each body."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.errors import ModelError
from livens.expressions.evaluate import BatchEvaluator
from livens.expressions.probe import Probe
from livens.models.element import ElementType
from livens.models.mass import is_pure_quadratic

if TYPE_CHECKING:
    from livens.models.system import System


@dataclass(frozen=True)
class DirectorBodyDofs:
    """Coordinate indices of a rigid body in director formulation, and its element.

    The element has the kinetic energy of the body, and its constraints are the orthonormality of the directors. A
    particle is a body without directors.
    """

    position: tuple[int, ...]
    directors: tuple[tuple[int, ...], ...]
    element_index: int
    constraints: tuple[int, ...]
    #: Fast spin about the third axis, see `livens.schemes.discretization.rotor`.
    rotor: bool = False

    @functools.cached_property
    def coordinates(self) -> tuple[int, ...]:
        """Indices of all coordinates, the centre first."""
        return (*self.position, *(i for director in self.directors for i in director))

    @property
    def dimension(self) -> int:
        return len(self.position)

    @property
    def signature(self) -> tuple[int, int, bool]:
        """Signature: (dimension, number of directors, is a rotor)."""
        return self.dimension, len(self.directors), self.rotor

    @property
    def n_rot(self) -> int:
        """Number of components of the angular velocity: 0 for a particle, 1 in the plane, 3 in space."""
        return 0 if not self.directors else 3 if self.dimension == 3 else 1


def director_bodies(system: System) -> tuple[DirectorBodyDofs, ...]:
    """Return the director bodies declared by the elements; every coordinate must belong to exactly one body."""
    bodies: list[DirectorBodyDofs] = []
    for element_index, (element, index, constraint_slice) in enumerate(
        zip(system.elements, system.element_dofs, system.element_constraints, strict=True)
    ):
        for position, *directors in element.frames:
            dofs = [tuple(index[i] for i in part) for part in (position, *directors)]
            constraints = tuple(range(constraint_slice.start, constraint_slice.stop))
            bodies.append(DirectorBodyDofs(dofs[0], tuple(dofs[1:]), element_index, constraints, element.rotor))
    used_dofs = [i for frame in bodies for i in frame.coordinates]
    distinct_dofs = set(used_dofs)
    missing = [name for i, name in enumerate(system.coordinates) if i not in distinct_dofs]
    if missing:
        raise ModelError(f"the coordinate '{missing[0]}' belongs to no frame: bodies with directors and particles do")
    if len(distinct_dofs) != len(used_dofs):
        raise ModelError("a coordinate belongs to two frames")
    declaring = {frame.element_index for frame in bodies}
    for element_index, model in enumerate(system.element_types):
        if element_index not in declaring and not model.T.is_zero():
            raise ModelError(
                f"{_element_label(system, element_index)} has kinetic energy, but does not declare a frame"
            )
    for similar_bodies in _group_by_type(system, bodies).values():
        _check_rigid_body_mass(system, similar_bodies[0])
    return tuple(bodies)


def _group_by_type(system: System, frames: Sequence[DirectorBodyDofs]) -> dict[Any, list[DirectorBodyDofs]]:
    """Group bodies by element type and local dofs: their inertia is the same function of the parameters."""
    groups: dict[Any, list[DirectorBodyDofs]] = {}
    for frame in frames:
        groups.setdefault((system.element_types[frame.element_index], _local_dofs(system, frame)), []).append(frame)
    return groups


def inertia_function(system: System, frame: DirectorBodyDofs) -> ca.Function:
    """Return mass and Euler tensor ``integral X X^T dm`` as a function of the parameters of the element."""
    return _inertia(system.element_types[frame.element_index], _local_dofs(system, frame))


@functools.lru_cache(maxsize=256)
def _inertia(model: ElementType, local_dofs: tuple[tuple[int, ...], ...]) -> ca.Function:
    M, first_components = model.mass, [part[0] for part in local_dofs[1:]]
    euler = ca.densify(M[first_components, first_components]) if first_components else ca.SX(0, 0)
    return ca.Function("inertia", [model.k], [M[local_dofs[0][0], local_dofs[0][0]], euler])


def has_regular_inertia(system: System) -> bool:
    """Return whether all principal moments of inertia are positive, so that momenta determine angular velocities."""
    k, element_parameters = system.parameter_vector(), system.element_parameters
    for similar_bodies in _group_by_type(system, [frame for frame in system.frames if frame.directors]).values():
        inertia = BatchEvaluator(inertia_function(system, similar_bodies[0]), len(similar_bodies))
        count, is_spatial = len(similar_bodies[0].directors), similar_bodies[0].dimension == 3
        euler = inertia(
            k[
                np.array([element_parameters[frame.element_index] for frame in similar_bodies]).reshape(
                    len(similar_bodies), -1
                )
            ]
        )[1]
        euler = euler.reshape(-1, count, count)
        trace = np.trace(euler, axis1=1, axis2=2)
        if is_spatial:
            moments = np.linalg.eigvalsh(trace[:, None, None] * np.eye(count) - euler)
            regular = moments[:, 0] > 1e-12 * np.maximum(moments[:, -1], 1e-300)
        else:
            regular = trace > 0
        if not regular.all():
            return False
    return True


def _local_dofs(system: System, frame: DirectorBodyDofs) -> tuple[tuple[int, ...], ...]:
    """Return the indices of the centre and the directors within the element."""
    index = system.element_dofs[frame.element_index]
    return tuple(tuple(index.index(i) for i in part) for part in (frame.position, *frame.directors))


def _check_rigid_body_mass(system: System, frame: DirectorBodyDofs) -> None:
    """Raise ModelError unless T is that of a rigid body about its centre of mass: ``m v.v/2 + E_ij d_i'.d_j'/2``."""
    model = system.element_types[frame.element_index]
    M, local_dofs = model.mass, _local_dofs(system, frame)
    flat = [i for part in local_dofs for i in part]
    corner = [part[0] for part in local_dofs]
    weights = ca.densify(M[corner, corner])
    weights[0, 1:], weights[1:, 0] = 0, 0  # the centre of mass is not coupled to the directors
    residual = M[flat, flat] - ca.kron(weights, ca.SX.eye(frame.dimension))
    if (
        ca.depends_on(M, ca.vertcat(model.q, model.v))
        or Probe([model.k], seed=5).is_zero(residual, 1) is False
        or not is_pure_quadratic(model)
    ):
        raise ModelError(
            f"{_element_label(system, frame.element_index)} has not the kinetic energy of a rigid body about its centre"
        )


def _element_label(system: System, element_index: int) -> str:
    return (
        f"'{system.elements[element_index].name}'"
        if system.elements[element_index].name
        else f"element {element_index}"
    )


def body_signatures(frames: Sequence[DirectorBodyDofs]) -> tuple[tuple[int, int, bool], ...]:
    """Return the distinct body signatures."""
    return tuple(dict.fromkeys(frame.signature for frame in frames))
