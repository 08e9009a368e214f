"""Parameters of elements are changed at run time: the trajectory is that of a model built with them, bit for bit."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import livens as lv
from livens import bodies
from livens.engine.codegen import jit
from livens.port_hamiltonian import from_system, interconnect

DATA = Path(__file__).parents[2] / "data" / "runs"


def chain(mass=1.0, stiffness=30.0, g=(0.0, -9.81)):
    """Two particles on springs, with their weights."""
    a, b = bodies.particle("a", mass, dimension=2), bodies.particle("b", 2.0, dimension=2)
    elements = [
        a,
        b,
        bodies.spring([0.0, 0.0], (a, [0, 0]), stiffness, 1.0),
        bodies.spring((a, [0, 0]), (b, [0, 0]), 40.0, 1.0),
        bodies.gravity(a, g),
        bodies.gravity(b),
    ]
    return lv.System(bodies.coordinates([a, b]), elements=elements)


def started(**changes):
    return dict(q0=[1.0, 0.0, 2.0, 0.5], v0=np.zeros(4), h=0.01, t_end=0.5, **changes)


CHANGES = {"a.mass": 3.0, "spring ground-a.stiffness": 55.0, "weight of a.gravity": [1.0, -5.0]}
BUILT = dict(mass=3.0, stiffness=55.0, g=(1.0, -5.0))


def test_names():
    system = chain()
    assert list(system.parameters) == [
        "a.mass",
        "b.mass",
        "spring ground-a.X",
        "spring ground-a.Y",
        "spring ground-a.stiffness",
        "spring ground-a.length",
        "spring a-b.X",
        "spring a-b.Y",
        "spring a-b.stiffness",
        "spring a-b.length",
        "weight of a.gravity",
        "weight of a.X",
        "weight of b.gravity",
        "weight of b.X",
    ]
    assert system.parameter_count == len(system.parameter_vector()) == 24
    assert np.array_equal(system.parameter_vector(CHANGES), chain(**BUILT).parameter_vector())


@pytest.mark.parametrize("scheme", ["livens-em", "livens-midpoint", "gauss-2", "stormer-verlet"])
def test_changed_as_if_built_so(scheme):
    """Nothing is compiled for it: a run with other values uses the same step."""
    system = chain()
    lv.simulate(system, scheme=scheme, **started())
    before = jit.compilations
    changed = lv.simulate(system, scheme=scheme, parameters=CHANGES, **started())
    assert jit.compilations == before
    built = lv.simulate(chain(**BUILT), scheme=scheme, **started())
    for name in ("q", "v", "p"):
        assert np.array_equal(getattr(changed, name), getattr(built, name))
    assert changed.summary == built.summary and changed.info.parameters == {
        "a.mass": 3.0,
        "spring ground-a.stiffness": 55.0,
        "weight of a.gravity": [1.0, -5.0],
    }


def test_files_say_what_was_changed(tmp_path):
    system, file = chain(), tmp_path / "run.h5"
    whole = lv.simulate(system, parameters=CHANGES, **started())
    lv.simulate(system, parameters=CHANGES, out=file, **(started() | dict(t_end=0.25)))
    assert lv.load(file, system=chain()).parameter_vector.tolist() == system.parameter_vector(CHANGES).tolist()
    resumed = lv.resume(file, system=chain(), t_end=0.5)
    assert np.array_equal(resumed.q, whole.q)
    assert np.array_equal(resumed.observe("total_energy"), whole.observe("total_energy"))


def test_a_file_written_before_elements_had_names(tmp_path):
    """It names the shared parameters alone: the others have the model's own values. It loads and it resumes."""
    shutil.copy(DATA / "bodies.h5", tmp_path / "bodies.h5")
    old = lv.load(tmp_path / "bodies.h5")
    assert old.info.problem == "heavy-top" and not any("." in name for name in old.info.parameters)
    assert np.array_equal(
        old.parameter_vector, lv.problems.load("heavy-top", **old.info.problem_options).model.parameter_vector()
    )
    end = old.info.t_end + 10 * old.info.h
    assert lv.resume(tmp_path / "bodies.h5", t_end=end).t[-1] == pytest.approx(end)


def test_a_body_that_only_turns_has_no_mass():
    """Its energy knows none, so that of its weight has a name of its own; the vector is laid out as it was."""
    names = list(lv.problems.load("heavy-top").model.parameters)
    assert names == ["top.inertia", "weight of top.mass", "weight of top.gravity", "weight of top.X"]


def test_shared_and_own_are_seen_together():
    def energy(v, k):
        return (k.mass + k.extra) * v[0] ** 2 / 2

    def system(extra=1.0, mass=2.0):
        cart = lv.Element(["x"], kinetic=energy, parameters=dict(mass=mass), name="cart")
        return lv.System("x", elements=[cart], parameters=dict(extra=extra))

    run = lv.simulate(system(), [0.0], [1.0], h=0.1, t_end=0.2, parameters={"extra": 5.0, "cart.mass": 4.0})
    assert run.p[-1, 0] == pytest.approx(9.0) and run.info.parameters == {"extra": 5.0, "cart.mass": 4.0}
    assert "parameters       extra = 1.0" in str(system())


