"""Bad input is refused before anything runs, in a sentence that says which field and what is allowed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m


def pendulum(**changes):
    description = dict(
        coordinates="x y",
        kinetic=lambda v, k: 0.5 * k.m * (v @ v),
        potential=lambda q, k: k.m * k.g * q[1],
        constraints=lambda q, k: [0.5 * (q @ q - k.l**2)],
        parameters=dict(m=1.0, l=1.0, g=9.81),
    )
    return lv.System(**(description | changes))


def halve(x):
    while x > 1e-3:
        x = x / 2
    return x


def run(system=None, **changes):
    settings = dict(q0=[-1, 0], v0=[0, 0], scheme="livens-em", h=0.01, t_end=0.1)
    return lv.simulate(system or pendulum(), **(settings | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(scheme="livens-me"), "unknown scheme 'livens-me'; did you mean 'livens-em'?"),
        (dict(scheme=3), "scheme must be a name"),
        (dict(h=0), "h must be greater than 0, got 0"),
        (dict(h=-0.1), "h must be greater than 0"),
        (dict(h=float("nan")), "h must be a finite number"),
        (dict(h="fast"), "h must be a number, got 'fast'"),
        (dict(h=None, scheme="hamilton-midpoint"), "h is missing: give a number, the step size in seconds"),
        (dict(h=None, scheme="lobatto-iiia-iiib-4"), "or tolerance=1e-6 for adaptive steps"),
        (dict(dt=0.1), "simulate has no argument 'dt'; did you mean 'h'?"),
        (dict(rtol=1e-6), "simulate has no argument 'rtol'; did you mean 'tolerance'?"),
        (dict(h=1e-300), "too small"),
        (dict(t_end=-1), "t_end must lie after t0 = 0"),
        (dict(t_end=float("inf")), "t_end must be a finite number"),
        (dict(t_end=None), "t_end is missing"),
        (dict(q0=[np.nan, 0]), "q0 must be finite, but q0[x] is nan"),
        (dict(v0=[0, np.inf]), "v0 must be finite, but v0[y] is inf"),
        (dict(q0=[1, 2, 3]), "q0 must be 2 numbers (one per coordinate), got 3 numbers"),
        (dict(q0=[[1, 2]]), "q0 must be 2 numbers"),
        (dict(q0="left"), "q0 must be 2 numbers"),
        (dict(q0=None), "q0 is missing"),
        (dict(every=0), "every must be a whole number of at least 1"),
        (dict(every=1.5), "every must be a whole number"),
        (dict(tier="fusd"), "did you mean 'fused'?"),
        (dict(redundant="keep"), "redundant must be 'error', 'remove' or 'auto'"),
        (dict(parameters=dict(mass=2)), "unknown parameter 'mass'"),
        (dict(parameters=dict(m=[1, 2])), "parameter 'm' must have shape ()"),
        (dict(parameters=dict(m="heavy")), "parameter 'm' must be a number"),
        (dict(parameters=dict(m=np.nan)), "parameter 'm' must be finite"),
        (dict(parameters=[1]), "parameters must map names to values"),
    ],
)
def test_arguments_of_simulate(changes, words):
    with pytest.raises(lv.InputError) as error:
        run(**changes)
    assert words in str(error.value)


def test_not_a_system():
    with pytest.raises(lv.InputError, match="needs a model, such as a System, or a Problem"):
        lv.simulate(lambda q: q, q0=[1], v0=[0], h=0.1, t_end=1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(kinetic=lambda v: v), "kinetic must return one number, got an array of shape (2,)"),
        (dict(potential=lambda q: [q[0]]), "potential must return one number"),
        (dict(potential=lambda q: "high"), "potential must return one number, got str"),
        (dict(potential=lambda q: None), "potential must return one number"),
        (dict(forces=lambda q: [1.0]), "forces must return an array of shape (2,), got an array of shape (1,)"),
        (dict(constraints=lambda q: "tight"), "constraints must return a list of numbers"),
        (dict(kinetic=None, mass=lambda: np.eye(3)), "mass must return an array of shape (2, 2)"),
        (dict(kinetic=None, mass=lambda: [[1, 2], [3, 4]]), "mass must return a symmetric matrix"),
        (dict(mass=lambda: np.eye(2)), "give either kinetic or mass"),
        (dict(kinetic=None), "no kinetic energy"),
        (
            dict(potential=lambda q, v: q[0]),
            "potential has an argument 'v'; a potential function may have the arguments q, t, k",
        ),
        (dict(potential=lambda position: position[0]), "potential has an argument 'position'"),
        (dict(potential=lambda q, k: k.gravity), "potential: unknown parameter 'k.gravity'"),
        (dict(potential=lambda q, k: k.G * q[0]), "unknown parameter 'k.G'"),
        (dict(potential=lambda q: height * q[0]), "potential: NameError: name 'height' is not defined"),  # noqa: F821
        (dict(potential=lambda q: q[2]), "potential: IndexError"),
        (dict(potential=lambda q: halve(q[0])), "potential: a path takes more than 64 decisions on symbols"),
        (dict(potential=5.0), "potential must be a function of q, t, k"),
        (dict(coordinates=0), "at least one coordinate"),
        (dict(coordinates="x x"), "coordinate 'x' is named twice"),
        (dict(coordinates=2.5), "coordinates must be names or a number"),
        (dict(constraint_names=["a", "b"]), "2 constraint names for 1 constraints"),
        (dict(parameters={"1st": 2.0}), "must be a Python identifier"),
        (dict(symmetries=dict(turn=lambda q: [1.0])), "symmetry 'turn' must return a vector of length 2"),
        (dict(symmetries=dict(turn=lambda q: q[7])), "symmetry 'turn': IndexError"),
    ],
)
def test_models(changes, words):
    with pytest.raises(lv.InputError) as error:
        pendulum(**changes)
    assert words in str(error.value)


def test_elements():
    element = lv.Element(["x"], kinetic=lambda v: 0.5 * v[0] ** 2, name="cart")
    with pytest.raises(lv.InputError, match="cart acts on the coordinate 'x', which the system does not have"):
        lv.System("y", elements=[element])
    with pytest.raises(lv.InputError, match="either model functions or elements"):
        lv.System("x", elements=[element], kinetic=lambda v: v[0] ** 2)
    with pytest.raises(lv.InputError, match="at least one element"):
        lv.System("x", elements=[])
    with pytest.raises(lv.InputError, match="names a coordinate twice"):
        lv.System("x", elements=[lv.Element([0, 0], kinetic=lambda v: v[0] ** 2)])


def test_inconsistent_start_names_the_constraint_and_offers_the_nearest():
    with pytest.raises(lv.InputError) as error:
        run(q0=[-1, 0.5])
    assert "constraint 'g[0]' is violated on position level by 0.125" in str(error.value)
    assert "(-0.894427191, 0.447213595)" in str(error.value) and "project=True" in str(error.value)
    with pytest.raises(lv.InputError, match="violated on velocity level by -1"):
        run(v0=[1, 2])
    with pytest.raises(lv.InputError, match="no consistent q0 was found nearby"):
        run(pendulum(constraints=lambda q: [q @ q + 1]))


def test_projection_moves_to_the_nearest_consistent_state():
    result = run(q0=[-1, 0.5], v0=[1, 2], project=True)
    assert np.allclose(result.q[0], np.array([-1, 0.5]) / np.hypot(1, 0.5), atol=1e-15)
    assert abs(result.q[0] @ result.v[0]) < 1e-15
    # nothing moves if it is consistent already
    assert np.array_equal(run(project=True).q[0], [-1, 0])


def test_redundant_constraints():
    """Named, and left out on request: the motion is that without them."""
    system = pendulum(
        constraints=lambda q: [0.5 * (q @ q - 1), (q @ q) ** 2 - 1], constraint_names=["rod", "same rod again"]
    )
    with pytest.raises(lv.InputError, match="redundant constraints: 'same rod again' follows from the others"):
        run(system)
    result = run(system, redundant="remove")
    assert np.abs(result.q - run().q).max() < 1e-13
    assert not result.multipliers[:, 1].any() and result.info.dropped == (1,)


def test_a_singular_position_is_not_redundant():
    """All bars in line: the constraints' derivatives are dependent there, but not nearby."""
    system = lv.problems.load("n-four-bar", N=1).model

    def position(angle):
        c, s = np.cos(angle), np.sin(angle)
        lower = [[i + c / 2, s / 2, c, s, -s, c] for i in range(2)]
        return np.concatenate([*lower, [c + 0.5, s, 1, 0, 0, 1]])

    with pytest.raises(lv.IntegrationError, match="If this is a singular configuration, start slightly away from it"):
        lv.simulate(system, position(0.0), np.zeros(18), h=1e-3, t_end=1e-2)
    beside = lv.simulate(system, position(1e-6), np.zeros(18), h=1e-3, t_end=1e-2)
    assert beside.summary.max_constraint < 1e-13


