"""Bodies that bounce and come to rest: when they land, how they slide, roll and stick, and when they leave again."""

import numpy as np
import pytest
from conftest import measured_order
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens import contacts
from livens import math as m
from livens.multibody.contacts.rigid_contact import tangents

G = 9.81
FALL = np.sqrt(2 / G)  # from a height of one metre


def balance(run):
    """Return the error of the energy balance relative to its largest term."""
    parts = run["kinetic_energy"], run["potential_energy"], run.supplied_energy, run.dissipated_energy
    size = max(1.0, *(np.abs(part).max() for part in parts))
    return np.ptp(run["total_energy"] - run.supplied_energy + run.dissipated_energy) / size


def names(run):
    return [event.name for event in run.events]


def dropped(restitution=0.8, friction=0.0, **start):
    mb = lv.Multibody(gravity=[0, 0, -G])
    ball = mb.sphere("ball", at=[0, 0, 1.1], radius=0.1, mass=0.3)
    mb.initial(ball, **start)
    mb.rigid_contact(ball, mb.ground, restitution=restitution, friction=friction)
    return mb


def placed(friction, mass=2.0, gravity=(0, 0, -G), **start):
    """A ball that starts on the ground."""
    mb = lv.Multibody(gravity=list(gravity))
    ball = mb.sphere("ball", at=[0, 0, 0.1], radius=0.1, mass=mass)
    mb.initial(ball, **start)
    plane = contacts.HalfSpace(mb.ground, normal="z")
    mb.rigid_contact(ball, plane, restitution=0.5, friction=friction)
    return mb


@pytest.mark.parametrize("restitution", [0.0, 0.3, 0.8, 0.95])
def test_it_lands_after_the_geometric_series(restitution):
    """After ``fall (1 + e)/(1 - e)``, less the flights that would last less than a thousandth of a step."""
    mb = dropped(restitution)
    lands, left_out = FALL * (1 + restitution) / (1 - restitution), []
    sizes = (0.02, 0.01) if restitution == 0.8 else (0.02,)
    for h in sizes:
        run = mb.simulate(t_end=1.1 * lands, h=h)
        assert set(names(run)) == {"ball-ground bounce"}
        left_out.append(lands - run.events[-1].t)
        assert -1e-12 < left_out[-1] < 1e-3 * h / (1 - restitution)
        resting = run.t > run.events[-1].t
        assert np.abs(run["ball.position"][resting, 2] - 0.1).max() < 1e-15
        assert run["ball-ground bounce.normal_force"][resting] == pytest.approx(0.3 * G, rel=1e-12)
        flying = run.t < run.events[-1].t
        assert run["ball-ground bounce.normal_force"][flying] == pytest.approx(0.0, abs=1e-12)
        assert run.dissipated_energy[-1] == pytest.approx(0.3 * G, rel=1e-12)  # all that it had
        assert balance(run) < 1e-13
    assert left_out == sorted(left_out, reverse=True)


def test_it_lies_for_a_thousand_seconds():
    mb = dropped(0.8, 0.5, velocity=[0.3, 0, 0], omega=[0, 0, 7.0])
    run = mb.simulate(t_end=1000.0, h=0.01, every=100)
    rolling = run.t > 5.0
    assert np.abs(run["ball.position"][rolling, 2] - 0.1).max() < 1e-13
    for word in ("velocity", "omega"):
        assert np.ptp(run[f"ball.{word}"][rolling], axis=0).max() < 1e-11
    assert run["ball.velocity"][-1, 0] == pytest.approx(0.1 * run["ball.omega"][-1, 1], rel=1e-11)  # without slip
    assert balance(run) < 1e-12


