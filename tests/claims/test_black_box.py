"""Expensive forces that are compiled elsewhere, and steps of `semi-explicit` whose sizes follow a tolerance."""

import ctypes
import functools

import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens.engine.codegen import jit
from livens.engine.steppers.reference import ReferenceSolver
from stepping import estimated_error

DOUBLES = ctypes.POINTER(ctypes.c_double)
SCHEMES = ("semi-explicit:0.5,0.5", "semi-explicit:0.5,0.8", "semi-explicit-2:0.5")
START = dict(q0=[1.0, 0.3], p0=[0.0, 0.2], t_end=2.0)
CALLS = [0]


@ctypes.CFUNCTYPE(None, DOUBLES, DOUBLES, DOUBLES, DOUBLES, DOUBLES)
def force(q, v, t, k, out):
    CALLS[0] += 1
    out[0] = -k[0] * q[0] - 0.1 * v[1] + 0.2 * t[0]
    out[1] = -k[1] * q[1] * q[1] * q[1]


def model(expensive, **more):
    return lv.Hamiltonian(
        "x y",
        kinetic=lambda p: p[0] ** 2 / 2 + p[1] ** 2,
        potential=lambda q: 2 * (q[0] - q[1]) ** 2,
        forces=[lv.Force(expensive, expensive=True), lv.Force(lambda v: -0.1 * v)],
        parameters=dict(s=[4.0, 3.0]),
        **more,
    )


@functools.cache
def closed():
    return model(lv.ExternalForce(force))


@functools.cache
def seen():
    return model(lambda q, v, t, k: [-k.s[0] * q[0] - 0.1 * v[1] + 0.2 * t, -k.s[1] * q[1] * q[1] * q[1]])


@functools.cache
def plain():
    """Without anything that depends on velocities: of order 2."""
    return lv.Hamiltonian(
        "x y",
        kinetic=lambda p: p[0] ** 2 / 2 + p[1] ** 2,
        potential=lambda q: 2 * (q[0] - q[1]) ** 2,
        forces=lv.Force(lambda q: [-4 * q[0], -3 * q[1] ** 3], expensive=True),
    )


# -- the same motion as if it were known ------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("tier", ["fused", "reference"])
def test_the_same_bits_and_as_many_evaluations_as_steps(scheme, tier):
    """One call at the start and one in every step; not one by Newton's method, which solves for the cheap forces."""
    h = 0.01 if tier == "fused" else 0.1
    CALLS[0] = 0
    one = lv.simulate(closed(), **START, scheme=scheme, h=h, tier=tier)
    assert CALLS[0] == one.statistics.force_evaluations == 1 + one.statistics.steps
    assert one.statistics.newton_iterations > 0
    two = lv.simulate(seen(), **START, scheme=scheme, h=h, tier=tier)
    for name in ("q", "p", "supplied_energy"):
        assert np.abs(getattr(one, name) - getattr(two, name)).max() < 1e-14, name
    changed = dict(parameters={"s": [9.0, 1.0]})
    one, two = (lv.simulate(m, **START, scheme=scheme, h=h, tier=tier, **changed) for m in (closed(), seen()))
    assert np.abs(one.q - two.q).max() < 1e-14 and np.abs(one.q - lv.simulate(seen(), **START, h=h).q).max() > 0.1


def test_a_bare_address():
    """A function of another compiler, known by where it stands; and objects that say where it does, as Numba's."""
    text = """
    define void @spring(ptr %q, ptr %v, ptr %t, ptr %k, ptr %out) {
      %x = load double, ptr %q
      %f = fmul double %x, 0xC010000000000000
      store double %f, ptr %out
      ret void
    }"""
    code = jit.compile_function(text, "spring")

    class Numba:
        address = code.address

    for given in (code.address, np.int64(code.address), Numba()):
        oscillator = lv.Hamiltonian(
            "x",
            kinetic=lambda p: p @ p / 2,
            forces=lv.Force(lv.ExternalForce(given, depends_on_velocity=False), expensive=True),
        )
        run = lv.simulate(oscillator, q0=[1.0], p0=[0.0], scheme="semi-explicit:0.5,0.5", h=1e-3, t_end=1.0)
        assert run.q[-1, 0] == pytest.approx(np.cos(2.0), abs=2e-6)
        assert lv.ExternalForce(given)([0.5], [0.0], 0.0, []) == pytest.approx([-2.0])


