"""Reports, pictures, studies and commands, for every kind of model and every way through time."""

import json
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m
from livens import plot, schemes
from livens.analysis import conservation as conserved
from livens.analysis.energy_balance import balance, net_supplied_energy, reference_scale
from livens.analysis.report import print_report
from livens.analysis.round_off import round_off
from livens.analysis.step_sizes import step_sizes
from livens.analysis.study import modified_energy, reversibility_defect, symplecticity_defect
from livens.models.symmetry import rotations
from livens.plot import convergence, style


@pytest.fixture(autouse=True)
def no_screen(monkeypatch):
    monkeypatch.setattr(style, "_has_display", lambda: False)


# -- one of each kind -------------------------------------------------------------------------------------------------
LOTKA = lv.FirstOrder(
    "prey hunters",
    rhs=lambda x: [x[0] * (1 - x[1]), x[1] * (x[0] - 1)],
    invariants=dict(V=lambda x: x[0] - m.log(x[0]) + x[1] - m.log(x[1])),
)
SPIN = lv.FirstOrder(
    "a b c",
    rhs=lambda x: [x[1] * x[2], -2 * x[0] * x[2], x[0] * x[1]],
    invariants=dict(size=lambda x: x @ x / 2, wrong=lambda x: x[0] ** 2),
)
DAE = lv.FirstOrder(
    "u w", algebraic="y", rhs=lambda x, y: [x[1], -x[0] * y[0]],
    constraints=lambda x, y: [y[0] * (1 + x[0] ** 2) - 1],
)  # fmt: skip
OSCILLATOR = lv.PortHamiltonian(
    "q p",
    H=lambda x, k: x[1] ** 2 / (2 * k.m) + k.c * x[0] ** 2 / 2,
    J=[[0, 1], [-1, 0]], R=lambda k: [[0, 0], [0, k.d]], B=[[0], [1]], u=lambda t: [m.sin(t)],
    parameters=dict(m=1.0, c=4.0, d=0.1),
)  # fmt: skip
PENDULUM = lv.MultibodyEquations(
    "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
)
KEPLER = lv.Hamiltonian(
    "x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / m.norm(q),
    symmetries=dict(angular_momentum=rotations([[0, 1]])),
)  # fmt: skip
GENERAL = lv.Hamiltonian("q", hamiltonian=lambda q, p: p[0] ** 2 * (1 + q[0] ** 2) / 2 + q[0] ** 2)
TOP = lv.Nambu(
    "x1 x2 x3",
    hamiltonians=[lambda x: x @ x / 2, lambda x, k: sum(x**2 / k.I) / 2],
    parameters=dict(I=[0.5, 1.0, 2.0]),
)
ELLIPSE = dict(q0=[0.2, 0.0], p0=[0.0, 3.0], t_end=20.0)

RUNS = {
    "FirstOrder": lambda: lv.simulate(LOTKA, x0=[2.0, 1.0], scheme="gauss-2", h=0.1, t_end=30.0),
    "controlled": lambda: lv.simulate(
        LOTKA, x0=[8.0, 1.0], scheme="gauss-3", h=0.1, t_end=30.0, control=lv.StepControl(tolerance=1e-9)
    ),
    "quadratic": lambda: lv.simulate(SPIN, x0=[1.0, 0.5, 0.2], scheme="gauss-2", h=0.1, t_end=30.0),
    "DAE": lambda: lv.simulate(DAE, x0=[1.0, 0.0], scheme="radau-iia-3", h=0.1, t_end=20.0),
    "PortHamiltonian": lambda: lv.simulate(OSCILLATOR, x0=[0.0, 0.0], scheme="gauss-2", h=0.05, t_end=30.0),
    "not balanced": lambda: lv.simulate(OSCILLATOR, x0=[1.0, 0.0], scheme="lobatto-iiic-3", h=0.05, t_end=30.0),
    "index-1": lambda: swing("index-1"),
    "index-3": lambda: swing("index-3"),
    "ggl": lambda: swing("ggl"),
    "Hamiltonian": lambda: lv.simulate(KEPLER, scheme="stormer-verlet", h=0.002, **ELLIPSE),
    "spins": lambda: lv.simulate(lv.problems.load("spin-chain", N=7), t_end=30.0),
    "isospectral": lambda: lv.simulate(lv.problems.load("four-dimensional-body"), t_end=30.0),
    "discrete Lagrangian": lambda: lv.simulate(lv.problems.load("discrete-pendulum"), t_end=30.0),
    "fictive": lambda: lv.simulate(KEPLER, scheme="sundman", h=0.02, scaling=lv.scaling.potential(1.5), **ELLIPSE),
    "general": lambda: lv.simulate(GENERAL, q0=[1.0], p0=[0.3], scheme="implicit-midpoint", h=0.05, t_end=20.0),
    "Nambu": lambda: lv.simulate(TOP, x0=[1.0, 0.5, 0.3], scheme="nambu-t", h=0.05, t_end=20.0),
    "fictive Nambu": lambda: lv.simulate(
        TOP, x0=[1.0, 0.5, 0.3], scheme="nambu-t-g", h=0.05, t_end=20.0, scaling=lambda x: 1 / (1 + x[0] ** 2)
    ),
}


