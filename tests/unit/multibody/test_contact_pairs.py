"""Every supported pair of shapes: forces against differences of the gaps, gaps against the distance of the solids."""

import itertools

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import livens as lv
from livens import contacts
from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import ParameterNamespace
from livens.models.equations_of_motion import equations_of_motion
from livens.multibody.contacts import shapes as all_shapes
from livens.multibody.contacts.contact_group import build_detected_contacts
from livens.multibody.contacts.narrow_phase import contact_points

K = 1e4
RING = 0.5
HOLLOW = contacts.HollowSphere, contacts.HollowCylinder, contacts.Groove
UNBOUNDED = contacts.HalfSpace, contacts.HeightField
FIXED = *UNBOUNDED, *HOLLOW, contacts.Torus
SPATIAL = contacts.Cylinder, contacts.Torus, contacts.ConvexMesh
POLYHEDRA = contacts.Box, contacts.ConvexMesh
CORNERS = np.random.default_rng(3).uniform(-0.25, 0.25, (5, 3))


def hills(x, *y):
    return 0.05 * m.sin(2 * x) * (m.cos(y[0]) if y else 1.0)


#: Sample of every class of shapes on a body, off its centre.
SAMPLES = {
    contacts.Sphere: lambda body, at, R: contacts.Sphere(body, 0.2, at),
    contacts.HollowSphere: lambda body, at, R: contacts.HollowSphere(body, 1.0, at),
    contacts.Ellipsoid: lambda body, at, R: contacts.Ellipsoid(body, [0.3, 0.2, 0.25][: len(at)], at, R),
    contacts.Box: lambda body, at, R: contacts.Box(body, [0.5, 0.3, 0.4][: len(at)], at, R),
    contacts.Capsule: lambda body, at, R: contacts.Capsule(body, at - 0.3 * R[:, -1], at + 0.3 * R[:, -1], 0.1),
    contacts.Cylinder: lambda body, at, R: contacts.Cylinder(body, 0.2, 0.6, at, R[:, 2]),
    contacts.HollowCylinder: lambda body, at, R: contacts.HollowCylinder(body, 1.0, at, R[:, 2]),
    contacts.Torus: lambda body, at, R: contacts.Torus(body, RING, 0.1, at, R[:, 2]),
    contacts.Groove: lambda body, at, R: contacts.Groove(body, RING, 0.3, at, R[:, 2]),
    contacts.HalfSpace: lambda body, at, R: contacts.HalfSpace(body, at, R[:, -1]),
    contacts.HeightField: lambda body, at, R: contacts.HeightField(body, hills, at, R[:, -1]),
    contacts.ConvexMesh: lambda body, at, R: contacts.ConvexMesh(body, at + CORNERS @ R.T),
    contacts.PointCloud: lambda body, at, R: contacts.PointCloud(body, at + 0.3 * CORNERS[:, : len(at)] @ R.T, 0.02),
}
CLASSES = [getattr(all_shapes, name) for name in all_shapes.__all__]
CLASSES = [x for x in CLASSES if isinstance(x, type) and x is not contacts.CollisionShape]


def random_rotation(random, d):
    if d == 2:
        c, s = np.cos(angle := random.uniform(0, 2 * np.pi)), np.sin(angle)
        return np.array([[c, -s], [s, c]])
    return Rotation.random(random_state=int(random.integers(2**31))).as_matrix()


def unit(random, d):
    n = random.standard_normal(d)
    return n / np.linalg.norm(n)


def sample(body, kind, random):
    """Return a shape of a class in a random pose on a body."""
    d = body.dimension
    return SAMPLES[kind](body, body.reference_position + random.uniform(-0.2, 0.2, d), random_rotation(random, d))