def test_who_cannot_use_it():
    for scheme in (
        "gauss-2",
        "stormer-verlet",
        "lobatto-iiia-iiib-2",
        "taylor",
        "imex",
        "yoshida-4:semi-explicit:0.5,0.5",
    ):
        with pytest.raises(lv.InputError, match="external force"):
            lv.simulate(closed(), **START, scheme=scheme, h=0.1)
    with pytest.raises(lv.InputError, match="external force: no scaling"):
        lv.simulate(
            closed(), **START, scheme="semi-explicit:0.5,0.5", h=0.1, scaling=lv.scaling.stiffness_estimate(1.0)
        )
    for wrong in (lambda q: q, 0, "spring", None):
        with pytest.raises(lv.InputError, match="an external force is a ctypes function"):
            lv.ExternalForce(wrong)
    with pytest.raises(lv.ModelError, match="an external force is an expensive force"):
        lv.Hamiltonian("x", kinetic=lambda p: p @ p / 2, forces=lv.Force(lv.ExternalForce(force)))
    with pytest.raises(lv.InputError, match="external force"):
        lv.ensemble(closed(), q0=[[1.0, 0.3]] * 4, p0=[0.0, 0.2], scheme=SCHEMES[0], h=0.1, t_end=1.0)
    with pytest.raises(lv.InputError, match="no derivatives"):
        lv.study.longest_step(closed(), q0=[1.0, 0.3], v0=[0.0, 0.2], scheme=SCHEMES[0])


def body(**more):
    """A body that turns, with a ball joint, as frame coordinates, and a force on the joint's other side."""
    problem = lv.problems.load("lie-heavy-top")
    system = problem.model
    given = dict(parameters=system.model_parameters.values, frames=True)
    elements = [*system.elements, *more.pop("elements", ())]
    return lv.System(system.coordinates, elements=elements, **given, **more), problem


@ctypes.CFUNCTYPE(None, DOUBLES, DOUBLES, DOUBLES, DOUBLES, DOUBLES)
def drag(q, v, t, k, out):
    CALLS[0] += 1
    for i in range(12):
        out[i] = 0.0
    for i in range(3):
        out[i] = 3.0 * q[1] - 0.2 * v[i] + t[0]
        out[3 + i] = 0.4 * q[i]


@pytest.mark.parametrize("scheme", ["semi-explicit:0.5,0.5", "semi-explicit-2:0.5"])
def test_bodies_that_turn_on_joints(scheme):
    """The force has the coordinates of all bodies, and acts on them, along what their joints leave free."""
    dragged = lv.Element(
        range(12),
        forces=lambda q, v, t: [
            *(3.0 * q[1] - 0.2 * v[i] + t for i in range(3)),
            *(0.4 * q[i] for i in range(3)),
            *[0.0] * 6,
        ],
        expensive=True,
    )
    (box, problem), (seen_through, _) = body(external_force=lv.ExternalForce(drag)), body(elements=[dragged])
    CALLS[0] = 0
    given = dict(q0=problem.q0, v0=problem.v0, scheme=scheme, h=1e-3, t_end=0.05)
    one = lv.simulate(box, **given)
    assert CALLS[0] == one.statistics.force_evaluations == 1 + one.statistics.steps
    two = lv.simulate(seen_through, **given)
    assert np.abs(one.q - two.q).max() < 1e-13 and np.abs(one.supplied_energy - two.supplied_energy).max() < 1e-11
    assert np.abs(one.q - lv.simulate(problem.model, **{**given, "scheme": "lie-em"}).q).max() > 1e-5
    for other in ("gauss-2", "imex", "ggl-em"):
        with pytest.raises(lv.InputError, match="not an external force"):
            lv.simulate(box, **{**given, "scheme": other})


def test_systems_without_joints():
    """In Hamilton's form, so that steps may follow a tolerance."""
    free = dict(kinetic=lambda v: v @ v / 2, potential=lambda q: 2 * (q[0] - q[1]) ** 2, parameters=dict(s=[4.0, 3.0]))
    box = lv.System("x y", **free, external_force=lv.ExternalForce(force))
    start = dict(q0=[1.0, 0.3], v0=[0.0, 0.2], scheme="semi-explicit:0.5,0.5", t_end=1.0)
    same = lv.Hamiltonian(
        "x y",
        kinetic=lambda p: p @ p / 2,
        potential=free["potential"],
        forces=lv.Force(lv.ExternalForce(force), expensive=True),
        parameters=free["parameters"],
    )
    one, two = (lv.simulate(m, h=0.01, **start) for m in (box, same))
    assert np.abs(one.q - two.q).max() < 1e-14
    CALLS[0] = 0
    run = lv.simulate(box, control=lv.StepControl(tolerance=1e-5), **start)
    assert CALLS[0] == 1 + run.statistics.steps and np.abs(run.q[-1] - one.q[-1]).max() < 1e-3
    with pytest.raises(lv.ModelError, match=r"must be a livens\.ExternalForce"):
        lv.System("x y", **free, external_force=force)
    with pytest.raises(lv.InputError, match="not an external force"):
        lv.simulate(box, **{**start, "scheme": "ggl-em"}, h=0.1)


