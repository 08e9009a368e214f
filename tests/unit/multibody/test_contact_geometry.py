"""Every pair of shapes against closed forms: depth, normal, point, force, at random poses of both bodies."""

import warnings

import casadi as ca
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import livens as lv
from livens import contacts
from livens import math as m
from livens.errors import LivensWarning
from livens.expressions.parameters import ParameterNamespace
from livens.models.equations_of_motion import equations_of_motion

few = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
fewer = settings(few, max_examples=2)
seeds = st.integers(0, 2**32 - 1)
K = 1e4


def turned(random):
    return Rotation.random(random_state=int(random.integers(2**31))).as_matrix()


def two_bodies(random):
    """Two bodies in space, anywhere."""
    mb = lv.Multibody()
    one, other = (
        mb.body(name, mass=1.0, inertia=[1, 1, 1], position=random.uniform(-1, 1, 3), rotation=turned(random))
        for name in "ab"
    )
    return mb, one, other


class Looked:
    """Return depth, force on the second body and generalised forces of a contact at a state."""

    def __init__(self, mb, contact):
        self.mb, self.name = mb, contact.name
        self.system = mb.system
        self.q, self.v = mb.assembly.state

    def quantity(self, name):
        k = self.system.parameter_vector()
        symbols = [ca.SX.sym(x, n) for x, n in zip("qvltk", (self.system.n, self.system.n, 0, 1, len(k)), strict=True)]
        value = ca.Function("f", symbols, [self.system.quantities[f"{self.name}.{name}"].expression(*symbols)])
        return np.array(value(self.q, self.v, [], 0.0, k)).ravel()

    @property
    def depth(self):
        return self.quantity("depth")[0]

    def slope(self):
        """Force and torque about the origin on both bodies, from the gradient of the energy by the coordinates."""
        d, zero = equations_of_motion(self.system), np.zeros(self.system.n)
        f = d.function(-ca.gradient(d.V, d.q))(self.q, self.v, zero, 0, self.system.parameter_vector())
        f, q = np.array(f).reshape(2, 4, 3), self.q.reshape(2, 4, 3)
        return f[:, 0], np.cross(q, f).sum(axis=1)


def checked(mb, contact, depth, normal, point):
    """The normal is from the second body to the first, at the first; the law is linear."""
    seen = Looked(mb, contact)
    assert seen.depth == pytest.approx(depth, abs=1e-12)
    push = K * max(depth, 0.0) * np.asarray(normal)
    force, torque = seen.slope()
    assert force[0] == pytest.approx(push, abs=1e-7) and force[1] == pytest.approx(-push, abs=1e-7)
    assert torque[0] == pytest.approx(np.cross(point, push), abs=1e-7)
    assert torque.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-9)
    assert seen.quantity("force") == pytest.approx(-push, abs=1e-7)
    assert seen.quantity("normal_force")[0] == pytest.approx(K * max(depth, 0.0), abs=1e-7)


def unit(random):
    n = random.standard_normal(3)
    return n / np.linalg.norm(n)


@given(seeds, st.floats(-0.05, 0.05))
@few
def test_sphere_and_half_space(seed, depth):
    random = np.random.default_rng(seed)
    mb, a, b = two_bodies(random)
    n, origin = unit(random), random.uniform(-1, 1, 3)
    along = np.cross(n, unit(random))
    centre = origin + along + (0.2 - depth) * n
    contact = mb.contact(contacts.Sphere(a, 0.2, at=centre), contacts.HalfSpace(b, origin, n), stiffness=K)
    checked(mb, contact, depth, n, centre)


@given(seeds, st.floats(-0.05, 0.05))
@few
def test_spheres_and_pockets(seed, depth):
    random = np.random.default_rng(seed)
    mb, a, b = two_bodies(random)
    n, origin = unit(random), random.uniform(-1, 1, 3)
    ball = contacts.Sphere(a, 0.2, at=origin + (0.5 - depth) * n)
    checked(mb, mb.contact(ball, contacts.Sphere(b, 0.3, at=origin), stiffness=K), depth, n, ball.reference_position)
    mb, a, b = two_bodies(random)
    ball = contacts.Sphere(a, 0.2, at=origin + (0.3 + depth) * n)
    checked(
        mb, mb.contact(ball, contacts.HollowSphere(b, 0.5, at=origin), stiffness=K), depth, -n, ball.reference_position
    )