def two_shapes(d, kinds, seed, with_ground=False):
    """Return a model and two shapes on bodies in random poses, or on a body and the ground."""
    mb, random = lv.Multibody(planar=d == 2), np.random.default_rng(seed)
    bodies = []
    for name in "ab":
        pose = dict(position=random.uniform(-1, 1, d), rotation=random_rotation(random, d))
        bodies.append(mb.body(name, mass=1.0, inertia=1.0 if d == 2 else [1, 1, 1], **pose))
    if with_ground:
        bodies[1 - mover(kinds)] = mb.ground
    return mb, [sample(body, kind, random) for body, kind in zip(bodies, kinds, strict=True)]


def mover(kinds):
    """Return which of two shapes is moved into contact: points first, then bounded solids, rings, planes."""
    ranks = [
        (kind is not contacts.PointCloud) + issubclass(kind, FIXED) + issubclass(kind, UNBOUNDED) for kind in kinds
    ]
    return int(ranks[0] > ranks[1])


def supported_pairs():
    """Return dimension and classes of all pairs that have contact points."""
    pairs = []
    for d, *kinds in itertools.product((2, 3), CLASSES, CLASSES):
        if d == 2 and any(issubclass(kind, SPATIAL) for kind in kinds):
            continue
        try:
            contact_points("pair", *two_shapes(d, kinds, 0)[1])
        except InputError as error:
            assert "is not supported" in str(error)
            continue
        pairs.append((d, *kinds))
    return pairs


PAIRS = supported_pairs()
UNORDERED = [pair for pair in PAIRS if CLASSES.index(pair[1]) <= CLASSES.index(pair[2])]


def identifier(pair):
    return f"{pair[0]}d-{pair[1].__name__}-{pair[2].__name__}"


def test_every_class_of_shapes_has_pairs_in_both_orders():
    assert set(CLASSES) == set(SAMPLES) == {kind for pair in PAIRS for kind in pair[1:]}
    for d, one, other in PAIRS:
        assert (d, other, one) in PAIRS
        ways = [contact_points("pair", *two_shapes(d, kinds, 0)[1]) for kinds in ((one, other), (other, one))]
        first, second = (sorted(type(point.geometry).__name__ for point in points) for points in ways)
        assert first == second


