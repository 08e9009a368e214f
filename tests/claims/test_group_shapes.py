"""Contacts of a group, found during the run: equal to contacts of all pairs, at a cost proportional to
the number of bodies."""

import dataclasses
import functools
import itertools

import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens import contacts
from livens.engine import compiled_step
from livens.engine import neighbour_list as engine
from livens.engine.codegen import jit
from livens.engine.collision import N_OVERLAPS, N_PAIRS, N_REBUILDS, N_TESTS
from livens.engine.lru_cache import LruCache
from livens.engine.neighbour_list import NeighbourList
from livens.errors import InputError
from livens.models.contact_detection import DetectedContacts
from livens.schemes.discretization import independent_bodies as recipes
from livens.schemes.discretization.independent_bodies import IndependentBodyEquations

LOSSY = contacts.Friction(0.3, slip_tolerance=0.1, spinning=0.01, rolling=1e-3, rate_tolerance=1.0)
SCHEME = "semi-explicit-2:0.5"


def drawing(kind, gravity=(0, 0, -9.81), falling=1.0):
    """Some bodies that are about to meet, and what is in their way."""
    mb = lv.Multibody(gravity=list(gravity))
    if kind == "spheres":
        bodies = [
            mb.sphere(f"s{i}", at=[0.05 * i, 0.01 * i, 0.1 + 0.19 * i], radius=0.1, mass=1.0 + i) for i in range(4)
        ]
    elif kind == "capsules":
        ends = [([0, 0, 0.3], [0.4, 0, 0.3]), ([0.2, -0.2, 0.4], [0.2, 0.3, 0.41]), ([0.2, 0, 0.51], [0.5, 0.1, 0.64])]
        bodies = [mb.rod(f"r{i}", a=a, b=b, mass=1.0, radius=0.05) for i, (a, b) in enumerate(ends)]
        bodies.append(mb.sphere("ball", at=[0.0, 0.0, 0.45], radius=0.1, mass=0.5))
    else:
        boxes = [mb.box(f"b{i}", at=[0.02 * i, 0, 0.1 + 0.2 * i], size=[0.2, 0.3, 0.2], mass=2.0) for i in range(2)]
        bodies = [*boxes, mb.sphere("ball", at=[0.0, 0.03, 0.48], radius=0.08, mass=1.0)]
    for i, body in enumerate(bodies):
        mb.initial(body, velocity=[0.1 * i, -0.1, -falling * i], omega=[1.0, 2.0 - i, 0.5])
    return mb, bodies


def laws(losses=True):
    return dict(stiffness=2e4, dissipation=0.4, friction=LOSSY) if losses else dict(stiffness=2e4)


# -- the same motion --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["spheres", "capsules", pytest.param("boxes", marks=pytest.mark.slow)])
def test_the_same_as_contacts_of_all_pairs(kind):
    """All coordinates, energy lost and supplied, and sensors, against elements of all pairs and the ground."""
    mb, bodies = drawing(kind)
    heap = mb.contact_group("heap", [*bodies, mb.ground], **laws())
    run = mb.simulate(t_end=0.03, h=1e-4, scheme=SCHEME)
    other, same = drawing(kind)
    other.contact_pairs(same, **laws())
    for body in same:
        other.contact(body, other.ground, **laws())
    every = other.simulate(t_end=0.03, h=1e-4, scheme=SCHEME)
    assert heap.stored_energy(run).max() > 1e-2 and run.dissipated_energy[-1] > 1e-3
    assert np.abs(run.q - every.q).max() < 1e-12
    assert np.abs(run.v - every.v).max() < 1e-10
    assert np.abs(run.dissipated_energy - every.dissipated_energy).max() < 1e-12
    names = [f"{a.name}-{b.name}" for a, b in itertools.combinations(same, 2)] + [f"{b.name}-ground" for b in same]
    for name in names:
        for word in ("force", "normal_force", "depth", "friction", "point"):
            assert np.abs(run[f"{name}.{word}"] - every[f"{name}.{word}"]).max() < 1e-7, (name, word)
    lost, apart = (one.observe("dissipated_energy", by="element") for one in (run, every))
    for word in ("damping", "sliding", "pivoting", "rolling"):
        total = sum(value for name, value in apart.items() if name.endswith(word))
        assert np.abs(lost[f"heap {word}"] - total).max() < 1e-6 * run.dissipated_energy[-1]
    row = int(np.argmax(heap.stored_energy(run)))
    pressing = heap.forces(run, row)
    assert pressing and all(np.allclose(x, run[f"{name}.force"][row], atol=1e-9) for name, x in pressing.items())