def swing(formulation):
    return lv.simulate(
        PENDULUM.formulate(formulation), q0=[1.0, 0.0], v0=[0.0, 0.0], scheme="radau-iia-3", h=0.02, t_end=10.0
    )


@pytest.fixture(scope="module")
def run():
    made = {}

    def get(name):
        if name not in made:
            made[name] = RUNS[name]()
        return made[name]

    return get


# -- reports ----------------------------------------------------------------------------------------------------------
PROMISED, KEPT, BOUNDED, DRIFTS = conserved.AS_GUARANTEED, conserved.ROUND_OFF, conserved.BOUNDED, conserved.DRIFTS
VERDICTS = {
    "FirstOrder": {"V": BOUNDED},
    "controlled": {"V": KEPT},
    "quadratic": {"size": PROMISED, "wrong": BOUNDED},  # what the motion does not conserve is not promised
    "DAE": {"constraint": PROMISED},
    "PortHamiltonian": {"hamiltonian": PROMISED},
    "not balanced": {"hamiltonian": BOUNDED},
    # only what the equations impose is promised
    "index-1": {"total_energy": BOUNDED, "constraint": DRIFTS, "velocity_constraint": BOUNDED},
    "index-3": {"total_energy": DRIFTS, "constraint": PROMISED, "velocity_constraint": BOUNDED},
    "ggl": {"total_energy": DRIFTS, "constraint": PROMISED, "velocity_constraint": PROMISED},
    "Hamiltonian": {"hamiltonian": BOUNDED, "angular_momentum": PROMISED},
    "spins": {"hamiltonian": BOUNDED, "squared_lengths": PROMISED, "spin_z": PROMISED},
    "isospectral": {"hamiltonian": BOUNDED, "traces": PROMISED},
    "discrete Lagrangian": {"discrete_energy": BOUNDED},
    "fictive": {"hamiltonian": BOUNDED, "angular_momentum": PROMISED},
    "general": {"hamiltonian": BOUNDED},
    "Nambu": {"H1": PROMISED, "H2": BOUNDED},
    "fictive Nambu": {"H1": PROMISED, "H2": BOUNDED},
}


@pytest.mark.parametrize("name", RUNS)
def test_reports(run, name, capsys):
    """Energy, constraints and invariants of every kind of model, with the promise that applies to it."""
    result = run(name)
    table = [row for row in conserved.conservation_rows(result) if not row.quantity.startswith(" ")]
    assert {row.name: row.verdict for row in table} == VERDICTS[name]
    print_report(result)
    printed = capsys.readouterr().out
    assert all(row.quantity in printed for row in table)
    found = json.loads(json.dumps(conserved.as_object(result), allow_nan=False))
    assert found["as_promised"] and (found["step_sizes"] is None) == ("rejected" not in printed)


def test_a_model_that_conserves_nothing(capsys):
    decay = lv.simulate(lv.FirstOrder("x", rhs=lambda x: [-x[0]]), x0=[1.0], scheme="gauss-1", h=0.1, t_end=1.0)
    assert conserved.conservation_rows(decay) == [] and conserved.as_object(decay)["as_promised"]
    print_report(decay)
    assert "defines no conserved quantities" in capsys.readouterr().out
    with pytest.raises(lv.InputError, match="no energy"):
        plot.energy(decay)
    with pytest.raises(lv.InputError, match="only one state"):
        plot.phase_portrait(decay)
    with pytest.raises(lv.InputError, match="nothing to compare"):
        convergence.comparison_diagram({"gauss-1": decay})