@given(seeds, st.floats(-0.02, 0.02), st.integers(0, 2))
@few
def test_sphere_and_box(seed, depth, region):
    """Beside a face, an edge and a corner."""
    random = np.random.default_rng(seed)
    mb, a, b = two_bodies(random)
    half, R, origin = np.array([0.3, 0.2, 0.4]), turned(random), random.uniform(-1, 1, 3)
    signs = np.where(random.random(3) < 0.5, -1.0, 1.0)
    out = np.zeros(3)
    out[: region + 1] = random.uniform(0.2, 1.0, region + 1)
    n = signs * out / np.linalg.norm(out)
    inside = signs * half * random.uniform(0.0, 0.9, 3)
    local = np.where(out > 0, signs * half, inside) + (0.1 - depth) * n
    box = contacts.Box(b, 2 * half, at=origin, rotation=R)
    ball = contacts.Sphere(a, 0.1, at=origin + R @ local)
    checked(mb, mb.contact(ball, box, stiffness=K), depth, R @ n, ball.reference_position)


@given(seeds, st.floats(-0.05, 0.05), st.booleans())
@few
def test_sphere_and_capsule(seed, depth, beyond):
    random = np.random.default_rng(seed)
    mb, a, b = two_bodies(random)
    e, origin = unit(random), random.uniform(-1, 1, 3)
    n = unit(random)
    n = n if beyond else n - e * (e @ n)
    n = n * np.sign(e @ n) / np.linalg.norm(n) if beyond else n / np.linalg.norm(n)
    foot = origin + e * (0.5 if beyond else random.uniform(-0.5, 0.5))
    capsule = contacts.Capsule(b, origin - 0.5 * e, origin + 0.5 * e, 0.1)
    ball = contacts.Sphere(a, 0.2, at=foot + (0.3 - depth) * n)
    checked(mb, mb.contact(ball, capsule, stiffness=K), depth, n, ball.reference_position)


@given(seeds, st.floats(-0.05, 0.05), st.sampled_from(["side", "end", "rim", "tube"]))
@few
def test_sphere_and_cylinder(seed, depth, region):
    random = np.random.default_rng(seed)
    mb, a, b = two_bodies(random)
    e, origin = unit(random), random.uniform(-1, 1, 3)
    across = np.cross(e, unit(random))
    across /= np.linalg.norm(across)
    tilt = random.uniform(0.3, 1.2)
    foot, n = {
        "side": (0.3 * e + 0.4 * across, across),
        "tube": (0.3 * e + 0.4 * across, -across),
        "end": (0.5 * e + 0.1 * across, e),
        "rim": (0.5 * e + 0.4 * across, np.cos(tilt) * e + np.sin(tilt) * across),
    }[region]
    if region == "tube":
        shape = contacts.HollowCylinder(b, 0.4, at=origin, axis=e)
    else:
        shape = contacts.Cylinder(b, 0.4, 1.0, at=origin, axis=e)
    ball = contacts.Sphere(a, 0.1, at=origin + foot + (0.1 - depth) * n)
    checked(mb, mb.contact(ball, shape, stiffness=K), depth, n, ball.reference_position)


@given(seeds, st.floats(-0.05, 0.05), st.booleans())
@few
def test_sphere_in_a_groove_and_on_a_ring(seed, depth, hollow):
    """At every angle of the section: beside the inner race and the outer one, and outside of the ring."""
    random = np.random.default_rng(seed)
    mb, a, b = two_bodies(random)
    e, origin, angle = unit(random), random.uniform(-1, 1, 3), random.uniform(0, 2 * np.pi)
    across = np.cross(e, unit(random))
    across /= np.linalg.norm(across)
    out = np.cos(angle) * across + np.sin(angle) * e
    circle = origin + 2.0 * across
    if hollow:
        shape, ball = (
            contacts.Groove(b, 2.0, 0.26, origin, e),
            contacts.Sphere(a, 0.2, at=circle + (0.06 + depth) * out),
        )
        if 0.06 + depth < 1e-3:
            return  # the ball is in the middle of the groove
    else:
        shape, ball = contacts.Torus(b, 2.0, 0.3, origin, e), contacts.Sphere(a, 0.2, at=circle + (0.5 - depth) * out)
    checked(mb, mb.contact(ball, shape, stiffness=K), depth, -out if hollow else out, ball.reference_position)


def test_the_curvatures_of_a_groove_are_those_of_its_angle():
    mb = lv.Multibody()
    ring = mb.ring("ring", at=[0, 0, 0], radius=0.02, tube_radius=0.004, mass=1)
    ball = mb.sphere("ball", at=[0.02 + 0.001 * np.cos(0.3), 0, 0.001 * np.sin(0.3)], radius=0.0035, mass=1)
    across, along = contacts.Groove(ring).curvatures(contacts.Sphere(ball))
    assert across == pytest.approx(-1 / 0.004)
    assert along == pytest.approx(-np.cos(0.3) / (0.02 + 0.004 * np.cos(0.3)))
    contact = mb.contact(ball, contacts.Groove(ring), law="hertz")
    found = mb.system.parameters[f"{contact.name}.stiffness"]
    assert found == pytest.approx(contacts.hertz_stiffness((1 / 0.0035,) * 2, (across, along)))


