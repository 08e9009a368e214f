"""Observables summed over elements, against those of one expression of the whole system."""

import numpy as np
import pytest

import livens as lv
from livens.analysis import conservation, observables, round_off
from livens.engine.observables.element_sums import ElementObservables
from livens.engine.observables.kernel_table import ObservableKernel
from livens.models import element_sums
from livens.models import system as system_module
from livens.run import drift_monitor


def free_chain():
    """Rods with ball joints and nothing else, whose momenta are conserved."""
    mb = lv.Multibody(gravity=[0, 0, 0])
    before = mb.rod("rod0", a=[0, 0, 0], b=[1, 0, 0], mass=1.0, radius=0.1)
    for i in range(1, 4):
        rod = mb.rod(f"rod{i}", a=[i, 0, 0], b=[i + 1, 0, 0], mass=1.0, radius=0.1)
        mb.spherical(f"ball{i}", before, rod, at=rod.a)
        before = rod
    return mb.system


CASES = {
    "n-four-bar": lambda: lv.problems.load("n-four-bar", N=3).model,
    "double-four-bar-damped": lambda: lv.problems.load("double-four-bar-damped").model,
    "heavy-top": lambda: lv.problems.load("heavy-top").model,  # quaternions
    "car-axis": lambda: lv.problems.load("car-axis").model,  # constraints that depend on time
    "four-particles": lambda: lv.problems.load("four-particles").model,  # momenta
    "free chain": free_chain,
}


def states(system, rows=5):
    random = np.random.default_rng(1)
    return random.uniform(0, 1, rows), random.standard_normal((rows, 3 * system.n + 2 + system.m))


@pytest.mark.parametrize("case", CASES)
def test_what_is_watched_is_the_same(case):
    system = CASES[case]()
    t, Z = states(system)
    k = system.parameter_vector()
    momenta = tuple(system.symmetries)
    for energy in ("generalized_energy", "total_energy"):
        sums, sizes = element_sums.monitored_sums(system, energy, momenta)
        whole, of_whole = drift_monitor.monitored_columns(system, energy, momenta)
        found, expected = ElementObservables(sums)(t, Z, k), ObservableKernel(system, whole)(t, Z, k)
        assert np.allclose(found, expected, rtol=1e-12, atol=1e-12) and np.array_equal(sizes, of_whole)


@pytest.mark.parametrize("case", CASES)
def test_observables_and_their_round_off_are_the_same(monkeypatch, case):
    system = CASES[case]()
    t, Z = states(system)
    k, n = system.parameter_vector(), system.n
    block = {"t": t, "q": Z[:, :n], "v": Z[:, n : 2 * n], "p": Z[:, 2 * n : 3 * n], "multipliers": Z[:, 3 * n + 2 :]}
    names = [*system.view.observable_names, "constraint_forces", observables.MAGNITUDE, element_sums.MAX_VELOCITY]
    names = [name for name in names if name != "hamiltonian" or system.regular_augmented_mass]
    for name in names:
        whole = observables._expression_column(system, name)(block, k)
        monkeypatch.setattr(system_module, "SPARSE_THRESHOLD", 0)
        summed = observables._element_sum_column(system, name)
        monkeypatch.undo()
        assert np.allclose(summed(block, k), whole, rtol=1e-11, atol=1e-11), name
    watched = [name for name in system.view.observable_names if name != "hamiltonian"]
    state = [block[part] for part in "qvp"]
    expected = round_off._terms_from_expressions(system, watched, k)([part[0] for part in state], t[0])
    monkeypatch.setattr(system_module, "SPARSE_THRESHOLD", 0)
    found = round_off._terms_from_element_sums(system, watched, k)([part[0] for part in state], t[0])
    # terms of several elements on one coordinate cannot cancel here: a bound, and not a loose one
    assert np.all(found >= expected * (1 - 1e-12)) and np.all(found <= 4 * expected + 1e-12)


def test_sums_are_as_good_over_many_elements_as_over_few():
    """Energies of very different size, which plain summation would lose."""
    particle = lambda i: lv.Element([f"x{i}"], kinetic=lambda v, k: 0.5 * k.m * v[0] ** 2, parameters=dict(m=m[i]))  # noqa: E731
    m = [1e16, *[1.0] * 999, -1e16]  # not physical, but exact
    elements = [particle(i) for i in range(len(m))]
    system = lv.System([f"x{i}" for i in range(len(m))], elements=elements)
    table = ElementObservables(element_sums.element_sums(system, [element_sums.Reduction(lambda e: e.element_type.T)]))
    z = np.concatenate([np.zeros(system.n), np.full(system.n, np.sqrt(2.0)), np.zeros(system.n)])
    assert table(np.zeros(1), z[None], system.parameter_vector())[0, 0] == pytest.approx(999.0, rel=1e-12)


def test_what_is_not_a_number_stays_so():
    system = lv.problems.load("n-four-bar", N=3).model
    table = ElementObservables(element_sums.monitored_sums(system, "generalized_energy", ())[0])
    Z = np.zeros((1, 3 * system.n))
    Z[0, 0] = np.nan
    assert np.isnan(table(np.zeros(1), Z, system.parameter_vector())[0, 0])


def test_the_report_of_a_large_system_is_that_of_a_small_one(monkeypatch):
    problem = lv.problems.load("n-four-bar", N=2)
    run = lv.simulate(problem, t_end=0.05)
    before = {row.quantity: row for row in conservation.conservation_rows(run)}
    monkeypatch.setattr(system_module, "SPARSE_THRESHOLD", 0)
    observables._cached_columns.cache_clear()
    for row in conservation.conservation_rows(run):
        assert row.verdict == before[row.quantity].verdict
        initial = before[row.quantity].initial
        assert row.initial == pytest.approx(initial, abs=1e-12) if row.initial is not None else True
    observables._cached_columns.cache_clear()


def test_runs_of_large_systems_monitor_the_sums_of_their_elements(monkeypatch):
    """The largest deviations of a run are those of its rows, also if no expression of the whole system exists."""
    monkeypatch.setattr(system_module, "SPARSE_THRESHOLD", 1)
    mb = lv.Multibody(gravity=[0, 0, -3.7])
    first = mb.rod("first", a=[0, 0, 0], b=[1, 0, 0], mass=1.3, radius=0.1)
    second = mb.rod("second", a=[1, 0, 0], b=[2, 0, 0], mass=0.7, radius=0.1)
    mb.spherical("ball", first, second, at=first.b)
    mb.initial(first, velocity=[0, 0, 1.0])
    system = mb.system
    assert system.uses_sparse_path
    run = lv.simulate(mb.problem(h=0.01, t_end=0.5), tier="fused", scheme="livens-midpoint")
    assert isinstance(drift_monitor._monitor_table(run.system, "total_energy", ())[0], ElementObservables)
    energy = run.observe("total_energy")
    assert run.summary.max_energy_drift == pytest.approx(
        np.abs(energy - energy[0]).max() / np.abs(energy).max(), rel=0.5
    )