# -- steps that follow a tolerance ------------------------------------------------------------------------------------
def estimate_after(model, scheme, h, steps=5):
    """The largest error that the last of some equal steps estimates, and the order that it says."""
    scheme = lv.schemes.get(scheme).with_error_control()
    e, k = scheme.equations(model).to_single_graph(), model.parameter_vector()
    start = model.initial_state({name: START[name] for name in ("q0", "p0")}, k, 0.0, False, "error")
    z = e.layout.pack({**start.values, **scheme.initial_scheme_state(model, start.values, k, 0.0, h)})
    solver = ReferenceSolver(e)
    for i in range(steps):
        c = np.concatenate([[h, i * h], k])
        x, _, trouble, _, _ = solver.solve(e.initial_guess_function(z, c).full().ravel(), z, c)
        assert trouble is None
        found, z = estimated_error(e, x, z, c), e.evaluate_final_state(x, z, c)
    return np.abs(found).max(), e.error_estimate.order


@pytest.mark.parametrize(
    ("scheme", "of", "order"),
    [
        ("semi-explicit:0.5,0.5", plain, 2),
        ("semi-explicit:0.5,0.8", plain, 1),
        ("semi-explicit:0.3,0.5", plain, 1),
        ("semi-explicit:0.5,0.5", seen, 1),
        ("semi-explicit-2:0.5", seen, 2),
    ],
)
def test_orders_of_estimates(scheme, of, order):
    steps = [8e-4, 6e-4, 4e-4, 3e-4]
    found, said = zip(*(estimate_after(of(), scheme, h) for h in steps), strict=True)
    assert set(said) == {order} and abs(measured_order(steps, found) - order - 1) < 0.1


def test_steps_and_errors_follow_the_tolerance():
    """An estimate of size h^3: ten times more digits for 4.6 times the steps at a hundredth of the tolerance."""
    exact = lv.simulate(plain(), **START, scheme="taylor")
    tolerances, steps, errors = [1e-4, 1e-5, 1e-6, 1e-7], [], []
    for tolerance in tolerances:
        control = lv.StepControl(tolerance=tolerance)
        run = lv.simulate(plain(), **START, scheme="semi-explicit:0.5,0.5", control=control)
        steps.append(run.statistics.steps)
        errors.append(np.abs(run.q[-1] - exact.q[-1]).max())
        assert run.t[-1] == 2.0 and run.statistics.force_evaluations == 1 + run.statistics.steps
    assert abs(measured_order(tolerances, steps) + 1 / 3) < 0.05
    assert abs(measured_order(tolerances, errors) - 2 / 3) < 0.1 and errors[-1] < 1e-5


def test_steps_that_are_not_taken_evaluate_nothing():
    """A wall that is a hundred times stiffer than what is before it: steps shrink there, some are refused."""
    calls = [0]

    @ctypes.CFUNCTYPE(None, DOUBLES, DOUBLES, DOUBLES, DOUBLES, DOUBLES)
    def walls(q, v, t, k, out):
        calls[0] += 1
        out[0] = 2 / q[0] ** 3 + 2 / (q[0] - 10) ** 3

    box = lv.Force(lv.ExternalForce(walls, depends_on_velocity=False), expensive=True)
    between = lv.Hamiltonian("x", kinetic=lambda p: p @ p / 2, forces=box)
    run = lv.simulate(
        between, q0=[5.0], p0=[-2.0], scheme="semi-explicit:0.5,0.5", t_end=50.0, control=lv.StepControl(tolerance=1e-6)
    )
    assert run.statistics.rejected > 0 and calls[0] == 1 + run.statistics.steps == run.statistics.force_evaluations
    sizes = run.step_size[20:-1]
    assert sizes.max() > 10 * sizes.min()
    energy = run.p[:, 0] ** 2 / 2 + 1 / run.q[:, 0] ** 2 + 1 / (run.q[:, 0] - 10) ** 2
    assert np.abs(energy - energy[0]).max() < 1e-3
    equal = lv.simulate(
        between, q0=[5.0], p0=[-2.0], scheme="semi-explicit:0.5,0.5", t_end=50.0, h=50.0 / run.statistics.steps
    )
    worse = equal.p[:, 0] ** 2 / 2 + 1 / equal.q[:, 0] ** 2 + 1 / (equal.q[:, 0] - 10) ** 2
    assert np.abs(worse - worse[0]).max() > 3 * np.abs(energy - energy[0]).max()


def test_controlled_runs_go_on_bit_for_bit(tmp_path):
    control, given = lv.StepControl(tolerance=1e-5), dict(q0=START["q0"], p0=START["p0"], scheme=SCHEMES[0])
    whole = lv.simulate(plain(), **given, t_end=2.0, control=control)
    lv.simulate(plain(), **given, t_end=0.9, control=control, out=tmp_path / "part.h5")
    again = lv.resume(tmp_path / "part.h5", t_end=2.0, system=plain())
    assert np.array_equal(again.t, whole.t) and np.array_equal(again.q, whole.q)


def test_bodies_and_constraints_take_equal_steps():
    rod = lv.System("x y", kinetic=lambda v: v @ v / 2, constraints=lambda q: [(q @ q - 1) / 2])
    with pytest.raises(lv.InputError, match="needs steps of equal size"):
        lv.simulate(
            rod, q0=[1.0, 0.0], v0=[0.0, 1.0], scheme=SCHEMES[0], t_end=1.0, control=lv.StepControl(tolerance=1e-6)
        )