def test_in_the_plane():
    def drawn():
        mb = lv.Multibody(gravity=[0, -9.81], planar=True)
        return mb, [mb.sphere(f"d{i}", at=[0.12 * i, 0.1 + 0.17 * i], radius=0.1, mass=1.0) for i in range(3)]

    (mb, discs), (other, same) = drawn(), drawn()
    mb.contact_group("heap", [*discs, mb.ground], **laws(losses=False), friction=0.3)
    other.contact_pairs([*same], **laws(losses=False), friction=0.3)
    for disc in same:
        other.contact(disc, other.ground, **laws(losses=False), friction=0.3)
    run, every = (one.simulate(t_end=0.05, h=1e-4, scheme=SCHEME) for one in (mb, other))
    assert np.abs(run.q - every.q).max() < 1e-12 and np.abs(run.q[-1] - run.q[0]).max() > 1e-3


# -- the list of neighbours -------------------------------------------------------------------------------------------
@functools.cache
def pattern():
    """Two balls and a floor, whose functions serve as many as one likes."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    balls = [mb.sphere(f"ball{i}", at=[0, 0, 0.5 + i], radius=0.1, mass=1.0) for i in range(2)]
    mb.contact_group("heap", [*balls, mb.ground], **laws(), margin=0.03)
    return mb.system.external_force, mb.system.parameter_vector()


def many(count, margin=0.03):
    """That many of them, and no drawing."""
    box, k = pattern()
    ball, floor = box.proxies[0], box.proxies[-1]
    members = [dataclasses.replace(ball, body=i + 1, first_dof=12 * i) for i in range(count)] + [floor]
    groups = [dataclasses.replace(box.groups[0], margin=margin)]
    made = DetectedContacts(
        12 * count, 3, groups, members, box.kernels, box.gap_functions, box.pair_points, frozenset()
    )
    return made, NeighbourList(made, k), k


def state(count, seed, apart=0.19):
    """Balls in a loose grid, shaken."""
    random, side = np.random.default_rng(seed), int(np.ceil(count ** (1 / 3)))
    number = np.arange(count)
    grid = np.column_stack([number % side, number // side % side, number // side**2])
    q = np.zeros((count, 12))
    q[:, :3] = apart * grid + random.uniform(-0.01, 0.01, (count, 3)) + [0, 0, 0.09]
    q[:, 3::4] = 1.0
    return q.ravel(), random.normal(size=12 * count)


@pytest.mark.parametrize(("count", "apart"), [(2, 0.19), (60, 0.19), (300, 0.17), (150, 0.6)])
def test_cells_find_what_a_tree_finds(count, apart):
    found, compiled, k = many(count)
    for seed in range(3):
        q, v = state(count, seed, apart)
        expected, got = found(q, v, 0.0, k), compiled(q, v)
        assert np.abs(expected - got).max() <= 1e-12 * max(1.0, np.abs(expected).max())


def test_bits_do_not_depend_on_the_list():
    """Whatever the margin, and whether the list is new or was made a while ago; also if there is no room for it."""
    q, v = state(200, 1)
    expected = many(200)[1](q, v)
    for margin in (1e-3, 0.1, 3.0):
        assert np.array_equal(many(200, margin)[1](q, v), expected)
    old = many(200)[1]
    old(q + 0.004, v)
    assert np.array_equal(old(q, v), expected) and old.arrays.counters[N_REBUILDS] == 1
    old(q + 0.04, v)
    assert old.arrays.counters[N_REBUILDS] == 2


def test_without_room_for_the_list(monkeypatch):
    q, v = state(100, 2)
    expected = many(100)[1](q, v)
    monkeypatch.setattr(engine, "_MAX_NEIGHBOURS", 1)
    full = many(100, 0.3)[1]
    assert np.array_equal(full(q, v), expected) and full.arrays.counters[N_PAIRS] == -1
    assert np.array_equal(full(q, v), expected)


def test_pairs_that_are_looked_at_grow_with_the_number_of_bodies():
    """Counted, not timed: per body as many pairs among 8000 as among 1000, and none of them where all are apart."""
    counts, looked, made = [1000, 2000, 4000, 8000], [], []
    for count in counts:
        _, compiled, _ = many(count)
        q, v = state(count, 3, 0.17)
        for _ in range(3):
            compiled(q, v)
        told = compiled.arrays.counters
        looked.append(told[N_TESTS] / 3)
        made.append(told[N_PAIRS])
        assert told[N_REBUILDS] == 1 and told[N_OVERLAPS] > 0
    assert 0.95 < measured_order(counts, looked) < 1.08
    assert max(looked) < 12 * counts[-1]
    _, compiled, _ = many(1000)
    q, v = state(1000, 3, 0.5)
    q[2::12] += 1.0
    compiled(q, v)
    assert compiled.arrays.counters[N_PAIRS] == 0 and compiled.arrays.counters[N_OVERLAPS] == 0


def test_a_body_that_is_lost_is_not_looked_for_for_ever():
    """States that are not numbers are told of by the run; the search ends all the same."""
    _, compiled, _ = many(20)
    q, v = state(20, 4)
    q[0] = np.nan
    assert np.isnan(compiled(q, v)).any()
    q[12] = 1e300
    compiled(q, v)


# -- what is kept -----------------------------------------------------------------------------------------------------
def test_isolated_balls_keep_their_momenta():
    mb, bodies = drawing("spheres", gravity=(0, 0, 0))
    heap = mb.contact_group("heap", bodies, **laws())
    run = mb.simulate(t_end=0.1, h=1e-4)
    assert heap.stored_energy(run).max() > 1e-3
    for name, most in (("linear_momentum", 1e-13), ("angular_momentum", 1e-11)):
        p = run.observe(name)
        assert np.abs(p - p[0]).max() < most, name


def test_neighbours_are_looked_for_anew_only_where_somebody_has_moved():
    """By more than half the margin; what is not a number may be anywhere, and has moved."""
    found, k = pattern()
    compiled, v, made = NeighbourList(found, k), np.zeros(found.size), []
    for move in (0.0, 0.01, 0.014, 0.016, np.nan):
        q = np.tile([0.0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1], 2)
        q[[2, 14]] = 0.5, 1.5 + move
        compiled(q, v)
        made.append(int(compiled.arrays.counters[N_REBUILDS]))
    assert made == [1, 1, 1, 2, 3]


@pytest.mark.parametrize("kind", ["spheres", "capsules", "boxes"])
def test_forces_and_moments_of_isolated_bodies_cancel(kind):
    """In states at random, where some of them touch."""
    mb, bodies = drawing(kind, gravity=(0, 0, 0))
    mb.contact_group("heap", bodies, **laws())
    found, k, random = mb.system.external_force, mb.system.parameter_vector(), np.random.default_rng(5)
    compiled, largest = NeighbourList(found, k), 0.0
    for _ in range(20):
        q, v = mb.initial_state[0].reshape(-1, 12).copy(), random.normal(size=(len(bodies), 12))
        q[:, :3] += random.uniform(-0.03, 0.03, (len(bodies), 3))
        omega = random.normal(size=(len(bodies), 1, 3))
        v[:, 3:] = np.cross(omega, q[:, 3:].reshape(-1, 3, 3)).reshape(-1, 9)
        parts = compiled(q.ravel(), v.ravel())[: found.size].reshape(-1, 4, 3)
        moment = np.cross(q.reshape(-1, 4, 3), parts).sum(axis=(0, 1))
        size = np.abs(parts).max()
        largest = max(largest, size)
        assert np.abs(parts[:, 0].sum(axis=0)).max() <= 1e-13 * size and np.abs(moment).max() <= 1e-13 * size
    assert largest > 10


def test_nothing_gains_energy_by_losses_and_the_accounts_add_up():
    """Losses are never negative, and with what is stored the energy is constant with the order of the scheme."""
    steps, defects = [1e-4, 5e-5, 2.5e-5, 1.25e-5], []
    for h in steps:
        mb, bodies = drawing("spheres")
        heap = mb.contact_group(
            "heap",
            [*bodies, mb.ground],
            stiffness=2e4,
            dissipation=0.4,
            friction=contacts.Friction(0.3, slip_tolerance=2.0),
        )
        run = mb.simulate(t_end=0.06, h=h, every=round(1e-3 / h))
        energy = run.observe("total_energy") + heap.stored_energy(run) + run.dissipated_energy
        defects.append(np.abs(energy - energy[0]).max())
        assert np.diff(run.dissipated_energy).min() >= 0
    assert run.dissipated_energy[-1] > 0.1 and defects[-1] < 1e-3
    assert measured_order(steps, defects) > 1.7
    assert all(power.min() >= 0 for power in heap.energy_terms(run).values())


def test_runs_go_on_bit_for_bit_and_numbers_can_be_changed(tmp_path):
    mb, bodies = drawing("spheres")
    mb.contact_group("heap", [*bodies, mb.ground], **laws())
    given = dict(h=1e-4, scheme=SCHEME)
    whole = mb.simulate(t_end=0.05, **given)
    mb.simulate(t_end=0.021, **given, out=tmp_path / "part.h5")
    more = lv.resume(tmp_path / "part.h5", t_end=0.05, system=mb.system)
    assert np.array_equal(more.q, whole.q) and np.array_equal(more.dissipated_energy, whole.dissipated_energy)
    soft = mb.simulate(t_end=0.05, **given, parameters={"heap.stiffness": 1e4})
    assert soft["s0-ground.depth"].max() > 1.2 * whole["s0-ground.depth"].max()
    slow = mb.simulate(t_end=3e-3, **given, tier="reference")
    assert np.abs(slow.q - whole.q[: len(slow.q)]).max() < 1e-13


# -- with all the rest of a mechanism ---------------------------------------------------------------------------------
def test_a_chain_falls_on_itself():
    """Links that a joint holds together do not push each other, others do; joints stay closed."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    points = [[0.2 * i, 0.0, 0.3 + 0.02 * i] for i in range(5)]
    links = [mb.rod(f"l{i}", a=a, b=b, mass=0.2, radius=0.03) for i, (a, b) in enumerate(itertools.pairwise(points))]
    for i, (a, b) in enumerate(itertools.pairwise(links)):
        mb.spherical(f"j{i}", a, b, at=b.a)
    mb.initial(links[3], velocity=[-3.0, 0.2, 1.0], required=False)
    chain = mb.contact_group(
        "chain",
        [*links, mb.ground],
        stiffness=5e3,
        dissipation=0.5,
        friction=contacts.Friction(0.3, slip_tolerance=0.1),
    )
    run = mb.simulate(t_end=0.4, h=2e-4, every=20)
    assert run.summary.max_constraint < 1e-10
    names = {name for row in range(0, len(run.t), 5) for name in chain.forces(run, row)}
    assert any(name.endswith("ground") for name in names) and not names & {"l0-l1", "l1-l2", "l2-l3"}
    assert min(run[f"l{i}.position"][:, 2].min() for i in range(4)) > 0.0


