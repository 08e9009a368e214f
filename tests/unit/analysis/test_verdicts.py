"""Verdicts that cannot mislead: what deviations are relative to, runs that explode, one step turned around."""

import ctypes
import json
import types

import numpy as np
import pytest

import livens as lv
from livens import math as m
from livens.analysis import conservation
from livens.analysis.passivity import passivity
from livens.analysis.round_off import RoundOffBound, round_off
from livens.analysis.trend import Trend
from livens.engine.observables.drift_monitor import accumulate_rows, accumulate_states
from livens.run.drift_monitor import energy_scale, summary_from_maxima
from livens.study import reversibility_defect, symplecticity_defect

OSCILLATOR = lv.System("x", kinetic=lambda v: v @ v / 2, potential=lambda q: q @ q / 2)
PENDULUM = lv.System(
    "x y",
    kinetic=lambda v: v @ v / 2,
    potential=lambda q: 9.81 * q[1],
    constraints=lambda q: [q @ q / 2 - 0.5],
)


def named(run):
    return {row.name: row for row in reversed(conservation.conservation_rows(run))}


def test_energy_is_called_a_balance_where_some_is_supplied_or_lost():
    for name, balance in (("simple-pendulum", False), ("double-four-bar-damped", True)):
        run = lv.simulate(lv.problems.load(name), t_end=0.05)
        assert conservation.conservation_rows(run)[0].quantity.endswith(" (balance)") is balance


# -- an energy that is zero at the start --------------------------------------------------------------------------
def test_an_energy_of_zero_is_not_compared_with_its_own_deviation():
    """H(0) = 0, and |H - H0| of the size of round-off: that is no deviation of 100 %."""
    angle = lv.PortHamiltonian("q p", H=lambda x: x[1] ** 2 / 2 - m.cos(x[0]) + m.cos(1.0), J=[[0, 1], [-1, 0]])
    run = lv.simulate(angle, x0=[1.0, 0.0], scheme="gauss-3", h=0.01, t_end=20.0)
    (energy, step) = conservation.conservation_rows(run)
    assert 0 < energy.deviation < 1e-12 and energy.verdict == conservation.ROUND_OFF
    assert run.summary.max_energy_drift < 1e-12 and step.deviation < 1e-12


def test_an_energy_of_zero_in_the_port_hamiltonian_form_of_a_pendulum():
    model = lv.port_hamiltonian.from_system(PENDULUM)
    start = lv.port_hamiltonian.state_from_system(PENDULUM, [1, 0], [0, 0])
    run = lv.simulate(model, x0=start, scheme="gauss-2", h=0.01, t_end=2.0)
    energy = conservation.conservation_rows(run)[0]
    assert energy.initial == 0 and energy.deviation < 1e-11, energy


def test_a_hamiltonian_that_is_not_separable():
    model = lv.Hamiltonian("q", hamiltonian=lambda q, p: (1 + q[0] ** 2) * p[0] ** 2 / 2 - q[0])
    run = lv.simulate(model, q0=[0.0], p0=[0.0], scheme="implicit-midpoint", h=0.01, t_end=1.0)
    assert run.summary.max_energy_drift < 1e-3


# -- runs that explode --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("scheme", "steps"), [("heun", 20), ("stormer-verlet", 20), ("heun", 4000)])
def test_an_explosion_ends_the_run(scheme, steps):
    """Without this, every drift is divided by the kinetic energy of the explosion."""
    with pytest.raises(lv.IntegrationError, match="the run blew up before t = ") as error:
        lv.simulate(OSCILLATOR, [1.0], [0.0], scheme=scheme, h=2.2, t_end=2.2 * steps)
    run = error.value.result
    assert run.status == "failed" and "blew up" in run.message
    assert not run.summary.max_energy_drift < 1e6


def test_an_energy_that_overflows_is_an_explosion():
    """The energy q^4 is infinite while the positions are finite: the run has blown up."""
    quartic = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 4 / 4)
    with pytest.raises(lv.IntegrationError, match=r"the run blew up before t = 4: the energy is no longer finite"):
        lv.simulate(quartic, [10.0], [0.0], scheme="stormer-verlet", h=1.0, t_end=4.0)