def test_reports_from_a_file_without_the_model(run, tmp_path):
    for name in ("DAE", "index-1", "PortHamiltonian", "Nambu"):
        path = run(name).save(tmp_path / f"{name}.h5")
        alone = lv.load(path)
        rows = conserved.conservation_rows(alone)
        assert rows and all(row.holds and row.initial is None for row in rows)
        assert "coordinates" in {p.stem.split("-", 1)[1] for p in plot.save_all(alone, tmp_path)} or name == "index-1"


@pytest.mark.parametrize("name", ["controlled", "fictive", "fictive Nambu"])
def test_step_sizes(run, name, capsys):
    result = run(name)
    found, inner = step_sizes(result), result.step_size[1:-1]
    assert (found["smallest"], found["largest"]) == (inner.min(), inner.max())
    assert found["mean"] == pytest.approx(result.t[-1] / (len(result.t) - 1))
    assert found["rejected"] == result.statistics.rejected and (found["rejected"] > 0) == (name == "controlled")
    print_report(result)
    printed = capsys.readouterr().out
    assert f"steps from {inner.min():.3g} to {inner.max():.3g}" in printed
    assert ("first h = " in printed) == (name == "controlled") and ("fictive" in printed) == (name != "controlled")


def test_equal_steps_have_no_sizes_to_report(run):
    assert step_sizes(run("Hamiltonian")) is None
    with pytest.raises(lv.InputError, match="steps of the run are equal"):
        plot.step_sizes(run("Hamiltonian"))


def test_step_sizes_from_a_file_and_of_runs_that_did_not_store_them(run, tmp_path):
    path = run("controlled").save(tmp_path / "run.h5")
    assert step_sizes(lv.load(path)) == step_sizes(run("controlled"))
    little = lv.simulate(
        LOTKA, x0=[8.0, 1.0], scheme="gauss-3", h=0.1, t_end=5.0, control=lv.StepControl(tolerance=1e-9), store="x"
    )
    found = step_sizes(little)
    assert found["smallest"] is None and found["mean"] == pytest.approx(5.0 / little.statistics.steps)


def test_the_balance_of_energy(run):
    """The balance of quadratic energies is exact with Gauss nodes for any input, and not with Lobatto nodes."""
    exact, other = run("PortHamiltonian"), run("not balanced")
    assert np.ptp(balance(exact)) < 1e-14 and np.ptp(net_supplied_energy(exact)) > 0.1
    assert 1e-9 < np.ptp(balance(other)) < 1e-5
    # it starts from rest: relative to the largest energy
    assert reference_scale(exact) == (np.abs(exact.observe("hamiltonian")).max(), r"\max |E|")
    assert exact.summary.max_energy_drift == pytest.approx(np.abs(balance(exact)).max() / reference_scale(exact)[0])
    assert reference_scale(run("general"))[1] == "|E_0|" and not net_supplied_energy(run("general")).any()


def test_round_off_counts_constant_terms():
    high = lv.FirstOrder("x v", rhs=lambda x: [x[1], 0], invariants=dict(big=lambda x: 1e6 + x[1]))
    result = lv.simulate(high, x0=[0.0, 1e-3], scheme="gauss-1", h=0.1, t_end=1.0)
    assert round_off(result, "big") == pytest.approx(1e6 * np.finfo(float).eps, rel=1e-6)