@given(seeds)
@fewer
def test_two_capsules(seed):
    """Against the distance of two segments by a minimiser that knows nothing of cases."""
    random = np.random.default_rng(seed)
    mb, a, b = two_bodies(random)
    ends = random.uniform(-0.5, 0.5, (4, 3))

    def between(s):
        return ends[0] + s[0] * (ends[1] - ends[0]) - ends[2] - s[1] * (ends[3] - ends[2])

    exact = dict(ftol=1e-16, gtol=1e-12)
    found = min(
        (
            minimize(lambda s: between(s) @ between(s), start, bounds=[(0, 1)] * 2, options=exact)
            for start in ([0.5, 0.5], [0, 0], [1, 1])
        ),
        key=lambda one: one.fun,
    )
    if found.fun < 1e-4:
        return  # axes that cross have no normal
    distance = np.sqrt(found.fun)
    radius = distance / 2 + 0.01
    one, other = contacts.Capsule(a, ends[0], ends[1], radius), contacts.Capsule(b, ends[2], ends[3], radius)
    seen = Looked(mb, mb.contact(one, other, stiffness=K))
    assert seen.depth == pytest.approx(0.02, abs=1e-6)
    force, torque = seen.slope()
    assert force[0] == pytest.approx(K * 0.02 * between(found.x) / distance, abs=2e-2)
    assert force.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-9)
    assert torque.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-9)


@given(seeds, st.floats(0.0, 0.05))
@few
def test_an_ellipsoid_on_a_plane(seed, depth):
    """Its lowest point is where the normal of the surface shows down."""
    random = np.random.default_rng(seed)
    mb, a, b = two_bodies(random)
    half, R, n = np.array([0.3, 0.2, 0.5]), turned(random), unit(random)
    lowest = -R @ (half**2 * (R.T @ n)) / np.linalg.norm(half * (R.T @ n))
    assert np.sum((R.T @ lowest / half) ** 2) == pytest.approx(1.0)
    centre = random.uniform(-1, 1, 3)
    egg = contacts.Ellipsoid(a, half, at=centre, rotation=R)
    plane = contacts.HalfSpace(b, centre + lowest + depth * n, n)
    checked(mb, mb.contact(egg, plane, stiffness=K), depth, n, centre + lowest)


@given(seeds)
@fewer
def test_corners_of_boxes_and_points_of_meshes(seed):
    """The force is the sum over all corners that are below the plane, each where it is."""
    random = np.random.default_rng(seed)
    mb, a, b = two_bodies(random)
    R, centre, half = turned(random), random.uniform(-1, 1, 3), np.array([0.1, 0.2, 0.3])
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    corners = centre + (signs * half) @ R.T
    n = unit(random)
    heights = corners @ n
    origin = n * (heights.min() + 0.03)
    depths = np.maximum(origin @ n - heights, 0.0)
    push = K * depths[:, None] * n
    for shape in (contacts.Box(a, 2 * half, at=centre, rotation=R), contacts.PointCloud(a, corners)):
        name = f"{shape.label} one"
        seen = Looked(mb, mb.contact(shape, contacts.HalfSpace(b, origin, n), stiffness=K, name=name))
        assert seen.depth == pytest.approx(0.03)
        assert seen.quantity("normal_force")[0] == pytest.approx(K * depths.sum())
        assert seen.quantity("force") == pytest.approx(-push.sum(axis=0), abs=1e-9)
    force, torque = seen.slope()  # both contacts act
    assert force[0] == pytest.approx(2 * push.sum(axis=0), abs=1e-8)
    assert torque[0] == pytest.approx(2 * np.cross(corners, push).sum(axis=0), abs=1e-8)


def test_a_capsule_on_a_plane_rests_on_its_ends():
    mb = lv.Multibody()
    rod = mb.rod("rod", a=[0, 0, 0.09], b=[1, 0, 0.12], mass=1, radius=0.1)
    contact = mb.contact(rod, mb.ground, stiffness=K)
    seen = Looked(mb, contact)
    assert seen.depth == pytest.approx(0.01) and seen.quantity("force") == pytest.approx([0, 0, -K * 0.01])


def test_boxes_see_corners_on_faces_both_ways():
    mb = lv.Multibody()
    low = mb.box("low", at=[0, 0, 0], size=[1, 1, 1], mass=1)
    high = mb.box("high", at=[0.2, 0.1, 0.99], size=[1, 1, 1], mass=1)
    contact = mb.contact(*(contacts.Box(one, rounding=0.05) for one in (high, low)), stiffness=K)
    seen = Looked(mb, contact)
    # one corner of each lies on the face of the other; the others are beside it, or deep in neither
    assert seen.depth == pytest.approx(0.01)
    assert seen.quantity("force") == pytest.approx([0, 0, -2 * K * 0.01], abs=1e-9)