@pytest.mark.parametrize(("friction", "way"), [(0.0, "free"), (0.05, "slides"), (0.5, "rolls")])
def test_down_an_incline(friction, way):
    """It falls, bounces, lands, and slides with ``g (sin - mu cos)`` or rolls with 5/7 of ``g sin``."""
    angle = 0.4
    mb = lv.Multibody(gravity=[G * np.sin(angle), 0, -G * np.cos(angle)])
    ball = mb.sphere("ball", at=[0, 0, 0.3], radius=0.1, mass=0.5)
    plane = contacts.HalfSpace(mb.ground, normal="z")
    mb.rigid_contact(ball, plane, restitution=0.3, friction=friction)
    run = mb.simulate(t_end=2.0, h=1e-2)
    down = slice(np.flatnonzero(run.t == run.events[-1].t)[-1], None)  # behind the last impact
    t, speed, spin = run.t[down], run["ball.velocity"][down, 0], run["ball.omega"][down, 1]
    sliding = G * (np.sin(angle) - friction * np.cos(angle))
    expected = 5 / 7 * G * np.sin(angle) if way == "rolls" else sliding
    assert np.diff(speed) / np.diff(t) == pytest.approx(expected, rel=1e-9)
    assert (np.abs(speed - 0.1 * spin).max() < 1e-12) == (way == "rolls")
    assert np.abs(run["ball.position"][down, 2] - 0.1).max() < 1e-14
    assert run["ball-ground bounce.normal_force"][down] == pytest.approx(0.5 * G * np.cos(angle), rel=1e-9)
    assert balance(run) < 1e-13
    lost = run.observe("dissipated_energy", by="element")
    if way == "slides":
        slip = np.trapezoid(speed - 0.1 * spin, t)
        assert lost["ball-ground bounce"][-1] == pytest.approx(friction * 0.5 * G * np.cos(angle) * slip, rel=1e-9)
    else:
        assert np.ptp(run.dissipated_energy[down]) < 1e-13  # impacts only


@pytest.mark.parametrize("friction", [0.3, 0.5])
def test_a_particle_sticks_where_friction_suffices(friction):
    """On an incline with the slope 0.4 it slides for ever, or stops and stays where it is."""
    slope = np.arctan(0.4)
    mb = lv.Multibody(gravity=[G * np.sin(slope), 0, -G * np.cos(slope)])
    grain = mb.particle("grain", at=[0, 0, 0], mass=0.1)
    mb.initial(grain, velocity=[0.5, 0.2, 0])
    plane = contacts.HalfSpace(mb.ground, normal="z")
    mb.rigid_contact(contacts.PointCloud(grain, [[0, 0, 0]]), plane, friction=friction)
    run = mb.simulate(t_end=200.0, h=0.01, every=7)
    v = run["grain.velocity"]
    if friction < 0.4:
        assert v[-1, 0] == pytest.approx(G * np.cos(slope) * (0.4 - friction) * 200.0, rel=1e-2)
        assert abs(v[-1, 1]) < 1e-2 and names(run).count("grain-ground bounce slip turns") < 3
    else:
        assert set(names(run)) == {"grain-ground bounce slip turns"}
        after = run.t > run.events[-1].t
        assert np.abs(v[after]).max() < 1e-15 and np.ptp(run["grain.position"][after], axis=0).max() < 1e-14
    assert balance(run) < 1e-12


def test_it_slides_then_rolls():
    """A bowling ball rolls after ``2 v/(7 mu g)``, with 5/7 of its speed; the time is found to second order."""
    sizes, errors = [0.02, 0.01, 0.005, 0.0025], []
    for h in sizes:
        mb = placed(0.2, velocity=[3.0, 0, 0])
        run = mb.simulate(t_end=1.0, h=h)
        assert names(run) == ["ball-ground bounce slip turns"]
        errors.append(abs(run.events[0].t - 2 * 3.0 / (7 * 0.2 * G)))
        assert run["ball.velocity"][-1, 0] == pytest.approx(5 / 7 * 3.0, rel=1e-12)
        assert balance(run) < 1e-13
    assert all(error < 20 * h**2 for h, error in zip(sizes, errors, strict=True))
    mb = placed(0.2, velocity=[3.0, 0, 0], omega=[20.0, 5.0, 30.0])
    run = mb.simulate(t_end=1.0, h=0.01)
    assert run["ball.velocity"][-1, :2] == pytest.approx([(5 * 3.0 + 2 * 0.5) / 7, -2 * 2.0 / 7], rel=1e-10)
    assert run["ball.omega"][-1, 2] == pytest.approx(30.0, rel=1e-10)  # nothing resists turning about the normal


def test_a_rolling_ball_begins_to_slide():
    """Pulled sideways by more and more, it rolls until friction does not suffice: at ``7/2 mu m g``."""
    mb = placed(0.2)
    mb.wrench("pull", mb.bodies["ball"], force=lambda t: [10.0 * t, 0, 0])
    run = mb.simulate(t_end=2.0, h=0.01)
    assert names(run)[:1] == ["ball-ground bounce slips"] and len(run.events) == 1
    assert run.events[0].t == pytest.approx(7 / 2 * 0.2 * 2.0 * G / 10.0, rel=1e-9)
    before = run.t <= run.events[0].t
    slip = run["ball.velocity"][:, 0] - 0.1 * run["ball.omega"][:, 1]
    assert np.abs(slip[before]).max() < 1e-12 and slip[-1] > 0.1
    assert balance(run) < 1e-13


