"""Symank 2025: its figures and the port-Hamiltonian problems they stand on."""

import numpy as np
import pytest
from conftest import measured_order
from typer.testing import CliRunner

import livens as lv
from livens import reproduce, tableaus
from livens.cli import app
from livens.reproduce import core
from livens.reproduce.report import as_html, as_markdown
from livens.reproduce.symank_2025.murua import predicted
from livens.reproduce.symank_2025.runs import convergence_power, relative_distances
from livens.reproduce.symank_2025.springs import amplification
from livens.reproduce.symank_2025.times import TABLE

EPS = np.finfo(float).eps
#: With a Hamiltonian at most quadratic in what a run changes; that of the loudspeaker is of fourth degree.
QUADRATIC = ("viscous-pendulum", "spring-chain", "rlc-circuit", "motor-slider-crank")


# -- figures ----------------------------------------------------------------------------------------------------------
def test_every_figure_is_there():
    numbers = [entry.number for entry in reproduce.figures("symank-2025")]
    assert numbers == [*map(str, range(4, 15)), "times"]
    assert all(entry.title for entry in reproduce.figures("symank-2025"))


def test_published_times():
    """As printed in 7.3.3."""
    assert [row.published for row in TABLE] == [
        (60.0, 134.7, 155.5),
        (34.3, 34.5, 40.9),
        (103.6, 258.6, 300.1),
        (10.5, 18.1, 21.0),
    ]


def test_what_is_shown_is_not_judged(tmp_path):
    """A time makes no figure fail, and is not counted among the claims that hold."""
    claims = (core.Claim("It runs.", "yes", True), core.Claim("Its time.", "1 ms", None))
    entry = core.FigureEntry("symank-2025", "1", "A figure", lambda: (None, list(claims)))
    report = core.Report(core.SOURCES["symank-2025"], tmp_path, [core.FigureResult(entry, (), claims)])
    assert report.holds and report.as_object()["figures"][0]["claims"][1]["holds"] is None
    assert "1 of 1 claims hold" in as_markdown(report) and "| Its time. | 1 ms | shown |" in as_markdown(report)
    assert "<td>shown</td>" in as_html(report)


def test_one_figure_from_the_command_line(tmp_path):
    found = CliRunner().invoke(app, ["reproduce", "symank-2025", "--only", "7", "--out", str(tmp_path), "--quiet"])
    assert found.exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} >= {
        "symank-2025-figure-07.png",
        "symank-2025-figure-07.pdf",
        "report.md",
    }


# -- what claims are made of ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("h", [0.01, 0.1, 0.5])
def test_growth_is_what_a_step_makes_of_the_energy(h):
    """One step of Lobatto IIIC on an oscillator."""
    oscillator = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: 4.5 * q[0] ** 2)
    run = lv.simulate(oscillator, [1.0], [0.0], scheme="lobatto-iiic-3", h=h, t_end=h)
    H = run.observe("total_energy")
    assert abs(H[1] / H[0] - amplification(tableaus.lobatto_iiic(3), 3j * h)) < 1e-14


def test_distances():
    apart = relative_distances(np.array([[1.1, 0.0], [2.0, 0.0]]), np.array([[1.0, 0.0], [2.0, 0.0]]))
    assert np.allclose(apart, [0.05, 0.0])
    assert np.isinf(relative_distances(np.array([[1.0]]), np.array([[0.0]]))[0])
    assert abs(convergence_power([1.0, 0.1, 0.01], [3.0, 0.3, 0.03], lambda m: m < 0.5) - 1) < 1e-12


def test_energy_defect_has_the_sign_of_the_force():
    """(6.15) with a minus agrees with the energy to round-off; with a plus it is off by twice the change."""
    run = lv.simulate(lv.problems.load("pendulum"), scheme="murua-1", h=0.05, t_end=2.0)
    found, expected = np.diff(run.observe("total_energy")), predicted(run)
    assert np.abs(found - expected).max() < 2e-14
    assert np.abs(found + expected).max() > 1e-2


# -- port-Hamiltonian problems ----------------------------------------------------------------------------------------
def defect(run):
    """Return the largest error of the power balance relative to the largest energy."""
    H = run.observe("hamiltonian")
    return np.abs(H - H[0] - run.supplied_energy + run.dissipated_energy).max() / np.abs(H).max()


@pytest.mark.parametrize("name", [*QUADRATIC, "loudspeaker"])
def test_default_run(name):
    problem = lv.problems.load(name)
    assert problem.scheme.startswith("gauss-") and problem.q0 is None and problem.v0 is None
    run = lv.simulate(problem)
    assert run.status == "complete" and np.all(np.isfinite(run.x))
    assert run.dissipated_energy[-1] > 0


@pytest.mark.parametrize("name", QUADRATIC)
@pytest.mark.parametrize("scheme", ["gauss-2", "gauss-3"])
def test_power_balance_of_gauss_is_exact(name, scheme):
    """For quadratic Hamiltonians the error is a few roundings per step, over the whole run."""
    run = lv.simulate(lv.problems.load(name), scheme=scheme)
    assert defect(run) < 4 * EPS * len(run.t)


@pytest.mark.parametrize("name", QUADRATIC)
def test_power_balance_of_lobatto_is_not(name):
    assert defect(lv.simulate(lv.problems.load(name), scheme="lobatto-iiic-3")) > 1e-9


def test_power_balance_of_the_loudspeaker():
    """Its Hamiltonian is of fourth degree, so the balance is one up to the error of the quadrature: of order 2s."""
    problem, steps = lv.problems.load("loudspeaker", t_end=0.02), [8e-4 / 2**i for i in range(5)]
    defects = [defect(lv.simulate(problem, scheme="gauss-2", h=h)) for h in steps]
    assert abs(measured_order(steps, defects) - 4) < 0.1


def test_both_pendulums_move_alike():
    """Airflow as a port or as a potential: one motion to round-off, two energies."""
    both = [lv.problems.load("viscous-pendulum", potential=i) for i in (0, 1)]
    port, potential = (lv.simulate(problem, scheme="gauss-2", h=0.01) for problem in both)
    assert np.abs(port.x[:, :4] - potential.x[:, :4]).max() < 1e-12
    assert np.abs(port.observe("hamiltonian") - potential.observe("hamiltonian")).max() > 0.1
    assert np.allclose(port.supplied_energy, 2.0 * (port.x[:, 0] - 1.0), atol=1e-12)  # alpha m along x
    assert not potential.supplied_energy.any()


def test_chain_is_the_mechanical_one():
    """As a port-Hamiltonian system and in Livens form, with the same motion, and towards the exact one."""
    chain, masses = lv.problems.load("spring-chain"), lv.problems.load("mass-spring-damper", d1=0.2, d2=0.5, alpha=3.0)
    a, b = (lv.simulate(problem, scheme="gauss-2", h=0.1, t_end=20.0) for problem in (chain, masses))
    assert np.abs(a.x - np.hstack([b.q, b.v])).max() < 1e-12
    steps = [0.2 / 2**i for i in range(4)]
    exact = chain.reference(2.0)["x"]
    errors = [np.abs(lv.simulate(chain, h=h, t_end=2.0).x[-1] - exact).max() for h in steps]
    assert abs(measured_order(steps, errors) - 4) < 0.1


def test_circuit_comes_to_rest():
    """With a constant voltage the currents end as Ohm's law says."""
    run = lv.simulate(lv.problems.load("rlc-circuit"))
    assert np.allclose(run.x[-1, [0, 3, 4]], 1.0 / 6.1, rtol=1e-6)