def test_in_the_plane():
    mb = lv.Multibody(planar=True, gravity=[0, -9.81])
    box = mb.box("box", at=[0.3, 0.49], size=[1, 1], mass=1)
    disc = mb.sphere("disc", at=[1.0, 1.0], radius=0.3, mass=1)
    floor = mb.contact(box, mb.ground, stiffness=K)
    side = mb.contact(disc, box, stiffness=K)
    floor, side = Looked(mb, floor), Looked(mb, side)
    assert floor.quantity("force") == pytest.approx([0, -2 * K * 0.01])
    corner = np.array([0.2, 0.01])
    depth = 0.3 - np.linalg.norm(corner)
    assert side.depth == pytest.approx(depth)
    assert side.quantity("force") == pytest.approx(-K * depth * corner / np.linalg.norm(corner))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda mb, a, b: mb.contact(a, a, stiffness=1.0), "two different"),
        (lambda mb, a, b: mb.contact(contacts.Sphere(a, -1.0), b, stiffness=1.0), "greater than 0"),
        (lambda mb, a, b: mb.contact(a, b), "needs a stiffness"),
        (lambda mb, a, b: mb.contact(a, b, stiffness=-1.0), "greater than 0"),
        (lambda mb, a, b: mb.contact(a, b, stiffness=1.0, dissipation=-1.0), "negative"),
        (lambda mb, a, b: mb.contact(a, b, stiffness=1.0, friction=-1.0), "negative"),
        (lambda mb, a, b: mb.contact(a, b, law="soft"), "law must be"),
        (lambda mb, a, b: mb.contact(a, b, law=contacts.Linear(1.0), stiffness=2.0), "together with a law"),
        (lambda mb, a, b: mb.contact(a, 3.0, stiffness=1.0), "shapes, bodies or the ground"),
        (lambda mb, a, b: mb.contact(contacts.Box(b), mb.ground, law="hertz"), "no curvature"),
        (lambda mb, a, b: mb.contact(contacts.Ellipsoid(a, [1, 1, 1]), b, stiffness=1.0), "is not supported"),
        (lambda mb, a, b: contacts.ConvexMesh(a, [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]), "in one plane"),
        (lambda mb, a, b: contacts.Box(b, rounding=2.0), "shortest edge"),
        (lambda mb, a, b: contacts.Box(b, size=[1, -1, 1]), "greater than 0"),
        (lambda mb, a, b: contacts.Groove(a), "not created as a ring"),
        (lambda mb, a, b: contacts.Groove(a, 1.0, -0.1), "greater than 0"),
        (lambda mb, a, b: contacts.PointCloud(a, []), r"shape \(n, 3\)"),
        (lambda mb, a, b: contacts.HalfSpace(a, normal=[0, 0, 0]), "not all zero"),
        (lambda mb, a, b: contacts.Capsule(a, [0, 0, 0], [0, 0, 0], 0.1), "greater than 0"),
        (lambda mb, a, b: contacts.Ellipsoid(a, [1, 0, 1]), "greater than 0"),
        (lambda mb, a, b: contacts.Sphere("ball", 1.0), "belongs to a body"),
    ],
)
def test_bad_contacts(make, words):
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 1], radius=0.1, mass=1)
    box = mb.box("box", at=[0, 0, 3], size=[1, 1, 1], mass=1)
    with pytest.raises(lv.InputError, match=words):
        make(mb, ball, box)


def test_a_start_within_each_other_is_refused():
    mb = lv.Multibody()
    ball = mb.sphere("ball", at=[0, 0, 0.05], radius=0.1, mass=1)
    mb.contact(ball, mb.ground, stiffness=1e4)
    with pytest.raises(lv.InputError, match=r"ball-ground: 'ball' and 'ground' overlap by 0.05 at the start"):
        mb.simulate(t_end=0.1)
    with pytest.raises(lv.InputError, match="overlap"):
        mb.problem("ball")


@pytest.mark.parametrize("law", ["linear", "hertz"])
def test_a_stiffness_that_steps_cannot_resolve_is_refused_and_the_step_that_is_offered_is_taken(law):
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 0.101], radius=0.1, mass=1)
    mb.contact(ball, mb.ground, law=law, stiffness=1e9)
    mb.initial(ball, velocity=[0, 0, -1.0])
    with pytest.raises(lv.InputError, match="use h <=") as refused:
        mb.simulate(t_end=0.1, h=1e-2)
    offered = float(str(refused.value).split("h <= ")[1].split(",")[0])
    run = mb.simulate(t_end=2e-3, h=offered)
    assert run["ball.velocity"][-1, 2] == pytest.approx(1.0, rel=0.03)