def test_several_groups_and_shapes_of_many_sizes():
    """A pocket that is far larger than the rest is compared with all; those of another group are not seen."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    bowl = contacts.HollowSphere(mb.ground, radius=1.0, at=[0, 0, 1.0])
    marbles = [mb.sphere(f"m{i}", at=[0.09 * i - 0.1, 0, 0.15], radius=0.03 + 0.004 * i, mass=0.1) for i in range(4)]
    ghosts = [mb.sphere(f"g{i}", at=[0.09 * i - 0.1, 0.01, 0.12], radius=0.04, mass=0.1) for i in range(2)]
    one = mb.contact_group("marbles", [bowl, *marbles], law="hertz", stiffness=1e5, dissipation=0.5)
    two = mb.contact_group("ghosts", [*ghosts, mb.ground], stiffness=1e4)
    run = mb.simulate(t_end=0.15, h=1e-4, every=50)
    assert one.stored_energy(run).max() > 0 and two.stored_energy(run).max() > 0
    assert np.linalg.norm(run["m3.position"] - [0, 0, 1.0], axis=1).max() < 1.0 - 0.03
    found = {name for row in range(len(run.t)) for name in one.forces(run, row)}
    assert found and not any("g" in name.replace("ground", "") for name in found)
    assert len(mb.system.external_force.unbounded) == 2


# -- bodies one by one ------------------------------------------------------------------------------------------------
def loose(count=10):
    """Spheres of two sizes and masses and a few rods, over a floor, in the wind of a moving field."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    random = np.random.default_rng(8)
    bodies = []
    for i in range(count):
        at = [0.24 * (i % 3), 0.24 * (i // 3 % 3), 0.12 + 0.22 * (i // 9)]
        if i % 4 == 3:
            bodies.append(
                mb.rod(f"b{i}", a=np.add(at, [-0.05, 0, 0]), b=np.add(at, [0.05, 0, 0.01]), mass=0.7, radius=0.05)
            )
        else:
            bodies.append(mb.sphere(f"b{i}", at=at, radius=0.1 + 0.01 * (i % 2), mass=1.0 + 0.1 * i))
        mb.initial(bodies[-1], velocity=random.normal(0, 0.5, 3), omega=random.normal(0, 3.0, 3))
    mb.wrench("wind", bodies[0], force=lambda t: [lv.math.sin(5 * t), 0.2, 0.0])
    mb.contact_group("heap", [*bodies, mb.ground], **laws())
    return mb


@pytest.mark.parametrize("scheme", [SCHEME, "semi-explicit:0.5,0.8"])
def test_loose_bodies_move_as_they_do_in_one_piece(scheme, monkeypatch, tmp_path):
    """All that a run records, by functions of three kinds of bodies and by one function of them all."""
    given = dict(t_end=0.04, h=1e-4, scheme=scheme, every=5)
    mb = loose()
    apart = mb.simulate(**given)
    assert isinstance(lv.schemes.get(scheme).equations(mb.system), IndependentBodyEquations)
    assert len({kind.system.n for kind in recipes.body_classes(mb.system)}) == 1
    assert len(recipes.body_classes(mb.system)) == 2  # that with the wind, and all others
    monkeypatch.setattr(recipes, "MIN_BODIES", 1000)
    # models with equal fingerprints share a compiled step; each path needs its own
    monkeypatch.setattr(compiled_step, "_compiled", LruCache(4))
    same = loose()
    whole = same.simulate(**given)
    assert not recipes.body_classes(same.system)
    step = compiled_step.compiled_step(same.system, lv.schemes.get(scheme))
    assert not isinstance(step.equations, IndependentBodyEquations)
    for name in ("q", "v", "p", "supplied_energy", "dissipated_energy"):
        one, other = getattr(apart, name), getattr(whole, name)
        assert np.abs(one - other).max() < 1e-10 * np.abs(other).max(), name
    assert apart.dissipated_energy[-1] > 1e-3
    monkeypatch.undo()
    mb.simulate(**{**given, "t_end": 0.02}, out=tmp_path / "part.h5")
    more = lv.resume(tmp_path / "part.h5", t_end=0.04, system=loose().system)
    assert np.array_equal(more.q, apart.q)


def test_a_hundred_bodies_are_compiled_once():
    """No more functions for a hundred spheres than for eight."""
    runs = {}
    for count in (8, 100):
        mb = lv.Multibody(gravity=[0, 0, -9.81])
        balls = [mb.sphere(f"b{i}", at=[0.21 * i, 0, 0.1], radius=0.1, mass=1.0) for i in range(count)]
        mb.contact_group("row", [*balls, mb.ground], stiffness=1.3e4)
        before = jit.compilations
        mb.simulate(t_end=1e-3, h=1e-4)
        runs[count] = jit.compilations - before
    assert runs[100] <= 2  # the observables that a run watches, which have all bodies in them


# -- what is refused --------------------------------------------------------------------------------------------------
def test_errors_of_contact_groups():
    mb, bodies = drawing("spheres")
    mb.contact_group("heap", [*bodies, mb.ground], **laws())
    for scheme in ("lie-em", "livens-em", "imex"):
        with pytest.raises(InputError, match="needs"):
            mb.simulate(t_end=1e-3, h=1e-4, scheme=scheme)
    with pytest.raises(InputError, match=r"lasts .* too short for steps of h = .* use h <= "):
        mb.simulate(t_end=0.1, h=0.05)
    near, balls = lv.Multibody(), []
    balls = [near.sphere(f"s{i}", at=[0.1 * i, 0, 0], radius=0.1, mass=1.0) for i in range(2)]
    near.contact_group("heap", balls, **laws())
    with pytest.raises(InputError, match=r"'s0' and 's1' overlap by 0\.1 at the start"):
        near.simulate(t_end=1e-3, h=1e-4)
    for given, words in (
        (dict(stiffness=-1.0), "stiffness"),
        (dict(stiffness=1e4, dissipation=-1.0), "dissipation"),
        (dict(stiffness=1e4, margin=0.0), "margin"),
        (dict(), "needs a stiffness"),
    ):
        with pytest.raises(InputError, match=words):
            mb.contact_group("other", bodies, **given)
    with pytest.raises(InputError, match="at least two bodies"):
        mb.contact_group("other", bodies[:1], **laws())
    with pytest.raises(InputError, match="only once"):
        mb.contact_group("other", [*bodies, bodies[0]], **laws())
    with pytest.raises(InputError, match="already"):
        mb.contact_group("heap", bodies, **laws())
    with pytest.raises(InputError, match="not only planes"):
        mb.contact_group("other", [mb.ground, mb.ground], **laws())
    far, _ = drawing("spheres")
    with pytest.raises(InputError, match="not a body of this mechanism"):
        far.contact_group("heap", bodies, **laws())
    with pytest.raises(InputError, match="is not supported"):
        rings = [mb.ring(f"ring{i}", at=[i, 0, 0], radius=0.2, tube_radius=0.02, mass=1.0) for i in range(2)]
        mb.contact_group("rings", rings, **laws())
        _ = mb.system