def test_an_explosion_is_a_million_times_the_energy():
    """Energy grows by a fifth at each step; the reference tier looks at it after every 32 steps."""
    with pytest.raises(lv.IntegrationError, match="blew up") as error:
        lv.simulate(OSCILLATOR, [1.0], [0.0], scheme="heun", h=0.8**0.25, t_end=300.0, tier="reference")
    assert error.value.result.summary.max_energy_drift == pytest.approx(1.2**96, rel=1e-6)


@pytest.mark.parametrize(
    ("start", "trusted", "largest", "scale"),
    [
        (-2.0, 1.0, 9.0, 2.0),
        (0.5, 1.0, 9.0, 0.5),
        (1e-4, 1.0, 9.0, 1.0),  # a start that happens to be nearly zero says nothing
        (0.0, 1.0, 9.0, 1.0),
        (0.0, 0.0, 9.0, 9.0),
        (0.0, 0.0, float("inf"), 0.0),
    ],
)
def test_what_a_change_of_energy_is_relative_to(start, trusted, largest, scale):
    assert energy_scale(start, trusted, largest) == scale


@pytest.mark.parametrize(
    ("slope", "uncertainty", "verdict"),
    [
        (1.0, 0.1, conservation.DRIFTS),
        (1.0, 0.6, conservation.BOUNDED),  # it may be chance
        (1e-5, 1e-7, conservation.BOUNDED),  # it is there, and not worth a word
    ],
)
def test_a_drift_is_sure_and_large(slope, uncertainty, verdict):
    run = types.SimpleNamespace(info=types.SimpleNamespace(t0=1.0, t_end=3.0))
    assert conservation._verdict(1.0, 1e-12, False, Trend(slope, uncertainty), run, 100) == verdict
    assert conservation._verdict(1.0, 1e-12, True, None, run, 100) == conservation.NOT_AS_GUARANTEED
    assert conservation._verdict(1.0, 1e-12, False, None, run, 100) == conservation.TOO_SHORT
    assert conservation._verdict(1e-13, 1e-12, True, None, run, 100) == conservation.AS_GUARANTEED


def test_what_constraints_are_called():
    assert "hidden" in conservation._constraint_label("velocity_constraint", False)
    assert [conservation._constraint_label("constraint", a) for a in (True, False)] == [
        "constraints g",
        "constraints g(q)",
    ]


def test_the_largest_deviations_of_rows():
    """Energy, its largest part, two constraints, and momenta of two and of one number, against what NumPy finds."""
    random = np.random.default_rng(3)
    table, exchanged = random.uniform(-1, 1, (20, 7)), random.uniform(-1, 1, 20)
    first, last, trusted = table[0].copy(), np.array([table[0, 0] - exchanged[0]]), np.zeros(1)
    largest, sizes = np.zeros(9), np.array([2, 1])
    accumulate_rows(table, exchanged, first, last, largest, sizes, trusted)
    energy, moved = table[:, 0] - exchanged, table - first
    steps = np.abs(np.diff(energy, prepend=energy[0]))
    assert largest[:5] == pytest.approx(
        [np.abs(energy - first[0]).max(), steps.max(), *np.abs(table[:, 1:4]).max(axis=0)]
    )
    assert largest[5:] == pytest.approx(
        [
            np.linalg.norm(moved[:, 4:6], axis=1).max(),
            np.linalg.norm(table[:, 4:6], axis=1).max(),
            np.abs(moved[:, 6]).max(),
            np.abs(table[:, 6]).max(),
        ]
    )
    assert last[0] == energy[-1]
    drift, magnitude = np.abs(energy - first[0]), np.abs(table[:, 1])
    assert trusted[0] == magnitude[drift <= magnitude / 2].max() < magnitude.max()


@pytest.mark.parametrize("supplied", [-1, 1])
def test_the_largest_deviations_of_states(supplied):
    """Without an account of energy nothing is exchanged; with one, what came in less what went out is no drift."""
    states = np.array([[5.0, 0.0, 0.0], [5.5, 0.75, 0.25], [4.0, 0.75, 1.75]])

    @ctypes.CFUNCTYPE(None, *[ctypes.POINTER(ctypes.c_double)] * 5)
    def rows(x, z, c, row, out):
        row[0], row[1], row[2], row[3] = z[0], 3.0, 0.0, 0.0

    first, last, largest, trusted = np.zeros(4), np.zeros(1), np.zeros(5), np.zeros(1)
    kernel, sizes = ctypes.cast(rows, ctypes.c_void_p).value, np.zeros(0, dtype=np.int64)
    accumulate_states(kernel, np.arange(3.0), states, np.zeros(2), supplied, True, first, last, largest, sizes, trusted)
    assert largest.tolist() == ([1.0, 1.5, 3.0, 0.0, 0.0] if supplied < 0 else [0.0, 0.0, 3.0, 0.0, 0.0])
    assert first[0] == 5.0 and last[0] == (4.0 if supplied < 0 else 5.0) and trusted[0] == 3.0