@given(seeds, st.floats(0.0, 0.5))
@few
def test_neighbours_by_cells_are_those_of_all_pairs(seed, within):
    random = np.random.default_rng(seed)
    mb = lv.Multibody()
    places, radii = random.uniform(-1, 1, (30, 3)), random.uniform(0.02, 0.2, 30)
    balls = [mb.sphere(f"b{i}", at=x, radius=r, mass=1) for i, (x, r) in enumerate(zip(places, radii, strict=True))]
    found = {contact.name for contact in mb.contact_pairs(balls, max_gap=within, stiffness=K)}
    expected = {
        f"b{i}-b{j}"
        for i in range(30)
        for j in range(i + 1, 30)
        if np.linalg.norm(places[i] - places[j]) - radii[i] - radii[j] <= within
    }
    assert found == expected


def test_contacts_of_many():
    mb = lv.Multibody()
    row = [mb.sphere(f"b{i}", at=[0.21 * i, 0, 0], radius=0.1, mass=1) for i in range(5)]
    with pytest.raises(lv.InputError, match="named after"):
        mb.contact_pairs(row, stiffness=K, name="heap")
    with pytest.raises(lv.InputError, match="at least two"):
        mb.contact_pairs(row[:1], stiffness=K)
    with pytest.raises(lv.InputError, match="use `contact` for"):
        mb.contact_pairs([row[0], mb.ground], stiffness=K)
    assert len(mb.contact_pairs(row, stiffness=K)) == 10


def test_shapes_lie_in_a_ball_of_their_reach():
    mb = lv.Multibody()
    part = mb.box("part", at=[1, 2, 3], size=[1, 2, 4], mass=1)
    assert contacts.Box(part).bounding_radius == pytest.approx(np.sqrt(21) / 2)
    assert contacts.Capsule(part, [0, 0, 0], [2, 0, 0], 0.5).bounding_radius == pytest.approx(1.5)
    assert contacts.Cylinder(part, 0.3, 2.0).bounding_radius >= np.hypot(0.3, 1.0)
    assert contacts.Torus(part, 1.0, 0.2).bounding_radius == pytest.approx(1.2)
    assert contacts.Ellipsoid(part, [1, 2, 3]).bounding_radius >= 3
    assert contacts.PointCloud(part, [[1, 2, 5]]).bounding_radius == pytest.approx(2.0)


def test_balls_about_their_centres_touch_by_their_centres():
    """The stored contact data do not depend on rotations, unless a shape is off the centre of its body."""
    mb = lv.Multibody()
    one, other = (mb.sphere(name, at=[x, 0, 0], radius=0.5, mass=1.0) for name, x in (("a", 0.0), ("b", 2.0)))
    third = mb.body("c", mass=1.0, inertia=[1, 1, 1], position=[4, 0, 0])
    mb.contact(one, other, stiffness=K, name="near")
    mb.contact(one, contacts.Sphere(third, radius=0.5, at=[4.1, 0, 0]), stiffness=K, name="far")
    found = {element.name: len(element.coordinates) for element in mb.system.elements}
    assert found["near"] == 6 and found["far"] == 15


@given(seeds, st.floats(0.0, 0.02))
@few
def test_cylinders_and_rings_on_a_plane(seed, depth):
    """The lowest point of a tilted rim, to the bulge of the ends; the force at this point."""
    random = np.random.default_rng(seed)
    for kind in ("cylinder", "ring"):
        mb, a, b = two_bodies(random)
        e, n, centre, radius = unit(random), unit(random), random.uniform(-1, 1, 3), 0.2
        e = e if e @ n < 0 else -e  # the lower end
        down = -n + e * (e @ n)
        down /= np.linalg.norm(down)
        if kind == "cylinder":
            shape, rim = contacts.Cylinder(a, radius, 1.0, at=centre, axis=e), 0.5 * e + radius * down
        else:
            shape, rim = contacts.Torus(a, radius, 0.05, at=centre, axis=e), radius * down - 0.05 * n
        plane = contacts.HalfSpace(b, centre + rim + depth * n, n)
        seen = Looked(mb, mb.contact(shape, plane, stiffness=K))
        assert seen.depth == pytest.approx(depth, abs=2.1e-3 * radius)
        force, torque = seen.slope()
        assert np.abs(np.cross(force[0], n)).max() < 1e-9 and force.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-9)
        size = np.linalg.norm(force[0])
        if kind == "ring" or abs(e @ n) > 0.1:  # one rim only
            lever = np.cross(centre + rim, force[0])
            sine = np.linalg.norm(np.cross(e, n))
            assert np.abs(torque[0] - lever).max() < 2.1e-3 * radius / max(sine, 1e-2) * size + 1e-9