def test_it_is_lifted_off_and_falls_back():
    mb = placed(0.3)
    mb.wrench("pull", mb.bodies["ball"], force=lambda t: [0, 0, 30.0 * m.sin(2 * t)])
    run = mb.simulate(t_end=4.0, h=0.002)
    leaves = np.arcsin(2.0 * G / 30.0) / 2
    assert names(run)[0] == "ball-ground bounce left"
    assert run.events[0].t == pytest.approx(leaves, rel=1e-9)
    tau = next(event.t for event in run.events if event.name == "ball-ground bounce")
    height = (30 / 2 * (np.sin(2 * leaves) - np.sin(2 * tau)) / 4 + 30 / 4 * np.cos(2 * leaves) * (tau - leaves)) - (
        G * (tau - leaves) ** 2 / 2
    )
    assert height == pytest.approx(0.0, abs=1e-4)
    assert names(run).count("ball-ground bounce left") == 2  # a period of the force later
    assert run["ball-ground bounce.normal_force"].min() > -1e-9
    assert run["ball.position"][:, 2].min() > 0.1 - 1e-7  # where an impact is found within a step
    assert balance(run) < 1e-12


def test_it_leaves_a_hill_where_it_has_fallen_by_a_third():
    """A ball that slides down another one without friction leaves it where ``cos = 2/3`` of that of the start."""
    sizes, errors, start = [0.02, 0.01, 0.005, 0.0025], [], 0.3
    for h in sizes:
        mb = lv.Multibody(gravity=[0, 0, -G])
        hill = contacts.Sphere(mb.ground, radius=0.9, at=[0, 0, 0])
        ball = mb.sphere("ball", at=[np.sin(start), 0, np.cos(start)], radius=0.1, mass=1.0)
        mb.rigid_contact(ball, hill)
        run = mb.simulate(t_end=0.8, h=h)
        assert names(run) == ["ball-ground bounce left"]
        (place,) = run["ball.position"][run.t == run.events[0].t][:1]
        errors.append(abs(place[2] - 2 / 3 * np.cos(start)))
        on = run.t <= run.events[0].t
        assert np.abs(np.linalg.norm(run["ball.position"][on], axis=1) - 1).max() < 1e-14
        assert run["ball-ground bounce.normal_force"][run.t < run.events[0].t - h].min() > 0
        assert balance(run) < 1e-12
    assert measured_order(sizes, errors) > 1.7 and errors[-1] < 1e-5


def bowl(h, friction, t_end=1.0):
    mb = lv.Multibody(gravity=[0, 0, -G])
    pocket = contacts.HollowSphere(mb.ground, radius=1.1, at=[0, 0, 0])
    ball = mb.sphere("ball", at=[0.8, 0, -0.6], radius=0.1, mass=1.0)
    rolling = 10 * np.cross([0, 1.0, 0], [0.8, 0, -0.6])  # without slip
    mb.initial(ball, velocity=[0, 1.0, 0], omega=rolling if friction > 1 else [1, 2, 3.0])
    mb.rigid_contact(ball, pocket, friction=friction)
    return mb.simulate(t_end=t_end, h=h)


@pytest.mark.parametrize("friction", [0.0, 0.02, 2.0], ids=["free", "slides", "rolls"])
def test_order_in_a_bowl(friction):
    """Sliding with friction, rolling and gliding are of the order of the scheme on curved surfaces too."""
    best = bowl(0.0003125, friction)
    assert set(names(best)) <= {"ball-ground bounce slip turns"}
    sizes = [0.02, 0.01, 0.005, 0.0025]
    runs = [bowl(h, friction) for h in sizes]
    errors = [np.abs(run["ball.position"][-1] - best["ball.position"][-1]).max() for run in runs]
    assert measured_order(sizes, errors) == pytest.approx(2.0, abs=0.2)
    for run in runs:
        assert np.abs(np.linalg.norm(run["ball.position"], axis=1) - 1).max() < 1e-13 and balance(run) < 1e-12
    assert (runs[0].dissipated_energy[-1] > 1e-3) == (friction == 0.02)