# -- other forms of the same system -----------------------------------------------------------------------------------
def test_hamiltonian():
    model, built = lv.Hamiltonian.from_system(chain()), lv.Hamiltonian.from_system(chain(**BUILT))
    assert model.parameters == chain().parameters
    assert model.energy([1, 0, 2, 0], [1, 1, 1, 1], **CHANGES) == built.energy([1, 0, 2, 0], [1, 1, 1, 1])
    runs = [
        lv.simulate(m, q0=[1.0, 0, 2, 0], p0=np.ones(4), scheme="stormer-verlet", h=0.01, t_end=0.1, parameters=k)
        for m, k in ((model, CHANGES), (built, None))
    ]
    assert np.array_equal(runs[0].q, runs[1].q)


def test_formulations():
    model, built = (
        lv.MultibodyEquations.from_system(system).formulate("index-3") for system in (chain(), chain(**BUILT))
    )
    assert model.parameters == chain().parameters
    runs = [
        lv.simulate(m, scheme="radau-iia-2", parameters=k, **started()) for m, k in ((model, CHANGES), (built, None))
    ]
    assert np.array_equal(runs[0].x, runs[1].x)


def test_ports():
    """Functions see identifiers; a run may use the names of the elements too, and what follows them follows."""
    model, built = from_system(chain(), inputs="a.x"), from_system(chain(**BUILT), inputs="a.x")
    assert "a_mass" in model.parameters and "weight_of_a_mass" in model.parameters
    assert np.array_equal(model.parameter_vector(CHANGES), built.parameter_vector())
    assert np.array_equal(lv.port_hamiltonian.autonomous(model).parameter_vector(CHANGES), built.parameter_vector())
    assert np.array_equal(model.with_input([0.0]).parameter_vector(CHANGES), built.parameter_vector())
    with pytest.raises(lv.InputError, match=r"did you mean 'a\.mass'"):
        model.parameter_vector({"a.mas": 1.0})


def test_ports_of_joined_systems():
    def cart(name, mass):
        body = lv.Element([name], kinetic=lambda v, k: k.mass * v[0] ** 2 / 2, parameters=dict(mass=mass), name=name)
        return from_system(lv.System([name], elements=[body]), inputs=name)

    joined = interconnect(cart("p", 1.0), cart("q", 2.0), M=[[0, 1], [-1, 0]], N=[[1, 0], [0, 1]])
    assert joined.parameter_vector({"p.mass": 5.0, "q.mass": 7.0}).tolist() == [5.0, 7.0]


def test_observables_see_the_changed_values():
    run = lv.simulate(chain(), parameters=CHANGES, **started())
    energy = 0.5 * 3.0 * (run.v[:, :2] ** 2).sum(axis=1) + 0.5 * 2.0 * (run.v[:, 2:] ** 2).sum(axis=1)
    assert run.observe("kinetic_energy") == pytest.approx(energy, rel=1e-14)


def test_constants_belong_to_the_type():
    """They are found in k as parameters are, but no run can change them, and other constants are another model."""

    def spring(q, k):
        return k.c * q[0] ** 2 / 2

    def system(c):
        pull = lv.Element(["x"], kinetic=lambda v: v[0] ** 2 / 2, potential=spring, constants=dict(c=c), name="spring")
        return lv.System("x", elements=[pull])

    ends = [lv.simulate(system(c), [1.0], [0.0], h=1e-3, t_end=1.0).q[-1, 0] for c in (1.0, 4.0)]
    assert ends == pytest.approx(np.cos([1.0, 2.0]), abs=1e-5)
    assert system(1.0).parameters == {}
    with pytest.raises(lv.InputError, match="must map names to values"):
        lv.Element(["x"], constants=3)


def test_elements_of_one_system_with_other_constants_are_of_another_type():
    def spring(q, k):
        return k.c * q[0] ** 2 / 2

    springs = [
        lv.Element([name], kinetic=kinetic, potential=spring, constants=dict(c=c), name=f"spring {name}")
        for name, c in (("x", 1.0), ("y", 4.0), ("z", 1.0))
    ]
    system = lv.System("x y z", elements=springs)
    assert system.element_types[0] is system.element_types[2] is not system.element_types[1]
    end = lv.simulate(system, [1.0] * 3, [0.0] * 3, h=1e-3, t_end=1.0).q[-1]
    assert end == pytest.approx(np.cos([1.0, 2.0, 1.0]), abs=1e-5)


def kinetic(v):
    return v[0] ** 2 / 2