def test_what_the_largest_deviations_say():
    """Drift and increment of the energy, its largest part, both constraints; then change and size of each momentum."""
    largest = np.array([0.3, 0.02, 4.0, 1e-9, 1e-8, 0.5, 2.0, 0.7, 0.0])
    moved = summary_from_maxima("total_energy", ("l", "p"), 0.0, 0.0, largest)
    assert (moved.max_energy_drift, moved.max_energy_increment) == (0.3 / 4.0, 0.02 / 4.0)
    assert (moved.max_constraint, moved.max_velocity_constraint) == (1e-9, 1e-8)
    assert moved.momentum_drift == {"l": 0.25, "p": 0.7}  # one of no size is told as it is
    assert summary_from_maxima("total_energy", ("l", "p"), -2.0, 1.0, largest).max_energy_drift == 0.15
    assert (
        summary_from_maxima("total_energy", ("l", "p"), 0.0, 0.0, np.array([0.3, *[0.0] * 8])).max_energy_drift == 0.3
    )


@pytest.mark.parametrize("every", [1, 2, 3])
def test_increments_are_those_of_single_steps(every):
    """Between rows that are several steps apart the energy changes by more, and the summary knows them all."""
    run = lv.simulate(OSCILLATOR, [0.0], [1.0], scheme="symplectic-euler", h=0.1, t_end=6.0, every=every)
    (step,) = [row for row in conservation.conservation_rows(run) if row.quantity == "  its increment per step"]
    all_steps = lv.simulate(OSCILLATOR, [0.0], [1.0], scheme="symplectic-euler", h=0.1, t_end=6.0)
    energy = all_steps.observe("total_energy")
    assert step.deviation == pytest.approx(np.abs(np.diff(energy)).max() / abs(energy[0]), rel=1e-9)


def test_energy_that_grows_less_is_not_divided_by_what_it_grew_to():
    start = lv.simulate(OSCILLATOR, [0.0], [1.0], scheme="heun", h=0.5, t_end=100.0)
    assert start.summary.max_energy_drift > 2
    shifted = lv.System("x", kinetic=lambda v: v @ v / 2, potential=lambda q: q @ q / 2 - 0.5)
    run = lv.simulate(shifted, [0.0], [1.0], scheme="heun", h=0.5, t_end=100.0)
    assert run.observe("total_energy")[0] == 0
    assert run.summary.max_energy_drift == pytest.approx(start.summary.max_energy_drift, rel=0.5)
    assert conservation.conservation_rows(run)[0].deviation == pytest.approx(run.summary.max_energy_drift)


def test_a_stiff_beam_at_rest_is_no_explosion():
    run = lv.simulate(lv.problems.load("45-degree-bend", force=0.0), t_end=20.0)
    assert run.status == "complete" and np.abs(run.q - run.q[0]).max() < 1e-10


@pytest.mark.parametrize(("name", "h", "t_end"), [("45-degree-bend", 0.05, 5.0), ("princeton-beam", 0.005, 0.5)])
def test_energies_of_beams_are_conserved_to_the_round_off_of_stiff_forces(name, h, t_end):
    """Rounded displacements times the stiffness are forces, whose work in a step exceeds the rounding of the energy."""
    for force in (0.0, None):
        options = {} if force is None or name == "princeton-beam" else dict(force=force)
        run = lv.simulate(lv.problems.load(name, **options), h=h, t_end=t_end)
        verdicts = [row.verdict for row in conservation.conservation_rows(run) if row.name == run.summary.energy]
        assert verdicts == [conservation.AS_GUARANTEED] * 2, run.report(accuracy=False)


def at_rest(case):
    """Return a mechanism in equilibrium, whose motion consists of roundings."""
    if case == "beam":
        return lv.simulate(lv.problems.load("45-degree-bend", force=0.0), h=0.01, t_end=2.0)
    if case == "chain of springs":
        return lv.simulate(lv.problems.load("mass-spring-redundant"), v0=[0.0] * 6, t_end=5.0)
    problem = lv.problems.load(case)
    parameters = {name: 0.0 * np.array(value) for name, value in problem.model.parameters.items() if "torque" in name}
    parameters |= dict(gravity=0.0 * np.array(problem.model.parameters["gravity"]))
    v0 = np.zeros(len(problem.q0))
    return lv.simulate(
        problem.model, problem.q0, v0, scheme="lie-em", h=1e-3, t_end=0.2, parameters=parameters, redundant="remove"
    )