def test_two_balls_come_to_rest_on_each_other():
    mb = lv.Multibody(gravity=[0, 0, -G])
    a = mb.sphere("a", at=[0, 0, 0.15], radius=0.1, mass=1.0)
    b = mb.sphere("b", at=[0, 0, 0.6], radius=0.1, mass=0.5)
    mb.rigid_contact(a, mb.ground, restitution=0.5)
    mb.rigid_contact(a, b, restitution=0.6)
    run = mb.simulate(t_end=1.5, h=0.01)
    assert run["a.position"][-1] == pytest.approx([0, 0, 0.1], abs=1e-12)
    assert run["b.position"][-1] == pytest.approx([0, 0, 0.3], abs=1e-12)
    assert run["a-ground bounce.normal_force"][-1] == pytest.approx(1.5 * G, rel=1e-9)
    assert run["a-b bounce.normal_force"][-1] == pytest.approx(0.5 * G, rel=1e-9)
    for one in ("a-ground", "a-b"):
        assert run[f"{one} bounce.normal_force"].min() > -1e-9
    assert run["a.position"][:, 2].min() > 0.1 - 1e-12
    assert (run["b.position"] - run["a.position"])[:, 2].min() > 0.2 - 1e-12
    assert balance(run) < 1e-12


@pytest.mark.parametrize("friction", [0.0, 0.4])
def test_two_free_bodies_keep_their_momenta(friction):
    """A ball that a spring pulls onto a heavier one, with spin, in free space."""
    mb = lv.Multibody()
    a = mb.sphere("a", at=[0, 0, 0], radius=0.2, mass=2.0)
    b = mb.sphere("b", at=[0.1, 0, 0.6], radius=0.1, mass=0.5)
    mb.spring("band", a, b, stiffness=8.0, free_length=0.1)
    mb.initial(a, velocity=[0.1, 0, 0], omega=[1, 0, 2.0])
    mb.initial(b, velocity=[0, 0.2, 0], omega=[0, -3.0, 1])
    mb.rigid_contact(a, b, restitution=0.4, friction=friction)
    run = mb.simulate(t_end=6.0, h=0.005)
    landed = run.t > 4.0
    gap = np.linalg.norm(run["b.position"] - run["a.position"], axis=1) - 0.3
    assert gap.min() > -1e-6 and np.abs(gap[landed]).max() < 1e-12  # the former where blows are found within steps
    assert run["a-b bounce.normal_force"][landed].min() > 0.1
    linear, angular = run.observe("linear_momentum"), run.observe("angular_momentum")
    assert np.abs(linear - linear[0]).max() < 1e-12
    assert np.abs(angular - angular[0]).max() < 1e-4 * np.abs(angular[0]).max()  # the gap is not quadratic: order 2
    assert balance(run) < 1e-12


def test_in_the_plane():
    mb = lv.Multibody(gravity=[0, -G], planar=True)
    disc = mb.sphere("disc", at=[0, 0.5], radius=0.1, mass=1.0)
    mb.initial(disc, velocity=[1.0, 0], omega=-5.0)
    mb.rigid_contact(disc, mb.ground, restitution=0.5, friction=0.3)
    run = mb.simulate(t_end=3.0, h=0.01)
    rolling = run.t > run.events[-1].t
    assert np.abs(run["disc.position"][rolling, 1] - 0.1).max() < 1e-14
    assert run["disc.velocity"][rolling, 0] == pytest.approx(-0.1 * run["disc.omega"][rolling], rel=1e-11)
    assert balance(run) < 1e-13


def test_runs_go_on_from_files(tmp_path):
    """In flight, among bounces that are shorter than a step, sliding, and rolling: bit for bit."""
    mb = dropped(0.6, 0.04, velocity=[3.0, 0.2, 0])
    whole = mb.simulate(t_end=4.0, h=0.01)
    assert "ball-ground bounce slip turns" in names(whole)
    blows = [event.t for event in whole.events if event.name == "ball-ground bounce"]
    for number, t_end in enumerate([0.3, blows[-4] + 1e-6, blows[-1] + 1e-9, blows[-1] + 0.004, 2.0, 3.9]):
        out = tmp_path / f"{number}.h5"
        mb.simulate(t_end=t_end, h=0.01, out=out)
        run = lv.resume(out, t_end=4.0, system=mb.system)
        assert np.array_equal(run.q[-1], whole.q[-1]) and np.array_equal(run.v[-1], whole.v[-1])
        assert [event.t for event in run.events] == [event.t for event in whole.events]
        assert run.dissipated_energy[-1] == whole.dissipated_energy[-1]


