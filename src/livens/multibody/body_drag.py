"""Drag on bodies: forces of a resting fluid on an equivalent box, and damping of free bodies."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from livens import math as m
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element
from livens.multibody.body import Body
from livens.multibody.joint_forces import angular_velocity
from livens.multibody.parametrisation import Parametrisation
from livens.types import Vector

#: Largest product of inertia relative to the trace of the tensor for which axes are principal axes.
_AXES_RTOL = 1e-12


@functools.cache
def _fluid_drag(parametrisation: Parametrisation) -> ModelFunction:
    """Return the dissipation function of a box in a resting fluid (MuJoCo's inertia-box model).

    Along axis i of the box with semi-axes r, the force is ``-2 density r_j r_k |v_i| v_i`` and the torque is
    ``-density/2 r_i (r_j^4 + r_k^4) |w_i| w_i``. Viscosity adds ``-6 pi viscosity R v`` and ``-8 pi viscosity R^3 w``
    with the mean semi-axis R.
    """

    def dissipation(q: Vector, v: Vector, k: ParameterNamespace) -> Any:
        velocity, omega = parametrisation.velocity(q, v, k.X), angular_velocity(parametrisation, q, v)
        mean = (k.r[0] + k.r[1] + k.r[2]) / 3
        viscous = 3 * np.pi * k.viscosity * mean * m.dot(velocity, velocity)
        total = viscous + 4 * np.pi * k.viscosity * mean**3 * m.dot(omega, omega)
        for i in range(3):
            j, l = (i + 1) % 3, (i + 2) % 3  # noqa: E741
            axis = parametrisation.vector(q, k.axes[:, i])
            speed, spin = abs(m.dot(axis, velocity)), abs(m.dot(axis, omega))
            total = total + 2 / 3 * k.density * k.r[j] * k.r[l] * speed**3
            total = total + k.density / 6 * k.r[i] * (k.r[j] ** 4 + k.r[l] ** 4) * spin**3
        return total

    return dissipation


def fluid_drag(
    body: Body,
    mass: float,
    tensor: np.ndarray,
    rotation: np.ndarray,
    centre: np.ndarray,
    density: float,
    viscosity: float,
) -> Element:
    """Return the drag of a resting fluid on a rigid part of a body.

    `tensor` is in the axes of the link, `rotation` those axes in space, and `centre` is in space. The axes of the box
    are those of the link if they are principal axes, which decides for equal moments.
    """
    if np.abs(tensor - np.diag(np.diag(tensor))).max() <= _AXES_RTOL * np.trace(tensor):
        moments, axes = np.diag(tensor), rotation.copy()
    else:
        moments, axes = np.linalg.eigh(tensor)
        axes = rotation @ axes
    axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    r = np.sqrt(np.maximum(3 / (2 * mass) * (moments.sum() - 2 * moments), 1e-30))
    parameters = dict(X=body.to_local(centre), axes=body.in_body_axes(axes), r=r, density=density, viscosity=viscosity)
    return Element(body.coordinates, dissipation=_fluid_drag(body.parametrisation), parameters=parameters)


@functools.cache
def _free_damper(parametrisation: Parametrisation) -> ModelFunction:
    def dissipation(q: Vector, v: Vector, k: ParameterNamespace) -> Any:
        velocity, omega = parametrisation.velocity(q, v, k.X), angular_velocity(parametrisation, q, v)
        return 0.5 * k.viscosity * (m.dot(velocity, velocity) + m.dot(omega, omega))

    return dissipation


def free_damper(body: Body, origin: np.ndarray, damping: float) -> Element:
    """Return a damper of all six velocities of a free body: that of a point, and the angular velocity."""
    parameters = dict(X=body.to_local(origin), viscosity=damping)
    return Element(body.coordinates, dissipation=_free_damper(body.parametrisation), parameters=parameters)