def test_a_cylinder_lies_and_stands_at_its_exact_height():
    for axis, height in (("z", 0.5), ("x", 0.2)):
        mb = lv.Multibody()
        body = mb.body("can", mass=1.0, inertia=[1, 1, 1], position=[0, 0, height - 0.01])
        seen = Looked(mb, mb.contact(contacts.Cylinder(body, 0.2, 1.0, axis=axis), mb.ground, stiffness=K))
        assert seen.depth == pytest.approx(0.01, abs=1e-12)
        ends = 1 if axis == "z" else 2
        assert seen.quantity("normal_force")[0] == pytest.approx(ends * K * 0.01)


@given(seeds, st.floats(-0.03, 0.1))
@few
def test_sphere_and_ellipsoid(seed, depth):
    """At the foot of a normal of the ellipsoid."""
    random = np.random.default_rng(seed)
    mb, a, b = two_bodies(random)
    half, R, origin, u = np.array([0.3, 0.2, 0.5]), turned(random), random.uniform(-1, 1, 3), unit(random)
    foot, n = half * u, u / half
    n /= np.linalg.norm(n)
    egg = contacts.Ellipsoid(b, half, at=origin, rotation=R)
    ball = contacts.Sphere(a, 0.15, at=origin + R @ (foot + (0.15 - depth) * n))
    checked(mb, mb.contact(ball, egg, stiffness=K), depth, R @ n, ball.reference_position)


@given(seeds, st.floats(-0.02, 0.02), st.integers(0, 2))
@fewer
def test_sphere_and_convex_mesh(seed, depth, region):
    """A mesh with the corners of a box is the box: beside a face, an edge and a corner."""
    random = np.random.default_rng(seed)
    mb, a, b = two_bodies(random)
    half, R, origin = np.array([0.3, 0.2, 0.4]), turned(random), random.uniform(-1, 1, 3)
    signs = np.where(random.random(3) < 0.5, -1.0, 1.0)
    out = np.zeros(3)
    out[: region + 1] = random.uniform(0.2, 1.0, region + 1)
    n = signs * out / np.linalg.norm(out)
    local = np.where(out > 0, signs * half, signs * half * random.uniform(0.0, 0.9, 3)) + (0.1 - depth) * n
    corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T * half
    mesh = contacts.ConvexMesh(b, origin + np.vstack([corners, 0.5 * corners]) @ R.T)
    assert len(mesh.local_positions) == 8
    ball = contacts.Sphere(a, 0.1, at=origin + R @ local)
    checked(mb, mb.contact(ball, mesh, stiffness=K), depth, R @ n, ball.reference_position)


@given(seeds, st.floats(0.0, 0.04))
@example(646, 0.03125)
@fewer
def test_a_capsule_across_an_edge_of_a_box(seed, depth):
    """Only the middle touches: the distance of two lines, at the point of the edge."""
    random = np.random.default_rng(seed)
    mb, a, b = two_bodies(random)
    half, origin, slope = np.array([0.3, 0.2, 0.4]), random.uniform(-1, 1, 3), random.uniform(-0.5, 0.5)
    n, e = np.array([1.0, 1.0, 0.0]) / np.sqrt(2), np.array([-1.0, 1.0, slope])
    e /= np.linalg.norm(e)
    n = np.cross(e, [0, 0, 1.0])
    n *= np.sign(n[0]) / np.linalg.norm(n)
    point = np.array([0.3, 0.2, random.uniform(-0.2, 0.2)])
    middle = origin + point + (0.1 - depth) * n + random.uniform(-0.1, 0.1) * e
    capsule = contacts.Capsule(a, middle - 0.5 * e, middle + 0.5 * e, 0.1)
    box = contacts.Box(b, 2 * half, at=origin, rotation=np.eye(3))
    seen = Looked(mb, mb.contact(capsule, box, stiffness=K))
    assert seen.depth == pytest.approx(depth, abs=1e-12)
    force, torque = seen.slope()
    # golden sections find the point to 2e-8 of the length: the gap to round-off, its direction over the distance
    bound = 2e-8 / (0.1 - depth) * K * depth + 1e-9
    assert force[0] == pytest.approx(K * depth * n, abs=bound)
    assert torque[0] == pytest.approx(np.cross(origin + point, K * depth * n), abs=2 * bound)
    assert torque.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-9)