def test_bounces_that_are_said_again_are_the_same():
    mb = dropped()
    system = mb.system
    mb.rigid_contact(mb.bodies["ball"], mb.ground, restitution=0.8)
    assert mb.system is system
    mb.rigid_contact(mb.bodies["ball"], mb.ground, restitution=0.5)
    assert mb.system is not system and len(mb._rigid_contacts) == 1
    with pytest.raises(lv.InputError, match="already"):
        mb.rigid_contact(mb.bodies["ball"], mb.ground, name="ball")
    (plain,) = mb.rigid_contact(mb.bodies["ball"], mb.ground, persistent=False, name="impact")
    assert plain.element is None and mb._rigid_contacts["impact"] is plain


def test_what_does_not_land():
    """Boxes meet in several places: they bounce as before, and end where steps cannot tell bounces apart."""
    mb = lv.Multibody(gravity=[0, 0, -G])
    box = mb.box("box", at=[0, 0, 0.3], size=[0.2, 0.2, 0.2], mass=1.0)
    mb.rigid_contact(box, mb.ground, restitution=0.5)
    assert len(mb._rigid_contacts) == len(mb.system.model_events) == 8 and not mb.system.m - 6
    with pytest.raises(lv.IntegrationError, match="times within one step"):
        mb.simulate(t_end=2.0, h=0.01)
    mb = placed(0.3)
    with pytest.raises(lv.InputError, match="velocities"):  # which `persistent=False` does not ask for
        mb.simulate(t_end=0.1, h=0.01, scheme="semi-explicit:0.5,0.5")
    deep = lv.Multibody(gravity=[0, 0, -G])
    ball = deep.sphere("ball", at=[0, 0, 0.05], radius=0.1, mass=1.0)
    with pytest.raises(lv.InputError, match=r"overlap by 0\.05"):
        deep.rigid_contact(ball, deep.ground)
        deep.simulate(t_end=0.1, h=0.01)


def test_a_system_by_itself_sees_what_lies_on_something():
    """`lv.simulate` of the system does what `mb.simulate` does."""
    mb = placed(0.3, velocity=[0.5, 0, 0])
    whole = mb.simulate(t_end=1.0, h=0.01)
    q, v = mb.initial_state
    run = lv.simulate(mb.system, q, v, scheme=mb.default_scheme, t_end=1.0, h=0.01)
    assert run.q.tobytes() == whole.q.tobytes() and names(run) == names(whole)
    assert np.abs(run["ball.position"][:, 2] - 0.1).max() < 1e-14


@pytest.mark.parametrize(
    ("height", "up", "words"), [(0.1, 0.0, "touch already"), (0.05, 0.0, r"overlap by 0\.05"), (0.1, 1.0, "")]
)
def test_what_only_bounces_does_not_start_on_something(height, up, words):
    """It would not be hit there, but pass through; thrown up, it comes back."""
    mb = lv.Multibody(gravity=[0, 0, -G])
    ball = mb.sphere("ball", at=[0, 0, height], radius=0.1, mass=1.0)
    mb.initial(ball, velocity=[0, 0, up])
    mb.rigid_contact(ball, mb.ground, persistent=False)
    if words:
        with pytest.raises(lv.InputError, match=words):
            mb.simulate(t_end=0.5, h=0.01)
        return
    run = mb.simulate(t_end=0.5, h=0.01)
    assert [event.t for event in run.events] == pytest.approx([2 / G, 4 / G], abs=1e-12)
    assert run["ball.position"][:, 2].min() > 0.1 - 1e-12


def test_what_only_bounces_is_not_put_into_the_ground():
    mb = lv.Multibody(gravity=[0, 0, -G])
    ball = mb.sphere("ball", at=[0, 0, 1.0], radius=0.1, mass=1.0)
    mb.rigid_contact(ball, mb.ground, persistent=False)
    words = "action of event 'kick' at t = 0.5 is not admissible: ball-ground bounce: the bodies overlap by"
    with pytest.raises(lv.InputError, match=words):
        mb.simulate(t_end=1.0, h=0.01, events=[moved("q", [0, 0, -1.0])])
    run = mb.simulate(t_end=1.0, h=0.01, events=[moved("q", [0, 0, 1.0])])
    assert run["ball.position"][-1, 2] > 0.1


def test_of_several_events_at_one_time_only_the_first_acts():
    """A contact that another impact has already changed needs no further impulse."""
    mb = placed(0.3, velocity=[0.5, 0, 0])
    hit, left, slips, turns = mb.system.model_events
    q, v = mb.initial_state
    states = {(0.0, 0.0): [], (1.0, 0.0): [left, turns], (1.0, 1.0): [left, slips]}
    for (touching, sticking), acting in states.items():
        changes = {"ball-ground bounce.touching": touching, "ball-ground bounce.sticking": sticking}
        k = mb.system.parameter_vector(changes)
        assert [event for event in (hit, left, slips, turns) if event.action(q, v, 0.0, k, 0.01)] == acting