# -- pictures ---------------------------------------------------------------------------------------------------------
PICTURES = {
    "FirstOrder": "momenta coordinates phase_portrait newton",
    "controlled": "momenta coordinates phase_portrait newton step_sizes",
    "quadratic": "momenta coordinates phase_portrait newton trajectory",
    "DAE": "constraints algebraic coordinates phase_portrait newton",
    "PortHamiltonian": "energy balance energy_increments coordinates phase_portrait newton",
    "ggl": "energy energy_increments constraints algebraic coordinates phase_portrait newton trajectory",
    "Hamiltonian": "energy energy_increments momenta coordinates phase_portrait trajectory",
    "fictive": "energy energy_increments momenta coordinates phase_portrait step_sizes trajectory",
    "general": "energy energy_increments coordinates phase_portrait newton",
    "Nambu": "momenta coordinates phase_portrait trajectory",
    "fictive Nambu": "momenta coordinates phase_portrait step_sizes trajectory",
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(run, name, tmp_path):
    """Every picture that makes sense for a run, and no other."""
    files = plot.save_all(run(name), tmp_path)
    assert [f.stem.removeprefix("run-").replace("-", "_") for f in files] == PICTURES[name].split()
    assert all(f.stat().st_size > 3000 for f in files)


def drawn(axes):
    return axes.get_lines()[0].get_xydata()


def test_what_pictures_show(run):
    driven, kepler, adaptive, lotka = run("PortHamiltonian"), run("Hamiltonian"), run("fictive"), run("FirstOrder")
    upper, lower = plot.balance(driven).axes
    labels = {line.get_label(): line.get_ydata() for line in upper.get_lines()}
    assert list(labels) == ["stored", "supplied", "dissipated"]
    assert np.allclose(labels["stored"], labels["supplied"] - labels["dissipated"], atol=1e-14)
    assert drawn(lower)[:, 1].max() < lower.patches[0].get_y() + lower.patches[0].get_height()
    (axes,) = plot.phase_portrait(kepler, "x").axes
    assert axes.get_ylabel() == "$p_{x}$" and np.array_equal(drawn(axes)[-1], [kepler.q[-1, 0], kepler.p[-1, 0]])
    (axes,) = plot.phase_portrait(lotka).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("prey", "hunters")
    (axes,) = plot.phase_portrait(lotka, "hunters", "prey").axes
    assert np.array_equal(drawn(axes)[0], lotka.x[0, ::-1])
    (axes,) = plot.phase_portrait(run("ggl")).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("$x$", "v_x")
    (axes,) = plot.step_sizes(adaptive).axes
    assert axes.get_yscale() == "log" and np.array_equal(drawn(axes)[:, 1], adaptive.step_size[1:-1])
    assert plot.step_sizes(adaptive).get_suptitle() == "sundman, h = 0.02 (fictive)"
    assert "controlled steps" in plot.step_sizes(run("controlled")).get_suptitle()
    (axes,) = plot.trajectory(run("Nambu")).axes
    assert axes.get_zlabel() == "$x_{3}$"
    (axes,) = plot.algebraic(run("DAE")).axes
    assert np.array_equal(drawn(axes)[:, 1], run("DAE").y[:, 0])
    (axes,) = plot.constraints(run("DAE")).axes  # there is no hidden one
    assert axes.get_ylabel() == "max $|g|$" and len(plot.constraints(run("ggl")).axes) == 2
    (axes,) = plot.coordinates(lotka, "prey").axes
    assert axes.get_title(loc="left") == "prey"


@pytest.mark.parametrize(
    ("draw", "name", "words"),
    [
        (plot.balance, "Hamiltonian", "records no supplied or dissipated energy"),
        (plot.energy, "Nambu", "no energy"),
        (plot.algebraic, "FirstOrder", "no algebraic variables"),
        (plot.constraints, "FirstOrder", "no constraints"),
        (plot.trajectory, "FirstOrder", "no trajectory to plot"),
        (lambda r: plot.coordinates(r, "pray"), "FirstOrder", "no state 'pray'; did you mean 'prey'"),
    ],
)
def test_what_cannot_be_drawn(run, draw, name, words):
    with pytest.raises(lv.InputError, match=words):
        draw(run(name))


# -- studies ----------------------------------------------------------------------------------------------------------
PROBLEMS = {
    "PortHamiltonian": ("spring-chain", "gauss-1,gauss-2", [0.4, 0.2, 0.1, 0.05], 5.0, ("x",)),
    "Nambu": ("euler-top", "nambu-t,nambu-mt", [0.1, 0.05, 0.025, 0.0125], 5.0, ("x",)),
    "Hamiltonian": (
        "magnetic-pendulum", "stormer-verlet,implicit-midpoint", [2e-3, 1e-3, 5e-4, 2.5e-4], 2.0, ("q", "p"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", PROBLEMS)
def test_orders_and_comparisons(kind, tmp_path):
    """Problems that start from x, or from q and p; with an exact solution or an extrapolation."""
    name, chosen, steps, end, variables = PROBLEMS[kind]
    problem = lv.problems.load(name)
    assert problem.model.type_label == kind and problem.q0 is None
    study = lv.study.converge(problem, chosen, steps, end)
    assert study.variables == variables
    for curve in study.curves:
        for fit in curve.fits.values():
            assert fit.order == pytest.approx(schemes.get(curve.scheme).order, abs=0.1)
        assert all(point.evaluations >= point.steps for point in curve.points)
    figure = convergence.order_diagram(study)
    assert [axes.get_ylabel() for axes in figure.axes] == [f"error in ${v}$" for v in variables]
    assert convergence.work_precision_diagram(study).axes[0].get_ylabel() == f"error in ${variables[0]}$"
    comparison = lv.study.compare(problem, chosen, steps[-1], end)
    assert all(entry.as_guaranteed for entry in comparison.entries)
    assert set(comparison.entries[0].errors) == (set() if problem.reference is None else {"x"})
    assert convergence.comparison_diagram(comparison.results).axes
    json.dumps([study.as_object(), comparison.as_object()], allow_nan=False)


def test_only_schemes_that_can_use_the_scaling_are_compared():
    problem = lv.problems.load("magnetic-pendulum")
    study = lv.study.compare(problem, None, 1e-3, 0.05)
    names = {entry.scheme for entry in study.entries}
    assert {"stormer-verlet", "sundman", "step-density"} <= names
    initial_values = problem.initial_values
    plain = lv.Problem("plain", problem.model, None, None, "stormer-verlet", 1e-3, 0.05, initial_values=initial_values)
    names = {entry.scheme for entry in lv.study.compare(plain).entries}
    assert "stormer-verlet" in names and not names & {"sundman", "step-density"}


def test_sweeps_of_states():
    study = lv.study.sweep("spring-chain", dict(h=[0.1, 0.05]), dict(t_end=1.0), final=True, workers=1)
    assert study.column("status") == ["complete"] * 2 and study.rows[0]["error_x"] > study.rows[1]["error_x"]
    result = lv.simulate(lv.problems.load("spring-chain"), h=0.05, t_end=1.0)
    assert [study.rows[1][f"x.{name}"] for name in result.info.coordinates] == result.x[-1].tolist()
    study = lv.study.sweep("euler-top", dict(h=[0.1]), dict(t_end=1.0), workers=1)
    assert study.rows[0]["max_energy_drift"] is None and study.rows[0]["momentum_drift"] > 0


# -- one step ---------------------------------------------------------------------------------------------------------
states = st.tuples(*(st.floats(0.4, 1.2) for _ in range(4)))
FEW = ("stormer-verlet", "implicit-midpoint", "symplectic-euler", "yoshida-4:stormer-verlet", "heun", "trapezoidal")


@settings(max_examples=8, deadline=None)
@given(states)
def test_one_step_of_a_hamiltonian(state):
    """Symplectic and reversible to round-off where the scheme says so, and clearly not where it does not."""
    for name in FEW:
        scheme = schemes.get(name)
        where = dict(q=state[:2], p=state[2:], h=0.05)
        assert (symplecticity_defect(KEPLER, name, **where) < 1e-13) == scheme.symplectic, name
        assert (reversibility_defect(KEPLER, name, **where) < 1e-13) == scheme.symmetric, name


def test_one_step_in_a_fictive_time():
    """With a scaling the step stays symplectic where that is built in; a density of steps makes it reversible only."""
    where = dict(q=[0.5, 0.1], p=[0.3, 1.7], h=0.05, scaling=lv.scaling.potential(1.5))
    assert symplecticity_defect(KEPLER, "sundman", **where) < 1e-14
    assert symplecticity_defect(KEPLER, "step-density", **where) > 1e-4
    for name in ("sundman", "step-density"):
        assert reversibility_defect(KEPLER, name, **where) < 1e-14
    with pytest.raises(lv.InputError, match="besides"):
        symplecticity_defect(KEPLER, "sundman-doubled", **where)


def test_one_step_of_a_system_and_of_its_hamiltonian_agree():
    system = lv.problems.load("kepler").model
    for name in ("stormer-verlet", "heun", "implicit-midpoint"):
        one = symplecticity_defect(system, name, [0.5, 0.1], [0.3, 1.7], 0.05)
        other = symplecticity_defect(KEPLER, name, [0.5, 0.1], p=[0.3, 1.7], h=0.05)
        assert one == pytest.approx(other, abs=1e-14)
    with pytest.raises(lv.InputError, match="coordinates and momenta"):
        symplecticity_defect(LOTKA, "gauss-1", [1.0, 1.0], h=0.1)
    with pytest.raises(lv.InputError, match="h is missing"):
        symplecticity_defect(KEPLER, "heun", [0.5, 0.1], p=[0.3, 1.7])


# -- modified energy --------------------------------------------------------------------------------------------------
def orbit(scheme, h=0.01, t_end=300.0, **options):
    return modified_energy(lv.problems.load("kepler", e=0.5), scheme, h, t_end, **options)


@pytest.mark.parametrize(
    ("scheme", "order"),
    [("stormer-verlet", 2), ("implicit-midpoint", 2), ("yoshida-4:stormer-verlet", 4), ("gauss-2", 4)],
)
def test_symplectic_schemes_do_not_drift(scheme, order):
    """The energy oscillates with the order of the scheme; what drift there may be is far below that."""
    found = orbit(scheme)
    assert found.verdict == "oscillates, no drift"
    assert found.measured_order == pytest.approx(order, abs=0.1)
    assert found.largest_drift * found.span < 1e-3 * found.amplitude
    assert found.modified < 0.05 * found.energy


def test_the_modified_energy_gains_two_orders():
    """The remainder without the leading term decreases with h^4 for a symmetric scheme of order 2."""
    steps = [0.016, 0.008, 0.004, 0.002]
    left = [orbit("stormer-verlet", h, 6.0).modified for h in steps]
    assert np.polyfit(np.log(steps), np.log(left), 1)[0] == pytest.approx(4, abs=0.1)


def test_schemes_that_drift():
    for scheme, sign in (("heun", 1), ("radau-iia-2", -1)):
        found = orbit(scheme)
        assert found.verdict == "drifts" and np.sign(found.drift.rate) == sign
        assert abs(found.drift.rate) > 10 * found.drift.uncertainty
    # the energy of explicit Euler moves fast at first: no line, but no claim of conservation either
    assert orbit("explicit-euler").verdict.startswith("undecided")


def test_the_drift_is_the_one_that_was_put_there():
    """A run whose energy is changed by a known slope."""
    result = lv.simulate(lv.problems.load("kepler", e=0.5), scheme="stormer-verlet", h=0.01, t_end=300.0)
    from livens.analysis.study.backward_error import _fit_drift

    clean, amplitude = _fit_drift(result.t, balance(result))
    tilted, same = _fit_drift(result.t, balance(result) + 1e-8 * result.t)
    assert tilted.rate - clean.rate == pytest.approx(1e-8, rel=1e-6) and tilted.significant
    assert same == pytest.approx(amplitude, rel=1e-6) and not clean.significant


def test_exact_conservation_has_nothing_to_modify():
    found = orbit("livens-em")
    assert found.verdict == "conserved to round-off" and math.isnan(found.measured_order)
    assert found.amplitude < 1e-12 and found.as_object()["measured_order"] is None
    assert "conserved to round-off" in str(found)


def test_fictive_time_and_reversibility():
    """A kinetic energy that is not even: the density of steps drifts, what is symplectic does not."""
    problem = lv.problems.load("non-reversible-oscillator")
    names = ("stormer-verlet", "sundman", "step-density")
    verdicts = {name: modified_energy(problem, name, t_end=1000.0).verdict for name in names}
    assert verdicts == {
        "stormer-verlet": "oscillates, no drift", "sundman": "oscillates, no drift", "step-density": "drifts",
    }  # fmt: skip


def test_runs_instead_of_problems(run):
    """Values agree with those of runs: of a built-in problem, a user-defined model, with forces, with fewer rows."""
    problem = lv.problems.load("kepler", e=0.5)
    result = lv.simulate(problem, scheme="stormer-verlet", h=0.01, t_end=300.0)
    assert modified_energy(result) == orbit("stormer-verlet")
    own = lv.simulate(KEPLER, q0=[0.5, 0], p0=[0, math.sqrt(3)], scheme="stormer-verlet", h=0.01, t_end=300.0, every=2)
    assert modified_energy(own).amplitude == pytest.approx(orbit("stormer-verlet").amplitude, rel=0.01)
    assert modified_energy(run("PortHamiltonian")).verdict == "conserved to round-off"
    assert modified_energy(run("ggl")).verdict == "drifts"


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (lambda run: modified_energy(run("FirstOrder")), "no energy"),
        (lambda run: modified_energy(run("general"), "heun"), "those of the run"),
        (lambda run: orbit("stormer-verlet", t_end=0.1), "too short"),
        (
            lambda run: modified_energy(
                lv.simulate(OSCILLATOR, x0=[1.0, 0.0], scheme="gauss-2", h=0.05, t_end=10.0, control=lv.StepControl())
            ),
            "step-size control",
        ),
        (
            lambda run: modified_energy(
                lv.simulate(OSCILLATOR, x0=[1.0, 0.0], scheme="gauss-2", h=0.05, t_end=10.0, store="x")
            ),
            "did not store",
        ),
    ],
)
def test_what_has_no_modified_energy(run, what, words):
    with pytest.raises(lv.InputError, match=words):
        what(run)


# -- the command line -------------------------------------------------------------------------------------------------
@pytest.fixture
def livens(monkeypatch, capsys, tmp_path):
    """The program, called here: its exit code and what it prints."""
    from livens.cli import main

    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["livens", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        return SimpleNamespace(returncode=stop.value.code or 0, stdout=printed.out, stderr=printed.err)

    return call


def test_commands(livens, tmp_path):
    """Run, report and draw problems of other kinds; numbers at the end in their own variables."""
    done = livens("run", "spring-chain", "--json", "--t-end", "5")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    expected = lv.simulate(lv.problems.load("spring-chain"), t_end=5.0)
    assert facts["final"] == {"x": expected.x[-1].tolist()} and "step_sizes" not in facts
    done = livens("run", "spring-chain", "--t-end", "5", "--tolerance", "1e-6", "--largest", "0.2", "--json",
                  "--out", "a.h5")  # fmt: skip
    facts = json.loads(done.stdout)
    assert done.returncode == 0 and 0 < facts["step_sizes"]["largest"] <= 0.2 + 1e-12
    assert lv.load(tmp_path / "a.h5").info.control["tolerance"] == 1e-6
    done = livens("report", "a.h5")
    assert done.returncode == 0 and "rejected" in done.stdout and "hamiltonian (balance)" in done.stdout
    done = livens("plot", "a.h5", "--plots", "balance,step-sizes")
    assert done.stdout.split() == ["a-balance.png", "a-step-sizes.png"]
    done = livens("run", "magnetic-pendulum", "--scheme", "sundman", "--h", "1e-3", "--t-end", "2", "--json")
    assert set(json.loads(done.stdout)["final"]) == {"q", "v", "p"}
    nothing = json.loads(livens("run", "euler-top", "--t-end", "2", "--json").stdout)
    assert nothing["max_energy_drift"] is None and nothing["momentum_drift"] > 0
    done = livens("run", "magnetic-pendulum", "--scheme", "sundman", "--h", "0.05", "--t-end", "20")
    assert done.returncode == 3 and "not finite" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "spring-chain", "--tolerance", "-1"], "tolerance of the step-size control"),
        (["run", "spring-chain", "--smallest", "1", "--largest", "0.1"], "largest of the step-size control"),
        (["run", "magnetic-pendulum", "--tolerance", "1e-6"], "does not estimate its error"),
        (["run", "magnetic-pendulum", "--scheme", "sundman", "--largest", "1"], "uses fixed steps in fictive time"),
        (["run", "a.h5", "--resume", "--tolerance", "1e-6"], "--tolerance cannot be changed"),
        (["compare", "euler-top", "--schemes", "livens-em"], "needs a mechanical system made of elements"),
    ],
)
def test_bad_input(livens, arguments, words):
    done = livens(*arguments)
    assert done.returncode == 2 and words in done.stderr, done.stderr


def test_lists_show_families(capsys):
    from livens.cli.list_ import list_

    list_("schemes")
    printed = capsys.readouterr().out
    for pattern in lv.schemes.names():
        assert f" {pattern} " in printed
    list_("schemes", "gauss-<s>")
    printed = capsys.readouterr().out
    assert printed.startswith("gauss-<s>\n") and "gauss-1, gauss-2, gauss-3\n" in printed
    list_("schemes", "J-PRK")
    printed = capsys.readouterr().out
    assert printed.startswith("lobatto-iiia-iiib-3\n") and "also called   J-PRK-3, J-PRK\n" in printed
    list_("problems", "kepler")
    printed = capsys.readouterr().out
    assert (
        printed.startswith("kepler\n")
        and "default run   scheme livens-em, h = 0.002 s" in printed
        and "stormer-verlet" in printed
    )
    list_("", as_json=True)
    facts = json.loads(capsys.readouterr().out)
    families = {scheme["name"]: scheme["family"] for scheme in facts["schemes"]}
    assert families["gauss-2"] == "gauss-<s>" and families["livens-em"] is None
    assert {problem["type"] for problem in facts["problems"]} >= {"System", "Hamiltonian", "PortHamiltonian", "Nambu"}
