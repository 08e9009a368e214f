"""Frame bodies of a system: which coordinates are the centre and the directors of one rigid body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.errors import ModelError
from livens.expressions.probe import Probe

if TYPE_CHECKING:
    from livens.models.system import System


@dataclass(frozen=True)
class Frame:
    """A rigid body: the coordinates of its centre and of its directors, and the element that says so.

    The element has the kinetic energy of the body, and its constraints keep the directors orthonormal. A particle is a
    frame without directors.
    """

    position: tuple[int, ...]
    directors: tuple[tuple[int, ...], ...]
    element: int
    constraints: tuple[int, ...]

    @property
    def coordinates(self) -> tuple[int, ...]:
        """All of them, the centre first."""
        return (*self.position, *(i for director in self.directors for i in director))

    @property
    def dimension(self) -> int:
        return len(self.position)

    @property
    def turning(self) -> int:
        """How many numbers say how fast it turns: none, one in the plane, three in space."""
        return 0 if not self.directors else 3 if self.dimension == 3 else 1


def frames_of(system: System) -> tuple[Frame, ...]:
    """The frames that the elements of a system declare; they must be all of its coordinates, each in one frame."""
    found: list[Frame] = []
    for number, (element, index, own) in enumerate(
        zip(system.elements, system.indices, system.multiplier_slices, strict=True)
    ):
        for position, *directors in element.frames:
            places = [tuple(index[i] for i in part) for part in (position, *directors)]
            found.append(Frame(places[0], tuple(places[1:]), number, tuple(range(own.start, own.stop))))
    taken = [i for frame in found for i in frame.coordinates]
    missing = [name for i, name in enumerate(system.coordinates) if i not in set(taken)]
    if missing:
        raise ModelError(f"the coordinate '{missing[0]}' belongs to no frame: bodies with directors and particles do")
    if len(set(taken)) != len(taken):
        raise ModelError("a coordinate belongs to two frames")
    declaring = {frame.element for frame in found}
    for number, model in enumerate(system.models):
        if number not in declaring and not model.T.is_zero():
            raise ModelError(f"{_name(system, number)} has kinetic energy, but does not say that it is a frame")
    for frame in found:
        _check_mass(system, frame)
    return tuple(found)


def mass_and_euler(system: System, frame: Frame) -> ca.Function:
    """Mass and Euler tensor ``integral X X^T dm`` of a frame, as a function of the parameters of its element."""
    model = system.models[frame.element]
    M, own = _blocks(system, frame)
    first = [part[0] for part in own[1:]]
    euler = ca.densify(M[first, first]) if first else ca.SX(0, 0)
    return ca.Function("inertia", [model.k], [M[own[0][0], own[0][0]], euler])


def turns_regularly(system: System, frame: Frame) -> bool:
    """All principal moments of inertia are positive, so that its rate of rotation follows from its momentum."""
    if not frame.directors:
        return True
    k = system.parameter_vector()[list(system.parameter_indices[frame.element])]
    euler = np.array(mass_and_euler(system, frame)(k)[1])
    moments = np.linalg.eigvalsh(np.trace(euler) * np.eye(len(euler)) - euler)
    return bool(moments[0] > 1e-12 * max(moments[-1], 1e-300)) if frame.dimension == 3 else bool(np.trace(euler) > 0)


def _blocks(system: System, frame: Frame) -> tuple[Any, list[list[int]]]:
    """The mass matrix of the frame's element, and where the parts of the frame are in it."""
    index = system.indices[frame.element]
    own = [[index.index(i) for i in part] for part in (frame.position, *frame.directors)]
    return system.models[frame.element].mass, own


def _check_mass(system: System, frame: Frame) -> None:
    """The kinetic energy must be that of a rigid body seen from its centre: ``m v.v/2 + E_ij d_i'.d_j'/2``."""
    model = system.models[frame.element]
    M, own = _blocks(system, frame)
    flat = [i for part in own for i in part]
    corner = [part[0] for part in own]
    weights = ca.densify(M[corner, corner])
    weights[0, 1:], weights[1:, 0] = 0, 0  # the centre of mass: nothing couples it to the directors
    gap = M[flat, flat] - ca.kron(weights, ca.SX.eye(frame.dimension))
    if ca.depends_on(M, ca.vertcat(model.q, model.v)) or Probe([model.k], seed=5).vanishes(gap, 1) is False:
        raise ModelError(f"{_name(system, frame.element)} has not the kinetic energy of a rigid body about its centre")


def _name(system: System, number: int) -> str:
    return f"'{system.elements[number].name}'" if system.elements[number].name else f"element {number}"


def body_kinds(frames: Sequence[Frame]) -> tuple[tuple[int, int], ...]:
    """The kinds of bodies there are: dimension and number of directors."""
    return tuple(dict.fromkeys((frame.dimension, len(frame.directors)) for frame in frames))