@pytest.mark.parametrize("case", ["beam", "rssr", "slider-crank", "newtons-cradle"])
def test_a_mechanism_at_rest_is_accurate_and_conserves_its_energy(case):
    """Energies of 1e-24 J are no scale of their own drift, and velocities of 1e-11 m/s none of their own error."""
    run = at_rest(case)
    assert all(row.holds for row in conservation.conservation_rows(run)), run.report(accuracy=False)
    assert run.summary.max_energy_drift < 1e-12
    estimate = run.accuracy(seconds=100.0)
    assert estimate.verdicts == {"q": "round-off", "v": "round-off"}, estimate
    assert max(estimate.error.values()) < 1e-6


@pytest.mark.parametrize("scheme", ["lie-em", "lie-ggl", "radau-iia-3"])
def test_a_free_pair_at_rest_conserves_its_momenta(scheme):
    """Two rods with a hinge, without forces: momenta of 1e-14 and 1e-28 are round-off."""
    mb = lv.Multibody(gravity=[0, 0, 0])
    one = mb.rod("one", a=[1, 0.3, 0], b=[2, 0, 0.1], mass=1.0)
    two = mb.rod("two", a=[2, 0, 0.1], b=[2.7, 0.9, 0], mass=2.0)
    mb.revolute("hinge", one, two, at=[2, 0, 0.1], axis=[0.1, 0.3, 1])
    run = mb.simulate(t_end=0.2, h=1e-3, scheme=scheme)
    rows = named(run)
    accepted = (conservation.ROUND_OFF, conservation.AS_GUARANTEED)
    assert all(row.verdict in accepted for row in rows.values()), run.report(accuracy=False)
    assert max(run.summary.momentum_drift.values()) < 1e-12, run.summary


def test_a_slow_motion_is_no_rest():
    """Velocities of 1e-6 m/s are not called round-off where they move the positions; a wrong motion is not resolved."""
    oscillator = lv.System("x", kinetic=lambda v: v @ v / 2, potential=lambda q: 1e4 * (q[0] - 1.0) ** 2 / 2)
    for h, resolved in ((1e-4, True), (0.05, False)):
        run = lv.simulate(oscillator, [1.0], [1e-6], scheme="livens-em", h=h, t_end=0.5)
        assert run.accuracy(seconds=100.0).resolved is resolved, run.accuracy()


def test_energy_below_the_round_off_of_a_potential_is_no_witness():
    """A slow motion on a large potential: its energy changes by the rounding of the potential."""
    slider = lv.System(
        "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 1e6 * q[1], constraints=lambda q: [q[1] - 1.0]
    )
    run = lv.simulate(slider, [1.0, 1.0], [1e-7, 0.0], scheme="livens-em", h=0.01, t_end=1.0)
    assert run.accuracy().resolved


def test_rest_and_work_are_no_explosions():
    """A motion of the size of round-off, and energy that comes in through a force."""
    lv.simulate(PENDULUM, [0.0, -1.0], [0.0, 0.0], scheme="livens-em", h=0.1, t_end=100.0)
    pushed = lv.System("x", kinetic=lambda v: v @ v / 2, forces=lambda t: [1e3])
    run = lv.simulate(pushed, [0.0], [1e-3], scheme="livens-em", h=0.1, t_end=100.0)
    assert run.status == "complete" and run.v[-1, 0] > 1e4


# -- constraints --------------------------------------------------------------------------------------------------
def test_hidden_constraints_are_relative_to_the_velocity():
    """The relative deviation is independent of the unit of time."""
    found = []
    for fast in (1.0, 1e4):
        rigid = lv.System("x y", kinetic=lambda v: v @ v / 2, constraints=lambda q: [q @ q / 2 - 0.5])
        run = lv.simulate(rigid, [1, 0], [0, fast], scheme="livens-em", h=0.01 / fast, t_end=1.0 / fast)
        found.append(named(run)["velocity_constraint"])
    assert all(row.relative for row in found)
    assert found[0].deviation == pytest.approx(found[1].deviation, rel=1e-6)