def test_rigid_contact_belongs_to_the_model():
    """Its events act in every run; single steps, ensembles and derivatives, which have no events, are refused."""
    mb = placed(0.3)
    (q, v), slope = mb.initial_state, lv.value_and_gradient(lambda q: q[0])
    for run in (
        mb.simulate(t_end=0.1, h=0.01),
        mb.simulate(t_end=0.1, h=0.01, events=()),
        lv.simulate(mb.system, q, v, t_end=0.1, h=0.01, scheme=mb.default_scheme),
        lv.prepare(mb.system, scheme=mb.default_scheme).run(q, v, t_end=0.1, h=0.01),
    ):
        assert np.abs(run.q[:, 2] - 0.1).max() < 1e-14
    for run in (
        lambda: lv.prepare(mb.system, h=0.01).start(q, v),
        lambda: lv.ensemble(mb.system, q0=[q, q], v0=v, t_end=0.1, h=0.01),
        lambda: slope(lv.prepare(mb.system), q, v, t_end=0.1, h=0.01),
    ):
        with pytest.raises(lv.InputError, match="rigid contacts"):
            run()
    boxes = lv.Multibody(gravity=[0, 0, -G])
    box = boxes.box("box", at=[0, 0, 0.3], size=[0.2, 0.2, 0.2], mass=1.0)
    boxes.rigid_contact(box, boxes.ground)
    run = boxes.simulate(t_end=0.3, h=0.01)
    assert len(run.events) and run["box.position"][:, 2].min() > 0.1 - 1e-9


def test_two_balls_slide_in_directions_of_their_own():
    """Each is slowed down by ``mu g`` and begins to spin about an axis across its way."""
    mb = lv.Multibody(gravity=[0, 0, -G])
    for name, x, velocity in (("one", 0.0, [2.0, 0, 0]), ("other", 1.0, [1.0, -2.0, 0])):
        ball = mb.sphere(name, at=[x, 0, 0.1], radius=0.1, mass=0.5)
        mb.initial(ball, velocity=velocity)
        mb.rigid_contact(ball, contacts.HalfSpace(mb.ground, normal="z"), restitution=0.5, friction=0.2)
    run = mb.simulate(t_end=0.1, h=1e-2)
    for name, velocity in (("one", [2.0, 0, 0]), ("other", [1.0, -2.0, 0])):
        way = np.array(velocity) / np.linalg.norm(velocity)
        assert run[f"{name}.velocity"][-1] == pytest.approx(velocity - 0.2 * G * 0.1 * way, abs=1e-10)
        spin = 0.2 * G * 0.1 / (0.4 * 0.1) * np.cross([0, 0, 1], way)
        assert run[f"{name}.omega"][-1] == pytest.approx(spin, abs=1e-9)
    assert balance(run) < 1e-13


# -- behind the actions of others --------------------------------------------------------------------------------------
def moved(part, by):
    """An action that moves the first body, or kicks it, by so much."""

    def action(q, v):
        value = {"q": q, "v": v}[part].copy()
        value[:3] += by
        return {part: value}

    return lv.Event(lambda t: t - 0.5, name="kick", action=action)


@pytest.mark.parametrize("friction", [0.0, 0.5])
@pytest.mark.parametrize(("by", "speed"), [([0, 0, 3.0], 3.0), ([0, 0, -3.0], 1.5)])
def test_what_lies_is_thrown_up(friction, by, speed):
    """Upwards, or against the ground, which throws it back with half of it; it lands again, and rolls on."""
    mb = placed(friction, velocity=[0.2, 0, 0])
    run = mb.simulate(t_end=3.0, h=0.01, events=[moved("v", by)])
    height, flight = run["ball.position"][:, 2], 2 * speed / G
    impact = next(event for event in run.events if event.name == "ball-ground bounce")
    assert impact.t == pytest.approx(0.5 + flight, abs=1e-12)
    flying = (run.t > 0.5) & (run.t < impact.t)
    t = run.t[flying] - 0.5
    assert height[flying] == pytest.approx(0.1 + speed * t - G * t**2 / 2, abs=1e-12)
    assert np.abs(height[run.t < 0.5] - 0.1).max() < 1e-15 and abs(height[-1] - 0.1) < 1e-15
    assert run["ball.velocity"][-1, 0] == pytest.approx(0.2 if not friction else 0.2 * 5 / 7, rel=1e-9)
    assert balance(run) < 1e-12


