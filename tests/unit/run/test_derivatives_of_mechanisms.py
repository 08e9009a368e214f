"""Derivatives and ensembles of what mechanisms and schemes can do beyond smooth motion: right, or refused in words."""

import numpy as np
import pytest

import livens as lv
from livens import contacts


def touching():
    """A ball that rolls and slides on the ground, pressed into it by its weight, with friction and damping."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 0.0995], radius=0.1, mass=2.0)
    ground = contacts.HalfSpace(mb.ground, [0, 0, 0], [0, 0, 1])
    mb.contact(contacts.Sphere(ball, 0.1), ground, stiffness=2e4, dissipation=0.1, friction=0.3, name="floor")
    mb.initial(ball, velocity=[0.5, 0.1, 0.0], omega=[0.3, 1.0, 0.2])
    return mb.problem(), "lie-em", ["floor.stiffness", "floor.friction"]


def bent():
    """A cantilever that swings in a plane."""
    mb = lv.Multibody(planar=True, gravity=[0, -9.81])
    section = lv.Section.general(EA=1e4, GA=1e4, GJ=1.0, EI=1.0, mass=1.0, inertia=[0.02, 0.01, 0.01])
    mb.beam("boom", points=[[0, 0], [1, 0]], section=section, elements=1, clamp_first=mb.ground)
    return mb.problem(), "lie-em", []


def spinning():
    """A fast top whose energy is corrected for the step."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    axis = np.array([0, np.sin(0.3), np.cos(0.3)])
    disc = mb.cylinder("disc", at=0.5 * axis, axis=axis, length=0.05, radius=0.1, mass=1.0, rotor=True)
    mb.spherical("tip", mb.ground, disc, at=[0, 0, 0])
    mb.initial(disc, omega=60 * axis, velocity=np.cross(60 * axis, disc.reference_position))
    return mb.problem(), "lie-em", []


def split():
    """Stiff and soft forces, of which the semi-explicit scheme solves for some."""
    return lv.problems.load("kepler"), "semi-explicit:0.5,0.5", ["mu"]


def series():
    return lv.problems.load("kepler"), "taylor:6", ["mu"]


CASES = dict(touching=touching, bent=bent, spinning=spinning, split=split, series=series)


def prepared(case, **options):
    problem, scheme, names = CASES[case]()
    known = problem.model.parameter_table.entries
    h = 1e-3
    step = lv.prepare(problem, scheme, h=h, t_end=20 * h, **options)
    return problem, step, [name for name in names if name in known] or list(known)[:2], h


@pytest.mark.parametrize("case", CASES)
def test_forth_back_and_differences(case):
    problem, step, names, h = prepared(case)
    run = step.run(every=5)
    random = np.random.default_rng(2)
    weights = {name: random.standard_normal(getattr(run, name).shape) for name in ("q", "v")}
    by, start = run.vjp(weights), problem.start_values

    def value(parameters=None, h=h, **changed):
        other = step.run(**changed, parameters=parameters, h=h, t_end=20 * h, every=5, project=True)
        return sum(float((weights[name] * getattr(other, name)).sum()) for name in weights)

    def check(what, forth, back, ahead, behind, width):
        total = sum(float((weights[name] * forth[name]).sum()) for name in weights)
        assert total == pytest.approx(back, rel=1e-7, abs=1e-7), what
        difference = (ahead - behind) / width
        assert total == pytest.approx(difference, rel=2e-5, abs=2e-6 * (1 + abs(total))), what

    for given in by.start:
        usual, unit = np.asarray(start[given], dtype=float), random.standard_normal(by.start[given].size)
        ends = [value(**{given: usual + sign * 1e-6 * unit}) for sign in (1, -1)]
        check(given, run.jvp(**{given: unit}), float(by.start[given] @ unit), *ends, 2e-6)
    table = problem.model.parameter_table.entries
    usual = problem.model.parameter_vector(problem.parameters)
    for name in names:
        here = usual[table[name].slices[0]].reshape(table[name].shape)
        size = 1e-5 * (np.abs(here).max() or 1.0)
        ends = [value({name: here + sign * size}) for sign in (1, -1)]
        check(name, run.jvp(parameters={name: np.ones_like(here)}), float(np.sum(by.parameters[name])), *ends, 2 * size)
    ends = [value(h=h * (1 + sign * 1e-5)) for sign in (1, -1)]
    check("h", run.jvp(h=1.0), by.h, *ends, 2e-5 * h)