def test_exported_mechanics_have_their_constraints():
    model = lv.port_hamiltonian.from_system(PENDULUM)
    start = lv.port_hamiltonian.state_from_system(PENDULUM, [1, 0], [0, 0])
    run = lv.simulate(model, x0=start, scheme="radau-iia-2", h=0.01, t_end=1.0)
    rows = named(run)
    assert rows["velocity_constraint"].verdict == conservation.AS_GUARANTEED and rows["velocity_constraint"].relative
    assert not rows["constraint"].guaranteed and 0 < rows["constraint"].deviation < 1e-2
    assert run.summary.max_constraint == pytest.approx(np.abs(run.observe("constraint")).max())
    joined = lv.problems.load("motor-slider-crank")
    run = lv.simulate(joined, t_end=0.5)
    assert {"constraint", "velocity_constraint"} <= set(named(run))


def test_a_report_of_a_users_own_model_is_complete(tmp_path):
    path = tmp_path / "own.h5"
    lv.simulate(PENDULUM, [1, 0], [0, 0], scheme="livens-em", h=0.01, t_end=2.0, out=path)
    without, given = (
        conservation.conservation_rows(lv.load(path)),
        conservation.conservation_rows(lv.load(path, system=PENDULUM)),
    )
    assert all(row.initial is None and row.drift is None for row in without)
    assert [row.name for row in given] == [row.name for row in without]
    assert all(row.initial is not None and row.drift is not None for row in given if not row.quantity.startswith(" "))


def test_the_command_line_takes_the_users_own_model(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from livens.cli import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        "import livens as lv\n"
        "ball = lv.System('x', kinetic=lambda v: v @ v / 2, potential=lambda q: q @ q / 2)\n"
        "if __name__ == '__main__':\n    lv.simulate(ball, [1.0], [0.0], h=0.1, t_end=5.0, out='own.h5')\n"
    )
    exec(compile((tmp_path / "own.py").read_text(), "own.py", "exec"), {"__name__": "__main__"})
    call = CliRunner().invoke
    without = json.loads(call(app, ["report", "own.h5", "--json"]).stdout)
    given = json.loads(call(app, ["report", "own.h5", "--json", "--system", "own.py:ball"]).stdout)
    assert without["rows"][0]["start"] is None and without["resolved"] is None
    assert given["rows"][0]["start"] == 0.5 and given["resolved"] is True
    for wrong in ("own.py:other", "nowhere.py:ball", "ball"):
        with pytest.raises(lv.InputError):
            call(app, ["report", "own.h5", "--system", wrong], catch_exceptions=False)


# -- one step -----------------------------------------------------------------------------------------------------
def test_memory_that_belongs_to_the_size_of_the_step():
    """With all forces ahead of the middle, `semi-explicit` is drift, kick, drift: symplectic and reversible."""
    force = lv.Force(lambda q: -m.cos(q[0]), expensive=True, conservative=True)
    model = lv.Hamiltonian("q", kinetic=lambda p: p @ p / 2, forces=force)
    for scheme in ("semi-explicit:0.5,0", "semi-explicit:0.5,0.5"):
        assert symplecticity_defect(model, scheme, [1.0], p=[0.5], h=0.3) < 1e-15
        assert reversibility_defect(model, scheme, [1.0], p=[0.5], h=0.3) < 1e-15
    assert symplecticity_defect(model, "semi-explicit:0.7,0.5", [1.0], p=[0.5], h=0.3) > 1e-4


def test_both_copies_turn_around():
    """`sundman-doubled` is not reversible, but nearly: the defect falls with the fourth power of the step."""
    kepler = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / m.sqrt(q @ q))
    scaling = lv.scaling.potential(1.5)
    defects = [
        reversibility_defect(kepler, "sundman-doubled", [0.5, 0.1], p=[0.3, 1.7], h=h, scaling=scaling)
        for h in (0.1, 0.05)
    ]
    assert defects[0] < 1e-2 and defects[1] < defects[0] / 4, defects


def test_round_off_is_what_one_rounding_makes():
    """The kinetic energy of one mass, p v / 2: a rounding of both changes it by eps times itself, twice at most."""
    ball = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2)
    run = lv.simulate(ball, [0.0], [3.0], h=0.1, t_end=1.0)
    energy, eps = 4.5, np.finfo(float).eps
    assert 0.99 * eps * energy <= round_off(run, "kinetic_energy") <= 4.01 * eps * energy


