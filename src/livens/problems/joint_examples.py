"""One minimal mechanism for each joint type: a body on the ground, or two wheels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.problems import problem

_G = [0.0, 0.0, -9.81]
_BODY: dict[str, Any] = dict(mass=2.0, inertia=[0.1, 0.2, 0.3])


def revolute() -> Multibody:
    """Body on a hinge with a skew axis."""
    mb = Multibody(gravity=_G)
    body = mb.body("body", position=[0.5, 0.2, -0.3], **_BODY)
    joint = mb.revolute("joint", mb.ground, body, at=[0, 0, 0], axis=[1, 1, 1])
    mb.initial(joint, rate=1.5)
    return mb


def prismatic() -> Multibody:
    """Body on a prismatic joint along a skew line, with a spring."""
    mb, along = Multibody(gravity=_G), np.array([1.0, 2.0, -2.0]) / 3
    body = mb.body("body", **_BODY)
    joint = mb.prismatic("joint", mb.ground, body, axis=along)
    mb.motor(joint, force=_spring_force, name="spring")
    mb.initial(joint, position=0.1, velocity=0.3)
    return mb


def _spring_force(t: float, position: float, speed: float) -> float:
    return -50.0 * position


def cylindrical() -> Multibody:
    """Body on a cylindrical joint with a skew axis."""
    mb = Multibody(gravity=_G)
    body = mb.body("body", position=[0.3, 0.16, -0.12], **_BODY)
    joint = mb.cylindrical("joint", mb.ground, body, at=[0, 0, 0], axis=[0, 0.6, 0.8])
    mb.initial(joint, velocity=1.0, rate=2.0)
    return mb


def universal() -> Multibody:
    """Pendulum on a universal joint: spatial x axis, body-fixed y axis."""
    mb = Multibody(gravity=_G)
    first_rotation, second_rotation = _rotation_matrix(0, 0.6), _rotation_matrix(1, -0.3)
    R = first_rotation @ second_rotation
    body = mb.body("body", position=R @ [0.1, 0.05, -0.5], rotation=R, **_BODY)
    joint = mb.universal("joint", mb.ground, body, at=[0, 0, 0], axis="x", second_axis=R[:, 1])
    mb.initial(body, omega=0.5 * np.array([1.0, 0, 0]) + 2.0 * first_rotation[:, 1])
    assert joint.joint_type.orthogonal_axes
    return mb


def spherical() -> Multibody:
    """Spinning body on a spherical joint."""
    mb = Multibody(gravity=_G)
    body = mb.body("body", position=[0.2, 0.1, -0.5], **_BODY)
    mb.spherical("joint", mb.ground, body, at=[0, 0, 0])
    mb.initial(body, omega=[1, 2, 3])
    return mb


def planar() -> Multibody:
    """Body on an inclined plane with an eccentric spring."""
    mb = Multibody(gravity=_G)
    e1, e2 = np.array([math.cos(math.pi / 6), 0, -0.5]), np.array([0.0, 1.0, 0.0])
    at = 0.1 * e1 - 0.2 * e2
    body = mb.body("body", position=at, **_BODY)
    mb.planar("joint", mb.ground, body, at=at, axis=np.cross(e1, e2))
    mb.spring("spring", body.point("eye", at=at + 0.2 * e1 + 0.1 * e2), [0, 0, 0], stiffness=20, free_length=0)
    mb.initial(body, velocity=0.5 * e2, omega=3.0 * np.cross(e1, e2))
    return mb


def screw() -> Multibody:
    """Body on a screw joint with a tilted axis, centre of mass off the axis."""
    mb = Multibody(gravity=_G)
    body = mb.body("body", position=[0.1, 0.08, -0.06], **_BODY)
    joint = mb.screw("joint", mb.ground, body, at=[0, 0, 0], axis=[0, 0.6, 0.8], lead=0.05)
    mb.initial(joint, rate=4.0)
    return mb


def shafts() -> Multibody:
    """Two shafts at 30 degrees with a universal joint: non-uniform output speed."""
    mb, shaft_angle = Multibody(), math.pi / 6
    out = np.array([math.cos(shaft_angle), math.sin(shaft_angle), 0])
    input_shaft = mb.body("input", mass=1.0, inertia=[0.02, 0.02, 0.02], position=[-0.2, 0, 0])
    output_shaft = mb.body("output", mass=1.0, inertia=[0.05, 0.05, 0.05], position=0.2 * out)
    input_joint = mb.revolute("first", mb.ground, input_shaft, at=[-0.2, 0, 0], axis="x")
    mb.revolute("second", mb.ground, output_shaft, at=0.2 * out, axis=out)
    mb.universal("joint", input_shaft, output_shaft, at=[0, 0, 0], axis="z", second_axis=np.cross([0, 0, 1], out))
    mb.initial(input_joint, rate=10.0)
    return mb


def gear() -> Multibody:
    """Gear pair with an eccentric mass on the larger wheel."""
    mb = Multibody(gravity=_G)
    small_wheel = mb.body("small wheel", mass=1.0, inertia=[0.01] * 3)
    # a mass of 1 kg at 0.1 m on a massless wheel with a moment of inertia of 0.08 kg m2
    large_wheel = mb.body("large wheel", mass=1.0, inertia=[0.08] * 3, position=[0.4, 0, 0])
    small_wheel_joint = mb.revolute("one", mb.ground, small_wheel, axis=[0, -1, 0])
    large_wheel_joint = mb.revolute("two", mb.ground, large_wheel, at=[0.3, 0, 0], axis=[0, -1, 0])
    mb.gear("teeth", small_wheel_joint, large_wheel_joint, ratio=-0.5)
    mb.motor(small_wheel_joint, torque=0.5)
    return mb


def rack() -> Multibody:
    """Pinion and rack with a spring."""
    mb = Multibody()
    pinion = mb.body("pinion", mass=1.0, inertia=[0.01] * 3)
    bar = mb.body("bar", mass=2.0, inertia=[0.1] * 3, position=[0, 0, -0.1])
    pinion_joint = mb.revolute("turn", mb.ground, pinion, axis=[0, -1, 0])
    rack_joint = mb.prismatic("slide", mb.ground, bar, axis="x")
    mb.rack("rack", pinion_joint, rack_joint, radius=0.1)
    mb.motor(pinion_joint, torque=3.0)
    mb.motor(rack_joint, force=_return_spring_force, name="spring")
    return mb


def _return_spring_force(t: float, position: float, speed: float) -> float:
    return -100.0 * position


def curve() -> Multibody:
    """Bead on a parabola."""
    mb = Multibody(gravity=_G)
    bead = mb.particle("bead", at=[1, 0, 0.5], mass=1)
    mb.point_on_curve("wire", mb.ground, bead, curve=_parabola)
    return mb


def _parabola(x: np.ndarray) -> list[float]:
    return [x[2] - x[0] ** 2 / 2, x[1]]


def helix() -> Multibody:
    """Bead on a helix, defined by two implicit functions."""
    mb = Multibody(gravity=_G)
    bead = mb.particle("bead", at=[0.5, 0, 0], mass=1)
    mb.point_on_curve("wire", mb.ground, bead, curve=_helix)
    mb.initial(bead, velocity=[0, 1.5, 0.3])
    return mb


def _helix(x: np.ndarray) -> list[float]:
    from livens import math as m

    return [x[0] - 0.5 * m.cos(10 * x[2]), x[1] - 0.5 * m.sin(10 * x[2])]


def _rotation_matrix(axis: int, angle: float) -> np.ndarray:
    """Return the rotation matrix about a coordinate axis."""
    c, s = math.cos(angle), math.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


MECHANISMS: dict[str, Callable[[], Multibody]] = {
    factory.__name__: factory
    for factory in (
        revolute,
        prismatic,
        cylindrical,
        universal,
        spherical,
        planar,
        screw,
        shafts,
        gear,
        rack,
        curve,
        helix,
    )
}


def _register(name: str, factory: Callable[[], Multibody]) -> None:
    description = (factory.__doc__ or "").rstrip(".")
    summary = description[0].lower() + description[1:]

    @problem(f"joint-{name}", summary=summary, source="livens", scheme="lie-em")
    def build_problem() -> Problem:
        return factory().problem(f"joint-{name}", h=1e-3, t_end=2.0)

    build_problem.__doc__ = factory.__doc__


for _name, _factory in MECHANISMS.items():
    _register(_name, _factory)
