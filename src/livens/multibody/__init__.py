"""Rigid-body elements of a system: bodies, point constraints, force elements and loads; public as `livens.bodies`.

A body is an `Element` with a kinematic parametrisation of its points. Constraints, springs and loads are elements too.
They take a point as ``(body, X)`` with X in the body frame in metres, or as a point fixed in space.

>>> import livens as lv
>>> from livens import bodies
>>> rod = bodies.Inertia(1.0, [1 / 12, 1 / 100, 1 / 12])
>>> a, b = bodies.director_body("a", rod), bodies.director_body("b", rod)
>>> joints = [
...     bodies.spherical_joint((a, [0, -0.5, 0]), [0, 0, 0]),
...     bodies.spherical_joint((a, [0, 0.5, 0]), (b, [0, -0.5, 0])),
... ]
>>> elements = [a, b, *joints, bodies.gravity(a), bodies.gravity(b)]
>>> system = lv.System(bodies.coordinates([a, b]), elements=elements, frames=True)
>>> q0 = [*a.state([0, 0.5, 0])[0], *b.state([0, 1.5, 0])[0]]
>>> run = lv.simulate(system, q0, [0] * system.n, h=0.01, t_end=1.0)
>>> run.info.scheme, bool(run.summary.max_energy_drift < 1e-12)
('lie-em', True)

The momenta that an energy-momentum scheme conserves exactly depend on the coordinates. Points of director bodies and
particles are linear in the coordinates: energy, linear and angular momentum are all conserved exactly. Points of
quaternion bodies are not linear: under a rotation of space, vectors rotate by the full angle and quaternions by half
of it, and no function that couples both is invariant and at most quadratic. Energy and linear momentum are still
conserved exactly. Angular momentum is conserved only if quaternion bodies are coupled at their centres of mass or by
`torsion_spring`; constraints and springs at other points change it by errors of the order of the scheme. Without
constraints, ``quaternion_body(..., equivariant=True)`` conserves angular momentum. With constraints such bodies are
unstable, so this is not the default. Mechanisms therefore use director bodies, integrated as frames; quaternion bodies
serve for single bodies and for comparison.
"""

from livens.multibody.body_elements import (
    BodyElement,
    coordinates,
    director_body,
    fixed_point_body,
    particle,
    planar_body,
    quaternion_body,
)
from livens.multibody.inertia import Inertia
from livens.multibody.loads import force, gravity, torque
from livens.multibody.momenta import angular_momentum, linear_momentum
from livens.multibody.point_constraints import rigid_link, spherical_joint
from livens.multibody.point_forces import damper, gravitation, spring, torsion_spring
from livens.multibody.sphere_contacts import sphere_in_box, sphere_plane, sphere_sphere

__all__ = [
    "BodyElement",
    "Inertia",
    "angular_momentum",
    "coordinates",
    "damper",
    "director_body",
    "fixed_point_body",
    "force",
    "gravitation",
    "gravity",
    "linear_momentum",
    "particle",
    "planar_body",
    "quaternion_body",
    "rigid_link",
    "sphere_in_box",
    "sphere_plane",
    "sphere_sphere",
    "spherical_joint",
    "spring",
    "torque",
    "torsion_spring",
]
