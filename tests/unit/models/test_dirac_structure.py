"""Dirac structures, transformations, block form, memoryless components and velocity-dependent damping of pH systems."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m
from livens import port_hamiltonian as ph


def valve():
    """A structure that depends on the state, with losses at the port and a Hamiltonian that is not quadratic."""
    return lv.PortHamiltonian(
        "q p s",
        H=lambda x: x[0] ** 4 / 4 + m.cosh(x[1]) + x[2] ** 2 / 2,
        J=lambda x: [[0, 1, x[1]], [-1, 0, -x[2]], [-x[1], x[2], 0]],
        R=lambda x: [[0.1, 0, 0], [0, 0.2 + x[0] ** 2, 0], [0, 0, 0]],
        B=[[0], [1], [0.5]],
        P=[[0], [0.05], [0]],
        S=[[0.3]],
        u=lambda t: [m.sin(t)],
    )


def rate(model, x, t):
    residual = lambda xdot: np.array(model.residual(x, xdot, t, model.parameter_vector())).ravel()  # noqa: E731
    return -residual(np.zeros(len(x)))  # E is the identity


def test_solutions_belong_to_the_structure():
    """Membership and zero power for rates of the system, and for no others (Symank 2025, thm. 4.7)."""
    model = valve()
    structure = ph.DiracStructure(model)
    x, t = np.array([0.7, -0.4, 1.1]), 0.6
    element = structure.flows_and_efforts(x, rate(model, x, t), t)
    assert structure.contains(element.f, element.e, x, t) and abs(element.power) < 1e-15
    balance = element.supplied_power - element.dissipated_power
    assert element.stored_power == pytest.approx(balance, abs=1e-15) and element.dissipated_power > 0
    k = model.parameter_vector()
    assert element.dissipated_power == pytest.approx(float(model.dissipated(x, t, k)), abs=1e-15)
    wrong = structure.flows_and_efforts(x, rate(model, x, t) + [0, 1e-6, 0], t)
    assert not structure.contains(wrong.f, wrong.e, x, t)


def test_the_structure_is_its_own_orthogonal_complement():
    """Pairs that exchange no power with any element are elements, and the dimension is half of the space (def. 4.4)."""
    structure = ph.DiracStructure(valve())
    x = [0.7, -0.4, 1.1]
    matrix = structure.matrix(x)
    n = len(matrix)
    assert np.array_equal(matrix, -matrix.T)
    elements = np.vstack([-matrix, np.eye(n)])  # columns (f, e) of a basis
    pairing = np.block([[np.zeros((n, n)), np.eye(n)], [np.eye(n), np.zeros((n, n))]])
    assert np.abs(elements.T @ pairing @ elements).max() < 1e-15
    assert np.linalg.matrix_rank(elements.T @ pairing) == n
    f, e = np.random.default_rng(2).normal(size=(2, n))
    assert not structure.contains(f, e, x) and structure.contains(-matrix @ e, e, x)
    with pytest.raises(lv.InputError, match="must have the length 8"):
        structure.contains(f[:3], e, x)


@pytest.mark.parametrize("scheme", ["gauss-2", "radau-iia-2"])
def test_flows_and_efforts_at_stages(scheme):
    """Members at every stage; their powers integrate to the energies of the run (Symank 2025, 5.3)."""
    model = valve()
    structure = ph.DiracStructure(model)
    run = lv.simulate(model, x0=[0.7, -0.4, 1.1], scheme=scheme, h=0.1, t_end=1.0)
    stages = structure.at_stages(run)
    assert stages.f.shape == (10, 2, 8) and np.abs(stages.power).max() < 1e-12
    weights = np.asarray(lv.schemes.get(scheme).tableau.b)
    for name, power in (("supplied_energy", stages.supplied_power), ("dissipated_energy", stages.dissipated_power)):
        assert np.abs(np.diff(getattr(run, name)) - 0.1 * power @ weights).max() < 1e-14
    with pytest.raises(lv.InputError, match="no stage"):
        structure.at_stages(lv.simulate(model, x0=[0.7, -0.4, 1.1], scheme="taylor", h=0.1, t_end=1.0))


def test_transformations_keep_motion_energy_and_ports():
    """Other variables, also nonlinear and moving ones, and other rows (Symank 2025, 4.2.2)."""
    model = valve()
    shifted = ph.transform(
        model,
        "a b c",
        x_of=lambda x, t: [x[0] + 0.1 * m.sin(t), x[1] + 0.2 * x[0] ** 3, 2 * x[2]],
        rows=lambda x: [[1, 0.3, 0], [0, 2, x[0]], [0.1, 0, 1]],
    )
    w0 = np.array([0.5, 0.2, 0.4])
    x0 = np.array([w0[0], w0[1] + 0.2 * w0[0] ** 3, 2 * w0[2]])
    old = lv.simulate(model, x0=x0, scheme="gauss-3", h=0.02, t_end=2.0)
    new = lv.simulate(shifted, x0=w0, scheme="gauss-3", h=0.02, t_end=2.0)
    a, b, c = new.x.T
    mapped = np.stack([a + 0.1 * np.sin(new.t), b + 0.2 * a**3, 2 * c], axis=1)
    assert np.abs(mapped - old.x).max() < 1e-9
    for name in ("hamiltonian", "output", "dissipated_energy"):
        assert np.abs(new.observe(name) - old.observe(name)).max() < 1e-9
    with pytest.raises(lv.ModelError, match="singular"):
        ph.transform(model, "a b c", x_of=np.ones((3, 3)))
    with pytest.raises(lv.ModelError, match="has 3 states, got 2"):
        ph.transform(model, "a b", x_of=np.eye(3))


def test_block_form_of_a_circuit_with_mixed_equations():
    """E = diag(E_11, 0), a block-diagonal Q, and H of the differential states alone (Symank 2025, thm. 4.3)."""
    circuit, x0 = ph.examples.circuit()
    mixing = np.array([[1, 0.2, 0, 0.1, 0], [0, 1, 0, 0, 0.3], [0.4, 0, 1, 0, 0], [0, 0, 0.2, 1, 0], [0, 0.5, 0, 0, 1]])
    mixed = ph.transform(circuit, 5, x_of=mixing, rows=mixing.T + 0.1 * np.eye(5))
    block, V = ph.block_form(mixed)
    assert block.states == ("d0", "d1", "d2", "a0", "a1")
    k, s = block.parameter_vector(), block.structure
    import casadi as ca

    E, Q = (np.array(ca.Function("f", [s.k], [ca.densify(part)])(k)) for part in (s.E, ca.jacobian(s.z, s.x)))
    assert not E[3:].any() and not E[:, 3:].any() and np.linalg.matrix_rank(E[:3, :3]) == 3
    assert not Q[:3, 3:].any() and not Q[3:, :3].any()
    assert not ca.depends_on(s.H, s.x[3:])
    y0 = np.linalg.solve(mixing, x0)
    old = lv.simulate(circuit, x0=x0, scheme="radau-iia-3", h=0.05, t_end=2.0)
    new = lv.simulate(block, x0=np.linalg.solve(V, y0), scheme="radau-iia-3", h=0.05, t_end=2.0)
    assert np.abs(new.x @ V.T @ mixing.T - old.x).max() < 1e-12
    with pytest.raises(lv.ModelError, match="depends on the state"):
        ph.block_form(valve())


@pytest.mark.parametrize("resistance", [[[2.0]], lambda k: [[k.R]]])
def test_memoryless_components(resistance):
    """A resistor without states in a network, against the equations of the circuit."""
    parameters = dict(R=2.0) if callable(resistance) else None
    resistor = lv.PortHamiltonian(0, ports="r", S=resistance, parameters=parameters)
    capacitor = lv.PortHamiltonian("q", H=lambda x: x[0] ** 2, B=[[1]], ports="i")
    coil = lv.PortHamiltonian("flux", H=lambda x: x[0] ** 2 / 2, B=[[1]], ports="v")
    circuit = ph.interconnect_all(
        dict(C=capacitor, L=coil, R=resistor),
        lambda y, u: [u["C.i"] - y["L.v"], u["R.r"] - y["L.v"], u["L.v"] + y["C.i"] + y["R.r"]],
    )
    assert circuit.states[:2] == ("C.q", "L.flux") and circuit.n == (4 if callable(resistance) else 2)
    x0 = [1.0, 0.0, 0.0, 0.0][: circuit.n]
    run = lv.simulate(circuit, x0=x0, scheme="gauss-3", h=0.02, t_end=5.0, project=True)
    assert np.array_equal(run.x[0, :2], [1.0, 0.0]), "only algebraic states are computed"
    end = solve_ivp(lambda t, x: [x[1], -2 * x[0] - 2 * x[1]], (0, 5), [1, 0], rtol=1e-12, atol=1e-13).y[:, -1]
    assert np.abs(run.x[-1, :2] - end).max() < 1e-9
    assert np.abs(run.observe("energy_balance_defect")).max() < 1e-13
    with pytest.raises(lv.InputError, match="has no states"):
        lv.simulate(resistor, x0=[], h=0.1, t_end=1.0)
    with pytest.raises(lv.ModelError, match="give the Hamiltonian"):
        lv.PortHamiltonian("q")


def test_damping_that_depends_on_the_velocity():
    """Drag with the square of the speed is dissipation, not a port (Symank 2025, 4.4.1); also from rest."""

    def dragged(speed):
        return lv.System(
            "x y",
            kinetic=lambda v: v @ v / 2,
            potential=lambda q: q @ q / 2 + q[1],
            dissipation=lambda q, v: (1 + q[0] ** 2) * speed(v) ** 3 / 3 + 0.1 * (v @ v),
        )

    system = dragged(lambda v: m.sqrt(v @ v))
    model = ph.from_system(system)
    assert not model.ports
    for v0 in ([0.3, 0.5], [0.0, 0.0]):
        system = dragged(lambda v: m.sqrt(v @ v + 1e-30))
        run = lv.simulate(ph.from_system(system), x0=[1.0, 0.0, *v0], scheme="gauss-2", h=0.01, t_end=3.0)
        other = lv.simulate(system, [1.0, 0.0], v0, scheme="gauss-3", h=0.01, t_end=3.0)
        assert np.abs(run.x[-1, :2] - other.q[-1]).max() < 1e-7
        assert run.dissipated_energy[-1] == pytest.approx(other.dissipated_energy[-1], rel=1e-6)
        assert np.abs(run.observe("energy_balance_defect")).max() < 1e-13
    cubic = ph.from_system(lv.System("x", kinetic=lambda v: v @ v / 2, dissipation=lambda v: abs(v[0]) ** 3))
    slowed = lv.simulate(cubic, x0=[0.0, -2.0], scheme="gauss-3", h=0.05, t_end=2.0)
    assert slowed.x[-1, 1] == pytest.approx(-2 / (1 + 3 * 2 * 2.0), rel=1e-6), "v' = -3 v |v|"
    with pytest.raises(lv.ModelError, match="a force at rest"):
        ph.from_system(lv.System("x", kinetic=lambda v: v @ v, dissipation=lambda v: v[0] + v[0] ** 2))