def crossing_boxes(random, depth, rounding=0.0):
    """Two boxes of which an edge each crosses the other, in the middle of both."""
    mb, a, b = two_bodies(random)
    half, other, origin = np.array([0.3, 0.2, 0.5]), np.array([0.4, 0.5, 0.25]), random.uniform(-1, 1, 3)
    n, angle = unit(random), random.uniform(0.5, 2.5)
    e = np.cross(n, unit(random))
    e /= np.linalg.norm(e)
    f = Rotation.from_rotvec(angle * n).apply(e)
    # axis z of a along e and axis x of b along f; n halves the angle of the faces beside the edges
    lean_a, lean_b = random.uniform(0.5, 1.0, 2)
    x, z = (Rotation.from_rotvec(lean * axis).apply(n) for lean, axis in ((lean_a, e), (lean_b, f)))
    A = np.column_stack([x, np.cross(e, x), e])
    B = np.column_stack([f, np.cross(z, f), z])
    # the edge of a that is deepest along -n, and that of b along n
    on_a = -sum(np.sign(n @ A[:, i]) * half[i] * A[:, i] for i in (0, 1)) + random.uniform(-0.3, 0.3) * e
    on_b = sum(np.sign(n @ B[:, i]) * other[i] * B[:, i] for i in (1, 2)) + random.uniform(-0.25, 0.25) * f
    # rounded edges lie inside of the sharp ones
    inner = [sum(np.sign(n @ R[:, i]) * rounding * R[:, i] for i in sides) for R, sides in ((A, (0, 1)), (B, (1, 2)))]
    centre_a = origin + on_b - inner[1] - (on_a + inner[0]) + (2 * rounding - depth) * n
    boxes = (
        contacts.Box(a, 2 * half, at=centre_a, rotation=A, rounding=rounding),
        contacts.Box(b, 2 * other, at=origin, rotation=B, rounding=rounding),
    )
    edge_of_a = origin + on_b - inner[1] + (rounding - depth) * n
    return mb, boxes, n, edge_of_a


@given(seeds, st.floats(-0.02, 0.02), st.sampled_from([0.0, 0.03]))
@fewer
def test_crossing_edges_of_two_boxes(seed, depth, rounding):
    """Only the edges touch: the distance of two lines, along their common normal, at their closest points."""
    mb, boxes, n, edge_of_a = crossing_boxes(np.random.default_rng(seed), depth, rounding)
    contact = mb.contact(*boxes, stiffness=K)
    seen = Looked(mb, contact)
    assert len(contact.points) == 17
    push = K * max(depth, 0.0) * n
    force, torque = seen.slope()
    assert force[0] == pytest.approx(push, abs=1e-7) and force[1] == pytest.approx(-push, abs=1e-7)
    assert torque[0] == pytest.approx(np.cross(edge_of_a, push), abs=1e-7)
    edges = contact.points[-1]
    q = m.from_casadi(ca.DM(seen.q))
    point, (a, b) = edges.contact_point, edges.parametrisations
    k = ParameterNamespace({**point.parameters, **point.constants})
    gap = float(point.geometry.gap_at(a, b, q, k))
    assert gap == pytest.approx(-depth, abs=1e-12)
    witness = point.geometry.witness_point(a, b, q, k, m.array(n))
    assert ca.evalf(m.to_casadi(witness)).full().ravel() == pytest.approx(edge_of_a, abs=1e-9)


def test_edges_of_a_box_that_lies_on_another_carry_nothing():
    """A beam lies flat and askew across another: the corners of the lower one and of the upper one are outside or in
    its face, and edges add no force."""
    mb = lv.Multibody()
    lower = mb.box("lower", at=[0, 0, 0], size=[1, 0.2, 0.2], mass=1)
    turn = Rotation.from_euler("z", 0.7).as_matrix()
    upper = mb.body("upper", mass=1.0, inertia=[1, 1, 1], position=[0, 0, 0.19])
    contact = mb.contact(contacts.Box(upper, [0.1, 0.1, 0.2], rotation=turn), contacts.Box(lower), stiffness=K)
    force, _ = Looked(mb, contact).slope()
    assert force[1] == pytest.approx([0, 0, 0.01 * 4 * K], abs=1e-6)