def test_initial_multipliers_and_momenta():
    result = run(q0=[0, -1], v0=[2, 0])
    assert result.multipliers[0] == pytest.approx(9.81 + 4)  # lam l = m g + m v^2/l
    assert np.array_equal(result.p[0], [2, 0])


def test_singular_model_is_explained():
    """A coordinate that nothing determines."""
    system = lv.System("x y", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: q[0] ** 2)
    with pytest.raises(lv.IntegrationError, match="does not determine the unknowns of: balance of momentum of y"):
        lv.simulate(system, [1, 0], [0, 0], h=0.1, t_end=1)


def test_a_model_that_is_not_finite_at_the_start():
    system = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: m.log(q[0]))
    with pytest.raises(lv.InputError, match="potential energy of the system cannot be evaluated"):
        lv.simulate(system, [-1], [0], h=0.1, t_end=1)


def test_a_step_that_does_not_converge():
    """A force that jumps: no solution at the jump. Time, residual, equation, what to try; the steps before are kept."""
    system = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, forces=lambda q: [-10 * m.sign(q[0])])
    with pytest.raises(lv.IntegrationError) as error:
        lv.simulate(system, [1.0], [0.0], h=0.1, t_end=5)
    message = str(error.value)
    for words in ("the step from t = ", "failed", "balance of momentum of x", "residual", "Try a smaller step"):
        assert words in message
    kept = error.value.result
    assert kept.status == "failed" and 2 < len(kept) < 51 and kept.t[-1] == pytest.approx(0.1 * (len(kept) - 1))