# -- poses ------------------------------------------------------------------------------------------------------------
class Pair:
    """Two shapes on bodies that can be moved: gaps of all contact points as functions of the coordinates."""

    def __init__(self, d, kinds, seed, with_ground):
        self.mb, self.shapes = two_shapes(d, kinds, seed, with_ground)
        self.contact = self.mb.contact(*self.shapes, stiffness=K, name="pair")
        self.system, self.q, self.d = self.mb.system, self.mb.assembly.state[0].copy(), d
        index = {name: i for i, name in enumerate(self.system.coordinates)}
        q = ca.SX.sym("q", self.system.n)
        gaps = []
        for point in self.contact.points:
            k = ParameterNamespace({**point.contact_point.parameters, **point.contact_point.constants})
            local = m.from_casadi(q[[index[str(c)] for c in point.coordinates]])
            gaps.append(point.contact_point.geometry.gap_at(*point.parametrisations, local, k))
        gaps = ca.vertcat(*(m.to_casadi(gap) for gap in gaps))
        self._gaps, self._jacobian = (
            ca.Function("gaps", [q], [gaps]),
            ca.Function("slopes", [q], [ca.jacobian(gaps, q)]),
        )
        self.dofs = {shape.body.name: [index[str(c)] for c in shape.body.coordinates] for shape in self.shapes}

    def gaps(self, q):
        return np.array(self._gaps(q)).ravel()

    def jacobian(self, q):
        return np.array(self._jacobian(q))

    def pose(self, shape, q):
        """Return position and axes of a shape in space."""
        dofs = self.dofs[shape.body.name]
        vectors = q[dofs].reshape(-1, self.d) if dofs else np.vstack([np.zeros(self.d), np.eye(self.d)])
        return vectors[0] + shape.local_position @ vectors[1:], vectors[1:].T @ shape.axes

    def place(self, random, target):
        """Return coordinates in which the smallest gap has a given value: the first one along a random direction."""
        kinds = [type(shape) for shape in self.shapes]
        moved, fixed = self.shapes[mover(kinds)], self.shapes[1 - mover(kinds)]
        (start, start_axes), (centre, axes) = self.pose(moved, self.q), self.pose(fixed, self.q)
        start = start + start_axes @ vertices(moved)[0][0] if isinstance(moved, contacts.PointCloud) else start
        direction = unit(random, self.d)
        if isinstance(fixed, UNBOUNDED):
            direction = axes[:, -1] + 0.2 * direction
        elif isinstance(fixed, contacts.HollowCylinder):
            direction -= 0.9 * (axes[:, -1] @ direction) * axes[:, -1]
            direction /= np.linalg.norm(direction)
        elif isinstance(fixed, contacts.Torus):
            angle = random.uniform(0, 2 * np.pi)
            centre = centre + RING * (np.cos(angle) * axes[:, 0] + np.sin(angle) * axes[:, 1])

        def moved_to(t):
            q = self.q.copy()
            q[self.dofs[moved.body.name][: self.d]] += centre + t * direction - start
            return q

        def excess(t):
            return self.gaps(moved_to(t)).min() - target

        path = np.linspace(-0.3 if isinstance(fixed, UNBOUNDED) else 0.0, 2.5, 251)
        path = path if isinstance(fixed, HOLLOW) else path[::-1]
        assert excess(path[0]) > 0
        touching = next(i for i, t in enumerate(path) if excess(t) < 0)
        return moved_to(brentq(excess, path[touching - 1], path[touching], xtol=1e-14))

    def motions(self):
        """Yield functions that translate and rotate a body by a small amount."""

        def translated(dofs, i, s, q):
            q = q.copy()
            q[dofs[i]] += s
            return q

        def rotated(dofs, i, s, q):
            q, vectors = q.copy(), q[dofs].reshape(-1, self.d)
            if self.d == 2:
                R = np.array([[np.cos(s), -np.sin(s)], [np.sin(s), np.cos(s)]])
            else:
                R = Rotation.from_rotvec(s * np.eye(3)[i]).as_matrix()
            q[dofs] = np.vstack([vectors[:1], vectors[1:] @ R.T]).ravel()
            return q

        for dofs in filter(None, self.dofs.values()):
            for i in range(self.d):
                yield lambda s, q, dofs=dofs, i=i: translated(dofs, i, s, q)
            for i in range(1 if self.d == 2 else 3):
                yield lambda s, q, dofs=dofs, i=i: rotated(dofs, i, s, q)


#: Seed of the poses.
SEED = 5
STEP = 1e-5
#: Weights of the fourth-order central difference of a derivative.
DIFFERENCE = {-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}


def difference(function, motion, q):
    return sum(weight * function(motion(i * STEP, q)) for i, weight in DIFFERENCE.items()) / STEP


@pytest.mark.parametrize("with_ground", [False, True], ids=["bodies", "ground"])
@pytest.mark.parametrize("pair", UNORDERED, ids=identifier)
def test_forces_are_central_differences_of_the_gaps(pair, with_ground):
    """Along translations and rotations of both bodies, for a contact and for a contact group."""
    d, *kinds = pair
    random = np.random.default_rng(SEED)
    pair = Pair(d, kinds, SEED, with_ground)
    system, k, v = pair.system, pair.system.parameter_vector(), np.zeros(pair.system.n)
    equations = equations_of_motion(system)
    force = equations.function(-ca.gradient(equations.V, equations.q))
    mb, shapes = two_shapes(d, kinds, SEED, with_ground)
    mb.contact_group("group", shapes, stiffness=K)
    detected = build_detected_contacts(mb.system, mb)
    q = pair.place(random, -0.01)
    gaps, jacobian = pair.gaps(q), pair.jacobian(q)
    depth = np.maximum(-gaps, 0.0)
    assert depth.max() == pytest.approx(0.01, abs=1e-9)
    found = np.array(force(q, v, v, 0.0, k)).ravel()
    of_group = detected(q, v, 0.0, mb.system.parameter_vector())[: system.n]
    for motion in pair.motions():
        change = difference(pair.gaps, motion, q)
        direction = difference(lambda x: x, motion, q)
        size = max(np.abs(change).max(), 1.0)
        assert jacobian @ direction == pytest.approx(change, abs=1e-7 * size)
        expected = pytest.approx(K * depth @ change, abs=1e-7 * K * depth.sum() * size)
        assert found @ direction == expected
        assert of_group @ direction == expected