def test_a_box_stands_on_crossed_edges():
    """Two crossed edges carry the weight: an equilibrium, in a contact group that detects only them."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    tilt, across = Rotation.from_euler("x", np.pi / 4).as_matrix(), Rotation.from_euler("z", np.pi / 2).as_matrix()
    height, weight = 2 * 0.1 * np.sqrt(2), 2.0 * 9.81
    block = mb.body("block", mass=2.0, inertia=np.diag([0.1] * 3), position=[0, 0, height - weight / 1e5])
    upper = contacts.Box(block, [1, 0.2, 0.2], rotation=tilt)
    lower = contacts.Box(mb.ground, [1, 0.2, 0.2], rotation=across @ tilt)
    group = mb.contact_group("edges", [upper, lower], stiffness=1e5)
    run = mb.simulate(t_end=0.05, h=1e-4)
    assert np.abs(run["block.position"] - run["block.position"][0]).max() < 1e-9
    (force,) = group.forces(run).values()
    assert np.abs(force) == pytest.approx([0, 0, weight], rel=1e-6, abs=1e-6)
    other = lv.Multibody()
    flat = [other.box(name, at=[0, 0, z], size=[1, 1, 1], mass=1) for name, z in (("a", 0), ("b", 1))]
    assert len(other.contact(contacts.Box(flat[0], edges=False), flat[1], stiffness=1e5).points) == 16


def test_a_capsule_lies_on_a_box_with_both_ends():
    mb = lv.Multibody()
    table = mb.box("table", at=[0, 0, -0.5], size=[4, 4, 1], mass=1)
    rod = mb.rod("rod", a=[-0.5, 0.1, 0.09], b=[0.5, 0, 0.09 + 1e-9], mass=1, radius=0.1)
    seen = Looked(mb, mb.contact(rod, table, stiffness=K))
    force, torque = seen.slope()
    upper = force[0] if force[0][2] > 0 else force[1]
    assert upper == pytest.approx([0, 0, 2 * K * 0.01], abs=1e-4)
    assert np.abs(torque.sum(axis=0)).max() < 1e-9


@pytest.mark.parametrize(
    "pair", ["cylinder-plane", "ring-plane", "ellipsoid-sphere", "mesh-sphere", "capsule-box", "crossing edges"]
)
def test_forces_of_new_pairs_are_differences_of_their_gap(pair):
    """The gradient of the energy is minus its central difference by every coordinate."""
    random = np.random.default_rng(11)
    mb, a, b = two_bodies(random)
    if pair == "crossing edges":
        mb, edges, *_ = crossing_boxes(random, 0.02)
    at, n = random.uniform(-1, 1, 3), unit(random)
    corners = random.uniform(-0.3, 0.3, (12, 3))
    shapes = {
        "cylinder-plane": lambda: (contacts.Cylinder(a, 0.2, 1.0, at), contacts.HalfSpace(b, at - 0.2 * n, n)),
        "ring-plane": lambda: (contacts.Torus(a, 0.2, 0.05, at), contacts.HalfSpace(b, at - 0.1 * n, n)),
        "ellipsoid-sphere": lambda: (contacts.Sphere(a, 0.3, at),
                                     contacts.Ellipsoid(b, [0.3, 0.2, 0.4], at + 0.45 * n)),
        "mesh-sphere": lambda: (contacts.Sphere(a, 0.3, at), contacts.ConvexMesh(b, at + 0.45 * n + corners)),
        "capsule-box": lambda: (contacts.Capsule(a, at + [0.3, 0.4, -0.1], at + [0.25, -0.4, 0.2], 0.2),
                                contacts.Box(b, [0.4, 0.6, 0.8], at, rotation=np.eye(3))),
        "crossing edges": lambda: edges,
    }  # fmt: skip
    mb.contact(*shapes[pair](), stiffness=K)
    q, k, d = mb.assembly.state[0], mb.system.parameter_vector(), equations_of_motion(mb.system)
    zero = np.zeros(q.size)
    energy = d.function(d.V)
    force = np.array(d.function(-ca.gradient(d.V, d.q))(q, zero, zero, 0, k)).ravel()
    assert np.abs(force).max() > 1.0
    for i in range(q.size):
        step = 1e-6 * np.eye(q.size)[i]
        difference = float(energy(q + step, zero, zero, 0, k)) - float(energy(q - step, zero, zero, 0, k))
        assert force[i] == pytest.approx(-difference / 2e-6, abs=1e-3 * np.abs(force).max() * 1e-2 + 1e-4)


def bullet(force, offset=0.0, radius=0.01):
    """A ball that a force drives past or against another one, slowly at first."""
    mb = lv.Multibody()
    ball = mb.sphere("ball", at=[0, 0, 0], radius=radius, mass=1.0)
    target = mb.sphere("target", at=[0.8, offset, 0], radius=radius, mass=1.0)
    mb.wrench("drive", ball, force=[force, 0, 0])
    mb.contact(ball, target, stiffness=1e9, name="pair")
    return mb


def test_pairs_that_pass_within_a_step_are_reported():
    """A force makes the ball as fast as 0.13 m in a step: it passes the target between two steps."""
    with pytest.warns(LivensWarning, match=r"pair: 'ball' and 'target' may have passed .* at t = 0\.012"):
        run = bullet(1e4).simulate(t_end=0.02, h=1e-3)
    assert run["target.velocity"][-1, 0] == 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", LivensWarning)
        bullet(1e4, offset=0.03).simulate(t_end=0.02, h=1e-3)  # it misses
        hit = bullet(1e4).simulate(t_end=0.02, h=1e-5)
    assert hit["target.velocity"][-1, 0] > 100.0