def test_work_of_rounded_forces_is_part_of_the_bounds_of_energies_only():
    """A momentum of a mechanism has no work of rounded forces, its energy has."""
    mb = lv.Multibody(gravity=(0, 0, -9.81))
    rod = mb.rod("rod", a=(0, 0, 0), b=(0, 0, -1), mass=1.0)
    mb.revolute("hinge", mb.ground, rod, at=(0, 0, 0), axis="y")
    system, run = mb.system, mb.simulate(t_end=0.1, h=0.01)
    for name, has_work in (("total_energy", True), ("linear_momentum", False)):
        bound = RoundOffBound(system, [name], system.parameter_vector(), 0.01)
        bound.update(run.t, [getattr(run, part) for part in system.view.symbols])
        assert (bound.energy > 0) is has_work


@pytest.mark.parametrize("scheme", ["livens-em", "gauss-3", "livens-variational"])
def test_the_generalised_energy_is_the_witness_where_t_plus_v_is_not_conserved(scheme):
    """A bead on a hoop that turns, and a charge in a magnetic field: right runs are resolved, and not stopped."""
    hoop = lv.System(
        "th",
        kinetic=lambda q, v, k: (v[0] ** 2 + k.w**2 * lv.math.sin(q[0]) ** 2) / 2,
        potential=lambda q, k: -k.g * lv.math.cos(q[0]),
        parameters=dict(w=5.0, g=9.81),
    )
    run = lv.simulate(hoop, q0=[1.0], v0=[0.0], h=1e-2, t_end=20.0, scheme=scheme)
    assert run.summary.energy == "generalized_energy" and run.summary.max_energy_drift < 0.02
    assert run.accuracy().resolved and np.ptp(run.observe("total_energy")) > 1
    charge = lv.System(
        "x y",
        kinetic=lambda q, v: 0.5 * (v @ v) + 5e3 * (q[0] * v[1] - q[1] * v[0]),
        potential=lambda q: 0 * q[0],
    )
    run = lv.simulate(charge, q0=[1.0, 0.0], v0=[1e-3, 0.0], scheme=scheme, h=1e-6, t_end=1e-3)
    assert run.status == "complete" and run.summary.max_energy_drift < 1e-9


def test_increments_above_round_off_are_not_added_up_like_roundings():
    """A deviation that sqrt(steps) roundings would allow is no round-off if single steps change the energy by more."""
    kepler = lv.problems.load("kepler")
    run = lv.simulate(kepler, scheme="kahan-li-8:stormer-verlet", h=0.012, t_end=240.0)
    energy, step = conservation.conservation_rows(run)[:2]
    assert energy.deviation < 100 * round_off(run, "total_energy") * np.sqrt(
        20_000
    )  # as much as roundings may add up to
    assert step.verdict == "not conserved" and "round-off" not in energy.verdict


# -- terms that cancel ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("speed", [1.0, 0.999999999999])
def test_deviations_of_an_indefinite_energy_are_relative_to_its_terms(speed):
    """T = (vx^2 - vy^2)/2 of nearly equal speeds: T + V is round-off of its terms, and so is its deviation."""
    system = lv.System("x y", mass=lambda q: [[1.0, 0.0], [0.0, -1.0]], potential=lambda q: (q[0] ** 2 - q[1] ** 2) / 2)
    run = lv.simulate(system, q0=[0.3, 0.3], v0=[1.0, speed], h=0.01, t_end=20.0)
    for row in conservation.conservation_rows(run):
        assert row.verdict == conservation.AS_GUARANTEED and row.deviation < 1e-12, row


# -- passivity --------------------------------------------------------------------------------------------------------
def test_passivity_is_checked_along_the_run():
    """R is positive at all random states of the construction and at the start, and negative for |q| > 3."""
    model = lv.PortHamiltonian(
        "q p",
        H=lambda x: (x[0] ** 2 + x[1] ** 2) / 2,
        J=[[0, 1], [-1, 0]],
        R=lambda x: [[0, 0], [0, 0.02 * (9 - x[0] ** 2)]],
    )
    for p, passive in ((1.0, True), (5.0, False)):
        run = lv.simulate(model, x0=[0.0, p], scheme="gauss-2", h=0.01, t_end=2.0)
        assert bool(np.abs(run.x[:, 0]).max() < 3) is passive
        verdict = passivity(run)
        assert verdict.passive is passive and verdict.n_states == 201
        assert str(verdict) in run.report(accuracy=False).lines
        assert conservation.as_object(run, accuracy=False)["passive"] is passive
    assert "NOT PASSIVE: R is not positive semidefinite: R[1, 1] is -" in str(run.report(accuracy=False))
    assert passivity(lv.simulate(OSCILLATOR, q0=[1.0], v0=[0.0], h=0.1, t_end=1.0)) is None


