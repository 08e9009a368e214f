"""Energy accounts by element add up to those of the system."""

import numpy as np
import pytest

import livens as lv
from livens import bodies
from livens import math as m


def chain():
    a, b = bodies.particle("a", 1.0), bodies.particle("b", 2.0)
    weak = bodies.damper((a, [0, 0, 0]), [0, 0, 0], 0.1)
    strong = bodies.damper((a, [0, 0, 0]), (b, [0, 0, 0]), 0.5)
    springs = (
        bodies.spring((a, [0, 0, 0]), [0, 0, 0], 10.0, 1.0),
        bodies.spring((a, [0, 0, 0]), (b, [0, 0, 0]), 5.0, 1.0),
    )
    push = lv.Element(b.coordinates, forces=lambda t: [m.sin(t), 0, 0], name="push")
    everything = [a, b, *springs, weak, strong, push, bodies.gravity(a), bodies.gravity(b)]
    return lv.System(bodies.coordinates([a, b]), elements=everything)


@pytest.mark.parametrize("scheme", ["livens-em", "livens-midpoint"])
def test_accounts_add_up(scheme):
    run = lv.simulate(chain(), [1.2, 0, 0, 2.5, 0.1, 0], [0, 1, 0, 0, 0, 0], scheme=scheme, h=0.01, t_end=3.0)
    for name in ("kinetic_energy", "potential_energy", "dissipated_energy", "supplied_energy"):
        accounts, whole = run.observe(name, by="element"), run.observe(name)
        assert np.abs(sum(accounts.values()) - whole).max() < 1e-12 * max(np.abs(whole).max(), 1.0), name
    assert set(run.observe("kinetic_energy", by="element")) == {"a", "b"}
    lost = run.observe("dissipated_energy", by="element")
    assert len(lost) == 2 and all(np.all(np.diff(account) >= 0) for account in lost.values())
    assert set(run.observe("supplied_energy", by="element")) == {"push"}


def test_what_a_single_damper_loses():
    """``d (v_b - v_a)^2`` integrated: the account is as accurate as the run."""
    a = lv.Element("x", kinetic=lambda v: v @ v / 2, potential=lambda q: q @ q / 2, name="a")
    one = lv.Element("x", dissipation=lambda v: 0.1 * (v @ v), name="one")
    two = lv.Element("x", dissipation=lambda v: 0.3 * (v @ v), name="two")
    run = lv.simulate(lv.System("x", elements=[a, one, two]), [1.0], [0.0], scheme="livens-em", h=0.01, t_end=5.0)
    lost = run.observe("dissipated_energy", by="element")
    assert lost["two"] == pytest.approx(3 * lost["one"], rel=1e-12)
    steps = run.observe("dissipated_energy", by="element", increments=True)
    assert steps["one"] == pytest.approx(np.diff(lost["one"]))


def test_moving_constraints_supply_energy():
    """A point on a ring that is driven around: all its kinetic energy comes from the constraint."""
    mass = lv.Element(["x", "y"], kinetic=lambda v: v @ v / 2, name="mass")
    drive = lv.Element("x", constraints=lambda q, t: [q[0] - t**2 / 2], name="drive")
    still = lv.Element("y", constraints=lambda q: [q[0]], name="still")
    run = lv.simulate(
        lv.System("x y", elements=[mass, still, drive]), [0, 0], [0, 0], scheme="livens-em", h=0.01, t_end=2.0
    )
    supplied = run.observe("supplied_energy", by="element")
    assert set(supplied) == {"drive"}
    assert supplied["drive"] == pytest.approx(run.supplied_energy, abs=1e-12)
    assert supplied["drive"][-1] == pytest.approx(2.0, rel=0.02)


def test_what_has_no_account():
    run = lv.simulate(chain(), [1.2, 0, 0, 2.5, 0.1, 0], [0, 1, 0, 0, 0, 0], scheme="livens-em", h=0.01, t_end=0.1)
    with pytest.raises(lv.InputError, match="elements have no energy 'dissipated_energ'"):
        run.observe("dissipated_energ", by="element")
    with pytest.raises(lv.InputError, match="by must be None"):
        run.observe("kinetic_energy", by="body")
    top = lv.simulate(lv.problems.load("spring-chain"), t_end=1.0)
    with pytest.raises(lv.InputError, match="only a System has elements"):
        top.observe("dissipated_energy", by="element")