def test_problems():
    with pytest.raises(lv.InputError, match="did you mean 'double-four-bar'"):
        lv.problems.load("double-fourbar")
    with pytest.raises(lv.InputError, match="has no option 'length'"):
        lv.problems.load("simple-pendulum", length=2)
    with pytest.raises(lv.InputError, match="option 'N' must be a whole number"):
        lv.problems.load("n-four-bar", N=2.5)
    with pytest.raises(lv.InputError, match="option 'N' must be at least 1"):
        lv.problems.load("n-four-bar", N=0)
    with pytest.raises(lv.InputError, match="option 'm' must be 2 finite numbers"):
        lv.problems.load("mass-spring-redundant", m=1.0)
    with pytest.raises(lv.InputError, match="option 'l' must be a finite number"):
        lv.problems.load("simple-pendulum", l="long")


def test_observables():
    result = run()
    with pytest.raises(lv.InputError, match="did you mean 'kinetic_energy'"):
        result.observe("kinetc_energy")
    with pytest.raises(lv.InputError, match="declares no symmetry, so 'angular_momentum' is not defined"):
        result.observe("angular_momentum")
    singular = lv.simulate(lv.problems.load("mass-spring-redundant"))
    with pytest.raises(lv.InputError, match="the mass matrix is singular"):
        singular.observe("hamiltonian")


