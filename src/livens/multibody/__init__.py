"""Rigid bodies and what acts on them, as elements of a system.

A body is an `Element` that knows where its points are. Joints, springs and loads are elements too; they take points as
``(body, X)`` with X in the body's own frame, or as a fixed point of space.

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
>>> run.facts.scheme, bool(run.summary.max_energy_drift < 1e-12)
('lie-em', True)

Which momenta an energy-momentum scheme conserves exactly depends on the coordinates. Points of bodies with directors
(and particles) are linear in the coordinates: there, energy, linear and angular momentum are all exact. Points of
quaternion bodies are not: when space turns, vectors turn by the full angle and quaternions by half of it, and no
function that couples both is invariant and at most quadratic. Energy and linear momentum are exact there too, but
angular momentum only as long as such bodies are coupled at their centres of mass or by `torsion_spring`; joints and
springs at other points change it by errors of the scheme's order. Without joints, ask for it by
``quaternion_body(..., equivariant=True)``; with joints such bodies are unstable, which is why it is not the default.
So mechanisms are made of bodies with directors, taken as frames; quaternions are for single bodies and for comparison.
"""

from livens.multibody.bodies import (
    Body,
    coordinates,
    director_body,
    particle,
    planar_body,
    quaternion_body,
    rotation_body,
)
from livens.multibody.contact import sphere_in_box, sphere_plane, sphere_sphere
from livens.multibody.forces import damper, gravitation, spring, torsion_spring
from livens.multibody.inertia import Inertia
from livens.multibody.joints import rigid_link, spherical_joint
from livens.multibody.loads import force, gravity, torque
from livens.multibody.momenta import angular_momentum, linear_momentum

__all__ = [
    "Body",
    "Inertia",
    "angular_momentum",
    "coordinates",
    "damper",
    "director_body",
    "force",
    "gravitation",
    "gravity",
    "linear_momentum",
    "particle",
    "planar_body",
    "quaternion_body",
    "rigid_link",
    "rotation_body",
    "sphere_in_box",
    "sphere_plane",
    "sphere_sphere",
    "spherical_joint",
    "spring",
    "torque",
    "torsion_spring",
]