# -- momenta of a body at rest ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", ["lie-em", "livens-em"])
def test_the_drift_of_a_momentum_at_round_off_level_is_not_relative_to_it(scheme):
    """A satellite turns about its centre of mass: its linear momentum of 1e-14 consists of roundings."""
    mb = lv.Multibody(gravity=[0, 0, 0])
    bus = mb.box("bus", at=[0, 0, 0], size=[0.5, 0.4, 0.3], mass=100.0)
    wheel = mb.cylinder("wheel", at=[0.15, 0, 0], axis="x", radius=0.1, length=0.1, mass=5.0)
    spin = mb.revolute("spin", bus, wheel, at=[0.15, 0, 0], axis="x")
    mb.initial(spin, rate=300.0)
    mb.initial(bus, omega=[0.01, 0.02, 0.03])
    run = mb.simulate(t_end=1.0, h=0.01, scheme=scheme, tier="fused")
    assert run.summary.momentum_drift["linear_momentum"] < 1e-12, run.summary
    assert run.summary.momentum_drift["angular_momentum"] < 1e-10


def test_the_drift_of_a_small_momentum_is_relative_to_it():
    """A momentum of 1e-6 of the largest one with the same kinetic energy is no round-off."""
    maxima = np.array([0.0, 0.0, 0.5, 0.0, 0.0, 1e-9, 1e-6, 1e-17, 1e-16])
    summary = summary_from_maxima("total_energy", ("a", "b"), 1.0, 1.0, maxima, lambda kinetic: {"a": 1.0, "b": 1.0})
    assert summary.momentum_drift == pytest.approx({"a": 1e-3, "b": 1e-17})
    assert maxima[-1] == 1e-16


@pytest.mark.parametrize("case", ["switched by time", "parameter set by an event", "scheduled input"])
def test_momenta_that_a_later_force_changes_are_not_monitored(case):
    """A force of zero at the start leaves the momentum constant only until it acts."""
    by_time = case == "switched by time"
    options = dict(q0=[0.0, 0.0], v0=[1.0, 0.0], h=0.01, t_end=2.0)
    force = (lambda t: [m.where(t > 1, 1.0, 0.0), 0.0]) if by_time else (lambda k: [k.f, 0.0])
    if case.startswith("parameter"):
        action = lv.Event(lambda t: t - 1.0, name="on", action=lambda: {"parameters": {"f": 2.0}})
        options["events"] = [action]
    elif case.startswith("scheduled"):
        options["inputs"] = lv.Schedule({"f": np.repeat([0.0, 1.0], 100)})
    model = lv.System(
        "x y",
        kinetic=lambda v: v @ v / 2,
        forces=force,
        symmetries={"px": lambda q: [1.0, 0.0], "py": lambda q: [0.0, 1.0]},
        parameters={} if by_time else dict(f=0.0),
    )
    run = lv.simulate(model, **options)
    assert run.v[-1, 0] > 1.9 and set(run.summary.momentum_drift) == {"py"}


def test_names_of_conserved_momenta_are_kept_for_a_limited_number_of_parameters():
    """A loop over parameters does not fill the memory."""
    from livens.run import drift_monitor

    problem = lv.problems.load("simple-pendulum")
    for i in range(300):
        lv.simulate(problem, h=0.01, t_end=0.01, parameters={"g": 9 + 1e-3 * i})
    assert len(drift_monitor._conserved) <= 256
    assert len(drift_monitor._model_cache(problem.model.fingerprint)) < 20


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["simple-pendulum", "heavy-top", "spring-chain", "euler-top", "spin-chain"])
def test_reports_of_the_shortest_steps_are_complete(name):
    """Ten steps of 1e-300 s: squares of times underflow, and rates may overflow."""
    run = lv.simulate(lv.problems.load(name), h=1e-300, t_end=1e-299)
    rows = conservation.conservation_rows(run)
    assert all(row.holds and np.isfinite(row.deviation) for row in rows) and str(run.report())