# -- distance of two solids by minimisation ---------------------------------------------------------------------------
class Core:
    """Set of points of a shape in its axes, by bounds and constraints; the solid has a radius around it."""

    def __init__(self, bounds, constraints=(), radius=0.0):
        self.bounds, self.constraints, self.radius = bounds, constraints, radius


def cores(shape):
    """Return sets of points whose union is a shape, without its radius; faces of polyhedra and flat ends are exact."""
    d, sizes = shape.body.dimension, shape.sizes
    free, nothing = [(None, None)] * d, [(0.0, 0.0)] * d
    if isinstance(shape, contacts.HalfSpace):
        return [Core([*free[:-1], (None, 0.0)])]
    if isinstance(shape, contacts.HeightField):
        return [Core(free, [("ineq", lambda x: float(hills(*x[:-1])) - x[-1])])]
    if isinstance(shape, contacts.Sphere):
        return [Core(nothing, radius=sizes["radius"])]
    if isinstance(shape, contacts.Ellipsoid):
        return [Core(free, [("ineq", lambda x: 1 - np.sum((x / sizes["half"]) ** 2))])]
    if isinstance(shape, contacts.Box):
        return [Core([(-half, half) for half in sizes["half"]])]
    if isinstance(shape, contacts.Capsule):
        return [Core([*nothing[:-1], (-sizes["half"], sizes["half"])], radius=sizes["radius"])]
    if isinstance(shape, contacts.Cylinder):
        disc = "ineq", lambda x: sizes["radius"] ** 2 - x[0] ** 2 - x[1] ** 2
        return [Core([*free[:-1], (-sizes["half"], sizes["half"])], [disc])]
    if isinstance(shape, contacts.Torus):
        circle = "eq", lambda x: (x[0] ** 2 + x[1] ** 2 - RING**2) / RING
        return [Core([*free[:-1], (0.0, 0.0)], [circle], sizes["tube"])]
    points = (np.array(shape.local_positions) - shape.local_position) @ shape.axes
    if isinstance(shape, contacts.ConvexMesh):
        equations = ConvexHull(points).equations
        return [Core(free, [("ineq", lambda x: -equations[:, :-1] @ x - equations[:, -1])])]
    return [Core([(x, x) for x in point], radius=shape.radius) for point in points]


def vertices(shape):
    """Return points, in the axes of a shape, and a radius: the convex hull of the spheres around them is the shape."""
    d, sizes = shape.body.dimension, shape.sizes
    if isinstance(shape, contacts.Box):
        return np.array(list(itertools.product(*((-half, half) for half in sizes["half"])))), 0.0
    if isinstance(shape, contacts.Capsule):
        return np.array([s * sizes["half"] * np.eye(d)[-1] for s in (-1, 1)]), sizes["radius"]
    if isinstance(shape, contacts.Sphere):
        return np.zeros((1, d)), sizes["radius"]
    radius = 0.0 if isinstance(shape, contacts.ConvexMesh) else shape.radius
    return (np.array(shape.local_positions) - shape.local_position) @ shape.axes, radius