@pytest.mark.parametrize("case", CASES)
def test_members_are_single_runs(case):
    problem, step, _, h = prepared(case)
    speeds = np.asarray(problem.start_values["v0"]) * np.linspace(0.9, 1.1, 9)[:, None]
    many = lv.ensemble(problem, v0=speeds, scheme=step.scheme, h=h, t_end=20 * h, every=5, project=True)
    assert many.status == ["complete"] * 9
    for i in (0, 8):
        alone = step.run(v0=speeds[i], every=5, project=True)
        size = 1 + np.abs(alone.v).max()
        np.testing.assert_allclose(many.q[i], alone.q, atol=1e-12 * size)
        np.testing.assert_allclose(many.last("v")[i], alone.v[-1], atol=1e-9 * size)


def servo():
    mb = lv.Multibody(planar=True)
    rod = mb.rod("rod", a=[0, 0], b=[1, 0], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, rod, at=[0, 0])
    mb.sampled_controller("servo", hinge, period=0.01, law=lambda t, measured: -5 * measured[0], inputs=["hinge.angle"])
    return mb


def dropped():
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    body = mb.box("box", at=[0, 0, 1], size=[0.1, 0.1, 0.1], mass=2)
    rail = mb.prismatic("rail", mb.ground, body, axis="z")
    mb.limit("floor", rail, lower=-0.1, stiffness=1e6, restitution=0.8)
    return mb


def test_what_happens_between_steps_has_no_derivatives():
    """A run without impacts has derivatives."""
    loss = lv.value_and_gradient(lambda q: q[0])
    with pytest.raises(lv.InputError, match="sampled controllers"):
        loss(lv.prepare(servo().problem(), h=0.01, t_end=0.1))
    with pytest.raises(lv.InputError, match="sampled controllers"):
        servo().simulate(h=0.01, t_end=0.1).jvp(h=1.0)
    with pytest.raises(lv.InputError, match="stops with restitution"):
        loss(lv.prepare(dropped().problem(), h=0.01, t_end=0.1))
    mb = dropped()
    falling = mb.simulate(h=0.01, t_end=0.1)
    assert not falling.events and np.isfinite(falling.jvp(h=1.0)["q"]).all()
    with pytest.raises(lv.InputError, match=r"'floor lower' changed the motion at t = 0\.14"):
        mb.simulate(h=0.01, t_end=0.3).jvp(h=1.0)
    ball = lv.System("z", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: 9.81 * q[0])
    bounce = lv.Event(lambda q: q[0], name="bounce", direction=-1, action=lambda v: {"v": -0.8 * v})
    run = lv.simulate(ball, q0=[1.0], v0=[0.0], h=0.01, t_end=1.0, events=[bounce])
    with pytest.raises(lv.InputError, match="'bounce' changed the motion"):
        run.vjp({"q": np.ones_like(run.q)})
    seen = lv.simulate(ball, q0=[1.0], v0=[0.0], h=0.01, t_end=1.0, events=[lv.Event(lambda q: q[0], name="seen")])
    assert len(seen.events) == 1 and seen.jvp(q0=[1.0])["q"][-1, 0] == pytest.approx(1.0)
    for model in (servo(), dropped()):
        with pytest.raises(lv.InputError, match="an ensemble cannot have"):
            lv.ensemble(model.problem(), v0=np.zeros((2, len(model.system.coordinates))), h=0.01, t_end=0.1)


def test_tangents_of_many_runs():
    """Each is that of the run by itself; who fails stops no other."""
    step = lv.prepare(lv.problems.load("simple-pendulum"), h=0.01, t_end=0.5)
    speeds, weights = [[0.0, 0.1], [0.5, 0.3], [0.0, 0.2]], [9.0, 9.5, 10.0]
    found = lv.jvp(step, {"parameters": {"g": 1.0}, "h": 0.1}, v0=speeds, parameters={"g": weights}, every=10)
    assert list(found.failures) == [1] and np.isnan(found.change["q"][1]).all()
    for i in (0, 2):
        run = step.run(v0=speeds[i], parameters={"g": weights[i]}, every=10)
        np.testing.assert_array_equal(found.states["q"][i], run.q)
        np.testing.assert_allclose(found.change["v"][i], run.jvp(parameters={"g": 1.0}, h=0.1)["v"], rtol=1e-13)
    again = lv.jvp(
        step, {"parameters": {"g": 1.0}, "h": 0.1}, v0=speeds, parameters={"g": weights}, every=10, threads=2
    )
    np.testing.assert_array_equal(again.change["q"], found.change["q"])
    for bad, words in (
        (3, "along must be"),
        ({"g": 1.0}, "unknown direction 'g'"),
        ({"parameters": {"a": 1}}, "unknown"),
    ):
        with pytest.raises(lv.InputError, match=words):
            lv.jvp(step, bad, v0=[0.0, 0.1])