def heights(times, kicks, restitution, h):
    """Return the heights of a point that falls, bounces, rests and gets velocity jumps: successive parabolas."""
    t, z, v, lies, found = 0.0, 0.0, 0.0, True, []
    for until, kick in [*kicks, (times[-1] + 1.0, 0.0)]:
        while True:
            lands_at = np.inf if lies else t + (v + np.sqrt(max(v**2 + 2 * G * z, 0.0))) / G
            end = min(until, lands_at)
            inside = times[(times >= t) & (times < end)] - t
            found += list(z + v * inside - (0 if lies else G / 2) * inside**2)
            z, v, t = (0.0, 0.0, end) if lies else (z + v * (end - t) - G / 2 * (end - t) ** 2, v - G * (end - t), end)
            if lands_at > until:
                break
            z, v = 0.0, -restitution * v
            lies = 2 * v < 1e-3 * h * G
            v = 0.0 if lies else v
        v += kick
        if lies and v < 0:  # against the ground
            v = -restitution * v
        lies = lies and 2 * v < 1e-3 * h * G
        v = 0.0 if lies else v
    return np.array(found)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-2, 2)), min_size=4, max_size=4))
def test_kicks_one_after_the_other(kicks):
    """A ball without friction: tangential jumps add up, and its height is that of a point."""
    mb = placed(0.0)

    def kick(when, up, along):
        def action(v):
            v = v.copy()
            v[[0, 2]] += along, up
            return {"v": v}

        return lv.Event(lambda t: t - when, name=f"kick at {when}", action=action)

    times = (0.3037, 0.4, 1.1037, 1.7219)
    events = [kick(when, *one) for when, one in zip(times, kicks, strict=True)]
    run = mb.simulate(t_end=3.0, h=0.01, events=events)
    up = heights(run.t, list(zip(times, [one[0] for one in kicks], strict=True)), 0.5, 0.01)
    assert run["ball.position"][:, 2] - 0.1 == pytest.approx(up, abs=1e-7)
    assert run["ball.velocity"][-1, 0] == pytest.approx(sum(along for _, along in kicks), abs=1e-12)
    assert run["ball-ground bounce.normal_force"].min() > -1e-9
    assert balance(run) < 1e-11


def test_what_lies_is_pushed_along():
    """A ball that rolls is kicked through its centre: five sevenths of it are left when it rolls again."""
    mb = placed(0.5, velocity=[0.7, 0, 0])
    run = mb.simulate(t_end=2.0, h=0.01, events=[moved("v", [0, 2.0, 0])])
    assert run["ball.velocity"][-1] == pytest.approx([0.5, 2.0 * 5 / 7, 0], abs=1e-10)
    assert np.abs(run["ball.position"][:, 2] - 0.1).max() < 1e-14
    assert balance(run) < 1e-12


def test_what_lies_is_lifted_and_never_put_into_the_ground():
    mb = placed(0.3)
    run = mb.simulate(t_end=0.6, h=0.01, events=[moved("q", [0, 0, 1.0])])
    assert run["ball.position"][-1, 2] == pytest.approx(1.1 - G * 0.1**2 / 2, abs=1e-12)
    words = "the action of event 'kick' at t = 0.5 is not admissible: ball-ground bounce: the bodies overlap by 0.01"
    with pytest.raises(lv.InputError, match=words):
        mb.simulate(t_end=1.0, h=0.01, events=[moved("q", [0, 0, -0.01])])


def test_an_action_that_changes_nothing_there_leaves_what_lies_alone():
    """Residual rates of the scheme are no impact; with less friction the ball starts to slip."""
    mb = placed(0.5, gravity=(1.0, 0, -G), velocity=[0.3, 0, 0])
    alone = mb.simulate(t_end=1.0, h=0.01)
    same = mb.simulate(t_end=1.0, h=0.01, events=[moved("v", [0, 0, 0])])
    assert names(same) == [*names(alone), "kick"]
    assert same["ball.position"][-1] == pytest.approx(alone["ball.position"][-1], abs=1e-12)
    ice = lv.Event(lambda t: t - 0.5, name="ice", action=lambda: {"parameters": {"ball-ground bounce.friction": 0.01}})
    slips = mb.simulate(t_end=1.0, h=0.01, events=[ice])
    gained = slips["ball.velocity"][-1, 0] - slips["ball.velocity"][slips.t == 0.5][-1, 0]
    assert gained == pytest.approx(0.5 * (1.0 - 0.01 * G), rel=1e-9)