def distance(one, pose, other, other_pose, random):
    """Return the distance of two solids whose cores do not meet, by sequential quadratic programming."""
    (p, P), (s, S), d = pose, other_pose, len(pose[0])
    linear, shift = np.hstack([P, -S]), p - s
    constraints = [
        dict(type=kind, fun=lambda z, f=f, part=part: f(z[part]))
        for core, part in ((one, slice(d)), (other, slice(d, None)))
        for kind, f in core.constraints
    ]
    bounds = [*one.bounds, *other.bounds]
    best = np.inf
    for _ in range(4):
        low, high = (np.array(limits, dtype=float) for limits in zip(*bounds, strict=True))  # None is nan
        start = np.fmin(np.fmax(random.uniform(-0.5, 0.5, 2 * d), low), high)
        found = minimize(
            lambda z: np.sum((linear @ z + shift) ** 2),
            start,
            jac=lambda z: 2 * linear.T @ (linear @ z + shift),
            bounds=bounds,
            constraints=constraints,
            method="SLSQP",
            options=dict(ftol=1e-15, maxiter=300),
        )
        feasible = all(
            np.min(c["fun"](found.x)) > -1e-8 if c["type"] == "ineq" else abs(c["fun"](found.x)) < 1e-8
            for c in constraints
        )
        best = min(best, np.sqrt(found.fun)) if feasible else best
    return best - one.radius - other.radius


def solid_distance(shapes, poses, random):
    return min(
        distance(one, poses[0], other, poses[1], random) for one, other in itertools.product(*map(cores, shapes))
    )


def hollow_gap(hollow, pose, shape, shape_pose, random):
    """Return the least distance of a shape from a hollow surface around it: that of one of its vertices."""
    points, radius = vertices(shape)
    local = (points @ shape_pose[1].T + shape_pose[0] - pose[0]) @ pose[1]
    if isinstance(hollow, contacts.Groove):
        heights, radial = local[:, -1], np.hypot(local[:, 0], local[:, 1])
        return hollow.sizes["tube"] - radius - np.hypot(heights, radial - RING).max()
    if isinstance(hollow, contacts.HollowCylinder):
        local = local[:, :2]
    return hollow.sizes["radius"] - radius - np.linalg.norm(local, axis=1).max()


@pytest.mark.parametrize("pair", UNORDERED, ids=identifier)
def test_gaps_are_distances_of_the_solids(pair):
    """Polyhedra touch with vertices, boxes in space also with crossing edges; flat ends on planes have a bulge."""
    d, *kinds = pair
    pair, random = Pair(d, kinds, SEED, False), np.random.default_rng(SEED)
    shapes = pair.shapes
    for _ in range(2):
        q = pair.place(random, 0.03)
        gaps, poses = pair.gaps(q), [pair.pose(shape, q) for shape in shapes]
        hollow = next((i for i, shape in enumerate(shapes) if isinstance(shape, HOLLOW)), None)
        if hollow is not None:
            args = shapes[hollow], poses[hollow], shapes[1 - hollow], poses[1 - hollow], random
            assert gaps.min() == pytest.approx(hollow_gap(*args), abs=1e-9)
            continue
        exact, bound = solid_distance(shapes, poses, random), 1e-6
        if all(isinstance(shape, POLYHEDRA) for shape in shapes):
            from_vertices = min(
                distance(Core([(x, x) for x in point]), poses[i], cores(shapes[1 - i])[0], poses[1 - i], random)
                for i in (0, 1)
                for point in vertices(shapes[i])[0]
            )
            if d == 3 and kinds == [contacts.Box, contacts.Box]:
                gaps, edges = gaps[:-1], gaps[-1]
                assert edges > exact / 2 - bound
                if exact < from_vertices - bound:
                    assert edges == pytest.approx(exact, abs=bound)
            exact = from_vertices
        elif any(isinstance(s, contacts.HalfSpace) for s in shapes) and {contacts.Cylinder, contacts.Torus} & set(
            kinds
        ):
            bound = 2.1e-3 * RING
        assert gaps.min() == pytest.approx(exact, abs=bound)