def test_schemes_that_do_not_fit_say_why():
    """Requirements are declared by the scheme and checked against the system."""
    from livens.schemes.core.scheme import Requirement, Scheme
    from livens.schemes.energy_momentum.livens_midpoint import LivensMidpoint

    class NeedsRegularMass(LivensMidpoint):
        requires = (Requirement("regular_mass", "a regular mass matrix"),)

    assert isinstance(NeedsRegularMass(), Scheme)
    system = lv.problems.load("mass-spring-redundant").model
    with pytest.raises(lv.InputError, match=r"needs a regular mass matrix; compatible schemes: livens-em"):
        lv.schemes.check_compatible(NeedsRegularMass(), system)


anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.floats(), max_size=4),
    st.lists(st.lists(st.floats(), max_size=2), max_size=2),
    st.dictionaries(st.text(max_size=3), st.floats(), max_size=2),
)  # fmt: skip


@given(name=st.sampled_from(["q0", "v0", "h", "t_end", "t0", "parameters", "every", "scheme"]), value=anything)
@settings(max_examples=150, deadline=None)
def test_any_argument_is_used_or_refused(name, value):
    """Whatever is passed, the answer is a result or one of livens' own errors, never another exception."""
    system = pendulum()
    if name == "h" and isinstance(value, float) and 0 < value < 1e-4:
        return  # a fine run, but a long one
    if name == "t_end" and isinstance(value, (int, float)) and value > 10:
        return
    if name == "t0" and isinstance(value, (int, float)) and value < -10:
        return
    try:
        result = run(system, **{name: value})
    except lv.LivensError as error:
        assert len(str(error)) > 10
    else:
        assert np.all(np.isfinite(result.q))


def test_negative_masses_as_parameters_are_refused_by_name():
    message = "parameter 'm' = -1: the kinetic energy is negative"
    with pytest.raises(lv.InputError, match=message):
        run(parameters=dict(m=-1.0, g=5.0))
    prepared = lv.prepare(pendulum(), q0=[-1, 0], v0=[0, 0], scheme="livens-em", h=0.01, t_end=0.1)
    with pytest.raises(lv.InputError, match=message):
        prepared.run(parameters=dict(m=-1.0))
    with pytest.raises(lv.InputError, match=message):
        lv.ensemble(
            pendulum(),
            q0=[-1, 0],
            v0=[0, 0],
            scheme="livens-em",
            h=0.01,
            t_end=0.1,
            parameters=dict(m=[1.0, -1.0, 2.0]),
        )
    assert prepared.run(parameters=dict(m=2.0, g=-9.81)).status == "complete"  # other parameters may be negative


def test_negative_moments_of_inertia_as_parameters_are_refused_by_name():
    mb = lv.Multibody()
    rod = mb.rod("rod", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
    mb.revolute("pin", rod, mb.ground, at=[0, 0, 0], axis=[0, 1, 0])
    with pytest.raises(lv.InputError, match=r"parameter 'rod\.mass' = -1: the kinetic energy"):
        mb.simulate(h=0.01, t_end=0.1, parameters={"rod.mass": -1.0})
    with pytest.raises(lv.InputError, match=r"parameter 'rod\.euler' = .*: the kinetic energy"):
        mb.simulate(h=0.01, t_end=0.1, parameters={"rod.euler": (-0.1 * np.eye(3)).tolist()})


def test_models_with_a_negative_mass_run_on_purpose():
    system = pendulum(kinetic=lambda v, k: 0.5 * k.m * (v[0] ** 2 - v[1] ** 2), constraints=None)
    assert run(system, parameters=dict(m=-2.0)).status == "complete"  # one negative eigenvalue, with either sign
    added = pendulum(
        kinetic=lambda v, k: 0.5 * (k.m + k.added) * (v @ v), parameters=dict(m=1.0, added=0.0, g=9.81, l=1)
    )
    assert run(added, parameters=dict(added=-0.5)).status == "complete"  # the sum is positive
    with pytest.raises(lv.InputError, match=r"parameter 'added' = -1\.5: the kinetic"):
        run(added, parameters=dict(added=-1.5))