def test_a_run_goes_on_bit_for_bit_behind_a_kick(tmp_path):
    mb = placed(0.5, velocity=[0.2, 0, 0])
    events = [moved("v", [0, 0, 3.0])]
    whole = mb.simulate(t_end=3.0, h=0.01, events=events)
    for i, t_end in enumerate((0.3, 0.5, 0.8, 1.4)):
        path = tmp_path / f"{i}.h5"
        mb.simulate(t_end=t_end, h=0.01, events=events, out=path)
        gone_on = lv.resume(path, t_end=3.0, system=mb.system, events=events)
        assert gone_on.q.tobytes() == whole.q.tobytes() and names(gone_on) == names(whole)


# -- what nobody can tell ---------------------------------------------------------------------------------------------
def pit(walls, **options):
    """A ball in a pit of inclined walls."""
    mb = lv.Multibody(gravity=[0, 0, -G])
    ball = mb.sphere("ball", at=[0, 0, 0], radius=0.1, mass=1.0)
    for i, angle in enumerate(2 * np.pi * np.arange(walls) / walls):
        normal = np.array([0.5 * np.cos(angle), 0.5 * np.sin(angle), np.sqrt(0.75)])
        wall = contacts.HalfSpace(mb.ground, at=list(-0.1 * normal), normal=list(normal))
        mb.rigid_contact(ball, wall, restitution=0.3, name=f"wall {i}", **options)
    return mb


@pytest.mark.parametrize("walls", [3, 4])
def test_a_ball_lies_in_a_pit_of_three_walls_and_of_four_with_forces_that_are_not_unique(walls):
    """Three contacts carry equal parts of the weight; of four, only the resultant is determined."""
    mb = pit(walls, unique=walls == 3)
    if walls == 4:
        with pytest.warns(lv.LivensWarning, match="wall 0, wall 1, wall 2, wall 3 are statically indeterminate"):
            run = mb.simulate(t_end=0.2, h=0.01)
        with pytest.raises(lv.InputError, match="statically indeterminate"):
            pit(4, unique=True).simulate(t_end=0.2, h=0.01)
    else:
        run = mb.simulate(t_end=0.2, h=0.01)
    assert np.abs(run["ball.position"]).max() < 1e-14 and not run.events
    forces = [run[f"wall {i}.normal_force"] for i in range(walls)]
    assert sum(forces) == pytest.approx(G / np.sqrt(0.75), rel=1e-10)
    if walls == 3:
        assert np.ptp(forces, axis=0).max() < 1e-10


@pytest.mark.parametrize(("friction", "speed"), [(0.3, 1.0), (0.3, -1.0), (2.0, 1.0), (2.0, -1.0)])
def test_a_stick_that_is_pushed_along_and_one_that_wedges(friction, speed):
    """``N = m g/(1 + 3 cos (cos + mu sin))`` of a thin rod that is drawn; pushed, mu changes its sign (Painleve)."""
    mb, half, angle = lv.Multibody(gravity=[0, 0, -G]), 0.5, np.pi / 3
    x, z = half * np.cos(angle), half * np.sin(angle)
    stick = mb.rod("stick", a=[-x, 0, 0], b=[x, 0, 2 * z], mass=1.0)
    mb.initial(stick, velocity=[speed, 0, 0])
    tip = contacts.Sphere(stick, 1e-5, at=[-x, 0, 1e-5])
    floor = contacts.HalfSpace(mb.ground, at=[0, 0, 0], normal="z")
    mb.rigid_contact(tip, floor, restitution=0.0, friction=friction)
    share = 1 + 3 * np.cos(angle) * (np.cos(angle) + np.sign(speed) * friction * np.sin(angle))
    if share < 0:
        with pytest.raises(lv.InputError, match="stick-ground bounce: Painleve paradox"):
            mb.simulate(t_end=0.01, h=1e-4)
        return
    run = mb.simulate(t_end=0.01, h=1e-4)
    assert run["stick-ground bounce.normal_force"][1] == pytest.approx(G / share, rel=1e-3)
    assert balance(run) < 1e-12


@pytest.mark.parametrize("normal", [(0, 0, 1), (0, 0, -1), (0.6, 0.48, 0.64), (0.6, -0.48, -0.64), (1, 0, 0)])
def test_tangents_are_orthonormal(normal):
    axes = np.array([np.array(axis, dtype=float) for axis in (*tangents(np.array(normal, dtype=float)), normal)])
    assert axes @ axes.T == pytest.approx(np.eye(3), abs=1e-14)
